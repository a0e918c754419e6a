"""The outcome of a run in a form that is equal for all runs of a scenario: without ids, times, attempts and arrivals."""

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
from holdfast.simulation.plans import SAFETY_MILLIS, Comparison, Plan
from holdfast.store.contract import ExecutionFilter, Store
from holdfast.store.rows import ExecutionRow

ORG: Final = "default"
MOST_EXECUTIONS: Final = 100_000
"""More executions than any scenario has."""
SAFETY_MICROS: Final = SAFETY_MILLIS * 1_000


class ExecutionRecord(msgspec.Struct, frozen=True):
    """One execution of a run: its row, its history and the plan that it carried out."""

    row: ExecutionRow
    turns: list[HistoryTurn]
    plan: Plan

    @property
    def events(self) -> list[AnyEvent]:
        """The events of the execution's history, in order, without their turns."""
        return [event for turn in self.turns for event in turn.events]

    @property
    def name(self) -> str:
        """The execution as messages name it: the label of its plan, its run, its id."""
        return f"'{self.plan.label}' run {self.plan.run} ({self.row.execution_id})"


async def read_records(store: Store, order: Iterable[str]) -> list[ExecutionRecord]:
    """Read all executions, in the `order` of their first commits: two may start in the same microsecond."""
    places = {execution_id: place for place, execution_id in enumerate(order)}
    rows = await store.list_executions(ExecutionFilter(ORG, limit=MOST_EXECUTIONS))
    found = []
    for row in sorted(rows, key=lambda row: places.get(row.execution_id, -1)):
        turns = to_turns(await store.load_history(row.execution_id))
        started = turns[0].events[0] if turns else None
        if not isinstance(started, events.WorkflowStarted):
            raise TypeError(f"execution {row.execution_id} does not begin with its start: {started}")
        (plan,) = payloads.decode(started.input, tuple[Plan], "a plan")
        found.append(ExecutionRecord(row, turns, plan))
    return found


def summarise(records: list[ExecutionRecord]) -> dict[str, Any]:
    """The outcome of a run, by program: what must be equal in all runs of the scenario."""
    summary: dict[str, Any] = {}
    for record in records:
        if record.plan.comparison is Comparison.DERIVED:
            continue
        key = f"{record.plan.label} run {record.plan.run}"
        if record.plan.comparison is Comparison.SHARED_SIGNALS:
            shared = summary.setdefault(record.plan.label, {})
            _add_shared(shared, record)
        else:
            summary.setdefault(key, []).append(_describe(record))
    return dict(sorted(summary.items()))


def _add_shared(shared: dict[str, Any], record: ExecutionRecord) -> None:
    """Add what an execution took of shared signals: each sender's, over all executions in the order of their starts."""
    closing = record.events[-1]
    taken: Any = [["nobody", [str(record.row.status)]]]
    if isinstance(closing, events.ContinuedAs):
        return
    if isinstance(closing, events.WorkflowCompleted):
        taken = read(closing.result)[-1]
    for sender, numbers in taken:
        shared.setdefault(sender, []).extend(numbers)


def _describe(record: ExecutionRecord) -> dict[str, Any]:
    status = from_row(record.row).status
    if record.plan.comparison is Comparison.STATUS:
        return {"status": status}
    if record.plan.comparison is Comparison.RESULT:
        return {"status": status, "end": describe_end(record.events[-1])}
    decisions = describe_decisions(record)
    if record.plan.comparison is Comparison.UNORDERED:
        decisions.sort(key=repr)
    return {"status": status, "end": describe_end(record.events[-1]) if status.is_closed else None, "decisions": decisions}


def describe_end(event: AnyEvent) -> Any:
    """How an execution closed, with its result or failure, as plain values."""
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


def describe_decisions(record: ExecutionRecord) -> list[Any]:
    """What a program decided, in order: activities, timers, children, signals."""
    names: dict[int, Any] = {}
    found = []
    for turn in record.turns:
        for event in turn.events:
            described = _decision(event, turn.at, names)
            if described is not None:
                found.append(described)
    return found


def _decision(event: AnyEvent, at: Instant, names: dict[int, Any]) -> Any:
    """An event without its ids, None if it is no decision; `names` maps numbers to what they stand for."""
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
    """Where two outcomes first differ, in words; None if they are equal."""
    if expected == found:
        return None
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            here = f"{path} / {key}" if path else str(key)
            if key not in found:
                return f"{here}: missing; without faults it was {_shorten(expected[key])}"
            if key not in expected:
                return f"{here}: there was none without faults, now it is {_shorten(found[key])}"
            difference = find_difference(expected[key], found[key], here)
            if difference is not None:
                return difference
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            difference = find_difference(one, other, f"{path} [{index}]")
            if difference is not None:
                return difference
    return f"{path}: without faults {_shorten(expected)}, now {_shorten(found)}"


def _shorten(value: Any, longest: int = 1_500) -> str:
    text = str(value) if isinstance(value, Status) else repr(value)
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"
