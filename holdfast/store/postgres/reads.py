"""Reads outside of batches: they see what is committed and nothing else."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

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
from holdfast.store.postgres.statements import place
from holdfast.store.rows import (
    BacklogRow,
    Counts,
    DeadLetterRow,
    ExecutionPage,
    ExecutionRow,
    HistoryRow,
    InboxRow,
    Route,
    StatusCounts,
    Waiting,
)
from holdfast.store.selections import Selection, list_selections, to_columns

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections


def to_histories(asked: Iterable[str], rows: Iterable[Any]) -> dict[str, list[HistoryRow]]:
    """History rows by execution; one without any has an empty list."""
    histories: dict[str, list[HistoryRow]] = {execution_id: [] for execution_id in asked}
    for row in rows:
        histories[row[0]].append(HistoryRow(*row))
    return histories


def _list_value_bounds(query: ExecutionFilter) -> list[Any]:
    """What the statements take that list in the order of a value, behind the org and the scan."""
    first, end = find_value_bounds(query)
    field = query.order.field
    named = [field.kind.value, field.name] if isinstance(field, Attribute) else []
    return [*named, *first, *end]


def _list_walk_bounds(query: ExecutionFilter, lead: Lead) -> list[Any]:
    """What the statement takes that finds where a walk ended."""
    if lead is Lead.VALUE:
        return [query.org, *_list_value_bounds(query), query.scan]
    if lead is Lead.CLOSING:
        return [*_list_value_bounds(query), query.scan]
    bounds = find_bounds(query)
    return [bounds.before, bounds.first_id, query.scan]


def _renumber(statement: str, given: int) -> str:
    """The statement with its parameters behind so many of another one."""
    return re.sub(r"\$(\d+)", lambda found: f"${given + int(found[1])}", statement)


def _list_columns(selection: Selection) -> list[Any]:
    """What statements take of a selection."""
    columns = to_columns(selection)
    ranges: list[Any] = [[one[part] for one in columns.attributes] for part in range(4)]
    ranges += [[one[part] for one in columns.workflow_ids] for part in range(2)]
    return [*ranges, columns.parents, columns.execution_ids]


async def _find_few(fetch: Callable[..., Awaitable[list[Any]]], query: ExecutionFilter) -> Selection | None:
    """The smallest selection of a filter, if few executions are in it."""
    selections = list_selections(query)
    if not needs_counts(query, selections):
        return None
    counted: list[int] = []
    for one in selections:
        most = min(counted, default=FEW + 1)
        counted.append((await fetch("probe_selection", query.org, most, *_list_columns(one)))[0][0])
    return choose_selection(selections, counted)


class Reads:
    """Every question that is no part of a batch."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def _fetch(self, name: str, *values: Any) -> list[Any]:
        return await self._connections.fetch("read", name, *values)

    async def find_execution(self, org: str, execution_id: str) -> ExecutionRow | None:
        rows = await self._fetch("find_execution", org, execution_id)
        return to_execution_row(rows[0]) if rows else None

    async def find_latest(self, org: str, workflow_id: str) -> ExecutionRow | None:
        rows = await self._fetch("read_latest", org, workflow_id)
        return to_execution_row(rows[0]) if rows else None

    async def list_executions(self, query: ExecutionFilter) -> list[ExecutionRow]:
        return (await self.search_executions(query)).rows

    async def search_executions(self, query: ExecutionFilter) -> ExecutionPage:
        if query.order.field is Column.CREATED:
            return await self._search(query)
        rows: list[ExecutionRow] = []
        if not is_past_values(query):
            page = await self._search(query)
            if page.end is not None:
                return page
            rows = page.rows
        rest = await self._search(make_rest(query, len(rows)))
        return ExecutionPage([*rows, *rest.rows], rest.end)

    async def _search(self, query: ExecutionFilter) -> ExecutionPage:
        """A page by one index: in the order of a value, what has none is left out."""
        query = narrow(query)
        lead, values = await self._prepare_list(query)
        direct = str if query.order.is_descending else turn_round
        found = await self._fetch_filtered(lead, query, values, direct)
        page = make_page(query, [to_execution_row(row) for row in found])
        if page.end is None and lead.walk_end is not None and query.scan is not None:
            statement = direct(self._connections.sql[lead.walk_end])
            ends = await self._connections.fetch_statement("read", statement, *_list_walk_bounds(query, lead))
            if ends:
                page = ExecutionPage(page.rows, *ends[0])
        return page

    async def count_executions(self, query: ExecutionFilter) -> StatusCounts:
        query = narrow(query)
        lead, values = await self._prepare_list(query)
        direct: Callable[[str], str] = str
        if lead.walk_end is not None and query.scan is not None:
            walk_end = _renumber(self._connections.sql[lead.walk_end], len(values))
            direct = partial(add_walk_end, walk_end=walk_end, limit="$16")
            values += _list_walk_bounds(query, lead)
        return to_status_counts(await self._fetch_filtered(f"count_{lead}", query, values, direct))

    async def _fetch_filtered(
        self, name: str, query: ExecutionFilter, values: list[Any], direct: Callable[[str], str]
    ) -> list[Any]:
        """The rows of a list with the conditions of its filter in it."""
        given, table = len(values), place("holdfast.attributes", self._connections.address.schema)
        dialect = Dialect(
            table, "$1", lambda number, value: f"${given + number}::{'bigint' if isinstance(value, int) else 'text'}"
        )
        found = compile_condition(query.where, dialect)
        statement = direct(found.place_in(self._connections.sql[name]))
        return await self._connections.fetch_statement("read", statement, *values, *found.values)

    async def _prepare_list(self, query: ExecutionFilter) -> tuple[Lead, list[Any]]:
        """The index that leads, and what its statement takes."""
        bounds, few = find_bounds(query), await _find_few(self._fetch, query)
        counted: dict[Lead, int] = {}
        for one in list_probes(query):
            if one is Lead.PREFIX:
                found = await self._fetch("probe_prefix", query.org, bounds.prefix, bounds.prefix_end, FEW + 1)
            else:
                found = await self._fetch("probe_closed", bounds.closed_from, bounds.closed_until, FEW + 1)
            counted[one] = found[0][0]
        lead = choose_lead(query, counted, few)
        values: list[Any] = [query.org, bounds.before, bounds.first_id, bounds.statuses, query.workflow, query.workflow_id]
        values += [query.parent_id, bounds.prefix, bounds.prefix_end, bounds.created_from, bounds.created_until]
        values += [bounds.closed_from, bounds.closed_until, list(query.metadata), list(query.metadata.values()), query.limit]
        if lead is Lead.ATTRIBUTE and (pair := find_pair(query, few)) is not None and isinstance(pair.field, Attribute):
            values += [pair.field.kind.value, pair.field.name, pair.low]
        elif lead in (Lead.FEW, Lead.FEW_BY_VALUE, Lead.FEW_BY_CLOSING) and few is not None:
            values += _list_columns(few)
        elif lead.walk_end is not None:
            values.append(query.scan)
        if query.order.field is not Column.CREATED:
            values += _list_value_bounds(query)
        return lead, values

    async def load_history(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[HistoryRow]:
        return [HistoryRow(*row) for row in await self._fetch("read_events_page", execution_id, after, limit)]

    async def load_last_turn(self, execution_id: str) -> HistoryRow | None:
        rows = await self._fetch("read_last_events", execution_id)
        return HistoryRow(*rows[0]) if rows else None

    async def list_inbox(self, org: str, execution_id: str, workflow_id: str, limit: int = 100) -> list[InboxRow]:
        return [InboxRow(*row) for row in await self._fetch("list_inbox", org, execution_id, workflow_id, limit)]

    async def list_dead_letters(self, org: str, limit: int = 100, after: int = 0) -> list[DeadLetterRow]:
        return [DeadLetterRow(*row) for row in await self._fetch("list_dead_letters", org, limit, after)]

    async def find_next_due(self, skip: Collection[str], routes: Collection[Route] | None = None) -> Instant | None:
        mine = ["", *routes] if routes is not None else [route for (route,) in await self._fetch("list_routes")]
        due: Instant | None = (await self._fetch("find_next_due", mine, list(skip)))[0][0]
        return due

    async def find_settled(self, execution_ids: Collection[str]) -> dict[str, bool]:
        return dict(await self._fetch("find_settled", list(execution_ids)))

    async def find_oldest_closed(self) -> Instant | None:
        at: Instant | None = (await self._fetch("find_oldest_closed"))[0][0]
        return at

    async def find_oldest_dead_letter(self) -> Instant | None:
        rows = await self._fetch("find_oldest_dead_letter")
        return rows[0][0] if rows else None

    async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
        return [to_execution_row(row) for row in await self._fetch("list_orphans", list(alive), limit, after)]

    async def list_held(self, node: str, limit: int, after: str = "") -> list[ExecutionRow]:
        return [to_execution_row(row) for row in await self._fetch("list_held", node, limit, after)]

    async def list_blocked(self, limit: int, after: str = "") -> list[ExecutionRow]:
        return [to_execution_row(row) for row in await self._fetch("list_blocked", limit, after)]

    async def read_backlog(self, now: Instant, limit: int) -> list[BacklogRow]:
        routes = [route for (route,) in await self._fetch("list_routes")]
        found = await self._fetch("read_backlog", now, limit, routes)
        return [BacklogRow(Waiting(what), *columns) for what, *columns in found]

    async def read_input_schemas(self, digests: Collection[str]) -> dict[str, bytes]:
        return {digest: bytes(body) for digest, body in await self._fetch("read_input_schemas", list(digests))}

    async def put_input_schemas(self, schemas: Mapping[str, bytes]) -> None:
        if set(schemas) - set(await self.read_input_schemas(schemas)):
            await self._connections.fetch(
                "announce", "put_input_schemas", sorted(schemas), [schemas[key] for key in sorted(schemas)]
            )

    async def count(self) -> Counts:
        by_status: dict[str, int] = dict(await self._fetch("count_open"))
        ((timers, inbox, dead_letters),) = await self._fetch("count_queued")
        return Counts(by_status, timers, inbox, dead_letters)
