"""Where a fault's test takes place: a database, a ledger beside it, nodes as processes, and a client of theirs."""

from __future__ import annotations

import os
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from holdfast import Engine
from tests.faults.flows import WORKFLOWS
from tests.faults.ledger import Effect, make_ledger, read_ledger
from tests.faults.nodes import HEARTBEAT, LEASE, Fleet
from tests.faults.rest import describe_rest


class Site:
    """Everything that a test needs."""

    def __init__(self, folder: Path, url: str, direct_url: str) -> None:
        self.url = url
        """The way that nodes and clients take."""
        self.direct_url = direct_url
        """The way of those who look on."""
        self.schema = parse_qs(urlsplit(url).query)["schema"][-1]
        self.ledger = f"{self.schema}_effects"
        self.fleet = Fleet(folder, url, direct_url, self.ledger)
        self.seed = int(os.environ.get("HOLDFAST_FAULTS_SEED") or random.randrange(1_000_000))
        self.random = random.Random(self.seed)
        self._asked_at = 0.0

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Engine]:
        """An engine that starts and signals, and takes no work: the nodes do that."""
        chosen: dict[str, Any] = {"heartbeat": HEARTBEAT, "lease": LEASE, "node": "client", "queues": ["nobody's"]} | options
        async with Engine(self.url, workflows=WORKFLOWS, **chosen) as engine:
            yield engine

    def has_passed(self, seconds: float) -> bool:
        """Whether so much time has gone by since this was asked first: some faults are nothing but time."""
        self._asked_at = self._asked_at or time.monotonic()
        return time.monotonic() - self._asked_at >= seconds

    def read_effects(self) -> list[Effect]:
        """What activities noted."""
        return read_ledger(self.direct_url, self.ledger)


@contextmanager
def open_site(folder: Path, url: str, *, direct_url: str | None = None) -> Iterator[Site]:
    """A site on the database of a URL. Nodes end with it; a failure is told with what they said."""
    site = Site(folder, url, direct_url or url)
    print(f"seed {site.seed} (HOLDFAST_FAULTS_SEED repeats it)")
    with make_ledger(site.direct_url, site.ledger):
        try:
            yield site
        except BaseException as error:
            error.add_note(f"seed {site.seed}\n{site.fleet.describe()}\n{describe_rest(site.direct_url)}")
            raise
        finally:
            site.fleet.close()
