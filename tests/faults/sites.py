"""Where a fault's test takes place: a database, a ledger beside it, nodes as processes, and a client of theirs."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from holdfast import Engine
from tests.faults import flows, poisons
from tests.faults.callers import Caller, RemoteEngine
from tests.faults.ledger import Effect, make_ledger, read_ledger, read_ledger_file
from tests.faults.nodes import HEARTBEAT, LEASE, Fleet
from tests.faults.rest import describe_rest


class Site:
    """Everything that a test needs."""

    def __init__(self, fleet: Fleet, url: str, direct_url: str, ledger: str) -> None:
        self.url = url
        """The way that nodes and clients take."""
        self.direct_url = direct_url
        """The way of those who look on."""
        self.ledger = ledger
        self.fleet = fleet
        self.seed = int(os.environ.get("HOLDFAST_FAULTS_SEED") or random.randrange(1_000_000))
        self.random = random.Random(self.seed)
        self._asked_at = 0.0

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Engine]:
        """An engine that starts and signals, and takes no work: the nodes do that."""
        chosen: dict[str, Any] = {"heartbeat": HEARTBEAT, "lease": LEASE, "node": "client", "queues": ["nobody's"]} | options
        async with Engine(self.url, workflows=flows.WORKFLOWS + poisons.WORKFLOWS, **chosen) as engine:
            yield engine

    @asynccontextmanager
    async def caller(self) -> AsyncIterator[Caller]:
        """A client, on whichever database."""
        async with self.client() as engine:
            yield engine

    def has_passed(self, seconds: float) -> bool:
        """Whether so much time has gone by since this was asked first: some faults are nothing but time."""
        self._asked_at = self._asked_at or time.monotonic()
        return time.monotonic() - self._asked_at >= seconds

    def read_effects(self) -> list[Effect]:
        """What activities noted."""
        return read_ledger(self.direct_url, self.ledger)


class SqliteSite(Site):
    """The same on a file, which one process has: clients ask that process."""

    def __init__(self, folder: Path, socket: str) -> None:
        self._effects = folder / "effects"
        self._socket = socket
        url = f"sqlite:///{folder / 'app.db'}"
        super().__init__(Fleet(folder, url, str(self._effects), "", socket), url, url, "")

    @asynccontextmanager
    async def caller(self) -> AsyncIterator[Caller]:
        engine = RemoteEngine(self._socket)
        try:
            yield engine
        finally:
            await engine.close()

    def read_effects(self) -> list[Effect]:
        return read_ledger_file(self._effects)


@contextmanager
def open_site(folder: Path, url: str, *, direct_url: str | None = None) -> Iterator[Site]:
    """A site on the PostgreSQL database of a URL. Nodes end with it; a failure is told with what they said."""
    ledger = f"{parse_qs(urlsplit(url).query)['schema'][-1]}_effects"
    fleet = Fleet(folder, url, direct_url or url, ledger)
    site = Site(fleet, url, direct_url or url, ledger)
    with make_ledger(site.direct_url, ledger), _watch(site):
        yield site


@contextmanager
def open_sqlite_site(folder: Path) -> Iterator[Site]:
    """A site on a SQLite database in a folder."""
    with tempfile.TemporaryDirectory(prefix="hf") as short:  # the name of a socket has to be
        site = SqliteSite(folder, f"{short}/node")
        with _watch(site):
            yield site


@contextmanager
def _watch(site: Site) -> Iterator[None]:
    print(f"seed {site.seed} (HOLDFAST_FAULTS_SEED repeats it)")
    try:
        yield
    except BaseException as error:
        error.add_note(f"seed {site.seed}\n{site.fleet.describe()}\n{describe_rest(site.direct_url)}")
        raise
    finally:
        site.fleet.close()
