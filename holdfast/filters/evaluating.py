"""Whether a filter selects an execution: the meaning of the tree, which every store has to agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from holdfast.filters.syntax import And, Condition, Field, Has, Not, OneOf, Or, Range, Value

Find: TypeAlias = Callable[[Field], Value | None]
"""Tells the value of a field of an execution; None if it has none."""


def holds(condition: Condition, find: Find) -> bool:
    """Whether a condition holds for the execution that `find` tells about."""
    match condition:
        case And(items):
            return all(holds(one, find) for one in items)
        case Or(items):
            return any(holds(one, find) for one in items)
        case Not(item):
            return not holds(item, find)
        case Has(field):
            return find(field) is not None
        case OneOf(field, values):
            return find(field) in values
        case Range(field, low, high):
            value = find(field)
            if value is None:
                return False
            return (low is None or low <= value) and (high is None or value < high)  # type: ignore[operator]


def list_fields(condition: Condition | None) -> Iterator[Field]:
    """All fields that a condition is about."""
    match condition:
        case None:
            return
        case And(items) | Or(items):
            for one in items:
                yield from list_fields(one)
        case Not(item):
            yield from list_fields(item)
        case _:
            yield condition.field
