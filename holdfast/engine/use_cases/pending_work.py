"""What an open execution waits for: from its row, its history, its program and the nodes that are alive.

What is open follows from the history. A program in memory has it folded already, and knows where its code waits; for any
other the history is read, and replayed if the code is here. Whoever has no code, as the command line, says less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.core import snapshots
from holdfast.core.events import EventSent, MessagePublished, SignalBroadcast
from holdfast.core.instants import Instant, to_datetime
from holdfast.core.lifecycle import CLOSED, Status
from holdfast.core.program import SignalPlace, Waits
from holdfast.core.publications import SubscriptionKind
from holdfast.core.turn import fold
from holdfast.engine.nodes.roster import NodeDetails, NodeState, read_details, to_node_info
from holdfast.engine.pending import (
    ActivityState,
    PendingActivity,
    PendingChild,
    PendingExternalSignal,
    PendingIncident,
    PendingPublication,
    PendingSubscription,
    PendingTask,
    PendingTimer,
    PendingWork,
    SignalInfo,
    show_failure,
    show_payload,
)
from holdfast.engine.rows import from_row, to_turns
from holdfast.engine.turns.outside_task import call_outside_task
from holdfast.engine.turns.snapshots import continues, first_to_read, may_have_snapshot, read_snapshot
from holdfast.engine.views import ExecutionInfo
from holdfast.errors import CorruptStore, HoldfastError, NewerFormat, UnknownWorkflow
from holdfast.store.contract import ExecutionFilter

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.core.events import ActivityScheduled, HistoryTurn, Subscribed
    from holdfast.core.execution import AttemptState, Execution, OpenActivity
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.engine.routes import Routes
    from holdfast.engine.turns.prefetch import HistoryPrefetch
    from holdfast.engine.turns.program_cache import LiveExecution, MakeProgram, ProgramCache
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow, HistoryRow

MOST_REPLAYED: Final = 2_000
"""How many events are replayed to find where code waits; with longer histories that is known of programs in memory only."""
_KINDS: Final[dict[type, SubscriptionKind]] = {
    MessagePublished: SubscriptionKind.MESSAGE,
    EventSent: SubscriptionKind.EVENT,
    SignalBroadcast: SubscriptionKind.BROADCAST,
}
MOST_CHILDREN: Final = 100
"""Of how many children the status is looked up, in one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisNode:
    """What an engine knows beside its store."""

    node: str
    cache: ProgramCache
    prefetch: HistoryPrefetch
    runner: ActivityRunner
    routes: Routes


