"""A process with an engine, until it is ended: `python -m tests.client.owner_process URL`. Says when it is ready."""

from __future__ import annotations

import asyncio
import sys

from holdfast import Engine
from tests.client.workflows import ACTIVITIES, WORKFLOWS


async def main(url: str) -> None:
    engine = Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES, shutdown_grace=0.5)
    async with engine:
        print("ready", flush=True)
        await engine.run_until_stopped()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
