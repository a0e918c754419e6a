"""Engines in virtual time, on each store that a process can own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from holdfast.testing import TestEngine
from tests.testing import flows


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of store, empty."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'holdfast.db'}"


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
