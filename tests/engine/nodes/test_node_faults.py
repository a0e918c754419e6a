"""N1, N2 on a real database: nodes are killed and frozen, the database goes away and comes back."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Engine, Retry, activity, activity_info, workflow
from holdfast.errors import StoreUnavailable
from tests.engine import hooks
from tests.engine.support import worker_main
from tests.engine.support.held_activities import Door
from tests.engine.support.idle_servers import expect_only_beats
from tests.engine.support.worker_processes import run_worker
from tests.eventually import eventually
from tests.postgres.server import PostgresServer

LEASE = 2.0
"""Seconds: short, but more than a busy machine stands still."""
NOISE_FACTOR = 5
"""How many times slower a busy machine may become from one moment to the next."""
DOOR = Door()
ATTEMPTS: list[tuple[str, int]] = []


@activity(retry=Retry(max_attempts=1))
async def slow() -> int:
    info = activity_info()
    ATTEMPTS.append((info.workflow_id, info.attempt))
    await DOOR.wait()
    return info.attempt


@workflow
async def patient(ctx: Context) -> int:
    return await ctx.run(slow)


@pytest.fixture(autouse=True)
def _forget() -> None:
    ATTEMPTS.clear()
    DOOR.begin_anew()


def open_here(url: str, node: str, **options: Any) -> Engine:
    quick: dict[str, Any] = {"heartbeat": 0.2, "lease": LEASE} | options
    return Engine(
        url,
        workflows=[patient, *worker_main.WORKFLOWS],
        activities=[slow, *worker_main.ACTIVITIES],
        node=node,
        **quick,
    )


async def wait_for_peer(engine: Engine, node: str) -> None:
    await eventually(lambda: node in hooks.peers_of(engine))


async def measure_orders(engine: Engine, folder: Path) -> float:
    """Seconds that five orders take now which nobody has to take over."""
    began = time.monotonic()
    for number in range(5):
        await engine.start("order", str(folder), 0.0, workflow_id=f"usual-{number}")
    for number in range(5):
        await engine.handle(f"usual-{number}").result()
    return time.monotonic() - began


async def test_N1_process_that_is_killed_is_taken_over_within_ten_seconds(postgres_url: str, tmp_path: Path) -> None:
    async with Engine(
        postgres_url, workflows=worker_main.WORKFLOWS, activities=worker_main.ACTIVITIES, node="other"
    ) as engine:
        jobs = [f"order:job-{number}:60" for number in range(5)]
        with run_worker(postgres_url, tmp_path, 10, *jobs, heartbeat=2) as worker:
            await asyncio.to_thread(worker.read_until, "open", *(f"begun job-{number} 1" for number in range(5)))
            usual = await measure_orders(engine, tmp_path)
            began = time.monotonic()
            worker.tell(signal.SIGKILL)

            results = [await asyncio.wait_for(engine.handle(f"job-{number}").result(), 60) for number in range(5)]
            took = time.monotonic() - began

        assert results == [2] * 5
        assert took < 10 + NOISE_FACTOR * usual, "apart from what the machine takes for as many now"
        assert (await engine.history("job-0")).kinds.count("ActivityCompleted") == 1
        assert await engine.store.check() == []


async def test_N1_process_that_stood_still_is_taken_over_and_its_results_are_refused(
    postgres_url: str, tmp_path: Path
) -> None:
    async with open_here(postgres_url, "other") as engine:
        with run_worker(postgres_url, tmp_path, 60, f"order:one:{worker_main.UNTIL_TOLD}") as worker:
            await asyncio.to_thread(worker.read_until, "open", "begun one 1")
            await wait_for_peer(engine, "worker")
            worker.tell(signal.SIGSTOP)
            assert await asyncio.wait_for(engine.handle("one").result(), 60) == 2
            await eventually(lambda: "worker" not in hooks.peers_of(engine))

            worker_main.let_end(tmp_path, "one")
            worker.tell(signal.SIGCONT)
            await wait_for_peer(engine, "worker")
            await asyncio.sleep(0)
            worker.tell(signal.SIGTERM)
            code, _ = await asyncio.to_thread(worker.wait)

        assert code == 0
        assert await engine.handle("one").result() == 2
        assert (await engine.history("one")).kinds.count("ActivityCompleted") == 1


async def test_N1_database_down_and_up_again_costs_nobody_anything(own_postgres: PostgresServer) -> None:
    url = own_postgres.url(schema="hf_outage")
    async with open_here(url, "a") as a, open_here(url, "b") as b:
        await wait_for_peer(a, "b")
        await a.start(patient, workflow_id="one")
        await b.start(patient, workflow_id="two")
        await eventually(lambda: len(ATTEMPTS) == 2)

        own_postgres.stop("immediate")
        with pytest.raises(StoreUnavailable):
            await a.start(patient, workflow_id="three")
        DOOR.open()
        await eventually(lambda: len(DOOR.left) == 2)
        await pass_seconds(2.2 * LEASE)
        own_postgres.start()

        assert await asyncio.wait_for(a.handle("one").result(), 60) == 1
        assert await asyncio.wait_for(b.handle("two").result(), 60) == 1
        assert await asyncio.wait_for((await a.start(patient, workflow_id="three")).result(), 60) == 1
    assert sorted(ATTEMPTS) == [("one", 1), ("three", 1), ("two", 1)], "nobody robbed anybody"


async def pass_seconds(seconds: float) -> None:
    """Let real time pass: what is tested is that a while without the database does no harm."""
    end = time.monotonic() + seconds
    await eventually(lambda: time.monotonic() > end)


async def test_N2_idle_node_runs_one_statement_per_heartbeat() -> None:
    with PostgresServer(settings={"log_statement": "all"}) as server:
        async with open_here(server.url(schema="hf_idle"), "a") as engine:
            DOOR.open()
            await (await engine.start(patient)).result()

            await expect_only_beats(server, 11, 10)
