"""Between executions in memory and rows in a store."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import codec
from holdfast.core.closing import find_next_run
from holdfast.core.events import HistoryTurn
from holdfast.core.execution import Execution
from holdfast.core.lifecycle import Status, read_status
from holdfast.core.routes import find_route
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.rows import ExecutionRow, HistoryRow, Route


def to_row(execution: Execution, route: Route | None = None) -> ExecutionRow:
    """The row of an execution as it now is; `route` if that is known already."""
    details = execution.details
    return ExecutionRow(
        execution.org,
        execution.execution_id,
        execution.workflow_id,
        execution.workflow,
        execution.code_version,
        execution.queue,
        execution.status,
        execution.state_version,
        execution.sequence,
        execution.nodes,
        details.parent.execution_id if details.parent is not None else None,
        execution.created_at,
        execution.updated_at,
        execution.closed_at,
        codec.encode(details),
        find_route(execution) if route is None else route,
    )


def from_row(row: ExecutionRow) -> Execution:
    """The execution of a row; what is open in it must still be folded from its history.

    Raises CorruptStore, or NewerFormat if its status or its details are of a newer Holdfast.
    """
    return Execution(
        org=row.org,
        execution_id=row.execution_id,
        workflow_id=row.workflow_id,
        workflow=row.workflow,
        code_version=row.code_version,
        queue=row.queue,
        status=read_status(row.status, row.execution_id),
        state_version=row.state_version,
        sequence=row.sequence,
        nodes=row.nodes,
        created_at=row.created_at,
        updated_at=row.updated_at,
        closed_at=row.closed_at,
        details=codec.decode_details(row.details),
    )


def to_turns(rows: Sequence[HistoryRow]) -> list[HistoryTurn]:
    """The rows of a history as turns with decoded events. Raises CorruptStore or NewerFormat."""
    return [HistoryTurn(row.first, row.at, codec.decode_events(row.body, row.schema)) for row in rows]


def find_following(closed: ExecutionRow) -> str | None:
    """The execution id of the run that follows one that continued, or that failed and is retried."""
    if closed.closed_at is None:
        return None
    if closed.status == Status.CONTINUED:
        return find_next_run(closed.execution_id, closed.closed_at)
    if closed.status != Status.FAILED:
        return None
    try:
        return codec.decode_details(closed.details).retried_as
    except (CorruptStore, NewerFormat):
        return None
