"""What of a filter indexes find by themselves: executions among which all are that it selects, if they are few.

A selection is a set of ranges, of values of an attribute or of ids: all that is in any of them. Each condition that must
hold may have one; an OR has that of all its parts, if each has one; NOT goes inwards. The store counts what is in each, up
to the smallest, and reads that; all conditions are checked on what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from holdfast.filters.syntax import And, Attribute, AttributeKind, Column, Condition, Field, Has, Not, OneOf, Or, Range
from holdfast.store.contract import ExecutionFilter

BEHIND_ALL: Final = "\U0010ffff"
"""A text that is greater than any id."""
BEHIND_VALUES: Final = BEHIND_ALL * 126
"""A text that is greater than any value of an attribute, which has 500 bytes and perhaps a mark."""
MOST_SELECTIONS: Final = 6
"""So many selections of a filter are counted; what else it says is checked."""

_INDEXED: Final = (Column.WORKFLOW_ID, Column.EXECUTION_ID, Column.PARENT)


class Selected(msgspec.Struct, frozen=True):
    """Values of one field from `low` on, up to but without `high`."""

    field: Field
    low: str
    high: str

    @property
    def is_one(self) -> bool:
        """Whether the range is that of one value."""
        return self.high == self.low + "\x01"


Selection = tuple[Selected, ...]


class SelectionColumns(msgspec.Struct, frozen=True):
    """A selection as statements take it: lists of kind, name, low and high, of low and high, and of ids."""

    attributes: list[tuple[str, str, str, str]]
    workflow_ids: list[tuple[str, str]]
    parents: list[str]
    execution_ids: list[str]


def list_conjuncts(condition: Condition | None) -> list[Condition]:
    """The conditions that must all hold for a condition to hold."""
    if isinstance(condition, And):
        return [found for item in condition.items for found in list_conjuncts(item)]
    if isinstance(condition, Not) and (inner := _negate(condition.item)) is not None:
        return list_conjuncts(inner)
    return [] if condition is None else [condition]


def list_selections(query: ExecutionFilter) -> list[Selection]:
    """The selections of a filter, any of which can lead; none where another index leads in any case."""
    is_newest_first = query.order.field is Column.CREATED
    if is_newest_first and (query.workflow_id is not None or query.parent_id is not None):
        return []
    named = ((Attribute(AttributeKind.METADATA, name), value) for name, value in query.metadata.items())
    found: list[Selection] = [(_select_one(field, value),) for field, value in named]
    if query.workflow_id is not None:
        found.append((_select_one(Column.WORKFLOW_ID, query.workflow_id),))
    if query.parent_id is not None:
        found.append((_select_one(Column.PARENT, query.parent_id),))
    if query.workflow_id_prefix and not is_newest_first:
        found.append((Selected(Column.WORKFLOW_ID, query.workflow_id_prefix, query.workflow_id_prefix + BEHIND_ALL),))
    for one in _join_ranges(list_conjuncts(query.where)):
        if isinstance(one, Has | Range) and one.field == query.order.field:
            continue  # the index in whose order the list is knows it
        if is_newest_first and isinstance(one, Range) and one.field is Column.WORKFLOW_ID:
            continue  # a prefix, which has an index of its own
        selection = select(one)
        if selection is not None:
            found.append(selection)
    return sorted(found, key=_guess)[:MOST_SELECTIONS]


def select(condition: Condition) -> Selection | None:
    """What indexes find for a condition: all that it selects, and perhaps more; None if none does."""
    match condition:
        case OneOf(field, values) if _is_indexed(field):
            return tuple(_select_one(field, str(value)) for value in values)
        case Range(Attribute() | Column.WORKFLOW_ID as field, low, high):
            return (Selected(field, str(low or ""), BEHIND_VALUES if high is None else str(high)),)
        case Has(Attribute() as field):
            return (Selected(field, "", BEHIND_VALUES),)
        case Or(items):
            parts = [select(item) for item in items]
            return None if None in parts else tuple(one for part in parts if part is not None for one in part)
        case And():
            found = [select(item) for item in _join_ranges(list_conjuncts(condition))]
            return min((one for one in found if one is not None), key=_guess, default=None)
        case Not(item) if (inner := _negate(item)) is not None:
            return select(inner)
        case _:
            return None


def to_columns(selection: Selection) -> SelectionColumns:
    """The selection as values of a statement, each once."""
    columns = SelectionColumns([], [], [], [])
    for one in dict.fromkeys(selection):
        if isinstance(one.field, Attribute):
            columns.attributes.append((one.field.kind, one.field.name, one.low, one.high))
        elif one.field is Column.WORKFLOW_ID:
            columns.workflow_ids.append((one.low, one.high))
        else:
            (columns.parents if one.field is Column.PARENT else columns.execution_ids).append(one.low)
    return columns


def _select_one(field: Field, value: str) -> Selected:
    return Selected(field, value, value + "\x01")


def _is_indexed(field: Field) -> bool:
    return isinstance(field, Attribute) or field in _INDEXED


def _guess(selection: Selection) -> tuple[bool, int]:
    """Which part of an AND inside an OR is taken: values before ranges, and few before many."""
    return not all(one.is_one for one in selection), len(selection)


def _join_ranges(conditions: Sequence[Condition]) -> Iterator[Condition]:
    """The conditions, with all ranges of one field as one."""
    ranges: dict[Field, Range] = {}
    for one in conditions:
        if not isinstance(one, Range):
            yield one
            continue
        before = ranges.get(one.field, one)
        lows = [low for low in (before.low, one.low) if low is not None]
        highs = [high for high in (before.high, one.high) if high is not None]
        ranges[one.field] = Range(one.field, max(lows, default=None), min(highs, default=None))
    yield from ranges.values()


def _negate(condition: Condition) -> Condition | None:
    """What holds if a condition does not, without a NOT around it; None if there is no such thing."""
    match condition:
        case Not(item):
            return item
        case And(items):
            return Or(tuple(map(Not, items)))
        case Or(items):
            return And(tuple(map(Not, items)))
        case _:
            return None
