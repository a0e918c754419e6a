"""N2: a node's name belongs to one living process: whoever comes later is refused; of two at once, one stays."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, workflow
from holdfast.core.instants import SECOND
from holdfast.engine.nodes.roster import NodeDetails, NodeState
from holdfast.engine.stores import make_store
from holdfast.errors import NodeNameTaken
from holdfast.store.rows import NodeRow
from tests.engine import hooks
from tests.engine.support import worker_main
from tests.engine.support.worker_processes import run_worker
from tests.eventually import eventually

QUICK: dict[str, Any] = {"heartbeat": 0.1, "lease": 1.0, "shutdown_grace": 0.1}


@workflow
async def wait(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


def make_engine(url: str, **options: Any) -> Engine:
    workflows = [wait, *worker_main.WORKFLOWS]
    return Engine(url, workflows=workflows, activities=worker_main.ACTIVITIES, node="worker", **QUICK | options)


@asynccontextmanager
async def rival(url: str, *, starts: int, works: bool = True) -> AsyncIterator[None]:
    """A process on another machine that beats as 'worker', and began so many seconds after now.

    Its first heartbeat is stored when the context is entered.
    """
    store = make_store(url)
    await store.open()
    details = msgspec.json.encode(NodeDetails(host="elsewhere", pid=1, lease=3.0, token="rival", works=works))

    began = (await store.beat(NodeRow("observer", 0, 0), (), ())).now + starts * SECOND

    async def beat() -> None:
        await store.beat(NodeRow("worker", 0, began, details=details), (), ())

    async def beat_on() -> None:
        while True:
            await asyncio.sleep(0.05)
            await beat()

    await beat()
    beating = asyncio.create_task(beat_on())
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])
        await store.close()


async def test_N2_second_process_of_a_name_is_refused_and_the_first_goes_on(postgres_url: str, tmp_path: Path) -> None:
    # Its heartbeats are slow, and so is its lease: a worker that has to wait for a processor is not taken for dead.
    with run_worker(postgres_url, tmp_path, 10, "order:slow:2", heartbeat=1.0) as worker:
        await asyncio.to_thread(worker.read_until, "open", "begun slow 1")

        with pytest.raises(NodeNameTaken, match=f"process {worker.process.pid} on '.*' is alive under that name"):
            await make_engine(postgres_url).open()
        async with Engine(postgres_url, workflows=worker_main.WORKFLOWS, node="other", **QUICK) as other:
            states = {one.node: one.state for one in await other.nodes()}
            assert await other.handle("slow").result() == 1, "nobody took it over"
    assert states["worker"] is NodeState.ALIVE


async def test_N2_name_of_a_process_that_ended_here_is_free_at_once(postgres_url: str, tmp_path: Path) -> None:
    with run_worker(postgres_url, tmp_path, 10, "order:slow:60", heartbeat=200) as worker:
        await asyncio.to_thread(worker.read_until, "open", "begun slow 1")
        worker.tell(signal.SIGKILL)
        await asyncio.to_thread(worker.process.wait)

        async with asyncio.timeout(60), make_engine(postgres_url) as engine:
            assert await engine.handle("slow").result() == 2


async def test_N2_process_that_stood_still_gives_way_to_what_replaced_it(postgres_url: str, tmp_path: Path) -> None:
    with run_worker(postgres_url, tmp_path, 10) as worker:
        await asyncio.to_thread(worker.read_until, "open")
        worker.tell(signal.SIGSTOP)
        async with make_engine(postgres_url) as engine:
            worker.tell(signal.SIGCONT)
            code, _, errors = await asyncio.to_thread(worker.wait_for_failure)
            handle = await engine.start(wait)
            await handle.signal("go", "on")

            assert await handle.result() == "on"
    assert code != 0
    assert "NodeNameTaken" in errors


async def test_N2_process_that_comes_back_only_to_leave_stops_nobody(postgres_url: str, tmp_path: Path) -> None:
    with run_worker(postgres_url, tmp_path, 1, "order:slow:60") as worker:
        await asyncio.to_thread(worker.read_until, "open", "begun slow 1")
        worker.tell(signal.SIGSTOP)
        async with make_engine(postgres_url) as engine:
            worker.tell(signal.SIGTERM)
            worker.tell(signal.SIGCONT)
            await asyncio.to_thread(worker.process.wait)

            assert await engine.handle("slow").result() == 2


async def test_N2_of_two_that_began_at_once_the_earlier_one_stops(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(postgres_url)
    working = asyncio.create_task(engine.run_until_stopped())
    await eventually(lambda: engine.is_open)
    async with rival(postgres_url, starts=60):
        with pytest.raises(NodeNameTaken, match="process 1 on 'elsewhere'"):
            await asyncio.wait_for(working, 60)
        row = next(row for row in await read_nodes(postgres_url) if row.node == "worker")

    assert not row.has_left, "the other goes on under that name"
    assert "this engine shuts down" in caplog.text


async def test_N2_of_two_that_began_at_once_the_later_one_goes_on(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_engine(postgres_url) as engine:
        async with rival(postgres_url, starts=-60):
            await eventually(lambda: "the other process of its name stops" in caplog.text)
        handle = await engine.start(wait)
        await handle.signal("go", "on")

        assert await handle.result() == "on"


async def test_N2_who_comes_or_goes_under_a_name_stops_nobody(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with make_engine(postgres_url) as engine:
        async with rival(postgres_url, starts=60, works=False):
            await eventually(lambda: "the other process of its name stops" in caplog.text)
        assert engine.is_open


async def test_N2_engine_that_is_replaced_while_it_opens_does_not_open(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(postgres_url)
    hooks.prolong_recovery(engine, monkeypatch, lambda: eventually(lambda: hooks.is_replaced(engine)))
    opening = asyncio.create_task(engine.run_until_stopped())
    await eventually(lambda: hooks.has_joined(engine))
    async with rival(postgres_url, starts=60):
        with pytest.raises(NodeNameTaken):
            await asyncio.wait_for(opening, 60)

    assert not engine.is_open


async def test_N2_two_engines_of_one_process_cannot_share_a_name(postgres_url: str) -> None:
    async with make_engine(postgres_url) as first:
        with pytest.raises(NodeNameTaken):
            await make_engine(postgres_url).open()
        assert first.is_open
    async with make_engine(postgres_url) as second:
        assert second.is_open, "it has left"


async def test_N2_shutdown_waits_for_an_engine_that_gives_way(postgres_url: str) -> None:
    engine = make_engine(postgres_url)
    await engine.open()
    async with rival(postgres_url, starts=60):
        await eventually(lambda: not engine.is_open)
        await engine.shutdown()

        assert hooks.has_given_way(engine)
        with pytest.raises(NodeNameTaken):
            await engine.open()


async def test_N2_name_of_another_machine_is_free_after_a_while(postgres_url: str) -> None:
    async with rival(postgres_url, starts=-60):
        with pytest.raises(NodeNameTaken, match="process 1 on 'elsewhere'"):
            await make_engine(postgres_url).open()

    async with asyncio.timeout(60), make_engine(postgres_url) as engine:
        assert engine.is_open


async def read_nodes(url: str) -> list[NodeRow]:
    store = make_store(url)
    await store.open()
    try:
        return await store.list_nodes()
    finally:
        await store.close()
