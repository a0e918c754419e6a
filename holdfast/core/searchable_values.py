"""Values of states as lists compare them: text that sorts as the values do, by every store the same way.

Text is compared by its code points, which is what Python does with `str`, SQLite with BINARY and PostgreSQL with "C". The
first character tells the type, so that values of different types never meet in a range:

    b0, b1                  false, true
    d2026-11-18T01:02:03.000000    an instant: text in the form of ISO 8601; without an offset it is UTC, a date its midnight
    n…                      a number of any size, exactly
    s…                      any other text

A number is its sign, the exponent of ten and the digits. Those of a negative number are complemented and end with
`~`, which is behind all digits: so -1.5 comes before -1. The number 1, 1.0 and 1e0 are one value.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

LONGEST_NAME: Final = 255
"""How many bytes the name of an attribute has at most by which one can search."""
LONGEST_VALUE: Final = 500
"""How many bytes its value has at most: entries of an index are bounded. What is longer is kept, but not found."""

BOOLEAN: Final = "b"
INSTANT: Final = "d"
NUMBER: Final = "n"
TEXT: Final = "s"
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:\d\d)?)?", re.ASCII)
_BIAS: Final = 50_000
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")


def encode_value(value: Any) -> str | None:
    """A scalar of JSON (or a Decimal) as text that sorts by value; None if no search can find it."""
    match value:
        case bool():
            return f"{BOOLEAN}{int(value)}"
        case int() | float() | Decimal():
            return _encode_number(value)
        case str():
            return _encode_text(value)
        case _:
            return None


def find_type_end(encoded: str) -> str:
    """A text behind all values that have the type of this one, and before those of the next."""
    return chr(ord(encoded[0]) + 1)


def find_searchable(state: Any, names: Collection[str] | None) -> dict[str, str]:
    """The top-level entries of a state, which is a value of JSON, that lists can search: by name, as they compare them.

    `names` are those that may be searched; None: all.
    """
    if not isinstance(state, dict):
        return {}
    found = {}
    for name, value in state.items():
        if (names is None or name in names) and is_storable_name(name):
            encoded = encode_value(value)
            if encoded is not None:
                found[name] = encoded
    return found


def is_storable_name(name: str) -> bool:
    """Whether an attribute of this name can be in an index of every store."""
    return bool(name) and len(name.encode()) <= LONGEST_NAME and "\0" not in name


def read_instant(text: str) -> datetime | None:
    """The instant that a text in the form of ISO 8601 stands for, in UTC; None if it is none."""
    if _ISO.fullmatch(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text.upper())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _encode_text(text: str) -> str | None:
    if len(text.encode()) > LONGEST_VALUE or "\0" in text:
        return None
    instant = read_instant(text)
    if instant is None:
        return TEXT + text
    return f"{INSTANT}{instant.replace(tzinfo=None).isoformat(timespec='microseconds')}"


def _encode_number(number: float | Decimal) -> str | None:
    try:
        exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    except (InvalidOperation, ValueError):
        return None
    sign, parts, exponent = exact.as_tuple()
    if not isinstance(exponent, int):
        return None  # infinite, or not a number
    digits = "".join(map(str, parts)).lstrip("0")
    if not digits:
        return f"{NUMBER}5"
    scale = len(digits) + exponent + _BIAS
    digits = digits.rstrip("0")
    if not 0 <= scale < 2 * _BIAS or len(digits) > LONGEST_VALUE - 10:
        return None
    if sign:
        return f"{NUMBER}4{2 * _BIAS - 1 - scale:05}{digits.translate(_COMPLEMENT)}~"
    return f"{NUMBER}6{scale:05}{digits}"
