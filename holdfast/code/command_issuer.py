"""What the code of one program asks for: numbered commands, and the futures of those that have a result.

The context calls it while workflow code runs. The program collects the commands once the code rests, and hands in the events
that resolve the futures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec

from holdfast.code import guard
from holdfast.code.exceptions import make_exception
from holdfast.code.loop import WorkflowFuture, WorkflowLoop
from holdfast.code.read_only import NEVER_READ_ONLY, ReadOnly
from holdfast.code.source_locations import find_caller
from holdfast.code.values import Values
from holdfast.core import commands, events, payloads
from holdfast.core.commands import AnyCommand
from holdfast.core.events import AnyEvent
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.ids import derive_execution_id, seed_of
from holdfast.core.instants import Instant
from holdfast.core.options import ActivityOptions, Cancellation
from holdfast.core.payloads import Payload
from holdfast.core.program_limits import ProgramLimits
from holdfast.core.rebuilt_errors import KnownErrors, find_sources
from holdfast.core.unused import NO_ENTRIES, put
from holdfast.errors import HoldfastError, PayloadError, TurnTooLarge

if TYPE_CHECKING:
    from types import CodeType

    from holdfast.code.child_options import CheckedChildOptions
    from holdfast.code.definitions import Workflow

T = TypeVar("T")
_STARTING: Final = (
    commands.RunActivity,
    commands.StartTimer,
    commands.StartChild,
    commands.Subscribe,
    commands.CreateTask,
)


class ContinueRequested(BaseException):
    """Unwinds the stack of workflow code that called `continue_as`, carrying what to continue with."""

    def __init__(self, workflow: str, encoded: Payload) -> None:
        super().__init__()
        self.workflow = workflow
        self.input = encoded


class _Recorded:
    """What the code asked for when it was given an event, by what the code has to look up again."""

    __slots__ = ("awaited", "patches", "rejected", "side_effects", "values")

    def __init__(self, recorded: Sequence[AnyEvent]) -> None:
        self.side_effects: dict[int, commands.RecordSideEffect] = {}
        self.patches: set[str] = set()
        self.rejected: dict[int, Failure] = {}
        """The updates that were refused once the code had begun."""
        self.awaited: set[int] = set()
        """The activities whose end is waited for when they are cancelled."""
        self.values: set[int] = set()
        """The children whose end without a result is a value."""
        for event in recorded:
            if type(event) is events.ActivityScheduled:
                if event.options.cancellation is Cancellation.WAIT:
                    self.awaited.add(event.number)
            elif type(event) is events.ChildStarted:
                if event.failure_as_value:
                    self.values.add(event.number)
            elif type(event) is events.SideEffectRecorded:
                self.side_effects[event.number] = commands.RecordSideEffect(
                    number=event.number, value=event.value, failure=event.failure
                )
            elif type(event) is events.UpdateFailed:
                if event.is_rejected:
                    self.rejected[event.update] = event.failure
            elif type(event) is events.PatchRecorded:
                self.patches.add(event.patch)


_NOTHING_RECORDED: Final = _Recorded(())
_NONE: Final[frozenset[int]] = frozenset()


class StepFuture(WorkflowFuture[Any]):
    """The result of something asked for. Cancelling it withdraws the request."""

    source: Any = None
    """The activity or the workflow that was asked for, if the code named it by its function."""
    awaits_end: bool = False
    """Of an activity: whether cancelling it waits for the end of its function."""
    is_cancelling: bool = False
    """Whether it is cancelled, and waits for the end of what it stands for."""
    failure_as_value: bool = False
    """Of a child: whether its end without a result is the future's result, and not its exception."""
    _cancel_text: Any | None = None

    def __init__(self, issuer: CommandIssuer, number: int, label: str, hint: Any, withdraw: type[Any] | None) -> None:
        super().__init__(issuer.loop)
        self.issuer = issuer
        self.number = number
        self.label = label
        self.hint = hint
        self.withdraw = withdraw

    def cancel(self, msg: Any | None = None) -> bool:
        """Withdraw what it waits for, and cancel the wait: at once, or when that has ended, if it is to be waited for."""
        if self.is_cancelling:
            return not self.done()
        issuer = self.issuer
        if self.awaits_end and not self.done() and not issuer.loop.dead and self.number <= issuer.count_before:
            self.is_cancelling, self._cancel_text = True, msg
            issuer.issue(commands.CancelActivity(number=self.number))
            return True
        if not super().cancel(msg):
            return False
        self.issuer.withdraw(self)
        return True

    def settle_cancelled(self) -> bool:
        """What it stands for has ended, however: whether it was cancelled before, and is over by that now."""
        if self.is_cancelling:
            super().cancel(self._cancel_text)
        return self.is_cancelling


