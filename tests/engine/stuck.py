"""A process whose workflow code gets stuck where no interruption reaches it, or stands still for a while."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import resource
import signal
import sys
import threading
from typing import Any

from holdfast import Context, Engine, workflow
from holdfast.engine.turns import turn_taking
from holdfast.engine.turns.writing import make_write

LIMIT = 0.2
"""Seconds."""


class Endless:
    """A cycle whose end never ends."""

    itself: Endless | None = None

    def __del__(self) -> None:
        while True:
            pass


def collect_in_turns() -> None:
    """Let the garbage collector run where no workflow code does, though turns are taken: it may do so anywhere."""
    gc.disable()

    def collect_first(*args: Any, **kwargs: Any) -> Any:
        gc.collect()
        return make_write(*args, **kwargs)

    vars(turn_taking)["make_write"] = collect_first


@workflow
async def stuck(ctx: Context, how: str) -> str:
    await ctx.wait_for_signal("go")
    print("in the turn", flush=True)
    if how == "waits":
        threading.Event().wait(60)
    elif how == "swallows":
        while True:
            try:
                while True:
                    pass
            except BaseException:
                continue
    elif how == "sums":
        sum(range(10**11))
    elif how == "matches":
        re.match(r"(a+)+$", "a" * 60 + "b")
    elif how == "collected":
        thing = Endless()
        thing.itself = thing
    elif how == "stands still":
        signal.raise_signal(signal.SIGSTOP)  # here, and not when somebody else gets to it: the limit is short
    return "came to rest"


@workflow
async def lingers(ctx: Context) -> None:
    """Computes without end, in one call that holds the interpreter, when its program is dropped from memory."""
    try:
        await ctx.wait_for_signal("go")
    finally:
        sum(range(10**11))


@workflow
async def sends(ctx: Context) -> None:
    """What it sends is stored before it is taken."""
    await ctx.signal_external_workflow("doomed", "go")


async def drop(engine: Engine, how: str) -> None:
    """Let the program of an execution be dropped from memory: by this verb of the engine, or by other programs."""
    await engine.start(lingers, workflow_id="lingers")
    print("to be dropped", flush=True)
    match how:
        case "evict":
            for _ in range(2):
                await engine.start(stuck, "waits")
        case "remove":
            engine.remove_workflow("lingers")
        case "terminate":
            await engine.terminate("lingers")
        case _:
            await engine.shutdown()


async def main(url: str, how: str) -> None:
    logging.basicConfig(level="WARNING")
    if how.startswith("drop by "):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        async with Engine(url, workflows=[stuck, lingers], turn_limit=LIMIT, max_live_programs=1) as engine:
            await drop(engine, how.removeprefix("drop by "))
        return
    if how == "collected":
        collect_in_turns()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # some of these ends would leave a core file
    async with Engine(url, workflows=[stuck, sends], node="stuck", turn_limit=LIMIT, heartbeat=0.5, lease=1.0) as engine:
        await engine.start(stuck, how, workflow_id="doomed", idempotency_key="doomed")
        await engine.start(sends, workflow_id="sends", idempotency_key="sends")
        while True:
            info = await engine.query_status("doomed")
            if info.status in ("blocked", "completed"):
                print(f"doomed is {info.status}", flush=True)
                return
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
