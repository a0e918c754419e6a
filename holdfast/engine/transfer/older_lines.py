"""Lines that an older Holdfast exported, in the present shape.

In version 1 a timer's kind was the sign of its attempt (0: the program's own, above: a retry, below: an offer), the nodes of
an execution were one text with commas, and an offered activity named the node `,offered`.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct

from holdfast.core import codec
from holdfast.core.effects import TimerKind
from holdfast.errors import CorruptStore, NewerFormat

_OFFERED: Final = ",offered"


class _FirstTimer(Struct, forbid_unknown_fields=True):
    """A timer of version 1."""

    number: Raw
    due: Raw
    attempt: int
    route: Raw


class _First(Struct):
    """A line of version 1, as far as it differs from the present one. All the rest is kept as it stands."""

    row: dict[str, Raw]
    details: Raw
    timers: list[_FirstTimer]


_FIRST: Final = msgspec.json.Decoder(_First)
_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
_NODE: Final = msgspec.json.Decoder(str | None)


def upcast_line(text: bytes) -> bytes:
    """A line of version 1 as one of version 2. Raises MsgspecError where it is no such line."""
    first = _FIRST.decode(text)
    nodes = _NODE.decode(first.row.get("node", b"null")) or ""
    row = {name: value for name, value in first.row.items() if name != "node"}
    timers = [
        {
            "number": one.number,
            "due": one.due,
            "kind": _find_kind(one.attempt),
            "attempt": abs(one.attempt),
            "route": one.route,
        }
        for one in first.timers
    ]
    changed = {
        "version": 2,
        "row": {**row, "nodes": [name for name in nodes.split(",") if name]},
        "details": _upcast_details(first.details),
        "timers": timers,
    }
    return msgspec.json.encode({**_FIELDS.decode(text), **changed})


def _find_kind(attempt: int) -> TimerKind:
    if attempt == 0:
        return TimerKind.TIMER
    return TimerKind.RETRY if attempt > 0 else TimerKind.OFFER


def _upcast_details(raw: Raw) -> Raw:
    try:
        details = codec.decode_details(bytes(raw))
    except (CorruptStore, NewerFormat):
        return raw  # whoever checks the line says what is wrong with them
    details.attempts = {
        number: msgspec.structs.replace(one, node=None, offered=True) if one.node == _OFFERED else one
        for number, one in details.attempts.items()
    }
    return Raw(codec.encode(details))
