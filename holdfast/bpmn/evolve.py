"""What records and given events change in the state: never fails, evaluates nothing, and does not know the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.bpmn import records
from holdfast.bpmn.state import ROOT, WORKING, HeldEvent, Instance, Loop, OpenIncident, StartPoint, State, weigh
from holdfast.bpmn.values import Variable
from holdfast.core import events

_ENDS: Final = frozenset(
    {
        events.ActivityCompleted,
        events.ActivityFailed,
        events.ActivityTimedOut,
        events.ActivityCancelled,
        events.ActivityLost,
        events.TimerFired,
        events.ChildCompleted,
        events.ChildFailed,
        events.ChildCancelled,
        events.ChildTerminated,
        events.SubscriptionFailed,
        events.TaskCompleted,
        events.TaskCancelled,
    }
)
"""Events after which what they tell of is awaited no longer."""
ANSWERS: Final = frozenset({events.PublicationCompleted, events.PublicationFailed})
"""Events that tell what became of something that the process published."""


def take(state: State, event: Any) -> tuple[int, records.Wait] | None:
    """Take a given event: whose wait it ends or triggers, if it is one that the process waits for."""
    kind = type(event)
    if kind in _ENDS:
        return _end_wait(state, event.number)
    if kind is events.SubscriptionTriggered:
        found = state.waits.get(event.number)
        return found if found is None or found[1].is_standing else _end_wait(state, event.number)
    if kind is events.ChildEscalated:
        return state.waits.get(event.number)
    if kind in ANSWERS:
        state.unanswered.pop(event.number, None)
        return None
    if kind is events.WorkflowStarted:
        state.workflow_id = event.workflow_id
        if event.parent is not None:
            state.is_child = True
            state.catches, state.catches_escalations = event.parent.catches, event.parent.catches_escalations
            state.interrupting_escalations = event.parent.interrupting_escalations
        state.start = StartPoint(event.input, event.element)
        state.never_runs = event.cancelled
    elif kind is events.CancelRequested:
        state.cancel_requested = True
    elif kind is events.SignalReceived and event.held:
        state.held.append(HeldEvent(event.name, event.value))
    elif kind is events.UpdateAccepted and event.held:
        state.held.append(HeldEvent(event.name, event.value, event.update))
    return None


def _end_wait(state: State, number: int) -> tuple[int, records.Wait] | None:
    if number == state.yielding:
        state.yielding = 0
        return None
    return state.remove_wait(number)


def begin_advance(state: State) -> None:
    """The records of one event follow: the tokens that were kept, and what was held, are on their way."""
    state.kept = ()
    state.held = []


def end_advance(state: State) -> None:
    """The records of one event are recorded."""
    state.advances += 1


def apply_record(state: State, record: records.AnyRecord) -> None:
    """Let a record change the state."""
    change = _CHANGES.get(type(record))
    if change is not None:
        change(state, record)


def _to_variables(raws: records.Raws) -> dict[str, Variable]:
    return {name: Variable(bytes(value)) for name, value in raws.items()}


def _enter(state: State, record: records.Entered) -> None:
    one = Instance(record.key, record.element, record.scope, record.phase, record.index)
    if record.variables is not None:
        one.variables = {}
        set_variables(state, one, _to_variables(record.variables))
    state.active[record.key] = one
    state.last_key = record.key
    state.is_begun = True
    if record.key != ROOT or record.phase == WORKING:
        state.start = None
    above = state.active.get(record.scope)
    if above is not None:
        above.children[record.key] = None
        if above.loop is not None:
            above.loop.begun = max(above.loop.begun, record.index + 1)


def _begin(state: State, record: records.Began) -> None:
    one = state.active[record.key]
    one.phase = WORKING
    if record.key == ROOT:
        state.start = None
    if record.variables is not None:
        one.variables = one.variables or {}
        set_variables(state, one, _to_variables(record.variables))


def set_variables(state: State, one: Instance, variables: Mapping[str, Variable]) -> None:
    """Give variables of a scope other values."""
    if one.variables is None:
        one.variables = {}
    for name, value in variables.items():
        before = one.variables.get(name)
        state.bytes += len(value.raw) - (0 if before is None else len(before.raw))
        one.variables[name] = value


def _leave(state: State, record: records.Left | records.Ended) -> None:
    one = state.active.get(record.key)
    if one is None:
        return
    if one.key == ROOT:
        state.final = one.variables or {}
    above = state.active.get(one.scope)
    if above is not None:
        above.children.pop(one.key, None)
    waiting = [one]
    while waiting:
        gone = waiting.pop()
        for number in list(gone.waits):
            state.remove_wait(number)
        for number in gone.incidents:
            del state.incidents[number]
        state.bytes -= weigh(gone)
        del state.active[gone.key]
        waiting.extend(state.active[key] for key in gone.children)


def _interrupt(state: State, record: records.Interrupted) -> None:
    state.active[record.scope].is_interrupted = True


def _end_by(state: State, record: records.Ending) -> None:
    state.ending = record


def _arrive(state: State, record: records.Arrived) -> None:
    flows = state.active[record.scope].joins.setdefault(record.element, {})
    flows[record.flow] = flows.get(record.flow, 0) + 1


def _join(state: State, record: records.Joined) -> None:
    joins = state.active[record.scope].joins
    flows = joins[record.element]
    for flow in record.taken:
        flows[flow] -= 1
        if not flows[flow]:
            del flows[flow]
    if not flows:
        del joins[record.element]


def _clear(state: State, record: records.Cleared) -> None:
    state.active[record.scope].joins.clear()


def _set(state: State, record: records.Set) -> None:
    set_variables(state, state.active[record.key], _to_variables(record.variables))


def _wait(state: State, record: records.Waits) -> None:
    for wait in record.waits:
        state.add_wait(record.key, wait)
        state.last_number = max(state.last_number, wait.number)


def _unwait(state: State, record: records.Unwaits) -> None:
    for number in record.numbers:
        state.remove_wait(number)


def _send(state: State, record: records.Sent) -> None:
    state.last_number = max(state.last_number, record.number)
    if state.is_child:
        state.unanswered[record.number] = None


def _loop(state: State, record: records.Looped) -> None:
    one = state.active[record.key]
    one.loop = Loop(record.total, record.items, record.collection)
    if record.items is not None:
        state.bytes += sum(len(bytes(item)) for item in record.items)


def _fill(state: State, record: records.Slot) -> None:
    loop = state.active[record.key].loop
    if loop is not None:
        state.bytes += len(bytes(record.value))
        loop.slots[record.index] = record.value
        loop.begun = max(loop.begun, record.index + 1)


def _keep(state: State, record: records.Kept) -> None:
    state.kept = record.tokens
    if record.number:
        state.yielding = record.number
        state.last_number = max(state.last_number, record.number)


def _raise(state: State, record: records.Incident) -> None:
    one = state.active[record.key]
    one.incidents[record.number] = OpenIncident(record.kind, record.catcher, record.phase)
    state.incidents[record.number] = record.key
    if not record.catcher and record.phase:
        one.phase = record.phase
    state.last_number = max(state.last_number, record.number)


def _resolve(state: State, record: records.Resolved) -> None:
    state.active[record.key].incidents.pop(record.number, None)
    state.incidents.pop(record.number, None)


def _keep_result(state: State, record: records.Result) -> None:
    one = state.active[record.key]
    before = weigh(one)
    one.result = _to_variables(record.variables)
    state.bytes += weigh(one) - before


def _buffer(state: State, record: records.Buffered) -> None:
    state.signals.setdefault(record.name, deque()).append(record.value)
    state.bytes += len(record.value.data)


def _take_signal(state: State, record: records.Taken) -> None:
    values = state.signals.get(record.name)
    if values:
        state.bytes -= len(values.popleft().data)
        if not values:
            del state.signals[record.name]


_CHANGES: Final[Mapping[type[records.Record], Callable[[State, Any], None]]] = {
    records.Entered: _enter,
    records.Began: _begin,
    records.Left: _leave,
    records.Ended: _leave,
    records.Interrupted: _interrupt,
    records.Ending: _end_by,
    records.Arrived: _arrive,
    records.Joined: _join,
    records.Cleared: _clear,
    records.Set: _set,
    records.Waits: _wait,
    records.Unwaits: _unwait,
    records.Sent: _send,
    records.Looped: _loop,
    records.Slot: _fill,
    records.Kept: _keep,
    records.Incident: _raise,
    records.Resolved: _resolve,
    records.Result: _keep_result,
    records.Buffered: _buffer,
    records.Taken: _take_signal,
}
"""What each record changes; those that are not named are for people alone."""
