"""The properties of temporal values."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.feel.running import Fail
from holdfast.feel.temporal.parsing import parse_temporal
from holdfast.feel.temporal.properties import find_weekday, get_property
from holdfast.feel.temporal.values import DaysTimeDuration, YearsMonthsDuration


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("2018-12-10", "year", 2018),
        ("2018-12-10", "month", 12),
        ("2018-12-10", "day", 10),
        ("2018-12-10", "weekday", 1),
        ("-2018-12-10", "year", -2018),
        ("12018-12-10", "weekday", 1),
        ("2018-12-10T10:30:01", "weekday", 1),
        ("2018-12-10T10:30:01", "hour", 10),
        ("10:30:01.999", "second", 1),
        ("10:30:01.123456789", "minute", 30),
        ("P1Y2M", "years", 1),
        ("P2M", "years", 0),
        ("-P1Y2M", "years", -1),
        ("-P1Y2M", "months", -2),
        ("P1DT2H3M4.5S", "days", 1),
        ("P1DT2H3M4.5S", "hours", 2),
        ("P1DT2H3M4.5S", "minutes", 3),
        ("P1DT2H3M4.5S", "seconds", 4),
        ("-P1DT2H3M4.5S", "days", -1),
        ("-P1DT2H3M4.5S", "hours", -2),
        ("-P1DT2H3M4.5S", "minutes", -3),
        ("-P1DT2H3M4.5S", "seconds", -4),
        ("PT26H", "days", 1),
    ],
)
def test_part_of_a_value_is_a_number(text: str, name: str, number: int) -> None:
    value = get_property(parse_temporal(text), name)

    assert type(value) is Decimal
    assert value == number


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("10:30:00+05:00", "PT5H"),
        ("10:30:00-00:30", "-PT30M"),
        ("10:30:00@Europe/Paris", "PT1H"),
        ("10:30:00@Australia/Melbourne", "PT10H"),
        ("10:30:00@Europe/Dublin", "PT0S"),
        ("2018-12-10T10:30:00Z", "PT0S"),
        ("2018-07-10T10:30:00@Europe/Paris", "PT2H"),
        ("2018-12-10T10:30:00@Europe/Paris", "PT1H"),
        ("32018-07-10T10:30:00@Europe/Paris", "PT2H"),
    ],
)
def test_offset_is_that_of_the_date_or_else_the_standard_one(text: str, offset: str) -> None:
    assert str(get_property(parse_temporal(text), "time offset")) == offset


def test_only_a_zone_with_an_id_is_a_timezone() -> None:
    assert get_property(parse_temporal("2018-12-10T10:30:00@Etc/UTC"), "timezone") == "Etc/UTC"
    assert get_property(parse_temporal("10:30:00@Europe/Paris"), "timezone") == "Europe/Paris"
    assert get_property(parse_temporal("10:30:00+01:00"), "timezone") is None


@pytest.mark.parametrize("text", ["10:30:00", "2018-12-10T10:30:00"])
def test_value_without_a_zone_has_no_offset_to_tell(text: str) -> None:
    assert get_property(parse_temporal(text), "time offset") is None
    assert get_property(parse_temporal(text), "timezone") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [("2018-12-10", "hour"), ("10:30:00", "year"), ("P1Y", "days"), ("P1D", "months"), ("P1D", "nanoseconds")],
)
def test_property_of_another_type_fails_and_names_those_that_there_are(text: str, name: str) -> None:
    with pytest.raises(Fail, match="it has "):
        get_property(parse_temporal(text), name)


def test_other_values_have_no_properties() -> None:
    with pytest.raises(Fail):
        get_property("text", "year")


@given(st.integers(-(10**30), 10**30))
def test_parts_of_a_days_and_time_duration_add_up(nanoseconds: int) -> None:
    value = DaysTimeDuration(nanoseconds)
    parts = [int(get_property(value, name)) for name in ("days", "hours", "minutes", "seconds")]

    seconds = ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3]

    assert abs(seconds) == abs(nanoseconds) // 10**9


@given(st.integers(-(10**10), 10**10))
def test_parts_of_a_years_and_months_duration_add_up(months: int) -> None:
    value = YearsMonthsDuration(months)

    assert get_property(value, "years") * 12 + get_property(value, "months") == months


@given(st.dates())
def test_weekday_is_that_of_python(day: date) -> None:
    assert find_weekday(day) == day.isoweekday()
