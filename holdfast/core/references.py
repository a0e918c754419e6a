"""Business references: what an execution is about, in the words of the business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.searchable_values import LONGEST_VALUE, is_storable_name
from holdfast.errors import InvalidArguments


class BusinessReference(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an execution is about: a key such as a policy number, and parts of it by name, by each of which it is found.

    Children and next runs inherit it. Keys and parts are stored as plain text, also where a codec encodes values.
    """

    key: str
    parts: dict[str, str] = {}


def check_reference(reference: Any) -> BusinessReference | None:
    """The reference that is given to a start. Raises InvalidArguments."""
    if reference is None:
        return None
    if not isinstance(reference, BusinessReference):
        raise InvalidArguments(
            f"Expected business_reference to be made by BusinessReference(…), "
            f"but it is {show(reference, repr, LONGEST_SHOWN)}. "
            "Pass for instance BusinessReference('1200345', {'policy': 'P-1'})."
        )
    parts = reference.parts
    if not isinstance(parts, Mapping):
        raise InvalidArguments(
            "Expected the parts of a business reference to map text to text, "
            f"but they are {show(parts, repr, LONGEST_SHOWN)}. Pass for instance {{'policy': 'P-1'}}."
        )
    check_key(reference.key)
    for name, value in parts.items():
        if not isinstance(name, str) or not _is_unicode(name) or not is_storable_name(name):
            raise InvalidArguments(
                "Expected the name of a part of a business reference to be text of 1 to 255 bytes, "
                f"but it is {show(name, repr, LONGEST_SHOWN)}. Name it otherwise."
            )
        _check_text(value, f"part '{name}' of a business reference")
    return BusinessReference(reference.key, dict(parts))


def check_key(key: Any) -> str:
    """The key of a business reference. Raises InvalidArguments."""
    _check_text(key, "the key of a business reference")
    return str(key)


def _check_text(text: Any, what: str) -> None:
    if not isinstance(text, str):
        raise InvalidArguments(
            f"Expected {what} to be text, but it is {show(text, repr, LONGEST_SHOWN)}. Write it as text: str(…)."
        )
    if not _is_unicode(text) or not 0 < len(text.encode()) <= LONGEST_VALUE or "\0" in text:
        is_long = _is_unicode(text) and len(text.encode()) > LONGEST_VALUE
        raise InvalidArguments(
            f"Expected {what} to be text of 1 to {LONGEST_VALUE} bytes without NUL, "
            f"but it is {show(text, repr, LONGEST_SHOWN)}. {'Shorten' if is_long else 'Correct'} it."
        )


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= one <= "\udfff" for one in text)
