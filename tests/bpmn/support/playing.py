"""Processes played by hand: real programs and real turns, without a store or an engine.

    play = PlayedProcess(compile_xml(xml), {"total": 120})
    play.complete_job("charge", {"paid": True})
    play.advance(3600)
    assert play.result == {"total": 120, "paid": True}

`PlayedProcess` is one execution. `trigger("element")` lets whatever an element waits for come: the end of its job, of its
user task or of its timer, its message or its signal; for boundary events and starts of event sub-processes too.
`playing_systems` plays several processes together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import msgspec

from holdfast.bpmn import model
from holdfast.bpmn.compiling import compile_process
from holdfast.bpmn.executable import CompiledProcess
from holdfast.bpmn.linked import NOTHING_LINKED, LinkedResources
from holdfast.bpmn.program import ROUTE_NAME, ProcessProgram
from holdfast.bpmn.reading import read
from holdfast.core import codec, envelopes, events, payloads
from holdfast.core.bpmn_errors import make_bpmn_error_failure
from holdfast.core.effects import Turn
from holdfast.core.envelopes import AnyEnvelope
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND, Instant
from holdfast.core.payloads import Payload
from holdfast.core.program_limits import NO_PROGRAM_LIMITS, ProgramLimits
from holdfast.core.publications import Publication, SubscriptionKind
from holdfast.core.request_keys import RequestKey
from holdfast.core.task_standings import TaskStanding
from holdfast.core.turn import take_turn
from tests.bpmn.support.consistency import check_rest

BEGIN: Final = 1_750_000_000 * SECOND
EXECUTION_ID: Final = "0197745a-0000-7abc-8def-0123456789ab"
FAILED: Final = Failure(type="ValueError", message="the job failed", non_retryable=True)
WHO: Final = "ann"
"""Who claims and completes the user tasks."""


class ClaimedTask(msgspec.Struct, frozen=True):
    """The row of a user task that somebody has claimed, as far as a turn reads it."""

    task_id: str
    name: str
    due: Instant | None = None
    state: str = "claimed"
    claimer: str = WHO
    version: int = 2
    is_open: bool = True


class PlayedDefinition:
    """What a program has to know of its definition when it is played."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = "1"
        self.kind = "bpmn"
        self.org: str | None = "default"


def read_model(xml: str | bytes, file: str = "played.bpmn") -> model.Definitions:
    """The model of a BPMN file that reads without a problem."""
    reading = read(xml if isinstance(xml, bytes) else xml.encode(), file)
    assert reading.definitions is not None, reading.problems
    return reading.definitions


def compile_xml(xml: str | bytes, process_id: str | None = None) -> CompiledProcess:
    """A process of a BPMN file, ready to be played; without an id the first that is executable."""
    definitions = read_model(xml)
    chosen = process_id or next(one.id for one in definitions.processes if one.is_executable)
    return compile_process(definitions, chosen)


def make_start(
    process_id: str, variables: Mapping[str, Any] | None = None, *, element: str = "", number: int = 0, **fields: Any
) -> envelopes.Start:
    """The start of an execution of a process, the first with the workflow id `play`; `number` makes others differ."""
    execution_id = f"{EXECUTION_ID[:-4]}{int(EXECUTION_ID[-4:], 16) + number:04x}"
    return envelopes.Start(
        execution_id=execution_id,
        workflow_id=f"play{number}" if number else "play",
        workflow=process_id,
        input=encode(dict(variables or {})),
        code_version="1",
        pinned=True,
        route_name=ROUTE_NAME,
        element=element,
        **fields,
    )


def encode(value: Any) -> Payload:
    """A value as history has it."""
    return payloads.encode(value, "a value of a test")


