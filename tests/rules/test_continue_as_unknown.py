"""C5 and S7 where the next run is of a workflow that is not here: the chain waits for it, and nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Engine, Status, WorkflowCancelled, WorkflowFailed, WorkflowTerminated, workflow
from holdfast.code.definitions import Workflow
from tests.rules.world import Nodes, World


@workflow
async def before(ctx: Context, following: str, args: list[Any]) -> None:
    """Continues as another workflow when told."""
    await ctx.wait_for_signal("go")
    ctx.continue_as(*args, workflow=following)


@workflow
async def at_once(ctx: Context, following: str) -> None:
    """Continues as another workflow in its first turn."""
    ctx.continue_as(workflow=following)


@workflow
async def after(ctx: Context) -> list[Any]:
    """Ends when told, with what is in its queues."""
    await ctx.wait_for_signal("end")
    return [*ctx.drain_signals("x"), *ctx.drain_signals("y")]


@workflow
async def wants_number(ctx: Context, number: int) -> int:
    return number


@workflow
async def parent(ctx: Context, child: str) -> Any:
    args = ["after", []] if child == "before" else ["after"]
    return await ctx.run_child(child, *args, workflow_id="child")


@workflow
async def steps_twice(ctx: Context, left: int) -> None:
    """Continues as itself often, and then as a workflow that may not be here."""
    if left == 0:
        ctx.continue_as(workflow="after")
    ctx.continue_as(left - 1)


OLD: list[Workflow[..., Any]] = [before, at_once, parent, steps_twice]
ALL = [*OLD, after, wants_number]


async def find_open(engine: Engine, workflow_id: str) -> Any:
    """The status of the run that is open."""
    (run,) = [run for run in await engine.list(workflow_id=workflow_id) if not run.status.is_closed]
    return await engine.query_status(run.execution_id)


async def test_C5_a_run_of_an_unknown_workflow_waits_and_says_for_what(world: World) -> None:
    engine = await world.open(OLD)
    handle = await engine.start(before, "after", [], workflow_id="w")

    await handle.signal("go")
    await engine.settle()

    run = await find_open(engine, "w")
    assert (run.workflow, run.continued_from) == ("after", handle.execution_id)
    assert run.missing_definition == "workflow 'after' is on no living node"


@pytest.mark.parametrize("returns", ["restart", "add"])
async def test_S7_a_run_of_an_unknown_workflow_keeps_what_was_sent_until_it_is_known(world: World, returns: str) -> None:
    engine = await world.open(OLD)
    handle = await engine.start(before, "after", [], workflow_id="w")
    await engine.signal_workflow("w", "x", 1, request_id="one")
    await engine.signal_workflow("w", "y", "a")
    await asyncio.gather(engine.signal_workflow("w", "go"), engine.signal_workflow("w", "x", 2, request_id="two"))
    await engine.settle()
    await engine.signal_workflow("w", "x", 3, request_id="three")
    for number, key in enumerate(("one", "two", "three"), 1):
        await engine.signal_workflow("w", "x", number, request_id=key)

    if returns == "restart":
        await engine.restart(workflows=ALL)
    else:
        engine.add_workflow(after)
    await engine.signal_workflow("w", "end")

    assert await engine.handle("w").result() == [1, 2, 3, "a"]
    assert await engine.handle(str(handle.execution_id)).result() == [1, 2, 3, "a"]
    assert await engine.dead_letters() == []


async def test_S7_a_run_of_an_unknown_workflow_shows_what_waits_for_it(world: World) -> None:
    engine = await world.open(OLD)
    handle = await engine.start(before, "after", [], workflow_id="w")
    await handle.signal("x", 1)

    await handle.signal("go")
    await engine.signal_workflow("w", "x", 2)
    await engine.settle()

    run = await find_open(engine, "w")
    assert [waiting.envelope["value"]["data"] for waiting in run.inbox if waiting.envelope["type"] == "signal"] == [1, 2]


async def test_C4_a_cancel_for_a_run_of_an_unknown_workflow_counts_once_it_is_known(world: World) -> None:
    engine = await world.open(OLD)
    handle = await engine.start(before, "after", [], workflow_id="w")

    _, cancelled = await asyncio.gather(handle.signal("go"), engine.cancel("w"))
    await engine.restart(workflows=ALL)

    assert cancelled
    with pytest.raises(WorkflowCancelled):
        await engine.handle("w").result()


async def test_C5_a_run_of_an_unknown_workflow_can_be_terminated(world: World) -> None:
    engine = await world.open(OLD)
    handle = await engine.start(before, "after", [], workflow_id="w")
    await handle.signal("x", 1)
    await handle.signal("go")
    await engine.settle()

    assert await engine.terminate("w")

    with pytest.raises(WorkflowTerminated):
        await engine.handle("w").result()
    again = await engine.start(before, "after", [], workflow_id="w")
    assert again.created


async def test_C5_a_first_turn_may_continue_as_an_unknown_workflow(world: World) -> None:
    engine = await world.open(OLD)
    await engine.start(at_once, "after", workflow_id="w")
    await engine.signal_workflow("w", "x", 1)

    await engine.restart(workflows=ALL)
    await engine.signal_workflow("w", "end")

    assert await engine.handle("w").result() == [1]


async def test_S7_a_start_with_a_signal_that_continues_as_an_unknown_workflow_keeps_it(world: World) -> None:
    engine = await world.open(OLD)
    await engine.signal_with_start_workflow("w", at_once, "after", signal_name="x", signal_value=7)

    await engine.restart(workflows=ALL)
    await engine.signal_workflow("w", "end")

    assert await engine.handle("w").result() == [7]


async def test_C5_many_runs_of_one_batch_may_lead_to_an_unknown_workflow(world: World) -> None:
    engine = await world.open(OLD)
    await engine.start(steps_twice, 120, workflow_id="w")
    await engine.settle()
    await engine.signal_workflow("w", "x", 1)

    await engine.restart(workflows=ALL)
    await engine.signal_workflow("w", "end")

    assert await engine.handle("w").result() == [1]


@pytest.mark.parametrize("child", ["before", "at_once"])
async def test_C1_a_child_that_continues_as_an_unknown_workflow_reports_its_end(world: World, child: str) -> None:
    engine = await world.open(OLD)
    handle = await engine.start(parent, child)
    await engine.settle()
    if child == "before":
        await engine.signal_workflow("child", "go")
    await engine.signal_workflow("child", "x", 1)
    await engine.settle()

    await engine.restart(workflows=ALL)
    await engine.signal_workflow("child", "end")

    assert await handle.result() == [1]


async def test_C5_arguments_that_do_not_fit_the_workflow_once_it_is_known_fail_its_run(world: World) -> None:
    engine = await world.open(OLD)
    handle = await engine.start(before, "wants_number", ["many"], workflow_id="w")
    await handle.signal("x", 1)
    await handle.signal("go")

    await engine.restart(workflows=ALL)

    with pytest.raises(WorkflowFailed, match="number") as failed:
        await engine.handle("w").result()
    assert failed.value.type == "InvalidArguments"
    run = await engine.query_status("w")
    assert (await engine.history(run.execution_id)).kinds == ["WorkflowStarted", "SignalReceived", "WorkflowFailed"]


async def test_C5_a_workflow_that_is_removed_while_its_first_turn_waits_can_come_back(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(before, "after", [], workflow_id="w")
    await handle.signal("x", 1)
    engine.remove_workflow("after")
    await handle.signal("go")
    await engine.settle()
    assert (await find_open(engine, "w")).workflow == "after"

    engine.add_workflow(after)
    await engine.signal_workflow("w", "end")

    assert await engine.handle("w").result() == [1]


async def test_C5_a_run_waits_for_the_node_that_has_its_workflow(nodes: Nodes) -> None:
    one = await nodes.open("one", OLD)
    await one.start(before, "after", [], workflow_id="w")
    await asyncio.gather(one.signal_workflow("w", "x", 1, request_id="r"), one.signal_workflow("w", "go"))
    await nodes.clock.settle()
    assert (await find_open(one, "w")).status is not Status.BLOCKED

    two = await nodes.open("two", [after])
    await one.signal_workflow("w", "x", 1, request_id="r")
    await two.signal_workflow("w", "end")
    await nodes.clock.settle()

    assert await one.query_result("w") == [1]


class Broken(Workflow[..., Any]):
    """A workflow of which no program can be made."""

    def make_program(self, execution: Any, limits: Any) -> Any:
        raise RuntimeError("no program today")


async def test_S7_a_run_whose_program_cannot_be_made_keeps_what_was_carried_over(world: World) -> None:
    engine = await world.open([*OLD, Broken(after.function, "after")])
    handle = await engine.start(before, "after", [], workflow_id="w")
    await handle.signal("x", 1)
    await handle.signal("go")
    await engine.settle()

    await engine.restart(workflows=ALL)
    await engine.signal_workflow("w", "end")

    assert await engine.handle("w").result() == [1]
