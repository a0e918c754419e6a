"""Types of a model: item definitions, conformance, conversions, and what comes from outside."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from holdfast import dmn
from holdfast.feel import FeelWarning
from tests.dmn.models import data, decision, make_xml

TYPES = """
<itemDefinition name="tAge"><typeRef>number</typeRef><allowedValues><text>[0..150]</text></allowedValues></itemDefinition>
<itemDefinition name="tColour"><typeRef>string</typeRef>
  <allowedValues><text>"red", "green"</text></allowedValues></itemDefinition>
<itemDefinition name="tColours" isCollection="true"><typeRef>tColour</typeRef></itemDefinition>
<itemDefinition name="tFewColours" isCollection="true"><typeRef>string</typeRef>
  <allowedValues><text>"red", "green"</text></allowedValues>
  <typeConstraint><text>count(?) &lt; 3</text></typeConstraint></itemDefinition>
<itemDefinition name="tPerson">
  <itemComponent name="Full Name"><typeRef>string</typeRef></itemComponent>
  <itemComponent name="age"><typeRef>tAge</typeRef></itemComponent>
  <itemComponent name="born"><typeRef>date</typeRef></itemComponent>
  <itemComponent name="children" isCollection="true"><typeRef>tPerson</typeRef></itemComponent>
</itemDefinition>
<itemDefinition name="tPeople" isCollection="true"><typeRef>tPerson</typeRef></itemDefinition>
<itemDefinition name="tNumbers" isCollection="true"><typeRef>number</typeRef></itemDefinition>
<itemDefinition name="tNameAndAge"><itemComponent name="name"><typeRef>string</typeRef></itemComponent>
  <itemComponent name="age"><typeRef>number</typeRef></itemComponent></itemDefinition>
<itemDefinition name="tFunction">
  <functionItem outputTypeRef="number"><parameters name="a" typeRef="number"/></functionItem></itemDefinition>
