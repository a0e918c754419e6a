"""What holds a temporal value, and what becomes of values from outside."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.feel.temporal.calendar import CYCLE_DAYS, add_months, count_days, from_ordinal, to_ordinal
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.parsing import parse_date, parse_date_time, parse_temporal, parse_time
from holdfast.feel.temporal.values import (
    DaysTimeDuration,
    ExactDate,
    ExactDateTime,
    ExactTime,
    YearsMonthsDuration,
    from_python,
    name_type,
)


class Elsewhere(tzinfo):
    """A zone of another library."""

    def __init__(self, zone: str | None) -> None:
        self.zone = zone

    def utcoffset(self, _moment: datetime | None) -> timedelta:
        return timedelta(hours=3)

    def dst(self, _moment: datetime | None) -> None:
        return None

    def tzname(self, _moment: datetime | None) -> None:
        return None


class Birthday(date):
    """A date of somebody else's class."""


def test_what_python_can_hold_is_held_by_python() -> None:
    assert type(parse_date("9999-12-31")) is date
    assert type(parse_date("0001-01-01")) is date
    assert type(parse_time("23:59:59.999999")) is time
    assert type(parse_date_time("2017-12-31T23:59:59.999999Z")) is datetime


def test_years_and_nanoseconds_beyond_python_have_types_of_their_own() -> None:
    assert parse_date("10000-01-02") == ExactDate(10000, 1, 2)
    assert parse_date("-0001-01-02") == ExactDate(-1, 1, 2)
    assert parse_time("01:02:03.123456789Z") == ExactTime(1, 2, 3, 123456789, UTC)
    assert parse_date_time("2017-12-31T01:02:03.000000001") == ExactDateTime(2017, 12, 31, 1, 2, 3, 1)
    assert parse_date_time("-2017-12-31T01:02:03") == ExactDateTime(-2017, 12, 31, 1, 2, 3)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("2017-12-31", "date"),
        ("99999-12-31", "date"),
        ("10:00:00", "time"),
        ("10:00:00.123456789", "time"),
        ("2017-12-31T10:00:00", "date and time"),
        ("99999-12-31T10:00:00", "date and time"),
        ("P1D", "days and time duration"),
        ("P1M", "years and months duration"),
    ],
)
def test_every_value_tells_the_name_of_its_type(text: str, name: str) -> None:
    assert name_type(parse_temporal(text)) == name


@pytest.mark.parametrize("value", [1, "2017-12-31", None, True, [], timedelta(1)])
def test_nothing_else_has_the_name_of_a_temporal_type(value: object) -> None:
    assert name_type(value) is None


def test_durations_are_frozen_hashable_and_ordered() -> None:
    assert {DaysTimeDuration(1): "a"}[DaysTimeDuration(1)] == "a"
    assert sorted([YearsMonthsDuration(2), YearsMonthsDuration(1)]) == [YearsMonthsDuration(1), YearsMonthsDuration(2)]
    with pytest.raises(FrozenInstanceError):
        DaysTimeDuration(1).nanoseconds = 2  # type: ignore[misc]


def test_str_of_a_value_of_ours_is_its_iso_text() -> None:
    assert str(DaysTimeDuration(90_000_000_000)) == "PT1M30S"
    assert str(YearsMonthsDuration(14)) == "P1Y2M"
    assert str(ExactDate(-2017, 2, 3)) == "-2017-02-03"
    assert str(ExactTime(1, 2, 3, 40)) == "01:02:03.00000004"
    assert str(ExactDateTime(99999, 2, 3, 4, tzinfo=UTC)) == "99999-02-03T04:00:00Z"


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "PT0S"),
        (86_400_000_000_000, "P1D"),
        (3_600_000_000_000, "PT1H"),
        (-3_720_000_000_000, "-PT1H2M"),
        (93_784_123_456_789, "P1DT2H3M4.123456789S"),
        (999_000_000, "PT0.999S"),
        (-500_000_000, "-PT0.5S"),
        (10**28, "P115740740740740DT17H46M40S"),
    ],
)
def test_text_of_a_days_and_time_duration_has_the_parts_that_are_not_zero(nanoseconds: int, text: str) -> None:
    assert to_text(DaysTimeDuration(nanoseconds)) == text


