"""Durations, dates and cycles of ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.instants import from_datetime, to_datetime
from holdfast.core.times.durations import Span, parse_duration
from holdfast.core.times.specs import AfterDuration, AtDate, Cycle, list_fires, make_spec
from holdfast.errors import InvalidSchedule

NOON = from_datetime(datetime(2026, 1, 31, 12, tzinfo=UTC))
MINUTE = 60_000_000
NAIVE = datetime.fromisoformat("2026-01-01")


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("PT10M", Span(micros=10 * MINUTE)),
        ("P1DT12H", Span(days=1, micros=720 * MINUTE)),
        ("P1Y2M", Span(months=14)),
        ("P2W", Span(days=14)),
        ("PT0.5S", Span(micros=500_000)),
        ("PT1,5H", Span(micros=90 * MINUTE)),
        ("PT0S", Span()),
    ],
)
def test_T1_duration_is_read(text: str, span: Span) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["P", "PT", "P1DT", "10M", "-PT1M", "P1.5D", "PT1M1H", "P1000Y", "PT\u0661M", "P1D ago"])
def test_duration_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="ISO 8601"):
        parse_duration(text)


def test_T1_first_cycle_fire_is_one_interval_after_arming() -> None:
    spec = make_spec("R3/PT10M")

    assert isinstance(spec, Cycle)
    assert spec.first(NOON) == NOON + 10 * MINUTE
    assert spec.count_fires(NOON) == 3


def test_T1_past_date_is_due_and_counts_once() -> None:
    spec = make_spec("2020-01-01T00:00:00Z")

    assert isinstance(spec, AtDate)
    assert spec.first(NOON) == from_datetime(datetime(2020, 1, 1, tzinfo=UTC))
    assert spec.next_after(NOON, NOON) is None


def test_T1_duration_is_over_once_after_arming() -> None:
    spec = make_spec("PT5M")

    assert isinstance(spec, AfterDuration)
    assert spec.first(NOON) == NOON + 5 * MINUTE
    assert spec.next_after(NOON, NOON + 5 * MINUTE) is None


def test_cycle_with_a_start_keeps_its_grid() -> None:
    spec = make_spec("R/2026-01-01T06:00:00Z/P1D")

    assert to_datetime(spec.first(NOON) or 0) == datetime(2026, 2, 1, 6, tzinfo=UTC)


def test_cycle_with_start_and_end_repeats_their_distance() -> None:
    spec = make_spec("R5/2026-02-01T00:00:00Z/2026-02-01T01:30:00Z")

    found = list(islice(list_fires(spec, NOON, NOON), 3))

    assert [to_datetime(one).strftime("%H:%M") for one in found] == ["00:00", "01:30", "03:00"]


def test_repeats_of_a_cycle_that_began_before_are_used_up() -> None:
    spec = make_spec("R3/2026-01-31T11:55:00Z/PT10M")

    assert spec.count_fires(NOON) == 2


def test_T4_a_cycle_with_a_start_ends_by_itself_and_one_without_by_whoever_counts() -> None:
    fixed, free = make_spec("R3/2026-01-31T11:55:00Z/PT10M"), make_spec("R3/PT10M")

    assert list(list_fires(fixed, NOON, NOON)) == [NOON + 5 * MINUTE, NOON + 15 * MINUTE]
    assert fixed.find_last(NOON) == NOON + 15 * MINUTE
    assert free.next_after(NOON, NOON + 30 * MINUTE) == NOON + 40 * MINUTE
    assert free.find_last(NOON) == NOON + 30 * MINUTE
    assert make_spec("R999999999/P100Y").find_last(NOON) is None


def test_months_count_from_the_start_and_not_from_a_short_month() -> None:
    found = list(islice(list_fires(make_spec("R/P1M"), NOON, NOON), 3))

    assert [to_datetime(one).strftime("%m-%d") for one in found] == ["02-28", "03-31", "04-30"]


def test_T5_days_of_a_cycle_keep_their_local_time() -> None:
    armed = from_datetime(datetime(2026, 3, 28, 8, tzinfo=UTC))  # 09:00 in Berlin

    found = make_spec("R/P1D", "Europe/Berlin").first(armed)

    assert to_datetime(found or 0) == datetime(2026, 3, 29, 7, tzinfo=UTC)  # 09:00 again, 23 hours later


@pytest.mark.parametrize(
    "text",
    [
        "R",
        "R/",
        "R0/PT1M",
        "R-1/PT1M",
        "R-/PT1S",
        "R3",
        "Rx/PT1M",
        "R/PT0S",
        "R/PT10M/2026-01-01T00:00:00Z",
        "R/a/b",
        "R/1/2/3",
    ],
)
def test_cycle_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule):
        make_spec(text)


@pytest.mark.parametrize(
    "given", [None, 7, "", "  ", [], timedelta(minutes=1), datetime.fromisoformat("2026-01-01"), "1900-01-01"]
)
def test_what_is_no_time_at_all_is_refused(given: object) -> None:
    with pytest.raises(Exception, match="Expected"):
        make_spec(given)


@given(
    st.sampled_from(["PT7M", "P1D", "P1M", "P1Y", "P1DT1H", "P1W", "PT0.25S"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    st.integers(0, 10**9),
)
def test_next_fire_derives_from_the_due_time(text: str, zone: str, late: int) -> None:
    spec = make_spec(f"R/{text}", zone)
    fires = list(islice(list_fires(spec, NOON, NOON), 6))

    assert fires == sorted(set(fires))
    for due, following in pairwise(fires):
        assert spec.next_after(NOON, min(due + late, following - 1)) == following


@pytest.mark.parametrize("micros", [0, -1_000_000])
def test_a_stored_interval_that_is_none_is_refused(micros: int) -> None:
    """Whoever wrote it: a grid without an end must not be walked along."""
    cycle = Cycle(text="R/PT0S", span=Span(micros=micros), start=0, repeats=5)

    with pytest.raises(InvalidSchedule, match="longer than nothing"):
        cycle.next_after(0, 10)
    with pytest.raises(InvalidSchedule, match="longer than nothing"):
        cycle.count_fires(10)
