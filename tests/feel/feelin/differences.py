"""Where feelin and Holdfast differ, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NO_TEST: Final = object()


@dataclass(frozen=True)
class Difference:
    """Texts in which `pattern` is found may mean something else there; `example` does. `reason` says who does what."""

    pattern: str
    example: str
    reason: str
    value: object = NO_TEST
    """If given, the example is a unary test of it. If it is null, only tests of null differ."""


NULL: Final = r"(null|date|(min|max|sum|product)\(|\[\]|\[-?\d\]|sqrt)"
"""What may be null in texts that are made by the grammar."""
ORDER: Final = "a comparison with null is null here, as DMN 10.3.2.13 has it; feelin says false, or compares anyway"
ASKS: Final = "a test with `?` in it is met if it is true (DMN 7.3.3); feelin compares a null that it gives with the input"

DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference(r"trim\(", 'trim(" a ")', "an addition of Camunda's that feelin does not have"),
    Difference(r"\(-[@(dy]", '(-duration("P1M"))', "feelin negates numbers alone; DMN has durations too"),
    Difference(r"\* 2\)", '(duration("P1D") * 2)', "feelin multiplies numbers alone; DMN has durations too"),
    Difference(r"years and months", 'years and months duration(@"2023-12-31", @"2024-02-29")', "feelin keeps days in it"),
    Difference(r"mode\(", "mode([3, -1])", "DMN sorts; feelin puts negative and broken numbers behind the others"),
    Difference(r"median\(", "median([0, 2, 12, 41, 67])", "feelin sorts numbers as texts"),
    Difference(
        r"string\(.*(\.\d|half|sqrt|/ 4|decimal)",
        "string(sqrt(2))",
        "34 digits here, with the zeros that decimals keep; a floating number there",
    ),
    Difference(r"substring\(.*, -\d", 'substring("a", -2)', "here nothing is before the start; feelin begins at the start"),
    Difference(r"(sublist|insert before|remove)\(", "insert before([], 1, 2)", "an empty list has no position 1 here"),
    Difference(r"\[item !=", '["a", null][item != "b"]', "null is not equal to a string here; feelin does not know"),
    Difference(rf"(?<![gt] )before\(.*{NULL}", "before(null, [1..2))", ORDER),
    Difference(rf"satisfies .*{NULL}", "every x in [1] satisfies x > null", ORDER),
    Difference(rf"sort\(.*{NULL}", 'sort(["a", null], function(x, y) x < y)', ORDER),
    Difference(rf"(^|, )[<>]=? .*{NULL}", ">= [][1]", ORDER, value=1),
    Difference(rf"\?.*{NULL}", "contains(?, null)", ASKS, value="a"),
    Difference(r"\?", 'contains(?, "a")', ASKS, value=None),
)
