"""What is equal, what comes before what, what is in what, and what is the very same.

Three-valued, as the language is: None says that the question has no answer for these two. Nothing here calls itself, so no
depth of nesting is too deep; with a run, every pair of nested values that is looked at counts as a step of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Final

from holdfast.feel.running import LONG, Run
from holdfast.feel.temporal import comparing as temporal
from holdfast.feel.values import Function, Range, Value

ATOMS: Final = frozenset({Decimal, str, bool, type(None)})
"""Types whose equality within the type is Python's own, and which can be hashed."""
NESTED: Final = frozenset({list, dict, Range})
NOT_TEMPORAL: Final = ATOMS | NESTED | {Function}


def equal(left: Value, right: Value, run: Run | None = None) -> bool | None:
    """FEEL's `=`: None where the kinds differ and neither is null. Raises FeelLimitExceeded for too large a pair of values.

    DMN 10.3.2.2 and 10.3.2.15: null equals null only; lists and contexts are equal if everything in them is, ranges if ends
    and inclusion are. Inside of these, what has no answer is not equal.
    """
    kind = type(left)
    if kind is type(right):
        if kind in ATOMS:
            if kind is str and run is not None and len(left) > LONG:
                run.check_compared(left, right)
            same: bool = left == right
            return same
        if kind in NESTED:
            return left is right or _match(left, right, equal, run or Run())
        return left is right if kind is Function else temporal.equal(left, right)
    if left is None or right is None:
        return False
    if kind in NOT_TEMPORAL or type(right) in NOT_TEMPORAL:
        return None
    return temporal.equal(left, right)


def compare(left: Value, right: Value, run: Run | None = None) -> int | None:
    """For `<`, `<=`, `>` and `>=`: -1, 0 or 1; None where there is no order between the two.

    DMN 10.3.2.15: numbers, strings, dates, times, date and times and durations have one, each with its like. Strings are
    ordered by code point.
    """
    kind = type(left)
    if kind is type(right) and (kind is Decimal or kind is str):
        if kind is str and run is not None and len(left) > LONG:
            run.check_compared(left, right)
        order: int = (left > right) - (left < right)
        return order
    if kind in NOT_TEMPORAL or type(right) in NOT_TEMPORAL:
        return None
    return temporal.compare(left, right)


def is_identical(left: Value, right: Value, run: Run | None = None) -> bool:
    """Whether both are the same element of the semantic domain (DMN 10.3.4.6): an instant in two zones is not."""
    kind = type(left)
    if kind is type(right) and kind in NESTED:
        return left is right or _match(left, right, is_identical, run or Run())
    if kind in NOT_TEMPORAL or type(right) in NOT_TEMPORAL:
        return kind is type(right) and bool(left == right)
    return temporal.is_identical(left, right)


def is_in(value: Value, test: Value, run: Run | None = None) -> bool | None:
    """FEEL's `in`: in a range, in a list or in a range of that list; anything else has to be equal.

    DMN 10.3.2.15. A list is in a list also if both are equal, as an input and its test are (DMN 7.3.3).
    """
    kind = type(test)
    if kind is Range:
        return is_in_range(value, test, run)
    if kind is not list:
        return equal(value, test, run)
    is_known = True
    if run is not None:
        run.spend(len(test))
    for item in test:
        found = is_in_range(value, item, run) if type(item) is Range else equal(value, item, run)
        if found:
            return True
        # A range with a null for an end has no answer; an item of another kind is just not what was looked for.
        is_known = is_known and (found is False or type(item) is not Range)
    if type(value) is list and equal(value, test, run):
        return True
    return False if is_known else None


def is_in_range(value: Value, test: Range, run: Run | None = None) -> bool | None:
    """Whether it lies between the ends: `value >= start and value <= end`, with the three-valued `and`.

    A range without start and end holds just one value, or all but that one, as `= 10` and `!= 10` do: `start` is the value,
    `start_included` tells which of the two it is. A range is in a range that is equal to it.
    """
    if type(value) is Range:
        return equal(value, test, run)
    if not test.has_start and not test.has_end:
        same = equal(value, test.start, run)
        return same if test.start_included or same is None else not same
    is_after = is_before = True if value is not None else None
    if test.has_start:
        order = compare(value, test.start, run)
        is_after = None if order is None else order > 0 or (order == 0 and test.start_included)
    if test.has_end and is_after is not False:
        order = compare(value, test.end, run)
        is_before = None if order is None else order < 0 or (order == 0 and test.end_included)
    if is_after is False or is_before is False:
        return False
    return None if is_after is None or is_before is None else True


def _match(left: Value, right: Value, is_same: Callable[[Value, Value], bool | None], run: Run) -> bool:
    """Whether two values of one nested type are the same throughout; `is_same` decides where they are not nested."""
    open_pairs: list[Iterator[tuple[Value, Value]]] = [iter([(left, right)])]
    while open_pairs:
        for one, other in open_pairs[-1]:
            run.spend(1)
            if type(one) is not type(other) or type(one) not in NESTED:
                if type(one) is str and len(one) > LONG and type(other) is str:
                    run.check_compared(one, other)
                if not is_same(one, other):
                    return False
            elif one is not other:
                inner = _pair_items(one, other)
                if inner is None:
                    return False
                open_pairs.append(inner)
                break
        else:
            open_pairs.pop()
    return True


def _pair_items(left: Value, right: Value) -> Iterator[tuple[Value, Value]] | None:
    """What has to be the same for two values of one nested type; None if their outlines differ already."""
    if type(left) is list:
        return zip(left, right, strict=True) if len(left) == len(right) else None
    if type(left) is dict:
        return ((value, right[key]) for key, value in left.items()) if left.keys() == right.keys() else None
    if _outline(left) != _outline(right):
        return None
    return iter(((left.start, right.start), (left.end, right.end)))


def _outline(of: Range) -> tuple[bool, bool, bool, bool]:
    """Which ends a range has and which of them belong to it; an end that is not there does not belong to it either."""
    is_test = not of.has_start and not of.has_end
    return (
        of.has_start,
        of.has_end,
        of.start_included and (of.has_start or is_test),
        of.end_included and of.has_end,
    )
