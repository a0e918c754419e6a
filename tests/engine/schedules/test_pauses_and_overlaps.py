"""What a pause holds back, and which executions an overlap policy means, on every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Context, Retry, workflow
from holdfast.core import codec
from holdfast.core.schedules import MOST_UNCHECKED
from holdfast.engine.schedules import open_runs
from holdfast.testing import TestEngine
from tests.engine.conftest import OpenEngine

START = datetime(2030, 1, 1, 12, tzinfo=UTC)
POLICIES = ("skip", "queue", "cancel_running", "terminate_running")


@workflow
async def note(ctx: Context) -> None:
    return


@workflow
async def slow(ctx: Context) -> None:
    await ctx.sleep(timedelta(hours=1))


@workflow
async def wait(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow
async def relay(ctx: Context, left: int) -> None:
    """Continues so many times, one minute each, and waits then."""
    if not left:
        await ctx.wait_for_signal("go")
    await ctx.sleep(timedelta(minutes=1))
    await ctx.continue_as(left - 1)


@workflow
async def fail_first(ctx: Context) -> None:
    """Fails, and waits when it is tried again."""
    if ctx.info.attempt == 1:
        raise ValueError("not yet")
    await ctx.wait_for_signal("go")


async def list_runs(engine: TestEngine, prefix: str = "") -> list[tuple[str, str]]:
    """(what follows the prefix in the workflow id, status) of each execution."""
    found = [(one.workflow_id, one.status.value) for one in await engine.list(limit=1000)]
    return sorted((name.removeprefix(prefix), status) for name, status in found if name.startswith(prefix))


# --- pauses ---


@pytest.mark.parametrize("overlap", ["queue", "cancel_running"])
async def test_T5_a_paused_schedule_does_not_fire_while_something_waits(open_engine: OpenEngine, overlap: str) -> None:
    engine = await open_engine(slow, start=START)
    await engine.create_schedule("p", "*/10 * * * *", slow, overlap="queue")
    await engine.clock.advance(minutes=45)
    await engine.pause_schedule("p")
    await engine.update_schedule("p", overlap=overlap)
    before = await engine.describe_schedule("p")

    await engine.clock.advance(hours=3)

    after = await engine.describe_schedule("p")
    assert (before.fired, before.waiting) == (4, 3)
    assert (after.state, after.fired, after.waiting) == ("paused", 4, 3)
    assert await list_runs(engine, "p-2030-01-01T") == [("12:10:00Z", "completed")]

    await engine.resume_schedule("p")
    await engine.settle()
    assert "12:20:00Z" in dict(await list_runs(engine, "p-2030-01-01T"))


async def test_T5_a_backfill_goes_on_during_a_pause(open_engine: OpenEngine) -> None:
    engine = await open_engine(slow, start=START)
    await engine.create_schedule("p", "0 * * * *", slow, overlap="queue", paused=True)

    await engine.backfill_schedule("p", START - timedelta(hours=2), START - timedelta(hours=1), overlap="queue")
    await engine.clock.advance(hours=5)

    info = await engine.describe_schedule("p")
    assert (info.fired, info.waiting) == (0, 0)
    assert [(run.kind, run.at.hour) for run in info.recent_runs] == [("backfill", 11), ("backfill", 10)]


async def test_T5_a_fire_that_was_due_before_a_pause_is_made_good_after_it(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, wait, start=START)
    await engine.create_schedule("s", "0 * * * *", note)
    await engine.restart(workflows=[wait])
    await engine.clock.advance(minutes=90)
    await engine.pause_schedule("s")
    await engine.clock.advance(hours=2)
    await engine.resume_schedule("s")

    await engine.restart(workflows=[note, wait])
    await engine.settle()

    info = await engine.describe_schedule("s")
    assert (info.fired, info.missed) == (1, 0)
    assert await list_runs(engine, "s-2030-01-01T") == [("13:00:00Z", "completed")]
    assert info.next_fires[0] == START + timedelta(hours=4)


async def test_T5_a_fire_that_jitter_puts_behind_a_pause_is_not_lost(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    for number in range(10):
        await engine.create_schedule(f"j{number}", "0 * * * *", note, jitter=1800)
    await engine.clock.advance(hours=1, seconds=1)

    for info in await engine.schedules():
        await engine.pause_schedule(info.schedule_id)
        await engine.resume_schedule(info.schedule_id)
    await engine.clock.advance(minutes=31)

    assert [info.fired for info in await engine.schedules()] == [1] * 10


# --- overlaps ---


@pytest.mark.parametrize("overlap", POLICIES)
async def test_T5_a_backfill_ends_none_of_its_own_executions(open_engine: OpenEngine, overlap: str) -> None:
    engine = await open_engine(slow, start=START)
    await engine.create_schedule("b", "0 0 * * *", slow, overlap=overlap)

    assert await engine.backfill_schedule("b", START - timedelta(days=3), START, overlap="queue") == 3
    await engine.clock.advance(hours=8)

    assert [status for _, status in await list_runs(engine)] == ["completed"] * 3


@pytest.mark.parametrize("overlap", ["cancel_running", "terminate_running"])
async def test_T5_a_timed_fire_waits_for_a_backfill_and_ends_none_of_it(open_engine: OpenEngine, overlap: str) -> None:
    engine = await open_engine(slow, start=START)
    await engine.create_schedule("b", "*/50 * * * *", slow, overlap=overlap)

    await engine.backfill_schedule("b", START - timedelta(hours=2), START, overlap="queue")
    await engine.clock.advance(hours=10)

    runs = await list_runs(engine, "b-2030-01-01T")
    assert [status for name, status in runs if "backfill" in name] == ["completed"] * 5
    assert {status for name, status in runs[:-1] if "backfill" not in name} <= {"cancelled", "terminated"}


@pytest.mark.parametrize("overlap", POLICIES)
async def test_T5_an_execution_of_somebody_else_under_the_id_of_a_run_does_not_count(
    open_engine: OpenEngine, overlap: str
) -> None:
    engine = await open_engine(note, wait, start=START)
    await engine.create_schedule("s", "0 * * * *", note, overlap=overlap)
    await engine.clock.advance(hours=1)

    foreign = await engine.start(wait, workflow_id="s-2030-01-01T13:00:00Z")
    await engine.clock.advance(hours=2)

    info = await engine.describe_schedule("s")
    assert (info.fired, info.skipped, info.refused, info.waiting) == (3, 0, 0, 0)
    assert (await foreign.status()).status == "suspended"
    assert [status for name, status in await list_runs(engine) if "13:" not in name] == ["completed"] * 2


@pytest.mark.parametrize("overlap", POLICIES)
async def test_T5_a_run_that_continues_as_others_is_still_the_schedules(open_engine: OpenEngine, overlap: str) -> None:
    engine = await open_engine(relay, start=START)
    await engine.create_schedule("s", "0 * * * *", relay, 5, overlap=overlap)

    await engine.clock.advance(hours=2, minutes=30)

    info = await engine.describe_schedule("s")
    newest = await engine.query_status("s-2030-01-01T13:00:00Z")
    ends = {"cancel_running": "cancelled", "terminate_running": "terminated"}
    assert newest.status == ends.get(overlap, "suspended")
    assert (info.fired, info.skipped, info.waiting) == (2, int(overlap == "skip"), int(overlap == "queue"))


async def test_T5_a_run_that_is_tried_again_is_still_the_schedules(open_engine: OpenEngine) -> None:
    engine = await open_engine(fail_first, start=START)
    await engine.create_schedule("s", "0 * * * *", fail_first, overlap="terminate_running", retry=Retry(max_attempts=2))

    await engine.clock.advance(hours=2, minutes=30)

    assert (await engine.query_status("s-2030-01-01T13:00:00Z")).status == "terminated"
    assert (await engine.query_status("s-2030-01-01T14:00:00Z")).status == "suspended"


@pytest.mark.parametrize("steps", [0, 2])
async def test_T5_a_long_chain_is_known_by_its_newest_run(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(open_runs, "MOST_STEPS", steps)
    engine = await open_engine(relay, start=START)
    await engine.create_schedule("s", "0 * * * *", relay, 5, overlap="terminate_running")

    await engine.clock.advance(hours=2, minutes=30)

    assert (await engine.query_status("s-2030-01-01T13:00:00Z")).status == "terminated"


async def test_T5_a_run_whose_start_nobody_has_taken_is_open(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("s", "0 * * * *", wait, overlap="skip")
    await engine.pause_workflow("wait")

    await engine.clock.advance(hours=3)

    info = await engine.describe_schedule("s")
    assert (info.fired, info.skipped) == (3, 2)


# --- what was started under another policy ---


@pytest.mark.parametrize(
    ("overlap", "open_then"), [("skip", ["13:00"]), ("queue", ["13:00"]), ("terminate_running", ["14:00"])]
)
async def test_T5_what_was_started_under_allow_counts_for_the_next_policy(
    open_engine: OpenEngine, overlap: str, open_then: list[str]
) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("a", "0 * * * *", wait, overlap="allow")
    await engine.clock.advance(hours=1)

    await engine.update_schedule("a", overlap=overlap)
    await engine.clock.advance(hours=1)

    found = [name for name, status in await list_runs(engine, "a-2030-01-01T") if status == "suspended"]
    assert found == [f"{one}:00Z" for one in open_then]


async def test_T5_a_backfill_waits_for_what_was_started_under_allow(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("a", "0 * * * *", wait, overlap="allow")
    await engine.clock.advance(hours=1)

    await engine.backfill_schedule("a", START - timedelta(hours=2), START - timedelta(hours=1), overlap="queue")
    await engine.settle()
    before = await engine.describe_schedule("a")
    await engine.signal_workflow("a-2030-01-01T13:00:00Z", "go")
    await engine.settle()

    assert (before.waiting, (await engine.describe_schedule("a")).waiting) == (2, 1)


async def test_T5_under_allow_the_newest_executions_are_remembered_and_closed_ones_forgotten(
    open_engine: OpenEngine,
) -> None:
    engine = await open_engine(note, wait, start=START)
    await engine.create_schedule("short", "* * * * *", note, overlap="allow")
    await engine.create_schedule("long", "* * * * *", wait, overlap="allow")

    kept: dict[str, int] = {}
    for _ in range(3):
        await engine.clock.advance(minutes=MOST_UNCHECKED)
        for name in ("short", "long"):
            row = await engine.store.find_schedule("default", name)
            assert row is not None
            kept[name] = max(kept.get(name, 0), len(codec.decode_schedule(row.details).open_runs))
    await engine.clock.advance(minutes=1)
    await engine.update_schedule("long", overlap="skip")
    await engine.update_schedule("short", overlap="skip")
    await engine.clock.advance(minutes=1)

    assert max(kept.values()) <= MOST_UNCHECKED
    assert [(await engine.describe_schedule(name)).skipped for name in ("short", "long")] == [0, 1]


# --- the end of a schedule ---


async def test_T5_a_pause_holds_back_what_waits_after_the_end_of_a_schedule(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    await engine.create_schedule("a", "R3/PT1H", wait, overlap="queue")
    await engine.clock.advance(hours=4)
    ended = await engine.describe_schedule("a")

    assert await engine.pause_schedule("a")
    assert not await engine.pause_schedule("a")
    await engine.signal_workflow("a-2030-01-01T13:00:00Z", "go")
    await engine.clock.advance(hours=1)
    paused = await engine.describe_schedule("a")
    assert await engine.resume_schedule("a")
    await engine.settle()
    resumed = await engine.describe_schedule("a")
    for time in ("14", "15"):
        await engine.signal_workflow(f"a-2030-01-01T{time}:00:00Z", "go")
        await engine.settle()

    assert [(one.state, one.waiting, len(one.recent_runs)) for one in (ended, paused, resumed)] == [
        ("ended", 2, 1),
        ("paused", 2, 1),
        ("ended", 1, 2),
    ]
    last = await engine.describe_schedule("a")
    assert (last.state, last.waiting, len(last.recent_runs)) == ("ended", 0, 3)
    assert not await engine.pause_schedule("a")
    assert await engine.store.check() == []
