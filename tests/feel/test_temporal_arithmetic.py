"""Sums, differences, products and quotients of temporal values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.feel.running import Fail
from holdfast.feel.temporal import arithmetic
from holdfast.feel.temporal.comparing import is_identical
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.parsing import parse_temporal
from holdfast.feel.temporal.values import DaysTimeDuration, YearsMonthsDuration
from holdfast.feel.values import NUMBERS

OPERATIONS = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
}


def read(text: str) -> Any:
    value = parse_temporal(text)
    return Decimal(text) if value is None else value


def calculate(text: str) -> str:
    left, sign, right = text.split(" ")
    value = OPERATIONS[sign](read(left), read(right))
    return str(value) if type(value) is Decimal else to_text(value)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2021-01-31 + P1M", "2021-02-28"),
        ("2020-01-31 + P1M", "2020-02-29"),
        ("2020-02-29 + P1Y", "2021-02-28"),
        ("2021-03-31 - P1M", "2021-02-28"),
        ("2021-01-31T10:00:00 + P13M", "2022-02-28T10:00:00"),
        ("P1M + 2021-05-31", "2021-06-30"),
    ],
)
def test_month_end_is_kept_when_months_are_added(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2021-01-01 + PT36H", "2021-01-02"),
        ("2021-01-02 - PT1S", "2021-01-01"),
        ("2021-01-02 - -PT25H", "2021-01-03"),
        ("2020-03-01 - PT24H", "2020-02-29"),
        ("9999-12-31 + P1D", "10000-01-01"),
        ("10000-01-01 - P1D", "9999-12-31"),
        ("0001-01-01 - P1D", "0000-12-31"),
    ],
)
def test_date_moves_by_whole_days_back_to_its_midnight(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("10:15:00 + PT1H", "11:15:00"),
        ("23:30:00 + PT1H", "00:30:00"),
        ("00:30:00 - PT1H", "23:30:00"),
        ("10:15:00+11:00 + P1D", "10:15:00+11:00"),
        ("-PT1H + 10:15:00@Australia/Melbourne", "09:15:00@Australia/Melbourne"),
        ("23:59:59.999999999 + PT0.000000001S", "00:00:00"),
    ],
)
def test_time_goes_round_and_keeps_its_zone(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2021-01-12T10:10:10+11:00 + P1DT1H", "2021-01-13T11:10:10+11:00"),
        ("2021-01-12T10:10:10.5 - PT0.000000001S", "2021-01-12T10:10:10.499999999"),
        ("-2021-01-01T10:10:10@Australia/Melbourne - P1D", "-2022-12-31T10:10:10@Australia/Melbourne"),
        ("9999-12-31T23:00:00Z + PT1H", "10000-01-01T00:00:00Z"),
        ("12021-03-28T01:30:00@Europe/Paris + PT1H", "12021-03-28T03:30:00@Europe/Paris"),
    ],
)
def test_date_and_time_keeps_its_zone(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2021-03-27T12:00:00@Europe/Paris + P1D", "2021-03-28T13:00:00@Europe/Paris"),
        ("2021-03-28T01:30:00@Europe/Paris + PT1H", "2021-03-28T03:30:00@Europe/Paris"),
        ("2021-10-31T12:00:00@Europe/Paris - P1D", "2021-10-30T13:00:00@Europe/Paris"),
        ("2021-02-28T02:30:00@Europe/Paris + P1M", "2021-03-28T03:30:00@Europe/Paris"),
        ("2021-02-28T12:00:00@Europe/Paris + P1M", "2021-03-28T12:00:00@Europe/Paris"),
    ],
)
def test_days_and_time_durations_pass_in_real_time_and_months_on_the_calendar(text: str, result: str) -> None:
    assert calculate(text) == result


def test_hour_that_clocks_show_twice_is_passed_through_twice() -> None:
    first = read("2021-10-31T02:30:00@Europe/Paris")

    second = arithmetic.add(first, read("PT1H"))
    third = arithmetic.add(second, read("PT1H"))

    assert to_text(second) == to_text(first)
    assert not is_identical(second, first)
    assert arithmetic.subtract(second, first) == read("PT1H")
    assert to_text(third) == "2021-10-31T03:30:00@Europe/Paris"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("2021-01-02 - 1995-01-01", "P9498D"),
        ("12000-01-01 - -8000-01-01", "P7304850D"),
        ("10:10:10+11:00 - 09:10:10+10:00", "PT0S"),
        ("10:10:10@Australia/Melbourne - 11:10:10@Australia/Melbourne", "-PT1H"),
        ("2021-01-02T10:10:10@Europe/Paris - 2021-01-01T10:10:10@Asia/Dhaka", "P1DT5H"),
        ("2021-01-02 - 2021-01-01T10:10:10+11:00", "P1DT49M50S"),
        ("2021-01-02T00:00:00Z - 2021-01-02", "PT0S"),
        ("2021-01-01T00:00:00.5 - 2021-01-01T00:00:00", "PT0.5S"),
    ],
)
def test_difference_of_two_values_is_a_days_and_time_duration(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "2021-01-02T10:10:10@Europe/Paris - 2021-01-01T10:10:10",
        "2021-01-02T10:10:10 - 2021-01-01T10:10:10Z",
        "2021-01-02 - 2021-01-01T10:10:10",
        "2021-01-01T10:10:10 - 2021-01-02",
        "10:00:00 - 10:00:00Z",
    ],
)
def test_value_with_a_zone_and_one_without_have_no_difference(text: str) -> None:
    with pytest.raises(Fail, match="zone"):
        calculate(text)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("P1Y + -P2M", "P10M"),
        ("-P1D - -PT2H", "-PT22H"),
        ("PT24H + P1D", "P2D"),
        ("2.5 * PT23H", "P2DT9H30M"),
        ("P1Y11M * -2.5", "-P4Y9M"),
        ("P10Y11M / -2.5", "-P4Y4M"),
        ("P1D / 7", "PT3H25M42.857142857S"),
        ("P10DT23H / 2.5", "P4DT9H12M"),
        ("P1D / PT1H", "24"),
        ("P1Y / P5M", "2.4"),
        ("P0D / 5", "PT0S"),
        ("P1D * 0E+6000", "PT0S"),
    ],
)
def test_durations_are_added_scaled_and_compared(text: str, result: str) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "P1D + P1Y",
        "P1D - 2021-01-01",
        "10:00:00 + P1Y",
        "2021-01-01 + 2021-01-01",
        "2021-01-01 * 2",
        "P1D * P1D",
        "10 / P1D",
        "P1D / P1Y",
        "P1D + 1",
    ],
)
def test_what_has_no_meaning_fails(text: str) -> None:
    with pytest.raises(Fail, match="has no meaning"):
        calculate(text)


@pytest.mark.parametrize("other", [None, True, "P1D", [], {}, object()])
def test_other_values_have_no_part_in_it(other: object) -> None:
    for operation in OPERATIONS.values():
        with pytest.raises(Fail, match="has no meaning"):
            operation(read("P1D"), other)
        with pytest.raises(Fail, match="has no meaning"):
            operation(other, read("2021-01-01"))


@pytest.mark.parametrize("text", ["P1D / 0", "P1Y / 0", "P1D / P0D", "P1Y / P0M"])
def test_nothing_is_divided_by_zero(text: str) -> None:
    with pytest.raises(Fail, match="zero"):
        calculate(text)


@pytest.mark.parametrize(
    "text",
    [
        "999999999-12-31 + P1D",
        "-999999999-01-01 - P1M",
        "999999999-12-31T23:59:59 + PT1S",
        "999999999-12-31T23:59:59@Europe/Paris + PT1S",
        "999999999-12-31T23:59:59Z + P1M",
        "2021-01-01 + P99999999999999D",
        "2021-01-01T00:00:00 + P99999999999999D",
        "P999999999Y * 10",
        "P1D * 1E+6000",
        "P1D / 1E-6000",
    ],
)
def test_what_lies_beyond_the_last_year_fails(text: str) -> None:
    with pytest.raises(Fail):
        calculate(text)


def test_only_durations_have_a_negative() -> None:
    assert arithmetic.negate(read("P1D")) == read("-P1D")
    assert arithmetic.negate(read("-P1Y")) == read("P1Y")
    for text in ("2021-01-01", "10:00:00", "2021-01-01T10:00:00"):
        with pytest.raises(Fail):
            arithmetic.negate(read(text))


@given(
    st.sampled_from(["", "Z", "+05:45", "@Europe/Paris", "@America/New_York", "@Australia/Lord_Howe"]),
    st.datetimes(),
    st.integers(-(10**21), 10**21),
)
def test_what_is_added_is_the_difference(zone: str, moment: Any, nanoseconds: int) -> None:
    start = parse_temporal(to_text(moment) + zone)

    end = arithmetic.add(start, DaysTimeDuration(nanoseconds))

    assert arithmetic.subtract(end, start) == DaysTimeDuration(nanoseconds)
    assert is_identical(arithmetic.subtract(end, DaysTimeDuration(nanoseconds)), start)


@given(st.integers(-(10**10), 10**10), st.decimals(-(10**6), 10**6, places=3).filter(bool))
def test_duration_times_a_number_and_back_is_off_by_what_was_cut_at_most(months: int, number: Decimal) -> None:
    if abs(months * number) > 24 * 10**9:
        return
    scaled = arithmetic.multiply(YearsMonthsDuration(months), number)

    assert abs(NUMBERS.multiply(Decimal(months), number) - scaled.months) < 1
