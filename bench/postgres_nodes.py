"""Two nodes on one database against one: what the second adds, and how nodes and server divide the cores.

Each node is a process of its own, starts its share of the executions and waits for their ends.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import psutil

from bench.measuring import bounded, make_shared_engine, report, scratch_server
from bench.postgres_limit import cpu_of
from bench.workflows import chain

EXECUTIONS = 2_000
STEPS = 10


def run() -> None:
    """Print steps/s with one and two nodes, the factor, and the cores that each used."""
    rates = {count: _measure(count) for count in (1, 2)}
    report("postgres nodes: factor", two_over_one=rates[2] / rates[1], aim=1.3, cores=psutil.cpu_count())


def _measure(count: int) -> float:
    with scratch_server() as server:
        url, share = server.url(schema="bench"), EXECUTIONS // count
        command = [sys.executable, "-m", "bench.postgres_nodes", url, str(share)]
        nodes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        try:
            for node in nodes:
                _hear(node)
            pids = {"server": server.pid} | {f"node_{number}": node.pid for number, node in enumerate(nodes, 1)}
            before, begin = {name: cpu_of(pid) for name, pid in pids.items()}, time.perf_counter()
            for node in nodes:
                _tell(node)
            for node in nodes:
                _hear(node)
            elapsed = time.perf_counter() - begin
            cores = {f"cores_{name}": (cpu_of(pid) - before[name]) / elapsed for name, pid in pids.items()}
            for node in nodes:
                _tell(node)
        finally:
            for node in nodes:
                node.communicate(timeout=30)
    rate = EXECUTIONS * STEPS / elapsed
    report(f"postgres nodes: {count}", steps_per_s=rate, **cores)
    return rate


def _tell(node: subprocess.Popen[str]) -> None:
    assert node.stdin is not None
    node.stdin.write("go on\n")
    node.stdin.flush()


def _hear(node: subprocess.Popen[str]) -> None:
    assert node.stdout is not None
    if not node.stdout.readline():
        raise RuntimeError(f"Expected node {node.pid} to go on, but it ended with {node.wait()}.")


async def work(url: str, executions: int) -> None:
    """One node: says when it is ready, and when all its executions have ended; goes on when it is told."""
    async with make_shared_engine(url) as engine:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

        async def start(number: int) -> None:
            await engine.start(chain, STEPS, workflow_id=f"{engine.node}-{number}")

        await bounded(executions, start, 256)
        await asyncio.gather(*(engine.handle(f"{engine.node}-{number}").result() for number in range(executions)))
        print("done", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))