@pytest.mark.parametrize(("months", "text"), [(0, "P0M"), (12, "P1Y"), (5, "P5M"), (-14, "-P1Y2M"), (-24, "-P2Y")])
def test_text_of_a_years_and_months_duration_has_the_parts_that_are_not_zero(months: int, text: str) -> None:
    assert to_text(YearsMonthsDuration(months)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (date(7, 1, 2), "0007-01-02"),
        (time(1, 2, 3, 450_000), "01:02:03.45"),
        (time(1, 2, 3, tzinfo=ZoneInfo("Europe/Paris")), "01:02:03@Europe/Paris"),
        (time(1, 2, 3, tzinfo=timezone(timedelta(0))), "01:02:03Z"),
        (time(1, 2, 3, tzinfo=timezone(timedelta(hours=-2, minutes=-30))), "01:02:03-02:30"),
        (time(1, 2, 3, tzinfo=timezone(timedelta(hours=2, minutes=45, seconds=55))), "01:02:03+02:45:55"),
        (datetime(2017, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2017-01-02T03:04:05.000006Z"),
    ],
)
def test_text_of_a_python_value_is_as_feel_writes_it(value: object, text: str) -> None:
    assert to_text(value) == text


def test_timedelta_becomes_a_duration() -> None:
    assert from_python(timedelta(days=1, seconds=2, microseconds=3)) == DaysTimeDuration(86_402_000_003_000)
    assert from_python(timedelta(days=-1)) == DaysTimeDuration(-86_400_000_000_000)


def test_value_of_a_subclass_becomes_one_of_the_class() -> None:
    assert type(from_python(Birthday(2017, 1, 2))) is date


def test_zone_of_another_library_becomes_the_zone_of_that_name() -> None:
    moment = from_python(datetime(2017, 1, 2, 3, tzinfo=Elsewhere("Europe/Moscow")))

    assert to_text(moment) == "2017-01-02T03:00:00@Europe/Moscow"


def test_zone_without_a_known_name_becomes_its_offset() -> None:
    assert to_text(from_python(datetime(2017, 1, 2, 3, tzinfo=Elsewhere("Nowhere")))) == "2017-01-02T03:00:00+03:00"
    assert to_text(from_python(time(3, tzinfo=Elsewhere(None)))) == "03:00:00+03:00"


def test_offset_that_no_text_can_have_becomes_utc() -> None:
    far, fine = timezone(timedelta(hours=20)), timezone(timedelta(microseconds=1))

    assert to_text(from_python(datetime(2017, 1, 2, 3, tzinfo=far))) == "2017-01-01T07:00:00Z"
    assert to_text(from_python(datetime(2017, 1, 2, 3, tzinfo=fine))) == "2017-01-02T02:59:59.999999Z"
    assert to_text(from_python(datetime(1, 1, 1, 3, tzinfo=far))) == "0001-01-01T03:00:00Z"
    assert to_text(from_python(time(3, tzinfo=far))) == "07:00:00Z"


def test_zone_that_no_text_may_name_becomes_its_offset() -> None:
    zone = ZoneInfo("Factory")

    assert to_text(from_python(datetime(2017, 1, 2, 3, tzinfo=zone))) == "2017-01-02T03:00:00Z"
    assert to_text(from_python(time(3, tzinfo=zone))) == "03:00:00Z"


def test_what_is_known_or_unknown_is_given_back_as_it_is() -> None:
    for value in (date(2017, 1, 2), time(3), datetime(2017, 1, 2, tzinfo=UTC), DaysTimeDuration(1), "text", None):
        assert from_python(value) is value


@given(st.dates())
def test_days_are_numbered_as_python_numbers_them(day: date) -> None:
    assert to_ordinal(day.year, day.month, day.day) == day.toordinal()
    assert from_ordinal(day.toordinal()) == (day.year, day.month, day.day)


@given(st.integers(-(10**12), 10**12))
def test_calendar_repeats_after_four_hundred_years(ordinal: int) -> None:
    year, month, day = from_ordinal(ordinal)

    assert to_ordinal(year, month, day) == ordinal
    assert from_ordinal(ordinal + CYCLE_DAYS) == (year + 400, month, day)


@given(st.integers(-(10**6), 10**6), st.integers(1, 12), st.integers(-(10**5), 10**5))
def test_months_added_and_taken_away_lead_back_from_the_first_of_a_month(year: int, month: int, months: int) -> None:
    moved = add_months(year, month, 1, months)

    assert add_months(*moved, -months) == (year, month, 1)


def test_year_zero_is_a_leap_year() -> None:
    assert count_days(0, 2) == 29
    assert count_days(-1, 2) == 28
    assert count_days(1900, 2) == 28
    assert count_days(2000, 2) == 29
