"""Holdfast as a peer of the side-by-side benchmark harness: `BENCH_ADAPTER=…/bench/adapter.py`."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from common import RUN, Postgres, fresh_dir  # type: ignore[import-not-found]  # the harness's own modules
from peers import Peer  # type: ignore[import-not-found]

from holdfast import Context, Engine, WorkflowHandle, activity, workflow

sys.path.append(str(Path(__file__).resolve().parents[1]))  # the harness loads this file by its path

from bench.process_models import make_order


@activity
async def add(x: int) -> int:
    return x + 1


@workflow
async def hello(ctx: Context, x: int) -> int:
    return await ctx.run(add, x)


@workflow
async def chain(ctx: Context, n: int) -> int:
    x = 0
    for _ in range(n):
        x = await ctx.run(add, x)
    return x


@workflow
async def wait(ctx: Context, _: int) -> float:
    await ctx.wait_for_signal("sig")
    return ctx.now().timestamp()


@workflow
async def sleep(ctx: Context, seconds: float) -> float:
    due = ctx.now().timestamp() + seconds
    await ctx.sleep(seconds)
    return ctx.now().timestamp() - due


@workflow
async def fan(ctx: Context, n: int) -> int:
    return sum(await asyncio.gather(*(ctx.run_child(hello, i) for i in range(n))))


@workflow
async def conv(ctx: Context, n: int) -> list[int]:
    got: list[int] = []
    while len(got) < n:
        message = await ctx.wait_for_signal("msg", int)
        await ctx.run(add, message)
        got.append(message)
    return got


KINDS = {one.name: one for one in (hello, chain, wait, sleep, fan, conv)}


class Holdfast(Peer):  # type: ignore[misc]
    """The engine in the driver's process, fully durable."""

    in_process = True
    clients = 128
    workloads = Peer.workloads | {"W7"}

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.server: Any = None
        self.is_open = False
        self.handles: dict[str, WorkflowHandle[Any]] = {}
        self.settings = {"process": "engine+client in one process"}
        if backend == "sqlite":
            self.settings |= {"synchronous": "FULL", "journal": "wal"}

    def _find_url(self, *, fresh: bool) -> str:
        if self.backend == "sqlite":
            return f"sqlite:///{fresh_dir('holdfast', wipe=fresh) / 'app.db'}"
        if "BENCH_HOSTED_URL" in os.environ:
            return os.environ["BENCH_HOSTED_URL"]
        if self.server is None:
            self.server = Postgres().start()
        url: str = self.server.url()
        return url

    async def open(self, fresh: bool = True, workload: str = "") -> None:
        # W9 weighs suspended executions: their programs are evicted, as they are when nothing arrives for them.
        options: dict[str, Any] = {"max_live_programs": 100} if workload == "W9" else {}
        if workload == "W7":
            return  # `bpmn` opens an engine of its own, in a loop of its own
        url = self._find_url(fresh=fresh)
        self.engine = Engine(url, workflows=KINDS.values(), activities=[add], **options)
        await self.engine.open()
        self.is_open = True

    async def close(self) -> None:
        if self.is_open:
            await self.engine.shutdown()
        shutil.rmtree(RUN / "holdfast", ignore_errors=True)
        if self.server is not None:
            self.server.stop()
            self.server = None

    async def start(self, kind: str, wid: str, arg: Any) -> None:
        self.handles[wid] = await self.engine.start(KINDS[kind], arg, workflow_id=wid)

    async def result(self, wid: str) -> Any:
        handle = self.handles.pop(wid, None) or self.engine.handle(wid)
        return await handle.result()

    async def signal(self, wid: str, value: Any) -> None:
        await self.engine.signal_workflow(wid, "sig", value)

    async def message(self, conv_id: str, seq: int, value: Any, total: int) -> None:
        await self.engine.signal_with_start_workflow(conv_id, conv, total, signal_name="msg", signal_value=value)

    def bpmn(self, n: int) -> dict[str, float]:
        """W7: the same eight nodes in FEEL, each instance durable. Called in the driver's loop: a thread has its own."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: asyncio.run(self._run_processes(n))).result()

    async def _run_processes(self, n: int) -> dict[str, float]:
        url = f"sqlite:///{fresh_dir('holdfast-w7') / 'app.db'}" if self.backend == "sqlite" else self._find_url(fresh=True)
        async with Engine(url) as engine:
            await engine.deploy({"order.bpmn": make_order()})

            async def run(i: int) -> None:
                handle = await engine.start("order", {"amount": i}, workflow_id=f"w7-{i}")
                found = await handle.result()
                total = 2 * i
                assert found["x"] == (total + 3 if total > 500 else total - 3)

            await run(-1)
            begin = time.perf_counter()
            numbers = iter(range(n))

            async def lane() -> None:
                for i in numbers:
                    await run(i)

            await asyncio.gather(*(lane() for _ in range(self.clients)))
            return {"durable_per_s": round(n / (time.perf_counter() - begin), 1)}

    def roles(self) -> dict[str, list[int]]:
        roles = {"driver": [os.getpid()]}
        if self.server is not None:
            roles["postgres"] = [self.server.proc.pid]
        return roles

    def disk(self) -> int:
        if self.server is not None:
            return int(self.server.size())
        return sum(file.stat().st_size for file in (RUN / "holdfast").glob("app.db*"))


PEERS = {"holdfast-sqlite": (Holdfast, {"backend": "sqlite"}), "holdfast-pg": (Holdfast, {"backend": "pg"})}
