"""How a list of executions is made: which index leads, and between which bounds.

A list goes from the newest execution id down, whatever it is filtered by, so that a page goes on where the one before ended.
The index that leads is the one of a workflow id, of a parent or of an attribute, if the filter names one: what is read is at
most what they have. Few workflow ids with a prefix, and few executions that closed in a range of time, are all read. Else
the execution ids are walked down, and the other conditions are checked row by row; `ExecutionFilter.scan` bounds a walk.

An execution id tells when the execution was asked for. That is never after it was created, clocks that were set aside, and
seldom long before: so times of creation and of the end bound the ids, with an hour to spare.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.core.ids import make_execution_id
from holdfast.core.instants import SECOND, Instant
from holdfast.core.lifecycle import CLOSED, Status
from holdfast.store.contract import ExecutionFilter

FEW: Final = 5_000
"""So many executions are read and sorted for a page, if a prefix or a range of time has no more."""
SPARE: Final = 3600 * SECOND
"""How far the time in an execution id may be from its creation for it to be found by a range of time."""
BEHIND_ALL: Final = "\U0010ffff"
"""A text that is greater than any id."""
EARLIEST: Final[Instant] = -(2**63)
LATEST: Final[Instant] = 2**63 - 1
_LAST_ID_AT: Final[Instant] = (2**48 - 1) * 1000


class Lead(StrEnum):
    """The statements that make lists, by the index that leads."""

    WORKFLOW_ID = "list_executions_of_workflow_id"
    PARENT = "list_children"
    ATTRIBUTE = "list_executions_by_attribute"
    PREFIX = "list_executions_by_prefix"
    END = "list_executions_by_end"
    OPEN = "list_open_executions"
    ALL = "list_executions"

    @property
    def walk_end(self) -> str | None:
        """The statement that tells where a bounded walk ended; None where the lead is no walk."""
        return _WALK_ENDS.get(self)


_WALK_ENDS: Final[Mapping[Lead, str]] = {Lead.ALL: "find_walk_end", Lead.OPEN: "find_open_walk_end"}


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a filter as statements take them."""

    before: str
    first_id: str
    statuses: list[str] | None
    prefix: str
    prefix_end: str
    created_from: Instant
    created_until: Instant
    closed_from: Instant | None
    closed_until: Instant


def find_bounds(query: ExecutionFilter) -> Bounds:
    """What the conditions of a filter come to."""
    ends = [end for end in (query.created_before, query.closed_before) if end is not None]
    before = BEHIND_ALL if query.before is None else query.before
    if ends:
        before = min(before, _id_at(min(ends) + SPARE))
    has_end = query.closed_after is not None or query.closed_before is not None
    prefix = query.workflow_id_prefix or ""
    return Bounds(
        before=before,
        first_id="" if query.created_after is None else _id_at(query.created_after - SPARE),
        statuses=[str(Status(one)) for one in query.statuses] or None,
        prefix=prefix,
        prefix_end=prefix + BEHIND_ALL,
        created_from=_or(query.created_after, EARLIEST),
        created_until=_or(query.created_before, LATEST),
        closed_from=_or(query.closed_after, EARLIEST) if has_end else None,
        closed_until=_or(query.closed_before, LATEST),
    )


def choose_lead(query: ExecutionFilter, counted: Mapping[Lead, int]) -> Lead:
    """Which index leads; `counted` tells how many executions those have that are only worth it if they are few."""
    if query.workflow_id is not None:
        return Lead.WORKFLOW_ID
    if query.parent_id is not None:
        return Lead.PARENT
    if query.metadata:
        return Lead.ATTRIBUTE
    for lead in (Lead.PREFIX, Lead.END):
        if counted.get(lead, FEW + 1) <= FEW:
            return lead
    return Lead.OPEN if query.statuses and CLOSED.isdisjoint(query.statuses) else Lead.ALL


def list_probes(query: ExecutionFilter) -> list[Lead]:
    """Of which indexes to count first what they have."""
    if query.workflow_id is not None or query.parent_id is not None or query.metadata:
        return []
    probes = [Lead.PREFIX] if query.workflow_id_prefix else []
    return [*probes, Lead.END] if query.closed_after is not None else probes


def add_counts(queries: Mapping[str, str]) -> dict[str, str]:
    """The statements, and beside each that lists executions one, `count_` before its name, that counts them by status."""
    counts = {
        f"count_{lead}": f"SELECT status, count(*) FROM ({queries[lead]}) AS found GROUP BY status"  # noqa: S608 - ours
        for lead in Lead
    }
    return {**queries, **counts}


def find_end(query: ExecutionFilter, rows: list[Any], walk_end: str | None) -> str | None:
    """Behind which execution id a list goes on; None if that was all. `walk_end` is where a walk was given up."""
    return rows[-1].execution_id if len(rows) == query.limit else walk_end


def _id_at(at: Instant) -> str:
    return make_execution_id(min(max(at, 0), _LAST_ID_AT), 0)


def _or(at: Instant | None, otherwise: Instant) -> Instant:
    return otherwise if at is None else min(max(at, EARLIEST), LATEST)
