"""What a cell of a decision table lets through, as far as its text alone tells: literals, comparisons and ranges.

Everything else (names, calculations, function calls, dates) has no such answer; it has to be evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from holdfast.feel import syntax
from holdfast.feel.values import Value

ORDERED: Final = (Decimal, str)
"""Kinds of values that have an order of their own in Python, and the same one in FEEL."""
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Interval:
    """Values of one kind between two ends, which may leave none between them. An end that is None is none."""

    low: Value = None
    high: Value = None
    low_included: bool = False
    high_included: bool = False

    def contains(self, value: Value) -> bool:
        """Whether a value of the same kind lies in it."""
        if self.low is not None and (value < self.low or (value == self.low and not self.low_included)):
            return False
        return self.high is None or value < self.high or (value == self.high and self.high_included)


@dataclass(frozen=True, slots=True)
class Cell:
    """The values that a cell lets through, by kind. With `is_negated`, those of its only kind that it does not."""

    numbers: tuple[Interval, ...] = ()
    strings: tuple[Interval, ...] = ()
    booleans: tuple[bool, ...] = ()
    has_null: bool = False
    is_negated: bool = False
    is_any: bool = False

    def list_kinds(self) -> list[type]:
        """The kinds of its values; null does not count."""
        return [kind for kind, part in ((Decimal, self.numbers), (str, self.strings), (bool, self.booleans)) if part]

    def find_kind(self) -> type | None:
        """The only kind of its values, if there is only one."""
        kinds = self.list_kinds()
        return kinds[0] if len(kinds) == 1 else None

    def contains(self, value: Value) -> bool:
        """Whether it lets a number, string, boolean or null through. Negated cells speak for their own kind only."""
        kind = type(value)
        if self.is_any:
            return True
        if value is None:
            return self.has_null and not self.is_negated
        if kind is bool:
            return (value in self.booleans) is not self.is_negated
        intervals = self.numbers if kind is Decimal else self.strings if kind is str else ()
        return any(interval.contains(value) for interval in intervals) is not self.is_negated


ANY: Final = Cell(is_any=True)


def analyse(tests: syntax.UnaryTests) -> Cell | None:
    """What the tests let through; None if that has to be evaluated."""
    if not tests.tests:
        return ANY
    if len(tests.tests) == 1 and not tests.is_negated:
        only = tests.tests[0]
        if isinstance(only, syntax.ComparisonTest) and only.operator == "!=":
            # What other kinds of values make of it is left to the evaluation, as with not(…).
            return _negate(_combine([_analyse_value(_get_constant(only.operand))]))
    cell = _combine([analyse_test(test) for test in tests.tests])
    return _negate(cell) if tests.is_negated else cell


def analyse_test(test: syntax.Node) -> Cell | None:
    """What one test of a cell lets through; None if that has to be evaluated."""
    match test:
        case syntax.ComparisonTest(_, operator, operand):
            return _analyse_comparison(operator, _get_constant(operand))
        case syntax.RangeLiteral(_, start, end, start_included, end_included):
            low, high = _get_constant(start), _get_constant(end)
            if type(low) is not type(high) or type(low) not in ORDERED:
                return None
            return _make(type(low), Interval(low, high, start_included, end_included))
        case _:
            return _analyse_value(_get_constant(test))


def _get_constant(node: syntax.Node | None) -> Value:
    """The value of a literal, also of a number with a minus; `_NOTHING` for anything else."""
    if isinstance(node, syntax.Literal):
        return node.value
    if isinstance(node, syntax.Negation) and isinstance(node.operand, syntax.Literal):
        value = node.operand.value
        return -value if type(value) is Decimal else _NOTHING
    return _NOTHING


def _analyse_value(value: Value) -> Cell | None:
    kind = type(value)
    if value is None:
        return Cell(has_null=True)
    if kind is bool:
        return Cell(booleans=(value,))
    return _make(kind, Interval(value, value, True, True)) if kind in ORDERED else None


def _analyse_comparison(operator: str, value: Value) -> Cell | None:
    if operator == "=":
        return _analyse_value(value)
    if type(value) not in ORDERED or operator == "!=":
        return None
    if operator[0] == "<":
        return _make(type(value), Interval(high=value, high_included=operator == "<="))
    return _make(type(value), Interval(low=value, low_included=operator == ">="))


def _make(kind: type, interval: Interval) -> Cell:
    return Cell(numbers=(interval,)) if kind is Decimal else Cell(strings=(interval,))


def _combine(cells: Sequence[Cell | None]) -> Cell | None:
    """What any of them lets through."""
    known = [cell for cell in cells if cell is not None]
    if len(known) < len(cells):
        return None
    return Cell(
        numbers=tuple(interval for cell in known for interval in cell.numbers),
        strings=tuple(interval for cell in known for interval in cell.strings),
        booleans=tuple(dict.fromkeys(value for cell in known for value in cell.booleans)),
        has_null=any(cell.has_null for cell in known),
    )


def _negate(cell: Cell | None) -> Cell | None:
    if cell is None or cell.has_null or cell.find_kind() is None:
        return None
    return Cell(cell.numbers, cell.strings, cell.booleans, is_negated=True)
