"""C3: cancelling asks, terminating orders."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Status, WorkflowCancelled, WorkflowTerminated, workflow
from holdfast.errors import ExecutionNotFound, status_code
from holdfast.testing import TestEngine
from tests.eventually import eventually
from tests.rules.steps import CALLS, GATES, call, gate, pass_gate
from tests.rules.waiting import ACTIVITIES, PLACES, WAITING, cleans_up, waits
from tests.rules.world import Nodes, World


async def close_as(engine: TestEngine, how: str) -> Any:
    handle = await engine.start(closes, how, workflow_id="closed")
    if how == "cancelled":
        await handle.cancel()
    elif how == "terminated":
        await handle.terminate()
    await engine.settle()
    assert (await handle.status()).status == how
    return handle


@workflow
async def closes(ctx: Context, how: str) -> None:
    if how == "failed":
        raise ValueError("as asked")
    if how != "completed":
        await ctx.wait_for_signal("never")


# --- C3 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "terminated"])
async def test_C3_cancel_and_terminate_answer_false_on_a_closed_execution(world: World, how: str) -> None:
    engine = await world.open([closes])
    handle = await close_as(engine, how)
    before = await handle.history()

    answers = [
        await engine.cancel("closed"),
        await handle.cancel(),
        await engine.terminate("closed"),
        await handle.terminate(),
    ]

    assert answers == [False] * 4
    assert await handle.history() == before


async def test_C3_cancel_and_terminate_of_an_unknown_execution_are_refused(world: World) -> None:
    engine = await world.open([closes])

    with pytest.raises(ExecutionNotFound) as refused:
        await engine.cancel("nobody")
    with pytest.raises(ExecutionNotFound):
        await engine.terminate("nobody")

    assert status_code(refused.value) == 404


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize("where", PLACES)
async def test_C3_cancel_raises_at_the_waiting_point_whether_loaded_or_not(
    world: World, where: str, is_loaded: bool
) -> None:
    engine = await world.open(WAITING, ACTIVITIES, auto_advance=False, patience=0)
    handle = await engine.start(waits, where)
    await engine.settle()
    if not is_loaded:
        await engine.restart()

    answer = await handle.cancel()

    assert answer is True
    with pytest.raises(WorkflowCancelled):
        await handle.result()
    assert (await handle.status()).status is Status.CANCELLED
    kinds = (await handle.history()).kinds
    assert kinds.count("CancelRequested") == kinds.count("WorkflowCancelled") == 1
    assert kinds[-1] == "WorkflowCancelled"
    await engine.settle()
    assert (await engine.store.count()).timers == 0


async def test_C3_the_reason_is_recorded(world: World) -> None:
    engine = await world.open(WAITING, ACTIVITIES)
    handle = await engine.start(waits, "signal")

    await handle.cancel("nobody wants it")

    (requested,) = [one.event for one in (await handle.history()).events if one.kind == "CancelRequested"]
    assert requested.reason == "nobody wants it"  # type: ignore[union-attr]


async def test_C3_the_functions_of_running_activities_are_cancelled_too(world: World) -> None:
    engine = await world.open(WAITING, ACTIVITIES, patience=0)
    handle = await engine.start(waits, "activity")
    await eventually(lambda: "gate" in GATES)

    await handle.cancel()

    await eventually(lambda: CALLS == ["gate cancelled"])
    assert "ActivityCancelRequested" in (await handle.history()).kinds


async def test_C3_a_second_cancel_changes_nothing(world: World) -> None:
    engine = await world.open(WAITING, ACTIVITIES)
    handle = await engine.start(cleans_up, "raise")
    await handle.cancel()
    await engine.settle()
    before = await handle.history()

    answer = await handle.cancel()

    assert answer is True
    assert await handle.history() == before
    assert (await handle.status()).status is Status.SUSPENDED


async def test_C3_concurrent_cancels_are_one(world: World) -> None:
    engine = await world.open(WAITING, ACTIVITIES)
    handle = await engine.start(waits, "signal")

    answers = await asyncio.gather(*(handle.cancel() for _ in range(10)))

    assert answers[0] is True
    assert (await handle.history()).kinds.count("CancelRequested") == 1


@pytest.mark.parametrize("verb", ["cancel", "terminate"])
async def test_C3_a_request_that_comes_behind_the_end_in_one_batch_answers_false(world: World, verb: str) -> None:
    engine = await world.open([ends])
    handle = await engine.start(ends)

    _, answer = await asyncio.gather(handle.signal("end"), handle.cancel() if verb == "cancel" else handle.terminate())

    assert answer is False
    assert (await handle.status()).status is Status.COMPLETED


@workflow
async def ends(ctx: Context) -> None:
    await ctx.wait_for_signal("end")


@pytest.mark.parametrize("crash", [False, True])
async def test_C3_the_workflow_may_clean_up(world: World, crash: bool) -> None:
    engine = await world.open(WAITING, ACTIVITIES)
    handle = await engine.start(cleans_up, "raise")

    await handle.cancel()
    await engine.settle()
    if crash:
        await engine.restart()
    await handle.signal("word", "bye")

    with pytest.raises(WorkflowCancelled):
        await handle.result()
    assert CALLS == ["clean-up"]


@pytest.mark.parametrize("crash", [False, True])
async def test_C3_a_shield_works(world: World, crash: bool) -> None:
    engine = await world.open([shielded], ACTIVITIES, patience=0)
    handle = await engine.start(shielded)
    await eventually(lambda: "gate" in GATES)

    await handle.cancel()
    if crash:
        await engine.restart()
        await eventually(lambda: "gate" in GATES)
    still = await handle.status()
    gate("gate").set()

    assert not still.status.is_closed
    with pytest.raises(WorkflowCancelled):
        await handle.result()
    assert [*(["gate cancelled"] if crash else []), "after gate"] == CALLS
    assert "ActivityCancelRequested" not in (await handle.history()).kinds


@workflow
async def shielded(ctx: Context) -> None:
    working = ctx.run(pass_gate, "gate")
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await ctx.run(call, f"after {await working}")
        raise


@pytest.mark.parametrize("where", PLACES)
async def test_C3_terminate_is_immediate(world: World, where: str) -> None:
    engine = await world.open([*WAITING, cleans_all], ACTIVITIES, auto_advance=False, patience=0)
    handle = await engine.start(waits, where)
    await engine.settle()

    answer = await handle.terminate("enough")

    assert answer is True
    with pytest.raises(WorkflowTerminated, match="enough"):
        await handle.result()
    kinds = (await handle.history()).kinds
    assert kinds[-1] == "WorkflowTerminated"
    assert "CancelRequested" not in kinds
    assert (await engine.store.count()).timers == 0


async def test_C3_a_terminated_workflow_has_no_say(world: World) -> None:
    engine = await world.open([cleans_all], ACTIVITIES)
    handle = await engine.start(cleans_all)

    await handle.terminate()
    await engine.settle()

    assert CALLS == []
    assert (await handle.history()).kinds == ["WorkflowStarted", "WorkflowTerminated"]


@workflow
async def cleans_all(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("never")
    finally:
        await ctx.run(call, "finally")


async def test_C3_terminate_stops_one_that_cleans_up(world: World) -> None:
    engine = await world.open(WAITING, ACTIVITIES)
    handle = await engine.start(cleans_up, "raise")
    await handle.cancel()
    await engine.settle()

    await handle.terminate()

    assert (await handle.status()).status is Status.TERMINATED


async def start_changing(engine: TestEngine) -> Any:
    """An execution with a timer and a child, whose code does not fit it any more once this returns."""
    handle = await engine.start(changing, workflow_id="c")
    await engine.settle()
    await engine.restart(workflows=[changed, waits])
    return handle


@pytest.mark.parametrize("is_known_to_be_blocked", [True, False])
async def test_C3_terminate_ends_an_execution_whose_code_does_not_fit(world: World, is_known_to_be_blocked: bool) -> None:
    engine = await world.open([changing, waits], [call], auto_advance=False)
    handle = await start_changing(engine)
    if is_known_to_be_blocked:
        await handle.signal("go")
        assert (await handle.status()).status is Status.BLOCKED
        await handle.signal("more")

    answer = await handle.terminate()
    await engine.settle()

    assert answer is True
    assert (await handle.status()).status is Status.TERMINATED
    assert (await engine.query_status("child")).status is Status.CANCELLED
    counts = await engine.store.count()
    assert (counts.timers, counts.inbox) == (0, 0)
    assert [letter.envelope["name"] for letter in await engine.dead_letters()] == (
        ["go", "more"] if is_known_to_be_blocked else []
    )


async def test_C3_an_execution_whose_code_does_not_fit_can_be_replaced(world: World) -> None:
    engine = await world.open([changing, waits], [call], auto_advance=False)
    handle = await start_changing(engine)
    await handle.signal("go")

    replacing = await engine.start(waits, "signal", workflow_id="c", on_open="terminate_existing")

    assert replacing.created
    assert (await handle.status()).status is Status.TERMINATED


async def test_C1_terminate_ends_a_child_whose_code_does_not_fit(world: World) -> None:
    engine = await world.open([changing, dooms, waits], [call], auto_advance=False)
    handle = await engine.start(dooms)
    await engine.settle()
    await engine.restart(workflows=[changed, dooms, waits])
    await engine.signal_workflow("c", "go")
    assert (await engine.query_status("c")).status is Status.BLOCKED

    await handle.signal("end")
    await engine.settle()

    assert (await engine.query_status("c")).status is Status.TERMINATED
    assert (await engine.store.count()).inbox == 0


@workflow
async def dooms(ctx: Context) -> None:
    _ = ctx.start_child("changing", workflow_id="c", parent_close="terminate")
    await ctx.wait_for_signal("end")


@workflow
async def changing(ctx: Context) -> None:
    _ = ctx.start_child(waits, "signal", workflow_id="child", parent_close="cancel")
    await ctx.wait_for_signal("go", timeout=600)


@workflow(name="changing")
async def changed(ctx: Context) -> None:
    _ = ctx.start_child(waits, "signal", workflow_id="child", parent_close="cancel")
    await ctx.run(call, "new")
    await ctx.wait_for_signal("go", timeout=600)


async def test_C3_cancel_reaches_an_execution_that_another_node_holds(nodes: Nodes) -> None:
    one, two = await nodes.open("one", WAITING, ACTIVITIES), await nodes.open("two", WAITING, ACTIVITIES)
    handle = await one.start(waits, "signal", workflow_id="w")
    nodes.pause("one")
    holding = asyncio.ensure_future(one.signal_workflow("w", "x"))
    await nodes.paused("one")

    answer = await two.cancel("w")
    nodes.resume("one")
    await holding
    await nodes.clock.settle()

    assert answer is True
    assert (await handle.status()).status is Status.CANCELLED
