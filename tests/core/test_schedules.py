"""What fires when: pauses, backfills and what was missed, as pure functions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import codec, payloads
from holdfast.core.envelopes import Start
from holdfast.core.instants import SECOND, from_datetime
from holdfast.core.schedules import (
    MOST_TIMES,
    Fired,
    OpenRun,
    Overlap,
    PlannedRun,
    RunKind,
    ScheduleDetails,
    arm,
    backfill,
    find_due,
    fire,
    list_passed,
    pause,
    resume,
)
from holdfast.core.times.specs import make_spec

NOON = from_datetime(datetime(2030, 1, 1, 12, tzinfo=UTC))
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def make_details(spec: str, **fields: object) -> ScheduleDetails:
    start = Start(execution_id="", workflow_id="{schedule}-{time}", workflow="w", input=payloads.encode(1, "the input"))
    details = ScheduleDetails(uid="u", spec=make_spec(spec), start=start, armed_at=NOON)
    return arm(replace(details, **fields), NOON)


def look_until_done(details: ScheduleDetails, now: int) -> tuple[ScheduleDetails, list[int], int]:
    """What a schedule is, which times it fired, and how many looks it took, if nothing is ever open."""
    times: list[int] = []
    for looks in range(1_000):
        due = find_due(details)
        if due is None or due > now:
            return details, times, looks
        found = fire(details, now, "s", (), ())
        details = found.details
        times += [from_datetime(datetime.fromisoformat(one.workflow_id.removeprefix("s-"))) for one in found.starts]
    raise AssertionError("it never ends")


# --- pauses ---


def test_T5_what_is_due_before_a_pause_is_fired_after_it() -> None:
    details = make_details("0 * * * *", overlap=Overlap.ALLOW)

    paused = pause(details, NOON + HOUR + 30 * MINUTE)
    resumed = resume(paused, NOON + 3 * HOUR + 30 * MINUTE)
    _, times, _ = look_until_done(resumed, NOON + 4 * HOUR)

    assert times == [NOON + HOUR, NOON + 4 * HOUR]


def test_T5_a_long_pause_is_left_out_at_once() -> None:
    details = pause(make_details("* * * * * *", overlap=Overlap.ALLOW), NOON)

    resumed = resume(details, NOON + 365 * 24 * HOUR)

    assert (resumed.next_at, resumed.pauses) == (NOON + 365 * 24 * HOUR + SECOND, ())


def test_T5_a_past_date_that_was_made_paused_falls_into_the_pause() -> None:
    details = pause(make_details("2020-01-01T00:00:00Z"), NOON)

    resumed = resume(details, NOON + MINUTE)

    assert (resumed.next_at, resumed.remaining) == (None, 0)


@given(
    st.sampled_from([0, 90 * SECOND, 30 * MINUTE]),
    st.lists(st.tuples(st.integers(0, 60 * MINUTE), st.integers(0, 60 * MINUTE)), max_size=3),
    st.booleans(),
)
def test_T5_exactly_what_is_due_within_pauses_is_left_out(
    jitter: int, pauses: list[tuple[int, int]], fires_between: bool
) -> None:
    details = make_details("*/10 * * * *", overlap=Overlap.ALLOW, jitter_us=jitter)
    dues = {
        at: find_due(replace(details, next_at=at)) or 0 for at in range(NOON + 10 * MINUTE, NOON + 11 * HOUR, 10 * MINUTE)
    }
    now, spans, fired = NOON, [], list[int]()
    for before, length in pauses:
        now += before
        if fires_between:
            details, times, _ = look_until_done(details, now)
            fired += times
        details = pause(details, now)
        now += length
        spans.append((now - length, now))
        details = resume(details, now)
    end = NOON + 10 * HOUR
    details, times, _ = look_until_done(details, end)
    fired += times

    expected = [at for at, due in dues.items() if not any(begin <= due <= end for begin, end in spans)]
    assert [at for at in fired if at < NOON + 9 * HOUR] == [at for at in expected if at < NOON + 9 * HOUR]


def test_T5_during_a_pause_only_fires_of_a_backfill_begin() -> None:
    waiting = (PlannedRun(NOON), PlannedRun(NOON + 1, RunKind.BACKFILL), PlannedRun(NOON + 2))
    details = replace(make_details("*/10 * * * *", overlap=Overlap.QUEUE), waiting=waiting)

    paused = fire(details, NOON + HOUR, "s", (), (), is_paused=True)

    assert [run.kind for run in paused.details.recent] == [RunKind.BACKFILL]
    assert paused.details.waiting == (waiting[0], waiting[2])
    assert (paused.details.fired, paused.details.next_at) == (0, NOON + 10 * MINUTE)
    assert not paused.details.awaits_ends(is_paused=True)


# --- overlaps ---


def fire_beside(kind: RunKind, waiting: RunKind, *, is_paused: bool = False) -> Fired:
    details = make_details("0 * * * *", overlap=Overlap.CANCEL_RUNNING)
    run = OpenRun("w", "e", kind)
    details = replace(details, waiting=(PlannedRun(NOON, waiting),), open_runs=(run,))
    return fire(details, NOON, "s", (run,), ("w",), is_paused=is_paused)


def test_T5_only_a_timed_fire_ends_executions_and_none_of_a_backfill() -> None:
    assert fire_beside(RunKind.TIME, RunKind.TIME).ends == (OpenRun("w", "e"),)
    assert fire_beside(RunKind.MANUAL, RunKind.TIME).ends == (OpenRun("w", "e", RunKind.MANUAL),)
    assert fire_beside(RunKind.BACKFILL, RunKind.TIME).ends == ()
    assert fire_beside(RunKind.TIME, RunKind.BACKFILL).ends == ()
    assert fire_beside(RunKind.TIME, RunKind.TIME, is_paused=True).ends == ()


# --- what has passed ---


@pytest.mark.parametrize(
    ("spec", "first", "hours", "minutes"),
    [
        ("R3/2030-01-01T11:50:00Z/PT10M", -60, 3, [-10, 0, 10]),
        ("R3/PT10M", -60, 3, [10, 20, 30]),
        ("R/PT1H", -180, 0, []),
        ("R/2030-01-01T09:00:00Z/PT1H", -120, 0, [-120, -60, 0]),
        ("PT5M", -180, 0, []),
        ("PT5M", -180, 1, [5]),
        ("0 * * * *", -120, 0, [-120, -60, 0]),
        ("2030-01-01T11:00:00Z", -120, 0, [-60]),
    ],
)
@pytest.mark.parametrize("has_fired", [False, True])
def test_T5_a_backfill_has_the_times_of_its_schedule(
    spec: str, first: int, hours: int, minutes: list[int], has_fired: bool
) -> None:
    details = make_details(spec, overlap=Overlap.ALLOW)
    if has_fired:
        details, _, _ = look_until_done(details, NOON + hours * HOUR)

    found = list(list_passed(details, NOON + first * MINUTE, NOON + hours * HOUR))

    assert found == [NOON + minute * MINUTE for minute in minutes]


def test_T5_a_backfill_has_the_times_that_a_pause_left_out_and_none_behind_the_end() -> None:
    details = resume(pause(make_details("R3/PT10M", overlap=Overlap.ALLOW), NOON), NOON + 25 * MINUTE)

    details, times, _ = look_until_done(details, NOON + 3 * HOUR)

    assert times == [NOON + minute * MINUTE for minute in (30, 40, 50)]
    assert list(list_passed(details, NOON, NOON + 3 * HOUR)) == [NOON + number * 10 * MINUTE for number in range(1, 6)]


def test_T4_a_cycle_with_a_start_has_no_times_behind_its_last() -> None:
    details = make_details("R3/2030-01-01T12:10:00Z/PT10M", overlap=Overlap.ALLOW)

    details = resume(pause(details, NOON), NOON + 15 * MINUTE)
    details, times, _ = look_until_done(details, NOON + 3 * HOUR)

    assert times == [NOON + 20 * MINUTE, NOON + 30 * MINUTE]
    assert (details.is_over, details.remaining) == (True, 0)


# --- what was missed ---


@pytest.mark.parametrize("count", [None, 100_000])
def test_T5_what_was_missed_is_counted_over_several_looks(count: int | None) -> None:
    details = make_details("* * * * * *", overlap=Overlap.ALLOW, catch_up_us=10 * SECOND, count=count)

    details, _, looks = look_until_done(details, NOON + 2 * HOUR)

    assert (details.missed, details.fired) == (7200 - 11, 11)
    assert looks == 7200 // MOST_TIMES + 1


def test_T5_what_was_missed_in_too_long_a_time_is_passed_over() -> None:
    details = make_details("* * * * * *", overlap=Overlap.ALLOW, catch_up_us=10 * SECOND)

    details, _, looks = look_until_done(details, NOON + 365 * 24 * HOUR)

    assert (details.missed, details.fired, looks) == (MOST_TIMES, 11, 2)


def test_a_backfill_is_known_as_one_while_it_is_open() -> None:
    details = make_details("0 * * * *")

    made = backfill(details, NOON, "s", [NOON - HOUR], queue=False).details

    assert [(run.kind, run.execution_id) for run in made.open_runs] == [(RunKind.BACKFILL, made.recent[0].execution_id)]


# --- jitter ---


@given(st.integers(0, 50), st.sampled_from([5 * MINUTE, HOUR, 3 * 24 * HOUR]), st.booleans())
def test_T5_a_jitter_longer_than_the_interval_makes_nothing_late_while_nodes_run(
    uid: int, jitter: int, looks_at_each_due: bool
) -> None:
    details = replace(make_details("R60/PT1M", overlap=Overlap.ALLOW, jitter_us=jitter, catch_up_us=SECOND), uid=f"u{uid}")
    now, fired = NOON, 0
    while (due := find_due(details)) is not None:
        now = max(now, due) if looks_at_each_due else max(now + SECOND, due)
        found = fire(details, now, "s", (), ())
        fired += len(found.starts)
        details = found.details

    assert (fired, details.missed, details.latest_due) == (60, 0, 0)


def test_T5_with_jitter_what_came_due_while_no_node_ran_is_missed() -> None:
    details = make_details("R/PT1M", overlap=Overlap.ALLOW, jitter_us=HOUR, catch_up_us=SECOND)

    late = fire(details, NOON + 10 * HOUR, "s", (), ()).details

    assert late.missed > 500
    assert late.fired + late.missed < 600


def test_T5_a_schedule_without_jitter_stores_nothing_about_it() -> None:
    details = make_details("R/PT1M", overlap=Overlap.ALLOW)

    fired = fire(details, NOON + HOUR, "s", (), ()).details

    assert b"latest_due" not in codec.encode(fired)
