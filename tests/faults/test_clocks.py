"""Time is the store's: nodes whose clocks are off by minutes, or leap, fire timers in time and rob nobody."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from holdfast.core import events
from holdfast.core.instants import SECOND
from holdfast.engine.rows import to_turns
from holdfast.store.rows import HistoryRow
from tests.eventually import eventually
from tests.faults.audit import audit
from tests.faults.flows import naps
from tests.faults.load import Load
from tests.faults.nodes import CALM_LEASE, PATIENCE
from tests.faults.sites import Site, open_site
from tests.postgres.access import connect

MINUTES = 60.0
LATEST = 30
"""Seconds by which a timer may be late on a busy machine: by a wrong clock it would be minutes."""
HISTORIES = """
SELECT executions.execution_id, first, count, at, schema, body
FROM events JOIN executions ON executions.id = events.execution ORDER BY executions.id, first
"""
NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def read_now(site: Site) -> int:
    """The server's time."""
    with connect(site.direct_url) as connection:
        row = connection.execute(NOW).fetchone()
    assert row is not None
    return int(row[0])


def find_lateness(site: Site, began: int, ended: int) -> list[int]:
    """How late each timer fired. Every event is of a time between, and none before the one that precedes it."""
    due: dict[tuple[str, int], int] = {}
    late: list[int] = []
    last: dict[str, int] = {}
    with connect(site.direct_url) as connection:
        for row in connection.execute(HISTORIES):
            history = HistoryRow(*row)
            assert began <= history.at <= ended, "an event of another time"
            assert history.at >= last.get(history.execution_id, 0), "time went back"
            last[history.execution_id] = history.at
            for event in to_turns([history])[0].events:
                if isinstance(event, events.TimerStarted):
                    due[history.execution_id, event.number] = event.due
                elif isinstance(event, events.TimerFired):
                    late.append(history.at - due[history.execution_id, event.number])
    return late


async def test_nodes_with_wrong_clocks_fire_timers_in_time_and_keep_their_leases(postgres_url: str, tmp_path: Path) -> None:
    with open_site(tmp_path, postgres_url) as site:
        began = read_now(site)
        site.fleet.start("fast", clock_offset=10 * MINUTES, lease=CALM_LEASE)
        site.fleet.start("slow", clock_offset=-10 * MINUTES, lease=CALM_LEASE)
        site.fleet.start("leaps ahead", clock_offset=7 * MINUTES, clock_after=3.0, lease=CALM_LEASE)
        site.fleet.start("leaps back", clock_offset=-7 * MINUTES, clock_after=3.0, lease=CALM_LEASE)
        for process in site.fleet.processes:
            await eventually(process.is_open, f"node {process.name} to open", PATIENCE)
        start = time.monotonic()
        async with site.client() as client, Load(client, site.seed, pace=0.02) as load:
            sleepers = [await client.start(naps, 2, 1.5, workflow_id=f"sleeper-{number}") for number in range(20)]
            load.expected |= {f"sleeper-{number}": "naps" for number in range(20)}

            assert await asyncio.gather(*(sleeper.result() for sleeper in sleepers)) == [[0, 2]] * 20
            assert 3.0 <= time.monotonic() - start < 3.0 + LATEST
            await eventually(lambda: time.monotonic() - start > 5.0, "the leaps to be over")
            load.check()
            await load.finish()

        await audit(site, load)
        lateness = find_lateness(site, began - SECOND, read_now(site) + SECOND)
        assert len(lateness) >= 40
        assert min(lateness) >= 0
        assert max(lateness) < LATEST * SECOND
        assert "takes over" not in site.fleet.logs
        assert "lost its lease" not in site.fleet.logs
        assert {effect.node for effect in site.read_effects()} == {process.name for process in site.fleet.processes}
