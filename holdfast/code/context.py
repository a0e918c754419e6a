"""What workflow code sees: everything it may ask for, and nothing else.

Methods that take time return futures: the request is made when they are called, the result comes when they are awaited. So
`a, b = ctx.run(f), ctx.run(g)` runs both at once.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from types import FunctionType, MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NoReturn,
    ParamSpec,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    Unpack,
    overload,
)

import msgspec

from holdfast.activities.definitions import Activity, TransactionActivity
from holdfast.code.bound_workflows import BoundWorkflow, Call, check_call, unbind
from holdfast.code.child_options import CHILD_OPTIONS, ChildOptions, check_child_options
from holdfast.code.command_issuer import create_task
from holdfast.code.definitions import Workflow
from holdfast.code.handlers import register_handler
from holdfast.code.human_task_options import HumanTaskOptions, make_task_command
from holdfast.code.publishing_context import PublishingContext
from holdfast.code.states import UNSET as _UNSET
from holdfast.code.states import make_state, read_state
from holdfast.code.wait_values import AnyWait, PublicationWait, SignalWait, TimerWait, Winner
from holdfast.core.ids import DEFAULT_QUEUE, check_identifier, check_label, derive_entropy
from holdfast.core.instants import Duration, from_datetime, to_datetime, to_micros
from holdfast.core.options import DEFAULT_OPTIONS, ParentClose, naming_options, separate_options
from holdfast.core.payloads import Strictness
from holdfast.errors import ChildWorkflowFailed, InvalidArguments

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.code.command_issuer import CommandIssuer, StepFuture
    from holdfast.code.logger import WorkflowLogger
    from holdfast.code.program import CodeProgram
    from holdfast.code.signals import DrainedSignals
    from holdfast.code.workflow_types import WorkflowTaking
    from holdfast.core.payloads import Payload
    from holdfast.core.references import BusinessReference

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")
Ts = TypeVarTuple("Ts")


class Info(msgspec.Struct, frozen=True, gc=False):
    """What workflow code can know about its own execution: `ctx.info`."""

    org: str
    workflow: str
    workflow_id: str
    execution_id: str
    code_version: str
    parent_execution_id: str | None
    continued_from: str | None
    queue: str = DEFAULT_QUEUE
    attempt: int = 1
    """Which run of the same work this is: above 1 if runs before it failed and the workflow has a retry policy."""
    metadata: Mapping[str, str] = MappingProxyType({})
    """Texts that it was started with, as they were then."""
    headers: Mapping[str, str] = MappingProxyType({})
    """Trace context and the like, which is handed on to activities, children and receivers of its signals."""
    business_reference: BusinessReference | None = None
    """What it is about, if it, its parent or the run before it was started with that."""


class ChildHandle(Generic[R]):
    """A child that was started. Await it for its result."""

    def __init__(self, context: Context, workflow_id: str, execution_id: str, future: asyncio.Future[R]) -> None:
        self._context = context
        self._future = future
        self.workflow_id = workflow_id
        self.execution_id = execution_id

    def __await__(self) -> Generator[Any, None, R]:
        return self._future.__await__()

    def result(self) -> asyncio.Future[R]:
        """A future of the child's result; awaiting it may raise ChildWorkflowFailed. Cancelling it cancels the child."""
        return self._future

    def cancel(self) -> bool:
        """Ask the child to cancel, and stop waiting for it. Returns False if the child has already ended."""
        return self._future.cancel()

    def signal(self, name: str, value: Any = None) -> asyncio.Future[None]:
        """Send the child a signal. The future is done once the child has accepted it."""
        return self._context.signal_external_workflow(self.workflow_id, name, value)


Wait: TypeAlias = AnyWait[T] | asyncio.Future[T] | ChildHandle[T]
"""What `wait_any` takes, each with the type of its value."""
_AWAITABLE: Final = (SignalWait, PublicationWait, TimerWait, ChildHandle, asyncio.Future)
"""The classes of these. A tuple: a union of types is made anew each time."""


class MistakenType:
    """What mypy takes a signal for whose type is not the one that the code expects.

    Without this mypy would fall back to the overload for hints that are no classes (`int | str`), whose value is Any, and
    say nothing. No call gets here otherwise: every class fits the overload before.
    """


