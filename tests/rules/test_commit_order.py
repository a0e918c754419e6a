"""X4: no answer is sent, no activity started, no wake-up given before the commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Context, History, Status, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.errors import StoreUnavailable
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.steps import CALLS, call
from tests.rules.watched_postgres import PostgresNodes
from tests.rules.world import Nodes, World, once


@workflow
async def starter(ctx: Context) -> str:
    sending = ctx.signal_external_workflow("receiver", "x", 1)
    done = await ctx.run(call, "first")
    await sending
    return done


@workflow
async def receiver(ctx: Context) -> int:
    return await ctx.wait_for_signal("x", int)


@workflow
async def on_go(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    _ = ctx.signal_external_workflow("receiver", "x", 2)
    return await ctx.run(call, "second")


@workflow
async def ends(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    return "ended"


ALL: list[Workflow[..., Any]] = [starter, receiver, on_go, ends]
UNHEARD = [Point.COMMIT, Point.COMMITTED]
"""Before the commit; and after it, as long as the node has not heard of it. (On a server, whoever waits for a result may
read it there as soon as it is committed.)"""


async def stay(times: int = 100) -> None:
    """Give everything that could happen the chance to."""
    for _ in range(times):
        await asyncio.sleep(0)


@pytest.mark.parametrize("point", UNHEARD)
async def test_X4_a_start_is_answered_and_its_activities_begin_after_the_commit(nodes: Nodes, point: Point) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(receiver, workflow_id="receiver")
    await engine.settle()
    nodes.gate.shut(point)

    starting = asyncio.ensure_future(engine.start(starter, workflow_id="w"))
    await nodes.reached(point)
    await stay()
    before = (starting.done(), list(CALLS))
    nodes.gate.open(point)
    handle = await starting

    assert before == (False, [])
    assert await handle.result() == "first"
    assert CALLS == ["first"]


@pytest.mark.parametrize("point", UNHEARD)
async def test_X4_a_signal_is_answered_and_what_it_causes_begins_after_the_commit(nodes: Nodes, point: Point) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(on_go, workflow_id="w")
    await engine.settle()
    nodes.gate.shut(point)

    calls = [
        asyncio.ensure_future(engine.signal_workflow("w", "go")),
        asyncio.ensure_future(engine.signal_with_start_workflow("v", ends, signal_name="x")),
        asyncio.ensure_future(engine.cancel("w")),
    ]
    await nodes.reached(point)
    await stay()
    before = ([one.done() for one in calls], list(CALLS))
    nodes.gate.open(point)
    await asyncio.gather(*calls)

    assert before == ([False] * 3, [])
    assert (await handle.history()).kinds[:2] == ["WorkflowStarted", "SignalReceived"]


@pytest.mark.parametrize("point", UNHEARD)
@pytest.mark.parametrize("verb", ["cancel", "terminate"])
async def test_X4_cancel_and_terminate_are_answered_after_the_commit(nodes: Nodes, verb: str, point: Point) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(ends)
    nodes.gate.shut(point)

    asking = asyncio.ensure_future(handle.cancel() if verb == "cancel" else handle.terminate())
    waiting = asyncio.ensure_future(handle.result())
    await nodes.reached(point)
    await stay()
    before = (asking.done(), waiting.done())
    nodes.gate.open(point)

    assert before[0] is False
    assert before[1] is False or (point is Point.COMMITTED and isinstance(nodes, PostgresNodes))
    assert await asking is True
    await asyncio.gather(waiting, return_exceptions=True)
    assert (await handle.status()).status.is_closed


@pytest.mark.parametrize("point", UNHEARD)
async def test_X4_a_result_is_told_after_the_commit(nodes: Nodes, point: Point) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(ends)
    waiting = asyncio.ensure_future(handle.result())
    nodes.gate.shut(point)

    ending = asyncio.ensure_future(handle.signal("go"))
    await nodes.reached(point)
    await stay()
    before = waiting.done()
    nodes.gate.open(point)
    await ending

    assert before is False or (point is Point.COMMITTED and isinstance(nodes, PostgresNodes))
    assert await waiting == "ended"


async def test_X4_nobody_sees_anything_of_a_turn_before_its_commit(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(on_go, workflow_id="w")
    await engine.settle()
    before = await nodes.snapshot()
    nodes.gate.shut(Point.COMMIT)

    calls = [
        asyncio.ensure_future(engine.signal_workflow("w", "go")),
        asyncio.ensure_future(engine.start(starter, workflow_id="v")),
    ]
    await nodes.reached(Point.COMMIT)
    await stay()
    seen = await look_from_outside(nodes)
    unchanged = await nodes.snapshot() == before
    nodes.gate.open(Point.COMMIT)
    await asyncio.gather(*calls)

    assert seen == ([("w", Status.SUSPENDED, 1)], 0)
    assert unchanged


async def look_from_outside(nodes: Nodes) -> Any:
    store = await nodes.open_onlooker()
    rows = [await store.find_latest("default", workflow_id) for workflow_id in ("w", "v")]
    counts = await store.count()
    await store.close()
    return [(row.workflow_id, row.status, row.state_version) for row in rows if row is not None], counts.inbox


@pytest.mark.parametrize("point", UNHEARD)
async def test_X4_other_nodes_are_woken_after_the_commit(nodes: Nodes, point: Point) -> None:
    one = await nodes.open("one", ALL, [call])
    await nodes.open("two", ALL, [call])
    await one.start(on_go, workflow_id="w")
    await one.start(receiver, workflow_id="receiver")
    await nodes.clock.settle()
    nodes.gate.passed.clear()
    nodes.gate.shut(point)

    sending = asyncio.ensure_future(one.signal_workflow("w", "go"))
    await nodes.reached(point)
    await stay()
    before = list(nodes.gate.passed)
    nodes.gate.open(point)
    await sending
    await nodes.clock.settle()

    assert Point.WAKE not in before
    assert nodes.gate.passed.index(Point.COMMITTED) < nodes.gate.passed.index(Point.WAKE)
    assert await one.query_result("receiver") == 2


async def test_X4_a_delivery_to_another_nodes_inbox_is_answered_after_its_commit(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL, [call]), await nodes.open("two", ALL, [call])
    await one.start(receiver, workflow_id="receiver")
    nodes.pause("one")
    holding = asyncio.ensure_future(one.signal_workflow("receiver", "y", 0))
    await nodes.paused("one")
    nodes.gate.shut(Point.DELIVER_COMMIT)

    sending = asyncio.ensure_future(two.signal_workflow("receiver", "x", 1))
    await nodes.reached(Point.DELIVER_COMMIT)
    await stay()
    before = (sending.done(), len((await nodes.snapshot())["inbox"]))
    nodes.gate.open(Point.DELIVER_COMMIT)
    answer = await sending
    nodes.resume("one")
    await holding

    assert before == (False, 0)
    assert answer.signal_event_sequence is None


@pytest.mark.parametrize("action", [FaultAction.FAIL, FaultAction.LOST_UNKNOWN])
async def test_X4_a_turn_that_is_not_committed_starts_no_activity(nodes: Nodes, action: FaultAction) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(receiver, workflow_id="receiver")
    await engine.settle()
    nodes.faults["one"] = once(Point.COMMIT, action)

    with pytest.raises(StoreUnavailable):
        await engine.start(starter, workflow_id="w")
    await nodes.clock.advance(seconds=30)

    assert CALLS == []
    assert await engine.list(workflow=starter) == []
    assert (await engine.query_status("receiver")).status is Status.SUSPENDED


async def test_X4_a_commit_of_unknown_outcome_is_answered_when_it_is_known(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(receiver, workflow_id="receiver")
    await engine.settle()
    nodes.faults["one"] = once(Point.COMMIT, FaultAction.APPLIED_UNKNOWN)
    nodes.gate.shut(Point.WAS_COMMITTED)

    starting = asyncio.ensure_future(engine.start(starter, workflow_id="w"))
    await nodes.reached(Point.WAS_COMMITTED)
    await stay()
    before = (starting.done(), list(CALLS))
    nodes.gate.open(Point.WAS_COMMITTED)
    handle = await starting

    assert before == (False, [])
    assert handle.created
    assert await handle.result() == "first"
    assert CALLS == ["first"]


async def test_X4_an_activity_finds_its_own_scheduling_in_the_store(world: World) -> None:
    engine = await world.open([asks], [look])
    LOOKS["history"] = lambda: engine.history("w")

    seen = await (await engine.start(asks, workflow_id="w")).result()

    assert seen == ["WorkflowStarted", "ActivityScheduled"]


LOOKS: dict[str, Callable[[], Awaitable[History]]] = {}


@activity
async def look() -> list[str]:
    return (await LOOKS["history"]()).kinds


@workflow
async def asks(ctx: Context) -> list[str]:
    return await ctx.run(look)
