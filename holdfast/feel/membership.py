"""Tests of a value: what stands behind `in`, in cells of decision tables, and in `is defined`. DMN 7.3.3 and 10.3.2.14."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.feel.comparing import compare, equal, is_in
from holdfast.feel.operators import ORDERS, Evaluate, compare_by
from holdfast.feel.running import Fail, Run
from holdfast.feel.scopes import RUN, Frame
from holdfast.feel.spots import Spot
from holdfast.feel.types import name_type
from holdfast.feel.values import Range, Value


def make_range(start: Value, end: Value, start_included: bool, end_included: bool) -> Range:
    """A range. Raises Fail if there is no order between its ends."""
    if start is not None and end is not None and compare(start, end) is None:
        raise Fail(f"there is no range from a {name_type(start)} to a {name_type(end)}")
    return Range(start, end, start_included, end_included)


def range_of(operator: str, value: Value) -> Range:
    """`< 5` and the like, as a range."""
    if operator in (">", ">="):
        return Range(value, None, start_included=operator == ">=", end_included=False, has_end=False)
    if operator in ("<", "<="):
        return Range(None, value, start_included=False, end_included=operator == "<=", has_start=False)
    is_equal = operator == "="
    return Range(value, value, start_included=is_equal, end_included=is_equal, has_start=False, has_end=False)


def make_comparison_test(operator: str, operand: Evaluate, place: int, spot: Spot) -> Evaluate:
    """`< 5`, of what stands at the place."""
    if operator in ("=", "!="):
        is_negated = operator == "!="

        def equality_test(frame: Frame) -> bool | None:
            same = equal(frame[place], operand(frame), frame[RUN])
            return None if same is None else same is not is_negated

        return equality_test
    holds = ORDERS[operator]
    return lambda frame: compare_by(frame[RUN], holds, frame[place], operand(frame), spot)


def make_value_test(value: Evaluate, place: int, spot: Spot, *, asks: bool) -> Evaluate:
    """Whether what stands at the place equals a value, or is in it. An expression that `asks` about `?` answers itself.

    DMN 10.3.2.14: such a one is met if it is true. Null is no answer, also where null is tested: `contains(?, "a")`.
    """

    def value_test(frame: Frame) -> bool | None:
        found, tested = value(frame), frame[place]
        if asks and (found is None or type(found) is bool):
            return found
        if asks and tested is None and type(found) is list:
            found = _leave_out_nulls(found)
        answer = is_in(tested, found, frame[RUN])
        if answer is None:
            frame[RUN].warn(f"whether a {name_type(tested)} is in a {name_type(found)} cannot be told", spot)
        return answer

    return value_test


def make_cell_test(value: Evaluate, place: int, *, asks: bool, is_literal: bool) -> Evaluate:
    """The same in a cell of a decision table: there, what is true or false answers itself, unless a boolean is tested.

    DMN 7.3.3. A literal is compared with null, too: null does not meet `true`.
    """

    def cell_test(frame: Frame) -> bool | None:
        found, tested = value(frame), frame[place]
        if asks and found is None:
            return None
        if asks and tested is None and type(found) is list:
            found = _leave_out_nulls(found)
        if type(found) is bool and (asks or (type(tested) is not bool and not (is_literal and tested is None))):
            return found
        return is_in(tested, found, frame[RUN])

    return cell_test


def _leave_out_nulls(items: list[Value]) -> list[Value]:
    """A list that was made of a null: `[contains(?, "a")]`. The nulls in it are no answers either."""
    return [item for item in items if item is not None]


def make_tests(tests: Sequence[Evaluate], *, is_negated: bool) -> Evaluate:
    """Whether one of the tests is met; without tests, always."""

    def all_tests(frame: Frame) -> bool | None:
        result: bool | None = not tests
        for test in tests:
            met = test(frame)
            if met is True:
                result = True
                break
            if met is None:
                result = None
        return result if not is_negated or result is None else not result

    return all_tests


def make_in(operand: Evaluate, tests: Sequence[Evaluate], place: int) -> Evaluate:
    """`operand in (tests)`: the operand is put at the place of `?`, where the tests look."""
    any_test = make_tests(tests, is_negated=False)

    def is_met(frame: Frame) -> bool | None:
        frame[place] = operand(frame)
        answer: bool | None = any_test(frame)
        return answer

    return is_met


# --- is defined ---


def make_is_defined(value: Evaluate) -> Evaluate:
    """Whether there is a value. That there is none is what was asked for, and no warning."""

    def is_defined(frame: Frame) -> bool:
        run: Run = frame[RUN]
        warnings, run.warnings = run.warnings, None
        try:
            return value(frame) is not None
        finally:
            run.warnings = warnings

    return is_defined
