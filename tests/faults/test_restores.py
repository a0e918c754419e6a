"""N5: a database goes back to an earlier state under living nodes. All goes on within some heartbeats, without a restart."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest

from holdfast import Engine
from holdfast.errors import ExecutionNotFound
from tests.eventually import eventually
from tests.faults.backups import TableBackup
from tests.faults.flows import WORKFLOWS, lingers_until
from tests.faults.nodes import CALM_LEASE, HEARTBEAT, PATIENCE
from tests.faults.sites import open_site
from tests.postgres.server import PostgresServer

NUMBER = 12


async def test_N5_tables_are_put_back_under_two_nodes(postgres_url: str, tmp_path: Path) -> None:
    done, later = tmp_path / "done", tmp_path / "later"
    with open_site(tmp_path, postgres_url) as site:
        nodes = await site.fleet.open("a", "b", lease=CALM_LEASE)
        async with site.client(lease=CALM_LEASE) as client:
            finished = [await client.start(lingers_until, str(done), workflow_id=f"f{i}") for i in range(NUMBER)]
            running = [await client.start(lingers_until, str(later), workflow_id=f"r{i}") for i in range(NUMBER)]
            await eventually(lambda: len(site.read_effects()) == 2 * NUMBER, "all to begin", PATIENCE)
            backup = TableBackup(site.direct_url)
            done.touch()
            assert await asyncio.gather(*(one.result() for one in finished)) == [1] * NUMBER
            lost = await client.start(lingers_until, str(later), workflow_id="lost")
            waiting = asyncio.ensure_future(lost.result())
            await asyncio.sleep(2 * HEARTBEAT)  # so that each node has sent a heartbeat which the backup does not have

            backup.restore()
            began = time.monotonic()
            await eventually(lambda: all("at an earlier state" in node.log for node in nodes), "nodes to notice", PATIENCE)
            with pytest.raises(ExecutionNotFound):
                await asyncio.wait_for(waiting, PATIENCE)
            results = await asyncio.gather(
                *(asyncio.wait_for(client.wait_for_result(one.execution_id or ""), PATIENCE) for one in finished)
            )
            took = time.monotonic() - began
            later.touch()
            kept = await asyncio.gather(*(asyncio.wait_for(one.result(), PATIENCE) for one in running))
            problems = await client.store.check()
        backup.drop()

    assert results == [2] * NUMBER, "what was finished is run again"
    assert kept == [1] * NUMBER, "what still runs is left alone"
    assert took < 20, "some heartbeats, on a busy machine"
    assert problems == []
    assert all(node.exit_code is None or node.exit_code < 0 for node in nodes)


async def test_N5_server_on_another_timeline_is_noticed(
    own_postgres: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = own_postgres.url(schema="hf_timeline")
    async with Engine(url, workflows=WORKFLOWS, heartbeat=HEARTBEAT, lease=CALM_LEASE) as engine:
        await engine.start(lingers_until, str(tmp_path / "never"), workflow_id="w")
        own_postgres.stop()
        own_postgres.begin_timeline()
        with caplog.at_level(logging.WARNING):
            own_postgres.start()
            await eventually(lambda: "its server is on another timeline than before" in caplog.text, "it", PATIENCE)
