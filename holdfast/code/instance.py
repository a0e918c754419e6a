"""One execution of an async function: gives it events, lets it run to rest, and collects what it asks for.

Live and on replay the same code runs. The only difference: on replay the commands are compared with the recorded ones, and
the values of side effects and patches are taken from there.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from holdfast.code import guard
from holdfast.code.context import Context, Info, Winner
from holdfast.code.exceptions import make_exception
from holdfast.code.loop import WorkflowFuture, WorkflowLoop, WorkflowTask
from holdfast.code.matching import compare, unasked
from holdfast.code.places import find_caller, find_waiting
from holdfast.code.races import Wait, start_race
from holdfast.code.signals import SignalQueues
from holdfast.core import commands, events, payloads
from holdfast.core.commands import AnyCommand
from holdfast.core.events import GIVEN, AnyEvent, Given, HistoryTurn
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.ids import derive_execution_id, seed_of
from holdfast.core.instants import Instant
from holdfast.core.options import ActivityOptions, ParentClose
from holdfast.core.payloads import Payload
from holdfast.core.program import Step
from holdfast.errors import DeterminismError, HoldfastError

if TYPE_CHECKING:
    from holdfast.code.definitions import Workflow

T = TypeVar("T")
NOTHING: Final = Step()
MOST_CALLBACKS: Final = 100_000
"""How many callbacks one event may cause before the program counts as one that never rests."""


class _Continue(BaseException):
    """Unwinds workflow code that called `continue_as`."""

    def __init__(self, workflow: str, encoded: Payload) -> None:
        super().__init__()
        self.workflow = workflow
        self.input = encoded


class StepFuture(WorkflowFuture[Any]):
    """The result of something asked for. Cancelling it withdraws the request."""

    def __init__(self, program: CodeProgram, number: int, label: str, hint: Any, withdraw: type[Any] | None) -> None:
        super().__init__(program.loop)
        self.program = program
        self.number = number
        self.label = label
        self.hint = hint
        self.withdraw = withdraw

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the wait at once, and tell whoever works on it."""
        if not super().cancel(msg):
            return False
        self.program.withdraw(self)
        return True


