"""Identifiers: how ours are made and what users' may look like."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from holdfast.core.safe_texts import name_type
from holdfast.errors import InvalidIdentifier

DEFAULT_ORG: Final = "default"
DEFAULT_QUEUE: Final = "default"
LONGEST_ID: Final = 255
LONGEST_TOPIC: Final = 255
"""How many bytes names of messages, events and broadcast signals, and ids of messages, have at most."""

_SHORT: Final = (int, float, bytes, type(None))
"""Types whose values a message may show; others may be of any length."""
_VERSION_AND_VARIANT: Final = (0x7 << 76) | (0b10 << 62)


def make_execution_id(at_us: int, entropy: int) -> str:
    """A UUIDv7: 48 bits of milliseconds, 12 bits of their fraction (RFC 9562, 6.2, method 3), 62 bits of `entropy`.

    So ids that were made at different microseconds are ordered as they were made.
    """
    milliseconds, micros = divmod(at_us, 1000)
    fraction = (micros << 12) // 1000
    value = (milliseconds << 80) | _VERSION_AND_VARIANT | (fraction << 64) | (entropy & 0x3FFF_FFFF_FFFF_FFFF)
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def instant_of(execution_id: str) -> int:
    """When an execution id was made, in microseconds since the epoch."""
    digits = execution_id.replace("-", "")
    return int(digits[:12], 16) * 1000 + -(-int(digits[13:16], 16) * 1000 // 4096)


def derive_execution_id(at_us: int, parent_id: str, number: int) -> str:
    """The id of what an execution starts as its command `number`: the same however often it is asked."""
    return make_execution_id(at_us, derive_entropy(parent_id, number))


def derive_entropy(*parts: object) -> int:
    """128 bits that depend on `parts` alone, the same in every process."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=16).digest(), "big")


def seed_of(execution_id: str) -> int:
    """A number that is the same for an execution in every process: the random tail of its id."""
    return int(execution_id[-12:], 16)


@lru_cache(maxsize=1024)  # most calls name an org, a signal or an execution that others named before
def _is_identifier(value: str) -> bool:
    return 0 < len(value) <= LONGEST_ID and value.isprintable() and value.strip() == value


def check_identifier(value: object, what: str, example: str = "an id such as 'order-1042'") -> str:
    """`value` if it can serve as an identifier; raises InvalidIdentifier that says what is wrong with it.

    `example`: what to choose instead.
    """
    if type(value) is str and _is_identifier(value):
        return value
    if not isinstance(value, str):
        found = f"it is {name_type(value)}" + (f" {value!r}" if isinstance(value, _SHORT) else "")
    elif not value:
        found = "it is empty"
    elif len(value) > LONGEST_ID:
        found = f"it has {len(value)} characters"
    elif not value.isprintable():
        found = f"it holds control or unprintable characters: {value!r}"
    else:
        found = f"it begins or ends with white space: {value!r}"
    raise InvalidIdentifier(
        f"Expected {what} to be text of 1 to {LONGEST_ID} printable characters, but {found}. Choose {example}."
    )


def check_topic(value: object, what: str) -> str:
    """An identifier under which things are published, short enough for the index of a store. Raises InvalidIdentifier."""
    found = check_identifier(value, what)
    if len(found) * 4 > LONGEST_TOPIC and (size := len(found.encode())) > LONGEST_TOPIC:
        raise InvalidIdentifier(
            f"Expected {what} to have at most {LONGEST_TOPIC} bytes in UTF-8, but it has {size}. Choose a shorter one."
        )
    return found


def check_person(value: object) -> str:
    """The name of whoever does something. Raises InvalidIdentifier."""
    return check_identifier(value, "who does it (by=…)", "a person, such as 'ann'")


def check_label(value: object, what: str) -> str:
    """A name for people: any identifier, or empty for none. Raises InvalidIdentifier."""
    return "" if type(value) is str and not value else check_identifier(value, f"the name of {what}")
