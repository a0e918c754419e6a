"""Halves of surrogate pairs: code points that Python's texts may hold, and that are no characters. FEEL refuses them.

DMN 10.3.2.3.2: strings are sequences of Unicode characters. UTF-8 and JSON have no form for a half either.
"""

from __future__ import annotations

import re
from typing import Final

HALF_OF_PAIR: Final = "a text with half of a surrogate pair in it, which is no character"

_HALF: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def has_surrogate(text: str) -> bool:
    """Whether there is a code point in a text that is half of a pair; quick for ASCII."""
    return not text.isascii() and _HALF.search(text) is not None


def find_surrogate(text: str) -> int | None:
    """The offset of the first such code point."""
    found = None if text.isascii() else _HALF.search(text)
    return None if found is None else found.start()


def join_pairs(text: str) -> str:
    """A text in which two halves that belong together are the character that they stand for."""
    return _PAIR.sub(lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text)
