"""Warns whoever pauses over a connection of a name that may be misspelt: the owner's own warning is in the owner's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client.links import LinkLost
from holdfast.core.lifecycle import Status
from holdfast.engine.nodes.roster import NodeState
from holdfast.engine.use_cases.unknown_names import log_unknown_pause
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client.socket_verbs import SocketVerbs

_OPEN: Final = (Status.RUNNING, Status.SUSPENDED, Status.BLOCKED, Status.PAUSED)
_MOST_SEARCHED: Final = 200


async def warn_of_unknown_workflow(verbs: SocketVerbs, org: str, name: str) -> None:
    """Log that a workflow was paused which the owner does not have, and of which no execution is open."""
    try:
        known = {one for node in await verbs.nodes() if node.state is NodeState.ALIVE for one in node.workflows}
        if name in known or await verbs.list(org=org, workflow=name, status=_OPEN, limit=1):
            return
        known |= {one.workflow for one in await verbs.list(org=org, status=_OPEN, limit=_MOST_SEARCHED)}
    except (HoldfastError, LinkLost):
        return  # what was asked for is done
    log_unknown_pause("workflow", name, known)


async def warn_of_unknown_queue(verbs: SocketVerbs, org: str, name: str) -> None:
    """Log that a queue was paused which the owner does not name, and of which nothing is open."""
    try:
        known = {one for node in await verbs.nodes() if node.state is NodeState.ALIVE for one in node.queues}
        known |= {one.queue for one in await verbs.backlog() if one.org == org}
    except (HoldfastError, LinkLost):
        return
    log_unknown_pause("queue", name, known)
