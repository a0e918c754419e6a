"""How a list of executions is made: which index leads, and between which bounds.

A list goes from the newest execution id down, whatever it is filtered by, so that a page goes on where the one before ended.
The index that leads is the one of a workflow id, of a parent or of an attribute, if the filter names one: what is read is at
most what they have. Few workflow ids with a prefix, few executions that closed in a range of time, and what few executions
have of the values or ids that the filter names (`selections`) are all read, and sorted. Else the execution ids are walked
down, and the other conditions are checked row by row; `ExecutionFilter.scan` bounds a walk.

A condition of the filter language (`ExecutionFilter.where`) is checked row by row, too; what must hold of it in any case is
taken for a condition of its own, so that it may lead (`narrow`). A list in the order of an attribute, or of the time of the
end, goes along the index of that, between two pairs of value and execution id; what has no such value follows in a list of
its own (`make_rest`).

An execution id tells when the execution was asked for. That is never after it was created, clocks that were set aside, and
seldom long before: so times of creation and of the end bound the ids, with an hour to spare.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.core.ids import make_execution_id
from holdfast.core.instants import SECOND, Instant
from holdfast.core.lifecycle import CLOSED, Status
from holdfast.filters.syntax import NEWEST_FIRST, And, Attribute, Column, Field, Has, Not, OneOf, Range, Value
from holdfast.filters.values import find_prefix_end
from holdfast.store.attributes import read_attributes
from holdfast.store.contract import ExecutionFilter
from holdfast.store.rows import ExecutionPage, ExecutionRow, StatusCounts
from holdfast.store.selections import BEHIND_ALL, BEHIND_VALUES, Selected, Selection, list_conjuncts, list_selections

FEW: Final = 5_000
"""So many executions are read and sorted for a page, if a prefix or a range of time has no more."""
SPARE: Final = 3600 * SECOND
"""How far the time in an execution id may be from its creation for it to be found by a range of time."""
EARLIEST: Final[Instant] = -(2**63)
LATEST: Final[Instant] = 2**63 - 1
_LAST_ID_AT: Final[Instant] = (2**48 - 1) * 1000


class Lead(StrEnum):
    """The statements that make lists, by the index that leads."""

    WORKFLOW_ID = "list_executions_of_workflow_id"
    PARENT = "list_children"
    ATTRIBUTE = "list_executions_by_attribute"
    FEW = "list_few_executions"
    FEW_BY_VALUE = "list_few_by_value"
    FEW_BY_CLOSING = "list_few_by_closing"
    PREFIX = "list_executions_by_prefix"
    END = "list_executions_by_end"
    OPEN = "list_open_executions"
    ALL = "list_executions"
    VALUE = "list_executions_by_value"
    CLOSING = "list_executions_by_closing"

    @property
    def walk_end(self) -> str | None:
        """The statement that tells where a bounded walk ended; None where the lead is no walk."""
        return _WALK_ENDS.get(self)


_WALK_ENDS: Final[Mapping[Lead, str]] = {
    Lead.ALL: "find_walk_end",
    Lead.OPEN: "find_open_walk_end",
    Lead.VALUE: "find_value_walk_end",
    Lead.CLOSING: "find_closing_walk_end",
}


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
    first_id = "" if query.created_after is None else _id_at(query.created_after - SPARE)
    before = BEHIND_ALL
    if query.before is not None and query.order.field is Column.CREATED:
        if query.order.is_descending:
            before = query.before
        else:
            first_id = max(first_id, query.before + "\x01")
    if ends:
        before = min(before, _id_at(min(ends) + SPARE))
    for one in list_conjuncts(query.where):
        if isinstance(one, OneOf) and one.field is Column.EXECUTION_ID:
            first_id = max(first_id, min(map(str, one.values)))
            before = min(before, max(map(str, one.values)) + "\x01")
    has_end = query.closed_after is not None or query.closed_before is not None
    prefix = query.workflow_id_prefix or ""
    return Bounds(
        before=before,
        first_id=first_id,
        statuses=[str(Status(one)) for one in query.statuses] or None,
        prefix=prefix,
        prefix_end=prefix + BEHIND_ALL,
        created_from=_or(query.created_after, EARLIEST),
        created_until=_or(query.created_before, LATEST),
        closed_from=_or(query.closed_after, EARLIEST) if has_end else None,
        closed_until=_or(query.closed_before, LATEST),
    )


def choose_lead(query: ExecutionFilter, counted: Mapping[Lead, int], few: Selection | None) -> Lead:
    """Which index leads; `counted` tells how many executions those have that are only worth it if they are few.

    `few` is the smallest of the filter's selections, if it has no more than that.
    """
    if query.order.field is Column.CLOSED:
        return Lead.CLOSING if few is None else Lead.FEW_BY_CLOSING
    if query.order.field is not Column.CREATED:
        return Lead.VALUE if few is None else Lead.FEW_BY_VALUE
    if query.workflow_id is not None:
        return Lead.WORKFLOW_ID
    if query.parent_id is not None:
        return Lead.PARENT
    if find_pair(query, few) is not None:
        return Lead.ATTRIBUTE
    for lead in (Lead.PREFIX, Lead.END):
        if counted.get(lead, FEW + 1) <= FEW:
            return lead
    if few is not None:
        return Lead.FEW
    return Lead.OPEN if query.statuses and CLOSED.isdisjoint(query.statuses) else Lead.ALL


def list_probes(query: ExecutionFilter) -> list[Lead]:
    """Of which indexes to count first what they have, beside the selections of the filter."""
    is_led = query.workflow_id is not None or query.parent_id is not None or find_pair(query, None) is not None
    if is_led or query.order.field is not Column.CREATED:
        return []
    probes = [Lead.PREFIX] if query.workflow_id_prefix else []
    return [*probes, Lead.END] if query.closed_after is not None else probes


def find_pair(query: ExecutionFilter, few: Selection | None) -> Selected | None:
    """The attribute whose value leads: that of the smallest selection, or any if all have many; None if none does."""
    selections = list_selections(query) if few is None else [few]
    return next((one[0] for one in selections if _is_pair(one)), None)


def needs_counts(query: ExecutionFilter, selections: Sequence[Selection]) -> bool:
    """Whether it matters how much is in the selections of a filter."""
    return len(selections) > 1 or query.order.field is not Column.CREATED or not all(map(_is_pair, selections))


def _is_pair(selection: Selection) -> bool:
    return len(selection) == 1 and selection[0].is_one and isinstance(selection[0].field, Attribute)


def choose_selection(selections: Sequence[Selection], counted: Sequence[int]) -> Selection | None:
    """The selection that has the fewest executions; None if it has more than can be read for a page."""
    found = min(zip(counted, range(len(counted)), strict=True), default=(FEW + 1, 0))
    return selections[found[1]] if found[0] <= FEW else None


def add_counts(queries: Mapping[str, str]) -> dict[str, str]:
    """The statements, and beside each that lists executions one, `count_` before its name, that counts them by status."""
    counts = {
        f"count_{lead}": f"SELECT status, count(*) AS number FROM ({queries[lead]}) AS found GROUP BY status"  # noqa: S608 - ours
        for lead in Lead
    }
    return {**queries, **counts}


def add_walk_end(count: str, walk_end: str, limit: str) -> str:
    """The statement of a count that also tells, in a row without a status, whether there is more behind its walk.

    It is one statement, since a count and a walk at different moments may differ. Where the limit was reached, nobody asks.
    """
    behind = walk_end.removesuffix(" - 1")
    return (
        f"WITH counted AS ({count}) SELECT status, number FROM counted "  # noqa: S608 - ours
        f"UNION ALL SELECT NULL, CASE WHEN (SELECT coalesce(sum(number), 0) FROM counted) < {limit} "
        f"THEN (SELECT count(*) FROM ({behind}) AS behind) ELSE 0 END"
    )


def to_status_counts(rows: Iterable[tuple[str | None, int]]) -> StatusCounts:
    """What the statement of a count found."""
    found = dict(rows)
    is_given_up = bool(found.pop(None, 0))
    return StatusCounts({str(status): number for status, number in found.items()}, is_given_up)


# --- what a condition tells before rows are looked at ---------------------------------------------------------------------


def narrow(query: ExecutionFilter) -> ExecutionFilter:
    """The filter with what its `where` says about columns repeated in the fields that indexes know."""
    found: dict[str, Any] = {}
    for one in list_conjuncts(query.where):
        match one:
            case OneOf(Column.STATUS, values) if not query.statuses:
                found.setdefault("statuses", tuple(Status(str(value)) for value in values))
            case OneOf(Column.WORKFLOW_ID, (value,)) if query.workflow_id is None:
                found.setdefault("workflow_id", value)
            case OneOf(Column.PARENT, (value,)) if query.parent_id is None:
                found.setdefault("parent_id", value)
            case Range(Column.WORKFLOW_ID, str(low), high) if query.workflow_id_prefix is None and high == find_prefix_end(
                low
            ):
                found.setdefault("workflow_id_prefix", low)
            case Range(Column.CREATED | Column.CLOSED as column, low, high):
                if low is not None and getattr(query, f"{column}_after") is None:
                    found.setdefault(f"{column}_after", low)
                if high is not None and getattr(query, f"{column}_before") is None:
                    found.setdefault(f"{column}_before", high)
    return msgspec.structs.replace(query, **found) if found else query


# --- lists in the order of a value ----------------------------------------------------------------------------------------


def find_value_bounds(query: ExecutionFilter) -> tuple[tuple[Value, str], tuple[Value, str]]:
    """Between which pairs of value and execution id, both left out, a list in the order of a value lies."""
    is_time = query.order.field is Column.CLOSED
    low: Value = EARLIEST if is_time else ""
    high: Value = LATEST if is_time else BEHIND_VALUES
    for one in list_conjuncts(query.where):
        if isinstance(one, Range) and one.field == query.order.field:
            low = low if one.low is None else max(low, one.low)
            high = high if one.high is None else min(high, one.high)
    if is_time:
        low, high = max(low, _or(query.closed_after, EARLIEST)), min(high, _or(query.closed_before, LATEST))
    first, end = (low, ""), (high, BEHIND_ALL if is_time and high == LATEST else "")
    if query.before is not None and query.before_value is not None:
        position = (query.before_value, query.before)
        if query.order.is_descending:
            end = min(end, position)
        else:
            first = max(first, position)
    return first, end


def is_past_values(query: ExecutionFilter) -> bool:
    """Whether the pages before have listed all that has the value by which is ordered."""
    return query.before is not None and query.before_value is None


def make_rest(query: ExecutionFilter, listed: int) -> ExecutionFilter:
    """The list of what has no such value, newest first, behind those that have one."""
    lacks = Not(Has(query.order.field))
    return msgspec.structs.replace(
        query,
        where=lacks if query.where is None else And((query.where, lacks)),
        order=NEWEST_FIRST,
        before=query.before if is_past_values(query) else None,
        before_value=None,
        limit=query.limit - listed,
    )


def read_field(row: ExecutionRow, field: Field) -> Value | None:
    """What a row has in a field of the filter language; None if it has no such thing."""
    if isinstance(field, Attribute):
        kind, name = field.kind.value, field.name
        return next((value for found, key, value in read_attributes(row.details) if found == kind and key == name), None)
    match field:
        case Column.STATUS:
            return str(row.status)
        case Column.PARENT:
            return row.parent_id
        case Column.CREATED:
            return row.created_at
        case Column.CLOSED:
            return row.closed_at
        case _:
            return str(getattr(row, field.value))


def is_behind(query: ExecutionFilter, row: ExecutionRow) -> bool:
    """Whether a row comes behind the page before, in the order of the list."""
    if query.before is None:
        return True
    order = query.order
    if order.field is Column.CREATED:
        return row.execution_id < query.before if order.is_descending else row.execution_id > query.before
    value = read_field(row, order.field)
    if query.before_value is None or value is None:
        return value is None and (query.before_value is not None or row.execution_id < query.before)
    mine, last = (value, row.execution_id), (query.before_value, query.before)
    return mine < last if order.is_descending else mine > last


def make_page(query: ExecutionFilter, rows: list[ExecutionRow]) -> ExecutionPage:
    """A page in an order, with where the next one begins if this one is full."""
    if len(rows) < query.limit:
        return ExecutionPage(rows, None)
    field = query.order.field
    return ExecutionPage(rows, rows[-1].execution_id, None if field is Column.CREATED else read_field(rows[-1], field))


def turn_round(statement: str) -> str:
    """The statement of a list that ascends, from the one that descends."""
    return statement.replace(" DESC", " ASC")


def find_end(query: ExecutionFilter, rows: list[Any], walk_end: str | None) -> str | None:
    """Behind which execution id a list goes on; None if that was all. `walk_end` is where a walk was given up."""
    return rows[-1].execution_id if len(rows) == query.limit else walk_end


def _id_at(at: Instant) -> str:
    return make_execution_id(min(max(at, 0), _LAST_ID_AT), 0)


def _or(at: Instant | None, otherwise: Instant) -> Instant:
    return otherwise if at is None else min(max(at, EARLIEST), LATEST)
