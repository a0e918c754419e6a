"""Every rule is proved on every store, and on two nodes where it speaks of nodes."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.places import make_url
from tests.rules.steps import forget_steps
from tests.rules.watched_postgres import PostgresNodes
from tests.rules.world import Nodes, World

LONGEST_TEST: Final = 120
"""Seconds."""


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Each store in turn, empty."""
    world = World(make_url(request, tmp_path))
    yield world
    await world.close()


@pytest.fixture(params=["memory", "sqlite"])
async def alone(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Each store of one process in turn, empty: no other node will ever know what this one does not."""
    world = World(make_url(request, tmp_path))
    yield world
    await world.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def stored(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """Each store that lasts in turn, empty: its columns can be changed behind its back."""
    world = World(make_url(request, tmp_path))
    yield world
    await world.close()


@pytest.fixture
async def on_file(tmp_path: Path) -> AsyncIterator[World]:
    """A store that keeps a file to look into, empty."""
    world = World(f"sqlite:///{tmp_path / 'app.db'}")
    yield world
    await world.close()


@pytest.fixture(params=["memory", "postgres"])
async def nodes(request: pytest.FixtureRequest) -> AsyncIterator[Nodes]:
    """Each database that several nodes can share, empty."""
    nodes = Nodes() if request.param == "memory" else PostgresNodes(request.getfixturevalue("postgres_url"))
    yield nodes
    await nodes.close()


@pytest.fixture(autouse=True)
def fresh_steps() -> None:
    """Nobody has called anything yet."""
    forget_steps()


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