class CodeProgram:
    """The program of one execution of an async function."""

    def __init__(
        self, definition: Workflow[..., Any], org: str, execution_id: str, payload_limit: int = payloads.DEFAULT_LIMIT
    ) -> None:
        self.definition = definition
        self.code_version = definition.version
        self.org = org
        self.execution_id = execution_id
        self.payload_limit = payload_limit
        self.is_replaying = False
        self.now: Instant = 0
        self.loop = WorkflowLoop(  # type: ignore[abstract]  # the rest is set below the class
            definition.name, seed_of(execution_id), self._start_loop_timer, self._cancel_loop_timer
        )
        self.signals = SignalQueues(self)
        self._main: WorkflowTask[Any] | None = None
        self._held_start: events.WorkflowStarted | None = None
        self._never_runs = False
        self._ended = False
        self._cancel_requested = False
        self._count = 0
        self._commands: list[AnyCommand] = []
        self._steps: dict[int, StepFuture] = {}
        self._patches: dict[str, bool] = {}
        self._recorded: Sequence[AnyEvent] = ()
        self._places: dict[int, str] = {}

    # --- the two verbs ---

    def advance(self, event: Given, now: Instant) -> Step:
        """Take one event, run to rest, and say what is wanted. Never raises."""
        self.now = self.loop.now = now
        try:
            self._give(event)
        except DeterminismError as error:
            return self._block(error)
        if not self._commands:
            return NOTHING
        step, self._commands = Step(self._commands), []
        return step

    def apply(self, turns: Iterable[HistoryTurn]) -> Step:
        """Replay what happened, comparing each command with the recorded one. A step with a Block if they differ."""
        self.is_replaying = True
        try:
            for turn in turns:
                self.now = self.loop.now = turn.at
                self._replay_turn(turn)
        except DeterminismError as error:
            return self._block(error)
        finally:
            self.is_replaying = False
            self._recorded = ()
            self._places.clear()
        return NOTHING

    def waiting_signals(self) -> tuple[str, ...]:
        """The names of the signals it waits for."""
        return self.signals.waiting()

    def close(self) -> None:
        """End the coroutines; nothing that user code does on the way out has an effect."""
        if self.loop.dead:
            return
        if self.loop.is_at_end():
            self.loop.dead = True
        else:
            outer, hooks = self._enter()
            try:
                self.loop.close_tasks()
            finally:
                _leave(outer, hooks)
        # Cut the cycles, so that what a program held is freed at once and the collector has nothing to find.
        self.loop.release()
        self.signals.release()
        self._steps.clear()
        self._main = None

    @property
    def is_silent(self) -> bool:
        """Whether what the code says was said before, or is said only because it is being unloaded."""
        return self.is_replaying or self.loop.dead

    # --- giving events ---

    def _give(self, event: AnyEvent) -> None:
        is_held = getattr(event, "held", False)
        if self._held_start is not None and not is_held:
            self._begin(self._held_start)
        GIVE[type(event)](self, event)
        if is_held:
            return
        outer, hooks = self._enter()
        try:
            self.loop.run_ready(MOST_CALLBACKS)
        finally:
            _leave(outer, hooks)
        if self._main is not None and not self._ended and self._main.done():
            self._end(self._main)

    def _enter(self) -> tuple[Any, Any]:
        """From here on this thread runs workflow code; what was in place before."""
        before = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self.loop)
        sys.set_asyncgen_hooks(None, self.loop.close_generator)
        guard.enter(self.definition.name)
        return before

    def _start(self, event: events.WorkflowStarted) -> None:
        if event.cancelled:
            self._never_runs = True
        elif event.held:
            self._held_start = event  # no coroutine is made that may never be run
        else:
            self._begin(event)

    def _begin(self, event: events.WorkflowStarted) -> None:
        self._held_start = None
        info = Info(
            org=self.org,
            workflow=event.workflow,
            workflow_id=event.workflow_id,
            execution_id=self.execution_id,
            code_version=event.code_version,
            parent_execution_id=event.parent.execution_id if event.parent else None,
            continued_from=event.continued_from,
        )
        try:
            args = self.definition.signature.decode_arguments(event.input)
        except HoldfastError as error:
            coro: Any = _raise(error)
        else:
            coro = self.definition.function(Context(self, info), *args)
        self._main = self.loop.create_task(coro, context=contextvars.Context())

    def _receive(self, event: events.SignalReceived) -> None:
        self.signals.receive(event.name, event.value)

    def _cancel(self, _event: events.CancelRequested) -> None:
        self._cancel_requested = True
        if self._main is not None:
            self._main.cancel()
        elif self._never_runs:
            self._ended = True
            self.issue(commands.EndCancelled())

    def _resolve(self, event: events.ActivityCompleted | events.ChildCompleted) -> None:
        future = self._steps.pop(event.number, None)
        if future is None or future.done():
            return
        try:
            future.set_result(payloads.decode(event.result, future.hint, f"the result of {future.label}"))
        except HoldfastError as error:
            future.set_exception(error)

    def _resolve_signal(self, event: events.ExternalSignalCompleted) -> None:
        future = self._steps.pop(event.number, None)
        if future is not None and not future.done():
            future.set_result(None)

    def _reject(self, event: Any) -> None:
        future = self._steps.pop(event.number, None)
        if future is not None and not future.done():
            future.set_exception(make_exception(event, future.label))

    def _fire(self, event: events.TimerFired) -> None:
        if not self.loop.fire_timer(event.number):
            future = self._steps.pop(event.number, None)
            if future is not None and not future.done():
                future.set_result(None)

    def _end(self, main: WorkflowTask[Any]) -> None:
        """The function returned, raised, or let its cancellation through: that is the last command."""
        self._ended = True
        if main.cancelled():
            if self._cancel_requested:
                self.issue(commands.EndCancelled())
            else:
                self.issue(commands.Fail(failure=Failure(type="CancelledError", message="cancelled from within")))
            return
        error = _unwrap(main.exception())
        if error is None:
            try:
                result = payloads.encode(
                    main.result(), f"the result of {self.definition.signature.what}", self.payload_limit
                )
            except HoldfastError as refused:
                self.issue(commands.Fail(failure=describe_exception(refused)))
            else:
                self.issue(commands.Complete(result=result))
        elif isinstance(error, _Continue):
            self.issue(commands.ContinueAs(workflow=error.workflow, input=error.input, signals=self.signals.untaken()))
        elif isinstance(error, DeterminismError):
            raise error
        else:
            self.issue(commands.Fail(failure=describe_exception(error)))

    # --- replay ---

    def _replay_turn(self, turn: HistoryTurn) -> None:
        history, index = turn.events, 0
        while index < len(history):
            event = history[index]
            index += 1
            if type(event) is events.WorkflowTerminated:
                return
            if type(event) not in GIVEN:
                raise unasked(self._name(), event, turn.first + index - 1, self._waiting_place())
            begin = index
            while index < len(history) and type(history[index]) not in GIVEN:
                index += 1
            self._recorded = history[begin:index]
            self._give(event)
            issued, self._commands = self._commands, []
            compare(self._name(), issued, self._recorded, turn.first + begin, self._place, self._waiting_place)

    def _name(self) -> str:
        return f"workflow '{self.definition.name}' (execution {self.execution_id})"

    def _place(self, command: commands.Command) -> str:
        place = self._places.get(id(command))
        code = self.definition.function.__code__
        return f" at {place}" if place else f" in {code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"

    def _waiting_place(self) -> str:
        return find_waiting(self._main.get_coro()) if self._main is not None else ""

    def _block(self, error: DeterminismError) -> Step:
        self._commands = []
        return Step([commands.Block(error=describe_exception(error))])

    # --- what the context asks for ---

    def issue(self, command: AnyCommand) -> None:
        """Ask for something; it is carried out when the turn is committed."""
        if self.loop.dead:
            return
        self._commands.append(command)
        if self.is_replaying:
            self._places[id(command)] = find_caller(CodeProgram._give.__code__)

    def next_number(self) -> int:
        """The number of the next command."""
        self._count += 1
        return self._count

    def run_activity(self, name: str, encoded: Payload, options: ActivityOptions, hint: Any) -> StepFuture:
        """Ask for an activity."""
        number = self.next_number()
        self.issue(commands.RunActivity(number=number, name=name, input=encoded, options=options))
        return self._step(number, f"activity '{name}'", hint, commands.CancelActivity)

    def start_child(
        self, workflow: str, encoded: Payload, workflow_id: str | None, policy: ParentClose, hint: Any
    ) -> tuple[str, StepFuture]:
        """Ask for a child; its execution id, and the future of its result."""
        number = self.next_number()
        self.issue(
            commands.StartChild(number=number, workflow=workflow, input=encoded, workflow_id=workflow_id, policy=policy)
        )
        child_id = derive_execution_id(self.now, self.execution_id, number)
        return child_id, self._step(number, f"child workflow '{workflow}'", hint, commands.CancelChild)

    def start_sleep(self, due: Instant) -> StepFuture:
        """Ask for a timer; one that is due already is over at once."""
        number = self.next_number()
        future = self._step(number, "a sleep", None, commands.CancelTimer)
        if due <= self.now and not self.loop.dead:
            del self._steps[number]
            future.set_result(None)
        else:
            self.issue(commands.StartTimer(number=number, due=due))
        return future

    def signal_external(self, workflow_id: str, name: str, value: Payload) -> StepFuture:
        """Ask for a signal to another workflow."""
        number = self.next_number()
        self.issue(commands.SignalExternal(number=number, workflow_id=workflow_id, name=name, value=value))
        return self._step(number, f"signal '{name}' to '{workflow_id}'", None, None)

    def wait_any(self, waits: Sequence[Wait]) -> asyncio.Future[Winner]:
        """The first of several waits."""
        return start_race(self, waits)

    def side_effect(self, function: Callable[[], T]) -> T:
        """Call `function` and keep its value, or how it failed; on replay give what was kept."""
        if self.loop.dead:
            raise GeneratorExit  # there is no value to give
        number = self.next_number()
        kept = self._find_side_effect(number) or self._take_side_effect(function, number)
        self.issue(kept)
        if kept.failure is not None:
            raise make_exception(kept, f"the side effect in {self.definition.signature.what}")
        # What is given must be what replay will give: through JSON and back.
        given: T = payloads.decode(kept.value, Any, "a side effect")
        return given

    def _find_side_effect(self, number: int) -> commands.RecordSideEffect | None:
        for event in self._recorded:
            if type(event) is events.SideEffectRecorded and event.number == number:
                return commands.RecordSideEffect(number=number, value=event.value, failure=event.failure)
        return None

    def _take_side_effect(self, function: Callable[[], Any], number: int) -> commands.RecordSideEffect:
        try:
            with guard.allow():
                value = function()
        except Exception as error:  # noqa: BLE001 - whatever user code raises is recorded
            return commands.RecordSideEffect(number=number, failure=describe_exception(error))
        what = f"the side effect in {self.definition.signature.what}"
        return commands.RecordSideEffect(number=number, value=payloads.encode(value, what, self.payload_limit))

    def patched(self, patch: str) -> bool:
        """Whether this execution takes the patch's new path; decided where it first comes by."""
        known = self._patches.get(patch)
        if known is None:
            known = not self.is_replaying or any(
                type(event) is events.PatchRecorded and event.patch == patch for event in self._recorded
            )
            self._patches[patch] = known
            if known:
                self.issue(commands.RecordPatch(patch=patch))
        return known

    def continue_as(self, workflow: str, encoded: Payload) -> NoReturn:
        """Unwind, and begin anew."""
        raise _Continue(workflow, encoded)

    def set_state(self, value: Payload) -> None:
        """What the console shows."""
        self.issue(commands.SetState(value=value))

    def withdraw(self, future: StepFuture) -> None:
        """A future was cancelled: what it stood for is wanted no longer."""
        self._steps.pop(future.number, None)
        if future.withdraw is None or self.loop.dead:
            return
        self._take_back_or(future.number, future.withdraw)

    # --- parts ---

    def _step(self, number: int, label: str, hint: Any, withdraw: type[Any] | None) -> StepFuture:
        future = self._steps[number] = StepFuture(self, number, label, hint, withdraw)
        return future

    def _start_loop_timer(self, due: Instant) -> int:
        number = self.next_number()
        self.issue(commands.StartTimer(number=number, due=due))
        return number

    def _cancel_loop_timer(self, number: int) -> None:
        self._take_back_or(number, commands.CancelTimer)

    def _take_back_or(self, number: int, withdraw: type[Any]) -> None:
        """What was asked for since the last event is taken back as if it never was; older requests are withdrawn."""
        for index, command in enumerate(self._commands):
            if getattr(command, "number", None) == number and isinstance(command, _STARTING):
                del self._commands[index]
                return
        self.issue(withdraw(number=number))


