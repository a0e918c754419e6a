"""What may be asked about dead letters: checked before a store sees it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from holdfast.core.ids import check_identifier
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.errors import InvalidArguments

_LARGEST: Final = 2**63 - 1
"""The largest number that a database keeps."""


def check_page(org: object, limit: object, after: object) -> None:
    """Whether a page of dead letters can be asked for. Raises InvalidIdentifier or InvalidArguments."""
    check_identifier(org, "the org")
    for name, value in (("limit", limit), ("after", after)):
        if not _is_number(value):
            raise InvalidArguments(
                f"Expected {name}=… to be a whole number from 0, but it is {show(value, repr, LONGEST_SHOWN)}. Correct it."
            )


def check_ids(org: object, ids: Collection[int]) -> list[int]:
    """The ids of dead letters, as a list. Raises InvalidIdentifier or InvalidArguments."""
    check_identifier(org, "the org")
    try:
        found = [*ids] if not isinstance(ids, str | bytes) else None
    except TypeError:
        found = None
    if found is None or not all(map(_is_number, found)):
        raise InvalidArguments(
            f"Expected ids of dead letters, whole numbers in a list, but got {show(ids, repr, LONGEST_SHOWN)}. Take them "
            "from dead_letters()."
        )
    return found


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST
