"""D3: closed executions are removed past their window, in small batches, on one node at a time; open work never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, Engine, ExecutionInfo, workflow
from holdfast.core.instants import Instant
from holdfast.engine.nodes.retention import BATCH
from holdfast.errors import ExecutionNotFound, InvalidConfiguration
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.counting_store import CountingStore
from tests.eventually import eventually
from tests.rules.world import Nodes

HOUR = timedelta(hours=1)


@workflow
async def quick(ctx: Context) -> str:
    return "done"


@workflow
async def waiting(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow
async def sleeping(ctx: Context) -> None:
    await ctx.sleep(timedelta(days=30))


WORKFLOWS = [quick, waiting, sleeping]


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    await nodes.close()


async def find_ids(engine: Engine) -> list[str]:
    infos: list[ExecutionInfo] = await engine.list(limit=10_000)
    return sorted(info.workflow_id for info in infos)


async def end(engine: TestEngine, *ids: str) -> None:
    for workflow_id in ids:
        await (await engine.start(quick, workflow_id=workflow_id)).result()


async def test_D3_what_closed_is_kept_for_the_window_and_not_longer(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, retention=HOUR)
    await end(engine, "early")
    await engine.clock.advance(minutes=30)
    await end(engine, "late")

    await engine.clock.advance(minutes=29)
    assert await find_ids(engine) == ["early", "late"]
    await engine.clock.advance(minutes=2)
    assert await find_ids(engine) == ["late"]
    await engine.clock.advance(minutes=30)
    assert await find_ids(engine) == []
    with pytest.raises(ExecutionNotFound):
        await engine.history("early")


async def test_D3_open_work_is_never_touched(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, retention=HOUR)
    await engine.start(waiting, workflow_id="waiting")
    await engine.start(sleeping, workflow_id="sleeping")
    await end(engine, "done")

    await engine.clock.advance(days=29)

    assert await find_ids(engine) == ["sleeping", "waiting"]
    await engine.signal_workflow("waiting", "go")
    assert await engine.handle("waiting").result() is None
    assert await engine.store.check() == []


async def test_D3_nothing_is_removed_unless_asked_for(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS)
    await end(engine, "done")

    await engine.clock.advance(days=3_650)

    assert await find_ids(engine) == ["done"]


async def test_D3_engine_that_opens_removes_what_is_due_by_then(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, retention=HOUR)
    await end(engine, *(f"done-{number}" for number in range(5)))
    await engine.start(waiting, workflow_id="waiting")
    await engine.crash()
    await engine.clock.advance(hours=2)

    await engine.restart()
    await engine.settle()

    assert await find_ids(engine) == ["waiting"]


async def test_D3_batches_are_small_and_have_pauses_between_them(open_engine: OpenEngine, url: str) -> None:
    from holdfast.engine.stores import make_store

    store = CountingStore(make_store(url))
    engine = await open_engine(*WORKFLOWS, retention=HOUR, store=store)
    count = 2 * BATCH + 7
    for number in range(count):
        await engine.start(quick, workflow_id=f"done-{number:04}")
    await engine.clock.advance(minutes=59)
    store.calls.clear()
    assert len(await find_ids(engine)) == count

    left = [count]
    for _ in range(200):
        await engine.clock.advance(seconds=0.6)
        found = len(await find_ids(engine))
        if found != left[-1]:
            left.append(found)
    assert left[-1] == 0
    assert store.calls["purge"] == 3
    await engine.clock.advance(hours=3)
    assert store.calls["purge"] == 3, "nothing is polled"


async def test_D3_window_that_nothing_fills_costs_nothing(open_engine: OpenEngine, url: str) -> None:
    from holdfast.engine.stores import make_store

    store = CountingStore(make_store(url))
    engine = await open_engine(*WORKFLOWS, retention=HOUR, store=store)
    await engine.start(waiting)
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(days=365)

    # On a shared store a node looks once in a window, for what nobody told of.
    assert store.asked.keys() <= (set() if store.exclusive else {"find_oldest_closed"})


async def test_D3_what_closes_while_it_is_asked_what_is_due_is_removed_too() -> None:
    has_read, may_answer = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        async def find_oldest_closed(self) -> Instant | None:
            found = await super().find_oldest_closed()
            has_read.set()
            await may_answer.wait()
            return found

    async with TestEngine(Slow(exclusive=True), workflows=WORKFLOWS, retention=HOUR, auto_advance=False) as engine:
        await has_read.wait()
        await end(engine, "done")
        may_answer.set()
        await engine.clock.advance(hours=1, minutes=1)

        assert await find_ids(engine) == []


# --- several nodes ---


async def open_nodes(nodes: Nodes, *names: str, **options: Any) -> list[TestEngine]:
    return [await nodes.open(name, WORKFLOWS, retention=HOUR, **options) for name in names]


async def test_D3_one_node_at_a_time_removes(nodes: Nodes) -> None:
    engines = await open_nodes(nodes, "a", "b", "c")
    await nodes.clock.advance(seconds=3)
    for number, engine in enumerate(engines * 5):
        await end(engine, f"done-{number}")

    await nodes.clock.advance(hours=1, minutes=2)

    assert await find_ids(engines[0]) == []
    assert sum(hooks.count_removed(engine) for engine in engines) == 15
    assert "retention" not in nodes.database.tables.host_locks


async def test_D3_another_node_goes_on_when_the_one_dies_that_was_at_it(nodes: Nodes) -> None:
    a, b = await open_nodes(nodes, "a", "b")
    await nodes.clock.advance(seconds=3)
    await end(a, *(f"done-{number}" for number in range(3)))
    for name in ("a", "b"):
        nodes.faults[name] = lambda point, _node: FaultAction.FAIL if point == Point.PURGE_LOCK else FaultAction.NONE
    await nodes.clock.advance(hours=1, seconds=5)
    (holder, _) = nodes.database.tables.host_locks["retention"]

    await nodes.kill(holder)
    nodes.faults.clear()
    await nodes.clock.advance(minutes=3)

    (other,) = nodes.engines.values()
    assert await find_ids(other) == []
    assert other in (a, b)


async def test_D3_what_a_dead_node_closed_is_removed_by_another(nodes: Nodes) -> None:
    (a,) = await open_nodes(nodes, "a")
    (b,) = await open_nodes(nodes, "b")
    await end(a, "done")
    await nodes.kill("a")

    await nodes.clock.advance(hours=1, minutes=2)

    assert await find_ids(b) == []


async def test_D3_removing_goes_on_after_an_outage(nodes: Nodes) -> None:
    (a,) = await open_nodes(nodes, "a")
    await end(a, "done")
    await nodes.clock.advance(minutes=59)
    nodes.faults["a"] = lambda point, _node: FaultAction.FAIL if point == Point.READ else FaultAction.NONE
    await nodes.clock.advance(minutes=2)
    nodes.faults.clear()
    assert await find_ids(a) == ["done"]

    await nodes.clock.advance(minutes=2)

    assert await find_ids(a) == []


# --- in real time ---


async def test_D3_on_a_database(postgres_url: str) -> None:
    async with Engine(postgres_url, workflows=WORKFLOWS, retention=0.2) as engine:
        await engine.start(waiting, workflow_id="waiting")
        for number in range(20):
            await (await engine.start(quick, workflow_id=f"done-{number}")).result()

        async def has_gone() -> bool:
            return await find_ids(engine) == ["waiting"]

        await eventually(has_gone)
        assert await engine.store.check() == []


# --- bad input ---


@pytest.mark.parametrize("retention", [0, -1, "30d", float("nan"), timedelta(0), timedelta(days=-1), True, 1e12])
def test_bad_retention_is_refused(retention: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"^Expected retention=… to be a timedelta or a positive number "):
        Engine("memory://", retention=retention)


@pytest.mark.parametrize("retention", [3600, 3600.0, HOUR])
def test_retention_is_given_in_seconds_or_as_a_timedelta(retention: Any) -> None:
    assert Engine("memory://", retention=retention).config.retention == 3600.0
