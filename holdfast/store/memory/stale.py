"""Stale work in memory: what `holdfast.store.stale` says, over the committed rows."""

from __future__ import annotations

import heapq

from holdfast.core.lifecycle import Status
from holdfast.store.memory.tables import Tables, is_closed
from holdfast.store.pauses import PauseKind
from holdfast.store.rows import ExecutionRow
from holdfast.store.stale import StaleExecution, StaleExecutions, StaleQuery, StaleTask, StaleTasks
from holdfast.store.tasks import TaskRow

_GOING = (Status.RUNNING, Status.SUSPENDED)


def find_stale_executions(tables: Tables, query: StaleQuery) -> StaleExecutions:
    """The stale ones among the next open executions."""
    rows = (row for row in tables.executions.values() if query.after < row.execution_id < query.end and not is_closed(row))
    page = heapq.nsmallest(query.scan, rows, key=lambda row: row.execution_id)
    found = [_describe(row) for row in page if _is_stale(tables, row, query)]
    return StaleExecutions(found, page[-1].execution_id if len(page) == query.scan else None)


def find_stale_tasks(tables: Tables, query: StaleQuery) -> StaleTasks:
    """The stale ones among the next open human tasks."""
    after_org, after, last_org = query.task_bounds
    rows = (row for row in tables.tasks.values() if row.is_open and row.org <= last_org)
    behind = (row for row in rows if (row.org, row.task_id) > (after_org, after))
    page = heapq.nsmallest(query.scan, behind, key=lambda row: (row.org, row.task_id))
    found = [_describe_task(row) for row in page if _is_stale_task(tables, row, query)]
    return StaleTasks(found, (page[-1].org, page[-1].task_id) if len(page) == query.scan else None)


def _is_stale(tables: Tables, row: ExecutionRow, query: StaleQuery) -> bool:
    execution_id = row.execution_id
    return (
        row.updated_at < query.before
        and query.org in (None, row.org)
        and row.status in _GOING
        and not row.nodes
        and not tables.timers.get(execution_id)
        and not any(key[0] == execution_id for key in tables.offers)
        and not tables.addressed.get((row.org, execution_id, ""))
        and not tables.addressed.get((row.org, "", row.workflow_id))
        and not any(one.parent_id == execution_id and not is_closed(one) for one in tables.executions.values())
        and not any(tables.tasks[task_id].is_open for task_id in tables.task_ids.get(execution_id, {}).values())
        and not _was_paused(tables, row, query)
    )


def _is_stale_task(tables: Tables, task: TaskRow, query: StaleQuery) -> bool:
    row = tables.executions.get(task.execution_id)
    return (
        task.updated_at < query.before
        and (task.due is None or task.due <= query.now)
        and task.number not in tables.timers.get(task.execution_id, {})
        and row is not None
        and row.status in _GOING
        and not _was_paused(tables, row, query)
        and not tables.addressed.get((task.org, task.execution_id, ""))
    )


def _was_paused(tables: Tables, row: ExecutionRow, query: StaleQuery) -> bool:
    """Whether the workflow or the queue is paused, or was until less long ago."""
    keys = ((row.org, PauseKind.WORKFLOW.value, row.workflow), (row.org, PauseKind.QUEUE.value, row.queue))
    return any(key in tables.pauses or tables.pause_ends.get(key, query.before - 1) >= query.before for key in keys)


def _describe(row: ExecutionRow) -> StaleExecution:
    return StaleExecution(
        row.org,
        row.execution_id,
        row.workflow_id,
        row.workflow,
        row.queue,
        row.status,
        row.state_version,
        row.updated_at,
    )


def _describe_task(row: TaskRow) -> StaleTask:
    return StaleTask(
        row.org,
        row.task_id,
        row.execution_id,
        row.number,
        row.workflow,
        row.workflow_id,
        row.queue,
        row.name,
        str(row.state),
        row.version,
        row.updated_at,
    )
