"""Which open executions wait for a definition that no living node has, so that people can be told why they stand still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.engine.nodes.roster import NodeDetails, NodeState, read_details, to_node_info
from holdfast.engine.rows import from_row
from holdfast.errors import CorruptStore, NewerFormat

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.core.instants import Instant
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow


async def find_missing(
    store: Store, routes: Routes, node: str, now: Instant, rows: Sequence[ExecutionRow]
) -> dict[str, str]:
    """By execution id: what is missing, in words. Of most executions nothing is, and they are not in it.

    On a store of its own this node alone counts; on a shared one all those that are alive, by what they announce. They are
    only asked for if something is not here.
    """
    waiting = [execution for row in rows if (execution := _read_open(row)) is not None and not _is_here(routes, execution)]
    if not waiting:
        return {}
    others = [] if store.exclusive else await _list_living(store, node, now)
    found: dict[str, str] = {}
    for execution in waiting:
        what, queue = _describe(execution), execution.queue
        owners = [one for one in others if _has_definition(one, execution)]
        if not owners and not routes.has_definition(execution):
            found[execution.execution_id] = f"{what} is on no living node"
        elif not any(not one.queues or queue in one.queues for one in owners):
            found[execution.execution_id] = f"{what} is on no living node that serves queue '{queue}'"
    return found


def _read_open(row: ExecutionRow) -> Execution | None:
    if row.closed_at is not None:
        return None
    try:
        return from_row(row)
    except (CorruptStore, NewerFormat):
        return None  # that is what it waits for, and it is shown as its last error


def _is_here(routes: Routes, execution: Execution) -> bool:
    return routes.has_definition(execution) and routes.serves(execution.queue)


async def _list_living(store: Store, node: str, now: Instant) -> list[NodeDetails]:
    """What the other nodes that are alive announce."""
    rows = [row for row in await store.list_nodes() if row.node != node]
    return [read_details(row) for row in rows if to_node_info(row, now, has_ended=False).state is NodeState.ALIVE]


def _has_definition(node: NodeDetails, execution: Execution) -> bool:
    if execution.details.route_name:
        return execution.details.route_name in node.interprets
    if execution.workflow not in node.workflows:
        return False
    versions = node.versions.get(execution.workflow)  # None: it is older than the announcement of versions
    return versions is None or not execution.details.pinned or execution.code_version in versions


def _describe(execution: Execution) -> str:
    if execution.details.pinned:
        return f"workflow '{execution.workflow}' version '{execution.code_version}'"
    return f"workflow '{execution.workflow}'"
