"""Pairs of databases for transfers: where from, and where to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.transfer.databases import name_database


@pytest.fixture(params=["sqlite to postgres", "postgres to sqlite", "sqlite to sqlite"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Where from and where to: neither is there yet."""
    from_, _, to = request.param.split()
    return name_database(request, tmp_path, from_, "source"), name_database(request, tmp_path, to, "target")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Where from and where to, both SQLite: for what does not depend on the kind."""
    return f"sqlite:///{tmp_path / 'source.db'}", f"sqlite:///{tmp_path / 'target.db'}"
