"""One execution of an async function: gives it events, lets it run to rest, and collects what it asks for.

Live and on replay the same code runs. The only difference: on replay the commands are compared with the recorded ones, and
the values of side effects and patches are taken from there.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from holdfast.code import guard
from holdfast.code.command_issuer import RESOLVE, CommandIssuer, ContinueRequested, list_ignored
from holdfast.code.context import Context, Info
from holdfast.code.definitions import NOTHING_SPECIAL, StartedWith
from holdfast.code.handlers import Handlers
from holdfast.code.human_task_options import read_form
from holdfast.code.logger import warn_of_ignored, warn_of_lost
from holdfast.code.loop import WorkflowTask, close_coroutine
from holdfast.code.matching import Places, compare, unasked
from holdfast.code.published_waits import RESOLVE_PUBLISHED, list_open
from holdfast.code.signals import SignalQueues
from holdfast.code.source_locations import find_waiting
from holdfast.code.values import CHANGED_TYPE, find_strictness
from holdfast.code.wait_any import Sides, start_race
from holdfast.code.wait_values import Winner
from holdfast.code.waits import find_waits
from holdfast.core import commands, events
from holdfast.core.behaviours import CHECKED_WAITS, KEPT_VIOLATIONS, TIMER_INSTANTS, TYPED_FAILURES, as_set
from holdfast.core.effects import ACCEPTED, Checked
from holdfast.core.envelopes import Update
from holdfast.core.events import GIVEN, AnyEvent, Given, HistoryTurn
from holdfast.core.failures import Failure, describe_exception, list_kinds
from holdfast.core.instants import Instant
from holdfast.core.payloads import Payload
from holdfast.core.program import Step, Waits, WithoutSnapshots
from holdfast.core.program_limits import NO_PROGRAM_LIMITS, ProgramLimits, RunLimit
from holdfast.errors import DeterminismError, HoldfastError, QueryFailed, TurnTooLong

if TYPE_CHECKING:
    from holdfast.code.definitions import Workflow

T = TypeVar("T")
NOTHING: Final = Step()
NO_BEHAVIOURS: Final[frozenset[str]] = frozenset()
_RESOLVE: Final = {**RESOLVE, **RESOLVE_PUBLISHED}
MOST_CALLBACKS: Final = 100_000
"""How many callbacks one event may cause before the program counts as one that never rests."""


class _Escaped(Exception):
    """What user code raised where nobody catches it: in a hook of a type, or in a method that asyncio calls."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class CodeProgram(WithoutSnapshots):
    """The program of one execution of an async function."""

    def __init__(
        self,
        definition: Workflow[..., Any],
        org: str,
        execution_id: str,
        limits: ProgramLimits = NO_PROGRAM_LIMITS,
        started: StartedWith = NOTHING_SPECIAL,
    ) -> None:
        self.definition = definition
        self.code_version = definition.version
        self.org = org
        self.execution_id = execution_id
        self._run_limit: RunLimit = limits.run
        self.issuer = CommandIssuer(definition, execution_id, limits, CodeProgram._give.__code__)
        self.loop = self.issuer.loop
        self.signals = SignalQueues(self.issuer)
        self._handlers: Handlers | None = None
        self.behaviours: frozenset[str] = NO_BEHAVIOURS
        """The behaviours that the execution recorded when it began (see `core.behaviours`), whatever is present now."""
        self._started = started
        self._main: WorkflowTask[Any] | None = None
        self._held_start: events.WorkflowStarted | None = None
        self._info: Info | None = None
        self._never_runs = self._ended = self._cancel_requested = self._closes_slowly = False

    @property
    def handlers(self) -> Handlers:
        """The handlers of its updates and queries: most programs have none."""
        if self._handlers is None:
            self._handlers = Handlers(self.issuer)
        return self._handlers

    # --- the two verbs ---

    def advance(self, event: Given, now: Instant) -> Step:
        """Take one event, run to rest, and say what is wanted. Never raises."""
        issuer = self.issuer
        self.loop.now = now
        issuer.asked_bytes = 0
        try:
            self._give(event)
        except (DeterminismError, _Escaped) as error:
            return Step([commands.Block(error=_describe(self.issuer, error))])
        if issuer.too_large is not None:
            return Step([commands.Block(error=_describe(self.issuer, issuer.too_large))])
        if not issuer.commands and issuer.state is None:
            return NOTHING
        return Step(issuer.take_commands())

    def apply(self, turns: Iterable[HistoryTurn]) -> Failure | None:
        """Replay what happened, comparing each command with the recorded one. Returns the failure if they differ."""
        self.issuer.is_replaying = True
        try:
            for turn in turns:
                self.loop.now = turn.at
                self._replay_turn(turn)
        except (DeterminismError, _Escaped) as error:
            return self.issuer.values.explain(_describe(self.issuer, error))
        finally:
            self.issuer.is_replaying = False
            self.issuer.replay_with(())
            self.issuer.places.clear()
        return None

    def untaken_signals(self) -> tuple[commands.Untaken, ...]:
        """The signals that the code has not taken yet, in the order of arrival; then updates that came before the code."""
        untaken: tuple[commands.Untaken, ...] = self.signals.untaken()
        return untaken if self._handlers is None else untaken + self._handlers.untaken()

    def check_update(self, update: Update) -> Checked:
        """Whether an update may be accepted. Before the code has begun that cannot be told: then it is accepted."""
        if self._main is None or self._ended:
            return ACCEPTED
        try:
            refusal = _call_handlers(self, lambda: self.handlers.check(update.name, update.value))
        except (DeterminismError, _Escaped) as error:
            return Checked(blocked=_describe(self.issuer, error))
        return ACCEPTED if refusal is None else Checked(refusal)

    def check_form(self, number: int, form: Payload) -> Checked:
        """Whether a form can be read as the type of a human task, in the way in which the code would be given it."""
        try:
            _call_handlers(self, lambda: read_form(self.issuer, number, form), enters=False)
        except (DeterminismError, _Escaped) as error:
            return Checked(blocked=_describe(self.issuer, error))
        except HoldfastError as refusal:
            return Checked(refusal)
        return ACCEPTED

    def update_names(self) -> tuple[str, ...]:
        """The names of the updates that the code handles."""
        return () if self._handlers is None else tuple(self._handlers.updates)

    def answer_query(self, name: str, args: Payload) -> Payload:
        """What the code answers to a query, as it stands. Raises a HoldfastError; the program is of no use after it."""
        try:
            return _call_handlers(self, lambda: self.handlers.answer(name, args))
        except _Escaped as error:
            kind, said = error.failure.type, f"raised {error.failure.type}: {error.failure.message}"
        except DeterminismError as error:
            kind, said = type(error).__name__, f"did what workflow code must not do: {error.message}"
        raise QueryFailed(f"Expected query '{name}' to return, but its handler {said}", type=kind)

    def waiting_signals(self) -> tuple[str, ...]:
        """The names of the signals it waits for."""
        return self.signals.waiting()

    def find_waits(self) -> Waits | None:
        """Where in its code it waits, and for what; None before it has begun, while it does not rest, and after its end."""
        if self._main is None or self._ended or not self.loop.is_at_rest():
            return None
        return find_waits(self.loop.open_tasks(), self.signals.open_futures(), list_open(self.issuer))

    def close(self) -> None:
        """End the coroutines; nothing that user code does on the way out has an effect."""
        if self.loop.dead:
            return
        if self.loop.is_at_end():
            self.loop.dead = True
        else:
            outer, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
            self._enter()
            try:
                self.loop.close_tasks(self._close_coroutine)
            finally:
                _leave(outer, hooks)
        try:
            self._run_limit.call(self.definition.name, self.execution_id, _release, self)
        except TurnTooLong:
            pass  # something that is freed has a finalizer that does not end

    @property
    def is_silent(self) -> bool:
        """Whether what the code says was said before, or is said only because it is being unloaded."""
        return self.issuer.is_replaying or self.loop.dead

    # --- giving events ---

    def _give(self, event: AnyEvent) -> None:
        """Give the code one event and let it run to rest. Raises DeterminismError, after which the program is of no use.

        All that may run user code (types that are decoded and encoded too) runs under the limit, which may interrupt it
        anywhere; what belongs to the thread is put back outside of that.
        """
        call, name = self._run_limit.call, self.definition.name
        outer, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
        try:
            call(name, self.execution_id, self._run_event, event)
        finally:
            _leave(outer, hooks)
        if self._main is not None and not self._ended and self._main.done():
            call(name, self.execution_id, self._run_end, self._main)

    def _run_event(self, event: AnyEvent) -> None:
        """Let the code run to rest. Raises DeterminismError, and _Escaped for whatever else user code raises.

        That is described here, where it can be interrupted, and freed here too. What is to end the process, or the turn,
        passes.
        """
        try:
            is_held = getattr(event, "held", False)
            if self._held_start is not None and not is_held:
                if self._held_start.start_at is not None and type(event) is events.CancelRequested:
                    self._held_start, self._never_runs = None, True  # cancelled while its start was delayed
                else:
                    self._begin(self._held_start)
            resolve = _RESOLVE.get(type(event))
            if resolve is not None:
                resolve(self.issuer, event)
            else:
                GIVE[type(event)](self, event)
            if not is_held:
                self._enter()
                self.loop.run_ready(MOST_CALLBACKS, self._run_limit.ends_process)
                handlers = self._handlers
                if handlers is not None and handlers.waiting and not self._ended:  # at its end they were answered
                    handlers.refuse_waiting()
                violation = guard.take_violation()
                if violation is not None and KEPT_VIOLATIONS in self.behaviours:
                    raise violation
                if handlers is not None and handlers.violation is not None:
                    raise handlers.violation
            return
        except HoldfastError:
            raise
        except BaseException as error:  # whatever user code raises may hit its own execution alone
            if self._run_limit.ends_process(error):
                raise
            failure = describe_exception(error)
        raise _Escaped(failure)

    def _enter(self) -> None:
        """From here on this thread runs workflow code."""
        asyncio._set_running_loop(self.loop)
        sys.set_asyncgen_hooks(None, self.loop.close_generator)
        guard.enter(self.definition.name)

    def _close_coroutine(self, coro: Any) -> bool:
        """End a coroutine where it stands; whether it is ended. After one that took too long the others are left alone."""
        if self._closes_slowly:
            return False
        try:
            return self._run_limit.call(self.definition.name, self.execution_id, close_coroutine, coro)
        except TurnTooLong:
            self._closes_slowly = True
            return getattr(coro, "cr_frame", None) is None

    def _start(self, event: events.WorkflowStarted) -> None:
        if event.behaviours:
            self.behaviours = as_set(event.behaviours)
            self.issuer.values.strictness = find_strictness(self.behaviours)
            self.issuer.values.checks_hints = CHECKED_WAITS in self.behaviours
            self.issuer.has_typed_failures = TYPED_FAILURES in self.behaviours
            self.issuer.has_timer_instants = TIMER_INSTANTS in self.behaviours
        if event.cancelled:
            self._never_runs = True
        elif event.held:
            self._held_start = event  # no coroutine is made that may never be run
        else:
            self._begin(event)

    def _begin(self, event: events.WorkflowStarted) -> None:
        self._held_start = None
        info = self._info = Info(
            org=self.org,
            workflow=event.workflow,
            workflow_id=event.workflow_id,
            execution_id=self.execution_id,
            code_version=event.code_version,
            parent_execution_id=event.parent.execution_id if event.parent else None,
            continued_from=event.continued_from,
            queue=event.queue or self._started.queue,
            attempt=event.attempt,
            metadata=dict(self._started.metadata if event.metadata is None else event.metadata),
            headers=dict(event.headers),
            business_reference=event.reference,
        )
        try:
            args = self.definition.signature.decode_arguments(event.input)
        except HoldfastError as error:
            self.issuer.values.note_undecodable(error, is_replaying=self.issuer.is_replaying)
            coro: Any = _raise(error)
        else:
            coro = self.definition.signature.call(self.definition.function, args, Context(self, info))
        self._main = self.loop.create_task(coro, context=contextvars.Context())

    def _run_end(self, main: WorkflowTask[Any]) -> None:
        """Issue the last command of code that has ended. Raises DeterminismError and _Escaped, as `_run_event` does."""
        try:
            self._end(main)
            return
        except (HoldfastError, _Escaped):
            raise
        except BaseException as error:  # as above
            if self._run_limit.ends_process(error):
                raise
            failure = describe_exception(error)
        raise _Escaped(failure)

    def _end(self, main: WorkflowTask[Any]) -> None:
        """The function returned, raised, or let its cancellation through: that is the last command."""
        self._ended = True
        error = _unwrap(None if main.cancelled() else main.exception())
        if not self.is_silent and self._info is not None:
            _warn_of_unawaited(
                self, self._info, has_failed=main.cancelled() or not isinstance(error, ContinueRequested | None)
            )
        if main.cancelled():
            if self._cancel_requested:
                self.issuer.issue(commands.EndCancelled())
            else:
                failure = Failure(type="CancelledError", message="cancelled from within")
                self.issuer.issue(commands.Fail(failure=failure, signals=self.untaken_signals()))
            return
        if error is None:
            try:
                result = self.issuer.values.encode_result(self.definition.signature, main.result())
            except HoldfastError as refused:
                self.issuer.issue(commands.Fail(failure=describe_exception(refused), signals=self.untaken_signals()))
            else:
                self.issuer.issue(commands.Complete(result=result))
        elif isinstance(error, ContinueRequested):
            self.issuer.issue(
                commands.ContinueAs(workflow=error.workflow, input=error.input, signals=self.untaken_signals())
            )
        elif isinstance(error, DeterminismError):
            raise error
        elif isinstance(error, HoldfastError) and error is self.issuer.values.undecodable and not self.issuer.is_replaying:
            raise _Escaped(Failure(type="DecodingError", message=f"{error.message} {CHANGED_TYPE}"))
        else:
            failure, kinds = describe_exception(error), list_kinds(error)
            self.issuer.issue(commands.Fail(failure=failure, signals=self.untaken_signals(), kinds=kinds))

    # --- replay ---

    def _replay_turn(self, turn: HistoryTurn) -> None:
        history, index = turn.events, 0
        while index < len(history):
            event = history[index]
            index += 1
            if type(event) in events.UNASKED:
                return
            if type(event) not in GIVEN:
                raise unasked(self._name(), event, turn.first + index - 1, _find_waiting_place(self._main))
            begin = index
            while index < len(history) and type(history[index]) not in GIVEN:
                index += 1
            recorded = history[begin:index]
            self.issuer.replay_with(recorded)
            self._give(event)
            issued = self.issuer.take_commands()
            places = Places(self._place, partial(_find_waiting_place, self._main))
            compare(self._name(), issued, recorded, turn.first + begin, places, self.issuer.deprecated_patches)

    def _name(self) -> str:
        chosen = "" if self._info is None or self._info.workflow_id == self.execution_id else f"'{self._info.workflow_id}', "
        return f"workflow '{self.definition.name}' ({chosen}execution {self.execution_id})"

    def _place(self, command: commands.Command) -> str:
        if isinstance(command, commands.Fail) and command.failure.trace:
            return command.failure.trace.splitlines()[-1]
        code = self.definition.function.__code__
        return self.issuer.places.get(id(command)) or f"{code.co_filename}:{code.co_firstlineno} in {code.co_qualname}"

    # --- what the context asks for ---

    def wait_any(self, waits: Sides) -> asyncio.Future[Winner[Any]]:
        """A future of the first of several waits that is over."""
        return start_race(self.issuer, self.signals, waits)


