"""S6: a wait for a signal can end by time, and leaves no timer behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Context, Engine, Status, workflow
from tests.rules.steps import gate, pass_gate
from tests.rules.world import World


@workflow
async def impatient(ctx: Context, seconds: float) -> str:
    try:
        return await ctx.wait_for_signal("x", str, timeout=timedelta(seconds=seconds))
    except TimeoutError:
        return "too late"


async def count_timers(engine: Engine) -> int:
    return (await engine.store.count()).timers


async def test_S6_a_signal_in_time_ends_the_wait_and_leaves_no_timer_behind(world: World) -> None:
    engine = await world.open([impatient], auto_advance=False)
    handle = await engine.start(impatient, 60)
    armed = await count_timers(engine)

    await handle.signal("x", "here")

    assert armed == 1
    assert await handle.result() == "here"
    assert await count_timers(engine) == 0
    assert (await handle.history()).kinds == [
        "WorkflowStarted",
        "TimerStarted",
        "SignalReceived",
        "TimerCancelled",
        "WorkflowCompleted",
    ]


async def test_S6_the_wait_ends_by_timeout_and_leaves_no_timer_behind(world: World) -> None:
    engine = await world.open([impatient], auto_advance=False)
    handle = await engine.start(impatient, 60)

    await engine.clock.advance(seconds=59)
    before = await handle.status()
    await engine.clock.advance(seconds=1)

    assert before.status is Status.SUSPENDED
    assert await handle.result() == "too late"
    assert await count_timers(engine) == 0


@pytest.mark.parametrize("crash", [False, True])
async def test_S6_time_that_passes_while_nobody_runs_counts(world: World, crash: bool) -> None:
    engine = await world.open([impatient], auto_advance=False)
    handle = await engine.start(impatient, 60)
    if crash:
        await engine.crash()
    await engine.clock.advance(seconds=61)

    if crash:
        await engine.restart()
    await engine.settle()

    assert await handle.result() == "too late"


@workflow
async def patient(ctx: Context) -> list[str]:
    taken = [await ctx.wait_for_signal("x", str, timeout=60)]
    for _ in range(2):
        try:
            taken.append(await ctx.wait_for_signal("x", str, timeout=60))
        except TimeoutError:
            taken.append("timeout")
    await ctx.wait_for_signal("end")
    return taken


@workflow
async def late_patient(ctx: Context) -> str:
    await ctx.run(pass_gate, "reader")
    return await ctx.wait_for_signal("x", str, timeout=60)


async def test_S6_a_buffered_signal_needs_no_timer(world: World) -> None:
    engine = await world.open([late_patient], [pass_gate])
    handle = await engine.start(late_patient)
    await handle.signal("x", "first")

    gate("reader").set()

    assert await handle.result() == "first"
    assert "TimerStarted" not in (await handle.history()).kinds


async def test_S6_a_wait_that_is_over_is_not_ended_by_the_timer_of_another(world: World) -> None:
    engine = await world.open([patient], auto_advance=False)
    handle = await engine.start(patient)
    await handle.signal("x", "first")
    await engine.clock.advance(seconds=59)
    await handle.signal("x", "second")

    await engine.clock.advance(seconds=59)
    still = await handle.status()
    await engine.clock.advance(seconds=1)
    await handle.signal("end")

    assert still.waiting_for == "signal x"
    assert await handle.result() == ["first", "second", "timeout"]
    assert await count_timers(engine) == 0


async def test_S6_a_timeout_of_nothing_looks_once(world: World) -> None:
    engine = await world.open([impatient], auto_advance=False)

    empty = await engine.start(impatient, 0)
    answer = await engine.signal_with_start_workflow("i", impatient, 0, signal_name="x", signal_value="here")

    assert await empty.result() == "too late"
    assert await engine.handle(answer.workflow_execution_id).result() == "here"
    assert "TimerStarted" not in (await empty.history()).kinds
