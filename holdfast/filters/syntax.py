"""What a filter means: a tree of frozen values, and an order.

Logic has two values. A condition on something that an execution does not have (a key, the time of an end) is false, and NOT
makes it true. Values stand as stores keep them: instants as numbers, values of states as `core.searchable_values`
writes them. So a comparison is one of three things: among some values, in a half-open range, or there at all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec


class Column(StrEnum):
    """What every execution has, or may have, beside its attributes."""

    STATUS = "status"
    WORKFLOW = "workflow"
    WORKFLOW_ID = "workflow_id"
    EXECUTION_ID = "execution_id"
    QUEUE = "queue"
    PARENT = "parent_execution_id"
    CREATED = "created"
    CLOSED = "closed"


class AttributeKind(StrEnum):
    """What is found in the table of attributes. The values are stored."""

    METADATA = "metadata"
    STATE = "state"
    REFERENCE = "reference"
    """The key of the business reference; its name is empty."""
    PART = "part"
    """A part of the business reference, by name."""


class Attribute(msgspec.Struct, frozen=True, gc=False):
    """Something by name that an execution may have: a key of its state or metadata, its business reference."""

    kind: AttributeKind
    name: str = ""

    def __str__(self) -> str:
        if self.kind is AttributeKind.REFERENCE:
            return "reference"
        return f"{'reference' if self.kind is AttributeKind.PART else self.kind}.{self.name}"


Field: TypeAlias = Column | Attribute
Value: TypeAlias = str | int


class Has(msgspec.Struct, frozen=True, gc=False):
    """The condition that the execution has the field."""

    field: Field


class OneOf(msgspec.Struct, frozen=True, gc=False):
    """The field has one of these values."""

    field: Field
    values: tuple[Value, ...]


class Range(msgspec.Struct, frozen=True, gc=False):
    """The field is at least `low` and less than `high`; None: no bound at that end."""

    field: Field
    low: Value | None
    high: Value | None


class Not(msgspec.Struct, frozen=True, gc=False):
    """The condition that another one does not hold."""

    item: Condition


class And(msgspec.Struct, frozen=True, gc=False):
    """The condition that all of some others hold."""

    items: tuple[Condition, ...]


class Or(msgspec.Struct, frozen=True, gc=False):
    """The condition that at least one of some others holds."""

    items: tuple[Condition, ...]


Condition: TypeAlias = Has | OneOf | Range | Not | And | Or


class Order(msgspec.Struct, frozen=True, gc=False):
    """The order of a list; ties by execution id, in the same direction. What has no such field comes last, newest first.

    The time of creation stands for the execution id, which is ordered by the time at which the execution was asked for.
    """

    field: Field = Column.CREATED
    is_descending: bool = True


NEWEST_FIRST = Order()
