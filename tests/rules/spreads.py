"""Few subscribers that stores take for many."""

from __future__ import annotations

import sys

import pytest


def shrink_spreads(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let stores put the inbox rows of what has more subscribers than so many in batches of so many."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("holdfast.store", "holdfast.engine")) and hasattr(module, "SPREAD_FROM"):
            monkeypatch.setattr(module, "SPREAD_FROM", size)
