"""What came of a world, in a form that two runs of one scenario share: ids, times, attempts and arrivals left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from holdfast.core import events, payloads
from holdfast.core.events import AnyEvent, HistoryTurn
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import Status
from holdfast.core.payloads import Payload
from holdfast.engine.rows import from_row, to_turns
from holdfast.simulation.plans import SAFETY_MILLIS, Judged, Plan
from holdfast.store.contract import ExecutionRow, Filter, Store

ORG: Final = "default"
MOST_EXECUTIONS: Final = 100_000
SAFETY_MICROS: Final = SAFETY_MILLIS * 1_000


class Record(msgspec.Struct, frozen=True):
    """One execution as the store keeps it."""

    row: ExecutionRow
    turns: list[HistoryTurn]
    plan: Plan

    @property
    def events(self) -> list[AnyEvent]:
        """Its history."""
        return [event for turn in self.turns for event in turn.events]

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"'{self.plan.label}' run {self.plan.run} ({self.row.execution_id})"


async def read_records(store: Store, order: Iterable[str]) -> list[Record]:
    """Every execution, in the `order` of their first commits: two may begin in the same microsecond."""
    places = {execution_id: place for place, execution_id in enumerate(order)}
    rows = await store.list_executions(Filter(ORG, limit=MOST_EXECUTIONS))
    found = []
    for row in sorted(rows, key=lambda row: places.get(row.execution_id, -1)):
        turns = to_turns(await store.load_history(row.execution_id))
        started = turns[0].events[0] if turns else None
        if not isinstance(started, events.WorkflowStarted):
            raise TypeError(f"execution {row.execution_id} does not begin with its start: {started}")
        (plan,) = payloads.decode(started.input, tuple[Plan], "a plan")
        found.append(Record(row, turns, plan))
    return found


def summarise(records: list[Record]) -> dict[str, Any]:
    """The outcome: by program and run, what must be the same whenever the scenario is run."""
    summary: dict[str, Any] = {}
    for record in records:
        key = f"{record.plan.label} run {record.plan.run}"
        if record.plan.judged is Judged.BANK:
            bank = summary.setdefault(record.plan.label, {})
            _deposit(bank, record)
        else:
            summary.setdefault(key, []).append(_describe(record))
    return dict(sorted(summary.items()))


def _deposit(bank: dict[str, Any], record: Record) -> None:
    """Executions that share signals: what each sender's signals were, over all of them in the order of their starts."""
    closing = record.events[-1]
    taken: Any = [["nobody", [str(record.row.status)]]]
    if isinstance(closing, events.ContinuedAs):
        return
    if isinstance(closing, events.WorkflowCompleted):
        taken = read(closing.result)[-1]
    for sender, numbers in taken:
        bank.setdefault(sender, []).extend(numbers)


def _describe(record: Record) -> dict[str, Any]:
    status = from_row(record.row).status
    if record.plan.judged is Judged.STATUS:
        return {"status": status}
    decisions = describe_decisions(record)
    if record.plan.judged is Judged.UNORDERED:
        decisions.sort(key=repr)
    return {"status": status, "end": describe_end(record.events[-1]) if status.is_closed else None, "decisions": decisions}


def describe_end(event: AnyEvent) -> Any:
    """How an execution closed."""
    match event:
        case events.WorkflowCompleted():
            return ["completed", read(event.result)]
        case events.WorkflowFailed():
            return ["failed", event.failure.type, event.failure.message, read(event.failure.details)]
        case events.WorkflowCancelled():
            return ["cancelled"]
        case events.WorkflowTerminated():
            return ["terminated", event.reason]
        case events.ContinuedAs():
            return ["continued", read(event.input)]
    return ["not closed", type(event).__name__]


# --- decisions -----------------------------------------------------------------------------------------------------------


def describe_decisions(record: Record) -> list[Any]:
    """What the program asked for, in order."""
    names: dict[int, Any] = {}
    found = []
    for turn in record.turns:
        for event in turn.events:
            described = _decision(event, turn.at, names)
            if described is not None:
                found.append(described)
    return found


def _decision(event: AnyEvent, at: Instant, names: dict[int, Any]) -> Any:
    """A recorded event without ids; `names` tells what the numbers stand for."""
    match event:
        case events.ActivityScheduled():
            names[event.number] = name = ["activity", event.name, _without_nonce(read(event.input))]
            return name
        case events.TimerStarted():
            names[event.number] = name = ["timer", event.due - at]
            return None if event.due - at == SAFETY_MICROS else name
        case events.ChildStarted():
            names[event.number] = name = ["child", event.workflow, read(event.input), event.policy]
            return name
        case events.ExternalSignalInitiated():
            return ["signal", event.name, read(event.value)]
        case events.ActivityCancelRequested() | events.TimerCancelled() | events.ChildCancelRequested():
            withdrawn = names.get(event.number)
            return None if withdrawn == ["timer", SAFETY_MICROS] else ["withdraw", withdrawn]
        case events.SideEffectRecorded():
            value = read(event.value)
            return ["side effect", value if isinstance(value, dict) else "a nonce"]
        case events.PatchRecorded():
            return ["patch", event.patch]
        case events.SignalRejected():
            return ["rejected", event.name]
    return None


def _without_nonce(arguments: Any) -> Any:
    return [{key: value for key, value in one.items() if key != "nonce"} for one in arguments]


def read(payload: Payload | None) -> Any:
    """A payload as plain JSON values."""
    return None if payload is None else payloads.decode(payload, Any, "a payload")


def find_difference(expected: Any, found: Any, path: str = "") -> str | None:
    """Where two outcomes first differ, in words."""
    if expected == found:
        return None
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            here = f"{path} / {key}" if path else str(key)
            if key not in found:
                return f"{here}: missing; undisturbed it was {_shorten(expected[key])}"
            if key not in expected:
                return f"{here}: there was none undisturbed, now it is {_shorten(found[key])}"
            difference = find_difference(expected[key], found[key], here)
            if difference is not None:
                return difference
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            difference = find_difference(one, other, f"{path} [{index}]")
            if difference is not None:
                return difference
    return f"{path}: undisturbed {_shorten(expected)}, now {_shorten(found)}"


def _shorten(value: Any, longest: int = 1_500) -> str:
    text = str(value) if isinstance(value, Status) else repr(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"
