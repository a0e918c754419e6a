"""The functions that make temporal values and tell something of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from holdfast.feel.functions.temporal import TEMPORAL
from holdfast.feel.running import Fail, Run
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.parsing import parse_temporal
from holdfast.feel.temporal.values import name_type

NAMES = {Decimal: "number", str: "string"}
GROUPS = {
    "temporal": {"date", "time", "date and time"},
    "duration": {"days and time duration", "years and months duration"},
}


def fits(argument: Any, wanted: str) -> bool:
    if argument is None:
        return wanted.endswith("?")
    name = name_type(argument) or NAMES[type(argument)]
    return name in GROUPS.get(wanted.removesuffix("?"), {wanted.removesuffix("?")})


def call(name: str, *arguments: Any, run: Run | None = None) -> Any:
    """The first form that takes the arguments; texts with an @ before them are literals, whole numbers are numbers."""
    given = [parse_temporal(one[1:]) if isinstance(one, str) and one.startswith("@") else one for one in arguments]
    given = [Decimal(one) if isinstance(one, int) else one for one in given]
    for form in TEMPORAL[name]:
        wanted = [parameter.type for parameter in form.parameters]
        if form.required <= len(given) <= len(wanted) and all(map(fits, given, wanted)):
            return form.call(run or Run(), *given)
    raise AssertionError(f"no form of {name} takes {given}")


def show(name: str, *arguments: Any) -> str:
    return to_text(call(name, *arguments))


def test_date_is_made_from_a_text_a_date_and_a_date_and_time() -> None:
    assert show("date", "2017-12-31") == "2017-12-31"
    assert show("date", "@2017-12-31") == "2017-12-31"
    assert show("date", "@2017-08-14T14:25:00.123456789@Europe/Paris") == "2017-08-14"
    assert show("date", "@-2017-08-14T14:25:00") == "-2017-08-14"


def test_date_is_made_from_its_parts() -> None:
    assert show("date", 2017, 12, 31) == "2017-12-31"
    assert show("date", -999999999, 1, 1) == "-999999999-01-01"


@pytest.mark.parametrize("parts", [(2017, 13, 31), (2017, 2, 29), (2017, -8, 2), (-1000999999, 12, 1), (10**20, 1, 1)])
def test_date_that_there_is_not_fails(parts: tuple[int, int, int]) -> None:
    with pytest.raises(Fail):
        call("date", *parts)


def test_part_of_a_date_is_a_whole_number() -> None:
    with pytest.raises(Fail, match="whole"):
        call("date", 2017, Decimal("1.5"), 1)
    assert show("date", 2017, Decimal("1.0"), Decimal("1E+1")) == "2017-01-10"


@pytest.mark.parametrize(
    ("name", "text"),
    [("date", "2012-12-25T"), ("time", "11:30:00T"), ("date and time", "11:00:00"), ("duration", "P1H")],
)
def test_text_that_is_none_fails_and_shows_what_one_looks_like(name: str, text: str) -> None:
    with pytest.raises(Fail, match=f"expected a .* like .*, but '{text}' is none"):
        call(name, text)


def test_time_is_made_from_a_text_a_time_a_date_and_time_and_a_date() -> None:
    assert show("time", "11:22:33.444") == "11:22:33.444"
    assert show("time", "@11:22:33@Europe/Paris") == "11:22:33@Europe/Paris"
    assert show("time", "@2017-08-10T10:20:00.123456789+01:00") == "10:20:00.123456789+01:00"
    assert show("time", "@2017-08-10") == "00:00:00Z"


def test_time_is_made_from_its_parts() -> None:
    assert show("time", 11, 59, 45) == "11:59:45"
    assert show("time", 11, 59, 45, None) == "11:59:45"
    assert show("time", 11, 59, 45, "@PT0H") == "11:59:45Z"
    assert show("time", 11, 59, 45, "@-PT2H45M55S") == "11:59:45-02:45:55"
    assert show("time", 12, 59, Decimal("1.3"), "@-PT1H") == "12:59:01.3-01:00"
    assert show("time", 12, 59, Decimal("59.999999999999999999999999999999")) == "12:59:59.999999999"


@pytest.mark.parametrize(
    "parts", [(24, 0, 0), (-1, 0, 0), (23, 60, 0), (23, 59, 60), (1, 2, 3, "@PT15H"), (1, 2, 3, "@PT0.5S")]
)
def test_time_that_there_is_not_fails(parts: tuple[Any, ...]) -> None:
    with pytest.raises(Fail):
        call("time", *parts)


def test_date_and_time_is_made_from_a_text_and_from_a_date_which_is_midnight_in_utc() -> None:
    assert show("date and time", "2012-12-24") == "2012-12-24T00:00:00"
    assert show("date and time", "@2012-12-24T23:59:00") == "2012-12-24T23:59:00"
    assert show("date and time", "@2012-12-24") == "2012-12-24T00:00:00Z"
    with pytest.raises(Fail, match="date"):
        call("date and time", "@10:00:00")


def test_date_and_time_are_joined_with_the_zone_of_the_time() -> None:
    assert (
        show("date and time", "@2017-01-01", "@23:59:01.123456789@Europe/Paris")
        == "2017-01-01T23:59:01.123456789@Europe/Paris"
    )
    assert show("date and time", "@2017-09-05T10:20:00-01:00", "@09:15:30Z") == "2017-09-05T09:15:30Z"
    assert show("date and time", "@2017-09-05T10:20:00-01:00", "@09:15:30") == "2017-09-05T09:15:30"
    assert (
        show("date and time", "@2024-12-24", "@23:59:00", "America/Costa_Rica") == "2024-12-24T23:59:00@America/Costa_Rica"
    )


def test_date_and_time_moves_to_another_zone_at_the_same_instant() -> None:
    assert (
        show("date and time", "@2020-07-31T14:27:30@Europe/Berlin", "America/Los_Angeles")
        == "2020-07-31T05:27:30@America/Los_Angeles"
    )
    assert show("date and time", "@2020-07-31T14:27:30+02:00", "Z") == "2020-07-31T12:27:30Z"
    assert show("date and time", "@2020-07-31T14:27:30", "Europe/Berlin") == "2020-07-31T14:27:30@Europe/Berlin"
    with pytest.raises(Fail, match="zone"):
        call("date and time", "@2020-07-31T14:27:30Z", "Nowhere/Land")


def test_date_and_time_is_made_from_its_parts() -> None:
    assert show("date and time", 2012, 12, 24, 23, 59, 0) == "2012-12-24T23:59:00"
    assert show("date and time", 2012, 12, 24, 23, 59, 0, "@-PT8H") == "2012-12-24T23:59:00-08:00"
    assert show("date and time", 2012, 12, 24, 23, 59, 0, Decimal("5.5")) == "2012-12-24T23:59:00+05:30"
    assert show("date and time", 2012, 12, 24, 23, 59, 0, "Europe/Paris") == "2012-12-24T23:59:00@Europe/Paris"
    assert show("date and time", 2012, 12, 24, 23, 59, 0, None) == "2012-12-24T23:59:00"


def test_duration_is_made_from_a_text_and_from_itself() -> None:
    assert show("duration", "P26M") == "P2Y2M"
    assert show("duration", "@PT36H") == "P1DT12H"


@pytest.mark.parametrize(
    ("start", "end", "months"),
    [
        ("@2011-12-22", "@2013-08-24", "P1Y8M"),
        ("@2013-08-24", "@2011-12-22", "-P1Y8M"),
        ("@2016-01-31", "@2016-02-29", "P0M"),
        ("@2017-12-31T13:00:00", "@2017-12-31T12:00:00", "P0M"),
        ("@-2016-01-30T09:05:00", "@-2017-02-28T02:02:02", "-P11M"),
        ("@2017-09-05T10:20:00+05:00", "@2019-10-01T12:32:59", "P2Y"),
        ("@2011-08-25T15:59:59@Europe/Paris", "@2015-08-25T15:20:59+02:00", "P4Y"),
        ("@2017-02-28T23:59:59", "@2019-07-23", "P2Y4M"),
    ],
)
def test_months_between_two_days_are_whole_ones(start: str, end: str, months: str) -> None:
    assert show("years and months duration", start, end) == months


def test_months_are_between_dates_not_times() -> None:
    with pytest.raises(Fail, match="date"):
        call("years and months duration", "@10:00:00", "@2019-07-23")


def test_now_and_today_come_from_the_clock_that_was_given() -> None:
    moment = datetime(2020, 7, 31, 14, 27, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    run = Run(clock=lambda: moment)

    assert call("now", run=run) == moment
    assert call("today", run=run) == date(2020, 7, 31)


def test_without_a_clock_there_is_no_now() -> None:
    with pytest.raises(Fail, match="clock"):
        call("now")


@pytest.mark.parametrize(
    ("name", "day", "answer"),
    [
        ("day of year", "@2020-12-31", 366),
        ("day of year", "@2019-09-17T10:10:10", 260),
        ("day of year", "@12019-09-17", 260),
        ("day of week", "@2019-09-17", "Tuesday"),
        ("day of week", "@-0399-01-01", "Monday"),
        ("month of year", "@2019-09-17T10:10:10Z", "September"),
        ("week of year", "@2003-12-29", 1),
        ("week of year", "@2010-01-01", 53),
        ("week of year", "@12010-01-01", 53),
        ("week of year", "@0001-01-01", 1),
        ("last day of month", "@2024-02-01", date(2024, 2, 29)),
        ("last day of month", "@2022-10-01T10:00:00@Europe/Paris", date(2022, 10, 31)),
    ],
)
def test_calendar_tells_about_a_day(name: str, day: str, answer: object) -> None:
    assert call(name, day) == answer


@pytest.mark.parametrize(
    "name", ["day of year", "day of week", "month of year", "week of year", "last day of month", "date"]
)
def test_calendar_tells_nothing_about_a_time(name: str) -> None:
    with pytest.raises(Fail, match="a time has no date"):
        call(name, "@10:00:00")


def test_size_of_a_duration_is_not_negative() -> None:
    assert show("abs", "@-P1D") == "P1D"
    assert show("abs", "@P1D") == "P1D"
    assert show("abs", "@-P1Y") == "P1Y"


def test_values_are_plain_python_where_they_can_be() -> None:
    assert call("time", 11, 59, 45, "@PT2H") == time(11, 59, 45, tzinfo=timezone(timedelta(hours=2)))
    assert call("date and time", "2012-12-24T23:59:00Z") == datetime(2012, 12, 24, 23, 59, tzinfo=UTC)
