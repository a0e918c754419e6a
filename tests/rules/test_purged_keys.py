"""S1, I2: what a chain was asked with a key is known while the chain is open, also when retention has removed runs of it."""

from __future__ import annotations

import pytest

from holdfast import Context, Retry, workflow
from holdfast.testing import TestEngine
from tests.rules.world import Nodes, World

DAY = 86_400
RETRY = Retry(initial=1, factor=1, jitter=0)
HOW = pytest.mark.parametrize("how", ["retry", "continue"])


@workflow
async def relay(ctx: Context, how: str) -> str:
    """Begins a new run with each signal, until one says that it is the last."""
    if await ctx.wait_for_signal("next") != "last":
        if how == "retry":
            raise ValueError("not yet")
        ctx.continue_as(how)
    return "done"


async def remove_runs(engine: TestEngine, count: int) -> None:
    """Let the next run begin, and remove the runs that ended."""
    await engine.clock.advance(seconds=2)
    assert await engine.store.purge(engine.clock.now() + 1, 100) == count


async def find_runs(engine: TestEngine) -> list[str]:
    await engine.clock.advance(seconds=2)
    return [one.execution_id for one in await engine.list()]


@HOW
async def test_S1_repeated_signal_has_no_effect_although_its_run_was_removed(world: World, how: str) -> None:
    engine = await world.open([relay], auto_advance=False, patience=0)
    handle = await engine.start(relay, how, workflow_id="w", retry=RETRY)
    first = await handle.signal("next", request_id="by execution id")
    await engine.clock.advance(seconds=2)
    second = await engine.signal_workflow("w", "next", request_id="by workflow id")
    await remove_runs(engine, 2)
    runs = await find_runs(engine)

    again = await handle.signal("next", request_id="by execution id")
    assert again == first
    again = await engine.signal_workflow("w", "next", request_id="by workflow id")
    assert again == second
    assert await find_runs(engine) == runs, "no other run began"


async def test_S1_repeated_signal_with_start_has_no_effect_either(world: World) -> None:
    engine = await world.open([relay], auto_advance=False, patience=0)

    async def call() -> object:
        return await engine.signal_with_start_workflow("w", relay, "continue", signal_name="next", request_id="r")

    first = await call()
    await remove_runs(engine, 1)
    runs = await find_runs(engine)

    assert await call() == first
    assert await find_runs(engine) == runs


async def test_S1_request_id_of_a_removed_run_is_forgotten_after_its_time(world: World) -> None:
    engine = await world.open([relay], auto_advance=False, patience=0, request_ttl=DAY)
    await engine.start(relay, "continue", workflow_id="w")
    await engine.signal_workflow("w", "next", request_id="r")
    await remove_runs(engine, 1)

    await engine.clock.advance(seconds=DAY)
    runs = await find_runs(engine)
    await engine.signal_workflow("w", "next", request_id="r")

    assert len(await find_runs(engine)) == len(runs) + 1


@HOW
@pytest.mark.parametrize("key", ["idempotency_key", "request_id"])
@pytest.mark.parametrize("workflow_id", ["w", None])
async def test_I2_repeated_start_leads_to_the_open_run(world: World, how: str, key: str, workflow_id: str | None) -> None:
    engine = await world.open([relay], auto_advance=False, patience=0)
    first = await engine.start("relay", how, workflow_id=workflow_id, retry=RETRY, **{key: "k"})
    for _ in range(2):  # the key goes on twice
        await engine.signal_workflow(first.workflow_id, "next")
        await remove_runs(engine, 1)

    again = await engine.start("relay", how, workflow_id=workflow_id, retry=RETRY, **{key: "k"})

    assert (again.workflow_id, again.created) == (first.workflow_id, key == "request_id")
    assert await find_runs(engine) == [again.execution_id], "no other chain began"
    await again.signal("next")
    await engine.signal_workflow(again.workflow_id, "next", "last")
    await engine.clock.advance(seconds=2)
    assert await again.result() == "done"


async def test_I2_key_is_forgotten_when_the_last_run_that_it_led_to_is_removed(world: World) -> None:
    engine = await world.open([relay], auto_advance=False, patience=0)
    first = await engine.start(relay, "continue", idempotency_key="k", idempotency_ttl=1000 * DAY)
    await first.signal("next")
    await remove_runs(engine, 1)
    await engine.signal_workflow(first.workflow_id, "next", "last")
    await remove_runs(engine, 1)

    again = await engine.start(relay, "continue", idempotency_key="k")

    assert again.created
    assert again.workflow_id != first.workflow_id


async def test_S1_I2_keys_are_known_on_every_node(nodes: Nodes) -> None:
    ann = await nodes.open("ann", [relay])
    bob = await nodes.open("bob", [relay])
    first = await ann.start(relay, "continue", idempotency_key="k")
    answer = await ann.signal_workflow(first.workflow_id, "next", request_id="r")
    await nodes.clock.advance(seconds=2)
    assert await bob.store.purge(nodes.clock.now() + 1, 100) == 1
    runs = [one.execution_id for one in await bob.list()]

    assert await bob.signal_workflow(first.workflow_id, "next", request_id="r") == answer
    again = await bob.start(relay, "continue", idempotency_key="k")
    await nodes.clock.advance(seconds=2)

    assert [again.execution_id] == runs
    assert [one.execution_id for one in await ann.list()] == runs
    await again.signal("next", "last")
    await nodes.clock.advance(seconds=2)
    assert await again.result() == "done"
