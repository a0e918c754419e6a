"""By what executions are found beside their columns: so far their metadata, which is in their details and never changes."""

from __future__ import annotations

from typing import Final

import msgspec

LONGEST_NAME: Final = 255
"""How many bytes the name of an attribute has at most by which one can search."""
LONGEST_VALUE: Final = 500
"""How many bytes its value has at most: entries of an index are bounded. What is longer is kept, but not found."""

_BEGIN: Final = b'"metadata":{"'


class _Details(msgspec.Struct):
    metadata: dict[str, str] = {}


_DECODER: Final = msgspec.json.Decoder(_Details)


def read_metadata(details: bytes) -> list[tuple[str, str]]:
    """The metadata in an execution's details by which it can be found; none where they cannot be read."""
    if _BEGIN not in details:
        return []
    try:
        found = _DECODER.decode(details).metadata
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []
    return [(name, value) for name, value in found.items() if is_searchable(name, value)]


def is_searchable(name: str, value: str) -> bool:
    """Whether an attribute can be in an index."""
    is_short = len(name.encode()) <= LONGEST_NAME and len(value.encode()) <= LONGEST_VALUE
    return is_short and "\0" not in name and "\0" not in value
