"""A workflow that is no code and takes snapshots, as processes do: small enough to see what the engine makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from holdfast import Context
from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.commands import (
    AnyCommand,
    Complete,
    CompleteUpdate,
    RaiseIncident,
    ResolveIncident,
    RunActivity,
    StartChild,
    StartTimer,
    Subscribe,
)
from holdfast.core.definition import Definition
from holdfast.core.effects import ACCEPTED, Checked
from holdfast.core.envelopes import Update
from holdfast.core.events import GIVEN, Given, HistoryTurn, SignalReceived, UpdateAccepted
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND, Instant
from holdfast.core.payloads import NULL, Payload
from holdfast.core.program import Step, Waits
from holdfast.core.program_limits import ProgramLimits
from holdfast.core.publications import SubscriptionKind
from holdfast.errors import IncidentNotFound, UnknownQuery, UnknownUpdate

SCHEMA: Final = 3


class _State(msgspec.Struct):
    lines: list[str] = []
    incidents: list[int] = []
    variables: dict[str, Any] = {}
    held: list[str] = []
    commands: int = 0


class LedgerProgram:
    """Writes down each word that it is sent as a signal. Some words make it ask for something; 'end' ends it."""

    snapshot_schema = SCHEMA
    code_version = ""

    def __init__(self, ledger: Ledger) -> None:
        self.definition: Definition = ledger
        self._ledger = ledger
        self._state = _State()

    @property
    def weight(self) -> int:
        """A little for each line."""
        return 100 + sum(len(line) for line in self._state.lines)

    def advance(self, event: Given, now: Instant) -> Step:
        """Take the words, those that were held before first."""
        self._ledger.events_taken += 1
        if isinstance(event, SignalReceived):
            self._state.held.append(payloads.decode(event.value, str, "a word"))
        if getattr(event, "held", False):
            return Step()
        words, self._state.held = self._state.held, []
        commands = [command for word in words for command in self._take(word, now)]
        if isinstance(event, UpdateAccepted):
            commands += self._handle(event)
        return Step(commands)

    def _take(self, word: str, now: Instant) -> list[AnyCommand]:
        state = self._state
        state.lines.append(word)
        if word == "end":
            return [Complete(result=payloads.encode(state.lines, "lines"))]
        state.commands += 1
        number = state.commands
        match word.split(" ", maxsplit=1)[0]:
            case "timer":
                return [StartTimer(number=number, due=now + 60 * SECOND, label="soon")]
            case "job":
                return [RunActivity(number=number, name="work", input=payloads.encode(["x"], "arguments"))]
            case "child":
                return [StartChild(number=number, workflow="ledger", input=payloads.encode([], "arguments"))]
            case "message":
                return [Subscribe(number=number, kind=SubscriptionKind.MESSAGE, name="paid", key=word)]
            case "fail":
                state.incidents.append(number)
                return [
                    RaiseIncident(number=number, element="Task_1", element_name="Charge", kind="job", message="no money")
                ]
        return []

    def _handle(self, event: UpdateAccepted) -> list[AnyCommand]:
        value = payloads.decode(event.value, dict[str, Any], "the value")
        self._state.variables |= value.get("variables") or {}
        commands: list[AnyCommand] = []
        if event.name == "holdfast.resolve_incident":
            number = value["number"]
            for one in list(self._state.incidents) if number is None else [number]:
                self._state.incidents.remove(one)
                commands.append(ResolveIncident(number=one))
        return [*commands, CompleteUpdate(update=event.update, result=NULL)]

    def apply(self, turns: Iterable[HistoryTurn]) -> Failure | None:
        """Take what has happened; it agrees with everything but a word."""
        for turn in turns:
            for event in turn.events:
                if type(event) in GIVEN:
                    self.advance(event, turn.at)  # type: ignore[arg-type]  # asked above
        if self._ledger.refused in self._state.lines:
            return Failure(type="Refused", message="there is a word that does not fit")
        return None

    def untaken_signals(self) -> tuple[()]:
        """All are taken at once."""
        return ()

    def check_update(self, update: Update) -> Checked:
        """Two updates are known."""
        if not update.name.startswith("holdfast."):
            return Checked(UnknownUpdate("Expected another update, but there is none. Look."))
        number = payloads.decode(update.value, dict[str, Any], "the value").get("number")
        if number is not None and number not in self._state.incidents:
            return Checked(IncidentNotFound(f"Expected incident {number} to be open, but it is not. Look at the list."))
        return ACCEPTED

    def check_form(self, _number: int, _form: Payload) -> Checked:
        """There are no forms."""
        return ACCEPTED

    def update_names(self) -> tuple[str, ...]:
        """Those that every process has, which are no reason to wait."""
        return ()

    def answer_query(self, name: str, args: Payload) -> Payload:
        """The variables, or the lines."""
        if name == "holdfast.variables":
            return payloads.encode(self._state.variables, "variables")
        if name == "lines":
            return payloads.encode(self._state.lines, "lines")
        raise UnknownQuery("Expected another query, but there is none. Look.")

    def waiting_signals(self) -> tuple[str, ...]:
        """It always waits for words, unless there is an incident."""
        return () if self._state.incidents else ("word",)

    def find_waits(self) -> Waits | None:
        """Nothing but what the execution has open."""
        return Waits()

    def take_snapshot(self) -> bytes | None:
        """All of its state."""
        if self._ledger.fails_to_take:
            raise RuntimeError("no snapshot today")
        return msgspec.json.encode(self._state)

    def restore_snapshot(self, body: bytes, schema: int) -> bool:
        """Of its own schema only."""
        if schema != self.snapshot_schema or self._ledger.refuses_snapshots:
            return False
        self._state = msgspec.json.decode(body, type=_State)
        self._ledger.restored += 1
        return True

    def close(self) -> None:
        """Nothing to free."""


class Ledger(Workflow[..., Any]):
    """The definition, which counts what its programs do."""

    def __init__(self) -> None:
        async def ledger(ctx: Context) -> list[str]:
            raise NotImplementedError

        super().__init__(ledger, "ledger")
        self.restored = 0
        """How many programs were restored from a snapshot."""
        self.events_taken = 0
        """How many events its programs took, replays included."""
        self.refused = ""
        """A word that does not fit when it is replayed."""
        self.refuses_snapshots = False
        self.fails_to_take = False

    def prepare(self) -> None:
        """Nothing to guard: there is no code."""

    def make_program(self, _execution: Execution, _limits: ProgramLimits) -> Any:
        """A program before its first event."""
        return LedgerProgram(self)
