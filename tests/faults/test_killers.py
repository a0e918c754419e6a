"""N3: an activity that ends its process each time is isolated and given up; the nodes come back and do the rest."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.audit import audit
from tests.faults.flows import kills
from tests.faults.load import Load
from tests.faults.nodes import PATIENCE, Supervisor
from tests.faults.sites import open_site

MOST_LOST = 5
"""The engine's own limit."""


async def test_N3_activity_that_ends_its_process_is_given_up_and_the_rest_is_done(postgres_url: str, tmp_path: Path) -> None:
    with open_site(tmp_path, postgres_url) as site:
        nodes = await site.fleet.open("a", "b", "c")
        async with Supervisor(site.fleet, nodes), site.client() as client, Load(client, site.seed, pace=0.2) as load:
            killers = [await client.start(kills, workflow_id=f"killer-{number}") for number in range(2)]

            results = [await asyncio.wait_for(killer.result(), 2 * PATIENCE) for killer in killers]
            load.expected |= {f"killer-{number}": "kills" for number in range(2)}
            await load.finish()

        await audit(site, load)
        assert results == ["ProcessLost"] * 2
        tries = [effect for effect in site.read_effects() if effect.execution_id in {one.execution_id for one in killers}]
        assert len(tries) <= 2 * MOST_LOST
        assert len(site.fleet.processes) <= 3 + 2 * MOST_LOST
