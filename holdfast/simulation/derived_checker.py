"""Checks of what follows from the calls of clients alone: starts, dead letters, and what schedules have open at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

import msgspec

from holdfast.core import codec
from holdfast.core.envelopes import Triggered
from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.core.schedules import Overlap
from holdfast.simulation.clients import ClientLedger, DerivedSchedule
from holdfast.simulation.monitor import Monitor
from holdfast.simulation.outcomes import ExecutionRecord, read
from holdfast.simulation.plan_roots import SignalToken
from holdfast.store.rows import DeadLetterRow

ENDINGS: Final = {
    Overlap.SKIP: {Status.COMPLETED},
    Overlap.QUEUE: {Status.COMPLETED},
    Overlap.ALLOW: {Status.COMPLETED},
    Overlap.CANCEL_RUNNING: {Status.COMPLETED, Status.CANCELLED},
    Overlap.TERMINATE_RUNNING: {Status.COMPLETED, Status.TERMINATED},
}
"""How executions of schedules may end."""
SKEW: Final = 3 * SECOND
"""By how much the clocks of two nodes differ at most."""
SHORT_CATCH_UP: Final = 3_600
"""Seconds: fires of schedules that catch up with less may be missed when the clock is set, or nobody is there."""


def check_derived(records: Sequence[ExecutionRecord], ledger: ClientLedger, monitor: Monitor) -> Iterator[str]:
    """What was started once ran once, and schedules kept to their policies."""
    yield from check_begun(records, ledger)
    for ended in ledger.schedules:
        runs = [record for record in records if record.plan.label == ended.call.label]
        yield from check_schedule(ended, runs, monitor)


# --- starts --------------------------------------------------------------------------------------------------------------


def check_begun(records: Sequence[ExecutionRecord], ledger: ClientLedger) -> Iterator[str]:
    """Each accepted message or broadcast signal that starts a program started it once (B1, M2)."""
    ran = Counter((record.plan.label, record.row.workflow_id) for record in records if record.plan.run == 0)
    labels = Counter(record.plan.label for record in records if record.plan.run == 0)
    for label, workflow_id in ledger.begun:
        number = labels[label] if workflow_id is None else ran[label, workflow_id]
        if number != 1 or labels[label] != 1:
            yield f"'{label}' was to be started once, under {workflow_id!r}, but ran {labels[label]} times (B1, M2)"


# --- dead letters --------------------------------------------------------------------------------------------------------


def is_event(letter: DeadLetterRow) -> bool:
    """Whether a dead letter is an event that was sent to an execution."""
    return isinstance(codec.decode_envelope(letter.body), Triggered)


def check_undelivered(
    records: Sequence[ExecutionRecord], letters: Sequence[DeadLetterRow], ledger: ClientLedger
) -> Iterator[str]:
    """Each event that its program did not live to take is a dead letter, once, and no other event is (E1)."""
    names = {record.row.execution_id: record.row.workflow_id for record in records}
    expected = Counter(ledger.undelivered)
    found: Counter[tuple[str, SignalToken]] = Counter()
    for letter in letters:
        envelope = codec.decode_envelope(letter.body)
        if isinstance(envelope, Triggered):
            found[names.get(letter.execution_id, "?"), msgspec.convert(read(envelope.publication.value), SignalToken)] += 1
    for event in sorted(expected.keys() | found.keys(), key=repr):
        if expected[event] != found[event]:
            yield f"event {event} is {found[event]} times a dead letter instead of {expected[event]} times (E1)"


# --- schedules -----------------------------------------------------------------------------------------------------------


def check_schedule(ended: DerivedSchedule, runs: Sequence[ExecutionRecord], monitor: Monitor) -> Iterator[str]:
    """A schedule fired as often as it was to, started what its policy lets it, and nothing while it was paused (T4, T5)."""
    call, name = ended.call, f"schedule '{ended.call.target}' ({ended.call.overlap})"
    if ended.fired + ended.missed != call.count or (ended.missed and call.catch_up > SHORT_CATCH_UP) or ended.refused:
        yield f"{name} did not fire {call.count} times: {ended} (T4)"
    if call.overlap in (Overlap.ALLOW, Overlap.QUEUE) and ended.skipped:
        yield f"{name} skipped {ended.skipped} fires (T5)"
    if len(runs) != ended.fired - ended.skipped:
        yield f"{name} fired {ended.fired} times and skipped {ended.skipped}, but started {len(runs)} executions (T4)"
    if len({record.row.workflow_id for record in runs}) != len(runs):
        yield f"{name} started two executions for one time (T4)"
    if call.overlap is not Overlap.ALLOW:
        yield from _check_disjoint(name, runs, monitor)
    for number, record in enumerate(runs, 1):
        allowed = ENDINGS[call.overlap] if number < len(runs) else {Status.COMPLETED}
        if record.row.status not in allowed:
            yield f"{name}: its execution {number} of {len(runs)} is {record.row.status} (T5)"
    yield from _check_paused(name, ended, runs)


def _check_disjoint(name: str, runs: Sequence[ExecutionRecord], monitor: Monitor) -> Iterator[str]:
    """No execution was opened while another was open."""
    spans = sorted(monitor.spans[record.row.execution_id] for record in runs)
    for (_, closed), (opened, _) in pairwise(spans):
        if opened < closed or not closed:
            yield f"{name} started an execution while another was open: {spans} (T5)"


def _check_paused(name: str, ended: DerivedSchedule, runs: Sequence[ExecutionRecord]) -> Iterator[str]:
    """No execution is for a time in a pause. The time is part of the workflow id, in whole seconds or parts of them."""
    if ended.pause is None:
        return
    begin, end = ended.pause
    for record in runs:
        text = record.row.workflow_id.removeprefix(f"{ended.call.target}-")
        at = round(datetime.fromisoformat(text).timestamp() * SECOND)
        if begin + SKEW < at < end - SKEW:
            yield f"{name} was paused from {begin} to {end}, and fired for {at} (T5)"
