"""Checks after a run: what must hold for every execution and for the store, whatever faults there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from holdfast.core import codec, events
from holdfast.core.envelopes import Signal
from holdfast.core.events import CLOSING, GIVEN, AnyEvent
from holdfast.core.lifecycle import Status
from holdfast.core.program import Program
from holdfast.simulation.clients import ClientLedger
from holdfast.simulation.derived_checker import check_derived, check_undelivered, is_event
from holdfast.simulation.monitor import Monitor
from holdfast.simulation.outcomes import ORG, ExecutionRecord, describe_end, read
from holdfast.simulation.plan_roots import SignalToken
from holdfast.simulation.reach_checker import check_left, check_reached
from holdfast.store.contract import Store
from holdfast.store.rows import DeadLetterRow

MakeProgram = Callable[[ExecutionRecord], Program]

OPENS: Final[dict[type[events.Event], str]] = {
    events.ActivityScheduled: "activity",
    events.TimerStarted: "timer",
    events.ChildStarted: "child",
    events.ExternalSignalInitiated: "signal",
    events.Subscribed: "subscription",
    events.MessagePublished: "publication",
    events.EventSent: "publication",
    events.SignalBroadcast: "publication",
    events.TaskCreated: "task",
}
ENDS: Final[dict[type[events.Event], str]] = {
    events.ActivityCompleted: "activity",
    events.ActivityFailed: "activity",
    events.ActivityTimedOut: "activity",
    events.ActivityCancelled: "activity",
    events.ActivityCancelRequested: "activity",
    events.TimerFired: "timer",
    events.TimerCancelled: "timer",
    events.ChildCompleted: "child",
    events.ChildFailed: "child",
    events.ChildCancelled: "child",
    events.ChildTerminated: "child",
    events.ExternalSignalCompleted: "signal",
    events.ExternalSignalFailed: "signal",
    events.SubscriptionTriggered: "subscription",
    events.SubscriptionFailed: "subscription",
    events.Unsubscribed: "subscription",
    events.PublicationCompleted: "publication",
    events.PublicationFailed: "publication",
    events.TaskCompleted: "task",
    events.TaskCancelled: "task",
    events.TaskEnded: "task",
}


async def check_world(
    store: Store, monitor: Monitor, ledger: ClientLedger, records: list[ExecutionRecord], make_program: MakeProgram
) -> list[str]:
    """All violations that are found, as one sentence each."""
    problems = [*monitor.problems, *ledger.problems, *await store.check()]
    letters = await store.list_dead_letters(ORG, limit=1_000)
    problems.extend(await _check_rest(store))
    problems.extend(check_undelivered(records, letters, ledger))
    problems.extend(check_letters(records, [letter for letter in letters if not is_event(letter)], ledger))
    for record in records:
        problems.extend(check_history(record.events, record.name))
        problems.extend(_check_row(record, monitor))
        problems.extend(check_replay(record, make_program(record)))
    problems.extend(check_signals(records, ledger))
    problems.extend(check_order(records, ledger))
    problems.extend(check_children(records))
    problems.extend(await check_left(store, records))
    problems.extend(check_reached(records, ledger))
    problems.extend(check_derived(records, ledger, monitor))
    problems.extend(_check_ends(records, ledger))
    return problems


# --- the store -----------------------------------------------------------------------------------------------------------


async def _check_rest(store: Store) -> list[str]:
    """All executions are closed: no timers and no envelopes may be left."""
    counts = await store.count()
    left = {"timers": counts.timers, "inbox": counts.inbox, **counts.executions}
    return [f"{number} left in {what} though everything should have ended" for what, number in left.items() if number]


def check_letters(
    records: Sequence[ExecutionRecord], letters: Sequence[DeadLetterRow], ledger: ClientLedger
) -> Iterator[str]:
    """The only dead letters are signals for executions that were terminated before they could take them.

    And repetitions: who does not know whether a transaction was committed repeats it, maybe until the receiver has closed.
    """
    by_id = {record.row.execution_id: record for record in records}
    for letter in letters:
        envelope, receiver = codec.decode_envelope(letter.body), by_id.get(letter.execution_id)
        if type(envelope) is Signal and receiver is not None and receiver.row.status == Status.TERMINATED:
            signal = (receiver.row.workflow_id, envelope.name, _token(envelope))
            if signal in ledger.accepted:
                ledger.accepted.remove(signal)
                continue
        if type(envelope) is Signal and envelope.request is not None:
            target = letter.workflow_id if receiver is None else receiver.row.workflow_id
            if (target, envelope.name, _token(envelope)) in ledger.accepted:
                continue  # that it was received as well is checked with the others
        yield f"a dead letter for {letter.workflow_id or letter.execution_id}: {letter.reason}: {letter.body!r}"


def _check_row(record: ExecutionRecord, monitor: Monitor) -> Iterator[str]:
    row, execution_id = record.row, record.row.execution_id
    if row.sequence != len(record.events):
        yield f"{record.name}: its row counts {row.sequence} events, its history has {len(record.events)}"
    if row.state_version != monitor.commits.get(execution_id, 0):
        yield f"{record.name}: version {row.state_version} after {monitor.commits.get(execution_id, 0)} committed turns (X3)"
    if record.events != monitor.histories.get(execution_id, []):
        yield f"{record.name}: its history is not what was committed"
    if not any(type(event) is events.WorkflowTerminated for event in record.events):
        times = [turn.at for turn in record.turns]
        if times != sorted(times):
            yield f"{record.name}: its time goes back: {times}"


# --- one history ---------------------------------------------------------------------------------------------------------


def check_history(history: Sequence[AnyEvent], name: str) -> Iterator[str]:
    """One start, one end, and everything that ended was open, once (A1, C1, C4, T3)."""
    kinds = [type(event) for event in history]
    if kinds.count(events.WorkflowStarted) != 1 or kinds[0] is not events.WorkflowStarted:
        yield f"{name}: expected one start, at the beginning: {_names(kinds)}"
    closings = [kind for kind in kinds if kind in CLOSING]
    if len(closings) != 1 or kinds[-1] not in CLOSING:
        yield f"{name}: expected one closing event, at the end (C4): {_names(kinds)}"
    opened: dict[tuple[str, int], bool] = {}
    for sequence, event in enumerate(history, 1):
        kind = type(event)
        if kind in OPENS:
            key = (OPENS[kind], event.number)  # type: ignore[union-attr]  # all that open have one
            if key in opened:
                yield f"{name}: event {sequence}: {key} was asked for twice"
            opened[key] = True
        elif kind in ENDS:
            key = (ENDS[kind], event.number)  # type: ignore[union-attr]
            if not opened.get(key, False):
                yield f"{name}: event {sequence}: {kind.__name__} of {key}, which was not open (A1, C1, S5, T3)"
            opened[key] = False


def check_replay(record: ExecutionRecord, program: Program) -> Iterator[str]:
    """A replay of the history gives the same commands (R1)."""
    failure = program.apply(record.turns)
    if failure is not None:
        yield f"{record.name}: replay does not agree (R1): {failure.message}"
    program.close()


def _names(kinds: Sequence[type[events.Event]]) -> str:
    return " ".join(kind.__name__ for kind in kinds)


# --- signals -------------------------------------------------------------------------------------------------------------


def check_signals(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Accepted means received, exactly once; refused means not at all (S1, S5, S7, I3).

    A continued run receives again what the run before it had not taken.
    """
    expected = Counter(ledger.accepted)
    possible: Counter[tuple[str, str, SignalToken]] = Counter()
    for record in records:
        told = {event.number: event for event in record.events if type(event) is events.ExternalSignalInitiated}
        for event in record.events:
            if type(event) is events.ExternalSignalCompleted:
                initiated = told.pop(event.number)
                expected[initiated.workflow_id, initiated.name, _token(initiated)] += 1
            elif type(event) is events.ExternalSignalFailed:
                told.pop(event.number)
        possible.update((event.workflow_id, event.name, _token(event)) for event in told.values())
    received = _count_received(records)
    for signal, number in sorted(expected.items(), key=repr):
        if received[signal] < number:
            yield f"signal {signal} was accepted {number} times and received {received[signal]} times: lost (S1, S7, I3)"
    for signal, number in sorted(received.items(), key=repr):
        if number > expected[signal] + possible[signal]:
            yield f"signal {signal} was received {number} times, but sent {expected[signal]} times: doubled (S1, S5)"


