"""Relations between ranges and points, and ranges from text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from holdfast import feel
from holdfast.feel.functions.ranges import RANGES, parse_range
from holdfast.feel.running import Fail, Run
from holdfast.feel.temporal.values import DaysTimeDuration
from holdfast.feel.values import Range

ENDS = ("[1..3]", "[1..3)", "(1..3]", "(1..3)", "[3..5]", "(3..5]", "[3..5)", "[1..5]", "(1..5)", "[2..4]", "[4..5]")


def make_range(text: str) -> Range:
    return parse_range(Run(), text)


def relate(name: str, first: Any, second: Any) -> Any:
    return RANGES[name][0].call(Run(), first, second)


# --- the formulas of DMN 10.3.4.7, written out ---

Formula = Callable[[Range, Range], bool]


def before(a: Range, b: Range) -> bool:
    return bool(a.end < b.start or ((not a.end_included or not b.start_included) and a.end == b.start))


def meets(a: Range, b: Range) -> bool:
    return bool(a.end_included and b.start_included and a.end == b.start)


def overlaps(a: Range, b: Range) -> bool:
    ends_behind = a.end > b.start or (a.end == b.start and a.end_included and b.start_included)
    return bool(ends_behind and (a.start < b.end or (a.start == b.end and a.start_included and b.end_included)))


def overlaps_before(a: Range, b: Range) -> bool:
    starts_before = a.start < b.start or (a.start == b.start and a.start_included and not b.start_included)
    ends_behind = a.end > b.start or (a.end == b.start and a.end_included and b.start_included)
    ends_inside = a.end < b.end or (a.end == b.end and (not a.end_included or b.end_included))
    return bool(starts_before and ends_behind and ends_inside)


def finishes(a: Range, b: Range) -> bool:
    starts_inside = a.start > b.start or (a.start == b.start and (not a.start_included or b.start_included))
    return bool(a.end_included == b.end_included and a.end == b.end and starts_inside)


def includes(a: Range, b: Range) -> bool:
    starts = a.start < b.start or (a.start == b.start and (a.start_included or not b.start_included))
    return bool(starts and (a.end > b.end or (a.end == b.end and (a.end_included or not b.end_included))))


def starts(a: Range, b: Range) -> bool:
    ends_inside = a.end < b.end or (a.end == b.end and (not a.end_included or b.end_included))
    return bool(a.start == b.start and a.start_included == b.start_included and ends_inside)


def coincides(a: Range, b: Range) -> bool:
    return a == b


def turn(formula: Formula) -> Formula:
    return lambda a, b: formula(b, a)


FORMULAS: dict[str, Formula] = {
    "before": before,
    "after": turn(before),
    "meets": meets,
    "met by": turn(meets),
    "overlaps": overlaps,
    "overlaps before": overlaps_before,
    "overlaps after": turn(overlaps_before),
    "finishes": finishes,
    "finished by": turn(finishes),
    "includes": includes,
    "during": turn(includes),
    "starts": starts,
    "started by": turn(starts),
    "coincides": coincides,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_relation_of_ranges_is_what_its_formula_says(name: str) -> None:
    for first, second in product(map(make_range, ENDS), repeat=2):
        assert relate(name, first, second) is FORMULAS[name](first, second), (name, first, second)


# --- points ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("before(1, 10)", True),
        ("before(10, 1)", False),
        ("before(1, 1)", False),
        ("before(1, [1..10])", False),
        ("before(1, (1..10])", True),
        ("before([1..10], 10)", False),
        ("before([1..10), 10)", True),
        ("after(10, [1..10))", True),
        ("after(10, [1..10])", False),
        ("after([5..10], 5)", False),
        ("after((5..10], 5)", True),
        ("finishes(10, [1..10])", True),
        ("finishes(10, [1..10))", False),
        ("finished by([5..10], 10)", True),
        ("finished by([5..10), 10)", False),
        ("includes([1..10], 1)", True),
        ("includes((1..10], 1)", False),
        ("during(5, [1..10])", True),
        ("during(10, [1..10))", False),
        ("starts(1, [1..10])", True),
        ("starts(1, (1..10])", False),
        ("started by([1..10], 1)", True),
        ("started by((1..10], 1)", False),
        ("coincides(5, 5.0)", True),
        ("coincides(5, 6)", False),
        ('before("a", ["b".."c"])', True),
        ('includes([@"2020-01-01"..@"2020-12-31"], @"2020-06-01")', True),
        ("before(point1: 1, point2: 2)", True),
        ("before(range: [2..5], point: 1)", False),
        ("after(range1: [5..6], range2: [1..2])", True),
    ],
)
def test_a_point_is_related_as_a_range_of_itself_alone(text: str, expected: bool) -> None:
    assert feel.evaluate(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "before(1, null)",
        "before(null, [1..2])",
        'before(1, "a")',
        'before(1, ["a".."b"])',
        "meets(1, [1..2])",
        "finishes([1..2], 2)",
        "coincides(1, [1..1])",
        "overlaps([1..2])",
        "before([1..null], 3)",
    ],
)
def test_what_has_no_relation_is_null_with_a_warning(text: str) -> None:
    warnings: list[feel.FeelWarning] = []
    assert feel.evaluate(text, warnings=warnings) is None
    assert warnings


def test_a_missing_end_lies_beyond_all_values() -> None:
    below, above = Range(None, Decimal(5), has_start=False), Range(Decimal(5), None, has_end=False)

    assert relate("before", below, make_range("[6..7]")) is True
    assert relate("before", above, make_range("[6..7]")) is False
    assert relate("includes", above, make_range("[6..7]")) is True
    assert relate("overlaps before", below, above) is True
    assert relate("starts", below, Range(None, Decimal(6), has_start=False)) is True
    assert relate("meets", below, above) is True


def test_what_equals_one_value_is_related_as_that_value_and_what_excludes_one_is_not() -> None:
    same = Range(Decimal(2), Decimal(2), has_start=False, has_end=False)
    assert relate("includes", make_range("[1..3]"), same) is True
    with pytest.raises(Fail):
        relate("includes", make_range("[1..3]"), Range(Decimal(2), Decimal(2), False, False, False, False))


# --- range("…") ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[18..21]", Range(Decimal(18), Decimal(21))),
        ("]18..21[", Range(Decimal(18), Decimal(21), False, False)),
        ("(18..21)", Range(Decimal(18), Decimal(21), False, False)),
        (" [ -1.5 .. .5 ] ", Range(Decimal("-1.5"), Decimal("0.5"))),
        ("[1e3..1e4]", Range(Decimal(1000), Decimal(10000))),
        ('["a".."\\"c"]', None),
        ('["a".."c\\n"]', Range("a", "c\n")),
        ('[@"2020-01-01"..date("2020-01-02")]', Range(date(2020, 1, 1), date(2020, 1, 2))),
        ('[@"P1D"..duration("P2D")]', Range(DaysTimeDuration(86_400 * 10**9), DaysTimeDuration(2 * 86_400 * 10**9))),
        ("(..2]", Range(None, Decimal(2), False, True, has_start=False)),
        ("[1..)", Range(Decimal(1), None, True, False, has_end=False)),
    ],
)
def test_a_range_is_read_from_its_literal(text: str, expected: Range | None) -> None:
    assert feel.evaluate("range(text)", {"text": text}) == expected


def malformed() -> Iterable[str]:
    yield from ("", " ", "1..3", "[1..3", "[1,3]", "[1..3]]", "[..2]", "[1..]", "(..)", ">=10", "[3..1]", '[1.."b"]')
    yield from ("[null..null]", "[true..true]", "[a..b]", "[1..1+1]", '[date(string("2020-01-01"))..@"2020-01-02"]')
    yield from ('[@"2020-01-01"..@"2020-01-02T00:00:00"]', '[@"nothing"..@"nothing"]', '["a..b]', "[1..- 2 ..3]", "[" * 50)
    yield '["' + "a" * 20_000 + '".."b"]'


@pytest.mark.parametrize("text", list(malformed()))
def test_a_text_that_is_no_range_literal_gives_null_with_a_warning(text: str) -> None:
    warnings: list[feel.FeelWarning] = []
    assert feel.evaluate("range(text)", {"text": text}, warnings=warnings) is None
    assert warnings


def test_ends_in_the_wrong_order_give_null() -> None:
    assert feel.evaluate('range("[\\"z\\"..\\"a\\"]")') is None
    assert feel.evaluate('range("[@\\"02:00:00\\"..@\\"01:00:00\\"]")') is None
