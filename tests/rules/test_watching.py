"""Waiting for a status instead of asking for it again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from holdfast import Context, ExecutionInfo, workflow
from holdfast.core.lifecycle import Status
from holdfast.errors import AnswerTimedOut, ExecutionClosed, InvalidArguments
from holdfast.store.nodes import WakeReason
from tests.eventually import eventually
from tests.rules.world import Nodes, World, hear_nothing


@workflow
async def climbs(ctx: Context, steps: int) -> int:
    for step in range(steps):
        ctx.set_state(step=step)
        await ctx.wait_for_signal("next")
    return steps


@workflow
async def renews(ctx: Context, run: int) -> int:
    ctx.set_state(run=run)
    await ctx.wait_for_signal("next")
    if run < 3:
        ctx.continue_as(run + 1)
    return run


async def test_Q5_wait_for_returns_the_status_that_was_wanted(world: World) -> None:
    engine = await world.open([climbs])
    handle = await engine.start(climbs, 3, workflow_id="w")

    assert (await handle.wait_for(lambda info: info.state == {"step": 0}, timeout=30)).state == {"step": 0}
    waits = asyncio.ensure_future(handle.wait_for(lambda info: info.state == {"step": 2}, timeout=30))
    closes = asyncio.ensure_future(handle.wait_for(lambda info: info.status is Status.COMPLETED, timeout=30))
    for _ in range(2):
        await handle.signal("next")

    assert (await waits).state == {"step": 2}
    await handle.signal("next")
    assert (await closes).status is Status.COMPLETED
    assert not engine._runtime.changes.is_active


async def test_Q5_the_present_status_is_told_however_short_the_timeout_is(world: World) -> None:
    engine = await world.open([climbs])
    handle = await engine.start(climbs, 3, workflow_id="w")

    assert (await handle.wait_for(lambda info: info.state == {"step": 0}, timeout=0)).state == {"step": 0}
    with pytest.raises(AnswerTimedOut, match="did not"):
        await handle.wait_for(lambda info: info.state == {"step": 1}, timeout=0)


@pytest.mark.parametrize("kind", ["execution", "workflow", "queue"])
async def test_Q5_pauses_are_told(world: World, kind: str) -> None:
    engine = await world.open([climbs])
    handle = await engine.start(climbs, 3, workflow_id="w")

    async def is_changed(call: Coroutine[Any, Any, bool], predicate: Callable[[ExecutionInfo], object]) -> None:
        waits = asyncio.ensure_future(handle.wait_for(predicate, timeout=60))
        await eventually(lambda: is_true(engine._runtime.changes.is_active))
        assert await call
        await waits

    pause, resume, name = {
        "execution": (engine.pause, engine.resume, "w"),
        "workflow": (engine.pause_workflow, engine.resume_workflow, "climbs"),
        "queue": (engine.pause_queue, engine.resume_queue, "default"),
    }[kind]
    await is_changed(pause(name), lambda info: [one.kind for one in info.pauses] == [kind])
    await is_changed(resume(name), lambda info: not info.pauses)


async def test_Q5_a_pause_between_two_looks_is_not_missed(world: World) -> None:
    engine = await world.open([climbs])
    await engine.start(climbs, 3, workflow_id="w")
    seen = await engine.query_status("w")
    await engine.pause_workflow("climbs")

    told = await engine.wait_for_change("w", seen.state_version, seen_pauses=[], timeout=60)

    assert [one.kind for one in told.pauses] == ["workflow"]
    with pytest.raises(AnswerTimedOut):
        await engine.wait_for_change("w", seen.state_version, seen_pauses=[str(one) for one in told.pauses], timeout=0.05)


async def test_Q5_wait_for_goes_on_with_the_next_run(world: World) -> None:
    engine = await world.open([renews])
    handle = await engine.start(renews, 1, workflow_id="w")

    waits = asyncio.ensure_future(handle.wait_for(lambda info: info.state == {"run": 3}, timeout=30))
    for run in (2, 3):
        await engine.signal_workflow("w", "next")
        await eventually(partial(has_run, engine, run))

    assert (await waits).workflow_id == "w"


async def test_Q6_mistakes_and_ends_are_typed_errors(world: World) -> None:
    engine = await world.open([climbs])
    handle = await engine.start(climbs, 1, workflow_id="w")

    with pytest.raises(AnswerTimedOut):
        await handle.wait_for(lambda _: False, timeout=0.05)
    with pytest.raises(InvalidArguments):
        await handle.wait_for("completed")  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        await handle.wait_for(lambda _: 1 / 0)
    waits = asyncio.ensure_future(handle.wait_for(lambda _: False))
    await handle.signal("next")
    with pytest.raises(ExecutionClosed, match="completed"):
        await waits


async def test_Q6_async_predicates_are_refused(world: World) -> None:
    engine = await world.open([climbs])
    handle = await engine.start(climbs, 1, workflow_id="w")

    async def is_wanted(info: ExecutionInfo) -> bool:
        return info.closed_at is not None

    for predicate in (is_wanted, lambda info: is_wanted(info), partial(is_wanted)):  # noqa: PLW0108 - a coroutine as a result
        with pytest.raises(InvalidArguments, match=r"but it is async.*wait_for\(lambda info"):
            await handle.wait_for(predicate, timeout=30)


async def test_Q6_timeout_names_the_execution_the_time_and_the_status(world: World) -> None:
    engine = await world.open([climbs])
    handle = await engine.start(climbs, 1, workflow_id="w")

    with pytest.raises(AnswerTimedOut) as late:
        await handle.wait_for(lambda _: False, timeout=0.25)

    assert late.value.message == (
        f"Expected execution 'w' ({handle.execution_id}) to come to the wanted status within 0.25 s, but it did not: "
        "it is suspended, and waits for signal next. It goes on; wait again, or for longer."
    )
    assert not engine._runtime.changes.is_active


async def test_Q7_changes_are_told_across_nodes_while_somebody_watches(nodes: Nodes) -> None:
    one = await nodes.open("a", [climbs])
    other = await nodes.open("b")
    await one.start(climbs, 9, workflow_id="w")
    heard: list[WakeReason] = []
    other.store.on_wake(heard.append)
    await one.signal_workflow("w", "next")
    assert WakeReason.CHANGES not in heard

    waits = asyncio.ensure_future(other.handle("w").wait_for(lambda info: info.state == {"step": 2}))
    await eventually(lambda: is_true(one._runtime.changes.is_active))
    await one.signal_workflow("w", "next")

    assert (await waits).state == {"step": 2}
    assert WakeReason.CHANGES in heard
    await nodes.clock.advance(seconds=60)
    assert not one._runtime.changes.is_active
    assert not other._runtime.changes.is_active


@pytest.mark.parametrize("is_heard", [True, False])
async def test_Q7_pauses_are_told_across_nodes_too(nodes: Nodes, is_heard: bool) -> None:
    one = await nodes.open("a", [climbs])
    other = await nodes.open("b")
    await one.start(climbs, 9, workflow_id="w")
    if not is_heard:
        nodes.faults["a"] = nodes.faults["b"] = hear_nothing

    for change in (one.pause_workflow, one.resume_workflow):
        is_paused = change == one.pause_workflow
        waits = asyncio.ensure_future(other.handle("w").wait_for(partial(has_pauses, is_paused)))
        await eventually(lambda: is_true(other._runtime.changes.is_active))
        await change("climbs")
        if not is_heard:
            await nodes.clock.advance(seconds=10)
        assert bool((await waits).pauses) is is_paused


async def test_Q7_a_lost_wake_up_costs_a_heartbeat(nodes: Nodes) -> None:
    one = await nodes.open("a", [climbs])
    other = await nodes.open("b")
    await one.start(climbs, 9, workflow_id="w")
    nodes.faults["a"] = nodes.faults["b"] = hear_nothing

    waits = asyncio.ensure_future(other.handle("w").wait_for(lambda info: info.state == {"step": 1}))
    await eventually(lambda: is_true(other._runtime.changes.is_active))
    await one.signal_workflow("w", "next")
    await nodes.clock.advance(seconds=10)

    assert (await waits).state == {"step": 1}


async def test_Q7_many_changes_are_told_together(nodes: Nodes) -> None:
    one = await nodes.open("a", [climbs])
    other = await nodes.open("b")
    await one.start(climbs, 60, workflow_id="w")
    waits = asyncio.ensure_future(other.handle("w").wait_for(lambda info: info.state == {"step": 50}))
    await eventually(lambda: is_true(one._runtime.changes.is_active))
    heard: list[WakeReason] = []
    other.store.on_wake(heard.append)

    began = asyncio.get_running_loop().time()
    for _ in range(50):
        await one.signal_workflow("w", "next")
    await waits

    took = asyncio.get_running_loop().time() - began
    assert heard.count(WakeReason.CHANGES) <= 2 + took / 0.05


def has_pauses(expected: bool, info: ExecutionInfo) -> bool:
    return bool(info.pauses) is expected


async def is_true(value: Any) -> bool:
    return bool(value)


async def has_run(engine: Any, run: int) -> bool:
    return bool((await engine.query_status("w")).state == {"run": run})