class Context(PublishingContext):
    """Everything that a workflow can do durably. Every workflow function takes one as its first parameter."""

    def __init__(self, program: CodeProgram, info: Info) -> None:
        self._program = program
        self._issuer = program.issuer
        self.info = info
        self._random: random.Random | None = None
        self._uuids: random.Random | None = None
        self._logger: WorkflowLogger | None = None

    # --- activities ---

    @overload
    def run(self, activity: Activity[P, R], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[R]: ...
    @overload
    def run(self, activity: str, *args: Any, **kwargs: Any) -> asyncio.Future[Any]: ...
    def run(self, activity: Any, *args: Any, **kwargs: Any) -> asyncio.Future[Any]:
        """Run an activity. Awaiting the future gives its result.

        That may raise ActivityFailed or ActivityTimedOut; ActivityLost if the activity runs at most once. Cancelling the
        future cancels the activity. An activity that only other nodes have can be named by a string; its result is then
        plain JSON. Options for one call, also a name for the history: `ctx.run(charge.with_options(name="deposit"), order)`.
        """
        issuer = self._issuer
        if isinstance(activity, Activity):
            if isinstance(activity, TransactionActivity):
                raise InvalidArguments(
                    f"Expected ctx.run to get a function decorated with @activity, but '{activity.name}' is decorated with "
                    "@transaction. Call ctx.transaction, which commits its SQL together with its result."
                )
            return self._run_known(activity, args, kwargs)
        if isinstance(activity, str):
            check_identifier(activity, "the name of an activity")
            encoded = issuer.values.encode_arguments(args, kwargs, f"activity '{activity}'")
            return issuer.run_activity(activity, encoded, DEFAULT_OPTIONS, Any)
        is_below = isinstance(getattr(activity, "__func__", None), Activity)
        remedy = "Write @activity above @classmethod." if is_below else "Decorate it, or pass its name."
        if isinstance(activity, Workflow):
            remedy = f"Write `await ctx.run_child({activity.name}, …)`."
        raise InvalidArguments(
            f"Expected ctx.run to get a function decorated with @activity, but got {activity!r}. {remedy}"
        )

    def transaction(self, function: TransactionActivity[P, R], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[R]:
        """Run a function decorated with @transaction and return its result: its SQL commits together with that result.

        If this returns, the SQL was committed exactly once, however many attempts there were. If this raises, nothing was
        committed and nothing will be. If the workflow itself cancels the wait, the SQL may have been committed just before.
        In all other respects it is an activity.
        """
        given: Any = function
        if not isinstance(given, TransactionActivity):
            remedy = "Call ctx.run" if isinstance(given, Activity) else "Decorate it"
            raise InvalidArguments(
                f"Expected ctx.transaction to get a function decorated with @transaction, but got {given!r}. {remedy}."
            )
        return self._run_known(function, args, kwargs)

    def _run_known(self, activity: Activity[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> StepFuture:
        """Ask for an activity whose function is at hand."""
        issuer, signature = self._issuer, activity.signature
        strictness = issuer.values.strictness
        if len(args) > signature.most_positional and strictness is Strictness.STRICT:
            signature.refuse_positions(args)
        encoded = signature.encode_arguments(args, kwargs, issuer.payload_limit, strictness=strictness)
        future = issuer.run_activity(activity.name, encoded, activity.options, signature.result_hint, activity.label)
        future.source = activity
        return future

    # --- children ---

    @overload
    def start_child(
        self, workflow: BoundWorkflow[R], *, propagate_child_failures: Literal[False], **options: Unpack[ChildOptions]
    ) -> ChildHandle[R | ChildWorkflowFailed]: ...
    @overload
    def start_child(
        self, workflow: BoundWorkflow[R], *, propagate_child_failures: bool | None = None, **options: Unpack[ChildOptions]
    ) -> ChildHandle[R]: ...
    @overload
    def start_child(
        self, workflow: str, *args: Any, propagate_child_failures: bool | None = None, **keywords: Any
    ) -> ChildHandle[Any]: ...
    @overload
    def start_child(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        propagate_child_failures: Literal[False],
        **options: Unpack[ChildOptions],
    ) -> ChildHandle[R | ChildWorkflowFailed]: ...
    @overload
    def start_child(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        propagate_child_failures: bool | None = None,
        **options: Unpack[ChildOptions],
    ) -> ChildHandle[R]: ...
    @overload
    def start_child(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> ChildHandle[R]: ...
    def start_child(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        propagate_child_failures: bool | None = None,
        **keywords: Any,
    ) -> ChildHandle[Any]:
        """Start a child without waiting for it. If this workflow closes first, `parent_close` decides about the child.

        Keyword arguments are options (`ChildOptions`), and the workflow's own. Awaiting the handle raises
        ChildWorkflowFailed if the child ends without a result; with `propagate_child_failures=False` it gives that
        exception as a value instead. None: as the engine's option says.
        """
        return self._child(workflow, args, keywords, ParentClose.ABANDON, propagate_child_failures)

    @overload
    def run_child(
        self, workflow: BoundWorkflow[R], *, propagate_child_failures: Literal[False], **options: Unpack[ChildOptions]
    ) -> asyncio.Future[R | ChildWorkflowFailed]: ...
    @overload
    def run_child(
        self, workflow: BoundWorkflow[R], *, propagate_child_failures: bool | None = None, **options: Unpack[ChildOptions]
    ) -> asyncio.Future[R]: ...
    @overload
    def run_child(
        self, workflow: str, *args: Any, propagate_child_failures: bool | None = None, **keywords: Any
    ) -> asyncio.Future[Any]: ...
    @overload
    def run_child(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        propagate_child_failures: Literal[False],
        **options: Unpack[ChildOptions],
    ) -> asyncio.Future[R | ChildWorkflowFailed]: ...
    @overload
    def run_child(
        self,
        workflow: WorkflowTaking[*Ts, R],
        *args: *Ts,
        propagate_child_failures: bool | None = None,
        **options: Unpack[ChildOptions],
    ) -> asyncio.Future[R]: ...
    @overload
    def run_child(self, workflow: Workflow[P, R], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[R]: ...
    def run_child(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *args: Any,
        propagate_child_failures: bool | None = None,
        **keywords: Any,
    ) -> asyncio.Future[Any]:
        """Run a child and return its result; raises ChildWorkflowFailed. If this workflow closes first, it is cancelled.

        Keyword arguments are those of `start_child`. With `retry`, the result is that of the last run. With
        `propagate_child_failures=False` the ChildWorkflowFailed is returned instead of raised, also for a child that was
        cancelled or terminated.
        """
        return self._child(workflow, args, keywords, ParentClose.CANCEL, propagate_child_failures).result()

    def _child(
        self,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        args: Any,
        keywords: Mapping[str, Any],
        default_policy: ParentClose,
        propagates: bool | None,
    ) -> ChildHandle[Any]:
        options, kwargs = separate_options(keywords, CHILD_OPTIONS)
        call = unbind(workflow, args, kwargs)
        given = () if call.workflow is not workflow else options
        with naming_options(CHILD_OPTIONS):
            name, encoded, hint = _describe_workflow(call, given, self._issuer)
        checked = check_child_options(options, default_policy, propagates, self._issuer.payload_limit)
        child_id, future = self._issuer.start_child(name, encoded, checked, hint)
        future.source = call.workflow
        future.may_be_ignored = default_policy is ParentClose.ABANDON
        return ChildHandle(self, checked.workflow_id or child_id, child_id, future)

    # --- time ---

    def now(self) -> datetime:
        """The time of the event that is being handled; it never goes back."""
        return to_datetime(self._issuer.loop.now)

    def sleep(self, duration: Duration, *, name: str = "") -> asyncio.Future[None]:
        """Sleep for a timedelta or a number of seconds. A durable timer: it survives restarts of the process.

        `name` is shown in the history.
        """
        due = self._issuer.loop.now + to_micros(duration, "the length of a sleep")
        return self._issuer.start_sleep(due, label=check_label(name, "a timer"))

    def sleep_until(self, when: datetime, *, name: str = "") -> asyncio.Future[None]:
        """Sleep until a point in time, which must have a time zone. Returns at once if it has passed.

        `name` is shown in the history.
        """
        due = from_datetime(when, "the end of a sleep")
        return self._issuer.start_sleep(due, is_date=True, label=check_label(name, "a timer"))

    # --- signals ---

    @overload
    def wait_for_signal(self, name: str, type: type[T], *, timeout: Duration | None = None) -> asyncio.Future[T]: ...
    @overload
    def wait_for_signal(  # type: ignore[overload-cannot-match]  # see MistakenType
        self, name: str, type: type[object], *, timeout: Duration | None = None
    ) -> asyncio.Future[MistakenType]: ...
    @overload
    def wait_for_signal(self, name: str, type: Any = Any, *, timeout: Duration | None = None) -> asyncio.Future[Any]: ...
    def wait_for_signal(self, name: str, type: Any = Any, *, timeout: Duration | None = None) -> asyncio.Future[Any]:
        """Wait for the next signal of a name, decoded as `type`. Raises TimeoutError if none comes within `timeout`."""
        limit = None if timeout is None else to_micros(timeout, "the timeout of wait_for_signal")
        return self._program.signals.wait(check_identifier(name, "the name of a signal"), type, limit)

    def has_signal(self, name: str) -> bool:
        """Whether a signal of that name has arrived and was not taken yet."""
        return self._program.signals.count(name) > 0

    def pending_signal_count(self, name: str) -> int:
        """How many signals of that name have arrived and were not taken yet."""
        return self._program.signals.count(name)

    @overload
    def drain_signals(self, name: str, type: type[T]) -> DrainedSignals[T]: ...
    @overload
    def drain_signals(  # type: ignore[overload-cannot-match]  # see MistakenType
        self, name: str, type: type[object]
    ) -> DrainedSignals[MistakenType]: ...
    @overload
    def drain_signals(self, name: str, type: Any = Any) -> DrainedSignals[Any]: ...
    def drain_signals(self, name: str, type: Any = Any) -> DrainedSignals[Any]:
        """Take every signal of that name that has arrived, in order, without waiting. `await` before it is allowed."""
        return self._program.signals.drain(name, type)

    def last_signal_headers(self, name: str) -> Mapping[str, str]:
        """The headers of the signal of that name which this workflow took last; empty if it had none, or none was taken.

        Where several tasks wait for signals of one name, that may be the signal of another task.
        """
        return self._program.signals.headers_of(name)

    def signal_external_workflow(self, workflow_id: str, name: str, value: Any = None) -> asyncio.Future[None]:
        """Send a signal to another open workflow, exactly once. Raises ExternalSignalFailed if that cannot take it."""
        check_identifier(workflow_id, "the workflow id of a receiver")
        check_identifier(name, "the name of a signal")
        encoded = self._issuer.values.encode(value, f"the value of signal '{name}'")
        return self._issuer.signal_external(workflow_id, name, encoded)

    # --- people ---

    @overload
    def human_task(self, name: str, form: type[T], **options: Unpack[HumanTaskOptions]) -> asyncio.Future[T]: ...
    @overload
    def human_task(self, name: str, form: Any = Any, **options: Unpack[HumanTaskOptions]) -> asyncio.Future[Any]: ...
    def human_task(self, name: str, form: Any = Any, **options: Unpack[HumanTaskOptions]) -> asyncio.Future[Any]:
        """Let a person do something: returns the form that the person fills in, decoded as `form`.

        Raises HumanTaskCancelled if somebody cancels the task. If the wait is cancelled, or the workflow ends, so does the
        task. In `wait_any` it goes on if something else wins: cancel its future to end it.
        """
        now, queue = self._issuer.loop.now, self.info.queue
        return create_task(self._issuer, make_task_command(name, form, options, self._issuer.values, now, queue), form)

    # --- several at once ---

    @overload
    def signal(self, name: str, type: type[T]) -> SignalWait[T]: ...
    @overload
    def signal(self, name: str, type: Any = Any) -> SignalWait[Any]: ...
    def signal(self, name: str, type: Any = Any) -> SignalWait[Any]:
        """For `wait_any`: the next signal of that name."""
        return SignalWait(check_identifier(name, "the name of a signal"), type)

    def timer(self, duration: Duration, *, name: str = "") -> TimerWait:
        """For `wait_any`: a length of time, whose value is when it fired. `name` is shown in the history."""
        to_micros(duration, "the length of a timer")
        return TimerWait(duration, check_label(name, "a timer"))

    @overload
    def wait_any(self, first: Wait[T], /) -> asyncio.Future[Winner[T]]: ...
    @overload
    def wait_any(self, first: Wait[T], second: Wait[T2], /) -> asyncio.Future[Winner[T | T2]]: ...
    @overload
    def wait_any(self, first: Wait[T], second: Wait[T2], third: Wait[T3], /) -> asyncio.Future[Winner[T | T2 | T3]]: ...
    @overload
    def wait_any(
        self, first: Wait[T], second: Wait[T2], third: Wait[T3], fourth: Wait[T4], /, *others: Wait[T5]
    ) -> asyncio.Future[Winner[T | T2 | T3 | T4 | T5]]: ...
    @overload
    def wait_any(self, *waits: Wait[T]) -> asyncio.Future[Winner[T]]: ...
    @overload
    def wait_any(self, *waits: Wait[Any]) -> asyncio.Future[Winner[Any]]: ...
    def wait_any(self, *waits: Wait[Any]) -> asyncio.Future[Winner[Any]]:
        """Wait for the first of several: signals, messages, events, broadcast signals, timers, and requests already made.

        When one wins, the other waits end and leave nothing behind; signals, messages and events that were not taken stay.
        Requests (activities, children, tasks) go on. The value of a timer is the time at which it fired.
        """
        if not waits:
            raise InvalidArguments(
                "Expected wait_any to get something to wait for, but it got nothing. Pass at least one wait."
            )
        for wait in waits:
            if not isinstance(wait, _AWAITABLE):
                raise InvalidArguments(
                    "Expected wait_any to get signals, messages, events, broadcast signals, timers, children, activities or "
                    f"tasks, but got {wait!r}. "
                    "Wrap a coroutine: asyncio.create_task(…)."
                )
        return self._program.wait_any(waits)

    # --- the rest ---

    def side_effect(self, function: Callable[[], T]) -> T:
        """Call a function once and record what it returned: a replay returns the recorded value and calls nothing.

        For small things that need no retry, such as reading a setting. It must return what JSON can hold. If it raises, or
        returns anything else, that is recorded too, and raised as SideEffectFailed.
        """
        return self._issuer.side_effect(function)

    def patched(self, patch: str) -> bool:
        """Whether this execution takes the new path of a change: True if it reaches this call with the new code first."""
        return self._issuer.patched(check_identifier(patch, "the id of a patch"))

    def deprecate_patch(self, patch: str) -> None:
        """Say that no execution takes the old path of a change any more, so that its `patched` call can go.

        Put it where the call was, or at the beginning of the workflow, with the new path alone behind it. It fits histories
        that recorded the patch and those that did not, and records nothing itself. docs/patches.md says when it may go too.
        """
        self._issuer.deprecated_patches |= {check_identifier(patch, "the id of a patch")}

    @overload
    def continue_as(self, bound: BoundWorkflow[Any], /) -> NoReturn: ...
    @overload
    def continue_as(self, *, workflow: BoundWorkflow[Any]) -> NoReturn: ...
    @overload
    def continue_as(self, *args: *Ts, workflow: WorkflowTaking[*Ts, Any]) -> NoReturn: ...
    @overload
    def continue_as(self, *args: Any, workflow: str, **kwargs: Any) -> NoReturn: ...
    @overload
    def continue_as(self, *args: Any, workflow: None = None, **kwargs: Any) -> NoReturn: ...
    def continue_as(  # type: ignore[misc]  # mypy finds that no implementation fits *Ts
        self, *args: Any, workflow: Workflow[..., Any] | BoundWorkflow[Any] | str | None = None, **kwargs: Any
    ) -> NoReturn:
        """End this run and start the next one with an empty history. Signals that were not taken are carried over.

        So are metadata, headers, timeouts and the retry policy. The arguments are the workflow's, by position or by name.

        The next run may be of another workflow, also of one that is only on other nodes, or on none yet: then it waits. It
        may be given with its arguments: `ctx.continue_as(order.bind(2, customer="ann"))`.

        Type checkers compare the arguments with the parameters if the workflow is named, also where it is this one.
        """
        if workflow is None and len(args) == 1 and isinstance(args[0], BoundWorkflow):
            workflow, args = args[0], ()
        if workflow is None and args and isinstance(args[0], Workflow | FunctionType):
            name = getattr(args[0], "name", getattr(args[0], "__name__", ""))
            raise InvalidArguments(
                f"Expected ctx.continue_as to get the arguments of the next run, but the first is the function '{name}'. "
                f"Write ctx.continue_as({name}.bind(…)), or ctx.continue_as(…, workflow={name}); for another run of this "
                "workflow, pass its arguments alone."
            )
        call = unbind(self._program.definition if workflow is None else workflow, args, kwargs)
        name, encoded, _ = _describe_workflow(call, (), self._issuer)
        self._issuer.continue_as(name, encoded)

    def set_state(self, value: Any = _UNSET, /, **keys: Any) -> None:
        """Set the state that `query_status` and `holdfast show` report for this execution, and by which lists find it.

        `ctx.set_state(value)` replaces the whole state. `ctx.set_state(step="paid", amount=12)` merges keys into it, which
        must be none yet or a mapping; a key that is None is removed. With both, the keys are merged into the new value.

        It is committed with the turn. Top-level keys that are text of up to 500 bytes, numbers or booleans can be searched:
        `engine.list(where="state.amount > 10")`. A next run (`continue_as`, `retry`) begins without a state.
        """
        self._issuer.set_state(make_state(self._issuer.values, self._issuer.present_state, value, keys))

    @property
    def state(self) -> Any:
        """The state that this workflow has set, as plain JSON values for reading only; None before it has set one."""
        return read_state(self._issuer.present_state)

    # --- updates and queries ---

    @overload
    def on_update(
        self, name: str, handler: Callable[..., Any], validator: Callable[..., Any] | None = None
    ) -> Callable[..., Any]: ...
    @overload
    def on_update(self, name: str | None = None, *, validator: Callable[..., Any] | None = None) -> Callable[[F], F]: ...
    @overload
    def on_update(self, name: F) -> F: ...
    def on_update(self, name: Any = None, handler: Any = None, validator: Callable[..., Any] | None = None) -> Any:
        """Let a function handle the updates of a name: it is called with the value, and its result goes to the caller.

        It may be async and do whatever the workflow may; each update runs as a task of its own. The `validator`, a plain
        function, may raise to refuse an update before anything of it is recorded. Register handlers before the workflow
        first waits: an update for a name without a handler is refused. Another function for the same name takes its place.

        As a decorator: `@ctx.on_update("name", validator=…)`; without a name, for that of the function.
        """
        return register_handler(
            name, handler, lambda name, function: self._program.handlers.on_update(name, function, validator)
        )

    @overload
    def on_query(self, name: str, handler: Callable[..., Any]) -> Callable[..., Any]: ...
    @overload
    def on_query(self, name: str | None = None) -> Callable[[F], F]: ...
    @overload
    def on_query(self, name: F) -> F: ...
    def on_query(self, name: Any = None, handler: Any = None) -> Any:
        """Let a plain function answer the queries of a name, with their arguments. It may look, and change nothing.

        Another function for the same name takes its place.

        As a decorator: `@ctx.on_query("name")`, or `@ctx.on_query` for the name of the function.
        """
        return register_handler(name, handler, self._program.handlers.on_query)

    @property
    def random(self) -> random.Random:
        """A random source that gives the same numbers on every replay."""
        self._issuer.read_only.check("draw random numbers")
        if self._random is None:  # seeding one costs as much as a small turn: most workflows never ask
            self._random = random.Random(derive_entropy(self.info.execution_id, "random"))
        return self._random

    def uuid4(self) -> uuid.UUID:
        """A random UUID that is the same on every replay."""
        self._issuer.read_only.check("draw random numbers")
        if self._uuids is None:
            self._uuids = random.Random(derive_entropy(self.info.execution_id, "uuid"))
        return uuid.UUID(int=self._uuids.getrandbits(128), version=4)

    @property
    def is_replaying(self) -> bool:
        """Whether history is being replayed. For diagnostics only: code that branches on it is not deterministic."""
        return self._issuer.is_replaying

    @property
    def logger(self) -> WorkflowLogger:
        """A logger that is silent while history is replayed."""
        if self._logger is None:
            from holdfast.code.logger import WorkflowLogger  # noqa: PLC0415 - most workflows do not log

            self._logger = WorkflowLogger(self.info, lambda: self._program.is_silent)
        return self._logger


def _describe_workflow(call: Call, options: Collection[str], issuer: CommandIssuer) -> tuple[str, Payload, Any]:
    """The name, the encoded arguments and the result's hint of a workflow given by function or name."""
    workflow, args, kwargs = call
    if isinstance(workflow, Workflow):
        if issuer.values.strictness is Strictness.STRICT:
            check_call(call, options)
        encoded = workflow.encode_input(args, kwargs, issuer.payload_limit, strictness=issuer.values.strictness)
        return workflow.name, encoded, workflow.result_hint
    if isinstance(workflow, str):
        check_identifier(workflow, "the name of a workflow")
        return workflow, issuer.values.encode_arguments(args, kwargs, f"workflow '{workflow}'"), Any
    raise InvalidArguments(
        f"Expected a function decorated with @workflow, or its name, but got {workflow!r}. Decorate it, or pass its name."
    )
