"""Pauses of workflows and queues, and the number that stands for them: see `holdfast.store.pauses`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from holdfast.core.instants import Instant
from holdfast.store.pauses import PauseRow, Settings

if TYPE_CHECKING:
    from holdfast.store.postgres.connections import Connections
    from holdfast.store.postgres.drivers import Connection

LONGEST_WAIT: Final = 5.0
"""Seconds for which writing transactions are waited for: a node that stands still is ended by the server, some time."""
_FIRST_LOOK: Final = 0.001
_LONGEST_LOOK: Final = 0.05


async def read_settings(connections: Connections) -> Settings:
    """All pauses with their number, which is read first: a change in between is noticed by the next look at the number."""
    number = await connections.fetch_value("read pauses in", "read_settings")
    rows = await connections.fetch("read pauses in", "read_pauses")
    return Settings(int(number), [PauseRow(*row) for row in rows])


def make_put(connections: Connections, row: PauseRow) -> Callable[[Connection], Awaitable[int]]:
    """The work of a transaction that pauses something; it answers 1 if that is new."""
    sql = connections.sql

    async def work(connection: Connection) -> int:
        values = (row.org, row.kind, row.name, row.at, row.by, row.reason)
        put = await connection.fetch(sql["put_pause"], *values)
        if put:
            await connection.fetch(sql["raise_settings"], row.at)
        return len(put)

    return work


def make_end(
    connections: Connections, org: str, kind: str, name: str, at: Instant
) -> Callable[[Connection], Awaitable[int]]:
    """The work of a transaction that ends a pause; it answers 1 if there was one."""
    sql = connections.sql

    async def work(connection: Connection) -> int:
        ended = await connection.fetch(sql["end_pause"], org, kind, name, at)
        if ended:
            await connection.fetch(sql["raise_settings"], at)
        return len(ended)

    return work


async def wait_for_writers(connections: Connections) -> None:
    """Wait until those transactions have ended that have written something by now: they may not have seen a new number.

    Those that write later see it. Nothing is locked: nobody waits for this.
    """
    name = "" if connections.address.is_pooled else "holdfast"
    began, pause = time.monotonic(), _FIRST_LOOK
    writers = set(map(tuple, await connections.fetch("wait for batches in", "find_writers", name)))
    while writers and time.monotonic() - began < LONGEST_WAIT:
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_LOOK)
        writers &= set(map(tuple, await connections.fetch("wait for batches in", "find_writers", name)))
