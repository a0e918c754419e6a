"""Every FEEL case of the DMN TCK where HOLDFAST_SUITES names the folder of the suites. Where it does not, there are none."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import pytest

from holdfast.feel.values import Value
from tests.feel.tck import conform, is_same, load_cases, run_cases

KNOWN: Final[Mapping[str, str]] = {}
"""Cases that fail, with the reason."""


def test_cases_that_fail_are_those_that_are_known() -> None:
    failures = {failure.case.name: failure for failure in run_cases(load_cases())}

    assert [f"{name}: {failures[name]}" for name in failures if name not in KNOWN] == []


def test_known_cases_still_fail() -> None:
    cases = [case for case in load_cases() if case.name in KNOWN]

    assert {case.name for case in cases} == {failure.case.name for failure in run_cases(cases)}


@pytest.mark.parametrize(
    ("value", "declared", "expected"),
    [
        (Decimal(1), "number", Decimal(1)),
        ([Decimal(1)], "number", Decimal(1)),
        (Decimal(1), "list<number>", [Decimal(1)]),
        (["a"], "number", None),
        ([Decimal(1), Decimal(2)], "number", None),
        (Decimal(1), None, Decimal(1)),
        (None, "list<number>", None),
    ],
)
def test_result_conforms_to_the_declared_type_or_is_null(value: Value, declared: str | None, expected: Value) -> None:
    assert conform(value, declared) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [(True, Decimal(1)), ("1", Decimal(1)), ([], None), ({}, []), (Decimal("0.1"), Decimal("0.2")), ({"a": None}, {})],
)
def test_values_of_different_kinds_or_contents_are_not_the_same(found: Value, expected: Value) -> None:
    assert not is_same(found, expected)


def test_number_is_compared_by_the_digits_that_a_rounded_one_has() -> None:
    assert is_same(Decimal("54.5981500331442390781"), Decimal("54.59815003"))
    assert not is_same(Decimal("54.59815004"), Decimal("54.59815003"))
    assert not is_same(Decimal("54.598"), Decimal("54.60"))
