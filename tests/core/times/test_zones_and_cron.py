"""Cron lines and calendars in time zones, against a scan of every minute with the standard library's own zones."""

# ruff: noqa: DTZ001 - local times have no zone
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.instants import Instant, from_datetime, to_datetime
from holdfast.core.times.calendars import Calendar
from holdfast.core.times.specs import AnySpec, OnCalendar, make_spec
from holdfast.errors import InvalidSchedule

CHANGES = {
    "Europe/Berlin": [datetime(2026, 3, 28), datetime(2026, 10, 24)],
    "America/New_York": [datetime(2026, 3, 7), datetime(2026, 10, 31)],
    "Australia/Lord_Howe": [datetime(2026, 4, 4), datetime(2026, 10, 3)],
    "America/Sao_Paulo": [datetime(2018, 11, 3), datetime(2019, 2, 16)],
    "Pacific/Apia": [datetime(2011, 12, 29)],
    "Asia/Kolkata": [datetime(2026, 3, 28)],
}
"""Days before a zone's clocks are changed: by an hour, by half of one, at midnight, by a whole day, and not at all."""


def scan(fields: tuple[set[int], set[int], set[int]], zone: str, first: datetime, days: int) -> list[Instant]:
    """Every local minute that matches (minutes, hours, weekdays), as the instant at which it fires; the slow way."""
    minutes, hours, weekdays = fields
    info = ZoneInfo(zone)
    found: set[Instant] = set()
    local = first
    while local < first + timedelta(days=days):
        if local.minute in minutes and local.hour in hours and local.isoweekday() % 7 in weekdays:
            shown = local.replace(tzinfo=info)
            while True:  # a local time that is skipped becomes the next one that is shown
                back = shown.astimezone(UTC).astimezone(info).replace(tzinfo=None)
                if back == shown.replace(tzinfo=None, fold=0):
                    break
                shown = (shown.replace(tzinfo=None) + timedelta(minutes=1)).replace(tzinfo=info)
            found.add(from_datetime(shown.astimezone(UTC)))
        local += timedelta(minutes=1)
    return sorted(found)


def walk(spec: AnySpec, after: Instant, until: Instant) -> list[Instant]:
    found = []
    while (due := spec.next_after(0, after)) is not None and due < until:
        found.append(due)
        after = due
    return found


@st.composite
def cron_fields(draw: st.DrawFn) -> tuple[set[int], set[int], set[int]]:
    minutes = draw(st.sets(st.sampled_from([0, 15, 29, 30, 45, 59]), min_size=1, max_size=4))
    hours = draw(st.sets(st.integers(0, 23), min_size=1, max_size=24))
    return minutes, hours | {draw(st.integers(0, 3))}, draw(st.sets(st.integers(0, 6), min_size=1, max_size=7))


@settings(max_examples=25, deadline=None)
@given(cron_fields(), st.sampled_from([(zone, day) for zone, days in CHANGES.items() for day in days]))
def test_T5_cron_fires_each_local_time_once(
    fields: tuple[set[int], set[int], set[int]], change: tuple[str, datetime]
) -> None:
    zone, day = change
    minutes, hours, weekdays = (",".join(map(str, sorted(part))) for part in fields)

    expected = scan(fields, zone, day - timedelta(days=1), 5)
    begin, end = (from_datetime(one.replace(tzinfo=ZoneInfo(zone))) for one in (day, day + timedelta(days=3)))
    expected = [due for due in expected if begin < due < end]

    assert walk(make_spec(f"{minutes} {hours} * * {weekdays}", zone), begin, end) == expected


@settings(max_examples=25, deadline=None)
@given(cron_fields(), st.sampled_from([(zone, day) for zone, days in CHANGES.items() for day in days]))
def test_T5_calendar_fires_each_local_time_once(
    fields: tuple[set[int], set[int], set[int]], change: tuple[str, datetime]
) -> None:
    zone, day = change
    minutes, hours, weekdays = fields
    names = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
    times = [f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]
    calendar = Calendar(times=times, weekdays=[names[one] for one in weekdays])

    expected = scan(fields, zone, day - timedelta(days=1), 5)
    begin, end = (from_datetime(one.replace(tzinfo=ZoneInfo(zone))) for one in (day, day + timedelta(days=3)))

    assert walk(make_spec(calendar, zone), begin, end) == [due for due in expected if begin < due < end]


