"""A node that leaves takes no more work, finishes what it can, hands over the rest, and says goodbye."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Engine, Retry, Workflow, activity, activity_info, workflow
from holdfast.errors import EngineClosed
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.support import worker_main
from tests.engine.support.held_activities import Door
from tests.engine.support.worker_processes import run_worker
from tests.eventually import eventually
from tests.rules.world import Nodes

DOOR = Door()
SECOND_DOOR = Door()
ATTEMPTS: list[tuple[str, int]] = []


@activity(retry=Retry(max_attempts=1))
async def slow() -> int:
    info = activity_info()
    ATTEMPTS.append((info.workflow_id, info.attempt))
    await DOOR.wait()
    return info.attempt


@activity(retry=Retry(max_attempts=1))
async def note(word: str) -> str:
    return word


@workflow
async def order(ctx: Context) -> int:
    return await ctx.run(slow)


@workflow
async def chain(ctx: Context) -> list[Any]:
    return [await ctx.run(slow), await ctx.run(note, "then")]


@activity(retry=Retry(max_attempts=1))
async def brief() -> int:
    info = activity_info()
    ATTEMPTS.append((info.workflow_id, info.attempt))
    await SECOND_DOOR.wait()
    return info.attempt


@workflow
async def pair(ctx: Context) -> list[Any]:
    return [await ctx.run(brief), await ctx.run(note, "then")]


@workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


WORKFLOWS: list[Workflow[..., Any]] = [order, chain, pair, waiting]


@pytest.fixture(autouse=True)
def _forget() -> None:
    ATTEMPTS.clear()
    DOOR.begin_anew()
    SECOND_DOOR.shut()


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    DOOR.open()
    await nodes.close()


async def open_two(nodes: Nodes, grace: float) -> tuple[TestEngine, TestEngine]:
    """Two nodes that know of each other."""
    a, b = [
        await nodes.open(name, [order, chain, pair, waiting], [slow, note, brief], patience=0.0, shutdown_grace=grace)
        for name in "ab"
    ]
    await nodes.clock.advance(seconds=3)
    return a, b


# --- handing over ---


async def test_what_takes_longer_than_the_grace_begins_elsewhere_at_once(nodes: Nodes) -> None:
    a, b = await open_two(nodes, grace=0.01)
    for number in range(3):
        await a.start(order, workflow_id=f"order-{number}")
    await eventually(lambda: len(ATTEMPTS) == 3)
    began = nodes.clock.now()

    await a.shutdown()
    await eventually(lambda: len(ATTEMPTS) == 6)
    DOOR.open()

    assert [await b.handle(f"order-{number}").result() for number in range(3)] == [2, 2, 2]
    assert nodes.clock.now() == began, "no lease had to run out"
    assert "ActivityFailed" not in (await b.history("order-0")).kinds


async def test_what_ends_within_the_grace_is_committed_and_goes_on_elsewhere(nodes: Nodes) -> None:
    a, b = await open_two(nodes, grace=30.0)
    await a.start(chain, workflow_id="chain")
    await eventually(lambda: ATTEMPTS)

    leaving = asyncio.create_task(a.shutdown())
    await asyncio.sleep(0)
    DOOR.open()
    await leaving

    assert await asyncio.wait_for(b.handle("chain").result(), 60) == [1, "then"]
    assert ATTEMPTS == [("chain", 1)]


async def test_what_follows_within_the_grace_begins_elsewhere_at_once(nodes: Nodes) -> None:
    a, b = await open_two(nodes, grace=30.0)
    await a.start(order, workflow_id="order")
    await a.start(pair, workflow_id="pair")
    await eventually(lambda: len(ATTEMPTS) == 2)

    leaving = asyncio.create_task(a.shutdown())
    await asyncio.sleep(0)
    SECOND_DOOR.open()

    assert await asyncio.wait_for(b.handle("pair").result(), 60) == [1, "then"]
    assert not leaving.done(), "it still lets the other activity finish"
    DOOR.open()
    await leaving


async def test_node_that_leaves_takes_no_more_work(nodes: Nodes) -> None:
    a, b = await open_two(nodes, grace=30.0)
    await a.start(order, workflow_id="order")
    await a.start(waiting, workflow_id="w")
    await eventually(lambda: ATTEMPTS)
    taken = nodes.commits

    leaving = asyncio.create_task(a.shutdown())
    await asyncio.sleep(0)
    taken.clear()
    await nodes.put_into_inbox((await b.query_status("w")).execution_id, hooks.make_signal(a, "go", "went"))
    await eventually(lambda: any(commit.turns for commit in nodes.commits))
    (turn,) = [turn for commit in taken for turn in commit.turns]

    assert b'"last_node":"b"' in turn.row.details
    assert not leaving.done(), "it still lets its activity finish"
    DOOR.open()
    await leaving


async def test_node_that_left_is_forgotten_once_nothing_is_left_of_it(nodes: Nodes) -> None:
    a, b = await open_two(nodes, grace=0.01)
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)

    await a.shutdown()
    assert {one.node: one.state for one in await b.nodes()} == {"a": "left", "b": "alive"}
    await nodes.clock.advance(seconds=6)

    assert [one.node for one in await b.nodes()] == ["b"]
    assert len(ATTEMPTS) == 2, "what was handed over is not taken over as well"


async def test_node_that_cannot_say_goodbye_ends_all_the_same(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    a, _ = await open_two(nodes, grace=0.01)
    await a.start(order, workflow_id="order")
    await eventually(lambda: ATTEMPTS)
    nodes.faults["a"] = lambda point, _node: FaultAction.FAIL if point == Point.BEAT else FaultAction.NONE

    await a.shutdown()
    nodes.faults.clear()

    assert any("node a could not leave cleanly" in message for message in caplog.messages)
    await nodes.clock.advance(seconds=12)
    await eventually(lambda: len(ATTEMPTS) == 2)


async def test_engine_on_a_store_of_its_own_tells_whether_it_ended_in_good_order(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'app.db'}"
    async with Engine(url, node="first") as engine:
        assert [(one.node, one.state) for one in await engine.nodes()] == [("first", "alive")]
    async with TestEngine(url, node="second") as engine:
        await engine.clock.advance(hours=1)
        assert [(one.node, one.state, one.seen_ago) for one in await engine.nodes()] == [("second", "alive", 0)]
        await engine.crash()
    async with Engine(url, node="third") as engine:
        assert [one.node for one in await engine.nodes()] == ["third"]


# --- being told to ---


async def test_stop_ends_the_wait_and_shuts_down(tmp_path: Path) -> None:
    engine = Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[waiting])
    working = asyncio.create_task(engine.run_until_stopped())
    await eventually(lambda: engine.is_open)

    threading.Thread(target=engine.stop).start()
    await asyncio.wait_for(working, 10)

    with pytest.raises(EngineClosed):
        await engine.list()


async def test_stop_that_comes_first_counts(tmp_path: Path) -> None:
    engine = Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[waiting])
    engine.stop()

    await asyncio.wait_for(engine.run_until_stopped(), 10)

    with pytest.raises(EngineClosed):
        await engine.open()


async def test_handlers_of_signals_are_as_before_afterwards(tmp_path: Path) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    engine = Engine(f"sqlite:///{tmp_path / 'app.db'}")
    working = asyncio.create_task(engine.run_until_stopped())
    await eventually(lambda: engine.is_open)

    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(working, 10)

    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == before


async def test_wait_that_is_cancelled_shuts_down_too(tmp_path: Path) -> None:
    engine = Engine(f"sqlite:///{tmp_path / 'app.db'}")
    working = asyncio.create_task(engine.run_until_stopped())
    await eventually(lambda: engine.is_open)

    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working

    assert not engine.is_open


# --- processes ---


@pytest.fixture(params=["sqlite", "postgres"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'app.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


def open_here(url: str) -> Engine:
    return Engine(url, workflows=worker_main.WORKFLOWS, activities=worker_main.ACTIVITIES, heartbeat=0.2, lease=1.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_lets_activities_finish_and_nothing_is_lost(
    any_url: str, tmp_path: Path, number: signal.Signals
) -> None:
    jobs = ["order:one:0.5", "order:two:0.7", "chain:three:0.6"]
    with run_worker(any_url, tmp_path, 10, *jobs) as worker:
        worker.read_until("open", "begun one 1", "begun two 1", "begun three 1")
        worker.tell(number)
        code, said = worker.wait()

    assert code == 0
    assert said.endswith("stopped\n")
    async with open_here(any_url) as engine:
        assert await engine.handle("one").result() == 1
        assert await engine.handle("two").result() == 1
        assert (await engine.handle("three").result())[0] == 1, "what it had done counts, and it goes on"
        assert (await engine.history("one")).kinds.count("ActivityCompleted") == 1


async def test_activities_that_exceed_the_grace_go_on_after_the_restart_unfailed(any_url: str, tmp_path: Path) -> None:
    with run_worker(any_url, tmp_path, 0.1, "order:one:60") as worker:
        worker.read_until("open", "begun one 1")
        worker.tell(signal.SIGTERM)
        code, _ = worker.wait()

    assert code == 0
    async with open_here(any_url) as engine:
        assert await asyncio.wait_for(engine.handle("one").result(), 60) == 2
        assert "ActivityFailed" not in (await engine.history("one")).kinds
    assert (tmp_path / "one").read_text() == "1\n2\n"


async def test_second_signal_ends_the_process_at_once(any_url: str, tmp_path: Path) -> None:
    with run_worker(any_url, tmp_path, 100, "order:one:100") as worker:
        worker.read_until("open", "begun one 1")
        worker.tell(signal.SIGTERM)
        assert worker.process.stderr is not None
        while "shutting down" not in worker.process.stderr.readline():
            pass
        began = time.monotonic()
        worker.tell(signal.SIGTERM)
        code, said = worker.wait()

    assert code == -signal.SIGTERM
    assert "stopped" not in said
    assert time.monotonic() - began < 50, "it waited neither for the activity nor for the grace"
    async with open_here(any_url) as engine:
        assert await asyncio.wait_for(engine.handle("one").result(), 60) == 2


async def test_worker_that_is_told_to_stop_hands_over_to_another_node_at_once(postgres_url: str, tmp_path: Path) -> None:
    async with open_here(postgres_url) as engine:
        with run_worker(postgres_url, tmp_path, 0.1, "order:one:60", "order:two:60") as worker:
            await asyncio.to_thread(worker.read_until, "open", "begun one 1", "begun two 1")
            await eventually(lambda: "worker" in hooks.peers_of(engine))
            worker.tell(signal.SIGTERM)
            code, _ = await asyncio.to_thread(worker.wait)

            assert code == 0
            assert await asyncio.wait_for(engine.handle("one").result(), 60) == 2
            assert await asyncio.wait_for(engine.handle("two").result(), 60) == 2
