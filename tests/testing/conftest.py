"""Engines in virtual time, on each store."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from holdfast.testing import TestEngine
from tests.places import make_url
from tests.testing import flows

LONGEST_TEST: Final = 120
"""Seconds."""


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of store, empty."""
    return make_url(request, tmp_path)


@pytest.fixture(autouse=True)
def _fresh_notes() -> Iterator[None]:
    flows.notes.clear()
    yield
    flows.release_threads()


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine in memory whose time jumps by itself, and which waits for no activity that waits for real."""
    async with TestEngine(workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES, patience=0) as engine:
        yield engine


@pytest.fixture
async def still(url: str) -> AsyncIterator[TestEngine]:
    """An engine on each store whose time moves only when a test says so."""
    async with TestEngine(
        url, workflows=flows.WORKFLOWS, activities=flows.ACTIVITIES, auto_advance=False, patience=0
    ) as engine:
        yield engine


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
