"""C1: children report once, fail catchably, and obey the parent-close policy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ChildWorkflowFailed, Context, Engine, ParentClose, Status, WorkflowFailed, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import events
from holdfast.core.envelopes import ChildClosed
from holdfast.errors import ChildWorkflowCancelled, ChildWorkflowTerminated, InvalidArguments
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.steps import CALLS, call
from tests.rules.world import Nodes, World, hear_nothing


@workflow
async def child(ctx: Context, how: str) -> str:
    if how == "fail":
        raise ValueError("the child fails")
    if how == "wait":
        return await ctx.wait_for_signal("go", str)
    if how == "continue":
        await ctx.wait_for_signal("go")
        ctx.continue_as("wait")
    return how


@workflow
async def runs_one(ctx: Context, how: str) -> str:
    return f"parent of {await ctx.run_child(child, how, workflow_id='child')}"


@workflow
async def catches(ctx: Context, how: str) -> list[str]:
    try:
        return [await ctx.run_child(child, how, workflow_id="child")]
    except ChildWorkflowFailed as error:
        return [type(error).__name__, error.type, str(error)]


@workflow
async def starts_one(ctx: Context, how: str, policy: str) -> str:
    """Starts a child, then ends as told: by returning, failing, continuing; or it is cancelled or terminated."""
    if how == "again":
        return await ctx.wait_for_signal("never", str)
    _ = ctx.start_child(child, "wait", workflow_id="child", parent_close=policy)
    await ctx.wait_for_signal("end")
    if how == "fail":
        raise ValueError("the parent fails")
    if how == "continue":
        ctx.continue_as("again", policy)
    return how


@workflow
async def family(ctx: Context, count: int) -> int:
    return sum(await asyncio.gather(*(ctx.run_child(member, number) for number in range(count))))


@workflow
async def member(ctx: Context, number: int) -> int:
    await ctx.run(call, f"member-{number}")
    return number


ALL: list[Workflow[..., Any]] = [child, runs_one, catches, starts_one, family, member]


async def status_of(engine: Engine, target: str) -> Status:
    return (await engine.query_status(target)).status


# --- the end of a child -----------------------------------------------------------------------------------------------


async def test_C1_a_childs_result_reaches_the_parent_once(world: World) -> None:
    engine = await world.open(ALL)

    handle = await engine.start(runs_one, "well")

    assert await handle.result() == "parent of well"
    assert (await handle.history()).kinds == ["WorkflowStarted", "ChildStarted", "ChildCompleted", "WorkflowCompleted"]
    assert (await engine.store.count()).inbox == 0


async def test_C1_a_childs_result_reaches_a_parent_that_is_not_loaded(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(runs_one, "wait")
    await engine.settle()
    await engine.restart()

    await engine.signal_workflow("child", "go", "back")

    assert await handle.result() == "parent of back"


async def test_C1_a_hundred_children_report_once_each(world: World) -> None:
    engine = await world.open(ALL, [call])

    handle = await engine.start(family, 100)

    assert await handle.result() == sum(range(100))
    kinds = (await handle.history()).kinds
    assert (kinds.count("ChildStarted"), kinds.count("ChildCompleted")) == (100, 100)
    assert sorted(CALLS) == sorted(f"member-{number}" for number in range(100))


async def test_C1_a_failing_child_is_child_workflow_failed_and_can_be_caught(world: World) -> None:
    engine = await world.open(ALL)

    handle = await engine.start(catches, "fail")

    name, kind, message = await handle.result()
    assert (name, kind) == ("ChildWorkflowFailed", "ValueError")
    assert "the child fails" in message
    assert "ChildFailed" in (await handle.history()).kinds


async def test_C1_a_failing_child_that_is_not_caught_fails_the_parent(world: World) -> None:
    engine = await world.open(ALL)

    handle = await engine.start(runs_one, "fail")

    with pytest.raises(WorkflowFailed, match="the child fails") as failed:
        await handle.result()
    assert failed.value.type == "ChildWorkflowFailed"


@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_C1_a_child_that_is_cancelled_or_terminated_is_child_workflow_failed_too(world: World, how: str) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(catches, "wait")
    await engine.settle()

    await (engine.cancel("child") if how == "cancel" else engine.terminate("child", "not needed"))

    kind = ChildWorkflowCancelled if how == "cancel" else ChildWorkflowTerminated
    assert issubclass(kind, ChildWorkflowFailed)
    assert (await handle.result())[0] == kind.__name__


async def test_C1_the_failure_of_a_child_is_caught_alike_on_replay(world: World) -> None:
    engine = await world.open([child, remembers])
    handle = await engine.start(remembers)
    await engine.settle()
    await engine.restart()

    await handle.signal("end")

    assert await handle.result() == "ValueError"


@workflow
async def remembers(ctx: Context) -> str:
    caught = ""
    try:
        await ctx.run_child(child, "fail")
    except ChildWorkflowFailed as error:
        caught = error.type
    await ctx.wait_for_signal("end")
    return caught


async def test_C1_a_child_whose_id_is_open_cannot_be_started_and_the_parent_hears_of_it(world: World) -> None:
    engine = await world.open(ALL)
    taken = await engine.start(child, "wait", workflow_id="child")

    handle = await engine.start(catches, "well")

    assert (await handle.result())[:2] == ["ChildWorkflowFailed", "WorkflowAlreadyOpen"]
    assert await status_of(engine, str(taken.execution_id)) is Status.SUSPENDED
    assert (await engine.store.count()).inbox == 0


async def test_C1_a_child_of_an_unknown_workflow_fails_and_the_parent_hears_of_it(alone: World) -> None:
    engine = await alone.open([unknowing])

    handle = await engine.start(unknowing)

    assert await handle.result() == "UnknownWorkflow"


@workflow
async def unknowing(ctx: Context) -> str:
    try:
        await ctx.run_child("nothing_of_that_name", 1)
    except ChildWorkflowFailed as error:
        return error.type
    return "started"


@pytest.mark.parametrize("by", ["function", "name"])
async def test_C1_a_child_whose_input_does_not_fit_fails_and_the_parent_hears_of_it(world: World, by: str) -> None:
    engine = await world.open([child, misfits])

    handle = await engine.start(misfits, by)

    assert await handle.result() == ("InvalidArguments" if by == "function" else "ChildWorkflowFailed: InvalidArguments")
    assert len(await engine.list(workflow=child, status="completed")) == 0


@workflow
async def misfits(ctx: Context, by: str) -> str:
    misfit: Any = 7
    try:
        await ctx.run_child(child if by == "function" else "child", misfit)
    except ChildWorkflowFailed as error:
        return f"{type(error).__name__}: {error.type}"
    except InvalidArguments as error:
        return type(error).__name__
    return "started"


async def test_C1_a_child_that_continues_reports_the_end_of_its_last_run(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(runs_one, "continue")
    await engine.settle()

    await engine.signal_workflow("child", "go")
    await engine.signal_workflow("child", "go", "the last run")

    assert await handle.result() == "parent of the last run"
    assert (await handle.history()).kinds.count("ChildCompleted") == 1


async def test_C1_a_second_report_of_one_child_changes_nothing(nodes: Nodes) -> None:
    engine = await nodes.open("one", [child, patient])
    handle = await engine.start(patient, workflow_id="p")
    await engine.settle()
    before = await handle.history()
    started = next(one.event for one in before.events if isinstance(one.event, events.ChildStarted))

    await nodes.put_into_inbox(
        str(handle.execution_id), ChildClosed(number=started.number, execution_id=started.execution_id, result=None)
    )
    await engine.settle()

    assert await handle.history() == before
    assert (await engine.store.count()).inbox == 0


@workflow
async def patient(ctx: Context) -> str:
    result = await ctx.run_child(child, "well")
    await ctx.wait_for_signal("end")
    return result


POINTS = [Point.CLAIM_READ, Point.WRITE_ROWS, Point.COMMIT, Point.COMMITTED]


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
async def test_C1_a_node_that_dies_in_between_neither_loses_nor_repeats_the_report(
    nodes: Nodes, point: Point, nth: int
) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    nodes.faults["two"] = hear_nothing
    left = [FaultAction.NONE] * (nth - 1) + [FaultAction.CRASH]
    await one.start(starts_two, workflow_id="p")
    await one.settle()
    nodes.faults["one"] = lambda at, _node: left.pop(0) if at == point and left else FaultAction.NONE
    going = asyncio.ensure_future(one.signal_workflow("p", "go"))
    await nodes.died("one")

    going.cancel()
    await nodes.kill("one")
    await nodes.take_over()
    last = (await two.query_status("p")).last_signal
    if last is None or last.name != "go":
        await two.signal_workflow("p", "go")
    await nodes.clock.settle()

    assert await two.query_result("p") == ["first", "second"]
    kinds = (await two.history("p")).kinds
    assert (kinds.count("ChildStarted"), kinds.count("ChildCompleted")) == (2, 2)
    assert len(await two.list(workflow=child)) == 2


@workflow
async def starts_two(ctx: Context) -> list[str]:
    await ctx.wait_for_signal("go")
    return [await ctx.run_child(child, name) for name in ("first", "second")]


ALL.append(starts_two)


# --- the end of the parent --------------------------------------------------------------------------------------------


async def end_parent(engine: Any, how: str, policy: str) -> None:
    handle = await engine.start(starts_one, how, policy, workflow_id="parent")
    await engine.settle()
    assert await status_of(engine, "child") is Status.SUSPENDED
    if how == "cancel":
        await handle.cancel()
    elif how == "terminate":
        await handle.terminate()
    else:
        await handle.signal("end")
    await engine.settle()
    assert (await handle.status()).status.is_closed


ENDS = ["return", "fail", "cancel", "terminate", "continue"]


@pytest.mark.parametrize("how", ENDS)
async def test_C1_abandon_leaves_the_child_alone(world: World, how: str) -> None:
    engine = await world.open(ALL)

    await end_parent(engine, how, "abandon")

    assert await status_of(engine, "child") is Status.SUSPENDED
    await engine.signal_workflow("child", "go", "alone")
    assert await engine.handle("child").result() == "alone"
    await engine.settle()
    counts = await engine.store.count()
    assert (counts.inbox, counts.dead_letters) == (0, 0)


@pytest.mark.parametrize("how", ENDS)
async def test_C1_cancel_cancels_the_child(world: World, how: str) -> None:
    engine = await world.open(ALL)

    await end_parent(engine, how, "cancel")

    assert await status_of(engine, "child") is Status.CANCELLED
    assert "CancelRequested" in (await engine.history("child")).kinds


@pytest.mark.parametrize("how", ENDS)
async def test_C1_terminate_terminates_the_child(world: World, how: str) -> None:
    engine = await world.open(ALL)

    await end_parent(engine, how, "terminate")

    assert await status_of(engine, "child") is Status.TERMINATED
    assert "CancelRequested" not in (await engine.history("child")).kinds


async def test_C1_a_child_that_is_not_awaited_is_abandoned_by_default(world: World) -> None:
    engine = await world.open([child, leaves])

    await (await engine.start(leaves)).result()
    await engine.settle()

    assert await status_of(engine, "child") is Status.SUSPENDED


@workflow
async def leaves(ctx: Context) -> None:
    _ = ctx.start_child(child, "wait", workflow_id="child")


async def test_C1_the_policy_reaches_a_child_that_is_not_started_yet(world: World) -> None:
    engine = await world.open([child, leaves_at_once])

    await (await engine.start(leaves_at_once)).result()
    await engine.settle()

    assert await status_of(engine, "child") is Status.TERMINATED


@workflow
async def leaves_at_once(ctx: Context) -> None:
    _ = ctx.start_child(child, "wait", workflow_id="child", parent_close=ParentClose.TERMINATE)


@pytest.mark.parametrize("policy", ["cancel", "terminate"])
async def test_C1_the_policy_reaches_a_child_that_continued(world: World, policy: str) -> None:
    engine = await world.open([child, starts_continuing])
    handle = await engine.start(starts_continuing, policy)
    await engine.settle()
    await engine.signal_workflow("child", "go")

    await handle.signal("end")
    await engine.settle()

    assert await status_of(engine, "child") is (Status.CANCELLED if policy == "cancel" else Status.TERMINATED)


@workflow
async def starts_continuing(ctx: Context, policy: str) -> None:
    _ = ctx.start_child(child, "continue", workflow_id="child", parent_close=policy)
    await ctx.wait_for_signal("end")


async def test_C1_a_child_that_has_ended_is_left_as_it_is(world: World) -> None:
    engine = await world.open([child, parent_of_done])
    handle = await engine.start(parent_of_done)
    await engine.settle()

    await handle.signal("end")
    await engine.settle()

    assert await status_of(engine, "child") is Status.COMPLETED
    assert (await engine.store.count()).dead_letters == 0


@workflow
async def parent_of_done(ctx: Context) -> None:
    _ = ctx.start_child(child, "well", workflow_id="child", parent_close="cancel")
    await ctx.wait_for_signal("end")


async def test_C1_an_awaited_child_is_cancelled_with_its_parent(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(runs_one, "wait")
    await engine.settle()

    await handle.cancel()
    await engine.settle()

    assert (await handle.status()).status is Status.CANCELLED
    assert await status_of(engine, "child") is Status.CANCELLED


async def test_C1_a_policy_that_does_not_exist_fails_the_parent(world: World) -> None:
    engine = await world.open(ALL)

    handle = await engine.start(starts_one, "return", "perhaps")

    with pytest.raises(WorkflowFailed, match="parent_close"):
        await handle.result()
    assert len(await engine.list()) == 1
