"""Looking rules up finds the same ones as trying every cell."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import dmn, feel
from holdfast.dmn.cells import analyse
from holdfast.dmn.matching import Column, Matcher
from holdfast.feel.parser import parse_unary_tests
from tests.dmn.models import data, decision, make_xml, table

NUMBERS = st.sampled_from(["-3", "0", "1", "1.0", "1.5", "2", "7", "100"])
STRINGS = st.sampled_from(['"a"', '"b"', '""', '"aa"', '"z"'])
ENDS = st.one_of(st.tuples(NUMBERS, NUMBERS), st.tuples(STRINGS, STRINGS))
CONSTANTS = st.one_of(NUMBERS, STRINGS, st.sampled_from(["true", "false", "null"]))
RANGES = st.tuples(st.sampled_from("[(]"), ENDS, st.sampled_from("])[")).map(
    lambda made: f"{made[0]}{made[1][0]}..{made[1][1]}{made[2]}"
)
COMPARISONS = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), CONSTANTS).map(" ".join)
OTHERS = st.sampled_from(["? = 1", "limit", "> limit", "[1, 2]", "null", "string length(?) = 1"])
TESTS = st.lists(st.one_of(CONSTANTS, RANGES, COMPARISONS, OTHERS), min_size=1, max_size=3).map(", ".join)
CELLS = st.one_of(st.just("-"), TESTS, TESTS.map("not({})".format))
VALUES = st.sampled_from(
    [None, True, False, "", "a", "b", "c", "zz", [], [Decimal(1)], {"a": Decimal(1)}]
    + [Decimal(text) for text in ("-4", "-3", "0", "0.5", "1", "1.5", "1.7", "2", "99", "1000")]
)
LIMIT = {"limit": Decimal(1)}


@settings(max_examples=300, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=6), VALUES)
def test_column_knows_what_its_cells_let_through(cells: list[str], value: Any) -> None:
    column = Column([analyse(parse_unary_tests(cell)) for cell in cells])

    sure, asked = column.find(value)

    for at, cell in enumerate(cells):
        if not asked & (1 << at):
            assert bool(sure & (1 << at)) is (feel.unary_tests(cell, value, LIMIT) is True), cell


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), VALUES, VALUES)
def test_table_finds_the_rules_whose_cells_are_all_met(rules: list[tuple[str, str]], x: Any, y: Any) -> None:
    made = table(["x", "y"], ["o"], [[*cells, str(at)] for at, cells in enumerate(rules)], policy="COLLECT")
    model = dmn.load(make_xml(*map(data, "xy"), data("limit"), decision("D", made, inputs=["x", "y", "limit"])))

    found = model.evaluate("D", {"x": x, "y": y, **LIMIT}).value

    assert found == [
        at
        for at, (first, second) in enumerate(rules)
        if feel.unary_tests(first, x, LIMIT) is True and feel.unary_tests(second, y, LIMIT) is True
    ]


def test_plain_cells_are_never_asked() -> None:
    cells = ["-", "5", "< 5", "[1..3]", '"a"', "true", "not(5)", "1, 2, > 7", "!= 3", "null", "= 4"]
    column = Column([analyse(parse_unary_tests(cell)) for cell in cells])

    _, asked = column.find(Decimal(3))

    assert asked == 1 << cells.index("true")


def test_cells_are_asked_only_for_rules_that_are_left() -> None:
    rows = [[analyse(parse_unary_tests(cell)) for cell in row] for row in (("1", "x"), ("2", "x"), ("x", "5"))]

    found = list(Matcher(rows, 2).find([Decimal(1), Decimal(5)]))

    assert found == [(0, [1]), (2, [0])]
