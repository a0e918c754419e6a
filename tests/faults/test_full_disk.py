"""The server's disk is full: batches fail and are tried again, nothing is lost, and it goes on when there is room."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Engine
from holdfast.errors import StoreUnavailable
from tests.eventually import eventually
from tests.faults.audit import audit
from tests.faults.flows import chain
from tests.faults.load import Load
from tests.faults.sites import open_site
from tests.postgres.small_disk import MEGABYTE, SmallDisk, is_possible

TIMES = 2


async def start_until_refused(engine: Engine, count: int, load: Load) -> str:
    """Start workflows with large arguments until the store does not take one; what the caller is told."""
    for number in range(1_000):
        workflow_id = f"large-{count}-{number}"
        try:
            await engine.start(chain, 1, workflow_id=workflow_id, metadata={"text": "x" * 20_000})
        except StoreUnavailable as error:
            return str(error)
        load.expected[workflow_id] = "chain"
    raise AssertionError("Expected the disk to be full, but it never was.")


async def test_full_disk_loses_nothing_and_work_goes_on_when_there_is_room(tmp_path: Path) -> None:
    if not is_possible():
        pytest.skip("no user namespaces on this system")
    with SmallDisk(64 * MEGABYTE) as disk, open_site(tmp_path, disk.url(schema="hf_disk")) as site:
        nodes = await site.fleet.open("a", "b")
        async with site.client() as client, Load(client, site.seed) as load:
            for number in range(TIMES):
                await load.go_on(15)
                disk.fill()
                said = await start_until_refused(client, number, load)
                assert "the server's disk is full" in said
                await eventually(lambda: "disk is full" in site.fleet.logs, "a batch of a node to fail")
                disk.free()
            await load.finish()

        await audit(site, load)
        assert all(node.exit_code is None for node in nodes)
