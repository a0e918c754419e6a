"""The life of a schedule on every store: organisations, updates, deletion, owners, request ids, codecs, versions."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Context, EncodedPayload, ScheduleExists, workflow
from holdfast.core.schedules import MOST_WAITING
from holdfast.engine.use_cases.schedule_views import ScheduleInfo
from holdfast.errors import InvalidArguments, ScheduleNotFound, WorkflowAlreadyOpen
from holdfast.testing import TestEngine
from tests.engine.conftest import OpenEngine

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Base64Codec:
    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        return [EncodedPayload(b64encode(one.data), "base64") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        return [EncodedPayload(b64decode(one.data)) for one in payloads]


@workflow
async def note(ctx: Context, text: str = "") -> str:
    return text


@workflow
async def wait(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow(name="pinned", version="1")
async def first_pinned(ctx: Context, text: str = "") -> str:
    return text


@workflow(name="pinned", version="2")
async def second_pinned(ctx: Context, text: str = "") -> str:
    return f"newer {text}"


async def list_ids(engine: TestEngine, org: str = "default") -> list[str]:
    return sorted(info.workflow_id for info in await engine.list(org=org))


async def test_schedules_of_two_orgs_with_one_id_have_nothing_in_common(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, wait, start=START)
    await engine.create_schedule("s", "R2/PT10M", note, org="a")
    await engine.create_schedule("s", "R1/PT20M", wait, org="b")

    await engine.clock.advance(minutes=10)
    assert await engine.delete_schedule("s", org="a")
    await engine.clock.advance(minutes=20)

    assert await list_ids(engine, "a") == ["s-2026-03-01T12:10:00Z"]
    assert await list_ids(engine, "b") == ["s-2026-03-01T12:20:00Z"]
    assert (await engine.schedules(org="a"), await engine.schedules()) == ([], [])
    assert (await engine.describe_schedule("s", org="b")).state == "ended"


async def test_a_deleted_schedule_fires_no_more_and_what_it_started_goes_on(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("w", "R/PT10M", wait, overlap="queue")
    await engine.clock.advance(minutes=25)

    assert await engine.delete_schedule("w")
    await engine.signal_workflow("w-2026-03-01T12:10:00Z", "go")
    await engine.clock.advance(hours=2)

    [only] = await engine.list()
    assert (only.workflow_id, only.status) == ("w-2026-03-01T12:10:00Z", "completed")


async def test_T4_a_schedule_made_anew_under_its_id_counts_from_its_beginning(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("s", "R2/PT10M", note)
    await engine.clock.advance(minutes=15)
    await engine.delete_schedule("s")

    anew = await engine.create_schedule("s", "R2/PT10M", note)
    await engine.clock.advance(hours=1)

    assert (anew.fired, anew.remaining, anew.recent_runs) == (0, 2, [])
    assert [one[-9:-4] for one in await list_ids(engine)] == ["12:10", "12:25", "12:35"]


async def test_T4_an_update_of_anything_but_the_times_leaves_the_count_and_what_waits_alone(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, note, start=START)
    await engine.create_schedule("w", "R5/PT10M", wait, overlap="queue")
    await engine.clock.advance(minutes=35)
    before = await engine.describe_schedule("w")

    after = await engine.update_schedule(
        "w", "R5/PT10M", workflow=note, args=["x"], overlap="allow", jitter=5, catch_up=60, metadata={"a": "b"}
    )

    assert (before.fired, before.remaining, before.waiting) == (3, 2, 2)
    assert (after.fired, after.remaining, after.waiting) == (3, 2, 2)
    assert after.next_fires == before.next_fires
    await engine.signal_workflow("w-2026-03-01T12:10:00Z", "go")
    await engine.clock.advance(hours=1)
    assert {info.workflow for info in await engine.list()} == {"wait", "note"}
    assert len(await engine.list()) == 5


async def test_T4_a_new_count_or_zone_counts_from_now_on(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("s", "0 18 * * *", note, count=1)
    berlin = await engine.update_schedule("s", time_zone="Europe/Berlin", count=2)
    await engine.clock.advance(days=3)
    ended = await engine.describe_schedule("s")
    again = await engine.update_schedule("s", count=3)

    assert berlin.next_fires == [START.replace(hour=17), START.replace(hour=17) + timedelta(days=1)]
    assert (ended.state, ended.fired) == ("ended", 2)
    assert (again.state, again.remaining, len(again.next_fires)) == ("active", 3, 3)


async def test_a_schedule_that_belongs_to_a_definition_ends_with_it(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, wait, start=START)
    for number in range(3):
        what = ("R/PT10M", note, ())
        await engine._schedules.create("default", f"owned-{number}", what, {}, owner="process:1")
    await engine._schedules.create("a", "owned", ("R/PT10M", note, ()), {}, owner="process:1")
    await engine.create_schedule("free", "R/PT10M", note)

    assert (await engine.describe_schedule("owned-0")).owner == "process:1"
    assert await engine._schedules.delete_owned("default", "process:1") == 3
    assert await engine._schedules.delete_owned("default", "process:1") == 0
    await engine.clock.advance(minutes=10)

    assert await list_ids(engine) == ["free-2026-03-01T12:10:00Z"]
    assert await list_ids(engine, "a") == ["owned-2026-03-01T12:10:00Z"]


async def test_calls_with_one_request_id_are_one_call(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    made = [await engine.create_schedule("s", "R/PT10M", note, request_id="c") for _ in range(2)]
    with pytest.raises(ScheduleExists):
        await engine.create_schedule("s", "R/PT10M", note, request_id="other")
    await engine.clock.advance(minutes=31)
    past = START, START + timedelta(minutes=30)

    runs = await asyncio.gather(*(engine.run_schedule("s", request_id="r") for _ in range(5)))
    filled = [await engine.backfill_schedule("s", *past, request_id="b") for _ in range(2)]
    deleted = [await engine.delete_schedule("s", request_id="d") for _ in range(2)]
    await engine.settle()

    assert made[0] == made[1]
    assert len({run.execution_id for run in runs}) == 1
    assert (filled, deleted) == ([3, 3], [True, True])
    assert len(await engine.list()) == 3 + 1 + 3


async def test_I2_a_repeated_call_is_answered_also_if_its_schedule_is_over(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    cycle = "R2/2026-03-01T12:10:00Z/PT10M"
    await engine.create_schedule("s", cycle, note, request_id="c")
    await engine.backfill_schedule("s", START, START, request_id="b")
    await engine.clock.advance(hours=1)

    again = await engine.create_schedule("s", cycle, note, request_id="c")

    assert (again.state, again.fired) == ("ended", 2)


async def test_I2_a_repeated_call_is_answered_also_if_its_schedule_was_deleted(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START, codec=Base64Codec())
    past = START - timedelta(hours=3), START
    await engine.create_schedule("s", "0 * * * *", note, request_id="c")
    await engine.update_schedule("s", notes="ours", request_id="u")
    await engine.pause_schedule("s", request_id="p")
    await engine.resume_schedule("s", request_id="q")
    await engine.run_schedule("s", request_id="r")
    filled = await engine.backfill_schedule("s", *past, request_id="b")
    await engine.delete_schedule("s", request_id="d")

    assert await engine.pause_schedule("s", request_id="p")
    assert await engine.resume_schedule("s", request_id="q")
    assert await engine.backfill_schedule("s", *past, request_id="b") == filled == 4
    assert await engine.delete_schedule("s", request_id="d")
    for call in (
        engine.create_schedule("s", "0 * * * *", note, request_id="c"),
        engine.update_schedule("s", notes="ours", request_id="u"),
        engine.run_schedule("s", request_id="r"),
    ):
        with pytest.raises(ScheduleNotFound, match="deleted since"):
            await call
    assert await engine.schedules() == []


async def test_I2_a_repeated_backfill_is_not_refused_for_what_it_left_waiting(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("s", "* * * * *", wait)
    past = START - timedelta(minutes=600), START - timedelta(minutes=1)

    filled = [await engine.backfill_schedule("s", *past, overlap="queue", request_id="b") for _ in range(2)]

    assert filled == [600, 600]


async def test_T4_a_schedule_may_be_created_or_updated_at_each_start(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)

    async def create_or_update() -> ScheduleInfo:
        try:
            return await engine.create_schedule("s", "R3/PT10M", note, args=["x"], overlap="allow")
        except ScheduleExists:
            return await engine.update_schedule("s", "R3/PT10M", workflow=note, args=["x"], overlap="allow")

    await create_or_update()
    await engine.clock.advance(minutes=15)
    await engine.restart()
    before = await engine.describe_schedule("s")
    again = await create_or_update()

    assert (again.remaining, again) == (2, before)


async def test_arguments_are_stored_encoded_and_decoded_for_their_workflow(open_engine: OpenEngine, url: str) -> None:
    engine = await open_engine(note, start=START, codec=Base64Codec())
    info = await engine.create_schedule("s", "R2/PT10M", note, "secret")
    plain: Any = engine.store
    row = await plain.bare.find_schedule("default", "s")
    await engine.clock.advance(minutes=10)
    changed = await engine.update_schedule("s", args=["secret too"])
    await engine.clock.advance(minutes=10)

    assert (info.input, changed.input) == (["secret"], ["secret too"])
    assert b"secret" not in row.details
    assert await engine.query_result("s-2026-03-01T12:10:00Z") == "secret"
    assert await engine.query_result("s-2026-03-01T12:20:00Z") == "secret too"


async def test_a_fire_starts_the_newest_version_unless_one_is_pinned(open_engine: OpenEngine) -> None:
    engine = await open_engine(first_pinned, start=START)
    await engine.create_schedule("new", "R/PT10M", first_pinned, "x")
    await engine.create_schedule("old", "R/PT10M", first_pinned, "x", version="1")
    await engine.restart(workflows=[first_pinned, second_pinned])
    await engine.clock.advance(minutes=10)

    assert await engine.query_result("new-2026-03-01T12:10:00Z") == "newer x"
    assert await engine.query_result("old-2026-03-01T12:10:00Z") == "x"


async def test_T4_a_schedule_whose_workflow_nobody_has_waits_for_it(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, wait, start=START)
    await engine.create_schedule("s", "R2/PT10M", note, overlap="allow")
    await engine.restart(workflows=[wait])
    await engine.clock.advance(minutes=15)
    assert (await engine.describe_schedule("s")).fired == 0

    await engine.restart(workflows=[wait, note])
    await engine.settle()

    assert (await engine.describe_schedule("s")).fired == 1
    assert await list_ids(engine) == ["s-2026-03-01T12:10:00Z"]


async def test_T5_a_backfill_is_bounded_and_of_the_past(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, wait, start=START)
    await engine.create_schedule("s", "R/2026-01-01T00:00:00Z/PT1M", wait)
    day = START - timedelta(days=1)

    with pytest.raises(InvalidArguments, match="at most"):
        await engine.backfill_schedule("s", day, START)
    with pytest.raises(InvalidArguments, match="before now"):
        await engine.backfill_schedule("s", day, START + timedelta(days=1))
    with pytest.raises(InvalidArguments, match="'allow' or 'queue'"):
        await engine.backfill_schedule("s", day, START, overlap="skip")
    assert await engine.backfill_schedule("s", day, day, overlap="queue") == 1
    assert (await engine.describe_schedule("s")).waiting <= MOST_WAITING
    await engine.settle()
    assert [info.workflow_id for info in await engine.list()] == ["s-2026-02-28T12:00:00Z-backfill-1"]


async def test_T5_a_backfill_starts_no_more_than_a_cycle_has(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("three", "R3/2026-03-01T11:50:00Z/PT10M", note)
    await engine.create_schedule("hourly", "R/PT1H", note)
    await engine.clock.advance(hours=4)

    three = await engine.backfill_schedule("three", START - timedelta(hours=1), START + timedelta(hours=3))
    before = await engine.backfill_schedule("hourly", START - timedelta(hours=3), START)
    since = await engine.backfill_schedule("hourly", START, START + timedelta(hours=3))

    assert (three, before, since) == (3, 0, 3)


async def test_calls_at_the_same_time_all_count(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("s", "R/PT10M", wait)

    runs = await asyncio.gather(*(engine.run_schedule("s") for _ in range(10)))
    await engine.settle()

    assert sorted(run.workflow_id for run in runs) == await list_ids(engine)
    assert len(set(await list_ids(engine))) == 10


async def test_a_run_or_a_backfill_joins_nobody_either(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("s", "R/2026-03-01T11:00:00Z/PT20M", wait)
    await engine.start(wait, workflow_id="s-2026-03-01T12:00:00Z-manual")
    await engine.start(wait, workflow_id="s-2026-03-01T11:20:00Z-backfill-2")

    with pytest.raises(WorkflowAlreadyOpen):
        await engine.run_schedule("s")
    number = await engine.backfill_schedule("s", START - timedelta(hours=1), START - timedelta(minutes=10))
    await engine.settle()

    info = await engine.describe_schedule("s")
    assert (number, info.refused, [run.is_refused for run in info.recent_runs]) == (2, 1, [False, True, False])
    assert await engine.dead_letters() == []
