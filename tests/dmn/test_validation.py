"""Overlaps and gaps of tables, told at deployment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import dmn, feel
from tests.dmn.models import data, decision, make_xml, table


def validate(inputs: Sequence[str], rules: Sequence[Sequence[str]], definitions: str = "", **more: Any) -> list[str]:
    made = table(inputs, ["o"], rules, **more)
    model = dmn.load(make_xml(definitions, *map(data, inputs), decision("D", made, inputs=inputs)))
    return [warning.rpartition("): ")[2] for warning in model.warnings]


COVERING = [["< 18", "1"], ["[18..65]", "2"], ["> 65", "3"]]


def test_complete_table_without_overlaps_has_no_warnings() -> None:
    assert validate(["Age"], COVERING) == []


def test_warning_says_where_the_table_stands() -> None:
    made = table(["Age"], ["o"], [["< 18", "1"]])
    model = dmn.load(make_xml(data("Age"), decision("D", made, inputs=["Age"])))

    assert model.warnings == ("decision 'D' (id id_D, line 4), decision table (line 4): no rule matches Age >= 18",)


# --- overlaps ---


def test_overlap_is_told_with_an_example() -> None:
    assert validate(["Age"], [["<= 18", "1"], [">= 18", "2"]]) == ["rules 1 and 2 both match Age = 18"]


def test_overlap_of_several_inputs_names_each_that_matters() -> None:
    rules = [["< 18", '"high"', "1"], ["[10..20]", '"high", "low"', "2"], [">= 18", '"low"', "3"]]

    assert validate(["Age", "Risk"], rules, input_values=["", '"high", "low"'])[:2] == [
        "rules 1 and 2 both match Age = 10, Risk = high",
        "rules 2 and 3 both match Age = 18, Risk = low",
    ]


def test_overlap_between_ends_has_an_example_between_them() -> None:
    assert validate(["x"], [["< 3", "1"], ["> 1", "2"]]) == ["rules 1 and 2 both match x = 2"]
    assert validate(["x"], [["< 2", "1"], ["> 1", "2"]]) == ["rules 1 and 2 both match x = 1.5"]


def test_rules_that_match_everything_overlap_with_everything() -> None:
    assert validate(["x"], [["-", "1"], ["-", "2"]]) == ["rules 1 and 2 both match everything"]
    assert validate([], [["1"], ["2"]]) == ["rules 1 and 2 both match everything"]


@pytest.mark.parametrize("policy", ["FIRST", "RULE ORDER", "COLLECT"])
def test_other_policies_may_overlap(policy: str) -> None:
    assert validate(["x"], [["-", "1"], ["-", "2"]], policy=policy) == []


def test_any_may_overlap_with_the_same_output() -> None:
    rules = [["<= 5", "1"], [">= 5", "1"], ["5", "2"]]

    assert validate(["x"], rules, policy="ANY") == ["rules 1 and 3 both match x = 5", "rules 2 and 3 both match x = 5"]


def test_overlap_outside_of_the_input_values_is_none() -> None:
    assert validate(["x"], [["<= 5", "1"], [">= 0", "2"]], input_values=["[10..20]"]) == []


def test_cells_that_have_to_be_evaluated_are_no_overlap() -> None:
    told = validate(["x"], [["> y", "1"], ["<= y", "2"], ["5", "3"]])

    assert [text for text in told if text.startswith("rules")] == []


def test_only_some_overlaps_are_told() -> None:
    told = validate(["x"], [["-", str(number)] for number in range(50)])

    assert len(told) == 11
    assert told[-1] == "there are more rules that overlap"


# --- gaps ---


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (["> 0"], ["no rule matches x <= 0"]),
        ([">= 0"], ["no rule matches x < 0"]),
        (["< 0", "> 0"], ["no rule matches x = 0"]),
        (["< 18", "> 20"], ["no rule matches x in [18..20]"]),
        (["<= 18", ">= 19"], ["no rule matches x in (18..19)"]),
        (["[0..10]"], ["no rule matches x < 0 or > 10"]),
        (["1, 2"], ["no rule matches x < 1 or in (1..2) or > 2"]),
        (["not(5)"], ["no rule matches x = 5"]),
        (["null", "< 5", ">= 5"], []),
    ],
)
def test_gap_in_numbers_is_told(rules: list[str], told: list[str]) -> None:
    assert validate(["x"], [[rule, "1"] for rule in rules]) == told


def test_gap_in_booleans_is_told() -> None:
    assert validate(["x"], [["true", "1"]]) == ["no rule matches x = false"]


def test_gap_in_input_values_is_told() -> None:
    rules = [['"a"', "1"]]

    assert validate(["x"], rules, input_values=['"a", "b", "c"']) == ["no rule matches x = b or c"]
    assert validate(["x"], [["1", "1"]], input_values=["1, 2"]) == ["no rule matches x = 2"]
    assert validate(["x"], COVERING[1:], input_values=["[0..100]"]) == ["no rule matches x in [0..18)"]


def test_gap_in_the_allowed_values_of_a_type_is_told() -> None:
    values = '<allowedValues><text>"a","b"</text></allowedValues>'
    kind = f'<itemDefinition name="t"><typeRef>string</typeRef>{values}</itemDefinition>'

    assert validate(["x"], [['"a"', "1"]], kind, types=["t"]) == ["no rule matches x = b"]


def test_strings_that_nobody_lists_are_no_gap_by_themselves() -> None:
    assert validate(["x"], [['"a"', "1"], ['"b"', "2"]]) == []


def test_gap_between_inputs_is_told_with_all_that_matter() -> None:
    rules = [["< 18", "-", "1"], [">= 18", '"high"', "2"]]

    assert validate(["Age", "Risk"], rules, input_values=["", '"high", "low"']) == ["no rule matches Age >= 18, Risk = low"]


def test_inputs_that_do_not_matter_are_left_out() -> None:
    rules = [["true", "-", "> 0", "1"], ["false", "-", "> 0", "2"]]

    assert validate(["a", "b", "c"], rules)[0] in ("no rule matches c <= 0", "no rule matches a = true, c <= 0")


@pytest.mark.parametrize(("policy", "aggregation"), [("COLLECT", ""), ("COLLECT", "COUNT")])
def test_collections_may_have_gaps(policy: str, aggregation: str) -> None:
    assert validate(["x"], [["> 0", "1"]], policy=policy, aggregation=aggregation) == []


def test_tables_with_a_default_have_no_gaps() -> None:
    assert validate(["x"], [["> 0", "1"]], defaults=["0"]) == []


def test_cells_that_have_to_be_evaluated_may_close_a_gap() -> None:
    made = table(["x"], ["o"], [["> 0", "1"], ["<= y", "2"]])
    model = dmn.load(make_xml(data("x"), data("y"), decision("D", made, inputs=["x", "y"])))

    assert model.warnings == ()


def test_table_without_rules_matches_nothing() -> None:
    assert validate(["x"], []) == ["no rule matches anything, because there are none"]


def test_only_some_gaps_are_told() -> None:
    rules = [[str(number), str(number), "1"] for number in range(40)]

    told = validate(["x", "y"], rules)

    assert len(told) == 11
    assert told[-1] == "there are more values that no rule matches"


def test_work_is_bounded() -> None:
    rules = [[*(f"[{number % (7 + at)}..{number % (7 + at) + 3 + at}]" for at in range(12)), "1"] for number in range(400)]

    told = validate([f"x{at}" for at in range(12)], rules, policy="FIRST")

    assert told
    assert len(told) <= 12


@pytest.mark.parametrize(("inputs", "rules"), [(150, 2), (1, 2_001)])
def test_tables_with_very_many_inputs_or_rules_are_given_up(inputs: int, rules: int) -> None:
    told = validate([f"x{at}" for at in range(inputs)], [["1"] * (inputs + 1)] * rules)

    assert told == [
        "the table is too large to look for all rules that overlap",
        "the table is too large to look for all values that no rule matches",
    ]


# --- for all tables ---

CELLS = st.one_of(
    st.just("-"),
    st.sampled_from(["<", "<=", ">", ">=", "=", "!="]).flatmap(lambda sign: st.integers(0, 5).map(f"{sign} {{}}".format)),
    st.tuples(st.sampled_from("[("), st.integers(0, 5), st.integers(0, 5), st.sampled_from("])")).map(
        lambda made: f"{made[0]}{made[1]}..{made[2]}{made[3]}"
    ),
    st.lists(st.integers(0, 5), min_size=1, max_size=3).map(lambda made: f"not({', '.join(map(str, made))})"),
)
PROBES = [number / 2 for number in range(-2, 13)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=6))
def test_gaps_and_overlaps_are_told_exactly_if_there_are_some(rules: list[tuple[str, str]]) -> None:
    told = validate(["x", "y"], [[*cells, str(at)] for at, cells in enumerate(rules)])

    matching = [
        [at for at, (one, other) in enumerate(rules, 1) if feel.unary_tests(one, x) and feel.unary_tests(other, y)]
        for x in PROBES
        for y in PROBES
    ]
    assert any(text.startswith("no rule matches") for text in told) is any(not found for found in matching)
    overlapping = {(one, other) for found in matching for one in found for other in found if one < other}
    pairs = {tuple(map(int, re.findall(r"\d+", text)[:2])) for text in told if text.startswith("rules ")}
    assert pairs <= overlapping
    assert pairs == overlapping or len(pairs) == 10


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=6))
def test_examples_of_overlaps_are_matched_by_both_rules(rules: list[tuple[str, str]]) -> None:
    for text in validate(["x", "y"], [[*cells, str(at)] for at, cells in enumerate(rules)]):
        found = re.fullmatch(r"rules (\d+) and (\d+) both match(.*)", text)
        if found is not None:
            values = {name: float(value) for name, value in re.findall(r"([xy]) = (\S+?)(?:,|$)", found[3])}
            for number in (found[1], found[2]):
                for name, cell in zip("xy", rules[int(number) - 1], strict=True):
                    assert name not in values or feel.unary_tests(cell, values[name]), (text, cell)
