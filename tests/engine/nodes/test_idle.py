"""N2: an engine that has nothing to do does nothing: no query, no batch, whatever waits in the store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from holdfast import Context, Status, activity, workflow
from holdfast.core.instants import SECOND
from holdfast.engine.stores import make_store
from holdfast.engine.turns.batch_runner import UNSKIP_INTERVAL
from holdfast.store.contract import Store
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine, VirtualClock
from tests.engine.conftest import OpenEngine
from tests.engine.support.counting_store import CountingStore


@activity
async def work() -> None: ...


@workflow
async def waiting(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow
async def sleeping(ctx: Context, days: int) -> None:
    await ctx.sleep(timedelta(days=days))


@workflow(name="sleeping")
async def changed(ctx: Context, days: int) -> None:
    await ctx.run(work)


@workflow
async def working(ctx: Context) -> None:
    await ctx.run(work)


@workflow
async def choosing(ctx: Context) -> int:
    return await ctx.wait_for_signal("number", int)


Open = Callable[..., Any]


async def open_counting(open_engine: OpenEngine, store: Store, **options: Any) -> tuple[TestEngine, CountingStore]:
    counting = CountingStore(store)
    engine = await open_engine(waiting, sleeping, working, choosing, work, store=cast("Store", counting), **options)
    return engine, counting


async def test_N2_empty_engine_asks_nothing(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_counting(open_engine, make_store(url))
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(days=365)

    assert store.asked == {}


async def test_N2_engine_with_suspended_executions_asks_nothing(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_counting(open_engine, make_store(url))
    for _ in range(20):
        await engine.start(waiting)
        await engine.start(sleeping, 30)
        await (await engine.start(working)).result()
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(days=29)

    assert store.asked == {}


async def test_N2_engine_with_dead_letters_asks_nothing(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_counting(open_engine, make_store(url))
    await engine.start(choosing, workflow_id="c")
    for _ in range(3):
        await engine.signal_workflow("c", "number", "this is none")
    assert len(await engine.dead_letters()) == 3
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(days=365)

    assert store.asked == {}


async def test_N2_due_timer_costs_two_batches_and_one_look_at_the_next(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_counting(open_engine, make_store(url))
    await engine.start(sleeping, 1)
    await engine.start(sleeping, 3)
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(days=2)

    # Another worker has a look while the first is at work; if it finds that held, it looks once more.
    beside = 2 if engine.store.max_transactions > 1 else 0
    assert 1 <= store.calls["begin"] <= 2 + beside, "one that finds the timer, one that finds nothing more"
    assert store.calls["find_next_due"] <= 1 + beside
    assert store.asked.keys() <= {"begin", "find_next_due"}


async def test_N2_cancelled_timer_costs_one_look_when_it_would_have_been_due(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_counting(open_engine, make_store(url))
    handle = await engine.start(sleeping, 1)
    await handle.cancel()
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(days=365)

    assert store.calls["begin"] <= 1


async def test_N2_executions_that_cannot_go_on_here_are_not_looked_at_again(open_engine: OpenEngine, url: str) -> None:
    engine, store = await open_counting(open_engine, make_store(url))
    await engine.start(waiting, workflow_id="w")
    await engine.start(sleeping, 1, workflow_id="s")
    await engine.restart(workflows=[working])
    await engine.signal_workflow("w", "go")
    await engine.clock.advance(days=2)
    store.calls.clear()

    await engine.clock.advance(days=365)

    # On a shared store a node looks twice, with heartbeats, to warn of work that nobody takes (O7).
    assert store.calls["read_backlog"] <= (0 if store.exclusive else 2)
    assert store.asked.keys() <= (set() if store.exclusive else {"read_backlog", "list_nodes", "take_lock"})


@pytest.mark.parametrize("url", ["memory", "postgres"], indirect=True)
async def test_N2_inbox_of_a_blocked_execution_costs_a_look_per_heartbeat(open_engine: OpenEngine, url: str) -> None:
    clock = VirtualClock()
    shared = MemoryStore(node="a") if url == "memory://" else make_store(url, clock.now)
    engine, store = await open_counting(open_engine, shared, clock=clock)
    await engine.start(sleeping, 1, workflow_id="s")
    await engine.restart(workflows=[changed])
    await engine.signal_workflow("s", "go")
    await engine.signal_workflow("s", "go")
    assert (await engine.query_status("s")).status is Status.BLOCKED
    await engine.clock.advance(seconds=40)
    store.calls.clear()

    await engine.clock.advance(seconds=300)

    pulses, unskips = 300 / engine.config.heartbeat, 300 * SECOND / UNSKIP_INTERVAL
    assert unskips - 1 <= store.calls["find_next_due"] <= pulses + 2 * unskips, (
        "a look each, and one more when it is unskipped"
    )


@pytest.mark.parametrize("url", ["memory", "postgres"], indirect=True)
async def test_N2_node_on_a_shared_store_is_heard_by_its_pulse_alone(open_engine: OpenEngine, url: str) -> None:
    clock = VirtualClock()
    shared = MemoryStore(node="a") if url == "memory://" else make_store(url, clock.now)
    engine, store = await open_counting(open_engine, shared, clock=clock)
    await engine.start(waiting)
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(seconds=60)

    pulses = 60 / engine.config.heartbeat
    assert store.calls["beat"] == pytest.approx(pulses, abs=1)
    assert max(store.calls.values()) <= pulses + 1
