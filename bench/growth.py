"""What grows with what: the cost of a turn with the number of stored executions, of a replay with the length of history."""

from __future__ import annotations

import asyncio
import time

from bench.measuring import bounded, report, scratch_engine
from bench.workflows import chain, count, wait
from holdfast import Engine

STORED = (1_000, 10_000, 50_000, 200_000)
LENGTHS = (10, 100, 1_000, 10_000)
LONG = 20_000


def run() -> None:
    """Print both curves."""
    asyncio.run(turns_by_stored())
    asyncio.run(replay_by_length())
    under_lock = asyncio.run(wait_during_replay(replay_ahead=10**9))
    ahead = asyncio.run(wait_during_replay())
    report(
        f"longest wait of others during a replay of {LONG:,} events",
        milliseconds=ahead * 1e3,
        under_the_lock_ms=under_lock * 1e3,
        ratio=under_lock / ahead,
    )


async def turns_by_stored() -> None:
    """Time per step of chains while more and more executions are stored beside them."""
    first = 0.0
    async with scratch_engine(max_live_programs=500) as engine:
        stored = 0
        for total in STORED:

            async def start(i: int, base: int = stored) -> None:
                await engine.start(wait, workflow_id=f"wait-{base + i}")

            await bounded(total - stored, start, 256)
            stored = total
            micros = min([await _chain_micros(engine, f"{total}-{number}") for number in range(3)])
            first = first or micros
            report(f"turn at {total:,} stored", microseconds=micros, against_first=micros / first)


async def _chain_micros(engine: Engine, tag: str, executions: int = 200, steps: int = 10) -> float:
    begin = time.perf_counter()
    handles = await asyncio.gather(*(engine.start(chain, steps, workflow_id=f"chain-{tag}-{i}") for i in range(executions)))
    await asyncio.gather(*(handle.result() for handle in handles))
    return (time.perf_counter() - begin) / (executions * steps) * 1e6


async def replay_by_length() -> None:
    """Time from a signal to its handling when the program has to be replayed first, by events in its history."""
    first = 0.0
    async with scratch_engine(max_live_programs=1, max_signals=1_000_000) as engine:
        for length in LENGTHS:
            workflow_id = f"count-{length}"
            await engine.start(count, length + 10, workflow_id=workflow_id)

            async def tick(_: int, target: str = workflow_id) -> None:
                await engine.signal_workflow(target, "tick")

            await bounded(length, tick, 256)
            took = []
            for number in range(5):
                await engine.start(wait, workflow_id=f"evict-{length}-{number}")  # takes the only place in the cache
                begin = time.perf_counter()
                await engine.signal_workflow(workflow_id, "tick")
                took.append(time.perf_counter() - begin)
            per_event = min(took) / length * 1e6
            first = first or per_event
            report(f"replay of {length:,} events", milliseconds=min(took) * 1e3, micros_per_event=per_event)


async def wait_during_replay(**options: int) -> float:
    """The longest time that a signal to another execution takes while a long history is replayed."""
    async with scratch_engine(max_live_programs=2, max_signals=1_000_000, **options) as engine:
        await engine.start(count, LONG + 10, workflow_id="long")
        await bounded(LONG, lambda _: engine.signal_workflow("long", "tick"), 256)
        await engine.start(count, LONG, workflow_id="other")
        await engine.start(wait, workflow_id="evict")
        waits = []
        replaying = asyncio.ensure_future(engine.signal_workflow("long", "tick"))
        while not replaying.done():
            begin = time.perf_counter()
            await engine.signal_workflow("other", "tick")
            waits.append(time.perf_counter() - begin)
        return max(waits)
