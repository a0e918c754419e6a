"""N1: a commit whose answer is lost on the way. Whoever asked is told what is true, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import Context, Engine, activity, workflow
from holdfast.errors import StoreUnavailable
from holdfast.store.contract import ExecutionFilter
from tests.eventually import eventually
from tests.postgres.proxy import Proxy, is_commit
from tests.postgres.server import PostgresServer

RUNS: list[int] = []


@activity
async def count(number: int) -> int:
    RUNS.append(number)
    return number


@workflow
async def collect(ctx: Context) -> list[int]:
    taken: list[int] = []
    while (number := await ctx.wait_for_signal("number", int)) >= 0:
        taken.append(await ctx.run(count, number))
    return taken


@pytest.fixture(autouse=True)
def _forget() -> None:
    RUNS.clear()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(postgres_url) as proxy:
        yield proxy


def open_engine(url: str, node: str = "a") -> Engine:
    return Engine(url, workflows=[collect], activities=[count], node=node, heartbeat=0.2, lease=5.0)


async def signal_until_accepted(engine: Engine, number: int) -> int:
    """As a caller does who must not lose it: again, if nothing was stored; how often it was tried."""
    for tries in range(1, 50):
        try:
            await engine.signal_workflow("one", "number", number)
        except StoreUnavailable:
            await asyncio.sleep(0.02)
            continue
        return tries
    raise AssertionError("never accepted")


async def finish(engine: Engine) -> Any:
    await signal_until_accepted(engine, -1)
    return await engine.handle("one").result()


async def test_N1_signal_whose_commit_happened_unheard_is_accepted_once(proxy: Proxy) -> None:
    async with open_engine(proxy.url) as engine:
        await engine.start(collect, workflow_id="one")
        trap = proxy.cut_after(is_commit)

        await engine.signal_workflow("one", "number", 1)
        assert trap.has_sprung

        assert await finish(engine) == [1]
        assert RUNS == [1]
        assert await engine.store.check() == []


async def test_N1_signal_whose_commit_was_cut_off_is_taken_once_or_refused(proxy: Proxy) -> None:
    async with open_engine(proxy.url) as engine:
        await engine.start(collect, workflow_id="one")
        trap = proxy.cut_before(is_commit)

        tries = await signal_until_accepted(engine, 1)

        assert trap.has_sprung
        assert tries <= 2
        assert await finish(engine) == [1]
        assert RUNS == [1]
        assert await engine.store.check() == []


@pytest.mark.parametrize("happens", [True, False], ids=["it happened", "it did not"])
async def test_N1_start_whose_commit_was_cut_exists_once(proxy: Proxy, happens: bool) -> None:
    async with open_engine(proxy.url) as engine:
        trap = proxy.cut_after(is_commit) if happens else proxy.cut_before(is_commit)

        try:
            await engine.start(collect, workflow_id="one")
        except StoreUnavailable:
            assert not happens
            await engine.start(collect, workflow_id="one")

        assert trap.has_sprung
        assert len(await engine.store.list_executions(ExecutionFilter("default", workflow_id="one"))) == 1
        await signal_until_accepted(engine, 1)
        assert await finish(engine) == [1]


@pytest.mark.parametrize("happens", [True, False], ids=["it happened", "it did not"])
async def test_N1_result_whose_commit_was_cut_counts_once_and_runs_once(proxy: Proxy, happens: bool) -> None:
    traps: list[Any] = []

    @activity
    async def cutting() -> str:
        RUNS.append(0)
        traps.append(proxy.cut_after(is_commit) if happens else proxy.cut_before(is_commit))
        return "done"

    @workflow
    async def running(ctx: Context) -> str:
        return await ctx.run(cutting)

    async with Engine(proxy.url, workflows=[running], activities=[cutting], node="a", heartbeat=0.2, lease=5.0) as engine:
        handle = await engine.start(running, workflow_id="one")

        assert await asyncio.wait_for(handle.result(), 15) == "done"

        assert traps[0].has_sprung
        assert RUNS == [0], "what it did is done; only its result had to be handed in again"
        assert (await engine.history("one")).kinds.count("ActivityCompleted") == 1


async def test_N1_signal_whose_commit_a_crash_of_the_server_forgot_is_not_answered_as_accepted() -> None:
    with PostgresServer(settings={"wal_writer_delay": "10s", "autovacuum": "off"}) as server:
        url = server.url(schema="hf_crash")
        with Proxy(url) as proxy:
            async with open_engine(proxy.url) as engine, open_engine(url, "other") as other:
                await engine.start(collect, workflow_id="one")
                trap = proxy.hold_before(is_commit)
                signal = asyncio.create_task(engine.signal_workflow("one", "number", 1))
                await asyncio.to_thread(trap.wait)
                server.stop("immediate")
                proxy.cut()
                proxy.refuse()
                proxy.release()
                server.start()
                await eventually(lambda: has_started(other, "two"))
                proxy.accept()

                try:
                    await asyncio.wait_for(signal, 15)
                except StoreUnavailable:
                    await signal_until_accepted(engine, 1)

                assert await asyncio.wait_for(finish(engine), 15) == [1]
                assert RUNS == [1]
                assert await other.store.check() == []


async def has_started(engine: Engine, workflow_id: str) -> bool:
    try:
        await engine.start(collect, workflow_id=workflow_id)
    except StoreUnavailable:
        return False
    return True