def check_order(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Each run has the signals of a client in the order in which the client made its calls (S1)."""
    for client, signals in ledger.ordered.items():
        places = {signal: place for place, signal in enumerate(signals)}
        for record in records:
            latest = -1
            for event in record.events:
                if type(event) is not events.SignalReceived:
                    continue
                place = places.get((record.row.workflow_id, event.name, _token(event)), latest)
                if place < latest:
                    yield f"{record.name}: {signals[place]} of client {client} came behind {signals[latest]} (S1)"
                latest = max(place, latest)


def _count_received(records: Sequence[ExecutionRecord]) -> Counter[tuple[str, str, SignalToken]]:
    """How often each signal was received; what a continued run was given again counts once."""
    roots: dict[str, str] = {}
    by_root: dict[str, Counter[tuple[str, str, SignalToken]]] = {}
    for record in records:  # in the order of their starts: a run comes after the one that it continues
        started = record.events[0]
        before = started.continued_from if isinstance(started, events.WorkflowStarted) else None
        root = roots[record.row.execution_id] = roots.get(before or "", record.row.execution_id)
        by_root[root] = by_root.get(root, Counter()) | _received_by(record)
    return sum(by_root.values(), Counter())


def _received_by(record: ExecutionRecord) -> Counter[tuple[str, str, SignalToken]]:
    return Counter(
        (record.row.workflow_id, event.name, _token(event))
        for event in record.events
        if type(event) is events.SignalReceived
    )


def _token(event: events.SignalReceived | events.ExternalSignalInitiated | Signal) -> SignalToken:
    return msgspec.convert(read(event.value), SignalToken)


# --- children ------------------------------------------------------------------------------------------------------------


def check_children(records: Sequence[ExecutionRecord]) -> Iterator[str]:
    """Every child that was asked for ran, once, and its end is what its parent was told (C1). So did every next run."""
    by_id = {record.row.execution_id: record for record in records}
    for record in records:
        closing = record.events[-1]
        if isinstance(closing, events.ContinuedAs) and closing.execution_id not in by_id:
            yield f"{record.name}: it continued, but its next run does not exist (C5)"
        children = {event.number: event for event in record.events if type(event) is events.ChildStarted}
        for child in children.values():
            if child.execution_id not in by_id:
                yield f"{record.name}: its child '{child.workflow_id}' never ran (C1)"
        for event in record.events:
            kind = type(event)
            if ENDS.get(kind) != "child" or kind not in GIVEN:
                continue
            child = children[event.number]  # type: ignore[union-attr]
            last = _last_run(by_id, child.execution_id)
            told, was = kind.__name__.removeprefix("Child").lower(), "nothing" if last is None else str(last.row.status)
            if told != was:
                yield f"{record.name}: was told that its child '{child.workflow_id}' {told}, but it {was} (C1)"


def _last_run(by_id: dict[str, ExecutionRecord], execution_id: str) -> ExecutionRecord | None:
    record = by_id.get(execution_id)
    while record is not None and isinstance(closing := record.events[-1], events.ContinuedAs):
        record = by_id.get(closing.execution_id)
    return record


# --- results -------------------------------------------------------------------------------------------------------------


def _check_ends(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Every result that a client was answered is that of an execution in the store."""
    for target, how, value in ledger.ends:
        ends = [describe_end(record.events[-1]) for record in records if record.row.workflow_id == target]
        fits = any(end[0] == how and (how not in ("completed", "failed") or end[1] == value) for end in ends)
        if not fits:
            yield f"a client was told that '{target}' {how} with {value!r}, but the store holds {ends}"
