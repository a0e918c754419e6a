"""Decision tables: cells, hit policies, defaults, allowed values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from holdfast import dmn
from holdfast.feel import FeelWarning
from tests.dmn.models import data, decision, make_xml, table

RULES = [["> 0", '"a"'], ["> 10", '"b"'], ["> 20", '"a"']]


def decide(made: str, warnings: list[FeelWarning] | None = None, /, **inputs: object) -> Any:
    xml = make_xml(*map(data, inputs), decision("D", made, inputs=list(inputs)))
    return dmn.load(xml).evaluate("D", inputs, warnings=warnings).value


# --- hit policies ---


def test_unique_gives_the_output_of_the_only_rule() -> None:
    assert decide(table(["x"], ["o"], RULES), x=5) == "a"


def test_unique_with_two_hits_is_null_and_names_the_rules() -> None:
    warnings: list[FeelWarning] = []

    assert decide(table(["x"], ["o"], RULES), warnings, x=25) is None

    assert [str(warning) for warning in warnings] == [
        "decision 'D': decision table 'D': rules 1, 2 and 3 match, but the hit policy U lets only one of them match"
    ]


def test_any_gives_the_output_that_all_rules_agree_upon() -> None:
    assert decide(table(["x"], ["o"], [RULES[0], RULES[2]], policy="ANY"), x=25) == "a"


def test_any_with_different_outputs_is_null_and_names_the_rules() -> None:
    warnings: list[FeelWarning] = []

    assert decide(table(["x"], ["o"], RULES, policy="ANY"), warnings, x=15) is None

    assert "rules 1 and 2 match with different outputs" in str(warnings[0])


def test_first_gives_the_output_of_the_first_rule() -> None:
    assert decide(table(["x"], ["o"], RULES[::-1], policy="FIRST"), x=15) == "b"


def test_priority_gives_the_output_that_stands_first_among_the_output_values() -> None:
    made = table(["x"], ["o"], RULES, policy="PRIORITY", output_values=['"c", "b", "a"'])

    assert decide(made, x=25) == "b"
    assert decide(made, x=5) == "a"


def test_priority_takes_the_order_of_the_type_if_the_output_has_no_values() -> None:
    made = table(["x"], ["o"], RULES, policy="PRIORITY").replace('<output name="o"', '<output name="o" typeRef="t"')
    values = '<allowedValues><text>"b","a"</text></allowedValues>'
    kind = f'<itemDefinition name="t"><typeRef>string</typeRef>{values}</itemDefinition>'

    assert dmn.load(make_xml(kind, data("x"), decision("D", made, inputs=["x"]))).evaluate("D", {"x": 25}).value == "b"


def test_priority_of_several_outputs_goes_by_the_first_one_first() -> None:
    rules = [["-", '"low"', "1"], ["-", '"high"', "1"], ["-", '"high"', "2"]]
    made = table(["x"], ["risk", "n"], rules, policy="PRIORITY", output_values=['"high","low"', "2, 1"])

    assert decide(made, x=1) == {"risk": "high", "n": 2}


def test_priority_may_go_by_ranges() -> None:
    made = table(["x"], ["o"], [["-", "5"], ["-", "50"]], policy="PRIORITY", output_values=["> 10, <= 10"])

    assert decide(made, x=1) == 50


def test_rule_order_lists_outputs_in_the_order_of_the_rules() -> None:
    assert decide(table(["x"], ["o"], RULES, policy="RULE ORDER"), x=25) == ["a", "b", "a"]


def test_output_order_lists_outputs_in_the_order_of_the_output_values() -> None:
    made = table(["x"], ["o"], RULES, policy="OUTPUT ORDER", output_values=['"b","a"'])

    assert decide(made, x=25) == ["b", "a", "a"]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [("", [Decimal(3), Decimal(1), Decimal(2)]), ("SUM", 6), ("MIN", 1), ("MAX", 3), ("COUNT", 3)],
)
def test_collect_lists_or_aggregates(aggregation: str, expected: object) -> None:
    rules = [["-", "3"], ["-", "1"], ["-", "2"]]

    assert decide(table(["x"], ["o"], rules, policy="COLLECT", aggregation=aggregation), x=1) == expected


def test_sums_are_exact() -> None:
    rules = [["-", "0.1"], ["-", "0.2"]]

    assert decide(table(["x"], ["o"], rules, policy="COLLECT", aggregation="SUM"), x=1) == Decimal("0.3")


def test_count_counts_equal_outputs_each() -> None:
    assert decide(table(["x"], ["o"], [["-", "1"], ["-", "1"]], policy="COLLECT", aggregation="COUNT"), x=1) == 2


def test_smallest_of_dates_and_strings_is_found() -> None:
    rules = [["-", '@"2024-02-01"'], ["-", '@"2024-01-01"']]
    made = table(["x"], ["o"], rules, policy="COLLECT", aggregation="MIN")

    assert str(decide(made, x=1)) == "2024-01-01"


@pytest.mark.parametrize("aggregation", ["SUM", "MIN", "MAX"])
def test_aggregation_of_what_does_not_fit_together_is_null_with_a_warning(aggregation: str) -> None:
    warnings: list[FeelWarning] = []
    made = table(["x"], ["o"], [["-", "3"], ["-", '"a"']], policy="COLLECT", aggregation=aggregation)

    assert decide(made, warnings, x=1) is None

    assert "rule" in str(warnings[0])


@pytest.mark.parametrize(
    ("policy", "aggregation", "expected"),
    [
        ("UNIQUE", "", None),
        ("ANY", "", None),
        ("FIRST", "", None),
        ("RULE ORDER", "", None),
        ("COLLECT", "", []),
        ("COLLECT", "SUM", None),
        ("COLLECT", "MIN", None),
        ("COLLECT", "COUNT", 0),
    ],
)
def test_no_rule_that_matches_gives_null_or_an_empty_collection(policy: str, aggregation: str, expected: object) -> None:
    assert decide(table(["x"], ["o"], RULES, policy=policy, aggregation=aggregation), x=0) == expected


# --- defaults and several outputs ---


@pytest.mark.parametrize("policy", ["UNIQUE", "FIRST", "COLLECT", "RULE ORDER"])
def test_default_is_taken_if_no_rule_matches(policy: str) -> None:
    assert decide(table(["x"], ["o"], RULES, policy=policy, defaults=['"none of " + string(x)']), x=0) == "none of 0"


def test_several_outputs_are_a_context() -> None:
    made = table(["x"], ["Rate", "Full Text"], [["-", "x * 2", '"t"']])

    assert decide(made, x=4) == {"Rate": 8, "Full Text": "t"}


def test_several_outputs_have_defaults_of_their_own() -> None:
    assert decide(table(["x"], ["a", "b"], [["1", "1", "1"]], defaults=["5"]), x=4) == {"a": 5, "b": None}


def test_several_outputs_may_be_collected() -> None:
    rules = [["-", "1", "2"], ["-", "3", "4"]]

    assert decide(table(["x"], ["a", "b"], rules, policy="COLLECT"), x=1) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_table_without_inputs_always_matches() -> None:
    assert decide(table([], ["o"], [["1"], ["2"]], policy="COLLECT")) == [1, 2]


# --- cells ---


@pytest.mark.parametrize(
    ("cell", "value", "matches"),
    [
        ("-", None, True),
        ("", 5, True),
        ("5", 5, True),
        ("5", Decimal("5.0"), True),
        ("5", "5", False),
        ("-5", -5, True),
        ("null", None, True),
        ("null", 5, False),
        ('"a"', "a", True),
        ('"a", "b"', "b", True),
        ('"a"', None, False),
        ("< 5", 4, True),
        ("< 5", 5, False),
        ("<= 5", 5, True),
        ("> -1", 0, True),
        ("!= 5", 4, True),
        ("!= 5", 5, False),
        ("= 5", 5, True),
        ("[1..3]", 1, True),
        ("(1..3]", 1, False),
        ("]1..3]", 1, False),
        ("[1..3)", 3, False),
        ("[1..3[", 3, False),
        ("[3..1]", 2, False),
        ('["a".."c"]', "b", True),
        ("not(5)", 4, True),
        ("not(5)", 5, False),
        ("not(1, [3..5])", 4, False),
        ("not(1, [3..5])", 2, True),
        ("true", True, True),
        ("true", False, False),
        ("false", False, True),
        ("not(true)", False, True),
        ("? > 3 and ? < 6", 5, True),
        ("x + 1, x", 5, True),
        ("limit", 5, False),
        ('[x, "a"]', 5, True),
        ("x", 5, True),
        ('starts with(?, "a")', "abc", True),
        ("string length(?) > 3", "abc", False),
        ('@"2024-01-01"', "2024-01-01", False),
        ("list contains(?, 1)", [1, 2], True),
        ("[1, 2]", [1, 2], True),
    ],
)
def test_cell_lets_a_value_through_or_not(cell: str, value: object, matches: bool) -> None:
    made = table(["x"], ["o"], [[cell, "true"]], defaults=["false"])

    assert decide(made, x=value, limit=7) is matches


def test_cells_see_everything_that_the_decision_sees() -> None:
    assert (
        decide(
            table(["Base Price"], ["o"], [["> Price Limit", "Base Price - Price Limit"]]),
            **{"Base Price": 9, "Price Limit": 4},
        )
        == 5
    )


def test_dates_are_compared_as_dates() -> None:
    made = table(["date(x)"], ["o"], [['< @"2024-01-01"', '"old"'], ['>= @"2024-01-01"', '"new"']])

    assert decide(made, x="2023-12-31") == "old"
    assert decide(made, x="2024-01-01") == "new"


# --- types and allowed values ---


def test_input_that_is_not_allowed_gives_null_and_a_warning() -> None:
    warnings: list[FeelWarning] = []
    made = table(["x"], ["o"], [["-", "1"]], input_values=['"a", "b"'])

    assert decide(made, warnings, x="c") is None
    assert "input 'x'" in str(warnings[0])
    assert '"a", "b"' in str(warnings[0])


@pytest.mark.parametrize("value", ["a", None, ["a", "b"]])
def test_input_that_is_allowed_is_taken(value: object) -> None:
    assert decide(table(["x"], ["o"], [["-", "1"]], input_values=['"a", "b"']), x=value) == 1


def test_output_that_is_not_allowed_is_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []

    assert decide(table(["x"], ["o"], [["-", '"c"']], output_values=['"a", "b"']), warnings, x=1) is None
    assert "of rule 1 is null" in str(warnings[0])


@pytest.mark.parametrize("orientation", ["Rule-as-Row", "Rule-as-Column", "CrossTable"])
def test_orientation_is_about_drawing_only(orientation: str) -> None:
    made = table(["x"], ["o"], RULES).replace("<decisionTable", f'<decisionTable preferredOrientation="{orientation}"')

    assert decide(made, x=5) == "a"


@pytest.mark.parametrize("rules", [600, 1024, 1025])
def test_tables_of_several_blocks_find_every_rule(rules: int) -> None:
    cells: Sequence[Sequence[str]] = [[str(number), str(number)] for number in range(rules)]
    model = dmn.load(make_xml(data("x"), decision("D", table(["x"], ["o"], cells), inputs=["x"])))

    for number in (0, 511, 512, 599, rules - 1):
        assert model.evaluate("D", {"x": number}).value == number