def _describe(issuer: CommandIssuer, error: DeterminismError | _Escaped) -> Failure:
    """The failure that blocks the execution; whatever the code asked for before it is dropped."""
    issuer.take_commands()
    return error.failure if isinstance(error, _Escaped) else describe_exception(error)


def _release(program: CodeProgram) -> None:
    """Cut the cycles, so that what a program held is freed at once and the collector has nothing to find."""
    program.loop.release()
    program.signals.release()
    if program._handlers is not None:
        program._handlers.release()
    program.issuer.release()
    program._main = None


def _call_handlers(program: CodeProgram, function: Callable[[], T], *, enters: bool = True) -> T:
    """Call what only looks, as workflow code and under its limits. Raises HoldfastErrors, and _Escaped for all else.

    Without `enters`, what workflow code must not do is not refused, as where the results of steps are read.
    """

    def run(_nothing: None) -> T:
        try:
            if enters:
                program._enter()
            return function()
        except HoldfastError:
            raise
        except BaseException as error:  # whatever user code raises is described where it can be interrupted
            if program._run_limit.ends_process(error):
                raise
            failure = describe_exception(error)
        finally:
            guard.take_violation()  # what looks at a clock is refused, and nothing more
        raise _Escaped(failure)

    outer, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()
    try:
        return program._run_limit.call(program.definition.name, program.execution_id, run, None)
    finally:
        _leave(outer, hooks)


