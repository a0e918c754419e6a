"""N1, N2: the database goes down and comes up again. Nodes reconnect by themselves, and nobody is told what is not so."""

from __future__ import annotations

from pathlib import Path

from tests.eventually import eventually
from tests.faults.audit import audit
from tests.faults.flows import lingers
from tests.faults.load import Load, Told
from tests.faults.nodes import CALM_LEASE
from tests.faults.sites import open_site
from tests.postgres.server import PostgresServer

OUTAGES = 4


async def test_N1_database_crashes_again_and_again_under_load(own_postgres: PostgresServer, tmp_path: Path) -> None:
    with open_site(tmp_path, own_postgres.url(schema="hf_outages")) as site:
        nodes = await site.fleet.open("a", "b", "c")
        async with site.client() as client, Load(client, site.seed) as load:
            for _ in range(OUTAGES):
                await load.go_on(15)
                own_postgres.stop("immediate")
                await load.be_refused(3)
                own_postgres.start()
            await load.finish()

        await audit(site, load)
        assert Told.YES in load.told.values()
        assert all(node.exit_code is None for node in nodes)


async def test_N2_after_an_outage_longer_than_a_lease_nobody_robs_the_living(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    with open_site(tmp_path, own_postgres.url(schema="hf_outage")) as site:
        async with site.client() as client:
            await site.fleet.open("a", "b", lease=CALM_LEASE)
            handles = [await client.start(lingers, 3 * CALM_LEASE, workflow_id=f"w{number}") for number in range(20)]
            await eventually(lambda: len(site.read_effects()) == 20, "all to begin")

            own_postgres.stop("immediate")
            await eventually(lambda: all("cannot renew" in node.log for node in site.fleet.alive), "the nodes to notice")
            await eventually(lambda: site.has_passed(2.2 * CALM_LEASE), "more than two leases to pass")
            own_postgres.start()

            assert [await handle.result() for handle in handles] == [1] * 20
        await audit(site)
        assert "takes over" not in site.fleet.logs
