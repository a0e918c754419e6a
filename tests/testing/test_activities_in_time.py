"""Retries, timeouts and rates of activities in virtual time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import Status
from holdfast.testing import TestEngine, count_events
from tests.testing import flows
from tests.testing.flows import result_now


async def test_waits_between_attempts_are_durable_timers(still: TestEngine) -> None:
    handle = await still.start(flows.retry_thrice)
    await still.settle()

    seen = [list(flows.notes)]
    for wait in (60, 120, 240):
        await still.clock.advance(seconds=wait - 1)
        assert (await handle.status()).waiting_for == "retry"
        await still.clock.advance(seconds=1)
        seen.append(list(flows.notes))

    assert [len(notes) for notes in seen] == [1, 2, 3, 4]
    assert await result_now(handle) == 4
    assert count_events(await handle.history(), "ActivityCompleted", attempt=4) == 1


async def test_wait_between_attempts_survives_a_crash(still: TestEngine) -> None:
    start = still.clock.present
    handle = await still.start(flows.retry_thrice)
    await still.clock.advance(seconds=30)

    report = await still.restart()
    status = await handle.status()
    await still.clock.advance(seconds=29)
    before = list(flows.notes)
    await still.clock.advance(seconds=1)

    assert report.timers == 1
    assert status.waiting_until == start + timedelta(seconds=60)
    assert before == ["attempt 1"]
    assert flows.notes == ["attempt 1", "attempt 2"]


@pytest.mark.parametrize(
    ("options", "alarms", "seconds", "outcome"),
    [
        ({"start_to_close": 60}, 1, 60, "start_to_close in attempt 1"),
        ({"start_to_close": 60, "attempts": 2}, 3, 130, "start_to_close in attempt 2"),
        ({"schedule_to_close": 3600}, 1, 3600, "schedule_to_close in attempt 1"),
        ({"start_to_close": 60, "attempts": 9, "schedule_to_close": 100}, 3, 100, "schedule_to_close in attempt 2"),
        ({"heartbeat": 30}, 1, 30, "heartbeat in attempt 1"),
    ],
)
async def test_an_activity_that_hangs_times_out_in_virtual_time(
    still: TestEngine, options: dict[str, Any], alarms: int, seconds: int, outcome: str
) -> None:
    handle = await still.start(flows.time_out, options)

    before = await still.clock.advance(seconds=seconds - 1)
    status_before = (await handle.status()).status
    after = await still.clock.advance(seconds=1)

    assert status_before in (Status.RUNNING, Status.SUSPENDED)
    assert before + after == alarms
    assert await result_now(handle) == outcome


async def test_a_thread_that_hangs_times_out_in_virtual_time(still: TestEngine) -> None:
    handle = await still.start(flows.time_out_in_thread)

    await still.clock.advance(seconds=60)

    assert await result_now(handle) == "start_to_close"


async def test_the_next_attempt_gets_what_the_last_one_reported(still: TestEngine) -> None:
    handle = await still.start(flows.beat)

    await still.clock.advance(seconds=30 + 10)

    assert await result_now(handle) == "the first attempt had come to half"


async def test_a_timeout_of_the_workflow_itself_ends_an_activity_that_hangs(still: TestEngine) -> None:
    handle = await still.start(flows.give_up_after, 90)

    await still.clock.advance(minutes=90)

    assert await result_now(handle) == "gave up at 01:30"
    assert count_events(await handle.history(), "ActivityCancelRequested") == 1


@pytest.mark.parametrize("option", ["schedule_to_start", "schedule_to_close"])
async def test_an_activity_that_gets_no_place_times_out_in_virtual_time(still: TestEngine, option: str) -> None:
    handle = await still.start(flows.queue_behind, {option: 60})

    await still.clock.advance(seconds=60)

    assert flows.notes == ["hanging alone"]
    assert await result_now(handle) == f"{option} at 00:01:00"


async def test_a_wait_for_a_place_that_is_over_does_not_end_the_next_one(still: TestEngine) -> None:
    handle = await still.start(flows.queue_twice)
    await still.settle()

    flows.open_gate("first")
    await still.clock.advance(seconds=10 + 59)
    before = (await handle.status()).status
    await still.clock.advance(seconds=1)

    assert flows.notes == ["first", "second", "third"]
    assert before == Status.RUNNING
    assert await result_now(handle) == "schedule_to_start in attempt 2"


async def test_a_rate_limit_spreads_starts_over_virtual_time(still: TestEngine) -> None:
    handle = await still.start(flows.note_at_a_rate, 60)
    await still.settle()
    at_once = len(flows.notes)

    await still.clock.advance(seconds=29)
    half_way = len(flows.notes)
    await still.clock.advance(seconds=30)

    assert (at_once, half_way) == (1, 30)
    assert await result_now(handle) == "00:00:59"
