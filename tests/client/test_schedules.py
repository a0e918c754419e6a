"""Schedules by every way to reach a database: in process, on PostgreSQL, by the owner's socket, on a file alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import BusinessReference, Calendar, InvalidArguments, InvalidSchedule, Retry, ScheduleExists, ScheduleNotFound
from holdfast.errors import InvalidTime
from tests.client.conftest import Way
from tests.client.workflows import Item, collect, order
from tests.eventually import eventually

AT = datetime(2030, 1, 2, tzinfo=UTC)


async def test_U1_a_schedule_is_created_changed_paused_run_and_deleted(way: Way) -> None:
    verbs = way.verbs

    made = await verbs.create_schedule(
        "daily",
        "30 9 * * *",
        "collect",
        0,
        time_zone="Europe/Berlin",
        overlap="queue",
        jitter=timedelta(minutes=1),
        retry=Retry(max_attempts=2),
        business_reference=BusinessReference("P-1"),
        request_id="c",
    )
    again = await verbs.create_schedule("daily", "30 9 * * *", "collect", 0, request_id="c")
    changed = await verbs.update_schedule("daily", "0 10 * * *", args=[1], notes="ours", request_id="u")
    assert await verbs.pause_schedule("daily", request_id="p")
    assert await verbs.pause_schedule("daily", request_id="p")
    assert not await verbs.pause_schedule("daily")
    paused = await verbs.describe_schedule("daily")
    assert await verbs.resume_schedule("daily", request_id="s")
    await verbs.update_schedule("daily", workflow=collect, args=[0])
    run = await verbs.run_schedule("daily", request_id="r")
    same = await verbs.run_schedule("daily", request_id="r")
    await way.work(run.workflow_id)

    assert again == made
    assert (made.input, made.business_reference, len(made.next_fires)) == ([0], BusinessReference("P-1"), 5)
    assert (changed.input, changed.notes, changed.spec, changed.time_zone) == ([1], "ours", "0 10 * * *", "Europe/Berlin")
    assert (paused.state, paused.next_fires, paused.jitter) == ("paused", [], timedelta(minutes=1))
    assert run == same
    assert await verbs.handle(run.workflow_id).result() == []
    assert [one.schedule_id for one in await verbs.schedules(limit=5)] == ["daily"]
    assert await verbs.schedules(after="daily") == []
    assert await verbs.delete_schedule("daily", request_id="d")
    assert await verbs.delete_schedule("daily", request_id="d")
    assert not await verbs.delete_schedule("daily")
    with pytest.raises(ScheduleNotFound):
        await verbs.describe_schedule("daily")


async def test_U1_calendars_dates_functions_and_backfills_travel(way: Way) -> None:
    verbs = way.verbs
    calendar = Calendar(times=["09:00"], weekdays=["mon"])

    weekly = await verbs.create_schedule("weekly", calendar, order, Item("tea", AT), 2, org="a")
    named = await verbs.create_schedule("named", calendar, order.bind(Item("tea", AT), count=3), count=7)
    once = await verbs.create_schedule("once", AT, "collect", args=[0])
    hourly = await verbs.create_schedule("hourly", "R/2026-01-01T00:00:00Z/PT1H", "collect", 0, count=3)
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 3, tzinfo=UTC)
    number = await verbs.backfill_schedule("hourly", first, last, request_id="b")
    again = await verbs.backfill_schedule("hourly", first, last, request_id="b")

    assert [at.weekday() for at in weekly.next_fires] == [0] * 5
    assert (weekly.org, weekly.input) == ("a", [{"name": "tea", "at": "2030-01-02T00:00:00Z"}, 2])
    assert (named.input[1], named.count) == (3, 7)
    assert once.next_fires == [AT]
    assert hourly.remaining == 3
    assert (number, again) == (4, 4)
    runs = (await verbs.describe_schedule("hourly")).recent_runs
    await way.work(*(run.workflow_id for run in runs))
    assert [(await verbs.handle(run.workflow_id).result(), run.kind) for run in runs] == [([], "backfill")] * 4


async def test_I4_bad_arguments_and_schedules_are_refused_before_anything_is_stored(way: Way) -> None:
    verbs = way.verbs
    await verbs.create_schedule("there", "@daily", "collect", 0)

    with pytest.raises(ScheduleExists):
        await verbs.create_schedule("there", "@daily", "collect", 0)
    with pytest.raises(InvalidArguments, match="count"):
        await verbs.create_schedule("bad", "@daily", "collect", "many")
    with pytest.raises(InvalidArguments, match="count"):
        await verbs.update_schedule("there", args=["many"])
    with pytest.raises(InvalidArguments, match="options of a schedule"):
        await verbs.create_schedule("bad", "@daily", "collect", 0, on_open="fail")  # type: ignore[call-arg]
    with pytest.raises(InvalidArguments, match="both ways"):
        await verbs.create_schedule("bad", "@daily", "collect", 0, args=[0])
    with pytest.raises(InvalidSchedule):
        await verbs.create_schedule("bad", "every day", "collect", 0)
    with pytest.raises(InvalidSchedule):
        await verbs.create_schedule("bad", Calendar(times=["25:00"]), "collect", 0)
    with pytest.raises(InvalidTime):
        await verbs.create_schedule("bad", datetime(2030, 1, 1), "collect", 0)  # noqa: DTZ001 - without a zone
    with pytest.raises(ScheduleNotFound):
        await verbs.update_schedule("bad", args=[0])

    assert [one.schedule_id for one in await verbs.schedules()] == ["there"]


async def test_T4_what_a_client_schedules_is_fired_by_whoever_has_the_code(way: Way) -> None:
    await way.verbs.create_schedule("soon", "2020-01-01T00:00:00Z", "collect", 0)

    async def has_fired() -> bool:
        if way.is_idle:
            await way.work("soon-2020-01-01T00:00:00Z")
        return (await way.verbs.describe_schedule("soon")).fired == 1

    await eventually(has_fired)
    assert await way.verbs.handle("soon-2020-01-01T00:00:00Z").result() == []
