"""N1: after nodes were killed or stood still, work that has nothing to do with them is as fast as before within 10 s.

Three nodes with their default heartbeat and lease, about forty calls a second. What was under way on a node that is gone
waits for its lease and is taken over; everything that begins after that is nobody's business but the others'.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Final

from tests.eventually import eventually
from tests.faults.audit import audit
from tests.faults.latencies import NOISE_FACTOR, WINDOW, Probe
from tests.faults.load import Load
from tests.faults.sites import Site, open_site

DEFAULTS: Final[dict[str, Any]] = {"heartbeat": 2.0, "lease": 6.0}
RECOVERY: Final = 10.0
"""Seconds by which others have to be as fast as before, and by which what was under way is taken over."""
APART: Final = 10.0
"""Seconds between two kills."""
KILLS: Final = 12 if os.environ.get("HOLDFAST_FAULTS_LONG") else 2
FROZEN: Final = 20.0
PACE: Final = 0.05
"""Seconds between two probes, each of which makes two calls."""


async def pass_seconds(seconds: float) -> None:
    """Let time go by: some faults are nothing but time."""
    end = time.monotonic() + seconds
    await eventually(lambda: time.monotonic() >= end, "time to pass", seconds + 60)


async def finish(site: Site, load: Load, probe: Probe) -> None:
    load.check()
    await probe.finish()
    await load.finish()
    load.expected |= probe.expected
    await audit(site, load)


def check_take_over(probe: Probe, before: float, gone: float) -> None:
    """Those that were under way on a node when it was gone are taken over in time. To be asked when all have ended."""
    longest = probe.find_longest(gone - RECOVERY, gone)
    print(f"the slowest of those under way took {longest:.1f} s")
    assert longest <= RECOVERY + NOISE_FACTOR * before


async def recover(probe: Probe, before: float, since: float, what: str) -> None:
    recovered, after = await probe.recover(since, before, RECOVERY)
    print(f"p99 {before * 1000:.0f} ms before, {after * 1000:.0f} ms in what began {recovered - since:.2f} s after {what}")


async def test_N1_others_are_as_fast_as_before_soon_after_two_kills(postgres_url: str, tmp_path: Path) -> None:
    with open_site(tmp_path, postgres_url) as site:
        nodes = await site.fleet.open("a", "b", "c", **DEFAULTS)
        async with (
            site.client(**DEFAULTS) as client,
            Load(client, site.seed, pace=0.3) as load,
            Probe(client, PACE) as probe,
        ):
            await load.go_on(5)
            kills: list[tuple[float, float]] = []
            for number in range(KILLS):
                before = await probe.watch()
                victim = nodes.pop(0)
                victim.kill()
                killed = time.monotonic()
                # Under its own name it would find its work by itself.
                nodes.append(site.fleet.start(f"{victim.name}{number}", **DEFAULTS))
                await recover(probe, before, killed, "a kill")
                await pass_seconds(killed + APART - WINDOW - time.monotonic())
                kills.append((killed, before))
            await finish(site, load, probe)
            for killed, before in kills:
                check_take_over(probe, before, killed)


async def test_N1_others_are_as_fast_as_before_soon_after_a_node_stands_still(postgres_url: str, tmp_path: Path) -> None:
    with open_site(tmp_path, postgres_url) as site:
        frozen, *_ = await site.fleet.open("a", "b", "c", **DEFAULTS)
        async with (
            site.client(**DEFAULTS) as client,
            Load(client, site.seed, pace=0.3) as load,
            Probe(client, PACE) as probe,
        ):
            await load.go_on(5)
            before = await probe.watch()
            frozen.tell(signal.SIGSTOP)
            froze = time.monotonic()
            await recover(probe, before, froze, "the node stood still")
            await pass_seconds(froze + FROZEN - time.monotonic())
            frozen.tell(signal.SIGCONT)
            await recover(probe, before, time.monotonic(), "it went on")
            await finish(site, load, probe)
            check_take_over(probe, before, froze)
        assert frozen.exit_code is None
