"""What a list of numbers comes to: sums and averages of DMN 10.3.4.4, for `lists`.

All is reckoned with 34 digits; what is not finite is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Final

from holdfast.feel.running import Fail, Run
from holdfast.feel.values import NUMBERS, Value

_ONLY_NUMBERS: Final = frozenset({Decimal})


def add_up(run: Run, *items: Value) -> Decimal | None:
    """`sum` of numbers; null of none. Raises Fail if an item is something else."""
    return _add(_require_numbers(run, items)) if items else None


def multiply_out(run: Run, *items: Value) -> Decimal | None:
    """`product` of numbers; null of none. Raises Fail if an item is something else."""
    if not items:
        return None
    product = Decimal(1)
    for number in _require_numbers(run, items):
        product = NUMBERS.multiply(product, number)
    return _require_finite(product)


def find_mean(run: Run, *items: Value) -> Decimal | None:
    """`mean`, the arithmetic one; null of none."""
    return _average(_require_numbers(run, items)) if items else None


def find_median(run: Run, *items: Value) -> Decimal | None:
    """`median`: the number in the middle, or the mean of the two there; null of none."""
    numbers = sorted(_require_numbers(run, items))
    if not numbers:
        return None
    middle = len(numbers) // 2
    return numbers[middle] if len(numbers) % 2 else _average(numbers[middle - 1 : middle + 1])


def find_deviation(run: Run, *items: Value) -> Decimal:
    """`stddev`: the standard deviation of a sample, which has to be of two numbers at least."""
    numbers = _require_numbers(run, items)
    if len(numbers) < 2:
        raise Fail("a standard deviation takes two numbers at least")
    mean = _average(numbers)
    squares = [NUMBERS.multiply(off, off) for off in (NUMBERS.subtract(number, mean) for number in numbers)]
    return NUMBERS.sqrt(_require_finite(NUMBERS.divide(_add(squares), Decimal(len(numbers) - 1))))


def find_modes(run: Run, *items: Value) -> list[Decimal]:
    """`mode`: the numbers that are there most often, in ascending order."""
    counts = Counter(_require_numbers(run, items))
    most = max(counts.values(), default=0)
    return sorted(number for number, count in counts.items() if count == most)


def _require_numbers(run: Run, items: Sequence[Value]) -> Sequence[Decimal]:
    run.spend(len(items))
    if not _ONLY_NUMBERS.issuperset(map(type, items)):
        position = next(position for position, item in enumerate(items, 1) if type(item) is not Decimal)
        raise Fail(f"item {position} is not a number")
    return items


def _require_finite(number: Decimal) -> Decimal:
    if not number.is_finite():
        raise Fail("the result is too large for a number")
    return number


def _add(numbers: Sequence[Decimal]) -> Decimal:
    return _require_finite(reduce(NUMBERS.add, numbers, Decimal(0)))


def _average(numbers: Sequence[Decimal]) -> Decimal:
    return NUMBERS.divide(_add(numbers), Decimal(len(numbers)))
