"""What becomes of publications that are kept with regard to executions that end: the decisions, which all stores share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.core.instants import Instant
from holdfast.core.publications import OnTargetTerminated
from holdfast.store.contract import UnroutedWrite
from holdfast.store.matching import Pair, find_options, make_triggered
from holdfast.store.publications import PendingRow
from holdfast.store.rows import DeadLetterRow, ExecutionRow, InboxRow
from holdfast.store.wait_matching import read_kept


class SettlingPlan(msgspec.Struct):
    """What to write about publications that are kept with regard to executions that end."""

    removed: list[int] = msgspec.field(default_factory=list)
    inbox: list[InboxRow] = msgspec.field(default_factory=list)
    dead_letters: list[DeadLetterRow] = msgspec.field(default_factory=list)


def find_end(closed: Iterable[ExecutionRow]) -> Instant:
    """When the last of these executions ended: what has expired by then starts nothing."""
    return max((row.closed_at or row.updated_at for row in closed), default=0)


def plan_settling(closed: Sequence[ExecutionRow], kept: Iterable[PendingRow], beside: UnroutedWrite) -> SettlingPlan:
    """What becomes of what is kept for executions that end, or is to start what follows on them.

    `kept`: rows whose target ends, and rows whose start has a workflow id under which nobody is open, by place and age.
    One whose start cannot be read starts nothing, and is left aside.
    """
    now = find_end(closed)
    ends = {row.execution_id: row for row in closed}
    plan = SettlingPlan()
    started: set[Pair] = set()
    for row in kept:
        if row.target in ends:
            plan.removed.append(row.id)
            if row.expires_at > now and not beside.discards_dead_letters and _is_buried(row):
                plan.dead_letters.append(_bury(row, ends[row.target], beside.node))
        elif row.start is not None and row.expires_at > now and (row.org, row.start.workflow_id) not in started:
            started.add((row.org, row.start.workflow_id))
            plan.removed.append(row.id)
            plan.inbox.append(row.start)
    return plan


def _is_buried(row: PendingRow) -> bool:
    """Whether it becomes a dead letter. What cannot be read here does: a newer version may have said so."""
    publication = read_kept(row)
    return publication is None or find_options(publication).on_target_terminated is OnTargetTerminated.DEAD_LETTER


def _bury(row: PendingRow, execution: ExecutionRow, node: str) -> DeadLetterRow:
    reason = (
        f"Expected execution '{execution.execution_id}' to take the event '{row.name}' that was sent to it, but it is "
        f"{execution.status}."
    )
    at = execution.closed_at or execution.updated_at
    return DeadLetterRow(row.org, execution.execution_id, "", make_triggered(0, row.body), reason, node, at)
