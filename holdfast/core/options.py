"""Options of activities and children, as history records them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec

from holdfast.core.ids import DEFAULT_QUEUE
from holdfast.core.instants import Micros
from holdfast.core.retry import DEFAULT_RETRY, RetryPolicy
from holdfast.errors import InvalidArguments


class Cancellation(StrEnum):
    """Whether code that cancels an activity waits until the activity's function has ended."""

    ABANDON = "abandon"
    """The wait ends at once; the function is told, and nobody hears of what it does then."""
    WAIT = "wait"
    """The wait ends when the function has ended, with its clean-up."""


class JobDetails(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """Of which task of a process an activity does the job."""

    element: str
    """The id of the task in its process."""
    headers: dict[str, str] = {}
    """The task's own settings, as its diagram says them (`zeebe:taskHeaders`)."""


class ActivityOptions(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """How one activity is run. Timeouts in microseconds; None means no limit."""

    queue: str = DEFAULT_QUEUE
    retry: RetryPolicy = DEFAULT_RETRY
    start_to_close_us: Micros | None = None
    schedule_to_start_us: Micros | None = None
    schedule_to_close_us: Micros | None = None
    heartbeat_us: Micros | None = None
    at_most_once: bool = False
    """Whether the beginning of an attempt is committed before its function is called, and what began is never repeated."""
    cancellation: Cancellation = Cancellation.ABANDON
    job: JobDetails | None = None
    """Set if it is the job of a task of a process. Then its input is `signatures.NamedArguments` with the variables: the
    function gets those that it has parameters for. And one that no node knows waits for a node that does. Nodes of versions
    that do not know this field refuse to read options that have it, and leave the activity to others."""


class JobType(msgspec.Struct, frozen=True):
    """What the node that takes a turn knows of the activity that a task asks for by its job type."""

    parameters: frozenset[str] | None
    """The names of the variables that it takes; None: all."""
    options: ActivityOptions
    """The options that the activity was given where it is defined."""


FindJobType: TypeAlias = Callable[[str], JobType | None]
"""Looks up a job type among the activities of a node; None if the node has none of that name."""


def find_no_job_type(_name: str) -> JobType | None:
    """Where no activities are at hand: every job gets all variables."""
    return None


DEFAULT_OPTIONS = ActivityOptions()


OnBlocked: TypeAlias = Literal["wait", "raise"]
"""What whoever awaits a result does if the execution is or becomes blocked."""


class ParentClose(StrEnum):
    """What becomes of an open child when its parent closes."""

    ABANDON = "abandon"
    CANCEL = "cancel"
    TERMINATE = "terminate"


class OnOpen(StrEnum):
    """What a start does when an open execution has the workflow id."""

    USE_EXISTING = "use_existing"
    FAIL = "fail"
    TERMINATE_EXISTING = "terminate_existing"


class OnClosed(StrEnum):
    """What a start does when only closed executions have the workflow id."""

    ALLOW = "allow"
    ALLOW_IF_FAILED = "allow_if_failed"
    REJECT = "reject"


class TimeoutKind(StrEnum):
    """Which one of an activity's four timeouts has passed."""

    START_TO_CLOSE = "start_to_close"
    SCHEDULE_TO_START = "schedule_to_start"
    SCHEDULE_TO_CLOSE = "schedule_to_close"
    HEARTBEAT = "heartbeat"


@contextmanager
def naming_options(names: frozenset[str]) -> Iterator[None]:
    """A call that takes these options beside the arguments of a workflow: if a keyword is neither, the error names them."""
    try:
        yield
    except InvalidArguments as error:
        if error.unknown_keyword is None:
            raise
        listed = sorted(names)
        near = get_close_matches(error.unknown_keyword, listed, 1)
        hint = f" Did you mean the option '{near[0]}'?" if near else ""
        raise InvalidArguments(f"{error}{hint} The options of this call are: {', '.join(listed)}.") from None


def separate_options(keywords: Mapping[str, Any], names: frozenset[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keyword arguments of a call as (options, arguments of the workflow)."""
    options: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    for name, value in keywords.items():
        (options if name in names else arguments)[name] = value
    return options, arguments
