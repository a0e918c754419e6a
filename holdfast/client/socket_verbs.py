"""The verbs over a connection to the process that owns a database file.

Values are checked and encoded here, as an engine does it: whoever calls gets the same errors, and what travels is JSON.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, Unpack, overload

import msgspec

from holdfast.client.encoded_starts import LARGEST, encode_start
from holdfast.client.links import Link
from holdfast.client.socket_deployment_verbs import SocketDeploymentVerbs
from holdfast.client.socket_handler_verbs import read_answer
from holdfast.client.socket_repair_verbs import SocketRepairVerbs
from holdfast.client.socket_schedule_verbs import SocketScheduleVerbs
from holdfast.client.socket_stale_verbs import SocketStaleVerbs
from holdfast.client.socket_task_verbs import SocketTaskVerbs
from holdfast.client.unknown_pauses import warn_of_unknown_queue, warn_of_unknown_workflow
from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.code.event_types import encode_event, find_event_type
from holdfast.code.workflow_types import WorkflowTaking
from holdfast.core import payloads
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.options import OnBlocked
from holdfast.core.publications import Broadcast, EventOutcome, MessageOutcome
from holdfast.core.references import BusinessReference
from holdfast.core.retry import RetryPolicy
from holdfast.engine.handles import SignalResponse, SignalWithStartResponse, WorkflowHandle, make_handle
from holdfast.engine.nodes.roster import NodeInfo
from holdfast.engine.results import Ending
from holdfast.engine.serving.messages import Call, Page, Started
from holdfast.engine.use_cases.backlogs import QueueBacklog
from holdfast.engine.use_cases.publications import PendingEvent, read_pending
from holdfast.engine.use_cases.searching import ExecutionCounts, ExecutionList, PageOptions, SearchConditions
from holdfast.engine.use_cases.start_options import (
    SIGNAL_WITH_START_OPTIONS,
    START_OPTIONS,
    SignalWithStartOptions,
    StartOptions,
)
from holdfast.engine.views import DeadLetter, ExecutionInfo, History, Pause
from holdfast.errors import ConnectionRefused, InvalidArguments

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SocketVerbs(SocketScheduleVerbs, SocketTaskVerbs, SocketRepairVerbs, SocketStaleVerbs, SocketDeploymentVerbs):
    """Takes calls to the owner of a database. Raises LinkLost where the connection ends before the answer."""

    def __init__(self, link: Link) -> None:
        self._link = link

    # --- starting and signalling ---

    @overload
    async def start(
        self, workflow: BoundWorkflow[R], *, org: str = DEFAULT_ORG, connection: Any = None, **options: Unpack[StartOptions]
    ) -> WorkflowHandle[R]: ...
    @overload
    async def start(
        self, workflow: str, *args: Any, org: str = DEFAULT_ORG, connection: Any = None, **options: Any
    ) -> WorkflowHandle[Any]: ...
    @overload
    async def start(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[R]: ...
    @overload
    async def start(
        self,
        workflow: WorkflowTaking[T, R],
        *,
        workflow_input: T,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[R]: ...
    @overload
    async def start(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> WorkflowHandle[R]: ...
    async def start(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[Any]:
        """Start a workflow that the owner has, or find the open execution that has the workflow id."""
        _refuse_connection(connection)
        name, hint, inputs, named = encode_start(workflow, args, {**options, "org": org}, START_OPTIONS)
        started = await self._call("start", Started, [name], named, inputs, is_bound=isinstance(workflow, BoundWorkflow))
        return WorkflowHandle(
            self, org, started.workflow_id, started.execution_id or None, created=started.created, hint=hint
        )

    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: BoundWorkflow[Any],
        *,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: str,
        *args: Any,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Any,
    ) -> SignalWithStartResponse: ...
    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: WorkflowTaking[*Ts, Any],
        *args: *Ts,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    @overload
    async def signal_with_start_workflow(
        self,
        workflow_id: str,
        workflow: WorkflowTaking[T, Any],
        *,
        signal_name: str,
        signal_value: Any = None,
        workflow_input: T,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    async def signal_with_start_workflow(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow_id: str,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        connection: Any = None,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse:
        """Signal the open execution that has the workflow id, or start one that has the signal, in one transaction."""
        _refuse_connection(connection)
        value = payloads.encode(signal_value, f"the value of signal '{signal_name}'", LARGEST).data
        name, _, inputs, named = encode_start(workflow, args, {**options, "org": org}, SIGNAL_WITH_START_OPTIONS)
        named |= {"signal_name": signal_name, "signal_value": value}
        is_bound, kind = isinstance(workflow, BoundWorkflow), SignalWithStartResponse
        return await self._call("signal_with_start_workflow", kind, [workflow_id, name], named, inputs, is_bound=is_bound)

    async def update_with_start(
        self,
        workflow_id: str,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        update_name: str,
        update_value: Any = None,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        hint: Any = Any,
        **options: Any,
    ) -> Any:
        """Update the open execution that has the workflow id, or start one that has the update, in one transaction."""
        value = payloads.encode(update_value, f"the value of update '{update_name}'", LARGEST).data
        name, _, inputs, named = encode_start(workflow, args, {**options, "org": org}, SIGNAL_WITH_START_OPTIONS)
        named |= {"update_name": update_name, "update_value": value, "timeout": timeout}
        is_bound = isinstance(workflow, BoundWorkflow)
        answer = await self._call("update_with_start", msgspec.Raw, [workflow_id, name], named, inputs, is_bound=is_bound)
        return read_answer(answer, hint, f"the result of update '{update_name}'")

    async def signal_workflow(
        self,
        target: str = "",
        signal_name: str = "",
        signal_value: Any = None,
        *,
        workflow_execution_id: str | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> SignalResponse:
        """Signal an open execution, by workflow id or execution id, once per `request_id`."""
        _refuse_connection(connection)
        named = {
            "signal_value": payloads.encode(signal_value, f"the value of signal '{signal_name}'", LARGEST).data,
            "workflow_execution_id": workflow_execution_id,
            "org": org,
            "request_id": request_id,
            "headers": headers,
        }
        return await self._call("signal_workflow", SignalResponse, [target, signal_name], named)

    async def cancel(
        self,
        target: str,
        reason: str = "",
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        connection: Any = None,
    ) -> bool:
        """Ask an execution to cancel; False if it is closed."""
        _refuse_connection(connection)
        return await self._call("cancel", bool, [target, reason], {"org": org, "request_id": request_id})

    async def terminate(
        self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """End an execution at once; False if it is closed."""
        return await self._call("terminate", bool, [target, reason], {"org": org, "request_id": request_id})

    async def retry_blocked(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Retry a blocked execution; False if it is not blocked."""
        return await self._call("retry_blocked", bool, [target], {"org": org, "request_id": request_id})

    async def pause(
        self, target: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let an execution take no turns until it is resumed; what arrives meanwhile waits, in order.

        Returns False if it is closed, blocked, or paused already. Raises ExecutionNotFound.
        """
        return await self._call("pause", bool, [target, reason, by], {"org": org, "request_id": request_id})

    async def resume(self, target: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused execution go on. Returns False if it is not paused. Raises ExecutionNotFound."""
        return await self._call("resume", bool, [target], {"org": org, "request_id": request_id})

    async def pause_workflow(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a workflow take a turn, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        done = await self._call("pause_workflow", bool, [name, reason, by], {"org": org, "request_id": request_id})
        if done:
            await warn_of_unknown_workflow(self, org, name)
        return done

    async def resume_workflow(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions of a paused workflow go on. Returns False if it is not paused."""
        return await self._call("resume_workflow", bool, [name], {"org": org, "request_id": request_id})

    async def pause_queue(
        self, name: str, reason: str = "", by: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Let no execution of a queue take a turn, and no activity of it begin, on any node; starts are accepted and wait.

        Returns False if it is paused already.
        """
        done = await self._call("pause_queue", bool, [name, reason, by], {"org": org, "request_id": request_id})
        if done:
            await warn_of_unknown_queue(self, org, name)
        return done

    async def resume_queue(self, name: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let the executions and activities of a paused queue go on. Returns False if it is not paused."""
        return await self._call("resume_queue", bool, [name], {"org": org, "request_id": request_id})

    async def pauses(self, *, org: str = DEFAULT_ORG) -> builtins.list[Pause]:
        """The workflows and queues of an org that are paused; `list(status="paused")` finds executions."""
        return await self._call("pauses", builtins.list[Pause], [], {"org": org})

    # --- messages, events, broadcast signals ---

    async def send_event(
        self,
        event: Any,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> EventOutcome:
        """Send an event to whoever waits for it: an instance of a class that `@event` decorates, or a name and a value.

        If nobody waits, it is kept as its type says. By name, the type is one of the engine's `events`, or one that a living
        node announces. Raises UnknownEvent, or TooManyKept.
        """
        return await self._send_event("send_event", [], (event, value), org, request_id, headers)

    async def send_event_to(
        self,
        target: str,
        event: Any,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> EventOutcome:
        """Send an event to one open execution, by workflow id or execution id; it is kept until that waits for it.

        If the execution ends first, `on_target_terminated` of the type says what becomes of it. Raises ExecutionNotFound or
        ExecutionClosed, and what `send_event` raises.
        """
        return await self._send_event("send_event_to", [target], (event, value), org, request_id, headers)

    async def send_message(
        self,
        name: str,
        key: str,
        value: Any = None,
        *,
        ttl: Duration | None = None,
        message_id: str | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> MessageOutcome:
        """Send a message to the execution that waits for its name and correlation key; else it starts a workflow.

        If neither is there, it is kept for `ttl`, or for the engine's `message_ttl`; without one, MessageRefused is raised.
        While a message is kept, another with its `message_id` is refused with DuplicateMessage. `request_id` makes a
        repeated call safe instead: it gets the first answer.
        """
        named = {
            "value": payloads.encode(value, f"the value of message '{name}'", LARGEST).data,
            "ttl": ttl,
            "message_id": message_id,
            "org": org,
            "request_id": request_id,
            "headers": headers,
        }
        return await self._call("send_message", MessageOutcome, [name, key], named)

    async def broadcast_signal(
        self,
        name: str,
        variables: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Broadcast:
        """Send a signal to everybody who waits for it at this moment, and start the workflows that start by it.

        Nothing is kept. `delivered` of the answer counts the subscriptions that were found: one that ends in the same moment
        is counted.
        """
        encoded = payloads.encode(variables, f"the variables of signal '{name}'", LARGEST).data
        named = {"variables": encoded, "org": org, "request_id": request_id, "headers": headers}
        return await self._call("broadcast_signal", Broadcast, [name], named)

    async def pending_events(
        self, event: Any, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0
    ) -> builtins.list[PendingEvent]:
        """The events of a type, given by class or name, that are kept, in the order of sending; `after` is a position."""
        named = {"org": org, "limit": limit, "after": after}
        found = await self._call("pending_events", builtins.list[PendingEvent], [_name_event(event)], named)
        return read_pending(found, event)

    async def remove_pending_event(
        self, event: Any, event_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Remove a kept event of a type, given by class or name, by its id. Returns False if it is not there."""
        named = {"org": org, "request_id": request_id}
        return await self._call("remove_pending_event", bool, [_name_event(event), event_id], named)

    # --- asking ---

    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG) -> WorkflowHandle[Any]: ...
    @overload
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R]) -> WorkflowHandle[R]: ...
    def handle(self, target: str, *, org: str = DEFAULT_ORG, workflow: Workflow[..., R] | None = None) -> WorkflowHandle[R]:
        """A handle on an execution, by workflow id or execution id; `workflow` types its result."""
        return make_handle(self, target, org, workflow)

    async def find_started(self, workflow_id: str, execution_id: str, *, org: str = DEFAULT_ORG) -> str:
        """The id of the execution that a start in a caller's transaction led to."""
        return await self._call("find_started", str, [workflow_id, execution_id], {"org": org})

    async def query_status(self, target: str, *, org: str = DEFAULT_ORG) -> ExecutionInfo:
        """The present status of an execution, and what it waits for."""
        return await self._call("query_status", ExecutionInfo, [target], {"org": org})

    async def query_result(self, target: str, *, org: str = DEFAULT_ORG) -> Any:
        """The result of an execution as plain JSON values; None while it is open."""
        found = await self._call("find_ending", builtins.list[Ending], [target], {"org": org})
        return found[0].to_value() if found else None

    async def wait_for_result(
        self,
        target: str,
        hint: Any = Any,
        *,
        org: str = DEFAULT_ORG,
        timeout: Duration | None = None,
        on_blocked: OnBlocked | None = None,
    ) -> Any:
        """Wait until an execution ends and return its result, decoded as `hint`."""
        named = {"org": org, "timeout": timeout, "on_blocked": on_blocked}
        return (await self._call("wait_for_ending", Ending, [target], named)).to_value(hint)

    async def history(self, target: str, *, org: str = DEFAULT_ORG) -> History:
        """The whole history of an execution."""
        return await self._call("history", History, [target], {"org": org})

    async def list(self, **options: Unpack[PageOptions]) -> ExecutionList:
        """List the executions for which all conditions hold, newest first."""
        page = await self._call("list", Page, [], _to_plain(options))
        found = ExecutionList(page.executions)
        found.cursor = page.cursor
        return found

    async def count(self, **conditions: Unpack[SearchConditions]) -> ExecutionCounts:
        """Count executions by status, under the conditions of `list`."""
        return await self._call("count", ExecutionCounts, [], _to_plain(conditions))

    async def backlog(self) -> builtins.list[QueueBacklog]:
        """What waits to be done, by org and queue."""
        return await self._call("backlog", builtins.list[QueueBacklog], [], {})

    async def nodes(self) -> builtins.list[NodeInfo]:
        """The nodes that work on the store: the owner, and those before it."""
        return await self._call("nodes", builtins.list[NodeInfo], [], {})

    # --- dead letters ---

    async def dead_letters(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0) -> builtins.list[DeadLetter]:
        """Envelopes that could not be handled, with the reasons, oldest first."""
        named = {"org": org, "limit": limit, "after": after}
        return await self._call("dead_letters", builtins.list[DeadLetter], [], named)

    async def requeue_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Put dead letters back into their inboxes; how many of the ids there were."""
        return await self._call("requeue_dead_letters", int, [[*ids]], {"org": org, "request_id": request_id})

    async def discard_dead_letters(
        self, ids: Collection[int], *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> int:
        """Delete dead letters; how many of the ids there were."""
        return await self._call("discard_dead_letters", int, [[*ids]], {"org": org, "request_id": request_id})

    # --- inside ---

    async def _send_event(
        self,
        verb: str,
        positional: builtins.list[Any],
        event: tuple[Any, Any],
        org: str,
        request_id: str | None,
        headers: Mapping[str, str] | None,
    ) -> EventOutcome:
        """Send an event by name. Of one that is given as an instance, the options of its class go along."""
        given, value = event
        named: dict[str, Any] = {"org": org, "request_id": request_id, "headers": headers}
        if isinstance(given, str):
            named["value"] = payloads.encode(value, f"event '{given}'", LARGEST).data
            return await self._call(verb, EventOutcome, [*positional, given], named)
        if value is not None:
            raise InvalidArguments(
                "Expected an event alone, or the name of its type with its value, but got an object and a value. "
                "Pass an instance of the class, or a name and a value."
            )
        encoded = encode_event(given, lambda one, what, check: payloads.encode(one, what, LARGEST, check))
        named |= {"target": positional[0] if positional else None, "options": encoded.type.options}
        sent = [encoded.type.name, encoded.value.data]
        return await self._call("send_encoded_event", EventOutcome, sent, named)

    async def _call(
        self,
        verb: str,
        kind: type[T],
        positional: builtins.list[Any],
        named: Mapping[str, Any],
        inputs: Any = None,
        *,
        is_bound: bool = False,
    ) -> T:
        times = {name: value for name, value in named.items() if isinstance(value, datetime)}
        seconds = {name: value.total_seconds() for name, value in named.items() if isinstance(value, timedelta)}
        retry, reference = named.get("retry"), named.get("business_reference")
        others = {
            *(("retry",) if isinstance(retry, RetryPolicy) else ()),
            *(("business_reference",) if isinstance(reference, BusinessReference) else ()),
        }
        plain = {name: value for name, value in named.items() if name not in {*times, *seconds, *others}}
        try:
            call = Call(
                verb,
                positional,
                inputs,
                plain,
                times,
                seconds,
                retry if "retry" in others else None,
                reference if "business_reference" in others else None,
                is_bound,
            )
            answer = await self._link.call(call)
        except (TypeError, UnicodeEncodeError) as error:  # an argument of a kind, or with text, that JSON does not have
            raise InvalidArguments(f"Expected arguments of '{verb}' that JSON can hold, but {error}.") from None
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.MsgspecError as error:
            raise ConnectionRefused(
                f"Expected an answer to '{verb}' that can be read, but {error}. Use one version of Holdfast on both sides."
            ) from error


def _name_event(event: Any) -> str:
    """The name of a type of events, given by that or by its class. Raises InvalidArguments."""
    return event if isinstance(event, str) else find_event_type(event).name


def _to_plain(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions of a search as JSON can hold them."""
    plain = dict(conditions)
    workflow, status = plain.get("workflow"), plain.get("status", ())
    if isinstance(workflow, Workflow):
        plain["workflow"] = workflow.name
    if not isinstance(status, str):
        plain["status"] = [*status]
    if isinstance(plain.get("metadata"), Mapping):
        plain["metadata"] = dict(plain["metadata"])
    return plain


def _refuse_connection(connection: Any) -> None:
    if connection is not None:
        raise InvalidArguments(
            "Expected no connection, since a SQLite file has one owner, but one was given. Leave it out, or do it all "
            "within engine.transaction(fn) in the process that owns the file."
        )