def test_T5_time_that_does_not_exist_fires_at_the_next_valid_one() -> None:
    spec = make_spec("30 2 * * *", "Europe/Berlin")

    due = spec.next_after(0, from_datetime(datetime(2026, 3, 28, 12, tzinfo=UTC)))

    assert due is not None
    assert to_datetime(due) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)  # 03:00 in Berlin, the first time behind the gap


def test_T5_ambiguous_time_fires_once() -> None:
    spec = make_spec("30 2 * * *", "Europe/Berlin")
    begin = from_datetime(datetime(2026, 10, 24, 12, tzinfo=UTC))

    first, second = walk(spec, begin, begin + 48 * 3600 * 1_000_000)

    assert to_datetime(first) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert to_datetime(second) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0 0 30 2 *", "no such day"),
        ("0 0 31 4,6,9,11 *", "no such day exists, since no month of '4,6,9,11' has a day '31'"),
        ("0 25 * * *", "its hour is '25', and allowed are 0 to 23"),
        ("0 6 32 2 *", "its day-of-month is '32', and allowed are 1 to 31"),
        ("0 0 25 * * *", "its hour is '25'"),
        ("61 * * * *", "minute"),
        ("* * * *", "number of fields"),
        ("@sometimes", "@daily"),
        ("hello", "number of fields"),
        ("L/2 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
    ],
)
def test_cron_line_that_never_fires_is_refused(line: str, words: str) -> None:
    with pytest.raises(InvalidSchedule, match=words):
        make_spec(line)


def test_leap_day_is_found() -> None:
    due = make_spec("0 0 29 2 *").next_after(0, from_datetime(datetime(2096, 3, 1, tzinfo=UTC)))

    assert due is not None
    assert to_datetime(due) == datetime(2104, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("zone", ["Mars/Base", "", None, 7, "../etc/passwd", "Europe/berlin2"])
def test_unknown_zone_is_refused(zone: object) -> None:
    with pytest.raises(InvalidSchedule, match="IANA"):
        make_spec("@daily", zone)


@pytest.mark.parametrize(
    "calendar",
    [
        {"times": []},
        {"times": ["25:00"]},
        {"times": ["09:00+01:00"]},
        {"times": ["09:00"], "weekdays": ["noday"]},
        {"times": ["09:00"], "weekdays": ["monkey"]},
        {"times": ["09:00"], "weekdays": ["mo"]},
        {"times": ["09:00"], "days": [0]},
        {"times": ["09:00"], "days": [32]},
        {"times": ["09:00"], "months": [13]},
        {"times": ["09:00"], "dates": ["2026-02-30"]},
        {"times": ["09:00"], "hours": [1]},
        {"times": "09:00"},
        {},
    ],
)
def test_calendar_with_a_bad_field_is_refused(calendar: dict[str, object]) -> None:
    with pytest.raises(InvalidSchedule):
        make_spec(calendar)


def test_calendar_counts_days_from_the_end_and_leaves_dates_out() -> None:
    calendar = Calendar(times=["06:00"], days=[1, -1], except_dates=["2026-02-28"])
    begin = from_datetime(datetime(2026, 1, 31, tzinfo=UTC))

    found = walk(make_spec(calendar), begin, from_datetime(datetime(2026, 3, 31, 12, tzinfo=UTC)))

    assert [to_datetime(one).strftime("%m-%d") for one in found] == ["01-31", "02-01", "03-01", "03-31"]


def test_calendar_of_dates_alone_ends() -> None:
    spec = make_spec(Calendar(times=["12:00"], dates=["2026-12-24", "2026-12-31"]))
    begin = from_datetime(datetime(2026, 12, 25, tzinfo=UTC))

    found = walk(spec, begin, begin + 10**15)

    assert [to_datetime(one) for one in found] == [datetime(2026, 12, 31, 12, tzinfo=UTC)]


def test_weekdays_of_a_calendar_have_short_and_full_names() -> None:
    found = make_spec(Calendar(times=["09:00"], weekdays=["Sunday", "mon", "WED"]))

    assert isinstance(found, OnCalendar)
    assert found.calendar.weekdays == ["mon", "wed", "sun"]
