"""What is read without claiming anything: by transactions, and outside of them by the reader's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import to_builtins

from holdfast.core.instants import Instant
from holdfast.filters.syntax import Attribute, Column
from holdfast.store.columns import to_execution_row
from holdfast.store.contract import ExecutionFilter
from holdfast.store.filter_sql import Dialect, compile_condition
from holdfast.store.listing import (
    FEW,
    Lead,
    add_walk_end,
    choose_lead,
    choose_selection,
    find_bounds,
    find_pair,
    find_value_bounds,
    is_past_values,
    list_probes,
    make_page,
    make_rest,
    narrow,
    needs_counts,
    to_status_counts,
    turn_round,
)
from holdfast.store.rows import (
    BacklogRow,
    Counts,
    DeadLetterRow,
    ExecutionPage,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    RequestKeyId,
    RequestRow,
    Route,
    StatusCounts,
    Waiting,
)
from holdfast.store.selections import Selection, list_selections, to_columns
from holdfast.store.sqlite.statements import SQL, as_json
from holdfast.store.stale import StaleExecutions, StaleQuery, StaleTasks, to_stale_executions, to_stale_tasks

_PROBES: Final = {Lead.PREFIX: "probe_prefix", Lead.END: "probe_closed"}
_DIALECT: Final = Dialect("attributes INDEXED BY attributes_by_execution", ":org", lambda number, _value: f":w{number}")


# --- one thing ------------------------------------------------------------------------------------------------------------


def find_execution(connection: sqlite3.Connection, org: str, execution_id: str) -> ExecutionRow | None:
    row = connection.execute(SQL["find_execution"], (org, execution_id)).fetchone()
    return None if row is None else to_execution_row(row)


def count_waiting(connection: sqlite3.Connection, execution_ids: Iterable[str], limit: int) -> dict[str, int]:
    """How many inbox rows wait for each of these execution ids, counted up to a limit."""
    counted = ((key, connection.execute(SQL["count_waiting"], (key, limit)).fetchone()[0]) for key in execution_ids)
    return {key: number for key, number in counted if number}


def find_latest(connection: sqlite3.Connection, org: str, workflow_id: str) -> ExecutionRow | None:
    row = connection.execute(SQL["read_latest"], (org, workflow_id)).fetchone()
    return None if row is None else to_execution_row(row)


def find_requests(
    connection: sqlite3.Connection, keys: Collection[RequestKeyId], now: Instant
) -> dict[RequestKeyId, RequestRow]:
    found = ((key, connection.execute(SQL["read_request"], (*key, now)).fetchone()) for key in keys)
    return {key: RequestRow(*row) for key, row in found if row is not None}


def find_next_due(connection: sqlite3.Connection, skip: Collection[str], routes: Collection[Route] | None) -> Instant | None:
    if routes is None:
        row = connection.execute(SQL["find_next_due"], (as_json(list(skip)),)).fetchone()
    else:
        values = {"skip": as_json(list(skip)), "routes": as_json(list(routes))}
        row = connection.execute(SQL["find_next_due_on_routes"], values).fetchone()
    return None if row is None else int(row[0])


def find_oldest_closed(connection: sqlite3.Connection) -> Instant | None:
    (closed_at,) = connection.execute(SQL["find_oldest_closed"]).fetchone()
    return None if closed_at is None else int(closed_at)


def find_oldest_dead_letter(connection: sqlite3.Connection) -> Instant | None:
    row = connection.execute(SQL["find_oldest_dead_letter"]).fetchone()
    return None if row is None else int(row[0])


# --- histories ------------------------------------------------------------------------------------------------------------


def read_histories(connection: sqlite3.Connection, after: Mapping[str, int]) -> dict[str, list[HistoryRow]]:
    """The history of each execution behind the sequence given."""
    histories: dict[str, list[HistoryRow]] = {execution_id: [] for execution_id in after}
    for row in connection.execute(SQL["read_events"], (as_json(dict(after)),)):
        histories[row[0]].append(HistoryRow(*row))
    return histories


def load_history(connection: sqlite3.Connection, execution_id: str, after: int, limit: int | None) -> list[HistoryRow]:
    values = {"execution_id": execution_id, "after": after, "limit": -1 if limit is None else limit}
    return [HistoryRow(*row) for row in connection.execute(SQL["read_events_page"], values)]


def load_last_turn(connection: sqlite3.Connection, execution_id: str) -> HistoryRow | None:
    row = connection.execute(SQL["read_last_events"], (execution_id,)).fetchone()
    return None if row is None else HistoryRow(*row)


# --- lists ----------------------------------------------------------------------------------------------------------------


def list_executions(connection: sqlite3.Connection, query: ExecutionFilter) -> list[ExecutionRow]:
    """By whichever index leads to the fewest rows."""
    return search_executions(connection, query).rows


def search_executions(connection: sqlite3.Connection, query: ExecutionFilter) -> ExecutionPage:
    if query.order.field is Column.CREATED:
        return _search(connection, query)
    rows: list[ExecutionRow] = []
    if not is_past_values(query):
        page = _search(connection, query)
        if page.end is not None:
            return page
        rows = page.rows
    rest = _search(connection, make_rest(query, len(rows)))
    return ExecutionPage([*rows, *rest.rows], rest.end)


def _search(connection: sqlite3.Connection, query: ExecutionFilter) -> ExecutionPage:
    """A page by one index: in the order of a value, what has none is left out."""
    query = narrow(query)
    lead, values = _prepare_list(connection, query)
    found = compile_condition(query.where, _DIALECT)
    for number, value in enumerate(found.values, 1):
        values[f"w{number}"] = value
    direct = str if query.order.is_descending else turn_round
    rows = [to_execution_row(row) for row in connection.execute(direct(found.place_in(SQL[lead])), values)]
    page = make_page(query, rows)
    if page.end is None and lead.walk_end is not None and query.scan is not None:
        end = connection.execute(direct(SQL[lead.walk_end]), values).fetchone()
        if end is not None:
            page = ExecutionPage(rows, *end)
    return page


def count_executions(connection: sqlite3.Connection, query: ExecutionFilter) -> StatusCounts:
    query = narrow(query)
    lead, values = _prepare_list(connection, query)
    found = compile_condition(query.where, _DIALECT)
    values |= {f"w{number}": value for number, value in enumerate(found.values, 1)}
    statement = found.place_in(SQL[f"count_{lead}"])
    if lead.walk_end is not None and query.scan is not None:
        statement = add_walk_end(statement, SQL[lead.walk_end], ":limit")
    return to_status_counts(connection.execute(statement, values))


def _prepare_list(connection: sqlite3.Connection, query: ExecutionFilter) -> tuple[Lead, dict[str, Any]]:
    """The index that leads, and what its statement takes."""
    values = to_builtins(find_bounds(query))
    values |= {"org": query.org, "workflow": query.workflow, "workflow_id": query.workflow_id, "parent_id": query.parent_id}
    values |= {"limit": query.limit, "scan": -1 if query.scan is None else query.scan, "most": FEW + 1}
    values["metadata"] = as_json(dict(query.metadata))
    values["statuses"] = values["statuses"] and as_json(values["statuses"])

    if isinstance(query.order.field, Attribute):
        values |= {"kind": query.order.field.kind.value, "name": query.order.field.name}
    if query.order.field is not Column.CREATED:
        first, end = find_value_bounds(query)
        values |= {"from_value": first[0], "from_id": first[1], "until_value": end[0], "until_id": end[1]}
    few = _find_few(connection, query)
    if few is not None:
        values |= _to_values(few)
    counted = {lead: int(connection.execute(SQL[_PROBES[lead]], values).fetchone()[0]) for lead in list_probes(query)}
    lead = choose_lead(query, counted, few)
    if lead is Lead.ATTRIBUTE and (pair := find_pair(query, few)) is not None and isinstance(pair.field, Attribute):
        values |= {"kind": pair.field.kind.value, "name": pair.field.name, "low": pair.low}
    return lead, values


def _find_few(connection: sqlite3.Connection, query: ExecutionFilter) -> Selection | None:
    """The smallest selection of a filter, if few executions are in it."""
    selections = list_selections(query)
    if not needs_counts(query, selections):
        return None
    counted: list[int] = []
    for one in selections:
        values = _to_values(one) | {"org": query.org, "most": min(counted, default=FEW + 1)}
        counted.append(connection.execute(SQL["probe_selection"], values).fetchone()[0])
    return choose_selection(selections, counted)


def _to_values(selection: Selection) -> dict[str, Any]:
    return {name: as_json(column) for name, column in to_builtins(to_columns(selection)).items()}


def list_orphans(connection: sqlite3.Connection, alive: Collection[str], limit: int, after: str) -> list[ExecutionRow]:
    values = {"alive": as_json(list(alive)), "limit": limit, "after": after}
    return [to_execution_row(row) for row in connection.execute(SQL["list_orphans"], values)]


def list_held(connection: sqlite3.Connection, node: str, limit: int, after: str) -> list[ExecutionRow]:
    values = {"node": node, "limit": limit, "after": after}
    return [to_execution_row(row) for row in connection.execute(SQL["list_held"], values)]


def list_blocked(connection: sqlite3.Connection, limit: int, after: str) -> list[ExecutionRow]:
    return [to_execution_row(row) for row in connection.execute(SQL["list_blocked"], {"limit": limit, "after": after})]


def find_stale_executions(connection: sqlite3.Connection, query: StaleQuery) -> StaleExecutions:
    names = ("after", "end", "scan", "before", "org")
    rows = connection.execute(SQL["find_stale_executions"], {name: getattr(query, name) for name in names})
    return to_stale_executions(rows, query)


def find_stale_tasks(connection: sqlite3.Connection, query: StaleQuery) -> StaleTasks:
    after_org, after, last_org = query.task_bounds
    bounds = {"after_org": after_org, "after": after, "last_org": last_org}
    values = {**bounds, "scan": query.scan, "before": query.before, "now": query.now}
    return to_stale_tasks(connection.execute(SQL["find_stale_tasks"], values), query)


def list_inbox(connection: sqlite3.Connection, org: str, execution_id: str, workflow_id: str, limit: int) -> list[InboxRow]:
    asked = {"org": org, "execution_id": execution_id, "workflow_id": workflow_id, "limit": limit}
    return [InboxRow(*row) for row in connection.execute(SQL["list_inbox"], asked)]


def list_dead_letters(connection: sqlite3.Connection, org: str, limit: int, after: int) -> list[DeadLetterRow]:
    return [DeadLetterRow(*row) for row in connection.execute(SQL["list_dead_letters"], (org, after, limit))]


def find_settled(connection: sqlite3.Connection, execution_ids: Collection[str]) -> dict[str, bool]:
    rows = connection.execute(SQL["find_settled"], (as_json(list(execution_ids)),))
    return {execution_id: bool(is_closed) for execution_id, is_closed in rows}


def count(connection: sqlite3.Connection) -> Counts:
    executions = dict(connection.execute(SQL["count_open"]).fetchall())
    timers, inbox, dead_letters = connection.execute(SQL["count_queued"]).fetchone()
    return Counts(executions, timers, inbox, dead_letters)


def read_backlog(connection: sqlite3.Connection, now: Instant, limit: int) -> list[BacklogRow]:
    found = connection.execute(SQL["read_backlog"], {"now": now, "limit": limit})
    return [BacklogRow(Waiting(what), *columns) for what, *columns in found]
