"""The options of starts: one list of them for every entrance that can start an execution.

Keyword arguments of a start are options if they are named here; all others are arguments of the workflow. `workflow_input`
is both: the workflow's only argument, where it is not given by position or by the name of its parameter. So it is not in the
typed dictionaries, and signatures have it beside them, with the type of that parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypedDict

from holdfast.core.instants import Duration
from holdfast.core.options import OnClosed, OnOpen
from holdfast.core.references import BusinessReference
from holdfast.core.retry import RetryPolicy


class RunOptions(TypedDict, total=False):
    """The options of an execution that is to be created, however it is started."""

    queue: str | None
    """The queue whose nodes take its turns. Default 'default'."""
    metadata: Mapping[str, str] | None
    """Texts by name, which are shown with the execution."""
    headers: Mapping[str, str] | None
    """Trace context and the like: texts by name that the execution hands on to its activities, children and signals."""
    business_reference: BusinessReference | None
    """What it is about, in the words of the business: lists find it by the key and by the parts. Its children and its next
    runs inherit it."""
    execution_timeout: Duration | None
    """How long it may take, with all its runs (`continue_as`, `retry`) and the pauses between them, from the end of its
    delay. Then it is closed as failed with the type 'ExecutionTimedOut', without its code having a say. Default: none."""
    run_timeout: Duration | None
    """The same for each single run. Default: none."""
    retry: RetryPolicy | None
    """How a failed run is followed by another with the same input, made by `Retry(…)`. Default: that of `@workflow`, if it
    has one."""
    version: str | None
    """The version of the workflow, to which the execution is pinned then. Default: the newest one."""


class CallOptions(RunOptions, total=False):
    """The options of an execution that a call starts, now or with a delay."""

    delay: Duration | datetime | None
    """When its code begins: after seconds or a timedelta, or at a datetime with a time zone. It exists and can be signalled,
    cancelled and found at once; signals wait until it begins. Default: at once."""


class StartOptions(CallOptions, total=False):
    """The options of `start`: those of the execution, and what to do if it exists."""

    workflow_id: str | None
    """Unique among the open executions of an org. Default: the execution's own id."""
    on_open: OnOpen | str
    """What to do if an execution with the workflow id is open. Default 'use_existing'."""
    on_closed: OnClosed | str
    """What to do if an execution with the workflow id has closed. Default 'allow'."""
    idempotency_key: str | None
    """Starts with the same key lead to the same execution while the key is remembered, also after it closed."""
    idempotency_ttl: Duration | None
    """For how long the key is remembered. Default: the engine's `request_ttl`."""
    request_id: str | None
    """Calls with the same id, for the same workflow id or for none, are one call: each gets the answer of the first."""


class SignalWithStartOptions(CallOptions, total=False):
    """The options of `signal_with_start_workflow`: those of the execution, and of the call."""

    request_id: str | None
    """Calls with the same id for the same workflow id deliver one signal, and get the answer of the first."""
    idempotency_ttl: Duration | None
    """For how long the request id is remembered. Default: the engine's `request_ttl`."""


START_OPTIONS: Final = StartOptions.__optional_keys__ | {"workflow_input"}
SIGNAL_WITH_START_OPTIONS: Final = SignalWithStartOptions.__optional_keys__ | {"workflow_input"}
