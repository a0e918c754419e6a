"""One client in each of the ways in which it can reach a database."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from holdfast import Client, Engine
from holdfast.engine.serving.frames import PROTOCOL, FrameKind, make_frame, read_frame
from holdfast.engine.serving.messages import Welcome
from holdfast.engine.serving.places import open_place
from holdfast.engine.verbs import Verbs
from holdfast.store.sqlite.ownership import Ownership
from tests.client.workflows import ACTIVITIES, WORKFLOWS

ROOT: Final = Path(__file__).resolve().parents[2]
LONGEST_TEST: Final = 120
"""Seconds."""


class Owner:
    """A process that owns a database, and can be killed."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "tests.client.owner_process", url]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def end(self, *, how: int = signal.SIGTERM) -> None:
        """End it, and wait until it is gone."""
        if self._process.poll() is None:
            self._process.send_signal(how)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def path_of(url: str) -> Path:
    """The file of a SQLite database."""
    return Path(url.removeprefix("sqlite:///"))


@asynccontextmanager
async def drop_calls(url: str) -> AsyncIterator[list[bytes]]:
    """An owner that takes each call and is gone before it answers."""
    calls: list[bytes] = []
    ownership, place = Ownership(path_of(url)), open_place()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader, 4096)
        welcome = msgspec.json.encode(Welcome(PROTOCOL, "", 100_000))
        writer.write(make_frame(FrameKind.WELCOME, 0, welcome))
        frame = await read_frame(reader, 100_000)
        if frame is not None:
            calls.append(frame.body)
        if len(calls) == 2:
            ownership.give_up()
        writer.close()

    ownership.take(0)
    ownership.announce(place.endpoint)
    server = await asyncio.start_server(serve, sock=place.listener)
    try:
        yield calls
    finally:
        server.close()
        place.close()
        ownership.give_up()


class Way:
    """A way to reach a database: who takes the calls, and who runs the workflows."""

    def __init__(self, url: str, verbs: Verbs, *, is_idle: bool = False) -> None:
        self.url = url
        self.verbs = verbs
        self.is_idle = is_idle

    async def work(self, *targets: str) -> None:
        """Let executions come to their ends: where nobody owns the file, somebody has to for a moment."""
        if self.is_idle:
            async with make_engine(self.url) as engine:
                for target in targets:
                    await engine.handle(target).result()


def make_engine(url: str, **options: Any) -> Engine:
    return Engine(url, workflows=WORKFLOWS, activities=ACTIVITIES, shutdown_grace=0.5, **options)


@asynccontextmanager
async def open_way(kind: str, url: str) -> AsyncIterator[Way]:
    if kind == "engine":
        async with make_engine(url) as engine:
            yield Way(url, engine)
    elif kind == "postgres":
        async with make_engine(url), Client(url) as client:
            yield Way(url, client)
    elif kind == "socket":
        owner = Owner(url)
        try:
            async with Client(url) as client:
                yield Way(url, client)
        finally:
            owner.end()
    else:
        async with make_engine(url):
            pass  # it makes the file
        async with Client(url) as client:
            yield Way(url, client, is_idle=True)


@pytest.fixture(params=["engine", "postgres", "socket", "nobody"])
async def way(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Way]:
    """Each way in turn, on an empty database."""
    is_postgres = request.param == "postgres"
    url = str(request.getfixturevalue("postgres_url")) if is_postgres else f"sqlite:///{tmp_path / 'app.db'}"
    async with open_way(request.param, url) as way:
        yield way


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'app.db'}"


@pytest.fixture
def owner(file_url: str) -> Iterator[Owner]:
    """Another process that owns the file."""
    owner = Owner(file_url)
    yield owner
    owner.end()


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """A test that waits for what will never come fails instead of holding up the others."""

    def give_up(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"the test did not end within {LONGEST_TEST} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST_TEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
