"""Two processes under one node's name: one that is alive is not replaced; of those that began at once, the last stays.

A name stands for the memory of one process: what it runs is taken over when it ends. Two that share one would take over from
each other, and nobody would notice the end of either.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.engine.nodes.roster import NodeDetails, read_details
from holdfast.errors import NodeNameTaken

if TYPE_CHECKING:
    from holdfast.store.contract import NodeRow, Nodes

LOOK: Final = 0.1
"""Seconds between two looks for a sign of life."""
MARGIN: Final = 0.5
"""Seconds that a heartbeat may be late."""

LIVING: Final[set[str]] = set()
"""The tokens of the nodes that live in this process."""


async def refuse_namesake(nodes: Nodes, node: str) -> None:
    """Before an engine works under a name: wait until it is certain that no other does. Raises NodeNameTaken.

    Who left, or ended on this machine, is not waited for; others for as long as their lease may last.
    """
    before = await _find(nodes, node)
    if before is None or before.has_left:
        return
    details = read_details(before)
    if details.token in LIVING:
        raise NodeNameTaken(describe(node, details))
    if _has_ended(details):
        return
    deadline = time.monotonic() + details.lease + MARGIN
    while time.monotonic() < deadline:
        await asyncio.sleep(LOOK)
        row = await _find(nodes, node)
        if row is None or row.has_left:
            return
        if row.seen_at != before.seen_at:
            raise NodeNameTaken(describe(node, read_details(row)))


def gives_way(own: NodeRow, other: NodeRow) -> bool:
    """Whether this node stops because another works under its name: of two that do, the last to begin goes on.

    If that comes back which everybody thought dead, what replaced it goes on. Who comes or goes makes nobody give way.
    """
    theirs = read_details(other)
    return theirs.works and (own.started_at, read_details(own).token) < (other.started_at, theirs.token)


def describe(node: str, other: NodeDetails) -> str:
    """What is wrong, for whoever has to give way."""
    return (
        f"Expected to be the only process of node '{node}', but process {other.pid} on '{other.host}' is alive under that "
        "name. Give each process a name of its own, or leave node=… out."
    )


def find_realm() -> str:
    """Where the process ids that this process sees are valid; empty if that cannot be told."""
    if os.name != "posix":
        return ""
    boot, space = platform.node(), ""
    with suppress(OSError):  # there is no such thing but on Linux
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    return f"{boot} {space}"


async def _find(nodes: Nodes, node: str) -> NodeRow | None:
    return next((row for row in await nodes.list_nodes() if row.node == node), None)


def _has_ended(details: NodeDetails) -> bool:
    if not details.realm or details.realm != find_realm() or details.pid <= 0:
        return False
    if details.pid == os.getpid():
        return True  # and its node does not live
    try:
        os.kill(details.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and belongs to somebody else
    return False
