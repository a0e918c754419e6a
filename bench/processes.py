"""Processes: what an instance and an element cost, long histories, suspended instances, and large models."""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from bench.measuring import bounded, report, resident_bytes, scratch_server
from bench.process_models import make_large, make_order, make_repeated, make_stepping, make_waiting
from holdfast import Context, Engine, workflow
from holdfast.bpmn.checks import check
from holdfast.bpmn.reading import read

INSTANCES: Final = 2_000
ROUNDS: Final = 5
ELEMENTS: Final = 7
"""How many elements an instance of the order goes through."""
STEPS: Final = 10_000
SUSPENDED: Final = 10_000


@workflow
async def nothing(_ctx: Context, amount: int) -> int:
    """A workflow that ends in its first turn."""
    return amount


@workflow
async def waits(ctx: Context) -> None:
    """A workflow that waits for a message, as the process does."""
    await ctx.wait_for_message("go", key=ctx.info.workflow_id)


def run() -> None:
    """Print each figure beside its limit, or beside what it is compared with."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_instances(f"sqlite:///{folder}/instances.db", "SQLite"))
        asyncio.run(measure_steps(f"sqlite:///{folder}/steps.db"))
        asyncio.run(measure_neighbours(f"sqlite:///{folder}/neighbours.db"))
        code = _in_process(_weigh_code, Path(folder) / "code.db")
        process = _in_process(_weigh_process, Path(folder) / "process.db")
        report("process: memory of 10,000 suspended", megabytes=process / 2**20, code=code / 2**20)
    with scratch_server() as server:
        asyncio.run(measure_instances(server.url(), "PostgreSQL"))
    measure_reading()


async def measure_instances(url: str, store: str) -> None:
    """Instances of eight nodes that end in their first turn, beside code that does so, in turn."""
    code: list[float] = []
    process: list[float] = []
    async with Engine(url, workflows=[nothing]) as engine:
        await engine.deploy({"order.bpmn": make_order()})
        for number in range(ROUNDS):
            code.append(await _time(engine, nothing, number))
            process.append(await _time(engine, "order", number))
    per_code, per_process = median(code), median(process)
    per_element = (per_process - per_code) / ELEMENTS
    report(
        f"process: instance of 8 nodes on {store}",
        per_second=1e6 / per_process,
        us=per_process,
        empty_code_us=per_code,
        us_per_element=per_element,
        limit=40,
        of_limit=per_element / 40,
    )


async def _time(engine: Engine, kind: Any, number: int) -> float:
    async def start(i: int) -> None:
        given = i if kind is nothing else {"amount": i}
        handle = await engine.start(kind, given, workflow_id=f"{number}-{i}-{kind if kind == 'order' else 'code'}")
        await handle.result()

    begin = time.process_time()
    await bounded(INSTANCES, start, 256)
    return (time.process_time() - begin) / INSTANCES * 1e6


async def measure_steps(url: str) -> None:
    """One instance that takes step after step: what the last ones cost beside the first ones."""
    async with Engine(url, max_signals=STEPS + 1_000) as engine:
        await engine.deploy({"stepping.bpmn": make_stepping()})
        handle = await engine.start("stepping", {"n": 0}, workflow_id="stepping")
        took: list[float] = []
        for _ in range(STEPS):
            begin = time.process_time()
            await handle.signal("step")
            took.append(time.process_time() - begin)
    early, late = median(took[100:600]) * 1e6, median(took[-500:]) * 1e6
    report("process: step 10,000 beside step 100", early_us=early, late_us=late, ratio=late / early, limit_ratio=1.2)


async def measure_neighbours(url: str) -> None:
    """How much longer others wait while a multi-instance activity of 10,000 iterations runs."""
    async with Engine(url, workflows=[nothing]) as engine:
        await engine.deploy({"repeated.bpmn": make_repeated(10_000)})
        alone = await _probe(engine, "alone", None)
        handle = await engine.start("repeated", {}, workflow_id="repeated")
        result = asyncio.create_task(handle.result())
        beside = await _probe(engine, "beside", result)
        await result
    report(
        "process: p99 beside 10,000 iterations",
        alone_ms=alone * 1e3,
        beside_ms=beside * 1e3,
        added_ms=(beside - alone) * 1e3,
    )


async def _probe(engine: Engine, name: str, until: asyncio.Task[Any] | None) -> float:
    took: list[float] = []
    number = 0
    while (until is None and number < 300) or (until is not None and not until.done()):
        begin = time.perf_counter()
        handle = await engine.start(nothing, number, workflow_id=f"{name}-{number}")
        await handle.result()
        took.append(time.perf_counter() - begin)
        number += 1
    return quantiles(took, n=100)[98] if len(took) > 1 else 0.0


def _weigh_code(path: Path) -> float:
    return asyncio.run(_weigh(path, waits))


def _weigh_process(path: Path) -> float:
    return asyncio.run(_weigh(path, "waiting"))


async def _weigh(path: Path, kind: Any) -> float:
    async with Engine(f"sqlite:///{path}", workflows=[waits], max_live_programs=100) as engine:
        await engine.deploy({"waiting.bpmn": make_waiting()})

        async def start(i: int) -> None:
            await engine.start(kind, *(() if kind is waits else ({},)), workflow_id=f"w{i}")

        await bounded(500, start)
        before = resident_bytes()

        async def start_more(i: int) -> None:
            await start(500 + i)

        await bounded(SUSPENDED, start_more, 256)
        return resident_bytes() - before


def measure_reading() -> None:
    """A model of 500 elements is read and checked."""
    data = make_large(500)
    took: list[float] = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        reading = read(data, "large.bpmn")
        problems = [] if reading.definitions is None else check(reading.definitions)
        took.append(time.perf_counter() - begin)
        if reading.definitions is None or any(one.severity == "error" for one in problems):
            raise SystemExit(f"Expected the model to be read without a problem, but: {[*reading.problems, *problems][:3]}")
    report("process: 500 elements read and checked", ms=median(took) * 1e3, limit=100, of_limit=median(took) * 10)


def _in_process(measure: Any, path: Path) -> float:
    """Measure in a process of its own, so that nothing before it counts."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(send, measure, path))
    process.start()
    send.close()
    result: float = receive.recv()
    process.join()
    return result


def _send(to: Connection, measure: Any, path: Path) -> None:
    to.send(measure(path))
