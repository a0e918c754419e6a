"""Refused when they are written: entries of a dict that JSON would merge, and objects with the tag of another class."""

from __future__ import annotations

import collections
import dataclasses
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest

from holdfast.core import payloads
from holdfast.core.payloads import DEFAULT_LIMIT
from holdfast.core.signatures import Signature
from holdfast.errors import EncodingError

T = TypeVar("T")


def take(hint: Any) -> Signature:
    """The signature of a function that takes one value of a hint."""

    def function(item):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return item

    function.__annotations__ = {"item": hint}
    return Signature(function, "activity 'take'", skip=0)


class Colour(Enum):
    RED = "red"


@dataclass
class Bag:
    content: Any


class Box(pydantic.BaseModel):
    content: Any


UID = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
MERGED: dict[Any, Any] = {1: "a", "1": "b"}


@pytest.mark.parametrize("hint", [Any, object, dict, Mapping, dict[Any, Any], dict[int, str], dict[int, Any], T])
def test_V1_entries_that_have_one_key_in_json_are_refused_by_name(hint: Any) -> None:
    reason = "the keys 1 and '1' of a dict are one key in JSON, so that an entry would be lost. Pass keys of one type."

    with pytest.raises(EncodingError, match=re.escape(reason)):
        take(hint).encode_arguments([MERGED], {}, DEFAULT_LIMIT)


@pytest.mark.parametrize(
    "value",
    [
        {Colour.RED: 1, "red": 2},
        {UID: 1, str(UID): 2},
        {1.5: 1, "1.5": 2},
        {"a": [1, MERGED]},
        [{"a": 1}] * 20 + [MERGED],
        [[{"a": 1}] * 20, [{"a": {"b": [MERGED]}}] * 20],
        [{"a": 1}, {"b": MERGED}],
        [{"a": 1}, MERGED],
        [[1], [MERGED]],
        (Bag(MERGED),),
        Bag([MERGED]),
        Box(content=MERGED),
        {"a": Box(content=[MERGED])},
        collections.OrderedDict(MERGED),
    ],
)
def test_V1_merged_keys_are_found_wherever_they_are(value: Any) -> None:
    with pytest.raises(EncodingError, match="are one key in JSON"):
        payloads.encode(value, "the value")


@pytest.mark.parametrize("value", [{1: "a", "2": "b"}, {1: "a", 2: "b"}, {1: "a", 1.5: "b"}, {Colour.RED: 1, "green": 2}])
def test_keys_of_several_types_that_differ_in_json_are_written(value: Any) -> None:
    assert len(msgspec.json.decode(payloads.encode(value, "the value").data)) == 2


def test_executions_from_before_write_merged_keys_as_they_did() -> None:
    for value in (MERGED, Box(content=MERGED)):
        for strictness in (payloads.Strictness.CHECKED, payloads.Strictness.UNCHECKED):
            payloads.encode(value, "the value", strictness=strictness)


@dataclass
class Cat:
    kind: Literal["cat"] = "cat"


@dataclass
class Dog:
    kind: Literal["dog"] = "dog"


class Bird(pydantic.BaseModel):
    kind: Literal["bird"] = "bird"


@pytest.mark.parametrize("hint", [Cat | Dog | Bird, list[Cat | Dog | Bird], dict[str, Dog | Cat | Bird | None]])
@pytest.mark.parametrize(("animal", "known"), [(Cat(), "cat"), (Bird(), "bird")])
def test_V1_class_with_the_tag_of_another_is_refused(hint: Any, animal: Any, known: str) -> None:
    def wrap() -> Any:
        return {list: [animal], dict: {"a": animal}}.get(typing.get_origin(hint), animal)

    animal = dataclasses.replace(animal) if isinstance(animal, Cat) else animal.model_copy()
    signature, name = take(hint), type(animal).__name__
    assert signature.decode_arguments(signature.encode_arguments([wrap()], {}, DEFAULT_LIMIT)) == (wrap(),)
    animal.kind = "dog"

    reason = f"the field 'kind' of a {name} is 'dog', not '{known}', by which a {name} is known."
    with pytest.raises(EncodingError, match=re.escape(reason)):
        signature.encode_arguments([wrap()], {}, DEFAULT_LIMIT)