def _receive(program: CodeProgram, event: events.SignalReceived) -> None:
    program.signals.receive(commands.UntakenSignal(event.name, event.value, event.headers))


def _cancel(program: CodeProgram, _event: events.CancelRequested) -> None:
    program._cancel_requested = True
    if program._main is not None:
        program._main.cancel()
    elif program._never_runs:
        program._ended = True
        program.issuer.issue(commands.EndCancelled())


def _accept(program: CodeProgram, event: events.UpdateAccepted) -> None:
    program.handlers.receive(event, has_begun=program._main is not None)


def _warn_of_unawaited(program: CodeProgram, info: Info, *, has_failed: bool) -> None:
    """Say what code that has ended never awaited: what raised something, and what is still open.

    Code that has failed or was cancelled might have come to its `await` otherwise.
    """
    for what, error in program.loop.take_lost():
        warn_of_lost(info, what, describe_exception(error))
    for what in () if has_failed else (*list_ignored(program.issuer), *program.signals.list_ignored()):
        warn_of_ignored(info, what)


async def _raise(error: Exception) -> None:
    raise error


def _leave(outer: Any, hooks: Any) -> None:
    """Make this thread run ordinary code again. Does no harm where it does so already."""
    guard.leave()
    sys.set_asyncgen_hooks(*hooks)
    asyncio._set_running_loop(outer)


GIVE: Final[dict[type[events.Event], Callable[[CodeProgram, Any], None]]] = {
    events.WorkflowStarted: CodeProgram._start,
    events.SignalReceived: _receive,
    events.UpdateAccepted: _accept,
    events.DelayEnded: lambda _program, _event: None,  # the code has begun, since the event is not held
    events.CancelRequested: _cancel,
    events.TaskRescheduled: lambda _program, _event: None,
    events.TaskReminded: lambda _program, _event: None,  # its row has changed, the code goes on waiting
    events.ChildEscalated: lambda _program, _event: None,  # code catches no escalations
}
"""What a program does with the events that are given to it; those that end something it asked for are in `RESOLVE`."""


def _unwrap(error: BaseException | None) -> BaseException | None:
    """What a group of exceptions means for the workflow: a `continue_as` or a refusal keeps its meaning in a TaskGroup."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    refused = error.subgroup(DeterminismError)
    continued, others = error.split(ContinueRequested)
    found: BaseException | None = refused or (continued if others is None else error)
    while found is not error and isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _find_waiting_place(main: WorkflowTask[Any] | None) -> str:
    """Where the code of a workflow waits; empty if it has not begun."""
    return "" if main is None else find_waiting(main.get_coro())
