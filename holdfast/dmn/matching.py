"""Which rules of a table match, found by looking up instead of trying each: rules are bits of a number.

For every column it is known beforehand which rules let which values through: a number with a bit for each rule, for every
stretch between two neighbouring ends of ranges, and for every end itself. To find the rules for all inputs takes a bisection
for each column and an `and` of the numbers. Cells that have to be evaluated are, but only those of rules that are left then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from holdfast.dmn.cells import ORDERED, Cell, Interval
from holdfast.feel.values import Value

RULES_OF_BLOCK: Final = 512
"""Larger tables are cut into blocks, so that the numbers of all stretches together stay small."""


class Stretches:
    """All values of one ordered kind, cut at every end of an interval: which rules let each piece through.

    `masks[2 * i + 1]` is for the value `ends[i]` itself, `masks[2 * i]` for what lies before it.
    """

    __slots__ = ("ends", "masks")

    def __init__(self, rules: Sequence[tuple[int, Sequence[Interval], bool]]) -> None:
        """Each rule with its bit, its intervals, and whether they are negated."""
        ends = {end for _, intervals, _ in rules for interval in intervals for end in (interval.low, interval.high)}
        ends.discard(None)
        self.ends: list[Value] = sorted(ends)
        places = {end: 2 * at + 1 for at, end in enumerate(self.ends)}
        count = 2 * len(self.ends) + 1
        begins, stops = [0] * (count + 1), [0] * (count + 1)
        for bit, intervals, is_negated in rules:
            for first, last in _join([_find_pieces(interval, places, count) for interval in intervals], count, is_negated):
                begins[first] |= bit
                stops[last] |= bit
        self.masks: list[int] = []
        current = 0
        for at in range(count):
            current = (current & ~stops[at]) | begins[at]
            self.masks.append(current)

    def find_piece(self, value: Value) -> int:
        """The number of the piece that a value of the kind lies in."""
        ends = self.ends
        at = bisect_left(ends, value)
        return 2 * at + 1 if at < len(ends) and ends[at] == value else 2 * at


def _find_pieces(interval: Interval, places: dict[Value, int], count: int) -> tuple[int, int]:
    """The first piece of an interval, and the one behind its last."""
    first = 0 if interval.low is None else places[interval.low] + (0 if interval.low_included else 1)
    last = count if interval.high is None else places[interval.high] + (1 if interval.high_included else 0)
    return first, last


def _join(runs: list[tuple[int, int]], count: int, is_negated: bool) -> list[tuple[int, int]]:
    """Runs of pieces without those that overlap; or all that lies between them."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        elif first < last:
            joined.append((first, last))
    if not is_negated:
        return joined
    ends = [0, *(end for run in joined for end in run), count]
    return [(first, last) for first, last in zip(ends[::2], ends[1::2], strict=True) if first < last]


class Column:
    """The cells of one input. The rules that let a value through for sure, and those that have to be asked."""

    __slots__ = ("_always", "_asked", "_asked_by_kind", "_booleans", "_null", "_numbers", "_strings")

    def __init__(self, cells: Sequence[Cell | None]) -> None:
        known = [(1 << at, cell) for at, cell in enumerate(cells) if cell is not None and not cell.is_any]
        unknown = sum(1 << at for at, cell in enumerate(cells) if cell is None)
        self._always = sum(1 << at for at, cell in enumerate(cells) if cell is not None and cell.is_any)
        self._numbers = Stretches(_select(known, Decimal))
        self._strings = Stretches(_select(known, str))
        self._booleans = tuple(
            sum(bit for bit, cell in known if cell.booleans and cell.contains(value)) for value in (False, True)
        )
        self._null = sum(bit for bit, cell in known if cell.has_null)
        self._asked_by_kind = {
            kind: unknown | sum(bit for bit, cell in known if _has_to_be_asked(cell, kind))
            for kind in (Decimal, str, bool, type(None))
        }
        self._asked = unknown | sum(bit for bit, _ in known)

    def find(self, value: Value) -> tuple[int, int]:
        """The rules that let the value through, and those whose cells have to be asked."""
        kind = type(value)
        asked = self._asked_by_kind.get(kind)
        if asked is None:
            return self._always, self._asked
        if kind is Decimal:
            numbers = self._numbers
            return self._always | numbers.masks[numbers.find_piece(value)], asked
        if kind is str:
            strings = self._strings
            return self._always | strings.masks[strings.find_piece(value)], asked
        return self._always | (self._null if value is None else self._booleans[value]), asked


def _has_to_be_asked(cell: Cell, kind: type) -> bool:
    """A negated cell knows nothing of other kinds than its own. A boolean may answer for numbers and strings itself."""
    return (cell.is_negated and cell.find_kind() is not kind) or (bool(cell.booleans) and kind in ORDERED)


def _select(known: Sequence[tuple[int, Cell]], kind: type) -> list[tuple[int, Sequence[Interval], bool]]:
    parts = ((bit, cell.numbers if kind is Decimal else cell.strings, cell.is_negated) for bit, cell in known)
    return [(bit, intervals, is_negated) for bit, intervals, is_negated in parts if intervals]


class Block:
    """Some rules in a row. `first` is the index of the first of them."""

    __slots__ = ("all", "columns", "first")

    def __init__(self, first: int, rows: Sequence[Sequence[Cell | None]], inputs: int) -> None:
        self.first = first
        self.all = (1 << len(rows)) - 1
        self.columns = [Column([row[at] for row in rows]) for at in range(inputs)]

    def find(self, values: Sequence[Value]) -> Iterator[tuple[int, list[int]]]:
        """The indices of rules that match, each with the inputs whose cells have to be asked yet; in order."""
        left = self.all
        doubts: list[tuple[int, int]] = []
        for at, column in enumerate(self.columns):
            sure, asked = column.find(values[at])
            left &= sure | asked
            if not left:
                return
            if asked:
                doubts.append((at, asked))
        while left:
            bit = left & -left
            left ^= bit
            yield self.first + bit.bit_length() - 1, [at for at, asked in doubts if asked & bit]


class Matcher:
    """Finds the rules of a whole table that match some inputs, block by block."""

    __slots__ = ("_blocks",)

    def __init__(self, rows: Sequence[Sequence[Cell | None]], inputs: int) -> None:
        """What is known of each cell of each rule; None has to be asked."""
        self._blocks = [
            Block(first, rows[first : first + RULES_OF_BLOCK], inputs) for first in range(0, len(rows), RULES_OF_BLOCK)
        ]

    def find(self, values: Sequence[Value]) -> Iterator[tuple[int, list[int]]]:
        """The indices of the rules that match, in their order, each with the inputs whose cells have to be asked yet."""
        for block in self._blocks:
            yield from block.find(values)
