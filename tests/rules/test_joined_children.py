"""C1: children begin with the turn that starts them, in the same commit. If that turn is lost, they never were."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, ParentClose, Status, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec
from holdfast.core.envelopes import Start
from holdfast.store.memory.faults import FaultAction, Point
from tests.eventually import eventually
from tests.rules.steps import CALLS, call
from tests.rules.world import Commit, Nodes, World, once


@workflow
async def child(ctx: Context, name: str) -> str:
    return await ctx.run(call, name)


@workflow
async def two_children(ctx: Context) -> list[str]:
    return list(await asyncio.gather(ctx.run_child(child, "first"), ctx.run_child(child, "second")))


@workflow
async def on_end(ctx: Context) -> list[Any]:
    await ctx.wait_for_signal("end")
    _ = ctx.start_child(child, "left behind", parent_close=ParentClose.ABANDON)
    return ctx.drain_signals("x")


@workflow
async def closes_over(ctx: Context, policy: ParentClose) -> None:
    _ = ctx.start_child(child, "doomed", parent_close=policy)


@workflow
async def tells(ctx: Context) -> str:
    handle = ctx.start_child(listens)
    await handle.signal("word", "hello")
    return await handle


@workflow
async def listens(ctx: Context) -> str:
    return await ctx.wait_for_signal("word", str)


@workflow
async def deep(ctx: Context, depth: int) -> int:
    return 1 + await ctx.run_child(deep, depth - 1) if depth else 0


@workflow
async def wide(ctx: Context, width: int) -> int:
    return sum(await asyncio.gather(*(ctx.run_child(deep, 0) for _ in range(width)))) + width


@workflow
async def continues(ctx: Context, left: int) -> str:
    if left:
        ctx.continue_as(left - 1)
    return "at rest"


@workflow
async def has_continuing(ctx: Context) -> str:
    return await ctx.run_child(continues, 3)


@workflow
async def elsewhere(ctx: Context) -> str:
    return "from elsewhere"


@workflow
async def has_stranger(ctx: Context) -> str:
    return str(await ctx.run_child("elsewhere"))


ALL: list[Workflow[..., Any]] = [
    child,
    two_children,
    on_end,
    closes_over,
    tells,
    listens,
    deep,
    wide,
    continues,
    has_continuing,
    has_stranger,
]


def list_sent_starts(nodes: Nodes) -> list[Start]:
    rows = [row for commit in nodes.commits for turn in commit.turns for row in turn.outgoing]
    return [one for one in [codec.decode_envelope(row.body) for row in rows] if isinstance(one, Start)]


def has_new(commit: Commit) -> bool:
    return any(turn.row.state_version == 1 for turn in commit.turns)


async def test_C1_children_begin_in_the_commit_of_their_parents_turn(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])

    handle = await engine.start(two_children)

    assert await handle.result() == ["first", "second"]
    assert [turn.row.workflow for turn in nodes.commits[0].turns] == ["two_children", "child", "child"]
    assert list_sent_starts(nodes) == []


async def test_C1_children_of_a_turn_that_is_lost_never_were(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL, [call]), await nodes.open("two", ALL, [call])
    handle = await one.start(on_end, workflow_id="w")
    nodes.faults["two"] = lambda point, _node: FaultAction.LOSE if point == Point.WAKE else FaultAction.NONE
    nodes.pause("one")
    ending = asyncio.ensure_future(one.signal_workflow("w", "end"))
    await nodes.paused("one")
    await two.signal_workflow("w", "x", 7)
    before = len(nodes.commits)

    nodes.resume("one")
    await ending

    assert await handle.result() == [7]
    await eventually(lambda: CALLS == ["left behind"])
    await nodes.clock.settle()
    begun = [[turn.row.workflow for turn in one.turns] for one in nodes.commits[before:] if has_new(one)]
    assert begun == [["on_end", "child"]]
    assert [info.status for info in await one.list(workflow=child)] == [Status.COMPLETED]


@pytest.mark.parametrize("action", [FaultAction.FAIL, FaultAction.LOST_UNKNOWN, FaultAction.APPLIED_UNKNOWN])
async def test_C1_children_begin_once_whatever_becomes_of_the_commit(nodes: Nodes, action: FaultAction) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(on_end, workflow_id="w")
    nodes.faults["one"] = once(Point.COMMIT, action)

    asking = asyncio.ensure_future(engine.signal_workflow("w", "end", request_id="r"))
    await asyncio.wait([asking])
    if asking.exception() is not None:
        await nodes.clock.advance(seconds=10)
        await engine.signal_workflow("w", "end", request_id="r")
    await nodes.clock.advance(seconds=10)

    assert (await engine.query_status("w")).status is Status.COMPLETED
    assert CALLS == ["left behind"]
    assert len(await engine.list(workflow=child)) == 1


@pytest.mark.parametrize("policy", [ParentClose.TERMINATE, ParentClose.CANCEL])
async def test_C1_a_child_that_its_parent_closes_over_runs_none_of_its_code(world: World, policy: ParentClose) -> None:
    engine = await world.open(ALL, [call])

    await (await engine.start(closes_over, policy)).result()
    await engine.settle()

    (info,) = await engine.list(workflow=child)
    assert info.status is (Status.TERMINATED if policy is ParentClose.TERMINATE else Status.CANCELLED)
    assert CALLS == []
    await engine.restart()
    assert (await engine.handle(info.execution_id).status()).status is info.status


async def test_C1_what_a_parent_sends_with_the_start_is_there_at_the_first_turn(world: World) -> None:
    engine = await world.open(ALL, [call])

    handle = await engine.start(tells)

    assert await handle.result() == "hello"
    (info,) = await engine.list(workflow=listens)
    kinds = (await engine.handle(info.execution_id).history()).kinds
    assert kinds == ["WorkflowStarted", "SignalReceived", "WorkflowCompleted"]


async def test_C1_children_of_children_begin_one_after_the_other(world: World) -> None:
    engine = await world.open(ALL, [call])

    assert await (await engine.start(deep, 20)).result() == 20


async def test_C1_more_children_than_a_batch_takes_all_begin(world: World) -> None:
    engine = await world.open(ALL, [call], batch_size=7)

    assert await (await engine.start(wide, 40)).result() == 40


async def test_C1_a_child_that_continues_at_once_is_written_after_its_parent(world: World) -> None:
    engine = await world.open(ALL, [call])

    assert await (await engine.start(has_continuing)).result() == "at rest"
    assert len(await engine.list(workflow=continues)) == 4


async def test_C1_a_child_whose_code_is_elsewhere_is_sent_there(nodes: Nodes) -> None:
    one = await nodes.open("one", ALL, [call])
    await nodes.open("two", [elsewhere])

    handle = await one.start(has_stranger)

    assert await handle.result() == "from elsewhere"
    assert [start.workflow for start in list_sent_starts(nodes)] == ["elsewhere"]


async def test_C1_a_child_that_cannot_even_be_read_fails_alone(world: World) -> None:
    engine = await world.open([*ALL, misfit, has_misfit], [call])

    assert await (await engine.start(has_misfit)).result() == ["ok", "InvalidArguments"]


@workflow
async def misfit(ctx: Context, number: int) -> int:
    return number


@workflow
async def has_misfit(ctx: Context) -> list[str]:
    good = ctx.run_child(child, "ok")
    bad: Any = ctx.run_child("misfit", "no number")
    results = await asyncio.gather(good, bad, return_exceptions=True)
    return [one if isinstance(one, str) else getattr(one, "type", repr(one)) for one in results]
