"""Which texts are dates, times and durations, and which are not."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.feel.temporal.comparing import is_identical
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.parsing import parse_date, parse_date_time, parse_duration, parse_temporal, parse_time
from holdfast.feel.temporal.values import DaysTimeDuration, ExactDate, ExactDateTime, ExactTime, YearsMonthsDuration

HOUR = 3_600_000_000_000
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=-8)), ZoneInfo("Europe/Paris"), ZoneInfo("Asia/Kathmandu")])


@pytest.mark.parametrize("text", ["2017-12-31", "0000-02-29", "-2017-01-01", "10000-01-01", "999999999-12-31", "2020-02-29"])
def test_date_is_read_and_written_alike(text: str) -> None:
    assert to_text(parse_date(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2012/12/25",
        "998-12-31",
        "01211-12-31",
        "+2012-12-02",
        "-0000-01-01",
        "9999999999-12-25",
        "2017-13-10",
        "2017-00-10",
        "2017-12-32",
        "2017-12-00",
        "2019-02-29",
        "10001-02-29",
        "2017-1-1",
        " 2017-12-31",
        "2017-12-31 ",
        "2017-12-31\n",
        "2012-12-25T",
        "2012-12-25Z",
        "2012-12-25T10:00:00",
        "٢٠١٧-12-31",
    ],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "00:00:00",
        "23:59:59",
        "11:22:33.444",
        "11:22:33.123456789",
        "11:00:00Z",
        "13:20:00+02:00",
        "13:20:00-05:30",
        "13:20:00+14:00",
        "13:20:00+02:45:55",
        "00:01:00@Etc/UTC",
        "00:01:00@Etc/GMT+5",
        "00:01:00@America/Argentina/Buenos_Aires",
    ],
)
def test_time_is_read_and_written_alike(text: str) -> None:
    assert to_text(parse_time(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7:00:00",
        "07:1:00",
        "07:01:2",
        "07",
        "07:",
        "07:20:",
        "07:20.5",
        "07:60",
        "25:00",
        "23:59:60",
        "24:00:01",
        "24:01:00",
        "24:00:00.1",
        "25:00:00",
        "00:60:00",
        "11:30:00T",
        "11:30:00.",
        "13:20:00+14:01",
        "13:20:00-19:00",
        "13:20:00+05:60",
        "13:20:00+5:00",
        "13:20:00+05",
        "13:20:00+0500",
        "13:20:00@xyz/abc",
        "13:20:00@",
        "13:20:00@Europe",
        "13:20:00@localtime",
        "13:20:00@posix/Europe/Paris",
        "13:20:00@right/Europe/Paris",
        "13:20:00@../Europe/Paris",
        "13:20:00@/etc/localtime",
        "13:20:00@Europe/Paris ",
        "13:20:00+02:00@Europe/Paris",
        "13:20:00Z@Europe/Paris",
        "13:20:00 +02:00",
        "11:22:33." + "1" * 200,
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    assert parse_time(text) is None


def test_midnight_at_the_end_of_a_day_is_that_at_the_start_of_the_next() -> None:
    assert parse_time("24:00:00") == time(0)
    assert parse_date_time("2021-12-31T24:00:00.000") == datetime.combine(date(2022, 1, 1), time(0))
    assert parse_date_time("9999-12-31T24:00:00") == ExactDateTime(10000, 1, 1)
    assert parse_date_time("999999999-12-31T24:00:00") is None


def test_zero_offset_is_utc_however_it_is_written() -> None:
    for text in ("10:00:00Z", "10:00:00z", "10:00:00+00:00", "10:00:00-00:00"):
        assert parse_time(text) == time(10, tzinfo=UTC)


def test_time_may_have_a_letter_before_it() -> None:
    assert parse_time("T23:59:00") == time(23, 59)


def test_seconds_may_be_left_out_as_camunda_does() -> None:
    assert parse_time("23:59") == time(23, 59)
    assert parse_time("23:59+02:00") == time(23, 59, tzinfo=timezone(timedelta(hours=2)))
    assert parse_temporal("23:59@Europe/Paris") == time(23, 59, tzinfo=ZoneInfo("Europe/Paris"))
    assert parse_temporal("1970-01-01T00:00Z") == datetime.combine(date(1970, 1, 1), time(0, tzinfo=UTC))


def test_offset_may_have_the_id_of_its_zone_behind_it() -> None:
    for text, written in (
        ("2018-04-29T09:30:00+02:00[Europe/Berlin]", "2018-04-29T09:30:00@Europe/Berlin"),
        ("2018-01-29T09:30:00.5Z[Europe/London]", "2018-01-29T09:30:00.5@Europe/London"),
        ("99999-01-29T09:30:00+01:00[Europe/Berlin]", "99999-01-29T09:30:00@Europe/Berlin"),
    ):
        assert to_text(parse_date_time(text)) == written
        assert to_text(parse_temporal(text)) == written


def test_offset_tells_which_of_two_times_is_meant_when_clocks_are_set_back() -> None:
    first = parse_date_time("2020-10-25T02:30:00+02:00[Europe/Berlin]")
    second = parse_date_time("2020-10-25T02:30:00+01:00[Europe/Berlin]")

    assert isinstance(first, datetime)
    assert isinstance(second, datetime)
    assert (first.fold, second.fold) == (0, 1)


def test_digits_beyond_nanoseconds_are_cut_off() -> None:
    assert parse_time("10:00:00.1234567899") == ExactTime(10, 0, 0, 123456789)
    assert parse_duration("PT0.0000000019S") == DaysTimeDuration(1)


@pytest.mark.parametrize(
    "text",
    [
        "2017-12-31T11:22:33",
        "-2017-12-31T11:22:33.456+01:35",
        "99999-12-31T11:22:33",
        "2011-12-31T10:15:30.123456789@Europe/Paris",
        "999999999-12-31T23:59:59.999999999@Europe/Paris",
        "-999999999-12-31T23:59:59.999999999+02:00",
    ],
)
def test_date_and_time_is_read_and_written_alike(text: str) -> None:
    assert to_text(parse_date_time(text)) == text


def test_date_alone_is_a_date_and_time_at_midnight() -> None:
    assert parse_date_time("2012-12-24") == datetime.combine(date(2012, 12, 24), time(0))


@pytest.mark.parametrize(
    "text",
    [
        "11:00:00",
        "2011-12-0310:15:30",
        "2011-12-03 10:15:30",
        "2011-12-03t10:15:30",
        "2011-12-03T10",
        "2017-02-30T11:22:33",
        "2017-12-31T24:00:01",
        "2017-12-31T13:20:00+19:00",
        "2017-12-31T13:20:00+02:00@Europe/Paris",
        "2017-12-31T13:20:00+02:00[Europe/Paris]",
        "2017-12-31T13:20:00[Europe/Paris]",
        "2017-12-31T13:20:00@Europe/Paris[Europe/Paris]",
        "2017-12-31T13:20:00+01:00[Europe/Nowhere]",
        "2017-12-31T13:20:00+01:00[Europe/Paris]]",
        "2017-12-31T13:20:00+01:00[]",
        "2017-12-31T13:20:00+01:00]",
        "2017-12-31[Europe/Paris]",
        "+99999-12-01T11:22:33",
    ],
)
def test_what_is_no_date_and_time_is_refused(text: str) -> None:
    assert parse_date_time(text) is None


def test_time_that_clocks_skip_is_moved_forward_with_them() -> None:
    assert to_text(parse_date_time("2021-03-28T02:30:00@Europe/Paris")) == "2021-03-28T03:30:00@Europe/Paris"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P1D", DaysTimeDuration(24 * HOUR)),
        ("-PT1H30M", DaysTimeDuration(-HOUR * 3 // 2)),
        ("PT0.S", DaysTimeDuration(0)),
        ("PT36H", DaysTimeDuration(36 * HOUR)),
        ("P1DT0.5S", DaysTimeDuration(24 * HOUR + 500_000_000)),
        ("P1Y27M", YearsMonthsDuration(39)),
        ("-P100M", YearsMonthsDuration(-100)),
        ("P0Y", YearsMonthsDuration(0)),
        ("P999999999Y", YearsMonthsDuration(999999999 * 12)),
    ],
)
def test_duration_is_read(text: str, value: object) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "-P",
        "PT",
        "P1DT",
        "P0",
        "1Y",
        "P1H",
        "P1S",
        "P1Y1D",
        "P1M1D",
        "P1MT1H",
        "P-1D",
        "+P1D",
        "P1W",
        "P1.5D",
        "PT.5S",
        "PT1H ",
        "p1d",
        "P1M1Y",
        "PT1S1M",
        "P" + "9" * 100 + "D",
        "P" + "9" * 10_000 + "D",
        "P99999999999Y",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2019-03-31", date(2019, 3, 31)),
        ("99999-03-31", ExactDate(99999, 3, 31)),
        ("10:30:11+11:00", time(10, 30, 11, tzinfo=timezone(timedelta(hours=11)))),
        ("10:30:11@Etc/UTC", time(10, 30, 11, tzinfo=ZoneInfo("Etc/UTC"))),
        ("2018-12-08T10:30:11Z", datetime(2018, 12, 8, 10, 30, 11, tzinfo=UTC)),
        ("P10D", DaysTimeDuration(240 * HOUR)),
        ("-P10Y", YearsMonthsDuration(-120)),
        ("foo", None),
        ("", None),
    ],
)
def test_literal_is_what_its_text_says(text: str, value: object) -> None:
    assert parse_temporal(text) == value


@given(st.text(alphabet="0123456789-+:.TZP@/DHMSY", max_size=40))
def test_no_text_raises(text: str) -> None:
    for parse in (parse_temporal, parse_date, parse_time, parse_date_time, parse_duration):
        value: Any = parse(text)
        assert value is None or is_identical(value, parse(to_text(value)))


@given(
    st.integers(-999_999_999, 999_999_999), st.integers(1, 12), st.integers(1, 28), st.times(), st.integers(0, 999), ZONES
)
def test_text_of_any_date_and_time_is_read_back(year: int, month: int, day: int, clock: time, nano: int, zone: Any) -> None:
    exact = ExactDateTime(year, month, day, clock.hour, clock.minute, clock.second, clock.microsecond * 1000 + nano, zone)

    settled = parse_date_time(to_text(exact))

    assert settled is not None
    assert is_identical(settled, parse_date_time(to_text(settled)))
    if zone is None or isinstance(zone, timezone):
        assert to_text(settled) == to_text(exact)
