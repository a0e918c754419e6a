"""Names at compile time: each local one has a place in the frame, and what stands in a filter may be an item's entry.

A frame is a list. `frame[0]` is the context that was given, `frame[1]` the run; the places after them belong to iterators,
parameters, entries and items. So a variable is an index, not a search.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from holdfast.feel.values import Value

CONTEXT: Final = 0
RUN: Final = 1
FIRST: Final = 2

Frame: TypeAlias = list[Value]


@dataclass(slots=True)
class Unit:
    """What is compiled together: how many places its frame has, and which names it takes from outside."""

    size: int = FIRST
    names: dict[str, None] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    """Functions that it takes from outside, and where each is called first."""
    used: set[int] = field(default_factory=set)
    """Places that something looks at."""
    unread: set[int] = field(default_factory=set)
    """Places of items that are as Python has them."""
    functions: int = 0
    """How many functions it defines."""

    def reserve(self) -> int:
        """Add a place to the frame; returns its index."""
        self.size += 1
        return self.size - 1


@dataclass(frozen=True, slots=True)
class Scope:
    """Names that are visible somewhere; `outer` is what surrounds it."""

    unit: Unit
    outer: Scope | None = None
    locals: dict[str, int] = field(default_factory=dict)
    item: int | None = None
    """In a filter: where the item stands, whose entries are visible by their names."""

    def nest(self) -> Scope:
        """A scope inside of this one."""
        return Scope(self.unit, self)

    def nest_filter(self) -> Scope:
        """The scope of a filter's condition."""
        return Scope(self.unit, self, item=self.unit.reserve())

    def declare(self, name: str) -> int:
        """Give a local name its place."""
        place = self.locals[name] = self.unit.reserve()
        return place

    @property
    def is_in_filter(self) -> bool:
        """Whether a filter surrounds it, so that names may be entries of an item."""
        return self.item is not None or (self.outer is not None and self.outer.is_in_filter)

    def find(self, name: str) -> tuple[list[int], int | None]:
        """Where to look: items of surrounding filters, the innermost first; then a place, or None for the context."""
        items: list[int] = []
        scope: Scope | None = self
        while scope is not None:
            if name in scope.locals:
                self.unit.used.add(scope.locals[name])
                return items, scope.locals[name]
            if scope.item is not None:
                items.append(scope.item)
            scope = scope.outer
        return items, None
