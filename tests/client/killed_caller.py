"""A process that makes one call and is killed before it gets the answer: `killed_caller.py URL signal|cancel`.

On PostgreSQL it is killed as soon as the commit is done, on SQLite as soon as the owner has the call.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from holdfast import Client
from holdfast.client import links
from holdfast.client.direct import CallRuntime


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, verb: str) -> None:
    setattr(CallRuntime, "_on_outcome", die)  # noqa: B010 - what a type checker refuses
    setattr(links.Link, "_take", die)  # noqa: B010
    async with Client(url) as client:
        if verb == "signal":
            await client.signal_workflow("c", "value", "once", request_id="r")
        else:
            await client.cancel("c", request_id="r")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
