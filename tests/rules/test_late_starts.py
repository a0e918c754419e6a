"""M1, M2: a message that was kept while nobody had the workflow that it starts does so when a node comes that has it."""

from __future__ import annotations

from typing import Any

from holdfast import Context, Message, MessageOutcome, workflow
from holdfast.core.instants import SECOND
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.publications import StartSubscriptionRow
from holdfast.testing import TestEngine
from tests.eventually import eventually
from tests.rules.world import Nodes, World
from tests.store.topics import make_publication, publishable

STARTED, KEPT = MessageOutcome(started=True), MessageOutcome(kept=True)


@workflow(starts_on=Message("order"))
async def order(ctx: Context, item: str) -> str:
    await ctx.wait_for_signal("done")
    return item


async def finish(engine: TestEngine, key: str) -> Any:
    """Let the execution under a key end, once there is one; its result."""
    await eventually(lambda: has_open(engine, key))
    handle = engine.handle(key)
    await handle.signal("done")
    return await handle.result()


async def has_open(engine: TestEngine, key: str) -> bool:
    return any(one.workflow_id == key and one.closed_at is None for one in await engine.list())


async def list_kept(engine: TestEngine) -> list[str]:
    return [row.key for row in await engine.store.list_pending("default", "message", "order", 0)]


async def test_M2_message_kept_while_no_node_had_the_workflow_starts_it_later(world: World) -> None:
    engine = await world.open()
    for item in ("tea", "milk"):
        assert await engine.send_message("order", "a", item, ttl=600) == KEPT
    assert await engine.send_message("order", "b", "bread", ttl=600) == KEPT

    engine.add_workflow(order)

    assert [await finish(engine, key) for key in ("a", "b", "a")] == ["tea", "bread", "milk"]
    assert await list_kept(engine) == []


async def test_M1_messages_kept_while_nobody_had_the_workflow_stay_in_their_place(world: World) -> None:
    engine = await world.open([order])
    assert await engine.send_message("order", "a", "0", ttl=600) == STARTED
    for item in ("1", "2"):  # they start something when the first has ended
        assert await engine.send_message("order", "a", item, ttl=600) == KEPT
    engine.remove_workflow("order")
    for item in ("3", "4"):
        assert await engine.send_message("order", "a", item, ttl=600) == KEPT

    engine.add_workflow(order)
    await engine.settle()

    assert await engine.send_message("order", "a", "5", ttl=600) == KEPT
    assert [await finish(engine, "a") for _ in range(6)] == ["0", "1", "2", "3", "4", "5"]


async def test_M2_node_that_was_late_matches_what_was_kept_meanwhile() -> None:
    """Others took it for dead, and nobody removed it. In memory, where heartbeats go by virtual time."""
    nodes = Nodes()
    engine = await nodes.open("one", [order])
    nodes.faults["one"] = lambda point, _: FaultAction.FAIL if point == Point.BEAT else FaultAction.NONE
    await nodes.clock.advance(seconds=7)
    now = nodes.clock.now()
    kept = make_publication("message", "order", "tea", key="a", sent_at=now, expires_at=now + 600 * SECOND)
    onlooker = await nodes.open_onlooker()
    transaction = await onlooker.begin()
    await transaction.publish([publishable(kept, org="default")], now)
    await transaction.commit()
    await onlooker.close()

    nodes.faults.clear()
    for _ in range(3):
        await nodes.clock.advance(seconds=2)

    assert await finish(engine, "a") == "tea"
    await nodes.close()


async def test_M2_message_kept_by_an_earlier_process_starts_its_workflow(on_file: World) -> None:
    early = await on_file.open()
    assert await early.send_message("order", "a", "tea", ttl=600) == KEPT
    await early.shutdown()

    engine = await on_file.open([order])

    assert await finish(engine, "a") == "tea"


async def test_M2_later_message_does_not_overtake_one_that_is_kept(nodes: Nodes) -> None:
    """Nobody has come to the kept ones yet: the newer one brings the first of them along."""
    early = await nodes.open("early")
    for item in ("tea", "milk"):
        assert await early.send_message("order", "a", item, ttl=600) == KEPT
    onlooker = await nodes.open_onlooker()
    await onlooker.put_starts("early", [StartSubscriptionRow("message", "order", "order", "default", "")])
    await onlooker.close()

    assert await early.send_message("order", "a", "bread", ttl=600) == KEPT

    late = await nodes.open("late", [order])
    assert [await finish(late, "a") for _ in range(3)] == ["tea", "milk", "bread"]
    assert await list_kept(late) == []


async def test_M2_of_several_nodes_that_come_at_once_each_kept_message_starts_one(nodes: Nodes) -> None:
    early = await nodes.open("early")
    keys = [f"k{number}" for number in range(5)]
    for key in keys:
        assert await early.send_message("order", key, key, ttl=600) == KEPT

    engines = [await nodes.open(name, [order]) for name in ("one", "two")]

    assert [await finish(engines[0], key) for key in keys] == keys
    assert await list_kept(engines[0]) == []
    assert len([one for one in await engines[1].list() if one.workflow == "order"]) == len(keys)


async def test_M2_kept_message_that_is_no_input_for_its_workflow_becomes_a_dead_letter(world: World) -> None:
    engine = await world.open()
    assert await engine.send_message("order", "a", 7, ttl=600) == KEPT
    assert await engine.send_message("order", "b", "tea", ttl=600) == KEPT

    engine.add_workflow(order)

    assert await finish(engine, "b") == "tea"
    (letter,) = await eventually(engine.dead_letters)
    assert "order" in letter.reason
    assert await engine.send_message("order", "a", "milk", ttl=600) == STARTED