class CommandIssuer:
    """Numbers and collects the commands of one execution's code. `boundary`: the function of ours that runs user code."""

    # What few programs set; what every turn reads is set below, where an instance is quicker to read than its class.
    has_typed_failures = False
    """Whether exceptions have the class of the original: see `behaviours.TYPED_FAILURES`."""
    has_timer_instants = False
    """Whether the value of a timer in `wait_any` is when it fired: see `behaviours.TIMER_INSTANTS`."""
    present_state: Payload | None = None
    """The state that the code has set up to now: on replay the code sets it again, so it needs no record."""
    recorded = _NOTHING_RECORDED
    places: dict[int, str] = NO_ENTRIES
    """On replay: where in the code each command was asked for, by the command's identity."""
    seen_events: dict[str, dict[str, Instant]] = NO_ENTRIES
    """Events that the code was given and that stay kept for others: by name, their ids, each with its expiry."""
    _patches: dict[str, bool] = NO_ENTRIES
    deprecated_patches: frozenset[str] = frozenset()
    """Patches of which it does not matter any more whether history records them: the code has only their new path."""

    def __init__(self, definition: Workflow[..., Any], execution_id: str, limits: ProgramLimits, boundary: CodeType) -> None:
        self._definition = definition
        self._execution_id = execution_id
        self._boundary = boundary
        self.payload_limit = limits.payload_bytes
        self._turn_bytes = limits.turn_bytes
        self.ends_process = limits.run.ends_process
        self._count = self.asked_bytes = self.count_before = 0
        """How many commands were counted, and up to the last event; how many bytes of values were to be recorded since."""
        self.too_large: TurnTooLarge | None = None
        """Set once the code has asked for too much, whatever it did about the exception."""
        self.is_replaying = False
        self.state: Payload | None = None
        """What the code has set as its state since the last event."""
        self.read_only: ReadOnly = NEVER_READ_ONLY
        """Says whether what runs now may change anything."""
        self.values = Values(limits.payload_bytes)
        self.commands: list[AnyCommand] = []
        """What was asked for since the last event; with what was taken back since, which `take_commands` leaves out."""
        self._taken_back: frozenset[int] = _NONE
        """The numbers of those that were taken back."""
        self.steps: dict[int, StepFuture] = {}
        """The futures of what was asked for and has not ended, by number."""
        self._propagates = limits.propagate_child_failures
        self.loop = WorkflowLoop(  # type: ignore[abstract]  # the rest is set below the class
            definition.name, seed_of(execution_id), self._start_loop_timer, self._cancel_loop_timer
        )

    def replay_with(self, recorded: Sequence[AnyEvent]) -> None:
        """On replay: what was recorded after the event that the code is about to be given."""
        self.recorded = _Recorded(recorded) if recorded else _NOTHING_RECORDED

    # --- commands ---

    def issue(self, command: AnyCommand) -> None:
        """Ask for something; it is carried out when the turn is committed."""
        if self.loop.dead:
            return
        if self.read_only.who:
            self.read_only.refuse("ask for something to be recorded")
        self.commands.append(command)
        if self.is_replaying:
            self.places = put(self.places, id(command), find_caller(self._boundary))

    def take_commands(self) -> list[AnyCommand]:
        """What was asked for since the last event, which is done with then."""
        taken, self.commands = self.commands, []
        self.count_before = self._count
        if self._taken_back:
            taken = [one for one in taken if not (isinstance(one, _STARTING) and one.number in self._taken_back)]
            self._taken_back = _NONE
        if self.state is not None:
            taken.insert(0, commands.SetState(value=self.state))
            self.state = None
        return taken

    def next_number(self, value: Payload = payloads.NULL) -> int:
        """Count one more command; its number identifies what it asks for, for good. `value`: what it is to record.

        Raises TurnTooLarge once the code has asked for more than one turn may record; catching that does not help.
        """
        if self.read_only.who:
            self.read_only.refuse("start something")
        self._count += 1
        self.asked_bytes += len(value.data)
        if self.asked_bytes > self._turn_bytes:
            self._refuse_size()
        return self._count

    def _refuse_size(self) -> None:
        if self.is_replaying:
            return  # it was recorded when the limit was another
        place = find_caller(self._boundary)
        self.too_large = TurnTooLarge(
            f"Expected workflow '{self._definition.name}' to ask for at most {self._turn_bytes:,} bytes of values before "
            f"it waits, but it asked for more{' at ' if place else ''}{place}. Start fewer activities at once, pass "
            "references instead of large values, or raise the engine's max_turn_bytes."
        )
        raise self.too_large

    # --- what the context asks for ---

    def run_activity(self, name: str, encoded: Payload, options: ActivityOptions, hint: Any, label: str = "") -> StepFuture:
        """Ask for an activity; the future is done when its end is recorded."""
        number = self.next_number(encoded)
        self.issue(commands.RunActivity(number=number, name=name, input=encoded, options=options, label=label))
        future = self.step(number, f"activity '{name}'", hint, commands.CancelActivity)
        # What was recorded counts: the options may be others by now.
        if number in self.recorded.awaited if self.is_replaying else options.cancellation is Cancellation.WAIT:
            future.awaits_end = True
        return future

    def start_child(
        self, workflow: str, encoded: Payload, options: CheckedChildOptions, hint: Any
    ) -> tuple[str, StepFuture]:
        """Ask for a child; its execution id, and the future of its result."""
        number = self.next_number(encoded)
        propagates = self._propagates if options.propagates is None else options.propagates
        as_value = number in self.recorded.values if self.is_replaying else not propagates
        self.issue(
            commands.StartChild(
                number=number,
                workflow=workflow,
                input=encoded,
                workflow_id=options.workflow_id,
                policy=options.policy,
                label=options.label,
                failure_as_value=as_value,
                metadata=options.metadata,
                headers=options.headers,
                reference=options.reference,
                chain=options.chain,
            )
        )
        child_id = derive_execution_id(self.loop.now, self._execution_id, number)
        future = self.step(number, f"child workflow '{workflow}'", hint, commands.CancelChild)
        if as_value:
            future.failure_as_value = True
        return child_id, future

    def start_sleep(self, due: Instant, *, is_date: bool = False, label: str = "") -> StepFuture:
        """Ask for a timer; one that is due already is over at once."""
        number = self.next_number()
        future = self.step(number, "a sleep", None, commands.CancelTimer)
        if due <= self.loop.now and not self.loop.dead:
            del self.steps[number]
            future.set_result(None)
        else:
            self.issue(commands.StartTimer(number=number, due=due, is_date=is_date, label=label))
        return future

    def signal_external(self, workflow_id: str, name: str, value: Payload) -> StepFuture:
        """Ask for a signal to another workflow; the future is done when that has accepted it."""
        number = self.next_number(value)
        self.issue(commands.SignalExternal(number=number, workflow_id=workflow_id, name=name, value=value))
        future = self.step(number, f"signal '{name}' to '{workflow_id}'", None, None)
        future.may_be_ignored = True
        return future

    def side_effect(self, function: Callable[[], T]) -> T:
        """Call `function` and keep its value, or how it failed; on replay give what was kept."""
        if self.loop.dead:
            raise GeneratorExit  # there is no value to give
        number = self.next_number()
        kept = self.recorded.side_effects.get(number) or self._take_side_effect(function, number)
        self.asked_bytes += len(kept.value.data)
        if self.asked_bytes > self._turn_bytes:
            self._refuse_size()
        self.issue(kept)
        if kept.failure is not None:
            raise make_exception(
                kept, f"the side effect in {self._definition.signature.what}", _find_known(self, self._definition)
            )
        # What is given must be what replay will give: through JSON and back.
        given: T = payloads.decode(kept.value, Any, "a side effect")
        return given

    def _take_side_effect(self, function: Callable[[], Any], number: int) -> commands.RecordSideEffect:
        """Call the function, and make of its value, or of what it raised, what is recorded: also if no JSON can hold it.

        On replay this is reached only where nothing is recorded. Then the history was made by an older Holdfast, which let
        some exceptions through and recorded nothing, or else the code was changed, which is found out afterwards.
        """
        what = f"the side effect in {self._definition.signature.what}"
        try:
            with guard.allow():
                value = function()
        except Exception as error:  # noqa: BLE001 - whatever user code raises is recorded
            return commands.RecordSideEffect(number=number, failure=describe_exception(error))
        except BaseException as error:
            if self.is_replaying or self.ends_process(error):
                raise
            return commands.RecordSideEffect(number=number, failure=describe_exception(error))
        try:
            return commands.RecordSideEffect(number=number, value=self.values.encode(value, what))
        except PayloadError as error:
            if self.is_replaying:
                raise
            return commands.RecordSideEffect(number=number, failure=describe_exception(error))

    def patched(self, patch: str) -> bool:
        """Whether this execution takes the patch's new path; decided where it first comes by."""
        known = self._patches.get(patch)
        if known is None:
            known = not self.is_replaying or patch in self.recorded.patches
            self._patches = put(self._patches, patch, known)
            if known:
                self.issue(commands.RecordPatch(patch=patch))
        return known

    def continue_as(self, workflow: str, encoded: Payload) -> NoReturn:
        """End this run and let the next begin: unwinds the code by an exception, never returns."""
        self.read_only.check("continue as a new run")
        raise ContinueRequested(workflow, encoded)

    def set_state(self, value: Payload) -> None:
        """Set what `query_status` and `holdfast show` tell of the execution; of several in one turn the last counts."""
        self.read_only.check("set the state")
        if not self.loop.dead:
            self.state = self.present_state = value

    def withdraw(self, future: StepFuture) -> None:
        """A future was cancelled: what it stood for is wanted no longer."""
        self.steps.pop(future.number, None)
        if future.withdraw is None or self.loop.dead:
            return
        self._take_back_or(future.number, future.withdraw)

    # --- what the events bring ---

    def resolve(self, event: events.ActivityCompleted | events.ChildCompleted | events.TaskCompleted) -> None:
        """What was asked for is completed: its future gets the result, or an exception if that does not fit its hint."""
        future = self.steps.pop(event.number, None)
        if future is None or future.done() or future.settle_cancelled():
            return
        try:
            future.set_result(payloads.decode(event.result, future.hint, f"the result of {future.label}"))
        except HoldfastError as error:
            self.values.note_undecodable(error, is_replaying=self.is_replaying)
            future.set_exception(error)

    def resolve_signal(self, event: events.ExternalSignalCompleted) -> None:
        """Another workflow has accepted a signal."""
        future = self.steps.pop(event.number, None)
        if future is not None and not future.done():
            future.set_result(None)

    def reject(self, event: Any) -> None:
        """What a future stood for did not succeed: awaiting it raises the exception that the event means."""
        future = self.steps.pop(event.number, None)
        if future is None or future.done() or future.settle_cancelled():
            return
        error = make_exception(event, future.label, _find_known(self, self._definition, future.source))
        if future.failure_as_value:
            future.set_result(error)
        else:
            future.set_exception(error)

    def fire(self, event: events.TimerFired) -> None:
        """A timer is over: one of the loop, or a sleep."""
        if not self.loop.fire_timer(event.number):
            future = self.steps.pop(event.number, None)
            if future is not None and not future.done():
                future.set_result(None)

    def release(self) -> None:
        """Let go of the futures, whose program is closed."""
        self.steps.clear()

    # --- parts ---

    def step(self, number: int, label: str, hint: Any, withdraw: type[Any] | None) -> StepFuture:
        """The future of a command that was issued under a number; `withdraw` is the command that takes it back."""
        future = self.steps[number] = StepFuture(self, number, label, hint, withdraw)
        return future

    def _start_loop_timer(self, due: Instant) -> int:
        number = self.next_number()
        self.issue(commands.StartTimer(number=number, due=due))
        return number

    def _cancel_loop_timer(self, number: int) -> None:
        self._take_back_or(number, commands.CancelTimer)

    def _take_back_or(self, number: int, withdraw: type[Any]) -> None:
        """What was asked for since the last event is taken back as if it never was; older requests are withdrawn."""
        if number > self.count_before:
            self._taken_back |= {number}
        else:
            self.issue(withdraw(number=number))


