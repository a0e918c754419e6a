"""By which fields events can be selected: scalars of the outermost object, each with one text for equal values."""

from __future__ import annotations

import enum
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import payloads
from holdfast.core.publications import LONGEST_VALUE, MOST_FIELDS, canonical_fields, canonical_value
from holdfast.errors import EncodingError, InvalidArguments


class Colour(enum.Enum):
    RED = "red"


SCALARS = {
    "text": ("ann", '"ann"'),
    "number": (7, "7"),
    "whole float": (7.0, "7"),
    "negative zero": (-0.0, "0"),
    "float": (7.5, "7.5"),
    "large number": (10**30, str(10**30)),
    "bool": (True, "true"),
    "none": (None, "null"),
    "enum": (Colour.RED, '"red"'),
    "uuid": (UUID(int=5), f'"{UUID(int=5)}"'),
    "date": (date(2030, 1, 2), '"2030-01-02"'),
    "datetime": (datetime(2030, 1, 2, tzinfo=UTC), '"2030-01-02T00:00:00Z"'),
    "decimal": (Decimal("1.50"), '"1.50"'),
}


@pytest.mark.parametrize(("value", "text"), SCALARS.values(), ids=SCALARS)
def test_scalar_has_one_text_in_a_wait_and_in_an_event(value: Any, text: str) -> None:
    data = bytes(payloads.encode({"field": value}, "an event").data)

    assert canonical_value(value) == text
    assert canonical_fields(data) == {"field": text}


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()))
def test_what_any_writer_of_json_makes_of_a_scalar_has_the_same_text(value: Any) -> None:
    if isinstance(value, str) and not value.isprintable() and any("\ud800" <= one <= "\udfff" for one in value):
        return
    assert canonical_fields(json.dumps({" ": 1, "x": value}).encode()).get("x") in (canonical_value_or_none(value), None)


def canonical_value_or_none(value: Any) -> str | None:
    try:
        return canonical_value(value)
    except InvalidArguments:
        return None  # too long


def test_true_is_not_one_and_a_text_is_no_number() -> None:
    assert len({canonical_value(one) for one in (True, 1, "1", "true", None, "null")}) == 6


@pytest.mark.parametrize("value", [[1], {"a": 1}, (), {"s"}])
def test_wait_cannot_select_by_a_list_or_an_object(value: Any) -> None:
    with pytest.raises(InvalidArguments, match="single value"):
        canonical_value(value)


def test_wait_cannot_select_by_what_json_cannot_hold() -> None:
    with pytest.raises(EncodingError):
        canonical_value(object())
    with pytest.raises(EncodingError):
        canonical_value(float("nan"))


def test_long_texts_are_refused_in_waits_and_left_out_of_events() -> None:
    longest, longer = "x" * (LONGEST_VALUE - 2), "x" * (LONGEST_VALUE - 1)

    assert canonical_fields(json.dumps({"a": longest, "b": longer}).encode()) == {"a": f'"{longest}"'}
    assert canonical_value(longest) == f'"{longest}"'
    with pytest.raises(InvalidArguments, match="at most 500 bytes"):
        canonical_value(longer)


def test_fields_are_those_of_the_outermost_object_and_not_too_many() -> None:
    many = {f"field_{number}": number for number in range(MOST_FIELDS + 5)}

    assert canonical_fields(b'{"a":{"b":1},"c":[1], "d" : 2.0 }') == {"d": "2"}
    assert canonical_fields(b"[1]") == canonical_fields(b'"text"') == canonical_fields(b"null") == {}
    assert len(canonical_fields(json.dumps(many).encode())) == MOST_FIELDS
