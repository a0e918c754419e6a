"""Unions of classes: which of them a JSON object stands for.

msgspec takes unions of tagged structs only. Here classes of every kind are told apart: by the value of a key that each has
with other values (a tag, or a field that is a `Literal`), else by the keys that they are written with. Whether that is
possible is known from the classes alone, so a union for which it is not is refused before anything is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, Union

import msgspec

from holdfast.core.record_types import RecordType, find_tags, list_choices, read_record

TAG_REMEDY: Final = (
    "Give each a field that tells them apart, such as `kind: Literal['cat'] = 'cat'`, "
    "or make them msgspec structs with tag=True"
)

Read = Callable[[Any, Any], Any]
"""Reads a plain JSON value as a hint."""


class IndistinctUnion(TypeError):
    """Two types of a union cannot be told apart in JSON. The message has the remedy."""


class Choice:
    """Reads the values of one union of classes and other types."""

    def __init__(self, hint: Any, read: Read) -> None:
        self._read = read
        self._records: list[tuple[RecordType, Any]] = []
        others = []
        for choice in list_choices(hint):
            record = read_record(choice)
            if record is None or record.is_array:
                others.append(choice)
            else:
                self._records.append((record, choice))
        self._others: Any = Union[tuple(others)] if others else None  # noqa: UP007 - made of a list
        self._names = ", ".join(record.cls.__name__ for record, _ in self._records)
        self.has_others = bool(others)
        for record, _ in self._records:
            if record.kind == "model" and (not record.fields or getattr(record.cls, "__pydantic_root_model__", False)):
                raise IndistinctUnion(
                    f"the JSON of {record.cls.__name__} may look like that of the other types of the union. {TAG_REMEDY}"
                )
        self._tag_key, self._by_tag = find_tag(self._records)
        if self._tag_key is None:
            _check_keys([record for record, _ in self._records])

    def get_others(self) -> Any:
        """The types of the union that are not JSON objects with known keys, as a union; None if there are none."""
        return self._others

    def read(self, value: Any) -> Any:
        """The value that plain JSON stands for. Raises ValueError if it fits none of the types."""
        if isinstance(value, dict) and self._records:
            return self._read(self._choose(value), value)
        if self._others is None:
            raise ValueError(f"expected an object that is one of {self._names}, got `{type(value).__name__}`")
        return self._read(self._others, value)

    def _choose(self, value: dict[str, Any]) -> Any:
        if self._tag_key is not None and self._tag_key in value:
            tag = value[self._tag_key]
            chosen = self._by_tag.get((type(tag), tag)) if isinstance(tag, str | int) else None
            if chosen is None:
                known = ", ".join(sorted(repr(one) for _, one in self._by_tag))
                raise ValueError(f"expected `{self._tag_key}` to be one of {known}, got {tag!r}")
            return chosen
        keys = frozenset(value)
        found: list[Any] = []
        for fits in (_fits_exactly, _fits, _fits_with_more):
            found = [choice for record, choice in self._records if fits(record, keys)]
            if len(found) == 1:
                return found[0]
            if found:
                break
        how = "several" if found else "none"
        raise ValueError(f"an object with the fields {', '.join(map(repr, keys)) or 'none'} fits {how} of {self._names}")


def _fits_exactly(record: RecordType, keys: frozenset[str]) -> bool:
    return record.steady_keys <= keys <= record.keys


def _fits(record: RecordType, keys: frozenset[str]) -> bool:
    return record.required_keys <= keys <= record.keys


def _fits_with_more(record: RecordType, keys: frozenset[str]) -> bool:
    return record.required_keys <= keys


def find_tag(records: Sequence[tuple[RecordType, Any]]) -> tuple[str | None, dict[Any, Any]]:
    """The key by which all the classes can be told apart, and the class for each of its values."""
    if not records:
        return None, {}
    tags = [find_tags(record) for record, _ in records]
    for key in tags[0]:
        if not all(key in one for one in tags):
            continue
        by_tag = {(type(value), value): choice for one, (_, choice) in zip(tags, records, strict=True) for value in one[key]}
        if len(by_tag) == sum(len(one[key]) for one in tags):
            return key, by_tag
    return None, {}


def _check_keys(records: Sequence[RecordType]) -> None:
    for one, other in itertools.combinations(records, 2):
        if one.steady_keys | other.steady_keys <= one.keys & other.keys or (one.takes_more and other.takes_more):
            fields = ", ".join(sorted(one.keys & other.keys)) or "no fields"
            raise IndistinctUnion(
                f"{one.cls.__name__} and {other.cls.__name__} cannot be told apart in JSON: both may be written with "
                f"the same fields ({fields}). {TAG_REMEDY}"
            )
    for one in records:
        for other in records:
            if one is not other and one.takes_more and one.steady_keys <= other.keys:
                raise IndistinctUnion(
                    f"{one.cls.__name__} takes extra fields, so it cannot be told from {other.cls.__name__}. {TAG_REMEDY}"
                )


def takes(hint: Any) -> bool:
    """Whether msgspec itself can tell the types of a union apart."""
    try:
        msgspec.json.Decoder(hint)
    except (TypeError, NotImplementedError, ValueError):
        return False
    return True
