"""The order of temporal values, and which of them are equal."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.feel.temporal.comparing import compare, equal, is_identical
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.parsing import parse_temporal


@pytest.mark.parametrize(
    ("smaller", "greater"),
    [
        ("2018-12-07", "2018-12-08"),
        ("9999-12-31", "10000-01-01"),
        ("-0002-01-01", "-0001-01-01"),
        ("10:30:00", "10:30:00.000000001"),
        ("10:30:00.0001", "10:30:00.0002"),
        ("10:30:00+02:00", "10:30:00+01:00"),
        ("10:30:00@Europe/Moscow", "10:30:00@Europe/Paris"),
        ("2018-12-08T10:30:00", "2018-12-08T10:30:01"),
        ("2018-12-08T10:30:00.1", "2018-12-08T10:30:00.2"),
        ("2018-12-08T10:30:00@Asia/Dhaka", "2018-12-08T10:30:00@Europe/Paris"),
        ("2018-12-08T10:30:00Z", "10000-12-08T10:30:00Z"),
        ("P1D", "PT25H"),
        ("-P1D", "P0D"),
        ("P11M", "P1Y"),
    ],
)
def test_one_is_smaller_than_the_other(smaller: str, greater: str) -> None:
    left, right = parse_temporal(smaller), parse_temporal(greater)

    assert (compare(left, right), compare(right, left), compare(left, left)) == (-1, 1, 0)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("2018-12-08", "2018-12-08T00:00:00"),
        ("2018-12-08", "10:00:00"),
        ("P1Y", "P365D"),
        ("P0Y", "P0D"),
    ],
)
def test_values_of_two_types_are_neither_ordered_nor_equal(left: str, right: str) -> None:
    assert compare(parse_temporal(left), parse_temporal(right)) is None
    assert equal(parse_temporal(left), parse_temporal(right)) is None
    assert not is_identical(parse_temporal(left), parse_temporal(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [("10:00:00", "10:00:00Z"), ("2018-12-08T10:00:00", "2018-12-08T10:00:00@Etc/UTC"), ("10:00:00@Etc/UTC", "10:00:00")],
)
def test_value_with_a_zone_and_one_without_have_no_order_and_are_not_equal(left: str, right: str) -> None:
    assert compare(parse_temporal(left), parse_temporal(right)) is None
    assert equal(parse_temporal(left), parse_temporal(right)) is False


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("2018-12-08", "2018-12-08"),
        ("10:30:00Z", "10:30:00+00:00"),
        ("10:30:00.0001", "10:30:00.0002"),
        ("10:30:00.000000001", "10:30:00"),
        ("10:30:00+01:00", "10:30:00@Europe/Paris"),
        ("2018-12-08T00:00:00.0001", "2018-12-08T00:00:00"),
        ("2018-10-08T00:00:00+02:00", "2018-10-08T00:00:00@Europe/Paris"),
        ("2018-02-08T00:00:00+01:00", "2018-02-08T00:00:00@Europe/Paris"),
        ("2002-04-02T12:00:00-01:00", "2002-04-02T17:00:00+04:00"),
        ("2002-04-02T23:00:00-04:00", "2002-04-03T02:00:00-01:00"),
        ("12018-10-08T00:00:00+02:00", "12018-10-08T00:00:00@Europe/Paris"),
        ("P1D", "PT24H"),
        ("P1Y", "P12M"),
        ("P0D", "-P0D"),
    ],
)
def test_values_are_equal_if_they_are_the_same_to_the_second(left: str, right: str) -> None:
    assert equal(parse_temporal(left), parse_temporal(right)) is True


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("2018-12-07", "2018-12-08"),
        ("10:30:00", "10:30:01"),
        ("2018-12-08T00:00:00@Europe/Paris", "2018-12-08T00:00:00@Asia/Dhaka"),
        ("2018-12-08T00:00:00", "2018-12-07T00:00:00"),
        ("P1D", "-P1D"),
        ("P1Y", "P2Y"),
    ],
)
def test_values_differ(left: str, right: str) -> None:
    assert equal(parse_temporal(left), parse_temporal(right)) is False


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("23:00:50@Australia/Melbourne", "23:00:50@Australia/Melbourne"),
        ("23:00:50Z", "23:00:50+00:00"),
        ("2012-12-25T10:10:10+11:00", "2012-12-25T10:10:10+11:00"),
        ("2012-12-25", "2012-12-25"),
        ("P1D", "PT24H"),
    ],
)
def test_values_are_identical(left: str, right: str) -> None:
    assert is_identical(parse_temporal(left), parse_temporal(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("23:00:50", "23:00:50Z"),
        ("23:00:50@Etc/GMT", "23:00:50Z"),
        ("20:00:50+00:00", "21:00:50+01:00"),
        ("23:00:50.1", "23:00:50.2"),
        ("2002-04-02T23:00:00@Australia/Melbourne", "2002-04-02T23:00:00@Australia/Sydney"),
        ("2021-04-02T23:00:00@Australia/Melbourne", "2021-04-02T23:00:00+11:00"),
        ("2002-04-02T12:00:00-01:00", "2002-04-02T17:00:00+04:00"),
    ],
)
def test_equal_values_that_are_written_differently_are_not_identical(left: str, right: str) -> None:
    assert not is_identical(parse_temporal(left), parse_temporal(right))


@pytest.mark.parametrize("other", [None, 1, "2018-12-08", []])
def test_other_values_have_no_order_with_them(other: object) -> None:
    assert compare(parse_temporal("2018-12-08"), other) is None
    assert equal(other, parse_temporal("2018-12-08")) is None
    assert not is_identical(other, other)


@given(st.datetimes(), st.datetimes(), st.sampled_from(["", "Z", "@Europe/Paris"]))
def test_order_is_that_of_python_where_no_clock_is_set_back(left: datetime, right: datetime, zone: str) -> None:
    if zone == "@Europe/Paris":
        left, right = left.replace(month=1), right.replace(month=1)

    order = compare(parse_temporal(to_text(left) + zone), parse_temporal(to_text(right) + zone))

    assert order == (left > right) - (left < right)
