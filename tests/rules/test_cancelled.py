"""C4: what is closed as cancelled stays closed; until then the workflow has its say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ActivityFailed, Context, Retry, Status, WorkflowCancelled, WorkflowFailed, workflow
from holdfast.core.envelopes import ActivityReturned, Cancel, Terminate, TimerDue
from holdfast.core.payloads import NULL
from holdfast.errors import ExecutionClosed
from holdfast.testing import TestEngine
from tests.eventually import eventually
from tests.rules.steps import CALLS, GATES, call, gate
from tests.rules.waiting import ACTIVITIES, PLACES, WAITING, cleans_up, failing, stubborn, waits
from tests.rules.world import Nodes, World


async def assert_nothing_wakes(engine: TestEngine, handle: Any) -> None:
    """Let everything arrive that could: time, results, signals, envelopes."""
    before = await handle.history()
    for opening in GATES.values():
        opening.set()
    with pytest.raises(ExecutionClosed):
        await handle.signal("never")
    await engine.clock.advance(days=2)
    await engine.restart()
    await engine.clock.advance(days=2)
    assert await handle.history() == before
    assert (await handle.status()).status is Status.CANCELLED
    counts = await engine.store.count()
    assert (counts.timers, counts.inbox) == (0, 0)


@pytest.mark.parametrize("where", PLACES)
async def test_C4_once_cancelled_nothing_resumes_it(world: World, where: str) -> None:
    engine = await world.open(WAITING, ACTIVITIES, auto_advance=False, patience=0)
    handle = await engine.start(waits, where)
    await engine.settle()

    await handle.cancel()

    await assert_nothing_wakes(engine, handle)


async def test_C4_a_late_result_of_a_function_that_did_not_stop_is_ignored(world: World) -> None:
    engine = await world.open([runs_stubborn], ACTIVITIES, auto_advance=False, patience=0)
    handle = await engine.start(runs_stubborn)
    await eventually(lambda: "late" in GATES)
    await handle.cancel()
    await eventually(lambda: CALLS == ["late asked"])
    before = await handle.history()

    gate("late").set()
    await engine.settle()

    assert await handle.history() == before
    assert (await handle.status()).status is Status.CANCELLED


@workflow
async def runs_stubborn(ctx: Context) -> str:
    return await ctx.run(stubborn, "late")


async def test_C4_envelopes_that_arrive_late_are_ignored(nodes: Nodes) -> None:
    engine = await nodes.open("one", WAITING, ACTIVITIES)
    handle = await engine.start(waits, "signal")
    await handle.cancel()
    before = await handle.history()

    for envelope in (
        TimerDue(number=1),
        ActivityReturned(number=1, attempt=1, result=NULL),
        Cancel(),
        Terminate(),
    ):
        await nodes.put_into_inbox(str(handle.execution_id), envelope)
    await engine.settle()

    assert await handle.history() == before
    assert (await engine.store.count()).inbox == 0


@pytest.mark.parametrize(
    ("then", "status"), [("return", Status.COMPLETED), ("fail", Status.FAILED), ("raise", Status.CANCELLED)]
)
async def test_C4_clean_up_runs_activities_and_takes_signals_and_its_outcome_counts(
    world: World, then: str, status: Status
) -> None:
    engine = await world.open(WAITING, ACTIVITIES)
    handle = await engine.start(cleans_up, then)

    await handle.cancel()
    await engine.settle()
    await handle.signal("word", "bye")
    outcome = await asyncio.gather(handle.result(), return_exceptions=True)

    assert CALLS == ["clean-up"]
    assert (await handle.status()).status is status
    expected = {"return": str, "fail": WorkflowFailed, "raise": WorkflowCancelled}[then]
    assert isinstance(outcome[0], expected)
    assert "bye" in str(outcome[0]) or then == "raise"


async def test_C4_swallowing_the_cancel_by_continuing_opens_the_next_run(world: World) -> None:
    engine = await world.open(WAITING, ACTIVITIES)
    handle = await engine.start(cleans_up, "continue", workflow_id="w")

    await handle.cancel()
    await engine.settle()
    await handle.signal("word", "bye")
    await engine.settle()

    assert (await handle.status()).status is Status.CONTINUED
    assert (await engine.query_status("w")).status is Status.SUSPENDED


async def test_C4_a_clean_up_that_fails_by_an_activity_fails_the_execution(world: World) -> None:
    engine = await world.open([bad_clean_up], ACTIVITIES)
    handle = await engine.start(bad_clean_up)

    await handle.cancel()

    with pytest.raises(WorkflowFailed) as failed:
        await handle.result()
    assert failed.value.type == ActivityFailed.__name__


@workflow
async def bad_clean_up(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("never")
    finally:
        await ctx.run(failing.with_options(retry=Retry(max_attempts=1)), "clean-up")


async def test_C4_a_cancel_before_the_first_turn_closes_it_without_running_any_code(world: World) -> None:
    engine = await world.open([runs_at_once], ACTIVITIES)

    handle, cancelled = await asyncio.gather(engine.start(runs_at_once, workflow_id="w"), engine.cancel("w"))
    await engine.settle()

    assert cancelled is True
    assert handle.created
    assert (await handle.history()).kinds == ["WorkflowStarted", "CancelRequested", "WorkflowCancelled"]
    assert CALLS == []


@workflow
async def runs_at_once(ctx: Context) -> None:
    await ctx.run(call, "ran")


async def test_C4_a_child_cancelled_before_its_first_turn_never_runs(world: World) -> None:
    engine = await world.open([changes_its_mind, runs_at_once], ACTIVITIES)

    handle = await engine.start(changes_its_mind)
    await engine.settle()

    assert CALLS == []
    assert (await engine.query_status("child")).status is Status.CANCELLED
    assert (await engine.history("child")).kinds == ["WorkflowStarted", "CancelRequested", "WorkflowCancelled"]
    assert await handle.result() == "changed"


@workflow
async def changes_its_mind(ctx: Context) -> str:
    _ = ctx.start_child(runs_at_once, workflow_id="child", parent_close="cancel")
    return "changed"


async def test_C4_a_cancel_with_the_first_signal_closes_it_without_running_any_code(world: World) -> None:
    engine = await world.open([runs_at_once], ACTIVITIES)

    answer, cancelled = await asyncio.gather(
        engine.signal_with_start_workflow("w", runs_at_once, signal_name="x"), engine.cancel("w")
    )

    assert answer.workflow_created
    assert cancelled is True
    assert CALLS == []
    assert (await engine.query_status("w")).status is Status.CANCELLED


async def test_C4_a_child_is_cancelled_once_though_start_and_cancel_are_taken_by_two_nodes(nodes: Nodes) -> None:
    one = await nodes.open("one", [keeps_child, runs_at_once, waits], ACTIVITIES)
    two = await nodes.open("two", [keeps_child, runs_at_once, waits], ACTIVITIES)
    await one.start(keeps_child, workflow_id="p")

    await one.signal_workflow("p", "go")
    await two.signal_workflow("p", "stop")  # while the child's start is on its way
    await nodes.clock.advance(seconds=10)

    assert (await two.query_status("child")).status is Status.CANCELLED
    assert (await two.query_status("p")).status is Status.COMPLETED


@workflow
async def keeps_child(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    running = ctx.start_child(waits, "signal", workflow_id="child")
    await ctx.wait_for_signal("stop")
    running.cancel()
    return "stopped"