@dataclass(frozen=True, slots=True)
class _Opened:
    """An execution with all that is open in it, as of one version of its row."""

    execution: Execution
    history_bytes: int
    waits: Waits | None


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What others say about an execution: who has its offers, who is alive, how its children are."""

    takers: Mapping[tuple[int, int], str | None] = field(default_factory=dict)
    """By number and attempt: the node that took an offer, or None while it is on offer."""
    living: Mapping[str, NodeDetails] = field(default_factory=dict)
    """What the living nodes announce, by name."""
    children: Mapping[str, ExecutionRow] = field(default_factory=dict)
    """The open children, by workflow id."""


async def add_pending(
    store: Store, info: ExecutionInfo, row: ExecutionRow, now: Instant, here: ThisNode | MakeProgram | None = None
) -> ExecutionInfo:
    """The info of an execution with what it waits for: as `here` knows it, an engine or the code alone, or only the store.

    A closed execution, and one that cannot be read, is left as it is.
    """
    if info.closed_at is not None:
        return info
    try:
        opened = await _open(store, row, here)
    except (CorruptStore, NewerFormat):
        return info  # that is shown where it is handled
    node = here if isinstance(here, ThisNode) else None
    around = await _look_around(store, opened.execution, now, node)
    found = _Describer(opened, around, node).describe()
    info = msgspec.structs.replace(
        info,
        pending=found,
        history_bytes=opened.history_bytes,
        last_signal=_find_last_signal(info, opened.execution),
        waiting_until=info.waiting_until or _find_earliest(found),
        nodes=_name_nodes(info, found),
    )
    if info.waiting_kind == "activity" and info.waiting_token is None and found.activities:
        first = found.activities[0]
        info = msgspec.structs.replace(info, waiting_token=f"{first.number}:{first.attempt}")
    return info


def _name_nodes(info: ExecutionInfo, found: PendingWork) -> tuple[str, ...]:
    """The nodes that run its activities: those that its row names, and those that took its offers, which it does not."""
    return tuple(dict.fromkeys([*info.nodes, *(one.node for one in found.activities if one.node is not None)]))


def _find_last_signal(info: ExecutionInfo, execution: Execution) -> SignalInfo | None:
    """The last signal with its place in the history, which the row does not keep."""
    last = info.last_signal
    return None if last is None else msgspec.structs.replace(last, sequence=execution.last_signal_sequence or None)


def _find_earliest(found: PendingWork) -> datetime | None:
    """When the first of the timers and retries comes due."""
    retries = [one.next_try for one in found.activities if one.next_try is not None]
    return min([*(one.due for one in found.timers), *retries], default=None)


# --- what is open ---


async def _open(store: Store, row: ExecutionRow, here: ThisNode | MakeProgram | None) -> _Opened:
    if isinstance(here, ThisNode):
        live = here.cache.get(row.execution_id)
        if live is not None and live.row is not None and _is_same(live.row, row):
            return _copy(live)
        if _may_replay(row) and (replayed := await _replay(row, here)) is not None:
            return replayed
    if may_have_snapshot(row) and (found := await _fold_from_snapshot(store, row)) is not None:
        return found
    execution = from_row(row)
    history = [one for one in await store.load_history(row.execution_id) if one.first <= row.sequence]
    turns = to_turns(history)
    fold(execution, turns)
    waits = None if here is None or isinstance(here, ThisNode) else _ask(here, execution, turns)
    return _Opened(execution, _count_bytes(history), waits)


async def _fold_from_snapshot(store: Store, row: ExecutionRow) -> _Opened | None:
    """What is open by the snapshot of an execution and the history behind it; None if its snapshot is of no use."""
    execution = from_row(row)
    snapshot = read_snapshot(await store.load_snapshot(row.execution_id), execution)
    if snapshot is None:
        return None
    read = await store.load_history(row.execution_id, first_to_read(snapshot))
    history = [one for one in read if one.first <= row.sequence]
    if not continues(snapshot, history):
        return None
    snapshots.restore(execution, snapshot.open)
    fold(execution, to_turns(history[1:]))
    return _Opened(execution, snapshot.history_bytes + _count_bytes(history[1:]), None)


def _ask(make_program: MakeProgram, execution: Execution, turns: Sequence[HistoryTurn]) -> Waits | None:
    """Where the code waits after a replay; None if it is not the execution's, or does not fit its history."""
    try:
        program = make_program(execution)
    except UnknownWorkflow:
        return None
    try:
        return program.find_waits() if call_outside_task(program.apply, turns) is None else None
    finally:
        program.close()


def _is_same(one: ExecutionRow, other: ExecutionRow) -> bool:
    return (one.state_version, one.updated_at) == (other.state_version, other.updated_at)


def _copy(live: LiveExecution) -> _Opened:
    """What is open by a program in memory, copied at once: its next turn changes it."""
    execution = live.execution
    copied = msgspec.structs.replace(
        execution,
        details=msgspec.structs.replace(execution.details, attempts=dict(execution.details.attempts)),
        activities=dict(execution.activities),
        timers=dict(execution.timers),
        timer_labels=dict(execution.timer_labels),
        children=dict(execution.children),
        externals=dict(execution.externals),
        tasks=dict(execution.tasks),
        subscriptions=dict(execution.subscriptions),
        publications=dict(execution.publications),
        incidents=dict(execution.incidents),
        running=set(execution.running),
    )
    return _Opened(copied, live.history_bytes, live.program.find_waits())


