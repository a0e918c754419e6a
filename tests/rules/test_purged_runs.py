"""C1: a child stays within reach of its parent, also when retention has removed the run with which it began."""

from __future__ import annotations

import pytest

from holdfast import Context, ParentClose, Retry, Status, workflow
from tests.rules.world import Nodes, World


@workflow
async def again(ctx: Context, how: str) -> None:
    """Begins a new run every ten seconds."""
    await ctx.sleep(10)
    if how == "retry":
        raise ValueError("not yet")
    ctx.continue_as(how)


@workflow
async def parent(ctx: Context, how: str, policy: str) -> None:
    _ = ctx.start_child(
        again, how, workflow_id="child", parent_close=ParentClose(policy), retry=Retry(initial=1, factor=1, jitter=0)
    )
    await ctx.wait_for_signal("end")


@workflow
async def hasty(ctx: Context, policy: str) -> None:
    """Ends in the turn in which it asks for a child whose id is taken."""
    _ = ctx.start_child(again, "continue", workflow_id="child", parent_close=ParentClose(policy))


@pytest.mark.parametrize("how", ["retry", "continue"])
@pytest.mark.parametrize(("policy", "end"), [("cancel", Status.CANCELLED), ("terminate", Status.TERMINATED)])
async def test_C1_child_whose_first_runs_were_removed_gets_what_its_policy_says(
    world: World, how: str, policy: str, end: Status
) -> None:
    engine = await world.open([again, parent], auto_advance=False, patience=0)
    handle = await engine.start(parent, how, policy)
    for _ in range(4):
        await engine.clock.advance(seconds=11)
    assert await engine.store.purge(engine.clock.now() + 1, 100) >= 3
    assert len(await engine.list(workflow_id="child")) == 1

    await handle.signal("end")
    await engine.settle()

    assert (await engine.query_status("child")).status is end


async def test_C1_child_on_another_node_gets_it_too(nodes: Nodes) -> None:
    ann = await nodes.open("ann", [parent])
    bob = await nodes.open("bob", [again])
    handle = await ann.start(parent, "continue", "terminate")
    for _ in range(3):
        await nodes.clock.advance(seconds=11)
    assert await bob.store.purge(nodes.clock.now() + 1, 100) >= 2

    await handle.signal("end")
    await nodes.clock.advance(seconds=5)

    assert (await ann.query_status("child")).status is Status.TERMINATED


@pytest.mark.parametrize("policy", ["cancel", "terminate"])
async def test_C1_stranger_under_the_id_of_a_child_is_not_reached(world: World, policy: str) -> None:
    engine = await world.open([again, hasty, parent], auto_advance=False, patience=0)
    await engine.start(parent, "continue", "abandon")  # its child has the id, and a parent as well
    await engine.settle()
    await (await engine.start(hasty, policy)).result()
    await engine.settle()

    assert (await engine.query_status("child")).status is Status.SUSPENDED
