"""N1: connections are cut in the middle of a commit. Whether it happened is found out; nothing is done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.audit import audit
from tests.faults.load import Load
from tests.faults.nodes import PATIENCE
from tests.faults.sites import open_site
from tests.postgres.proxy import Proxy, is_commit

CUTS = 60


async def test_N1_commits_are_cut_before_and_after_they_happen_under_load(postgres_url: str, tmp_path: Path) -> None:
    with Proxy(postgres_url) as proxy, open_site(tmp_path, proxy.url, direct_url=postgres_url) as site:
        await site.fleet.open("a", "b")
        async with site.client() as client, Load(client, site.seed) as load:
            for _ in range(CUTS):
                cut = site.random.choice([proxy.cut_before, proxy.cut_after])
                trap = cut(is_commit)
                await asyncio.to_thread(trap.wait, PATIENCE)
            await load.go_on(10)
            await load.finish()

        await audit(site, load)


async def test_N1_connections_break_anywhere_under_load(postgres_url: str, tmp_path: Path) -> None:
    with Proxy(postgres_url) as proxy, open_site(tmp_path, proxy.url, direct_url=postgres_url) as site:
        await site.fleet.open("a", "b")
        async with site.client() as client, Load(client, site.seed) as load:
            for number in range(CUTS // 3):
                by_client = site.random.random() < 0.5
                trap = proxy.cut_after_bytes(site.random.randrange(50_000), sent_by="client" if by_client else "server")
                await asyncio.to_thread(trap.wait, PATIENCE)
                if number % 5 == 0:
                    # All at once, and the server does not notice: what they hold stays locked for a while.
                    proxy.cut(server_too=number % 2 == 0)
            await load.go_on(10)
            await load.finish()

        await audit(site, load)
