"""Two processes under one node name: a living one is not replaced; of two that start at the same time, the last one stays.

A node's name stands for the memory of one process: what it runs is taken over when it ends. Two processes that shared a name
would take over from each other, and nobody would notice the end of either.
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
    from holdfast.store.nodes import Nodes
    from holdfast.store.rows import NodeRow

CHECK_INTERVAL: Final = 0.1
"""Seconds between two checks for a heartbeat of the other process."""
MARGIN: Final = 0.5
"""Seconds that a heartbeat may be late."""

LOCAL_TOKENS: Final[set[str]] = set()
"""The tokens of the nodes that run in this process."""


async def refuse_taken_name(nodes: Nodes, node: str) -> None:
    """Wait until it is certain that no other process works under this node name. Raises NodeNameTaken if one does.

    It returns at once if the last process left cleanly or ended on this machine; else it waits for that process's lease.
    """
    before = await _find(nodes, node)
    if before is None or before.has_left:
        return
    details = read_details(before)
    if details.token in LOCAL_TOKENS:
        raise NodeNameTaken(describe_name_conflict(node, details))
    if _has_ended(details):
        return
    deadline = time.monotonic() + details.lease + MARGIN
    while time.monotonic() < deadline:
        await asyncio.sleep(CHECK_INTERVAL)
        row = await _find(nodes, node)
        if row is None or row.has_left:
            return
        if row.seen_at != before.seen_at:
            raise NodeNameTaken(describe_name_conflict(node, read_details(row)))


def must_stop(own: NodeRow, other: NodeRow) -> bool:
    """Whether this node has to stop because another process works under its name: the one that started last stays.

    So a process that was thought dead stops for its replacement. Nobody stops for a process that is joining or leaving.
    """
    theirs = read_details(other)
    return theirs.works and (own.started_at, read_details(own).token) < (other.started_at, theirs.token)


def describe_name_conflict(node: str, other: NodeDetails) -> str:
    """The message of NodeNameTaken: which process has the name."""
    return (
        f"Expected to be the only process of node '{node}', but process {other.pid} on '{other.host}' is alive under that "
        "name. Give each process a name of its own, or leave node=… out."
    )


def find_realm() -> str:
    """The scope in which this process's ids are valid: boot and pid namespace; empty if that cannot be told."""
    if os.name != "posix":
        return ""
    boot, space = platform.node(), ""
    with suppress(OSError):  # only Linux has these files
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    return f"{boot} {space}"


async def _find(nodes: Nodes, node: str) -> NodeRow | None:
    return next((row for row in await nodes.list_nodes() if row.node == node), None)


def _has_ended(details: NodeDetails) -> bool:
    if not details.realm or details.realm != find_realm() or details.pid <= 0:
        return False
    if details.pid == os.getpid():
        return True  # an earlier node of this very process
    try:
        os.kill(details.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it exists, and belongs to another user
    return False
