"""What commits with a transaction of the user's: starts and signals as rows for inboxes.

Everything that needs no store is checked when the call is made. What shows only later has nobody to tell: a start that is
refused, a signal whose receiver is closed or unknown, go to the dead letters with the reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, TypeVarTuple, Unpack, overload

import msgspec

from holdfast.core import codec
from holdfast.core.envelopes import AnyEnvelope, Signal
from holdfast.core.ids import DEFAULT_ORG, check_identifier
from holdfast.core.instants import Instant
from holdfast.core.routes import find_start_route
from holdfast.engine.handles import ExecutionVerbs, SignalWithStartResponse, WorkflowHandle
from holdfast.engine.use_cases.delivery import Delivery, PreparedStart, may_be_execution_id
from holdfast.engine.use_cases.start_options import SignalWithStartOptions, StartOptions
from holdfast.errors import InvalidArguments
from holdfast.store.contract import UserFunction
from holdfast.store.rows import InboxRow

if TYPE_CHECKING:
    from holdfast.code.bound_workflows import BoundWorkflow
    from holdfast.code.definitions import Workflow
    from holdfast.code.workflow_types import WorkflowTaking

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def make_start_row(org: str, prepared: PreparedStart, signal: Signal | None = None, *, at: Instant = 0) -> InboxRow:
    """A start for whoever takes its workflow; with a signal, which goes to the one that is open, if one is."""
    start, key = prepared.start, prepared.key
    if signal is None:
        start = msgspec.structs.replace(start, request=key)
    else:
        start = msgspec.structs.replace(start, signal=msgspec.structs.replace(signal, request=key))
    return InboxRow(org, "", start.workflow_id, codec.encode(start), route=find_start_route(start), at=at)


def make_envelope_row(org: str, target: str, envelope: AnyEnvelope, *, at: Instant = 0) -> InboxRow:
    """An envelope for an execution by its id or its workflow id: which of the two it is shows when it is taken."""
    check_identifier(org, "the org")
    check_identifier(target, "the id of an execution")
    return InboxRow(org, target if may_be_execution_id(target) else "", target, codec.encode(envelope), at=at)


class TransactionWork:
    """What is to happen if a transaction commits. Given to the function of `engine.transaction`, beside its connection.

    The methods are those of the engine, without waiting: they check and collect, and the commit does the rest.
    """

    def __init__(self, engine: ExecutionVerbs, delivery: Delivery, put: Callable[[InboxRow], None]) -> None:
        self._engine = engine
        self._delivery = delivery
        self._put = put

    @overload
    def start(
        self, workflow: BoundWorkflow[R], *, org: str = DEFAULT_ORG, **options: Unpack[StartOptions]
    ) -> WorkflowHandle[R]: ...
    @overload
    def start(self, workflow: str, *args: Any, org: str = DEFAULT_ORG, **options: Any) -> WorkflowHandle[Any]: ...
    @overload
    def start(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        org: str = DEFAULT_ORG,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[R]: ...
    @overload
    def start(
        self,
        workflow: WorkflowTaking[T, R],
        *,
        workflow_input: T,
        org: str = DEFAULT_ORG,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[R]: ...
    @overload
    def start(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> WorkflowHandle[R]: ...
    def start(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        org: str = DEFAULT_ORG,
        **options: Unpack[StartOptions],
    ) -> WorkflowHandle[Any]:
        """Start a workflow, as `engine.start` does. The handle is of use after the commit."""
        prepared = self._delivery.make_start(org, workflow, args, options)
        start, hint = prepared.start, prepared.result_hint
        self._put(make_start_row(org, prepared, at=self._delivery.now))
        return WorkflowHandle(self._engine, org, start.workflow_id, start.execution_id, created=None, hint=hint)

    @overload
    def signal_with_start(
        self,
        workflow_id: str,
        workflow: BoundWorkflow[Any],
        *,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    @overload
    def signal_with_start(
        self,
        workflow_id: str,
        workflow: str,
        *args: Any,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        **options: Any,
    ) -> SignalWithStartResponse: ...
    @overload
    def signal_with_start(
        self,
        workflow_id: str,
        workflow: WorkflowTaking[*Ts, Any],
        *args: *Ts,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    @overload
    def signal_with_start(
        self,
        workflow_id: str,
        workflow: WorkflowTaking[T, Any],
        *,
        signal_name: str,
        signal_value: Any = None,
        workflow_input: T,
        org: str = DEFAULT_ORG,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse: ...
    def signal_with_start(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow_id: str,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        signal_name: str,
        signal_value: Any = None,
        org: str = DEFAULT_ORG,
        **options: Unpack[SignalWithStartOptions],
    ) -> SignalWithStartResponse:
        """Signal the open execution that has the id, whatever its version, or start one with the signal in hand."""
        signal = self._delivery.make_signal(signal_name, signal_value, options.get("headers"))
        prepared = self._delivery.make_start_with_signal(org, workflow_id, workflow, args, options)
        self._put(make_start_row(org, prepared, signal, at=self._delivery.now))
        return SignalWithStartResponse(prepared.start.execution_id, None, None)

    def signal(
        self,
        target: str,
        signal_name: str,
        signal_value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Signal an execution, by workflow id or execution id."""
        signal = self._delivery.make_signal(signal_name, signal_value, headers)
        key = self._delivery.make_request_key("signal", request_id, target)
        self._put(make_envelope_row(org, target, msgspec.structs.replace(signal, request=key), at=self._delivery.now))

    def cancel(self, target: str, reason: str = "", *, org: str = DEFAULT_ORG, request_id: str | None = None) -> None:
        """Ask an execution to cancel once the transaction is committed."""
        cancel = self._delivery.make_cancel(reason, request_id, target)
        self._put(make_envelope_row(org, target, cancel, at=self._delivery.now))


def wrap_user_function(
    function: Callable[..., T | Awaitable[T]], make: Callable[[Callable[[InboxRow], None]], Any]
) -> UserFunction[T]:
    """A user's function as a store takes it: of the same kind, async or not, and given what `make` makes of the inbox."""
    if not callable(function):
        raise InvalidArguments(
            f"Expected engine.transaction to get a function, but got {function!r}. Pass one that takes (connection, work)."
        )
    if iscoroutinefunction(function):

        async def work_async(connection: Any, put: Callable[[InboxRow], None]) -> T:
            doing: Any = function(connection, make(put))
            result: T = await doing
            return result

        work_async.__qualname__ = getattr(function, "__qualname__", repr(function))
        return work_async

    def work(connection: Any, put: Callable[[InboxRow], None]) -> T | Awaitable[T]:
        return function(connection, make(put))

    work.__qualname__ = getattr(function, "__qualname__", repr(function))
    return work