def _may_replay(row: ExecutionRow) -> bool:
    """Whether a history is short enough, and nothing is held against its execution."""
    if not 0 < row.sequence <= MOST_REPLAYED or row.status == Status.BLOCKED:
        return False
    details = from_row(row).details
    return not details.tries and not details.suspect


async def _replay(row: ExecutionRow, here: ThisNode) -> _Opened | None:
    """What is open after a replay; None if the code is not here, does not fit, or the execution has gone on meanwhile."""
    try:
        live = await here.prefetch.replay_to_look(row.org, row.execution_id)
    except HoldfastError:
        return None  # the next turn finds the same, and says so
    if live is None:
        return None
    try:
        is_same = live.row is not None and _is_same(live.row, row)
        return _Opened(live.execution, live.history_bytes, live.program.find_waits()) if is_same else None
    finally:
        live.program.close()


def _count_bytes(history: Sequence[HistoryRow]) -> int:
    return sum(len(one.body) for one in history)


# --- what others say ---


async def _look_around(store: Store, execution: Execution, now: Instant, here: ThisNode | None) -> _Surroundings:
    takers: dict[tuple[int, int], str | None] = {}
    living: dict[str, NodeDetails] = {}
    children: dict[str, ExecutionRow] = {}
    attempts = execution.details.attempts
    if any(one.offered for one in attempts.values()):
        takers = {(one.number, one.attempt): one.node for one in await store.list_offers(execution.execution_id)}
    if execution.activities and not (here is not None and store.exclusive):
        rows = await store.list_nodes()
        alive = [row for row in rows if to_node_info(row, now, has_ended=False).state is NodeState.ALIVE]
        living = {row.node: read_details(row) for row in alive}
    if execution.children:
        is_open = [status for status in Status if status not in CLOSED]
        query = ExecutionFilter(execution.org, is_open, parent_id=execution.execution_id, limit=MOST_CHILDREN)
        children = {row.workflow_id: row for row in await store.list_executions(query)}
    return _Surroundings(takers, living, children)


# --- how it is shown ---


