"""By what executions are found beside their columns: their metadata, their business reference and their state.

All of it is in their details, where it is part of the row that a turn commits. The table of attributes repeats it for lists:
metadata and references are written with the execution, and never change; of the state the keys that a turn changes, and no
others. Values of states are written as `core.searchable_values` says, so that text compares as they do. Everything goes
with the execution when it is removed; what has closed is still found until then.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.core.references import BusinessReference
from holdfast.core.searchable_values import LONGEST_NAME, LONGEST_VALUE

METADATA: Final = "metadata"
STATE: Final = "state"
REFERENCE: Final = "reference"
PART: Final = "part"
DEFINITION: Final = "definition"
"""Of an execution of a deployed process: its process id, with its version as the value. It is written with the execution,
for `Store.purge`, and no list asks for it."""

_BEGIN: Final = (b'"metadata":{"', b'"searchable":{"', b'"reference":{"')
"""What the details of an execution contain that has attributes; migrations of PostgreSQL look for the same."""


class AttributeChange(msgspec.Struct, frozen=True, gc=False):
    """A key of a state that has another value from now on; None: it is gone."""

    name: str
    value: str | None


class _Details(msgspec.Struct):
    metadata: dict[str, str] = {}
    searchable: dict[str, str] = {}
    reference: BusinessReference | None = None


_DECODER: Final = msgspec.json.Decoder(_Details)


def read_attributes(details: bytes) -> list[tuple[str, str, str]]:
    """What an execution is found by, as (kind, name, value), from its details; nothing where they cannot be read."""
    if b'":{"' not in details or not any(begin in details for begin in _BEGIN):
        return []
    try:
        found = _DECODER.decode(details)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []
    rows = [(METADATA, name, value) for name, value in found.metadata.items() if is_searchable(name, value)]
    others = [(STATE, name, value) for name, value in found.searchable.items()]
    if found.reference is not None:
        others.append((REFERENCE, "", found.reference.key))
        others += [(PART, name, value) for name, value in found.reference.parts.items()]
    if b"\\u0000" in details:  # of metadata: states and references are checked before they are written
        others = [one for one in others if "\0" not in one[1] and "\0" not in one[2]]
    return rows + others


def is_process(details: bytes) -> bool:
    """Whether an execution is one of a deployed process, by its details."""
    return b'"route_name":"' in details


def list_attributes(workflow: str, code_version: str, details: bytes) -> list[tuple[str, str, str]]:
    """All by which an execution is found beside its columns, as (kind, name, value); none of what cannot be read."""
    found = read_attributes(details)
    return [*found, (DEFINITION, workflow, code_version)] if is_process(details) else found


def read_metadata(details: bytes) -> list[tuple[str, str]]:
    """The metadata in an execution's details by which it can be found; none where they cannot be read."""
    return [(name, value) for kind, name, value in read_attributes(details) if kind == METADATA]


def list_changes(before: dict[str, str], after: dict[str, str]) -> list[AttributeChange]:
    """What changed in the searchable part of a state."""
    ended = [AttributeChange(name, None) for name in before if name not in after]
    return ended + [AttributeChange(name, value) for name, value in after.items() if before.get(name) != value]


def is_searchable(name: str, value: str) -> bool:
    """Whether an attribute can be in an index."""
    is_short = len(name.encode()) <= LONGEST_NAME and len(value.encode()) <= LONGEST_VALUE
    return is_short and "\0" not in name and "\0" not in value
