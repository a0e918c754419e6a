"""Points and lengths of time: whole microseconds, with a zone, within reason."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.instants import LONGEST, SECOND, from_datetime, to_datetime, to_micros
from holdfast.errors import InvalidDuration, InvalidTime

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12)), ZoneInfo("Europe/Sofia")])


@given(st.datetimes(datetime(1800, 1, 2), datetime(9999, 12, 30)), ZONES)  # noqa: DTZ001 - hypothesis wants naive bounds
def test_instant_and_date_time_are_the_same_moment(naive: datetime, zone: timezone) -> None:
    moment = naive.replace(tzinfo=zone).astimezone(UTC)

    assert to_datetime(from_datetime(moment)) == moment


def test_epoch_is_instant_zero() -> None:
    assert from_datetime(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert from_datetime(datetime(1970, 1, 1, 2, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))) == 1


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (datetime(2030, 1, 1), "2030-01-01T00:00:00 has none"),  # noqa: DTZ001 - that is what is refused
        (date(2030, 1, 1), "it is date"),
        ("2030-01-01T00:00:00Z", "it is str"),
        (0, "it is int 0"),
        (None, "it is NoneType None"),
    ],
)
def test_time_without_a_zone_is_refused(value: Any, found: str) -> None:
    with pytest.raises(InvalidTime, match=rf"^Expected the alarm to .*, but {found}"):
        from_datetime(value, "the alarm")


@given(st.integers(0, LONGEST))
def test_timedelta_is_exact(micros: int) -> None:
    assert to_micros(timedelta(microseconds=micros)) == micros


@given(st.floats(0, LONGEST / SECOND))
def test_seconds_are_rounded_to_the_microsecond(seconds: float) -> None:
    assert abs(to_micros(seconds) - seconds * SECOND) <= 1


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.001,
        timedelta(microseconds=-1),
        timedelta(days=100 * 366 + 1),
        timedelta.max,
        1e300,
        10**400,
        float("nan"),
        float("inf"),
        float("-inf"),
        True,
        "5",
        None,
        datetime(2030, 1, 1, tzinfo=UTC),
    ],
)
def test_duration_that_cannot_be_meant_is_refused(value: Any) -> None:
    with pytest.raises(InvalidDuration, match=r"^Expected the pause to be .* between 0 and a hundred years, but it is "):
        to_micros(value, "the pause")


def test_a_point_in_time_in_place_of_a_duration_is_told_how_to_wait_for_it() -> None:
    when: Any = datetime(2030, 1, 1, tzinfo=UTC)

    with pytest.raises(InvalidDuration, match=r"but it is datetime.*`when - ctx\.now\(\)`, or use ctx\.sleep_until\(when\)"):
        to_micros(when, "the length of a timer")
