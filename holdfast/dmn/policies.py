"""Hit policies: what becomes of the outputs of all rules that match. DMN 8.2.11 and 10.3.2.10; one function for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

from holdfast.dmn.cells import analyse_test
from holdfast.dmn.model import HitPolicy
from holdfast.feel import syntax
from holdfast.feel.comparing import compare, equal
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import NUMBERS, Value


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that matches, and what it gives: a value, or a context if there are several outputs."""

    number: int
    value: Value
    priority: tuple[int, ...] = ()
    """For each output, the place of its value among the output values, from 0 on."""


Apply: TypeAlias = Callable[[Sequence[Hit], Run], Value]
"""At least one rule matches. Raises Fail if the policy is violated."""


def _apply_unique(hits: Sequence[Hit], _run: Run) -> Value:
    if len(hits) > 1:
        raise Fail(f"{name_rules(hits)} match, but the hit policy U lets only one of them match")
    return hits[0].value


def _apply_any(hits: Sequence[Hit], run: Run) -> Value:
    value = hits[0].value
    for hit in hits[1:]:
        if equal(value, hit.value, run) is not True:
            raise Fail(f"{name_rules([hits[0], hit])} match with different outputs, but the hit policy A wants the same")
    return value


def _apply_first(hits: Sequence[Hit], _run: Run) -> Value:
    return hits[0].value


def _apply_priority(hits: Sequence[Hit], _run: Run) -> Value:
    return min(hits, key=_get_priority).value


def _apply_output_order(hits: Sequence[Hit], _run: Run) -> Value:
    return [hit.value for hit in sorted(hits, key=_get_priority)]


def _get_priority(hit: Hit) -> tuple[int, ...]:
    return hit.priority


def _list_values(hits: Sequence[Hit], _run: Run) -> Value:
    return [hit.value for hit in hits]


def _apply_sum(hits: Sequence[Hit], _run: Run) -> Value:
    total = Decimal(0)
    for hit in hits:
        if type(hit.value) is not Decimal:
            raise Fail(f"the output of rule {hit.number} is no number, so that there is no sum")
        total = NUMBERS.add(total, hit.value)
    if not total.is_finite():
        raise Fail("the sum is no number that can be held")
    return total


def _apply_min(hits: Sequence[Hit], _run: Run) -> Value:
    return _find_extreme(hits, -1)


def _apply_max(hits: Sequence[Hit], _run: Run) -> Value:
    return _find_extreme(hits, 1)


def _find_extreme(hits: Sequence[Hit], wanted: int) -> Value:
    best = hits[0]
    for hit in hits:
        order = compare(hit.value, best.value)
        if order is None:
            raise Fail(f"the outputs of {name_rules([best, hit])} cannot be compared")
        if order == wanted:
            best = hit
    return best.value


def _count(hits: Sequence[Hit], _run: Run) -> Value:
    return Decimal(len(hits))


def name_rules(hits: Sequence[Hit]) -> str:
    """As in "rules 2, 5 and 7"."""
    numbers = [str(number) for number in dict.fromkeys(hit.number for hit in hits)]
    if len(numbers) == 1:
        return f"rule {numbers[0]}"
    return f"rules {', '.join(numbers[:-1])} and {numbers[-1]}"


POLICIES: Final[Mapping[HitPolicy, Apply]] = {
    HitPolicy.UNIQUE: _apply_unique,
    HitPolicy.ANY: _apply_any,
    HitPolicy.PRIORITY: _apply_priority,
    HitPolicy.FIRST: _apply_first,
    HitPolicy.RULE_ORDER: _list_values,
    HitPolicy.OUTPUT_ORDER: _apply_output_order,
    HitPolicy.COLLECT: _list_values,
    HitPolicy.SUM: _apply_sum,
    HitPolicy.MIN: _apply_min,
    HitPolicy.MAX: _apply_max,
    HitPolicy.COUNT: _count,
}

BY_PRIORITY: Final = frozenset({HitPolicy.PRIORITY, HitPolicy.OUTPUT_ORDER})
"""Policies that look at the order of the output values."""


def get_empty(policy: HitPolicy) -> Value:
    """What a table without a default gives if no rule matches: null; but a collection is empty then, and its count is 0."""
    if policy is HitPolicy.COLLECT:
        return []
    return Decimal(0) if policy is HitPolicy.COUNT else None


class Ranking:
    """The order of output values, the most important first."""

    __slots__ = ("_tests",)

    def __init__(self, values: syntax.UnaryTests) -> None:
        self._tests = values.tests

    def rank(self, run: Run, value: Value) -> int:
        """The place of a value; behind all others if it has none."""
        run.spend(len(self._tests))
        for place, test in enumerate(self._tests):
            if isinstance(test, syntax.Literal):
                if equal(value, test.value) is True:
                    return place
            else:
                cell = analyse_test(test)
                if cell is not None and type(value) in (Decimal, str, bool) and cell.contains(value):
                    return place
        return len(self._tests)
