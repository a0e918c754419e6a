"""Values of states as text: it sorts as the values do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.searchable_values import encode_value, find_searchable

NUMBERS = st.one_of(
    st.integers(),
    st.integers(min_value=-(10**60), max_value=10**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=4),
)


def _exact(number: float | Decimal) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


@given(NUMBERS, NUMBERS)
def test_L3_numbers_sort_by_value(one: float | Decimal, other: float | Decimal) -> None:
    first, second = encode_value(one), encode_value(other)
    assert first is not None
    assert second is not None

    assert (first < second) == (_exact(one) < _exact(other))
    assert (first == second) == (_exact(one) == _exact(other))


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)), st.integers(-12, 12))
def test_L3_instants_sort_by_value_whatever_their_offset(one: datetime, other: datetime, hours: int) -> None:
    if not 2 < other.year < 9998:
        other = other.replace(year=2026, day=1)
    moved = other.astimezone(timezone(timedelta(hours=hours)))
    first, second = encode_value(one.isoformat()), encode_value(moved.isoformat())
    assert first is not None
    assert second is not None

    assert (first < second) == (one < other)
    assert (first == second) == (one == other)


@given(st.text(max_size=100), st.text(max_size=100))
def test_texts_sort_by_code_point(one: str, other: str) -> None:
    first, second = encode_value(f"x{one}"), encode_value(f"x{other}")
    if first is not None and second is not None:
        assert (first < second) == (one < other)


def test_a_date_is_its_midnight_in_utc() -> None:
    assert encode_value("2026-11-18") == encode_value("2026-11-18T01:00:00+01:00") == encode_value("2026-11-18T00:00")
    assert encode_value("2026-13-18") == "s2026-13-18"


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, "x" * 501, "a\0b", float("nan"), float("inf"), 10**501 + 1])
def test_what_is_no_scalar_or_too_long_is_not_searched(value: object) -> None:
    assert encode_value(value) is None


def test_only_named_top_level_entries_are_searched() -> None:
    state = {"a": 1, "b": True, "c": [1], "d": None, "": 1, "k" * 256: 1}

    assert find_searchable(state, None) == {"a": "n6500011", "b": "b1"}
    assert find_searchable(state, ["b"]) == {"b": "b1"}
    assert find_searchable([1], None) == {}
