"""N2: a node whose loop is busy for several leases keeps its lease: nothing of it is taken over."""

from __future__ import annotations

from pathlib import Path

from tests.eventually import eventually
from tests.faults.audit import audit
from tests.faults.flows import hogs, lingers
from tests.faults.nodes import CALM_LEASE, PATIENCE
from tests.faults.sites import open_site
from tests.postgres.access import connect

SILENCE = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - seen_at FROM nodes WHERE node = 'busy'"
ASLEEP, SPINNING = 1.5 * CALM_LEASE, 1.5 * CALM_LEASE
"""Seconds. With the usual lease of 6 s this would be 18 s."""


async def test_N2_node_with_a_busy_loop_keeps_its_lease(postgres_url: str, tmp_path: Path) -> None:
    with open_site(tmp_path, postgres_url) as site:
        await site.fleet.open("busy", lease=CALM_LEASE)
        async with site.client() as client:
            others = [await client.start(lingers, 0.2, workflow_id=f"w{number}") for number in range(20)]
            await eventually(lambda: len(site.read_effects()) == 20, "the others to begin")
            hog = await client.start(hogs, ASLEEP, SPINNING, workflow_id="hog")
            await eventually(lambda: len(site.read_effects()) == 21, "the loop to be held up")
            await site.fleet.open("b", "c", lease=CALM_LEASE)

            silences: list[int] = []
            with connect(site.direct_url) as connection:

                def look() -> bool:
                    silences.extend(row[0] for row in connection.execute(SILENCE))
                    return (
                        connection.execute(
                            "SELECT 1 FROM executions WHERE workflow_id = 'hog' AND closed_at IS NULL"
                        ).rowcount
                        == 0
                    )

                await eventually(look, "the loop to be free", PATIENCE)

            assert await hog.result() == 1
            assert [await other.result() for other in others] == [1] * 20
        await audit(site)
        assert "takes over" not in site.fleet.logs
        assert len(site.read_effects()) == 21, "each began once"
        assert max(silences) < CALM_LEASE * 1_000_000, "its heartbeat went on"
