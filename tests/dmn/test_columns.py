"""Columns of tables: what their types ask of values, what their cells call the value, and columns that are not filled in."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import dmn
from holdfast.feel import FeelWarning
from tests.dmn.models import data, decision, make_xml, table

CAMUNDA = 'xmlns:camunda="http://camunda.org/schema/1.0/dmn"'
FIRST = [["null", '"none"'], ["-", '"some"']]


def load(box: str, *others: str, strict_columns: bool = False, attributes: str = "") -> dmn.Model:
    xml = make_xml(*others, data("x"), data("y"), decision("D", box, inputs=["x", "y"]), attributes=attributes)
    return dmn.load(xml, strict_columns=strict_columns)


def decide(model: dmn.Model, warnings: list[FeelWarning] | None = None, **inputs: object) -> Any:
    return model.evaluate("D", inputs, warnings=warnings).value


def type_output(made: str, kind: str) -> str:
    return made.replace('<output name="o"', f'<output name="o" typeRef="{kind}"')


# --- types ---


def test_type_of_a_column_is_a_hint() -> None:
    made = table(["x", "y"], ["o"], [["> 5", "true", "1"], ["-", "-", "2"]], policy="FIRST", types=["string", "number"])
    model = load(type_output(made, "string"))

    warnings: list[FeelWarning] = []
    assert decide(model, warnings, x=6, y=True) == 1
    assert warnings == []


def test_strict_columns_make_null_of_inputs_of_other_types() -> None:
    model = load(table(["x"], ["o"], FIRST, policy="FIRST", types=["number"]), strict_columns=True)
    warnings: list[FeelWarning] = []

    assert decide(model, warnings, x="c") == "none"
    assert "a string, not a number" in str(warnings[-1])


def test_strict_columns_make_null_of_outputs_of_other_types() -> None:
    model = load(type_output(table(["x"], ["o"], [["-", '"c"']]), "number"), strict_columns=True)
    warnings: list[FeelWarning] = []

    assert decide(model, warnings, x=1) is None
    assert "a string, not a number" in str(warnings[-1])


def test_types_that_the_model_defines_bind_columns_always() -> None:
    small = (
        '<itemDefinition name="tSmall"><typeRef>number</typeRef><allowedValues><text>&lt; 5</text></allowedValues>'
        "</itemDefinition>"
    )
    model = load(table(["x"], ["o"], FIRST, policy="FIRST", types=["tSmall"]), small)

    assert decide(model, x=9) == "none"
    assert decide(model, x=4) == "some"


@pytest.mark.parametrize("is_strict", [True, False])
def test_list_of_one_is_its_item_where_the_column_says_so(is_strict: bool) -> None:
    model = load(table(["x"], ["o"], [["7", "1"]], types=["number"]), strict_columns=is_strict)

    assert decide(model, x=[7]) == 1


@pytest.mark.parametrize(
    ("kind", "cell", "told"),
    [
        ("string", "> 5", "its typeRef is string, but rule 2 compares it with a number"),
        ("number", '"a"', "its typeRef is number, but rule 2 compares it with a string"),
        ("number", "true", "its typeRef is number, but rule 2 compares it with a boolean"),
        ("date", '"2020-01-01"', "its typeRef is date, but rule 2 compares it with a string"),
        ("integer", '"a"', "its typeRef is number, but rule 2 compares it with a string"),
    ],
)
def test_column_whose_cells_contradict_its_type_is_told_at_load(kind: str, cell: str, told: str) -> None:
    model = load(table(["x"], ["o"], [["-", "1"], [cell, "1"], [cell, "2"]], policy="COLLECT", types=[kind]))

    (warning,) = [one for one in model.warnings if "typeRef" in one]
    assert told.replace("rule 2", "rule 2 and 1 more") in warning
    assert "input 1" in warning


def test_output_that_contradicts_its_type_is_told_at_load() -> None:
    model = load(type_output(table(["x"], ["o"], [["1", "1"], ["2", "-2"], ["3", '"a"']]), "string"))

    assert any("its typeRef is string, but rule 1 and 1 more gives a number" in one for one in model.warnings)


@pytest.mark.parametrize(("kind", "cell"), [("string", '"a"'), ("number", "> 5"), ("Any", "5"), ("", "5"), ("date", "< y")])
def test_columns_in_order_are_not_told(kind: str, cell: str) -> None:
    model = load(table(["x"], ["o"], [[cell, "1"]], types=[kind]))

    assert not [one for one in model.warnings if "typeRef" in one]


# --- names of the value ---


@pytest.mark.parametrize("namespace", ["http://camunda.org/schema/1.0/dmn", "http://camunda.org/schema/zeebe/1.0"])
def test_input_variable_of_camunda_names_the_value_in_its_cells(namespace: str) -> None:
    made = table(["x + 1", "y"], ["o"], [["total price > 5", "-", "1"], ["-", "-", "2"]], policy="FIRST")
    made = made.replace("<input>", '<input camunda:inputVariable="total price">', 1)
    model = load(made, attributes=f'xmlns:camunda="{namespace}"')

    assert [decide(model, x=x, y=0) for x in (4, 5)] == [2, 1]
    assert not [one for one in model.warnings if "total price" in one]


def test_input_variable_is_known_in_its_own_column_alone() -> None:
    made = table(["x", "y"], ["o"], [["-", "v = 1", "1"], ["-", "-", "v"]], policy="FIRST")
    model = load(made.replace("<input>", '<input camunda:inputVariable="v">', 1), attributes=CAMUNDA)

    assert decide(model, x=1, y=1) is None
    assert decide(model, x=1, y=1, v=1) == 1


def test_input_variable_comes_before_an_input_of_the_same_name() -> None:
    made = table(["x * 10"], ["o"], [["y = 10", "1"], ["-", "2"]], policy="FIRST")
    model = load(made.replace("<input>", '<input camunda:inputVariable="y">', 1), attributes=CAMUNDA)

    assert [decide(model, x=x, y=10) for x in (1, 2)] == [1, 2]


def test_cells_know_the_value_as_cell_input() -> None:
    model = load(table(["x"], ["o"], [["cellInput > 5", "1"], ["-", "2"]], policy="FIRST"))

    assert [decide(model, x=x) for x in (6, 5)] == [1, 2]


def test_input_data_called_cell_input_is_itself() -> None:
    made = table(["x"], ["o"], [["cellInput > 5", "1"], ["-", "2"]], policy="FIRST")
    xml = make_xml(data("x"), data("cellInput"), decision("D", made, inputs=["x", "cellInput"]))

    assert dmn.load(xml).evaluate("D", {"x": 0, "cellInput": 6}).value == 1


def test_attributes_of_camunda_do_no_harm() -> None:
    xml = make_xml(
        decision("D", table(["x"], ["o"], [["1", "2"]])).replace(
            "<decision ", '<decision camunda:historyTimeToLive="P1D" camunda:versionTag="2" '
        ),
        attributes=f'{CAMUNDA} xmlns:modeler="http://camunda.org/schema/modeler/1.0" '
        'modeler:executionPlatform="Camunda Cloud" exporter="Camunda Modeler" exporterVersion="5.1"',
    )

    assert dmn.load(xml).evaluate("D", {"x": 1}).value == 2


# --- yet to be filled in ---


@pytest.mark.parametrize("expression", ["<inputExpression/>", "<inputExpression><text> </text></inputExpression>", ""])
def test_input_without_expression_is_null_and_told_when_evaluated(expression: str) -> None:
    made = table(["x"], ["o"], [["5", "1"], ["-", "2"]], policy="FIRST")
    empty = made.replace("<inputExpression ><text>x</text></inputExpression>", expression)
    assert empty != made
    model = load(empty)
    warnings: list[FeelWarning] = []

    assert decide(model, warnings, x=5, y=0) == 2
    assert "it has no expression" in str(warnings[-1])
    assert any("input 1" in one and "no expression" in one for one in model.warnings)
