"""What the operators do. Each function makes a closure of the closures of its operands.

DMN 10.3.2.13 to 10.3.2.15. What has no value is null, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

from holdfast.feel.comparing import compare, equal
from holdfast.feel.running import LONG, Fail, Run
from holdfast.feel.scopes import RUN, Frame
from holdfast.feel.spots import Spot
from holdfast.feel.temporal import arithmetic as temporal
from holdfast.feel.types import name_type
from holdfast.feel.values import NUMBERS, Value

Evaluate: TypeAlias = Callable[[Frame], Value]

_STEPS_OF_DATES: Final = 8
_SMALL_POWERS: Final = frozenset(map(Decimal, range(-1, 13)))
_STEPS_OF_POWER: Final = 6
_STEPS_OF_ROOT: Final = 50
"""Of a power whose exponent is no whole number."""
_PLAIN: Final = frozenset({Decimal, str, bool, list, dict, type(None)})
"""Python types of values that are no part of temporal arithmetic."""
_BETWEEN_NUMBERS: Final[Mapping[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": NUMBERS.add,
    "-": NUMBERS.subtract,
    "*": NUMBERS.multiply,
    "/": NUMBERS.divide,
    "**": NUMBERS.power,
}
_BETWEEN_OTHERS: Final[Mapping[str, Callable[[Value, Value], Value]]] = {
    "+": temporal.add,
    "-": temporal.subtract,
    "*": temporal.multiply,
    "/": temporal.divide,
}


# --- arithmetic ---


def make_arithmetic(operator: str, left: Evaluate, right: Evaluate, spot: Spot) -> Evaluate:
    """`left operator right`: numbers are calculated at once, all else by `calculate_otherwise`."""
    calculate = _BETWEEN_NUMBERS[operator]
    if operator == "**":
        return _make_power(left, right, spot)

    def arithmetic(frame: Frame) -> Value:
        one, other = left(frame), right(frame)
        if type(one) is Decimal and type(other) is Decimal:
            result = calculate(one, other)
            if result.is_finite():
                return result
        return calculate_otherwise(frame[RUN], operator, one, other, spot)

    return arithmetic


def _make_power(left: Evaluate, right: Evaluate, spot: Spot) -> Evaluate:
    def power(frame: Frame) -> Value:
        one, other = left(frame), right(frame)
        if type(one) is Decimal and type(other) is Decimal:
            if other not in _SMALL_POWERS:
                frame[RUN].spend(_STEPS_OF_POWER if other.to_integral_value() == other else _STEPS_OF_ROOT)
            result = NUMBERS.power(one, other)
            if result.is_finite():
                return result
        return calculate_otherwise(frame[RUN], "**", one, other, spot)

    return power


def calculate_otherwise(run: Run, operator: str, one: Value, other: Value, spot: Spot) -> Value:
    """What an arithmetic operator gives for anything but two numbers with a finite result."""
    kind, other_kind = type(one), type(other)
    if kind is str and other_kind is str and operator == "+":
        run.check_text(len(one) + len(other), one, other)
        return one + other
    if one is None or other is None:
        run.warn(f"'{operator}' has a null on one side", spot)
        return None
    if operator in _BETWEEN_OTHERS and (kind not in _PLAIN or other_kind not in _PLAIN):
        run.spend(_STEPS_OF_DATES)
        try:
            return _BETWEEN_OTHERS[operator](one, other)
        except Fail as error:
            run.warn(str(error), spot)
            return None
    if kind is Decimal and other_kind is Decimal:
        run.warn(f"{one} {operator} {other} is no number that can be held", spot)
    else:
        run.warn(f"'{operator}' does not go between a {name_type(one)} and a {name_type(other)}", spot)
    return None


def make_negation(operand: Evaluate, spot: Spot) -> Evaluate:
    """`-operand`, of a number or a duration; null, with a warning, of all else."""

    def negation(frame: Frame) -> Value:
        value = operand(frame)
        if type(value) is Decimal:
            return NUMBERS.minus(value)
        try:
            if type(value) not in _PLAIN:
                return temporal.negate(value)
        except Fail as error:
            frame[RUN].warn(str(error), spot)
            return None
        frame[RUN].warn(f"a {name_type(value)} has no negative", spot)
        return None

    return negation


# --- comparison ---


def make_equality(left: Evaluate, right: Evaluate, spot: Spot, *, is_negated: bool) -> Evaluate:
    """`left = right`, or `!=` if negated; null, with a warning, if they cannot be compared."""

    def equality(frame: Frame) -> bool | None:
        one, other = left(frame), right(frame)
        kind = type(one)
        if kind is type(other) and (kind is str or kind is Decimal):
            if kind is str and len(one) > LONG:
                frame[RUN].check_compared(one, other)
            return bool(one != other) if is_negated else bool(one == other)
        same = equal(one, other, frame[RUN])
        if same is None:
            frame[RUN].warn(f"a {name_type(one)} cannot be compared with a {name_type(other)}", spot)
            return None
        return same is not is_negated

    return equality


def _is_less(order: int) -> bool:
    return order < 0


def _is_at_most(order: int) -> bool:
    return order <= 0


def _is_greater(order: int) -> bool:
    return order > 0


def _is_at_least(order: int) -> bool:
    return order >= 0


ORDERS: Final[Mapping[str, Callable[[int], bool]]] = {
    "<": _is_less,
    "<=": _is_at_most,
    ">": _is_greater,
    ">=": _is_at_least,
}
_SIGNS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "<": Decimal.__lt__,
    "<=": Decimal.__le__,
    ">": Decimal.__gt__,
    ">=": Decimal.__ge__,
}


def make_comparison(operator: str, left: Evaluate, right: Evaluate, spot: Spot) -> Evaluate:
    """`left < right` and the like."""
    if operator in ("=", "!="):
        return make_equality(left, right, spot, is_negated=operator == "!=")
    holds, of_numbers = ORDERS[operator], _SIGNS[operator]

    def comparison(frame: Frame) -> bool | None:
        one, other = left(frame), right(frame)
        if type(one) is Decimal and type(other) is Decimal:
            return of_numbers(one, other)
        return compare_by(frame[RUN], holds, one, other, spot)

    return comparison


def compare_by(run: Run, holds: Callable[[int], bool], one: Value, other: Value, spot: Spot) -> bool | None:
    """Whether an order holds between two values; null if there is none."""
    order = compare(one, other, run)
    if order is None:
        run.warn(f"there is no order between a {name_type(one)} and a {name_type(other)}", spot)
        return None
    return holds(order)


def make_between(operand: Evaluate, low: Evaluate, high: Evaluate, spot: Spot) -> Evaluate:
    """`operand between low and high`, both included."""

    def between(frame: Frame) -> bool | None:
        value, run = operand(frame), frame[RUN]
        is_after = compare_by(run, _is_at_least, value, low(frame), spot)
        return conjoin(is_after, compare_by(run, _is_at_most, value, high(frame), spot))

    return between


# --- three-valued logic ---


def conjoin(one: bool | None, other: bool | None) -> bool | None:
    """The three-valued `and` of two answers."""
    if one is False or other is False:
        return False
    return True if one is True and other is True else None


def warn_of_no_boolean(run: Run, value: Value, what: str, spot: Spot) -> None:
    """Tell that a value which was asked for true or false is of another type; null is no answer, and none of these."""
    if value is not None and type(value) is not bool:
        run.warn(f"{what} a boolean, not a {name_type(value)}", spot)


def make_conjunction(operands: Sequence[Evaluate], spot: Spot) -> Evaluate:
    """`a and b …`: false if one is, true if all are; else null. What follows a false is not looked at."""

    def conjunction(frame: Frame) -> bool | None:
        result: bool | None = True
        for operand in operands:
            value = operand(frame)
            if value is False:
                return False
            if value is not True:
                warn_of_no_boolean(frame[RUN], value, "beside 'and' stands", spot)
                result = None
        return result

    return conjunction


def make_disjunction(operands: Sequence[Evaluate], spot: Spot) -> Evaluate:
    """`a or b …`: true if one is, false if all are; else null. What follows a true is not looked at."""

    def disjunction(frame: Frame) -> bool | None:
        result: bool | None = False
        for operand in operands:
            value = operand(frame)
            if value is True:
                return True
            if value is not False:
                warn_of_no_boolean(frame[RUN], value, "beside 'or' stands", spot)
                result = None
        return result

    return disjunction


def make_condition(condition: Evaluate, then: Evaluate, otherwise: Evaluate, spot: Spot) -> Evaluate:
    """`if condition then … else …`: what is not true is else."""

    def choose(frame: Frame) -> Value:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is not False:
            warn_of_no_boolean(frame[RUN], value, "behind 'if' stands", spot)
        return otherwise(frame)

    return choose
