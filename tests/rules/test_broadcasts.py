"""B1 to B4: a broadcast signal reaches everybody who waits for it at that moment, each exactly once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Broadcast, BroadcastSignal, Context, InvalidArguments, WorkflowFailed, workflow
from holdfast.store.memory.faults import FaultAction, Point
from tests.eventually import eventually
from tests.rules.spreads import shrink_spreads
from tests.rules.world import Nodes, World, once


@workflow
async def listener(ctx: Context, name: str = "news") -> Any:
    return await ctx.wait_for_broadcast(name)


@workflow
async def two_in_a_row(ctx: Context) -> list[Any]:
    return [await ctx.wait_for_broadcast("news"), await ctx.wait_for_broadcast("news")]


@workflow
async def fragile(ctx: Context) -> None:
    await ctx.wait_for_broadcast("news")
    raise ValueError("cannot bear it")


@workflow
async def thrower(ctx: Context) -> list[Any]:
    own = asyncio.create_task(_catch(ctx))
    await asyncio.sleep(0)
    answer = await ctx.broadcast_signal("news", 5)
    return [await own, answer.delivered, answer.started]


async def _catch(ctx: Context) -> Any:
    return await ctx.wait_for_broadcast("news")


@workflow(starts_on=BroadcastSignal("news"))
async def started(ctx: Context, value: int) -> int:
    return value


# --- B1 -------------------------------------------------------------------------------------------------------------------


async def test_B1_every_subscriber_gets_it_and_every_start_is_made(world: World) -> None:
    engine = await world.open([listener, started])
    waiting = [await engine.start(listener) for _ in range(3)]
    other = await engine.start(listener, "other")

    answer = await engine.broadcast_signal("news", 7)

    assert answer == Broadcast(delivered=3, started=1)
    assert [await one.result() for one in waiting] == [7, 7, 7]
    assert (await other.status()).status == "suspended"
    (born,) = await engine.list(workflow=started)
    assert await engine.handle(born.execution_id).result() == 7


async def test_B1_value_that_is_no_input_is_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open([listener, started])
    waiting = await engine.start(listener)

    with pytest.raises(InvalidArguments, match="value"):
        await engine.broadcast_signal("news", "no number")

    assert (await waiting.status()).status == "suspended"
    assert await engine.list(workflow=started) == []


async def test_B1_request_id_makes_a_repeated_call_safe(world: World) -> None:
    engine = await world.open([listener, started])
    await engine.start(listener)

    answers = [await engine.broadcast_signal("news", 1, request_id="r") for _ in range(2)]

    await engine.settle()
    assert answers == [Broadcast(1, 1)] * 2
    assert len(await engine.list(workflow=started)) == 1


async def test_I5_broadcasts_of_one_org_do_not_reach_another(world: World) -> None:
    engine = await world.open([listener])
    blue = await engine.start(listener, org="blue")
    red = await engine.start(listener, org="red")

    assert (await engine.broadcast_signal("news", 1, org="blue")).delivered == 1

    assert await blue.result() == 1
    assert (await red.status()).status == "suspended"


async def test_B1_start_counts_only_while_a_node_that_has_it_lives(nodes: Nodes) -> None:
    plain = await nodes.open("plain", [listener])
    await nodes.open("starter", [started])

    assert await plain.broadcast_signal("news", 1) == Broadcast(0, 1)

    await nodes.engines.pop("starter").shutdown()
    assert await plain.broadcast_signal("news", 1) == Broadcast(0, 0)


# --- B2 -------------------------------------------------------------------------------------------------------------------


async def test_B2_failing_subscriber_does_not_touch_the_others(world: World) -> None:
    engine = await world.open([listener, fragile])
    good = [await engine.start(listener) for _ in range(2)]
    bad = await engine.start(fragile)

    assert (await engine.broadcast_signal("news", 1)).delivered == 3

    assert [await one.result() for one in good] == [1, 1]
    with pytest.raises(WorkflowFailed):
        await bad.result()


async def test_B2_workflow_catches_a_signal_that_it_throws_itself(world: World) -> None:
    engine = await world.open([thrower, listener, started])
    other = await engine.start(listener)

    result = await (await engine.start(thrower)).result()

    assert result == [5, 2, 1]
    assert await other.result() == 5


async def test_B2_many_subscribers_get_it_in_batches_each_once(alone: World, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_spreads(monkeypatch, 20)
    engine = await alone.open([listener])
    waiting = [await engine.start(listener) for _ in range(70)]

    assert (await engine.broadcast_signal("news", 3)).delivered == 70

    assert [await one.result() for one in waiting] == [3] * 70


async def test_B2_what_is_not_spread_yet_survives_a_crash(alone: World, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_spreads(monkeypatch, 20)
    engine = await alone.open([listener])
    waiting = [str((await engine.start(listener)).execution_id) for _ in range(70)]

    await engine.broadcast_signal("news", 3)
    await engine.restart()

    assert [await engine.handle(one).result() for one in waiting] == [3] * 70


async def test_B2_node_that_dies_after_the_turn_that_threw_it_loses_nothing(nodes: Nodes) -> None:
    if type(nodes) is not Nodes:
        pytest.skip("where a node dies within a statement is chosen in memory alone")
    first = await nodes.open("first", [thrower, listener])
    await nodes.open("second", [thrower, listener])
    waiting = await first.start(listener)
    await first.settle()
    struck: list[str] = []

    def die_before_publishing(point: str, _node: str) -> FaultAction:
        if point != Point.PUBLISH_LOCK or struck:
            return FaultAction.NONE
        struck.append(point)
        return FaultAction.CRASH

    nodes.faults["first"] = die_before_publishing
    handle = await first.start(thrower)
    await eventually(lambda: struck)
    await nodes.kill("first")
    await nodes.take_over()

    second = nodes.engines["second"]
    assert await second.handle(str(waiting.execution_id)).result() == 5
    assert (await second.handle(str(handle.execution_id)).result())[:2] == [5, 2]


# --- B3, B4 ---------------------------------------------------------------------------------------------------------------


async def test_B3_nobody_subscribed_is_0_and_nothing_is_kept(world: World) -> None:
    engine = await world.open([listener])

    assert await engine.broadcast_signal("news", 1) == Broadcast(0, 0)

    late = await engine.start(listener)
    assert (await late.status()).status == "suspended"


async def test_B3_subscription_is_used_once_and_waiting_again_subscribes_again(world: World) -> None:
    engine = await world.open([two_in_a_row])
    handle = await engine.start(two_in_a_row)

    await engine.broadcast_signal("news", 1)
    await eventually(lambda: _has_taken(engine, handle.execution_id, 1))
    await engine.broadcast_signal("news", 2)

    assert await handle.result() == [1, 2]


async def _has_taken(engine: Any, execution_id: str | None, count: int) -> bool:
    kinds: list[str] = (await engine.history(str(execution_id))).kinds
    return kinds.count("SubscriptionTriggered") == count and kinds.count("Subscribed") == count + 1


async def test_B4_turn_that_is_taken_again_subscribes_once(nodes: Nodes) -> None:
    nodes.faults["one"] = once(Point.COMMIT, FaultAction.APPLIED_UNKNOWN)
    engine = await nodes.open("one", [listener])
    handle = await engine.start(listener)

    assert (await engine.broadcast_signal("news", 1)).delivered == 1
    assert await handle.result() == 1
