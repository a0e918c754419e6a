"""What a store must not hold: rows that contradict each other, and bytes that nobody can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from holdfast.core.codec import decode_details, decode_envelope, decode_events
from holdfast.core.instants import SECOND
from holdfast.core.safe_texts import count_noun
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.definition_findings import (
    DefinitionFound,
    SnapshotFound,
    check_definition,
    check_incident,
    check_resource,
    check_snapshot,
)
from holdfast.store.findings import (
    Finding,
    Findings,
    KeptRow,
    WaitRow,
    check_kept,
    check_pauses,
    check_publication,
    check_request,
    check_schedule,
    check_subscription,
    check_task,
    check_task_event,
    describe_unreadable,
    split_findings,
)
from holdfast.store.matching import make_lookup, name_fields
from holdfast.store.memory.pauses import read_settings
from holdfast.store.memory.tables import Pair, Tables, is_closed
from holdfast.store.publication_columns import write_mapping
from holdfast.store.publications import PendingRow, SubscriptionRow
from holdfast.store.rows import ActivityRow, ExecutionRow, HistoryRow, InboxRow, TimerRow
from holdfast.store.tasks import list_keys

DAY: Final = 24 * 3600 * SECOND


def check_tables(tables: Tables) -> Findings:
    """Everything that is wrong, and everything that is newer."""
    problems: list[Finding] = []
    for row in tables.executions.values():
        problems.extend(check_execution(row, tables.histories.get(row.execution_id, [])))
    problems.extend(check_open_ids(tables.executions.values()))
    nobodys = sorted(tables.histories.keys() - tables.executions.keys())
    problems.extend(f"execution {execution_id}: it has a history and no row" for execution_id in nobodys)
    timers = (timer for of_execution in tables.timers.values() for timer in of_execution.values())
    problems.extend(check_timers(timers, tables))
    problems.extend(check_offers(tables.offers.values(), tables))
    problems.extend(check_tasks(tables))
    for request in tables.requests.values():
        problems.extend(check_request(request.org, request.kind, request.key, request.answer))
    problems.extend(check_inbox(tables.inbox.values()))
    for one in tables.schedules.values():
        problems.extend(check_schedule(one.org, one.schedule_id, one.state, one.due, one.details))
    problems.extend(check_pauses(read_settings(tables)))
    problems.extend(check_subscriptions((one.row for one in tables.subscriptions.values()), tables))
    for kept in tables.pending.values():
        problems.extend(check_kept(describe_kept(kept, tables)))
    for waiting in tables.publications.values():
        problems.extend(check_publication(waiting.id, waiting.body, write_mapping(waiting.fields), None))
    problems.extend(check_definitions(tables))
    problems.extend(check_repairable(tables))
    return split_findings(problems)


def check_execution(row: ExecutionRow, history: Sequence[HistoryRow]) -> Iterator[Finding]:
    name = f"execution {row.execution_id}"
    expected = 1
    for turn in history:
        if turn.first != expected:
            yield f"{name}: expected event {expected} next in its history, found {turn.first}"
        expected = turn.first + turn.count
        try:
            events = decode_events(turn.body, turn.schema)
        except (CorruptStore, NewerFormat) as error:
            yield describe_unreadable(f"{name}: turn {turn.first}", error)
            continue
        if len(events) != turn.count:
            yield f"{name}: turn {turn.first} holds {count_noun(len(events), 'event')}, its count says {turn.count}"
    if expected - 1 != row.sequence:
        yield f"{name}: its history ends at {expected - 1}, its row says {row.sequence}"
    if is_closed(row) != (row.closed_at is not None):
        yield f"{name}: it is {row.status}, and its time of closing is {row.closed_at}"
    try:
        decode_details(row.details)
    except (CorruptStore, NewerFormat) as error:
        yield describe_unreadable(name, error)


def check_open_ids(rows: Iterable[ExecutionRow]) -> Iterator[Finding]:
    seen: dict[Pair, str] = {}
    for row in rows:
        if is_closed(row):
            continue
        other = seen.setdefault((row.org, row.workflow_id), row.execution_id)
        if other != row.execution_id:
            yield f"workflow id '{row.workflow_id}' of org '{row.org}' is open twice: {other} and {row.execution_id}"


def check_timers(timers: Iterable[TimerRow], tables: Tables) -> Iterator[Finding]:
    for timer in timers:
        row = tables.executions.get(timer.execution_id)
        if row is None:
            yield f"timer {timer.number} of execution {timer.execution_id}: there is no such execution"
        elif is_closed(row):
            yield f"timer {timer.number} of execution {timer.execution_id}: the execution is {row.status}"


def check_offers(offers: Iterable[ActivityRow], tables: Tables) -> Iterator[Finding]:
    for offer in offers:
        row = tables.executions.get(offer.execution_id)
        if row is None:
            yield f"offered activity {offer.number} of execution {offer.execution_id}: there is no such execution"
        elif is_closed(row):
            yield f"offered activity {offer.number} of execution {offer.execution_id}: the execution is {row.status}"


def check_tasks(tables: Tables) -> Iterator[Finding]:
    """Here tasks are found by their rows themselves."""
    for task in tables.tasks.values():
        status, closed_at = _find_end(tables, task.execution_id)
        yield from check_task(task, status, closed_at, msgspec.json.encode(list_keys(task)).decode())
    for events in tables.task_events.values():
        for event in events:
            yield from check_task_event(event)


def _find_end(tables: Tables, execution_id: str) -> tuple[str | None, int | None]:
    """The status of an execution and when it ended; None for both if there is none."""
    row = tables.executions.get(execution_id)
    return (None, None) if row is None else (str(row.status), row.closed_at)


def check_definitions(tables: Tables) -> Iterator[Finding]:
    named = {(row.org, row.digest) for row in tables.definitions.values()}
    for row in tables.definitions.values():
        has_resource = (row.org, row.digest) in tables.resources
        yield from check_definition(
            DefinitionFound(row.org, *row.key, row.digest, row.state, row.changed, row.details, has_resource),
            tables.settings[0],
        )
    for key, resource in tables.resources.items():
        yield from check_resource(resource, is_named=key in named)


def check_repairable(tables: Tables) -> Iterator[Finding]:
    for rows in tables.incidents.values():
        for one in rows.values():
            row = tables.executions.get(one.execution_id)
            is_of_org = row is None or row.org == one.org
            yield from check_incident(*one.key, *_find_end(tables, one.execution_id), is_of_org)
    for snapshot in tables.snapshots.values():
        row = tables.executions.get(snapshot.execution_id)
        yield from check_snapshot(
            SnapshotFound(
                snapshot.execution_id,
                snapshot.sequence,
                snapshot.schema,
                snapshot.body,
                *_find_end(tables, snapshot.execution_id),
                None if row is None else row.sequence,
                row is None or row.org == snapshot.org,
            )
        )


def check_inbox(rows: Iterable[InboxRow]) -> Iterator[Finding]:
    for row in rows:
        try:
            decode_envelope(row.body)
        except (CorruptStore, NewerFormat) as error:
            yield describe_unreadable(f"envelope {row.id}", error)


def check_subscriptions(subscriptions: Iterable[SubscriptionRow], tables: Tables) -> Iterator[Finding]:
    """Here they are found by their rows themselves."""
    for one in subscriptions:
        status, closed_at = _find_end(tables, one.execution_id)
        found_by = (name_fields(one.where), make_lookup(one))
        yield from check_subscription(
            WaitRow(one.execution_id, one.number, status, closed_at, write_mapping(one.where), one.key, *found_by)
        )


def describe_kept(kept: PendingRow, tables: Tables) -> KeptRow:
    """What a check reads of it; here its fields are found in the row itself."""
    status, closed_at = _find_end(tables, kept.target)
    is_overdue = any(
        one.started_at < one.seen_at - DAY and kept.expires_at < one.seen_at - DAY for one in tables.nodes.values()
    )
    return KeptRow(kept.id, kept.body, kept.target, status, closed_at, is_overdue, "{}", None)
