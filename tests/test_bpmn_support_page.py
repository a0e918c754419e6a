"""The page about what is supported of BPMN names every code that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from holdfast.bpmn.reading import LIMITS

_ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (_ROOT / "docs" / "bpmn-support.md").read_text()
_REPORTED: Final = re.compile(
    r"(?:report|notice|tell)\(\s*(?:\w+(?:[.\[\]\w]|\(\))*,\s*)?(?:[\w.\[\]]+,\s*)?\"([a-z]+(?:-[a-z]+)*)\"|code=\"([a-z-]+)\""
)


def _find_codes() -> set[str]:
    """All texts in the readers and checks that are codes of problems."""
    found = {"duplicate-id", "not-yet"}
    for folder in ("reading", "checks"):
        for path in (_ROOT / "holdfast" / "bpmn" / folder).glob("*.py"):
            found |= {one or other for one, other in _REPORTED.findall(path.read_text())}
    return found


def test_the_page_names_every_code() -> None:
    listed = PAGE.partition("## Codes of problems")[2]

    assert _find_codes() - set(re.findall(r"`([a-z-]+)`", listed)) == set()


def test_the_page_names_the_limits() -> None:
    assert f"{LIMITS.bytes:,} bytes" in PAGE
    assert f"{LIMITS.elements:,} XML elements" in PAGE
    assert f"{LIMITS.depth} deep" in PAGE
    assert f"{LIMITS.attributes:,} attributes" in PAGE
