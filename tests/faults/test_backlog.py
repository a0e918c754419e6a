"""A backlog of 200 MB waits when a node starts: it is worked off within bounded memory, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from tests.faults.audit import audit
from tests.faults.flows import hearing
from tests.faults.sites import open_site

EXECUTIONS, SIGNALS, SIZE = 200, 10, 100_000
"""200 MB in all."""
MOST_MEMORY = 400
"""MB that a node may take at its peak: much less than all of it, decoded and encoded, by three workers."""


async def test_N1_backlog_of_200_megabytes_is_worked_off_within_bounded_memory(postgres_url: str, tmp_path: Path) -> None:
    with open_site(tmp_path, postgres_url) as site:
        text = "x" * SIZE
        async with site.client() as client:

            async def fill(number: int) -> None:
                await client.start(hearing, SIGNALS, workflow_id=f"w{number}")
                for signal in range(SIGNALS):
                    await client.signal_workflow(f"w{number}", "text", (signal, text))

            began = time.monotonic()
            await asyncio.gather(*(fill(number) for number in range(EXECUTIONS)))
            print(f"filled within {time.monotonic() - began:.1f} s")

            began = time.monotonic()
            (node,) = await site.fleet.open("a")
            expected = [part for signal in range(SIGNALS) for part in (signal, SIZE)]
            for number in range(EXECUTIONS):
                assert await client.handle(f"w{number}").result() == expected
            print(f"worked off within {time.monotonic() - began:.1f} s")

        await node.stop()
        await audit(site)
        found = re.search(r"stopped, at most (\d+) kB", node.log)
        assert found is not None
        peak = int(found[1]) / 1_000
        print(f"peak of {peak:.0f} MB")
        assert peak < MOST_MEMORY
