"""Who is open under which id, held until the transaction ends: executions against closings, workflow ids against starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from holdfast.store.matching import Pair, Presence

if TYPE_CHECKING:
    from holdfast.store.postgres.drivers import Connection

Sql = Mapping[str, str]


async def share_executions(connection: Connection, sql: Sql, pairs: Collection[Pair]) -> dict[Pair, Presence]:
    """Keep executions from closing, by (org, execution id); without waiting for one that does."""
    asked = sorted(execution_id for _, execution_id in pairs)
    shared = {(row[0], row[1]): row[2] for row in await connection.fetch(sql["share_targets"], asked)}
    found = {pair: Presence.OPEN if shared[pair] else Presence.CLOSED for pair in pairs if pair in shared}
    missing = [pair for pair in pairs if pair not in found]
    if missing:
        ids = [execution_id for _, execution_id in missing]
        present = {tuple(row) for row in await connection.fetch(sql["find_targets"], ids)}
        found |= {pair: Presence.BUSY if pair in present else Presence.FREE for pair in missing}
    return found


async def hold_workflow_ids(connection: Connection, sql: Sql, pairs: Collection[Pair]) -> dict[Pair, Presence]:
    """Keep others from starting under workflow ids, and who is open there from closing; without waiting for anybody."""
    found = dict.fromkeys(pairs, Presence.BUSY)
    held = {tuple(row) for row in await connection.fetch(sql["lock_workflow_ids"], *zip(*pairs, strict=True))}
    if not held:
        return found
    opened: dict[Pair, Pair] = {}
    rows = await connection.fetch(sql["find_open_receivers"], *zip(*sorted(held), strict=True))
    for org, workflow_id, execution_id, has_start in rows:
        found[org, workflow_id] = Presence.OPEN if has_start else Presence.FREE
        if execution_id is not None:
            opened[org, workflow_id] = (org, execution_id)
    if opened:
        shared = await share_executions(connection, sql, list(opened.values()))
        for pair, execution in opened.items():
            found[pair] = Presence.OPEN if shared[execution] is Presence.OPEN else Presence.BUSY
    return found
