"""N4: nodes that bring up the schema at once do it once."""

from __future__ import annotations

from pathlib import Path

from holdfast.store.postgres.opening import VERSION
from tests.eventually import eventually
from tests.faults.audit import audit
from tests.faults.flows import chain
from tests.faults.nodes import PATIENCE
from tests.faults.sites import open_site
from tests.postgres.access import connect

NAMES = ("a", "b", "c", "d", "e")


async def test_N4_nodes_that_start_at_once_on_an_empty_database_make_the_schema_once(
    postgres_url: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with open_site(tmp_path, postgres_url) as site:
        nodes = [site.fleet.start(name, gate=gate) for name in NAMES]
        for node in nodes:
            await eventually(node.is_ready, f"node {node.name} to be ready", PATIENCE)

        gate.touch()

        for node in nodes:
            await eventually(node.is_open, f"node {node.name} to open", PATIENCE)
        with connect(site.direct_url) as connection:
            assert connection.execute("SELECT version FROM schema_version").fetchall() == [(VERSION,)]
            assert connection.execute("SELECT node FROM nodes ORDER BY node").fetchall() == [(name,) for name in NAMES]
        async with site.client() as client:
            handles = [await client.start(chain, 3, workflow_id=f"w{number}") for number in range(20)]
            assert [await handle.result() for handle in handles] == [[0, 2, 4]] * 20
        await audit(site)
