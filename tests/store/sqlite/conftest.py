"""A database file for each test, and its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    """Open and empty."""
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()