"""


def decide(expression: str, type_ref: str, warnings: list[FeelWarning] | None = None) -> Any:
    return dmn.load(make_xml(TYPES, decision("D", expression, type_ref=type_ref))).evaluate("D", {}, warnings=warnings).value


def take(value: object, type_ref: str, warnings: list[FeelWarning] | None = None) -> Any:
    model = dmn.load(make_xml(TYPES, data("A", type_ref), decision("D", "A", inputs=["A"])))
    return model.evaluate("D", {"A": value}, warnings=warnings).value


# --- conformance and conversions, DMN 10.3.2.9 ---


@pytest.mark.parametrize(
    ("expression", "type_ref", "expected"),
    [
        ("1 + 1", "number", 2),
        ("1 + 1", "string", None),
        ("[1, 2]", "tNumbers", [1, 2]),
        ('[1, 2, "foo"]', "tNumbers", None),
        ("[1, null]", "tNumbers", [1, None]),
        ("5", "tNumbers", [5]),
        ('"foo"', "tNumbers", None),
        ('["foo"]', "string", "foo"),
        ("[1]", "string", None),
        ('["a", "b"]', "string", None),
        ("null", "tNumbers", None),
        ('{name: "foo", surname: "bar", age: 10}', "tNameAndAge", {"name": "foo", "surname": "bar", "age": 10}),
        ('{name: "foo"}', "tNameAndAge", None),
        ('{name: "foo", age: "x"}', "tNameAndAge", None),
        ('{name: "foo", age: null}', "tNameAndAge", {"name": "foo", "age": None}),
        ("5", "tNameAndAge", None),
        ('"red"', "tColour", "red"),
        ('"blue"', "tColour", None),
        ('["red"]', "tColour", "red"),
        ('"red"', "tColours", ["red"]),
        ('["red", "blue"]', "tColours", None),
        ('["red", "green"]', "tFewColours", ["red", "green"]),
        ('["red", "blue"]', "tFewColours", None),
        ('["red", "green", "red"]', "tFewColours", None),
        ("151", "tAge", None),
        ("150", "tAge", 150),
        ("1", "Any", 1),
        ("1", "<Undefined>", 1),
        ("1", "feel:number", 1),
        ("1", "integer", 1),
        ("{a: 1}", "context", {"a": 1}),
        ("1", "boolean", None),
        ('@"P1D"', "dayTimeDuration", "P1D"),
        ('@"P1D"', "days and time duration", "P1D"),
        ('@"P1D"', "years and months duration", None),
    ],
)
def test_result_is_of_its_type_or_null(expression: str, type_ref: str, expected: object) -> None:
    value = decide(expression, type_ref)

    assert (str(value) if isinstance(expected, str) and not isinstance(value, str) else value) == expected


def test_date_becomes_a_date_and_time_at_midnight_in_utc() -> None:
    value = decide('@"2024-02-29"', "dateTime")

    assert isinstance(value, datetime)
    assert value.isoformat() == "2024-02-29T00:00:00+00:00"


def test_date_and_time_is_no_date() -> None:
    assert decide('@"2024-02-29T00:00:00"', "date") is None


@pytest.mark.parametrize(("expression", "expected"), [("function(a) a", False), ("5", True)])
def test_function_types_take_functions(expression: str, expected: bool) -> None:
    assert (decide(expression, "tFunction") is None) is expected


def test_mismatch_is_told_with_the_way_to_it() -> None:
    warnings: list[FeelWarning] = []
    person = '{Full Name: "a", age: 5, born: null, children: [{Full Name: 7, age: null, born: null, children: null}]}'

    assert decide(person, "tPerson", warnings) is None
    assert str(warnings[0]) == (
        "decision 'D': its result is null, because its value has a component 'children' that has an item 1 that "
        "has a component 'Full Name' that is a number, not a string"
    )


def test_instance_of_knows_the_types_of_the_model() -> None:
    expression = (
        '[{name: "a", age: 1} instance of tNameAndAge, {name: "a"} instance of tNameAndAge, [1] instance of tNumbers]'
    )

    assert decide(expression, "") == [True, False, True]


def test_names_of_components_may_have_spaces() -> None:
    model = dmn.load(make_xml(TYPES, data("Person", "tPerson"), decision("D", 'Person.Full Name + "!"', inputs=["Person"])))

    assert model.evaluate("D", {"Person": {"Full Name": "Ann"}}).value == "Ann!"


# --- what comes from outside ---


def test_input_of_another_type_is_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []

    assert take("x", "tAge", warnings) is None
    assert str(warnings[0]) == "input 'A' is null, because its value is a string, not a number"


def test_input_that_is_not_allowed_is_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []

    assert take(200, "tAge", warnings) is None
    assert str(warnings[0]) == "input 'A' is null, because its value is none of those allowed: [0..150]"


def test_inputs_are_converted() -> None:
    assert take([5], "number") == 5
    assert take(5, "tNumbers") == [5]


def test_components_that_are_missing_from_an_input_are_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []

    assert take({"name": "Ann"}, "tNameAndAge", warnings) == {"name": "Ann", "age": None}
    assert str(warnings[0]) == "age of input 'A' is null, because it was not given"


def test_texts_of_json_become_dates_where_the_type_says_so() -> None:
    person = {"Full Name": "2024-01-01", "age": 5, "born": "2024-01-01", "children": []}

    assert take("2024-01-01", "date") == date(2024, 1, 1)
    assert take(person, "tPerson") == {**person, "born": date(2024, 1, 1)}
    assert take([person], "tPeople") == [{**person, "born": date(2024, 1, 1)}]


def test_text_that_is_no_date_is_null() -> None:
    assert take("soon", "date") is None


def test_text_for_a_date_that_is_another_temporal_value_is_null() -> None:
    assert take("P1D", "date") is None


def test_value_deep_inside_itself_by_type_is_checked_or_stopped() -> None:
    person: dict[str, Any] = {"Full Name": "x", "age": 1, "born": None, "children": []}
    for _ in range(50):
        person = {"Full Name": "x", "age": 1, "born": None, "children": [person]}

    assert take(person, "tPerson") == person
