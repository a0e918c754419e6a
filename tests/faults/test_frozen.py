"""N1: a node stands still in the middle of a batch, and past its lease. Others go on; what it says too late is refused."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any, Final

from holdfast import WorkflowHandle
from tests.eventually import eventually
from tests.faults.audit import audit
from tests.faults.flows import lingers_until
from tests.faults.load import Load
from tests.faults.nodes import PATIENCE, NodeProcess
from tests.faults.sites import Site, open_site
from tests.postgres.access import connect

LATE: Final = 10.0
"""Seconds after which the node goes on."""
HOLDING: Final = """
SELECT count(*)
FROM pg_stat_activity
WHERE client_port = ANY (%s) AND state = 'idle in transaction' AND EXISTS (
    SELECT 1 FROM pg_locks
    WHERE pg_locks.pid = pg_stat_activity.pid AND relation = 'executions'::regclass AND mode = 'RowShareLock'
)
"""
"""How many sessions have locked executions, and wait for their client to go on."""


def count_holding(site: Site, ports: set[int]) -> int:
    with connect(site.direct_url) as connection:
        row = connection.execute(HOLDING, [list(ports)]).fetchone()
    assert row is not None
    return int(row[0])


async def freeze_in_a_batch(site: Site, node: NodeProcess) -> None:
    """Stop a node while it holds executions: again and again, until it is caught at that."""
    for _ in range(200):
        node.tell(signal.SIGSTOP)
        ports = node.find_ports()
        # A statement that was under way still ends; then its session waits.
        for _ in range(3):
            if count_holding(site, ports):
                return
            await asyncio.sleep(0)
        node.tell(signal.SIGCONT)
        await asyncio.sleep(site.random.uniform(0.001, 0.02))
    raise AssertionError(f"Expected to find node {node.name} in the middle of a batch, but it never was.")


def count_begun(site: Site, handles: list[WorkflowHandle[Any]]) -> int:
    execution_ids = {handle.execution_id for handle in handles}
    return len({effect.execution_id for effect in site.read_effects()} & execution_ids)


def find_effects_of(site: Site, node: NodeProcess) -> int:
    return sum(effect.node == node.name for effect in site.read_effects())


async def test_N1_node_that_stands_still_in_a_batch_is_taken_over_and_refused(postgres_url: str, tmp_path: Path) -> None:
    with open_site(tmp_path, postgres_url) as site:
        (frozen,) = await site.fleet.open("frozen")
        async with site.client() as client, Load(client, site.seed) as load:
            # They begin on the node that will stand still, and would end there while it does.
            may_end = tmp_path / "may end"
            stuck = [await client.start(lingers_until, str(may_end), workflow_id=f"stuck-{number}") for number in range(20)]
            load.expected |= dict.fromkeys((f"stuck-{number}" for number in range(20)), "lingers_until")
            await eventually(lambda: count_begun(site, stuck) == 20, "all to begin", PATIENCE)
            site.has_passed(0)
            await site.fleet.open("b", "c")
            await freeze_in_a_batch(site, frozen)
            before = find_effects_of(site, frozen)

            results = [await asyncio.wait_for(handle.result(), PATIENCE) for handle in stuck]
            await eventually(lambda: site.has_passed(LATE), "the node to be late with its results")
            may_end.touch()
            load.check()
            frozen.tell(signal.SIGCONT)
            await eventually(lambda: find_effects_of(site, frozen) > before, "the node to work again", PATIENCE)
            await load.finish()

        await audit(site, load)
        assert results == [2] * 20
        assert frozen.exit_code is None
        assert "lost its lease" in frozen.log
