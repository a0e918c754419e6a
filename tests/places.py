"""Where a test may have a database of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


def make_url(request: pytest.FixtureRequest, folder: Path) -> str:
    """The URL of an empty store of the kind that is the fixture's parameter."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return "memory://" if request.param == "memory" else f"sqlite:///{folder / 'app.db'}"
