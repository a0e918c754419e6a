"""Times one after the other, the years that count, and zones that a machine does not know."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core.instants import Instant, from_datetime, to_datetime
from holdfast.core.times.calendars import Calendar
from holdfast.core.times.specs import AnySpec, OnCalendar, list_fires, make_spec
from holdfast.errors import InvalidSchedule, InvalidTime

NEW_YEAR = from_datetime(datetime(2026, 1, 1, tzinfo=UTC))
ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia")
NIGHTS = (datetime(2026, 3, 28, 22, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2018, 11, 3, tzinfo=UTC))
SPECS = (
    "*/20 * * * *",
    "30 1-3 * * *",
    "15,45 0 2 * * *",
    "R/PT25M",
    "R/P1D",
    Calendar(times=["00:00", "02:30", "02:45", "23:59:59"]),
    Calendar(times=["03:00"], days=[-1, 29], months=[2, 3, 10]),
)


def ask_one_by_one(spec: AnySpec, after: Instant, count: int) -> list[Instant]:
    found: list[Instant] = []
    while len(found) < count and (due := spec.next_after(NEW_YEAR, found[-1] if found else after)) is not None:
        found.append(due)
    return found


@given(st.sampled_from(SPECS), st.sampled_from(ZONES), st.sampled_from(NIGHTS), st.integers(0, 9 * 3600 * 10**6))
def test_T5_times_in_a_row_are_those_that_are_asked_for_one_by_one(
    given_spec: Any, zone: str, night: datetime, offset: int
) -> None:
    spec, after = make_spec(given_spec, zone), from_datetime(night) + offset

    assert list(islice(list_fires(spec, NEW_YEAR, after), 30)) == ask_one_by_one(spec, after, 30)


@given(
    st.lists(st.sampled_from(["mon", "wed", "sun"]), max_size=2),
    st.lists(st.sampled_from([1, 29, 31, -1, -30]), max_size=2),
    st.lists(st.sampled_from([1, 2, 12]), max_size=2),
    st.lists(st.dates(date(2026, 1, 1), date(2028, 12, 31)).map(str), max_size=3),
    st.lists(st.dates(date(2026, 1, 1), date(2028, 12, 31)).map(str), max_size=3),
)
def test_T5_a_calendar_has_exactly_the_days_that_its_lists_hold(
    weekdays: list[str], days: list[int], months: list[int], dates: list[str], except_dates: list[str]
) -> None:
    calendar = Calendar(["09:00"], weekdays, days, months, dates, except_dates)
    has_rules = bool(weekdays or days or months)
    expected: list[str] = []
    for offset in range(3 * 365 + 1):
        day = date(2026, 1, 1) + timedelta(days=offset)
        next_month = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        is_ruled = (
            (not weekdays or day.strftime("%a").lower() in weekdays)
            and (not months or day.month in months)
            and (not days or day.day in days or (day - next_month).days in days)
            and (has_rules or not dates)
        )
        if (is_ruled or str(day) in dates) and str(day) not in except_dates:
            expected.append(str(day))

    found = [
        str(to_datetime(at).date())
        for at in islice(list_fires(make_spec(calendar), NEW_YEAR, NEW_YEAR), len(expected) + 1)
        if to_datetime(at).year < 2029
    ]
    assert found == [day for day in expected if not day.startswith("2029")]


def test_T5_leap_days_on_a_weekday_are_found_as_far_as_they_are_apart() -> None:
    spec = make_spec(Calendar(times=["09:00"], days=[29], months=[2], weekdays=["mon"]))

    found = [to_datetime(at).year for at in islice(list_fires(spec, NEW_YEAR, NEW_YEAR), 5)]

    assert found == [2044, 2072, 2112, 2140, 2168]  # 2100 is no leap year


@pytest.mark.parametrize("text", ["9999-12-31", "2271-01-01", "1969-12-31", "0001-01-01"])
def test_a_calendar_has_no_dates_beyond_the_years_that_count(text: str) -> None:
    for field in ("dates", "except_dates"):
        with pytest.raises(InvalidSchedule, match="between 1970 and 2270"):
            make_spec({"times": ["09:00"], field: [text]})


@pytest.mark.parametrize(
    "given_date",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_a_datetime_beyond_the_years_that_count_is_refused(given_date: datetime) -> None:
    with pytest.raises((InvalidSchedule, InvalidTime), match="Expected"):
        make_spec(given_date)


def test_D2_a_stored_calendar_with_a_date_beyond_the_calendar_ends_before_it() -> None:
    calendar = Calendar(times=["23:00"], dates=["2030-03-30", "9999-12-31"])
    spec = OnCalendar(zone="America/New_York", calendar=calendar)

    found = [to_datetime(at).isoformat() for at in list_fires(spec, NEW_YEAR, NEW_YEAR)]

    assert found == ["2030-03-31T03:00:00+00:00"]


@pytest.mark.parametrize("given_spec", ["0 9 * * *", "R/P1D", "R/2026-01-01T00:00:00Z/P1M", Calendar(times=["09:00"])])
def test_D2_a_zone_that_is_not_known_here_is_no_end_of_a_schedule(given_spec: Any) -> None:
    spec = replace(make_spec(given_spec), zone="Nowhere/Atlantis")

    with pytest.raises(InvalidSchedule, match=r"'Nowhere/Atlantis', but this machine does not know it\. Update"):
        spec.next_after(NEW_YEAR, NEW_YEAR)
