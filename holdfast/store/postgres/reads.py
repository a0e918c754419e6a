"""Reads outside of batches: they see what is committed and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.core.instants import Instant
from holdfast.store.columns import to_execution_row
from holdfast.store.contract import Counts, ExecutionFilter
from holdfast.store.listing import FEW, Lead, choose_lead, find_bounds, find_end, list_probes
from holdfast.store.rows import BacklogRow, DeadLetterRow, ExecutionPage, ExecutionRow, HistoryRow, InboxRow, Route, Waiting

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections


def to_histories(asked: Iterable[str], rows: Iterable[Any]) -> dict[str, list[HistoryRow]]:
    """History rows by execution; one without any has an empty list."""
    histories: dict[str, list[HistoryRow]] = {execution_id: [] for execution_id in asked}
    for row in rows:
        histories[row[0]].append(HistoryRow(*row))
    return histories


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
        lead, values = await self._prepare_list(query)
        return [to_execution_row(row) for row in await self._fetch(lead, *values)]

    async def search_executions(self, query: ExecutionFilter) -> ExecutionPage:
        lead, values = await self._prepare_list(query)
        rows = [to_execution_row(row) for row in await self._fetch(lead, *values)]
        end = None
        if len(rows) < query.limit and lead.walk_end is not None and query.scan is not None:
            bounds = find_bounds(query)
            found = await self._fetch(lead.walk_end, bounds.before, bounds.first_id, query.scan)
            end = found[0][0] if found else None
        return ExecutionPage(rows, find_end(query, rows, end))

    async def count_executions(self, query: ExecutionFilter) -> dict[str, int]:
        lead, values = await self._prepare_list(query)
        return dict(await self._fetch(f"count_{lead}", *values))

    async def _prepare_list(self, query: ExecutionFilter) -> tuple[Lead, list[Any]]:
        """The index that leads, and what its statement takes."""
        bounds = find_bounds(query)
        counted: dict[Lead, int] = {}
        for one in list_probes(query):
            if one is Lead.PREFIX:
                found = await self._fetch("probe_prefix", query.org, bounds.prefix, bounds.prefix_end, FEW + 1)
            else:
                found = await self._fetch("probe_closed", bounds.closed_from, bounds.closed_until, FEW + 1)
            counted[one] = found[0][0]
        lead = choose_lead(query, counted)
        values: list[Any] = [query.org, bounds.before, bounds.first_id, bounds.statuses, query.workflow, query.workflow_id]
        values += [query.parent_id, bounds.prefix, bounds.prefix_end, bounds.created_from, bounds.created_until]
        values += [bounds.closed_from, bounds.closed_until, list(query.metadata), list(query.metadata.values()), query.limit]
        if lead is Lead.ATTRIBUTE:
            values += await self._find_rarest(query)
        elif lead.walk_end is not None:
            values.append(query.scan)
        return lead, values

    async def _find_rarest(self, query: ExecutionFilter) -> tuple[str, str]:
        """Of the metadata that is asked for, what the fewest executions have."""
        pairs = list(query.metadata.items())
        if len(pairs) == 1:
            return pairs[0]
        counted = [(await self._fetch("probe_attribute", query.org, *pair, FEW))[0][0] for pair in pairs]
        return pairs[counted.index(min(counted))]

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