class _Describer:
    """Makes values of what is open in one execution."""

    def __init__(self, opened: _Opened, around: _Surroundings, here: ThisNode | None) -> None:
        self._execution = opened.execution
        self._waits = opened.waits
        self._places: Mapping[int, str] = {} if opened.waits is None else opened.waits.places
        self._around = around
        self._here = here

    def describe(self) -> PendingWork:
        """Everything that the execution waits for."""
        execution, waits, places = self._execution, self._waits, self._places
        return PendingWork(
            activities=tuple(map(self._describe_activity, sorted(execution.activities))),
            timers=tuple(
                PendingTimer(
                    number=number,
                    due=to_datetime(due),
                    place=places.get(number),
                    label=execution.timer_labels.get(number, ""),
                )
                for number, due in sorted(execution.timers.items(), key=lambda timer: (timer[1], timer[0]))
            ),
            children=tuple(map(self._describe_child, sorted(execution.children))),
            signals=self._name_signals() if waits is None else waits.signals,
            external_signals=tuple(
                PendingExternalSignal(number=number, name=one.name, workflow_id=one.workflow_id, place=places.get(number))
                for number, one in sorted(execution.externals.items())
            ),
            tasks=tuple(
                PendingTask(
                    number=number,
                    task_id=one.event.task_id,
                    name=one.event.name,
                    due=None if one.event.due is None else to_datetime(one.event.due),
                    place=places.get(number),
                )
                for number, one in sorted(execution.tasks.items())
            ),
            subscriptions=tuple(map(self._describe_subscription, execution.subscriptions.values())),
            publications=tuple(
                PendingPublication(number=number, kind=_KINDS[type(one)], name=one.name, place=places.get(number))
                for number, one in sorted(execution.publications.items())
            ),
            incidents=tuple(
                PendingIncident(
                    number=number,
                    element=one.element,
                    element_name=one.element_name,
                    kind=one.kind,
                    message=one.message,
                )
                for number, one in sorted(execution.incidents.items())
            ),
            local_waits=() if waits is None else waits.local,
            is_code_known=waits is not None,
        )

    def _describe_subscription(self, one: Subscribed) -> PendingSubscription:
        return PendingSubscription(
            number=one.number,
            kind=one.kind,
            name=one.name,
            key=one.key,
            where={name: msgspec.json.decode(value) for name, value in one.where.items()},
            place=self._places.get(one.number),
            label=one.label,
        )

    def _name_signals(self) -> tuple[SignalPlace, ...]:
        """The signals that the row names: written by the last turn, if nothing ran then."""
        waiting = self._execution.details.waiting
        if waiting is None or waiting.kind != "signal":
            return ()
        return tuple(SignalPlace(name) for name in waiting.token.split(", "))

    def _describe_child(self, number: int) -> PendingChild:
        started = self._execution.children[number]
        row = self._around.children.get(started.workflow_id)
        return PendingChild(
            number=number,
            workflow=started.workflow,
            workflow_id=started.workflow_id,
            execution_id=started.execution_id if row is None else row.execution_id,
            status=None if row is None else Status(row.status),
            place=self._places.get(number),
            label=started.label,
        )

    def _describe_activity(self, number: int) -> PendingActivity:
        execution, here = self._execution, self._here
        activity, attempt = execution.activities[number], execution.attempt_of(number)
        node = self._find_node(number, attempt)
        running = None
        if here is not None and attempt.retry_at is None:
            running = here.runner.find_running(execution.execution_id, number, attempt.attempt)
        heartbeat = attempt.heartbeat if running is None else running.attempt.reported
        return PendingActivity(
            number=number,
            name=activity.event.name,
            queue=activity.event.options.queue,
            state=self._find_state(number, activity, attempt, node),
            attempt=attempt.attempt,
            failures=attempt.failures,
            scheduled_at=to_datetime(activity.scheduled_at),
            started_at=None if running is None else to_datetime(running.started_at),
            node=node,
            next_try=None if attempt.retry_at is None else to_datetime(attempt.retry_at),
            last_failure=None if attempt.failure is None else show_failure(attempt.failure, number),
            heartbeat=show_payload(heartbeat),
            place=self._places.get(number),
            label=activity.event.label,
            element="" if activity.event.options.job is None else activity.event.options.job.element,
        )

    def _find_node(self, number: int, attempt: AttemptState) -> str | None:
        if attempt.retry_at is not None:
            return None
        if attempt.offered:
            return self._around.takers.get((number, attempt.attempt))
        return self._execution.runner_of(number)

    def _find_state(self, number: int, activity: OpenActivity, attempt: AttemptState, node: str | None) -> ActivityState:
        here = self._here
        if attempt.retry_at is not None:
            return ActivityState.RETRYING
        if node is None:
            return ActivityState.WAITS_FOR_PLACE if self._is_offered(activity.event) else ActivityState.NOT_OFFERED
        if here is not None and node == here.node:
            is_waiting = here.runner.slots.is_waiting(self._execution.execution_id, number)
            return ActivityState.WAITS_FOR_PLACE if is_waiting else ActivityState.RUNNING
        return ActivityState.RUNNING if node in self._around.living else ActivityState.NODE_GONE

    def _is_offered(self, event: ActivityScheduled) -> bool:
        """Whether some living node has an activity and serves its queue."""
        if self._here is not None and self._here.routes.may_run(event):
            return True
        queue = event.options.queue
        return any(
            event.name in one.activities and (not one.queues or queue in one.queues) for one in self._around.living.values()
        )