async def _raise(error: Exception) -> None:
    raise error


def _leave(outer: Any, hooks: Any) -> None:
    guard.leave()
    sys.set_asyncgen_hooks(*hooks)
    asyncio._set_running_loop(outer)


_STARTING: Final = (commands.RunActivity, commands.StartTimer, commands.StartChild)

GIVE: Final[dict[type[events.Event], Callable[[CodeProgram, Any], None]]] = {
    events.WorkflowStarted: CodeProgram._start,
    events.SignalReceived: CodeProgram._receive,
    events.CancelRequested: CodeProgram._cancel,
    events.ActivityCompleted: CodeProgram._resolve,
    events.ActivityFailed: CodeProgram._reject,
    events.ActivityTimedOut: CodeProgram._reject,
    events.ActivityCancelled: CodeProgram._reject,
    events.TimerFired: CodeProgram._fire,
    events.ChildCompleted: CodeProgram._resolve,
    events.ChildFailed: CodeProgram._reject,
    events.ChildCancelled: CodeProgram._reject,
    events.ChildTerminated: CodeProgram._reject,
    events.ExternalSignalCompleted: CodeProgram._resolve_signal,
    events.ExternalSignalFailed: CodeProgram._reject,
}


def _unwrap(error: BaseException | None) -> BaseException | None:
    """What a group of exceptions means for the workflow: a `continue_as` or a refusal keeps its meaning in a TaskGroup."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    refused = error.subgroup(DeterminismError)
    continued, others = error.split(_Continue)
    found: BaseException | None = refused or (continued if others is None else error)
    while found is not error and isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
