"""Identifiers: ours are UUIDs that sort by time, users' are short printable text."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ids import (
    LONGEST_ID,
    check_identifier,
    check_person,
    derive_entropy,
    derive_execution_id,
    instant_of,
    make_execution_id,
    seed_of,
)
from holdfast.errors import InvalidIdentifier

INSTANTS = st.integers(0, 200 * 366 * 24 * 3600 * 1_000_000)
ENTROPY = st.integers(0, 2**62 - 1)


@given(INSTANTS, ENTROPY)
def test_execution_id_is_a_uuid_of_version_seven(at: int, entropy: int) -> None:
    found = uuid.UUID(make_execution_id(at, entropy))

    assert found.version == 7
    assert found.variant == uuid.RFC_4122
    assert found.int >> 80 == at // 1_000


@given(INSTANTS, INSTANTS, ENTROPY, ENTROPY)
def test_execution_ids_sort_by_the_microsecond_they_were_made(one: int, other: int, first: int, second: int) -> None:
    if one < other:
        assert make_execution_id(one, first) < make_execution_id(other, second)


@given(INSTANTS, ENTROPY)
def test_execution_id_tells_when_it_was_made(at: int, entropy: int) -> None:
    assert instant_of(make_execution_id(at, entropy)) == at


@given(INSTANTS, ENTROPY, ENTROPY)
def test_execution_ids_of_one_moment_differ_by_entropy(at: int, one: int, other: int) -> None:
    assert (make_execution_id(at, one) == make_execution_id(at, other)) == (one == other)


@given(INSTANTS, st.text(), st.integers(0, 10_000))
def test_derived_id_is_the_same_however_often_it_is_asked(at: int, parent: str, number: int) -> None:
    assert derive_execution_id(at, parent, number) == derive_execution_id(at, parent, number)


def test_derived_ids_differ_by_parent_and_number() -> None:
    found = {derive_execution_id(0, parent, number) for parent in ("a", "b") for number in range(1_000)}

    assert len(found) == 2_000


def test_derived_entropy_is_the_same_in_every_process() -> None:
    assert derive_entropy("execution", 7) == 0xF4E5ECA8C7D392AE0020B796D12185E3


@given(INSTANTS, ENTROPY)
def test_seed_is_taken_from_the_random_part(at: int, entropy: int) -> None:
    assert seed_of(make_execution_id(at, entropy)) == entropy & 0xFFFF_FFFF_FFFF


@pytest.mark.parametrize("value", ["a", "order-1042", "Größe", "注文", "with space inside", "x" * LONGEST_ID, "🦀", "a/b:c"])
def test_printable_text_is_an_identifier(value: str) -> None:
    assert check_identifier(value, "the id") == value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("", "it is empty"),
        ("x" * (LONGEST_ID + 1), "it has 256 characters"),
        ("a\nb", "it holds control or unprintable characters: 'a\\nb'"),
        ("a\x00", "it holds control or unprintable characters"),
        ("a\u200bb", "it holds control or unprintable characters"),
        ("\ud800", "it holds control or unprintable characters: '\\ud800'"),
        (" a", "it begins or ends with white space: ' a'"),
        ("a ", "it begins or ends with white space"),
        (None, "it is NoneType None"),
        (7, "it is int 7"),
        (b"a", "it is bytes b'a'"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(value: Any, found: str) -> None:
    with pytest.raises(InvalidIdentifier, match=rf"^Expected the id to be text .*, but {re.escape(found)}"):
        check_identifier(value, "the id")


@given(st.text(max_size=300))
def test_what_passes_can_be_stored_and_logged(value: str) -> None:
    try:
        check_identifier(value, "the id")
    except InvalidIdentifier as error:
        error.message.encode()
    else:
        assert value.encode().decode() == value
        assert value.splitlines() == [value]


def test_a_person_that_is_refused_is_shown_a_person_as_an_example() -> None:
    with pytest.raises(InvalidIdentifier, match=r"but it is empty\. Choose a person, such as 'ann'\."):
        check_person("")
