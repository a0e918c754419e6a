"""The trace of an evaluation: what a console shows."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from decimal import Decimal

import pytest

from holdfast import dmn
from holdfast.feel import FeelLimitExceeded
from tests.dmn.models import data, decision, knowledge, make_xml, table

TABLE = table(
    ["Age", "Kind"], ["Fee", "Text"], [["> 5", "-", "1", '"a"', "because"], ["-", '"x"', "2", '"b"']], policy="COLLECT"
)
XML = make_xml(
    data("Age"), data("Kind"), decision("D", TABLE, inputs=["Age", "Kind"]), decision("E", "D[1].Fee", decisions=["D"])
)


def test_trace_holds_inputs_and_matched_rules() -> None:
    result = dmn.load(XML).evaluate("E", {"Age": 7, "Kind": "x"})

    first, second = result.trace
    assert (first.name, first.id, second.name, second.value, second.tables) == ("D", "id_D", "E", 1, ())
    (traced,) = first.tables
    assert traced.name == "D"
    assert traced.hit_policy == "C"
    assert traced.inputs == (("Age", Decimal(7)), ("Kind", "x"))
    assert [rule.number for rule in traced.rules] == [1, 2]
    assert traced.rules[0].id == "r1"
    assert traced.rules[0].outputs == (("Fee", Decimal(1)), ("Text", "a"))
    assert traced.rules[0].annotations == (("note", "because"),)
    assert traced.value == first.value == result.trace[0].value


def test_trace_turns_into_json() -> None:
    result = dmn.load(XML).evaluate("E", {"Age": 7, "Kind": "x"})

    shown = json.loads(json.dumps(result.trace.to_json()))

    assert [one["name"] for one in shown] == ["D", "E"]
    assert shown[0]["tables"][0]["inputs"][0] == {"name": "Age", "value": 7}
    assert shown[0]["tables"][0]["rules"][0] == {
        "number": 1,
        "id": "r1",
        "outputs": [{"name": "Fee", "value": 1}, {"name": "Text", "value": "a"}],
        "annotations": [{"name": "note", "text": "because"}],
    }


def test_trace_of_any_value_turns_into_json() -> None:
    values = '[@"2024-01-01", @"P1D", [1..2], {f: function(a) a}, 0.1, null, true]'

    json.dumps(dmn.load(make_xml(decision("D", values))).evaluate("D", {}).trace.to_json())


def test_value_that_is_too_much_for_json_is_refused_at_once() -> None:
    steps = ", ".join(f"v{number}: [{', '.join([f'v{number - 1}'] * 10)}]" for number in range(1, 9))
    result = dmn.load(make_xml(decision("D", f"{{v0: 1, {steps}}}.v8"))).evaluate("D", {})

    with pytest.raises(FeelLimitExceeded, match="at most 1,000,000 values"):
        result.trace.to_json()


def test_values_that_are_too_much_for_json_together_are_refused() -> None:
    xml = make_xml(
        data("Items"),
        knowledge("K", ["x"], table(["x"], ["o"], [["-", "1"]])),
        decision("D", "for i in 1..20 return K(Items)", inputs=["Items"], knowledge=["K"]),
    )
    result = dmn.load(xml).evaluate("D", {"Items": [1] * 60_000})

    with pytest.raises(FeelLimitExceeded, match="at most 1,000,000 values"):
        result.trace.to_json()
    assert len(result.trace[0].tables[0].to_json()["inputs"][0]["value"]) == 60_000


def test_trace_cannot_be_changed() -> None:
    result = dmn.load(XML).evaluate("E", {})

    with pytest.raises(FrozenInstanceError):
        result.trace[0].name = "X"  # type: ignore[misc]


def test_first_rule_is_the_only_one_that_is_traced_for_the_policy_first() -> None:
    xml = XML.replace('hitPolicy="COLLECT"', 'hitPolicy="FIRST"')

    result = dmn.load(xml).evaluate("D", {"Age": 7, "Kind": "x"})

    assert [rule.number for rule in result.trace[0].tables[0].rules] == [1]


def test_violation_keeps_the_rules_in_the_trace() -> None:
    xml = XML.replace('hitPolicy="COLLECT"', 'hitPolicy="UNIQUE"')

    result = dmn.load(xml).evaluate("D", {"Age": 7, "Kind": "x"})

    assert result.value is None
    assert [rule.number for rule in result.trace[0].tables[0].rules] == [1, 2]


def test_description_of_a_rule_is_an_annotation_too() -> None:
    xml = XML.replace('<rule id="r2">', '<rule id="r2"><description>as Camunda has it</description>')

    result = dmn.load(xml).evaluate("D", {"Kind": "x"})

    assert result.trace[0].tables[0].rules[0].annotations == (("description", "as Camunda has it"),)


def test_trace_of_very_many_tables_is_bounded_and_says_so() -> None:
    made = table(["a"], ["o"], [["-", "a"]])
    model = dmn.load(
        make_xml(knowledge("K", ["a"], made), decision("D", "count(for i in 1..1500 return K(i))", knowledge=["K"]))
    )

    result = model.evaluate("D", {})

    assert result.value == 1_500
    assert len(result.trace[0].tables) == 1_000
    assert result.trace.left_out == 500
