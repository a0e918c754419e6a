"""What is wrong with one decision, or one knowledge model, makes it null and leaves the others alone."""

from __future__ import annotations

import pytest

from holdfast import dmn
from holdfast.errors import DmnError
from holdfast.feel import FeelWarning
from tests.dmn.models import decision, knowledge, make_xml, table, text

SAME_KEYS = "<context>" + f"<contextEntry><variable name='a'/>{text('1')}</contextEntry>" * 2 + "</context>"
BROKEN = {
    "same keys of a context": '{foo: "bar", foo: "baz"}',
    "same keys of a boxed context": SAME_KEYS,
    "syntax": "1 +",
    "syntax of a cell": table(["1"], ["o"], [["((", "1"]]),
    "hit policy": table(["1"], ["o"], [["-", "1"]], policy="X"),
    "no outputs": table(["1"], [], []),
    "too few cells": table(["1", "2"], ["o"], []).replace(
        "</decisionTable>", f"<rule>{text('-', 'inputEntry')}{text('1', 'outputEntry')}</rule></decisionTable>"
    ),
    "relation": f"<relation><column name='a'/><row>{text('1') * 2}</row></relation>",
    "unknown type": f"<context><contextEntry><variable name='a' typeRef='tNone'/>{text('1')}</contextEntry></context>",
    "language": '<literalExpression expressionLanguage="groovy"><text>1</text></literalExpression>',
    "two expressions": text("1") + text("2"),
    "function of Java": "<functionDefinition kind='Java'/>",
    "unknown element": "<surprise/>",
    "conditional": f"<conditional><if>{text('true')}</if></conditional>",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_decision_is_null_with_the_problem_and_others_decide(name: str) -> None:
    model = dmn.load(
        make_xml(
            decision("Broken", BROKEN[name]),
            decision("Sound", "1 + 1"),
            decision("Above", 'if Broken = null then "none" else "some"', decisions=["Broken"]),
        )
    )
    warnings: list[FeelWarning] = []

    assert model.evaluate("Sound", {}, warnings=warnings).value == 2
    assert (warnings, len(model.problems) > 0) == ([], True)
    assert model.evaluate("Broken", {}, warnings=warnings).value is None
    assert str(warnings[0]).startswith("decision 'Broken': it is null, because its logic cannot be used: decision 'Broken'")
    assert "Expected" in str(warnings[0])
    assert model.evaluate("Above", {}).value == "none"


@pytest.mark.parametrize("name", BROKEN)
def test_strict_loading_refuses_what_is_broken(name: str) -> None:
    xml = make_xml(decision("Broken", BROKEN[name]), decision("Sound", "1 + 1"))

    with pytest.raises(DmnError) as caught:
        dmn.load(xml, strict=True)
    assert caught.value.problems == dmn.load(xml).problems


def test_broken_knowledge_is_null_where_it_is_called() -> None:
    model = dmn.load(
        make_xml(
            knowledge("K", ["a"], "a +"),
            knowledge("L", ["a"], "K(a)", needs=["K"]),
            decision("D", "[1, L(2), K(a: 3)]", knowledge=["K", "L"]),
        )
    )
    warnings: list[FeelWarning] = []

    assert model.evaluate("D", {}, warnings=warnings).value == [1, None, None]
    assert "business knowledge model 'K'" in str(warnings[0])
    assert len(model.problems) == 1


def test_service_of_a_broken_decision_is_there_too() -> None:
    service = (
        '<decisionService id="s" name="S"><outputDecision href="#id_D"/><outputDecision href="#id_E"/></decisionService>'
    )
    model = dmn.load(make_xml(decision("D", "("), decision("E", "2"), service))

    assert model.evaluate("S", {}).value == {"D": None, "E": 2}


@pytest.mark.parametrize(
    "part",
    [
        decision("D", "1", inputs=["Missing"]),
        decision("D", "1").replace("<decision ", "<decision surprise='' ").replace('id="id_D"', 'id="id_E"'),
        '<itemDefinition name="t"><typeRef>tNothing</typeRef></itemDefinition>',
        '<inputData id="i" name="I"><variable name="I" typeRef="tNothing"/></inputData>',
        '<decision id="d"/>',
        "<surprise/>",
    ],
)
def test_what_concerns_the_whole_model_refuses_it(part: str) -> None:
    with pytest.raises(DmnError):
        dmn.load(make_xml(decision("E", "1"), part))


# --- parts that are not there yet ---


@pytest.mark.parametrize("logic", ["", "<encapsulatedLogic/>"])
def test_knowledge_without_logic_is_null_and_told_when_called(logic: str) -> None:
    empty = f'<businessKnowledgeModel id="id_K" name="K"><variable name="K"/>{logic}</businessKnowledgeModel>'
    model = dmn.load(make_xml(empty, decision("D", "[K(), 1]", knowledge=["K"]), decision("E", "1")), strict=True)
    warnings: list[FeelWarning] = []

    assert model.evaluate("E", {}, warnings=warnings).value == 1
    assert warnings == []
    assert model.evaluate("D", {}, warnings=warnings).value == [None, 1]
    assert any("business knowledge model 'K'" in one and "no logic" in one for one in model.warnings)


def test_call_of_knowledge_without_logic_says_why_it_is_null() -> None:
    empty = '<businessKnowledgeModel id="id_K" name="K"/>'
    warnings: list[FeelWarning] = []
    dmn.load(make_xml(empty, decision("D", "K(1, 2)", knowledge=["K"]))).evaluate("D", {}, warnings=warnings)

    assert "it has no logic" in str(warnings[0])


def test_service_without_output_is_null_and_told_when_evaluated() -> None:
    model = dmn.load(make_xml('<decisionService id="id_S" name="S"/>', decision("D", "[S()]", knowledge=["S"])), strict=True)
    warnings: list[FeelWarning] = []

    assert model.evaluate("S", {}, warnings=warnings).value is None
    assert "no output decision" in str(warnings[0])
    assert model.evaluate("D", {}).value == [None]
    assert any("decision service 'S'" in one and "no output decision" in one for one in model.warnings)
