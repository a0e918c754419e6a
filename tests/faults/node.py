"""One node, as a process of its own: `python -m tests.faults.node '{"url": …}'`. Works until it is told to stop.

It ends by itself when its time is up, whatever became of the tests.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any


def shift_clock(offset: float, after: float) -> None:
    """Let the machine's clock be wrong in this process, or become so after some seconds. The steady one stays right."""
    right, right_ns, start = time.time, time.time_ns, time.monotonic()

    def find_offset() -> float:
        return offset if time.monotonic() - start >= after else 0.0

    time.time = lambda: right() + find_offset()
    time.time_ns = lambda: right_ns() + round(find_offset() * 1_000_000_000)


async def work(config: dict[str, Any]) -> None:
    from holdfast import Engine
    from tests.faults import flows, poisons
    from tests.faults.callers import serve
    from tests.faults.ledger import open_ledger

    open_ledger(config["ledger_url"], config["ledger"], config["node"])
    engine = Engine(
        config["url"],
        workflows=flows.WORKFLOWS + poisons.WORKFLOWS,
        activities=flows.ACTIVITIES + poisons.ACTIVITIES,
        node=config["node"],
        **config["options"],
    )
    say("ready")
    gate = config["gate"]
    while gate and not Path(gate).exists():
        time.sleep(0.0005)
    try:
        await engine.open()
    except Exception as error:
        say("refused:", repr(error))
        raise
    server = await serve(engine, config["socket"]) if config["socket"] else None
    say("open")
    await engine.run_until_stopped()
    if server is not None:
        server.close()
    say("stopped, at most", read_peak(), "kB")


def read_peak() -> int:
    """The most memory that this program took, in kB. What `getrusage` tells includes the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def main(config: dict[str, Any]) -> None:
    signal.alarm(config["lifetime"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # some of their ends would leave a core file
    if config["clock_offset"]:
        shift_clock(config["clock_offset"], config["clock_after"])
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(relativeCreated)d %(levelname)s %(name)s: %(message)s"
    )
    say("process", os.getpid(), "is node", config["node"])
    asyncio.run(work(config))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
