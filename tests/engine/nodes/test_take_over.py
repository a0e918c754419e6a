"""N1, N2: what a dead node was doing is taken over within seconds, by one node, once; what a living one does is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any, cast

import pytest

from holdfast import Context, Retry, activity, activity_info, workflow
from holdfast.errors import StoreUnavailable
from holdfast.store.contract import Store
from holdfast.store.memory.faults import Decide, FaultAction, Point
from holdfast.store.memory.store import MemoryStore
from holdfast.store.rows import ExecutionRow
from holdfast.testing import TestEngine
from tests.engine.support.counting_store import CountingStore
from tests.engine.support.held_activities import Door
from tests.eventually import eventually
from tests.rules.world import Nodes

DOOR = Door()
ATTEMPTS: list[tuple[str, int]] = []


@activity(retry=Retry(max_attempts=1))
async def slow(where: str) -> int:
    ATTEMPTS.append((where, activity_info().attempt))
    await DOOR.wait(where)
    return activity_info().attempt


@workflow
async def order(ctx: Context) -> int:
    return await ctx.run(slow, ctx.info.workflow_id)


@workflow
async def waiting(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@pytest.fixture(autouse=True)
def _forget() -> None:
    ATTEMPTS.clear()
    DOOR.begin_anew()


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    DOOR.open()
    await nodes.close()


async def open_node(nodes: Nodes, name: str, **options: Any) -> TestEngine:
    return await nodes.open(name, [order, waiting], [slow], patience=0.0, shutdown_grace=0.01, **options)


def fail_at(*points: Point) -> Decide:
    return lambda point, _node: FaultAction.FAIL if Point(point) in points else FaultAction.NONE


OUTAGE = fail_at(Point.BEGIN, Point.READ, Point.BEAT, Point.HOST_LOCK, Point.DELIVER_LOCK)


def rows_of(nodes: Nodes) -> list[str]:
    return sorted(nodes.database.tables.nodes)


# --- the dead ---


async def test_N1_work_of_a_killed_node_is_taken_over_within_ten_seconds(nodes: Nodes) -> None:
    a, b = await open_node(nodes, "a"), await open_node(nodes, "b")
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)
    await nodes.clock.advance(seconds=30)
    assert ATTEMPTS == [("order", 1)]

    await nodes.kill("a")
    await nodes.clock.advance(seconds=10)
    await eventually(lambda: len(ATTEMPTS) == 2)
    DOOR.open()

    assert await b.handle("order").result() == 2
    assert ATTEMPTS == [("order", 1), ("order", 2)]


async def test_N1_log_tells_how_many_executions_are_taken_over(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    a, _ = await open_node(nodes, "a"), await open_node(nodes, "b")
    for number in range(3):
        await a.start(order, workflow_id=f"order {number}")
    await eventually(lambda: len(ATTEMPTS) == 3)

    await nodes.kill("a")
    await nodes.clock.advance(seconds=10)
    await eventually(lambda: len(ATTEMPTS) == 6)

    assert [one.getMessage() for one in caplog.records if "takes over" in one.message] == [
        "node b takes over 3 executions from a"
    ]


async def test_node_of_which_nothing_is_left_is_forgotten(nodes: Nodes) -> None:
    a, _ = await open_node(nodes, "a"), await open_node(nodes, "b")
    await a.start(order)
    await eventually(lambda: ATTEMPTS)

    await nodes.kill("a")
    await nodes.clock.advance(seconds=30)

    assert rows_of(nodes) == ["b"]
    assert nodes.database.tables.host_locks == {}


async def test_take_over_is_one_nodes_business_at_a_time(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    watchers = [await open_counting(nodes, name) for name in ("b", "c", "d", "e")]
    for _ in range(20):
        await a.start(order)
    await eventually(lambda: len(ATTEMPTS) == 20)
    await nodes.clock.advance(seconds=30)
    for store in watchers:
        store.calls.clear()

    await nodes.kill("a")
    await nodes.clock.advance(seconds=30)

    assert len(ATTEMPTS) == 40
    assert rows_of(nodes) == ["b", "c", "d", "e"]
    assert 1 <= sum(store.calls["list_orphans"] for store in watchers) <= 4


async def test_nothing_is_searched_while_everybody_is_alive(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    store = await open_counting(nodes, "b")
    await a.start(order)
    await eventually(lambda: ATTEMPTS)
    store.calls.clear()

    await nodes.clock.advance(seconds=300)

    assert set(store.calls) == {"beat"}


async def open_counting(nodes: Nodes, name: str) -> CountingStore:
    """A node whose store counts what it is asked."""
    counting = CountingStore(MemoryStore(nodes.database, node=name))
    engine = TestEngine(
        cast("Store", counting),
        workflows=[order, waiting],
        activities=[slow],
        node=name,
        clock=nodes.clock,
        auto_advance=False,
        patience=0.0,
        shutdown_grace=0.01,
    )
    nodes.engines[name] = engine
    await engine.open()
    return counting


async def test_take_over_goes_on_when_the_node_dies_that_was_at_it(nodes: Nodes) -> None:
    a, b, _ = [await open_node(nodes, name) for name in ("a", "b", "c")]
    for number in range(3):
        await (a, b, a)[number].start(order, workflow_id=f"order-{number}")
    await eventually(lambda: len(ATTEMPTS) == 3)
    await nodes.clock.advance(seconds=30)

    # Whichever of the others has the lock dies with what it took over, before it has done anything about it.
    nodes.faults["b"] = nodes.faults["c"] = fail_at(Point.READ)
    await nodes.kill("a")
    await nodes.clock.advance(seconds=9)
    (holder, _until) = nodes.database.tables.host_locks["take-over"]
    other = "c" if holder == "b" else "b"
    await nodes.kill(holder)
    nodes.faults.clear()
    await nodes.clock.advance(seconds=12)
    DOOR.open()

    for number in range(3):
        assert await nodes.engines[other].handle(f"order-{number}").result() >= 1
    assert rows_of(nodes) == [other]


async def test_node_that_dies_a_second_time_is_taken_over_again(nodes: Nodes) -> None:
    a, _ = await open_node(nodes, "a"), await open_node(nodes, "b")
    await a.start(order, workflow_id="order")
    for deaths in range(1, 4):
        await eventually(lambda deaths=deaths: len(ATTEMPTS) == deaths)  # type: ignore[misc]
        (holder,) = (await nodes.engines["b"].query_status("order")).nodes
        await nodes.kill(holder)
        await nodes.clock.advance(seconds=12)
        await open_node(nodes, holder)
        await nodes.clock.advance(seconds=12)
    await eventually(lambda: len(ATTEMPTS) == 4)
    DOOR.open()

    assert await nodes.engines["b"].handle("order").result() == 4


@workflow
async def growing(ctx: Context) -> list[int]:
    first = ctx.run(slow, "first")
    await ctx.wait_for_signal("more")
    second = ctx.run(slow, "second")
    return [await first, await second]


async def test_node_that_was_thought_dead_and_then_dies_is_taken_over_again(nodes: Nodes) -> None:
    a = await nodes.open("a", [growing], [slow], patience=0.0)
    await nodes.clock.advance(seconds=1)
    b = await nodes.open("b", [growing], [slow], patience=0.0)
    await a.start(growing, workflow_id="w")
    await eventually(lambda: ATTEMPTS == [("first", 1)])
    await nodes.clock.advance(seconds=10)

    nodes.faults["a"] = fail_at(Point.BEAT)
    while len(ATTEMPTS) < 2:  # until b has taken over the first
        await nodes.clock.advance(seconds=1)
    nodes.faults.clear()
    await nodes.clock.advance(seconds=1)
    assert rows_of(nodes) == ["a", "b"], "it came back before it was forgotten"
    await nodes.clock.advance(seconds=4)
    await a.signal_workflow("w", "more")
    await eventually(lambda: ("second", 1) in ATTEMPTS)
    await nodes.kill("a")
    await nodes.clock.advance(seconds=12)
    await eventually(lambda: ("second", 2) in ATTEMPTS)
    DOOR.open()

    assert await b.handle("w").result() == [2, 2]


async def test_node_that_joins_while_another_looks_for_orphans_is_not_robbed(nodes: Nodes) -> None:
    class Slow(MemoryStore):
        async def list_orphans(self, alive: Collection[str], limit: int, after: str = "") -> list[ExecutionRow]:
            if "c" not in nodes.engines:
                await (await open_node(nodes, "c")).start(order, workflow_id="order")
            return await super().list_orphans(alive, limit, after)

    b = TestEngine(
        Slow(nodes.database, node="b"), workflows=[order], activities=[slow], node="b", clock=nodes.clock, auto_advance=False
    )
    nodes.engines["b"] = b
    report = await b.open()
    await nodes.clock.advance(seconds=20)

    assert report.taken_over == 0
    assert ATTEMPTS == [("order", 1)]


async def test_node_that_comes_back_under_its_name_finds_what_it_was_doing_at_once(nodes: Nodes) -> None:
    a, _ = await open_node(nodes, "a"), await open_node(nodes, "b")
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)

    await nodes.kill("a")
    again = await open_node(nodes, "a")
    await eventually(lambda: len(ATTEMPTS) == 2)
    DOOR.open()

    assert again.recovery_report is not None
    assert again.recovery_report.taken_over == 1
    assert await again.handle("order").result() == 2
    await nodes.clock.advance(seconds=30)
    assert len(ATTEMPTS) == 2, "nobody else took over what it had begun anew"


async def test_orphan_of_a_node_that_the_store_does_not_know_is_taken_over_on_opening(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)
    await nodes.kill("a")
    nodes.database.tables.nodes.clear()

    b = await open_node(nodes, "b")
    await eventually(lambda: len(ATTEMPTS) == 2)
    DOOR.open()

    assert await b.handle("order").result() == 2


async def test_what_nobody_here_can_do_is_passed_on_once_and_waits_for_who_can(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)
    b = await nodes.open("b", [waiting], patience=0.0)
    await nodes.clock.advance(seconds=10)

    await nodes.kill("a")
    await nodes.clock.advance(seconds=120)

    assert rows_of(nodes) == ["b"]
    assert len(nodes.database.tables.inbox) == 1
    assert (await b.query_status("order")).status == "running"
    await open_node(nodes, "c")
    await eventually(lambda: len(ATTEMPTS) == 2)
    DOOR.open()
    assert await nodes.engines["c"].handle("order").result() == 2


# --- the living ---


async def test_N2_after_an_outage_of_the_database_nobody_robs_anybody(nodes: Nodes) -> None:
    engines = [await open_node(nodes, name) for name in ("a", "b", "c")]
    for number, engine in enumerate(engines):
        await engine.start(order, workflow_id=f"order-{number}")
    await eventually(lambda: len(ATTEMPTS) == 3)
    await nodes.clock.advance(seconds=30)

    for name in nodes.engines:
        nodes.faults[name] = OUTAGE
    await nodes.clock.advance(seconds=60)
    nodes.faults.clear()
    await nodes.clock.advance(seconds=60)
    DOOR.open()

    assert [await engine.handle(f"order-{number}").result() for number, engine in enumerate(engines)] == [1, 1, 1]
    assert len(ATTEMPTS) == 3


async def test_N2_node_that_has_just_come_judges_nobody(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)
    nodes.faults["a"] = fail_at(Point.BEAT)
    await nodes.clock.advance(seconds=20)

    await open_node(nodes, "b")
    await nodes.clock.advance(seconds=5)
    assert ATTEMPTS == [("order", 1)], "it has not renewed its own lease for a whole period"

    await nodes.clock.advance(seconds=5)
    await eventually(lambda: len(ATTEMPTS) == 2)


async def test_result_of_a_node_that_was_cut_off_is_refused_once_another_took_over(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = await open_node(nodes, "a"), await open_node(nodes, "b")
    handle = await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)
    await nodes.clock.advance(seconds=10)

    nodes.faults["a"] = OUTAGE
    await nodes.clock.advance(seconds=20)
    await eventually(lambda: len(ATTEMPTS) == 2)
    nodes.faults.clear()
    await nodes.clock.advance(seconds=4)

    assert any("node a sent no heartbeat for" in message for message in caplog.messages)
    assert rows_of(nodes) == ["a", "b"], "it is back"
    DOOR.open()
    assert await b.handle("order").result() == 2
    assert await handle.result() == 2
    assert (await a.history("order")).kinds.count("ActivityCompleted") == 1


async def test_activities_go_on_while_the_database_is_away_and_their_results_are_handed_in_later(nodes: Nodes) -> None:
    a, b = await open_node(nodes, "a"), await open_node(nodes, "b")
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)
    await nodes.clock.advance(seconds=10)

    for name in nodes.engines:
        nodes.faults[name] = OUTAGE
    await nodes.clock.advance(seconds=20)
    DOOR.open()
    await eventually(lambda: DOOR.left)
    await nodes.clock.advance(seconds=20)
    (row,) = nodes.database.tables.executions.values()
    assert row.status == "running", "nothing could be committed"
    nodes.faults.clear()
    await nodes.clock.advance(seconds=10)

    assert await b.handle("order").result() == 1
    assert ATTEMPTS == [("order", 1)]


async def test_caller_is_told_that_the_database_is_away(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    nodes.faults["a"] = OUTAGE

    with pytest.raises(StoreUnavailable, match="Expected to reach the database"):
        await a.start(order)

    nodes.faults.clear()
    await nodes.clock.advance(seconds=10)
    DOOR.open()
    assert await asyncio.wait_for((await a.start(order)).result(), 10) == 1
