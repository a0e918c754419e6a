"""T7: an execution or a run that takes longer than it may is closed as failed, whatever its code does or lacks."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast import ChildWorkflowFailed, Context, ExecutionTimedOut, ParentClose, Status, WorkflowFailed, workflow
from holdfast.core.lifecycle import Status as CoreStatus
from holdfast.errors import ExecutionClosed, InvalidDuration
from holdfast.testing import TestEngine, replay
from tests.eventually import eventually
from tests.rules.steps import GATES
from tests.rules.waiting import ACTIVITIES, PLACES, WAITING, waits
from tests.rules.world import Nodes, World

TRIES: list[str] = []


@workflow
async def stays(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("never")
    except asyncio.CancelledError:
        TRIES.append("had a say")
        raise


@workflow
async def quick(ctx: Context) -> str:
    return "done"


@workflow
async def chain(ctx: Context, run: int) -> None:
    await ctx.sleep(60)
    ctx.continue_as(run + 1)


@workflow
async def parent(ctx: Context, timeouts: dict[str, Any]) -> list[str]:
    try:
        await ctx.run_child(stays, **timeouts)
    except ChildWorkflowFailed as error:
        return [error.type, str(error)]
    return []


@workflow
async def has_child(ctx: Context, policy: str) -> None:
    await ctx.run_child(stays, workflow_id="child", parent_close=policy)


@workflow(name="changing")
async def before(ctx: Context) -> None:
    await ctx.sleep(10)
    await ctx.wait_for_signal("never")


@workflow(name="changing")
async def after(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


@pytest.fixture(autouse=True)
def nobody_tried() -> None:
    TRIES.clear()


async def open_one(world: World, *workflows: Any, **options: Any) -> TestEngine:
    return await world.open(workflows, auto_advance=False, patience=0, **options)


async def assert_timed_out(engine: TestEngine, handle: Any, timeout: str) -> None:
    with pytest.raises(ExecutionTimedOut) as caught:
        await handle.result()
    assert isinstance(caught.value, WorkflowFailed)
    assert (caught.value.type, caught.value.timeout) == ("ExecutionTimedOut", timeout)
    info = await handle.status()
    assert info.status is Status.FAILED
    assert str(info.last_error).startswith("ExecutionTimedOut: ")
    counts = await engine.store.count()
    assert (counts.timers, counts.inbox) == (0, 0)


@pytest.mark.parametrize("kind", ["execution", "run"])
@pytest.mark.parametrize("where", PLACES)
async def test_T7_it_closes_wherever_it_waits(world: World, where: str, kind: str) -> None:
    engine = await world.open(WAITING, ACTIVITIES, auto_advance=False, patience=0)
    options: dict[str, Any] = {f"{kind}_timeout": timedelta(minutes=5)}
    handle = await engine.start(waits, where, **options)
    await engine.settle()
    assert (await handle.status()).times_out_at is not None

    await engine.clock.advance(minutes=4)
    assert (await handle.status()).status in (Status.RUNNING, Status.SUSPENDED)
    await engine.clock.advance(minutes=2)

    assert (await handle.status()).status is Status.FAILED
    for opening in GATES.values():
        opening.set()
    await engine.settle()
    history = await handle.history()
    assert history.kinds[-1] == "WorkflowTimedOut"
    replay(history, WAITING)


async def test_T7_the_code_has_no_say_and_accepted_signals_are_kept_as_after_a_termination(world: World) -> None:
    engine = await open_one(world, stays)
    handle = await engine.start(stays, execution_timeout=60)
    await engine.restart()

    await engine.clock.advance(minutes=1)

    await assert_timed_out(engine, handle, "execution")
    assert TRIES == []
    with pytest.raises(ExecutionClosed):
        await handle.signal("never")
    replay(await handle.history(), [stays])


async def test_T7_what_ends_in_time_is_not_touched(world: World) -> None:
    engine = await open_one(world, quick)
    handle = await engine.start(quick, execution_timeout=60, run_timeout=60)

    await engine.clock.advance(hours=1)

    assert await handle.result() == "done"
    assert (await engine.store.count()).timers == 0


async def test_T7_the_execution_timeout_counts_over_all_runs(world: World) -> None:
    engine = await open_one(world, chain)
    await engine.start(chain, 1, workflow_id="w", execution_timeout=150)
    for _ in range(4):
        await engine.clock.advance(seconds=40)
        await engine.restart()

    await assert_timed_out(engine, engine.handle("w"), "execution")
    runs = await engine.list(workflow_id="w")
    assert [info.status for info in runs] == [Status.FAILED, CoreStatus.CONTINUED, CoreStatus.CONTINUED]


async def test_T7_the_run_timeout_counts_for_each_run(world: World) -> None:
    engine = await open_one(world, chain)
    handle = await engine.start(chain, 1, workflow_id="w", run_timeout=90)
    await engine.clock.advance(minutes=10)

    info = await engine.query_status("w")
    assert (info.status, len(await engine.list(workflow_id="w"))) == (Status.SUSPENDED, 11)
    await handle.terminate()
    await engine.terminate("w")


async def test_T7_the_timeout_counts_from_the_end_of_the_delay(world: World) -> None:
    engine = await open_one(world, stays)
    handle = await engine.start(stays, delay=3600, execution_timeout=60)

    await engine.clock.advance(minutes=60)
    assert (await handle.status()).waiting_for == "signal never"
    await engine.clock.advance(minutes=1)

    await assert_timed_out(engine, handle, "execution")


@pytest.mark.parametrize("name", ["execution_timeout", "run_timeout"])
async def test_T7_a_child_times_out_and_its_parent_is_told(world: World, name: str) -> None:
    engine = await open_one(world, parent, stays)
    handle = await engine.start(parent, {name: 60.0})

    await engine.clock.advance(minutes=1)

    kind, message = await handle.result()
    assert kind == "ExecutionTimedOut"
    assert "60 seconds" in message
    replay(await handle.history(), [parent, stays])


@pytest.mark.parametrize(
    ("policy", "status"), [("cancel", "cancelled"), ("terminate", "terminated"), ("abandon", "suspended")]
)
async def test_T7_children_get_what_their_policy_says(world: World, policy: str, status: str) -> None:
    engine = await open_one(world, has_child, stays)
    await engine.start(has_child, policy, execution_timeout=60)
    assert ParentClose(policy)

    await engine.clock.advance(minutes=1)
    await engine.settle()

    assert (await engine.query_status("child")).status == status
    await engine.terminate("child")


async def test_T7_a_blocked_execution_times_out_too(world: World) -> None:
    engine = await open_one(world, before)
    handle = await engine.start(before, execution_timeout=600)
    await engine.settle()
    engine.remove_workflow("changing")
    engine.add_workflow(after)
    await engine.clock.advance(seconds=20)
    assert (await handle.status()).status is Status.BLOCKED
    await handle.signal("never")

    await engine.clock.advance(minutes=10)

    with pytest.raises(ExecutionTimedOut):
        await handle.result()
    assert (await engine.store.count()).inbox == 0
    assert [letter.envelope["name"] for letter in await engine.dead_letters()] == ["never"]


async def test_T7_one_whose_code_is_gone_times_out_too(world: World) -> None:
    engine = await open_one(world, stays, quick)
    handle = await engine.start(stays, execution_timeout=600, run_timeout=500)
    await engine.settle()
    engine.remove_workflow("stays")
    await handle.signal("never")

    await engine.clock.advance(minutes=10)

    with pytest.raises(ExecutionTimedOut):
        await handle.result()
    assert [letter.envelope["name"] for letter in await engine.dead_letters()] == ["never"]


async def test_T7_one_whose_code_is_gone_since_the_engine_opened_times_out_too(on_file: World) -> None:
    engine = await open_one(on_file, stays)
    handle = await engine.start(stays, execution_timeout=600)
    await engine.settle()
    await engine.shutdown()

    engine = await open_one(on_file, quick, clock=engine.clock)
    await engine.clock.advance(minutes=10)

    with pytest.raises(ExecutionTimedOut):
        await engine.handle(handle.workflow_id).result()


async def test_T7_one_that_no_node_ever_began_times_out_too(nodes: Nodes) -> None:
    engine = await nodes.open("a", [stays], queues=["default"])
    handle = await engine.start(stays, queue="nobody", execution_timeout=60)
    assert (await handle.status()).history_length == 0

    await nodes.clock.advance(minutes=2)

    with pytest.raises(ExecutionTimedOut):
        await handle.result()
    assert (await handle.history()).kinds == ["WorkflowStarted", "WorkflowTimedOut"]


async def test_T7_a_node_without_the_code_closes_it(nodes: Nodes) -> None:
    first = await nodes.open("a", [stays])
    handle = await first.start(stays, workflow_id="w", execution_timeout=60)
    await first.settle()
    second = await nodes.open("b", [quick], queues=["other"])
    await nodes.kill("a")

    await nodes.clock.advance(minutes=2)

    with pytest.raises(ExecutionTimedOut):
        await second.handle("w").result()
    assert handle.execution_id is not None


async def test_T7_an_activity_is_told_to_stop(world: World) -> None:
    engine = await world.open(WAITING, ACTIVITIES, auto_advance=False, patience=0)
    handle = await engine.start(waits, "activity", execution_timeout=60)
    await eventually(lambda: bool(GATES))

    await engine.clock.advance(minutes=1)

    with pytest.raises(ExecutionTimedOut):
        await handle.result()


@pytest.mark.parametrize("name", ["execution_timeout", "run_timeout"])
@pytest.mark.parametrize("timeout", [0, -5, "1m", float("inf")])
async def test_T7_a_timeout_that_is_none_is_refused(alone: World, name: str, timeout: Any) -> None:
    engine = await open_one(alone, quick)
    with pytest.raises(InvalidDuration, match=name):
        await engine.start(quick, **{name: timeout})
    assert await engine.list() == []
