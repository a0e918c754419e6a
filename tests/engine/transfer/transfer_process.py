"""A process that transfers a database in tiny steps, and says each, until somebody kills it."""

from __future__ import annotations

import asyncio
import sys

from holdfast.engine.transfer.transfers import TransferProgress, transfer


def say(step: TransferProgress) -> None:
    print(step.verb, step.kind.name, step.done, flush=True)


async def main(source: str, target: str) -> None:
    report = await transfer(source, target, on_progress=say, page=3)
    print("moved", *(f"{tally.rows} {tally.checksum}" for tally in report.tallies.values()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
