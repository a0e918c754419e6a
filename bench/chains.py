"""Chains of runs: one `continue_as` for each of 10,000 waiting signals, and the same signals taken by one long run."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import NamedTuple

from bench.measuring import bounded, make_shared_engine, report, scratch_engine, scratch_server
from bench.workflows import chain_of_runs, chain_of_steps, count_after_go, nothing
from holdfast import Engine, Status

WAITING = 10_000
AIMS = {"sqlite": 3_000, "postgres": 1_000}
"""Runs per second of a chain that takes one of WAITING signals in each run."""
BURSTS = (2_000, 10_000, 40_000)
STARTS = 3_000
STEPS = 300


class ChainSpeed(NamedTuple):
    """How fast a chain took its signals, and how long the start of another execution took at most meanwhile."""

    runs_per_s: float
    cpu_micros_per_run: float
    """Processor time of this process alone: it tells more than the clock where others use the machine."""
    longest_wait: float


def run() -> None:
    """Print runs/s of chains and signals/s of one long run, on SQLite and on PostgreSQL."""
    asyncio.run(_run_sqlite())
    with scratch_server() as server:
        asyncio.run(_run_postgres(server.url(schema="bench")))


async def _run_sqlite() -> None:
    async with scratch_engine(max_signals=10**6) as engine:
        await _measure(engine, "sqlite")


async def _run_postgres(url: str) -> None:
    async with make_shared_engine(url, max_signals=10**6) as engine:
        await _measure(engine, "postgres")


async def _measure(engine: Engine, place: str) -> None:
    starts = await starts_per_second(engine)
    report(f"{place}: starts of an empty workflow", per_s=starts)
    speed = await measure_chain(engine, WAITING)
    report(
        f"{place}: chain over {WAITING:,} signals",
        runs_per_s=speed.runs_per_s,
        aim=AIMS[place],
        share_of_aim=speed.runs_per_s / AIMS[place],
        share_of_starts=speed.runs_per_s / starts,
        cpu_micros_per_run=speed.cpu_micros_per_run,
        longest_wait_of_others_ms=speed.longest_wait * 1e3,
    )
    for wait in ("activity", "timer"):
        report(f"{place}: chain with one {wait} per run", runs_per_s=await steps_per_second(engine, wait))
    first = 0.0
    for signals in BURSTS:
        micros = await micros_per_signal(engine, signals)
        first = first or micros
        report(f"{place}: {signals:,} signals in one run", micros_per_signal=micros, against_first=micros / first)


async def starts_per_second(engine: Engine) -> float:
    """Starts of a workflow that ends in its first turn: the limit, since a run of a chain is a start and an end."""
    begin = time.perf_counter()
    await bounded(STARTS, lambda i: engine.start(nothing, workflow_id=f"nothing-{i}"))
    return STARTS / (time.perf_counter() - begin)


async def measure_chain(engine: Engine, signals: int) -> ChainSpeed:
    """A chain that takes one signal in each run, while other executions are started beside it."""
    await engine.start(chain_of_runs, 0, signals, workflow_id="chain")
    await bounded(signals, lambda i: engine.signal_workflow("chain", "message", i), 256)
    cpu, begin = time.process_time(), time.perf_counter()
    others = asyncio.ensure_future(_start_others(engine))
    await engine.signal_workflow("chain", "go")
    await _wait_until_completed(engine, "chain")
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    others.cancel()
    return ChainSpeed(signals / seconds, cpu / signals * 1e6, max(await others))


async def _start_others(engine: Engine) -> list[float]:
    waits: list[float] = []
    try:
        while True:
            begin = time.perf_counter()
            await engine.start(nothing)
            waits.append(time.perf_counter() - begin)
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        return waits


async def steps_per_second(engine: Engine, wait: str) -> float:
    """Runs of a chain that waits for something of its own in each run."""
    begin = time.perf_counter()
    await engine.start(chain_of_steps, 0, STEPS, wait, workflow_id=f"steps-{wait}")
    await _wait_until_completed(engine, f"steps-{wait}")
    return STEPS / (time.perf_counter() - begin)


async def micros_per_signal(engine: Engine, signals: int) -> float:
    """Time per signal, from the first that is sent to the end of the run that takes them all."""
    workflow_id = f"burst-{signals}"
    await engine.start(count_after_go, signals, workflow_id=workflow_id)
    begin = time.perf_counter()
    await bounded(signals, partial(_send, engine, workflow_id), 256)
    await engine.signal_workflow(workflow_id, "go")
    await _wait_until_completed(engine, workflow_id)
    return (time.perf_counter() - begin) / signals * 1e6


async def _send(engine: Engine, workflow_id: str, number: int) -> None:
    await engine.signal_workflow(workflow_id, "message", number)


async def _wait_until_completed(engine: Engine, workflow_id: str) -> None:
    while (status := (await engine.query_status(workflow_id)).status) is not Status.COMPLETED:
        if status is Status.FAILED:
            raise RuntimeError(f"'{workflow_id}' failed")
        await asyncio.sleep(0.01)
