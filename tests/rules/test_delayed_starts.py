"""I6: a start with a delay takes its id at once, and its code begins when the delay is over."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Context, Retry, Status, WorkflowCancelled, WorkflowTerminated, workflow
from holdfast.errors import InvalidDuration, InvalidTime, WorkflowAlreadyOpen
from holdfast.testing import TestEngine, replay
from tests.rules.world import Nodes, World

RAN: list[str] = []
SOURCES: list[Any] = [random]
"""Where the scan does not look."""


@workflow
async def later(ctx: Context, who: str = "") -> list[Any]:
    RAN.append(ctx.info.execution_id)
    taken = [await ctx.wait_for_signal("go") for _ in range(ctx.pending_signal_count("go"))]
    return [who, ctx.now().isoformat(), taken]


@workflow
async def breaks(ctx: Context) -> None:
    SOURCES[0].random()  # what the guard refuses


@pytest.fixture(autouse=True)
def nobody_ran() -> None:
    RAN.clear()


async def open_one(world: World, **options: Any) -> TestEngine:
    return await world.open([later], auto_advance=False, patience=0, **options)


async def test_I6_the_code_begins_when_the_delay_is_over_and_not_before(world: World) -> None:
    engine = await open_one(world)
    handle = await engine.start(later, "ann", workflow_id="w", delay=timedelta(hours=1))

    info = await handle.status()
    assert (info.status, info.waiting_for) == (Status.SUSPENDED, "start")
    assert info.waiting_until is not None
    await engine.clock.advance(minutes=59)
    assert RAN == []
    await engine.clock.advance(minutes=1)

    who, now, _ = await handle.result()
    assert (who, datetime.fromisoformat(now)) == ("ann", info.waiting_until)
    assert info.waiting_until == info.created_at + timedelta(hours=1)
    replay(await handle.history(), [later])


async def test_I6_a_start_at_a_date_survives_restarts(world: World) -> None:
    engine = await open_one(world)
    day = (await (await engine.start(later, delay=0)).status()).created_at + timedelta(days=3)
    handle = await engine.start(later, delay=day)

    for _ in range(2):
        await engine.restart()
        await engine.clock.advance(days=1)
    assert len(RAN) == 1
    await engine.clock.advance(days=1)

    assert datetime.fromisoformat((await handle.result())[1]) == day


async def test_I6_a_date_that_has_passed_starts_at_once(world: World) -> None:
    engine = await open_one(world)

    handle = await engine.start(later, "now", delay=datetime(2001, 1, 1, tzinfo=UTC))

    assert (await handle.result())[0] == "now"


async def test_I6_signals_wait_for_the_beginning_and_do_not_bring_it_forward(world: World) -> None:
    engine = await open_one(world)
    handle = await engine.start(later, workflow_id="w", delay=60)

    await handle.signal("go", 1)
    answer = await engine.signal_with_start_workflow("w", later, signal_name="go", signal_value=2)
    await engine.restart()
    await handle.signal("go", 3)

    assert (answer.workflow_created, RAN) == (False, [])
    await engine.clock.advance(minutes=1)
    assert (await handle.result())[2] == [1, 2, 3]
    replay(await handle.history(), [later])


async def test_I6_the_id_is_taken_during_the_delay(world: World) -> None:
    engine = await open_one(world)
    first = await engine.start(later, workflow_id="w", delay=60)

    second = await engine.start(later, workflow_id="w")
    with pytest.raises(WorkflowAlreadyOpen):
        await engine.start(later, workflow_id="w", on_open="fail")
    assert (second.created, second.execution_id) == (False, first.execution_id)
    third = await engine.start(later, "in its place", workflow_id="w", on_open="terminate_existing")

    assert (await third.result())[0] == "in its place"
    with pytest.raises(WorkflowTerminated):
        await first.result()


async def test_C4_cancelled_during_its_delay_it_closes_without_running_code(world: World) -> None:
    engine = await open_one(world)
    handle = await engine.start(later, delay=60)
    await handle.signal("go", 1)
    await engine.restart()

    assert await handle.cancel("not needed")

    with pytest.raises(WorkflowCancelled, match="not needed"):
        await handle.result()
    await engine.clock.advance(hours=1)
    assert RAN == []
    assert (await engine.store.count()).timers == 0
    replay(await handle.history(), [later])


async def test_I6_terminated_during_its_delay_it_closes_at_once(world: World) -> None:
    engine = await open_one(world)
    handle = await engine.start(later, delay=60)

    assert await handle.terminate("no")

    assert (await handle.status()).status is Status.TERMINATED
    await engine.clock.advance(hours=1)
    assert RAN == []
    replay(await handle.history(), [later])


async def test_I6_code_that_breaks_the_rules_fails_as_it_begins(world: World) -> None:
    engine = await world.open([breaks], auto_advance=False, patience=0)
    handle = await engine.start(breaks, delay=60)
    await engine.clock.advance(minutes=2)

    info = await handle.status()
    assert info.last_error is not None
    assert (info.status, info.last_error.type) == (Status.FAILED, "ForbiddenInWorkflow")


async def test_I6_another_node_begins_it_where_the_first_is_gone(nodes: Nodes) -> None:
    first = await nodes.open("a", [later])
    handle = await first.start(later, workflow_id="w", delay=60)
    second = await nodes.open("b", [later])
    await nodes.kill("a")

    await nodes.clock.advance(minutes=2)

    assert (await second.handle("w").result())[2] == []
    assert [handle.execution_id] == RAN


async def test_I6_a_node_without_the_code_leaves_the_beginning_to_others(nodes: Nodes) -> None:
    first = await nodes.open("a", [later], queues=["default"])
    handle = await first.start(later, workflow_id="w", delay=60, queue="slow")
    assert (await handle.status()).waiting_for == "start"
    second = await nodes.open("b", [later], queues=["slow"])
    await nodes.clock.advance(seconds=30)
    assert RAN == []

    await nodes.clock.advance(minutes=1)

    assert (await second.handle("w").result())[2] == []


async def test_I6_a_delayed_start_commits_with_the_callers_transaction(on_file: World) -> None:
    engine = await open_one(on_file)
    handle = await engine.transaction(lambda _connection, work: work.start(later, "sql", delay=60))

    assert (await handle.status()).waiting_for == "start"
    await engine.clock.advance(minutes=1)

    assert (await handle.result())[0] == "sql"


@pytest.mark.parametrize("delay", [-1, float("nan"), "1h", timedelta(days=-1)])
async def test_I6_a_delay_that_is_none_is_refused(alone: World, delay: Any) -> None:
    engine = await open_one(alone)
    with pytest.raises(InvalidDuration, match="delay of a start"):
        await engine.start(later, delay=delay)
    assert await engine.list() == []


@pytest.mark.parametrize("day", [datetime(2099, 1, 1), datetime(9999, 1, 1, tzinfo=UTC)])  # noqa: DTZ001 - refused
async def test_I6_a_date_without_zone_or_beyond_a_century_is_refused(alone: World, day: datetime) -> None:
    engine = await open_one(alone)
    with pytest.raises(InvalidTime):
        await engine.start(later, delay=day)


@workflow
async def once_more(ctx: Context) -> list[Any]:
    if ctx.info.attempt < 2:
        await ctx.wait_for_signal("never")
    return [ctx.info.attempt, dict(ctx.info.headers), dict(ctx.info.metadata), ctx.pending_signal_count("go")]


async def test_I6_a_delayed_start_with_all_options_goes_on_in_another_database(on_file: World) -> None:
    engine = await on_file.open([once_more], auto_advance=False, patience=0)
    handle = await engine.start(
        once_more,
        workflow_id="w",
        delay=60,
        run_timeout=100,
        execution_timeout=1000,
        retry=Retry(initial=5, jitter=0),
        headers={"h": "1"},
        metadata={"m": "2"},
    )
    await handle.signal("go", 1)
    lines = [line async for line in engine.export_executions()]

    other = await on_file.open([once_more], auto_advance=False, patience=0, url=f"{on_file.url}.other", clock=engine.clock)
    await other.import_executions(lines)
    assert (await other.query_status("w")).waiting_for == "start"
    await other.clock.advance(seconds=61)
    assert (await other.query_status("w")).waiting_for == "signal never"
    await other.clock.advance(seconds=200)

    assert await other.handle("w").result() == [2, {"h": "1"}, {"m": "2"}, 1]
