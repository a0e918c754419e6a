"""The committed rows and their indexes, and the changes of a transaction that are to join them.

Nothing here waits: one call is one statement, which sees everything committed at that moment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from holdfast.core.instants import Instant
from holdfast.core.lifecycle import CLOSED
from holdfast.store.definitions import DefinitionRow, ResourceRow
from holdfast.store.incidents import IncidentRow
from holdfast.store.matching import make_lookup, name_fields
from holdfast.store.pauses import PauseRow
from holdfast.store.publications import PendingRow, PublicationRow, StartSubscriptionRow, SubscriptionRow
from holdfast.store.rows import (
    START_KEY_KINDS,
    ActivityRow,
    DeadLetterRow,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    NodeRow,
    RequestKeyId,
    RequestRow,
    Route,
    TimerRow,
)
from holdfast.store.schedules import ScheduleKey, ScheduleRow
from holdfast.store.snapshots import SnapshotRow
from holdfast.store.tasks import TaskEventRow, TaskRow

K = TypeVar("K")
V = TypeVar("V")

Pair: TypeAlias = tuple[str, str]
"""An (org, workflow id) pair: two orgs may use the same id."""
Recipient: TypeAlias = tuple[str, str, str]
"""To whom an inbox row goes: (org, execution id, ""), or (org, "", workflow id)."""
PauseKey: TypeAlias = tuple[str, str, str]
"""(org, kind, name) of what is paused."""
NumberKey: TypeAlias = tuple[str, int]
"""(execution id, number) of a timer, an offer or a subscription."""
OrgKey: TypeAlias = tuple[str, str, str, int]
"""(org, kind, definition id, version) of a definition."""
Topic: TypeAlias = tuple[str, str, str]
"""(org, kind, name) of what is waited for, or published."""


class StoredSubscription(NamedTuple):
    """A subscription with its age: the oldest has the smallest id."""

    id: int
    row: SubscriptionRow

    @property
    def topic(self) -> Topic:
        """The kind and name under which it is found."""
        return self.row.org, self.row.kind, self.row.name

    @property
    def lookup(self) -> tuple[str, str]:
        """By what it is found there: its fields and their values, or its key."""
        return name_fields(self.row.where), make_lookup(self.row)


def is_closed(row: ExecutionRow) -> bool:
    return row.status in CLOSED


def may_take(route: Route, routes: Collection[Route] | None) -> bool:
    """Whether something goes by one of these routes."""
    return not route or routes is None or route in routes


def address_of(row: InboxRow) -> Recipient:
    return (row.org, row.execution_id, "" if row.execution_id else row.workflow_id)


class Changes:
    """What a transaction has written and not committed: seen by itself alone."""

    def __init__(self) -> None:
        self.executions: dict[str, ExecutionRow] = {}
        self.open_ids: dict[Pair, str] = {}
        self.histories: dict[str, list[HistoryRow]] = {}
        self.timers: dict[NumberKey, TimerRow | None] = {}
        self.offers: dict[NumberKey, ActivityRow | None] = {}
        self.taken: dict[NumberKey, str] = {}
        self.inbox: dict[int, InboxRow] = {}
        self.consumed: set[int] = set()
        self.failed: dict[int, int] = {}
        self.rerouted: dict[int, Route] = {}
        self.dead_letters: dict[int, DeadLetterRow] = {}
        self.discarded: set[int] = set()
        self.requests: dict[RequestKeyId, RequestRow] = {}
        self.tasks: dict[str, TaskRow] = {}
        self.task_events: list[TaskEventRow] = []
        self.subscriptions: dict[NumberKey, StoredSubscription | None] = {}
        self.pending: dict[int, PendingRow | None] = {}
        self.publications: dict[int, PublicationRow | None] = {}
        self.purged: set[str] = set()
        self.schedules: dict[ScheduleKey, ScheduleRow | None] = {}
        self.forgotten: list[RequestKeyId] = []
        self.values: dict[str, Any] | None = None
        self.pauses: dict[PauseKey, PauseRow | None] = {}
        self.settings: Instant | None = None
        self.incidents: dict[NumberKey, IncidentRow | None] = {}
        self.snapshots: dict[str, SnapshotRow | None] = {}
        self.definitions: dict[OrgKey, DefinitionRow | None] = {}
        self.resources: dict[Pair, ResourceRow | None] = {}
        self.deployed_starts: list[StartSubscriptionRow] | None = None

    def put_execution(self, row: ExecutionRow) -> None:
        self.executions[row.execution_id] = row
        _index_open(self.open_ids, row)


class Tables:
    """Every committed row. Rows are immutable; a change replaces them."""

    def __init__(self) -> None:
        self.executions: dict[str, ExecutionRow] = {}
        self.histories: dict[str, list[HistoryRow]] = {}
        self.timers: dict[str, dict[int, TimerRow]] = {}
        self.offers: dict[NumberKey, ActivityRow] = {}  # the oldest first
        self.inbox: dict[int, InboxRow] = {}
        self.dead_letters: dict[int, DeadLetterRow] = {}
        self.requests: dict[RequestKeyId, RequestRow] = {}
        self.nodes: dict[str, NodeRow] = {}
        self.host_locks: dict[str, tuple[str, Instant]] = {}
        self.in_flight: dict[tuple[str, int], dict[str, int]] = {}
        self.input_schemas: dict[str, bytes] = {}
        self.questions: dict[str, Any] = {}
        self.tasks: dict[str, TaskRow] = {}
        self.task_events: dict[str, list[TaskEventRow]] = {}
        self.schedules: dict[ScheduleKey, ScheduleRow] = {}
        self.values: dict[str, Any] = {}
        self.pauses: dict[PauseKey, PauseRow] = {}
        self.settings: list[int] = [0]
        self.pause_ends: dict[PauseKey, Instant] = {}
        self.incidents: dict[str, dict[int, IncidentRow]] = {}
        self.snapshots: dict[str, SnapshotRow] = {}
        self.definitions: dict[OrgKey, DefinitionRow] = {}
        self.resources: dict[Pair, ResourceRow] = {}
        self.subscriptions: dict[NumberKey, StoredSubscription] = {}
        self.pending: dict[int, PendingRow] = {}
        self.publications: dict[int, PublicationRow] = {}
        self.starts: dict[str, list[StartSubscriptionRow]] = {}
        """By the node that offers them; those of deployments under no name."""
        # Indexes, each derived from the above:
        self.open_ids: dict[Pair, str] = {}
        self.runs: dict[Pair, dict[str, None]] = {}
        self.closed: list[tuple[Instant, str]] = []
        self.due: list[tuple[Instant, str, int]] = []
        self.offered: dict[str, set[int]] = {}
        self.arrivals: list[int] = []
        self.addressed: dict[Recipient, set[int]] = {}
        self.task_ids: dict[str, dict[int, str]] = {}
        self.subscribed: dict[Topic, dict[tuple[str, str], dict[NumberKey, None]]] = {}
        self.subscribed_by: dict[str, dict[int, None]] = {}
        self.kept_under: dict[Topic, dict[int, None]] = {}
        self.kept_for: dict[str, dict[int, None]] = {}
        self.kept_starts: dict[Pair, dict[int, None]] = {}

    @staticmethod
    def no_changes() -> Changes:
        """For who sees what is committed alone."""
        return Changes()

    def apply(self, changes: Changes) -> None:
        """A commit: all of it at once. Updates come before inserts, so that a workflow id is freed before it is taken."""
        for row in changes.executions.values():
            if row.execution_id in self.executions:
                self._put_execution(row)
        for row in changes.executions.values():
            if row.execution_id not in self.executions:
                self._put_execution(row)
        for execution_id, turns in changes.histories.items():
            self.histories.setdefault(execution_id, []).extend(turns)
        for key, timer in changes.timers.items():
            self._put_timer(key, timer)
        for key, offer in changes.offers.items():
            self._put_offer(key, offer)
        for key, node in changes.taken.items():
            self.offers[key] = msgspec.structs.replace(self.offers[key], node=node)
        for task in changes.tasks.values():
            self.tasks[task.task_id] = task
            self.task_ids.setdefault(task.execution_id, {})[task.number] = task.task_id
        for event in changes.task_events:
            self.task_events.setdefault(event.task_id, []).append(event)
        for key, subscription in changes.subscriptions.items():
            self._put_subscription(key, subscription)
        for row_id, kept in changes.pending.items():
            self._put_pending(row_id, kept)
        for row_id, publication in changes.publications.items():
            self.publications.pop(row_id, None)
            if publication is not None:
                self.publications[row_id] = publication
        self._apply_repairs(changes)
        self._apply_inbox(changes)
        self._apply_unrouted(changes)

    def save(self) -> SavedTables:
        """Everything that is committed, as a backup has it."""
        return SavedTables({name: _copy(getattr(self, name)) for name in Tables().__dict__})

    def restore(self, saved: SavedTables) -> None:
        """Go back to what was saved."""
        for name, content in saved.contents.items():
            setattr(self, name, _copy(content))

    def _apply_repairs(self, changes: Changes) -> None:
        for execution_id, snapshot in changes.snapshots.items():
            _replace(self.snapshots, execution_id, snapshot)
        for (execution_id, number), incident in changes.incidents.items():
            self._put_incident(execution_id, number, incident)

    def _apply_inbox(self, changes: Changes) -> None:
        for row_id in changes.consumed:
            self._take_arrival(row_id)
        for arrival in changes.inbox.values():
            self._put_arrival(arrival)
        for row_id, times in changes.failed.items():
            if row_id in self.inbox:
                failed = self.inbox[row_id]
                self.inbox[row_id] = msgspec.structs.replace(failed, attempts=failed.attempts + times)
        for row_id, route in changes.rerouted.items():
            if row_id in self.inbox:
                self.inbox[row_id] = msgspec.structs.replace(self.inbox[row_id], route=route)

    def _apply_unrouted(self, changes: Changes) -> None:
        for row_id in changes.discarded:
            self.dead_letters.pop(row_id, None)
        self.dead_letters.update(changes.dead_letters)
        self.requests.update(changes.requests)
        for place, schedule in changes.schedules.items():
            _replace(self.schedules, place, schedule)
        for definition_key, definition in changes.definitions.items():
            _replace(self.definitions, definition_key, definition)
        for pair, resource in changes.resources.items():
            _replace(self.resources, pair, resource)
        if changes.deployed_starts is not None:
            self.starts[""] = changes.deployed_starts
        if changes.purged:
            self._purge(changes.purged)
        for key in changes.forgotten:
            self.requests.pop(key, None)
        if changes.values is not None:
            self.values = changes.values
        if changes.settings is not None:
            self._change_pauses(changes.pauses, changes.settings)

    def _change_pauses(self, pauses: dict[PauseKey, PauseRow | None], at: Instant) -> None:
        for key, pause in pauses.items():
            self.pauses.pop(key, None)
            if pause is not None:
                self.pauses[key] = pause
            else:
                self.pause_ends[key] = at
        self.settings = [max(self.settings[0] + 1, at)]

    def _put_execution(self, row: ExecutionRow) -> None:
        old = self.executions.get(row.execution_id)
        if old is not None:
            self._forget_closing(old)
        self.executions[row.execution_id] = row
        self.runs.setdefault((row.org, row.workflow_id), {}).setdefault(row.execution_id)
        _index_open(self.open_ids, row)
        if is_closed(row) and row.closed_at is not None:
            insort(self.closed, (row.closed_at, row.execution_id))

    def _forget_closing(self, row: ExecutionRow) -> None:
        if is_closed(row) and row.closed_at is not None:
            del self.closed[bisect_left(self.closed, (row.closed_at, row.execution_id))]

    def _purge(self, execution_ids: Collection[str]) -> None:
        open_ids: dict[str, str | None] = {}
        for execution_id in execution_ids:
            row = self.executions.pop(execution_id)
            self._forget_closing(row)
            self.histories.pop(execution_id, None)
            for task_id in self.task_ids.pop(execution_id, {}).values():
                del self.tasks[task_id], self.task_events[task_id]
            for number in list(self.subscribed_by.get(execution_id, ())):
                self._put_subscription((execution_id, number), None)
            self.snapshots.pop(execution_id, None)
            self.incidents.pop(execution_id, None)
            pair = (row.org, row.workflow_id)
            open_ids[execution_id] = self.open_ids.get(pair)
            del self.runs[pair][execution_id]
            if not self.runs[pair]:
                del self.runs[pair]
        for key, request in [one for one in self.requests.items() if one[1].execution_id in open_ids]:
            open_id = open_ids[request.execution_id]
            if open_id is None:
                del self.requests[key]
            elif request.kind in START_KEY_KINDS:
                self.requests[key] = msgspec.structs.replace(request, execution_id=open_id)

    def _put_offer(self, key: NumberKey, offer: ActivityRow | None) -> None:
        """What takes the place of another offer is new, so it goes to the end."""
        execution_id, number = key
        self.offers.pop(key, None)
        numbers = self.offered.setdefault(execution_id, set())
        numbers.discard(number)
        if offer is not None:
            self.offers[key] = offer
            numbers.add(number)
        elif not numbers:
            del self.offered[execution_id]

    def _put_subscription(self, key: NumberKey, subscription: StoredSubscription | None) -> None:
        execution_id, number = key
        old = self.subscriptions.pop(key, None)
        if old is not None:
            lookups = self.subscribed[old.topic]
            del lookups[old.lookup][key]
            if not lookups[old.lookup]:
                del lookups[old.lookup]
            del self.subscribed_by[execution_id][number]
        if subscription is not None:
            self.subscriptions[key] = subscription
            self.subscribed.setdefault(subscription.topic, {}).setdefault(subscription.lookup, {})[key] = None
            self.subscribed_by.setdefault(execution_id, {})[number] = None
        elif not self.subscribed_by.get(execution_id):
            self.subscribed_by.pop(execution_id, None)

    def _put_incident(self, execution_id: str, number: int, incident: IncidentRow | None) -> None:
        _replace(self.incidents.setdefault(execution_id, {}), number, incident)
        if not self.incidents[execution_id]:
            del self.incidents[execution_id]

    def _put_pending(self, row_id: int, kept: PendingRow | None) -> None:
        old = self.pending.pop(row_id, None)
        if old is not None:
            for index, key in self._list_kept_keys(old):
                del index[key][row_id]
                if not index[key]:
                    del index[key]
        if kept is not None:
            self.pending[row_id] = kept
            for index, key in self._list_kept_keys(kept):
                index.setdefault(key, {})[row_id] = None

    def _list_kept_keys(self, row: PendingRow) -> Iterator[tuple[dict[Any, dict[int, None]], Any]]:
        """The indexes that lead to what is kept, with its key in each."""
        yield self.kept_under, (row.org, row.kind, row.name)
        if row.target:
            yield self.kept_for, row.target
        if row.start is not None:
            yield self.kept_starts, (row.org, row.start.workflow_id)

    def _put_timer(self, key: NumberKey, timer: TimerRow | None) -> None:
        execution_id, number = key
        of_execution = self.timers.setdefault(execution_id, {})
        old = of_execution.pop(number, None)
        if old is not None:
            del self.due[bisect_left(self.due, (old.due, execution_id, number))]
        if timer is not None:
            of_execution[number] = timer
            insort(self.due, (timer.due, execution_id, number))
        elif not of_execution:
            del self.timers[execution_id]

    def _put_arrival(self, row: InboxRow) -> None:
        self.inbox[row.id] = row
        insort(self.arrivals, row.id)
        self.addressed.setdefault(address_of(row), set()).add(row.id)

    def _take_arrival(self, row_id: int) -> None:
        row = self.inbox.pop(row_id, None)
        if row is None:
            return
        del self.arrivals[bisect_left(self.arrivals, row_id)]
        address = address_of(row)
        self.addressed[address].discard(row_id)
        if not self.addressed[address]:
            del self.addressed[address]


class SavedTables(msgspec.Struct, frozen=True):
    """The contents of all tables at one moment, by their names."""

    contents: dict[str, Any]


def _copy(content: Any) -> Any:
    """The containers anew, and the same rows in them: rows never change."""
    if isinstance(content, dict):
        return {key: _copy(value) for key, value in content.items()}
    return content.copy() if isinstance(content, list | set) else content


def _replace(table: dict[K, V], key: K, value: V | None) -> None:
    """Put a row in the place of the one before; None removes that."""
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


class View:
    """What one statement sees: what is committed, and over it the transaction's own changes."""

    def __init__(self, tables: Tables, changes: Changes) -> None:
        self._tables = tables
        self._changes = changes

    def execution(self, execution_id: str) -> ExecutionRow | None:
        return self._changes.executions.get(execution_id) or self._tables.executions.get(execution_id)

    def open_id(self, pair: Pair) -> str | None:
        own = self._changes.open_ids.get(pair)
        if own is not None:
            return own
        execution_id = self._tables.open_ids.get(pair)
        return None if execution_id in self._changes.executions else execution_id

    def latest(self, pair: Pair) -> ExecutionRow | None:
        """The execution of a workflow id that was inserted last: the open one, if there is one."""
        own = [row for row in self._changes.executions.values() if (row.org, row.workflow_id) == pair]
        inserted = [row for row in own if row.execution_id not in self._tables.executions]
        if inserted:
            return inserted[-1]
        runs = self._tables.runs.get(pair)
        return self.execution(next(reversed(runs))) if runs else None

    def history(self, execution_id: str, after: int) -> list[HistoryRow]:
        rows = self._tables.histories.get(execution_id, [])
        rows = rows[bisect_right(rows, after, key=lambda row: row.first) :]
        return rows + [row for row in self._changes.histories.get(execution_id, ()) if row.first > after]

    def request(self, key: RequestKeyId) -> RequestRow | None:
        return self._changes.requests.get(key) or self._tables.requests.get(key)

    def task_id(self, execution_id: str, number: int) -> str | None:
        """The id of a human task by its number."""
        place = (execution_id, number)
        own = (one.task_id for one in self._changes.tasks.values() if (one.execution_id, one.number) == place)
        return next(own, None) or self._tables.task_ids.get(execution_id, {}).get(number)

    def task(self, task_id: str) -> TaskRow | None:
        return self._changes.tasks.get(task_id) or self._tables.tasks.get(task_id)

    def inbox_for(self, addresses: Iterable[Recipient]) -> list[InboxRow]:
        """What waits at these addresses, in the order of ids."""
        wanted = set(addresses)
        consumed, inbox = self._changes.consumed, self._tables.inbox
        found = [
            self._rerouted(inbox[row_id])
            for address in wanted
            for row_id in self._tables.addressed.get(address, ())
            if row_id not in consumed
        ]
        found.extend(row for row in self._changes.inbox.values() if address_of(row) in wanted)
        found.sort(key=lambda row: row.id)
        return found

    def inbox_rows(self, ids: Iterable[int]) -> list[InboxRow]:
        """The inbox rows with these ids; one that is gone is left out."""
        own, stored, consumed = self._changes.inbox, self._tables.inbox, self._changes.consumed
        rows = (own.get(row_id) or (None if row_id in consumed else stored.get(row_id)) for row_id in ids)
        return [row for row in rows if row is not None]

    def _rerouted(self, row: InboxRow) -> InboxRow:
        route = self._changes.rerouted.get(row.id)
        return row if route is None else msgspec.structs.replace(row, route=route)

    def due_timers(self, execution_ids: Iterable[str], due_until: Instant) -> list[TimerRow]:
        """The timers of these executions that are due, in due order."""
        wanted = set(execution_ids)
        own = self._changes.timers
        found = [
            timer
            for execution_id in wanted
            for number, timer in self._tables.timers.get(execution_id, {}).items()
            if timer.due <= due_until and (execution_id, number) not in own
        ]
        found.extend(
            timer
            for (execution_id, _), timer in own.items()
            if timer is not None and timer.due <= due_until and execution_id in wanted
        )
        found.sort(key=lambda timer: (timer.due, timer.execution_id, timer.number))
        return found

    def timer_numbers(self, execution_id: str) -> list[int]:
        """Every timer of an execution, due or not."""
        own = [number for key, number in self._changes.timers if key == execution_id]
        return [*self._tables.timers.get(execution_id, ()), *own]

    def offer_numbers(self, execution_id: str) -> list[int]:
        """Every activity of an execution that is offered, taken or not."""
        own = [number for key, number in self._changes.offers if key == execution_id]
        return [*sorted(self._tables.offered.get(execution_id, ())), *own]

    def is_free(self, key: NumberKey) -> bool:
        """Whether an activity is on offer, and no node has it."""
        offer = self._tables.offers.get(key)
        return offer is not None and offer.node is None

    # --- subscriptions, and what is published ---

    def subscription(self, key: NumberKey) -> StoredSubscription | None:
        own = self._changes.subscriptions
        return own[key] if key in own else self._tables.subscriptions.get(key)

    def subscription_keys(self, execution_id: str) -> list[NumberKey]:
        """The keys of all subscriptions of an execution."""
        own = [key for key in self._changes.subscriptions if key[0] == execution_id]
        return [*((execution_id, number) for number in self._tables.subscribed_by.get(execution_id, ())), *own]

    def subscriptions_of(self, execution_id: str) -> list[StoredSubscription]:
        """The subscriptions of an execution, the oldest first."""
        found = (self.subscription(key) for key in dict.fromkeys(self.subscription_keys(execution_id)))
        return sorted((one for one in found if one is not None), key=lambda one: one.id)

    def count_of_org(self, org: str, now: Instant = 0) -> tuple[int, int]:
        """How many subscriptions an org has, and how many items it keeps that have not expired."""
        subscriptions = {**self._tables.subscriptions, **self._changes.subscriptions}.values()
        pending = {**self._tables.pending, **self._changes.pending}.values()
        return (
            sum(one is not None and one.row.org == org for one in subscriptions),
            sum(row is not None and row.org == org and row.expires_at > now for row in pending),
        )

    def subscriptions_under(self, org: str, kind: str, name: str, fields: str, lookup: str) -> list[StoredSubscription]:
        """The subscriptions that are found by a look into the index, the oldest first."""
        topic, own = (org, kind, name), self._changes.subscriptions
        keys = self._tables.subscribed.get(topic, {}).get((fields, lookup), ())
        found = [self._tables.subscriptions[key] for key in keys if key not in own]
        found += [one for one in own.values() if one is not None and (one.topic, one.lookup) == (topic, (fields, lookup))]
        return sorted(found, key=lambda one: one.id)

    def shapes(self, org: str, name: str) -> list[str]:
        """By which fields those who wait for an event select it."""
        own = [one for one in self._changes.subscriptions.values() if one is not None and one.topic == (org, "event", name)]
        committed = self._tables.subscribed.get((org, "event", name), ())
        return sorted({fields for fields, _ in (*committed, *(one.lookup for one in own))})

    def pending_named(self, org: str, kind: str, name: str) -> list[PendingRow]:
        """What is kept under a name, by age."""
        own, topic = self._changes.pending, (org, kind, name)
        found = [self._tables.pending[key] for key in self._tables.kept_under.get(topic, ()) if key not in own]
        found += [row for row in own.values() if row is not None and (row.org, row.kind, row.name) == topic]
        return sorted(found, key=lambda row: row.id)

    def all_publications(self) -> list[PublicationRow]:
        """Everything that is to be published, or has yet to reach subscribers, by age."""
        found = {**self._tables.publications, **self._changes.publications}
        return [row for _, row in sorted(found.items()) if row is not None]

    def waiting_addresses(self, routes: Collection[Route] | None) -> Iterator[Recipient]:
        """To whom inbox rows on these routes go, the oldest first, repeatedly where several go to one."""
        committed = (self._tables.inbox[row_id] for row_id in self._tables.arrivals if row_id not in self._changes.consumed)
        for row in chain(map(self._rerouted, committed), self._changes.inbox.values()):
            if may_take(row.route, routes):
                yield address_of(row)

    def due_addresses(self, due_until: Instant, routes: Collection[Route] | None) -> Iterator[Recipient]:
        """Whose timers on these routes are due, the earliest first, repeatedly where several are of one."""
        for due, execution_id, number in self._tables.due:
            if due > due_until:
                return
            timer = self._tables.timers[execution_id][number]
            if (execution_id, number) not in self._changes.timers and may_take(timer.route, routes):
                yield (timer.org, execution_id, "")


def _index_open(open_ids: dict[Pair, str], row: ExecutionRow) -> None:
    pair = (row.org, row.workflow_id)
    if not is_closed(row):
        open_ids[pair] = row.execution_id
    elif open_ids.get(pair) == row.execution_id:
        del open_ids[pair]