def create_task(issuer: CommandIssuer, command: commands.CreateTask, hint: Any) -> StepFuture:
    """Ask for a human task, of which the command says all but its number; the future is done when that has ended."""
    number = issuer.next_number(command.payload)
    issuer.issue(msgspec.structs.replace(command, number=number))
    return issuer.step(number, f"human task '{command.name}'", hint, commands.EndTask)


def list_ignored(issuer: CommandIssuer) -> list[str]:
    """What the code asked for, never awaited and leaves behind unfinished, in words; the code has ended."""
    return [one.label for one in issuer.steps.values() if not (one.is_awaited or one.may_be_ignored or one.done())]


def _find_known(issuer: CommandIssuer, definition: Workflow[..., Any], source: Any = None) -> KnownErrors | None:
    """Where the classes of exceptions are looked for that something raised; None if they are not."""
    if not issuer.has_typed_failures:
        return None
    functions = (getattr(source, "function", None), definition.function)
    return find_sources(*functions, registered=getattr(source, "errors", ()))


RESOLVE: Final[dict[type[events.Event], Callable[[CommandIssuer, Any], None]]] = {
    events.ActivityCompleted: CommandIssuer.resolve,
    events.ActivityFailed: CommandIssuer.reject,
    events.ActivityTimedOut: CommandIssuer.reject,
    events.ActivityCancelled: CommandIssuer.reject,
    events.ActivityLost: CommandIssuer.reject,
    events.TimerFired: CommandIssuer.fire,
    events.ChildCompleted: CommandIssuer.resolve,
    events.ChildFailed: CommandIssuer.reject,
    events.ChildCancelled: CommandIssuer.reject,
    events.ChildTerminated: CommandIssuer.reject,
    events.ExternalSignalCompleted: CommandIssuer.resolve_signal,
    events.ExternalSignalFailed: CommandIssuer.reject,
    events.TaskCompleted: CommandIssuer.resolve,
    events.TaskCancelled: CommandIssuer.reject,
}
"""What an event does to the future of what the code asked for."""
