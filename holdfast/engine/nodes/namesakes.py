"""Two processes under one node's name: whoever came later gives way.

A name stands for the memory of one process: what it runs is taken over when it ends. Two that share one would take over from
each other, and nobody would notice the end of either.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from typing import TYPE_CHECKING, Final

from holdfast.engine.nodes.roster import NodeDetails, read_details
from holdfast.errors import NodeNameTaken

if TYPE_CHECKING:
    from holdfast.store.contract import NodeRow, Nodes

LOOK: Final = 0.1
"""Seconds between two looks for a sign of life."""
MARGIN: Final = 0.5
"""Seconds that a heartbeat may be late."""


async def refuse_namesake(nodes: Nodes, node: str) -> None:
    """Before a process works under a name: wait until it is certain that nobody else does. Raises NodeNameTaken.

    Who left, or ended on this machine, is not waited for. Others show themselves by their next heartbeat, of which there are
    two in a lease.
    """
    before = await _find(nodes, node)
    if before is None or before.has_left:
        return
    details = read_details(before)
    if is_own(details) or _has_ended(details):
        return
    deadline = time.monotonic() + details.lease / 2 + MARGIN
    while time.monotonic() < deadline:
        await asyncio.sleep(LOOK)
        row = await _find(nodes, node)
        if row is None or row.has_left:
            return
        if row.seen_at != before.seen_at:
            raise NodeNameTaken(describe(node, read_details(row)))


def gives_way(own: NodeRow, other: NodeRow) -> bool:
    """Which of two processes that work under one name stops: the later one."""
    return _rank(own) > _rank(other)


def is_own(details: NodeDetails) -> bool:
    """Whether it is this process that tells so of itself, or one that cannot be told from it."""
    return details.host == platform.node() and details.pid == os.getpid()


def describe(node: str, other: NodeDetails) -> str:
    """What is wrong, for whoever has to give way."""
    return (
        f"Expected to be the only process of node '{node}', but process {other.pid} on '{other.host}' is alive under that "
        "name. Give each process a name of its own, or leave node=… out."
    )


async def _find(nodes: Nodes, node: str) -> NodeRow | None:
    return next((row for row in await nodes.list_nodes() if row.node == node), None)


def _has_ended(details: NodeDetails) -> bool:
    if details.host != platform.node() or details.pid <= 0:
        return False
    try:
        os.kill(details.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and belongs to somebody else
    return False


def _rank(row: NodeRow) -> tuple[int, str, int]:
    details = read_details(row)
    return row.started_at, details.host, details.pid