class PlayedExecution:
    """An execution of a process, played turn by turn: what it is told, what it waits for, and what became of it.

    `history` is what was recorded, `told` what came and when, `outbox` what was published, `sent` what went to other
    executions. `now` is the time of the next turn.
    """

    checks_each_turn: ClassVar[bool] = True
    """Whether `consistency.check_rest` is called after each turn; it replays the whole history."""

    def __init__(
        self,
        process: CompiledProcess,
        variables: Mapping[str, Any] | None = None,
        *,
        element: str = "",
        limits: ProgramLimits = NO_PROGRAM_LIMITS,
        linked: LinkedResources = NOTHING_LINKED,
        start: envelopes.Start | None = None,
    ) -> None:
        self.process = process
        self.now: Instant = BEGIN
        self.history: list[HistoryTurn] = []
        self.told: list[tuple[Instant, tuple[AnyEnvelope, ...]]] = []
        self.outbox: list[Publication] = []
        self.sent: list[tuple[str, AnyEnvelope]] = []
        self.blocked: Failure | None = None
        self._limits = limits
        self._linked = linked
        opening = start or make_start(process.id, variables, element=element)
        self.execution = Execution.register("default", opening, self.now)
        self.program = self.make_program()
        self._updates = 0
        self.tell(opening)

    def make_program(self) -> ProcessProgram:
        """A program of the execution before its first event."""
        definition: Any = PlayedDefinition(self.process.id)
        return ProcessProgram(definition, self.process, self.execution, self._limits, self._linked)

    def tell(self, *arrived: AnyEnvelope) -> Turn:
        """One turn with these envelopes."""
        standings: dict[int, TaskStanding] = {
            one.number: ClaimedTask(one.task_id, "") for one in arrived if isinstance(one, envelopes.TASK_STEPS)
        }
        turn = take_turn(self.execution, self.program, arrived, self.now, task_standings=standings or None)
        return self.keep(turn, arrived)

    def keep(self, turn: Turn, arrived: tuple[AnyEnvelope, ...] = ()) -> Turn:
        """Keep what came of a turn, as a commit does."""
        self.told.append((self.now, arrived))
        self.blocked = turn.blocked
        assert turn.blocked is None, turn.blocked
        if turn.events:
            # Through JSON and back, as a store gives it.
            recorded = codec.decode_events(codec.encode(turn.events), codec.SCHEMA)
            self.history.append(HistoryTurn(self.execution.sequence + 1, turn.now, recorded))
            self.execution.sequence += len(turn.events)
        self.outbox += [one.publication for one in turn.publications]
        self.sent += [(one.execution_id, one.envelope) for one in turn.outgoing]
        if self.checks_each_turn:
            check_rest(self)
        return turn

    # --- what it waits for ---

    @property
    def waits(self) -> dict[int, str]:
        """Everything that it waits for: by the number of the command, the id of the element that waits."""
        return {number: wait.catcher for number, (_, wait) in self.program.state.waits.items()}

    def element_of(self, number: int) -> str:
        """The id of the element that waits for what a command asked for; empty if none does."""
        return self.waits.get(number, "")

    def find_waits(self, element: str) -> list[int]:
        """The numbers of everything that an element waits for, the oldest first."""
        return sorted(number for number, one in self.waits.items() if one == element)

    def find_job(self, element: str) -> int:
        """The number of the oldest open job of an element."""
        return self._find(element, self.execution.activities, "job")

    def _find(self, element: str, among: Iterable[int], what: str) -> int:
        known = set(among)
        found = [number for number in self.find_waits(element) if number in known]
        assert found, f"no {what} of {element!r} is open: {self.waits}"
        return found[0]

    # --- what became of it ---

    @property
    def is_closed(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.execution.is_closed

    @property
    def events(self) -> list[AnyEvent]:
        """Everything that was recorded."""
        return [event for turn in self.history for event in turn.events]

    @property
    def result(self) -> Any:
        """The variables with which it completed; an AssertionError if it did not."""
        last = self.events[-1]
        assert isinstance(last, events.WorkflowCompleted), last
        return msgspec.json.decode(last.result.data)

    @property
    def incidents(self) -> dict[int, tuple[str, str]]:
        """The open incidents: by number, element and kind."""
        return {number: (one.element, one.kind) for number, one in self.execution.incidents.items()}

    @property
    def records(self) -> list[Any]:
        """Everything that the interpreter recorded, as JSON values, in order."""
        return [
            record
            for event in self.events
            if isinstance(event, events.ProcessAdvanced)
            for record in msgspec.json.decode(event.records.data)
        ]

    def query(self, name: str, args: Any = None) -> Any:
        """The answer to a query with a reserved name, such as `holdfast.variables`."""
        return msgspec.json.decode(self.program.answer_query(name, encode({} if args is None else args)).data)


class PlayedProcess(PlayedExecution):
    """An execution of a process from its start on, with everything that can happen to it. Each call is one turn."""

    def complete_job(self, element: str, variables: Any = None) -> None:
        """The oldest open job of an element returned."""
        self.return_job(self.find_job(element), variables)

    def return_job(self, number: int, variables: Any = None) -> None:
        """The job with a number returned."""
        attempt = self.execution.attempt_of(number).attempt
        self.tell(envelopes.ActivityReturned(number=number, attempt=attempt, result=encode(variables)))

    def send_signal(self, name: str, value: Any = None) -> None:
        """Somebody sent a signal that names this execution."""
        self.tell(envelopes.Signal(name=name, value=encode(value)))

    def make_trigger(self, number: int, value: Any = None) -> envelopes.Triggered:
        """What a wait for a message or signal is triggered by."""
        return self._trigger_wait(self.execution.subscriptions[number], value)

    def make_due(self, number: int) -> envelopes.TimerDue:
        """The end of a timer."""
        return envelopes.TimerDue(number=number, due=self.execution.timers[number])

    def fail_job(self, element: str, message: str = "the job failed") -> None:
        """The oldest open job of an element failed, for good."""
        self._raise(element, msgspec.structs.replace(FAILED, message=message))

    def throw_error(self, element: str, code: str, variables: Mapping[str, Any] | None = None, message: str = "") -> None:
        """The oldest open job of an element threw a BPMN error."""
        self._raise(element, make_bpmn_error_failure(code, message, encode(dict(variables or {}))))

    def _raise(self, element: str, failure: Failure) -> None:
        self.raise_in(self.find_job(element), failure)

    def raise_in(self, number: int, failure: Failure = FAILED) -> None:
        """The job with a number failed, for good."""
        attempt = self.execution.attempt_of(number).attempt
        self.tell(envelopes.ActivityRaised(number=number, attempt=attempt, failure=failure))

    def complete_task(self, element: str, form: Any = None) -> None:
        """The oldest open user task of an element was completed."""
        number = self._find(element, self.execution.tasks, "user task")
        task = self.execution.tasks[number].event
        request = RequestKey("task_complete", f"complete-{number}", self.now + 3600 * SECOND)
        completed = envelopes.TaskCompleted(number=number, task_id=task.task_id, value=encode(form), by=WHO, request=request)
        self.tell(completed)

    def finish_child(self, element: str, variables: Any = None) -> None:
        """The oldest open child of a call activity completed."""
        number = self._find(element, self.execution.children, "child")
        child = self.execution.children[number].execution_id
        self.tell(envelopes.ChildClosed(number=number, execution_id=child, result=encode(variables)))

    def publish(self, kind: SubscriptionKind, name: str, key: str = "", value: Any = None) -> None:
        """A message or a signal came for the oldest wait for it; a signal for every one."""
        waits = [
            one
            for one in self.execution.subscriptions.values()
            if (one.kind, one.name) == (kind, name) and (kind is SubscriptionKind.BROADCAST or one.key == key)
        ]
        assert waits, f"nothing waits for {kind} {name!r}: {list(self.execution.subscriptions.values())}"
        for one in waits if kind is SubscriptionKind.BROADCAST else waits[:1]:
            self.tell(self._trigger_wait(one, value))

    def message(self, name: str, key: str = "play", value: Any = None) -> None:
        """A message came. Without a correlation key in the model, its key is the workflow id, `play`."""
        self.publish(SubscriptionKind.MESSAGE, name, key, value)

    def signal(self, name: str, value: Any = None) -> None:
        """A broadcast signal came."""
        self.publish(SubscriptionKind.BROADCAST, name, "", value)

    def fire(self, element: str = "") -> None:
        """Time moves on to the earliest timer, or the earliest of an element, and that fires."""
        timers = self.execution.timers
        found = [number for number in timers if not element or self.element_of(number) == element]
        assert found, f"no timer of {element or 'anything'} is open"
        number = min(found, key=lambda one: (timers[one], one))
        self.now = max(self.now, timers[number])
        self.tell(envelopes.TimerDue(number=number, due=timers[number]))

    def advance(self, seconds: float) -> None:
        """Time passes; every timer that comes due meanwhile fires at its time, in order."""
        until = self.now + int(seconds * SECOND)
        while self.execution.timers and min(self.execution.timers.values()) <= until:
            self.fire()
        self.now = max(self.now, until)

    def settle(self) -> None:
        """Let the timers fire that are due now: those by which a long turn goes on."""
        self.advance(0)

    def update(self, name: str, value: Any) -> Turn:
        """An update with a reserved name, such as `holdfast.set_variables`."""
        self._updates += 1
        request = RequestKey("update", f"update-{self._updates}", self.now + 3600 * SECOND)
        return self.tell(envelopes.Update(name=name, value=encode(value), request=request))

    def set_variables(self, variables: Mapping[str, Any], scope: str | None = None, *, local: bool = False) -> Turn:
        """Somebody sets variables."""
        return self.update("holdfast.set_variables", {"variables": dict(variables), "scope": scope, "local": local})

    def resolve_incident(self, number: int | None = None, variables: Mapping[str, Any] | None = None) -> Turn:
        """Somebody resolves an incident, or all."""
        return self.update("holdfast.resolve_incident", {"number": number, "variables": variables})

    def cancel(self) -> None:
        """Somebody asked for it to be cancelled."""
        self.tell(envelopes.Cancel())

    def trigger(self, element: str, variables: Any = None) -> None:
        """Let come what an element waits for, whatever that is. The oldest wait of the element counts."""
        execution = self.execution
        for number in self.find_waits(element):
            if number in execution.activities:
                attempt = execution.attempt_of(number).attempt
                self.tell(envelopes.ActivityReturned(number=number, attempt=attempt, result=encode(variables)))
            elif number in execution.tasks:
                self.complete_task(element, variables)
            elif number in execution.timers:
                self.now = max(self.now, execution.timers[number])
                self.tell(envelopes.TimerDue(number=number, due=execution.timers[number]))
            elif number in execution.subscriptions:
                self.tell(self._trigger_wait(execution.subscriptions[number], variables))
            elif number in execution.children:
                self.finish_child(element, variables)
            else:
                continue
            return
        raise AssertionError(f"nothing waits at {element!r}: {self.waits}")

    def _trigger_wait(self, wait: events.Subscribed, value: Any) -> envelopes.Triggered:
        publication = Publication(
            kind=wait.kind, name=wait.name, key=wait.key, value=encode(value), id=f"p{self.now}", sent_at=self.now
        )
        return envelopes.Triggered(number=wait.number, publication=publication)
