"""Schedules of an engine, in virtual time, on every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from holdfast import (
    BusinessReference,
    Context,
    InvalidArguments,
    InvalidSchedule,
    Retry,
    ScheduleExists,
    ScheduleNotFound,
    workflow,
)
from holdfast.core import codec
from holdfast.core.events import WorkflowStarted
from holdfast.core.instants import SECOND
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine
from holdfast.testing.clock import VirtualClock
from tests.engine.hooks import find_row

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@workflow
async def note(ctx: Context, text: str) -> str:
    return text


@workflow
async def wait(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


class MakeEngine(Protocol):
    """Makes an engine on the test's own database."""

    def __call__(self, **options: Any) -> TestEngine: ...


@pytest.fixture
def make_engine(url: str) -> MakeEngine:
    def make_engine(**options: Any) -> TestEngine:
        made: dict[str, Any] = {"start": START, "store": url, "patience": 0.0} | options
        return TestEngine(workflows=[note, wait], auto_advance=False, **made)

    return make_engine


async def list_ids(engine: TestEngine) -> list[str]:
    return sorted(info.workflow_id for info in await engine.list())


async def test_T4_a_cycle_fires_each_time_once_and_stops_after_n(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        info = await engine.create_schedule("tick", "R3/PT10M", note, args=["x"], overlap="allow")
        assert [at.minute for at in info.next_fires] == [10, 20, 30]

        await engine.clock.advance(hours=2)

        ended = await engine.describe_schedule("tick")
        assert await list_ids(engine) == [f"tick-2026-03-01T12:{minute}:00Z" for minute in (10, 20, 30)]
        assert (ended.state, ended.fired, ended.remaining, ended.next_fires) == ("ended", 3, 0, [])


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_T4_two_nodes_start_one_execution_per_fire(make_engine: MakeEngine) -> None:
    database, clock = MemoryDatabase(), VirtualClock(START)
    async with (
        make_engine(store=MemoryStore(database, node="a"), clock=clock) as first,
        make_engine(store=MemoryStore(database, node="b"), clock=clock) as second,
    ):
        for number in range(10):
            await first.create_schedule(f"tick-{number}", "R5/PT1M", note, args=["x"], overlap="allow")
        await clock.advance(minutes=10)

        infos = await second.schedules()
        assert [info.fired for info in infos] == [5] * 10
        assert len(await second.list(limit=100)) == 50


async def test_T4_an_update_without_a_change_leaves_the_count_alone(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("tick", "R3/PT10M", note, args=["x"])
        await engine.clock.advance(minutes=15)
        before = await engine.describe_schedule("tick")

        same = await engine.update_schedule("tick", "R3/PT10M", workflow=note, args=["x"])
        other = await engine.update_schedule("tick", notes="ours")
        anew = await engine.update_schedule("tick", "R3/PT20M")

        assert same == before
        assert (other.remaining, other.next_fires) == (before.remaining, before.next_fires)
        assert (anew.remaining, anew.next_fires[0]) == (3, START + timedelta(minutes=35))


async def test_T5_skip_counts_what_comes_while_an_execution_is_open(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("w", "*/10 * * * *", wait)

        await engine.clock.advance(minutes=35)

        info = await engine.describe_schedule("w")
        assert (info.fired, info.skipped, len(await engine.list())) == (3, 2, 1)


async def test_T5_queue_starts_the_next_when_the_last_has_ended(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("w", "*/10 * * * *", wait, overlap="queue")
        await engine.clock.advance(minutes=35)
        assert (await engine.describe_schedule("w")).waiting == 2

        for minute, waiting in ((10, 1), (20, 0)):
            await engine.signal_workflow(f"w-2026-03-01T12:{minute}:00Z", "go")
            await engine.settle()
            assert (await engine.describe_schedule("w")).waiting == waiting

        assert await list_ids(engine) == [f"w-2026-03-01T12:{minute}:00Z" for minute in (10, 20, 30)]


@pytest.mark.parametrize("overlap", ["cancel_running", "terminate_running"])
async def test_T5_cancel_running_ends_what_is_open(make_engine: MakeEngine, overlap: str) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("w", "*/10 * * * *", wait, overlap=overlap)

        await engine.clock.advance(minutes=25)

        old, new = [await engine.query_status(f"w-2026-03-01T12:{minute}:00Z") for minute in (10, 20)]
        assert old.status == ("cancelled" if overlap == "cancel_running" else "terminated")
        assert new.status == "suspended"


async def test_T5_missed_fires_within_the_catch_up_window_are_started(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule(
            "tick", "*/10 * * * *", note, args=["x"], overlap="allow", catch_up=timedelta(minutes=25)
        )
        await engine.crash()
        await engine.clock.advance(minutes=61)

        await engine.restart()
        await engine.settle()

        info = await engine.describe_schedule("tick")
        assert [run.at.minute for run in info.recent_runs] == [0, 50, 40]
        assert (info.missed, info.fired) == (3, 3)


async def test_T5_pause_resume_run_now_and_backfill(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("tick", "R3/PT10M", note, args=["x"], overlap="allow")
        assert await engine.pause_schedule("tick")
        assert not await engine.pause_schedule("tick")
        await engine.clock.advance(minutes=25)
        assert await engine.list() == []
        run = await engine.run_schedule("tick", request_id="r")
        again = await engine.run_schedule("tick", request_id="r")
        assert run == again

        assert await engine.resume_schedule("tick")
        info = await engine.describe_schedule("tick")
        assert (info.remaining, info.next_fires[0]) == (3, START + timedelta(minutes=30))
        assert await engine.backfill_schedule("tick", START, START + timedelta(minutes=20)) == 2
        await engine.clock.advance(hours=1)

        assert len(await engine.list()) == 6
        assert await engine.delete_schedule("tick")
        assert not await engine.delete_schedule("tick")
        with pytest.raises(ScheduleNotFound):
            await engine.describe_schedule("tick")


async def test_T5_jitter_puts_a_fire_off_and_keeps_its_time(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("tick", "R/PT1H", note, args=["x"], jitter=600, overlap="allow")

        await engine.clock.advance(hours=5, minutes=30)

        runs = (await engine.describe_schedule("tick")).recent_runs
        late = [run.started_at - run.at for run in runs]
        assert [run.at.hour for run in runs] == [17, 16, 15, 14, 13]
        assert all(timedelta() <= one <= timedelta(minutes=10) for one in late)
        assert len(set(late)) > 1


async def test_a_past_date_fires_now_and_orgs_are_apart(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("once", "2020-01-01T00:00:00Z", note, args=["x"], org="a")
        await engine.settle()

        assert [one.schedule_id for one in await engine.schedules(org="a")] == ["once"]
        assert await engine.schedules() == []
        assert len(await engine.list(org="a")) == 1


async def test_bad_input_is_refused_and_nothing_is_stored(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("there", "@daily", note, args=["x"])
        with pytest.raises(ScheduleExists):
            await engine.create_schedule("there", "@daily", note, args=["x"])
        with pytest.raises(InvalidSchedule, match="no such day"):
            await engine.create_schedule("bad", "0 0 30 2 *", note, args=["x"])
        with pytest.raises(InvalidSchedule, match="'skip', 'queue'"):
            await engine.create_schedule("bad", "@daily", note, args=["x"], overlap="never")
        with pytest.raises(InvalidArguments):
            await engine.create_schedule("bad", "@daily", note, args=[7])
        with pytest.raises(InvalidArguments):
            await engine.create_schedule("bad", "@daily", note)
        with pytest.raises(InvalidSchedule, match="execution of its own"):
            await engine.create_schedule("bad", "@daily", note, args=["x"], workflow_id="fixed")
        with pytest.raises(InvalidSchedule, match="never"):
            await engine.create_schedule("bad", "R2/2020-01-01T00:00:00Z/PT1M", note, args=["x"])
        with pytest.raises(InvalidArguments, match="options of a schedule"):
            await engine.create_schedule("bad", "@daily", note, args=["x"], delay=5)  # type: ignore[call-arg]

        assert [one.schedule_id for one in await engine.schedules()] == ["there"]


async def test_T4_a_fire_never_joins_an_execution_of_somebody_else(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        taken = "tick-2026-03-01T12:10:00Z"
        foreign = await engine.start(wait, workflow_id=taken)
        await engine.create_schedule("tick", "*/10 * * * *", note, "x")

        await engine.clock.advance(minutes=25)

        info = await engine.describe_schedule("tick")
        assert (info.fired, info.refused, info.skipped) == (2, 1, 0)
        assert [(run.workflow_id, run.is_refused) for run in info.recent_runs] == [
            ("tick-2026-03-01T12:20:00Z", False),
            (taken, True),
        ]
        assert (await foreign.status()).status == "suspended"
        assert await engine.dead_letters() == []


async def test_T4_two_schedules_with_one_template_do_not_share_an_execution(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        for name in ("a", "b"):
            await engine.create_schedule(name, "R1/PT10M", wait, workflow_id="run-{time}")

        await engine.clock.advance(minutes=10)

        infos = await engine.schedules()
        assert sorted((info.fired, info.refused) for info in infos) == [(1, 0), (1, 1)]
        assert await list_ids(engine) == ["run-2026-03-01T12:10:00Z"]


async def test_T5_run_now_at_the_time_of_a_fire_is_another_execution(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule("w", "R1/PT10M", wait)
        await engine.clock.advance(minutes=10)

        first, second = await engine.run_schedule("w"), await engine.run_schedule("w")
        await engine.settle()

        assert len({first.workflow_id, second.workflow_id, *await list_ids(engine)}) == 3


async def test_an_update_of_one_timeout_leaves_the_other_and_the_retries(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        await engine.create_schedule(
            "w", "R1/PT10M", wait, execution_timeout=3600, run_timeout=1200, retry=Retry(max_attempts=3)
        )
        await engine.update_schedule("w", run_timeout=600, business_reference=BusinessReference("P-1", {"line": "7"}))
        await engine.clock.advance(minutes=10)

        chain = codec.decode_details((await find_row(engine, "w-2026-03-01T12:10:00Z")).details).chain
        assert chain is not None
        assert (chain.execution_timeout_us, chain.run_timeout_us) == (3600 * SECOND, 600 * SECOND)
        assert chain.retry is not None
        assert chain.retry.max_attempts == 3
        assert [one.workflow_id for one in await engine.list(where="reference.line = '7'")] == ["w-2026-03-01T12:10:00Z"]


async def test_executions_of_a_schedule_have_its_headers_metadata_and_queue(make_engine: MakeEngine) -> None:
    async with make_engine(queues=["default", "nightly"]) as engine:
        await engine.create_schedule(
            "w", "R1/PT10M", wait, headers={"trace": "t-1"}, metadata={"customer": "ann"}, queue="nightly", paused=True
        )
        await engine.clock.advance(minutes=5)
        await engine.resume_schedule("w")
        await engine.clock.advance(minutes=10)

        (found,) = await engine.list(metadata={"customer": "ann"})
        started = (await engine.history(found.execution_id)).events[0].event
        assert found.queue == "nightly"
        assert isinstance(started, WorkflowStarted)
        assert started.headers == {"trace": "t-1"}


async def test_a_schedule_that_is_created_paused_does_not_fire(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        made = await engine.create_schedule("w", "R/PT10M", note, args=["x"], paused=True)
        await engine.clock.advance(hours=1)

        assert (made.state, made.next_fires) == ("paused", [])
        assert await engine.list() == []


async def test_arguments_are_given_as_for_a_start(make_engine: MakeEngine) -> None:
    async with make_engine() as engine:
        by_position = await engine.create_schedule("a", "@daily", note, "x")
        bound = await engine.create_schedule("b", "@daily", note.bind(text="x"))
        by_name = await engine.create_schedule("c", "@daily", note, text="x")  # type: ignore[call-arg]
        as_list = await engine.create_schedule("d", "@daily", note, args=["x"])
        other = await engine.update_schedule("a", workflow=note.bind("y"))
        none = await engine.update_schedule("b", workflow=wait)

        assert by_position.input == bound.input == by_name.input == as_list.input == ["x"]
        assert (other.input, none.input, none.workflow) == (["y"], [], "wait")
        with pytest.raises(InvalidArguments, match="Did you mean the option 'overlap'"):
            await engine.create_schedule("bad", "@daily", note, "x", overlapp="skip")  # type: ignore[call-arg]
        with pytest.raises(InvalidArguments):
            await engine.update_schedule("b", workflow=note)
