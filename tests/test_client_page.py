"""The list of verbs in docs/client.md is complete."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from holdfast.engine.verbs import Verbs

PAGE = (Path(__file__).parents[1] / "docs" / "client.md").read_text()
FOR_HANDLES = {"find_started", "wait_for_result"}


def test_the_page_lists_exactly_the_verbs() -> None:
    listed = PAGE.split("`Client` has the verbs of `Engine`")[1].split("What only an engine does")[0]
    verbs = {name for name, one in inspect.getmembers(Verbs, inspect.isfunction) if not name.startswith("_")}

    assert set(re.findall(r"`(\w+)`", listed)) == verbs - FOR_HANDLES
