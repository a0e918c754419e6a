"""Models that import others of the same deployment: decisions, inputs, knowledge, services and types of theirs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import dmn
from holdfast.errors import DmnError
from holdfast.feel import FeelWarning
from tests.dmn.models import NAMESPACE, data, decision, knowledge, make_xml, table


def make_model(name: str, *parts: str, imports: dict[str, str] | None = None) -> str:
    """A model with the namespace urn:<name>; `imports` are names of models by the names that they are imported by."""
    lines = [
        f'<import name="{alias}" namespace="urn:{other}" importType="{NAMESPACE}"/>'
        for alias, other in (imports or {}).items()
    ]
    xml = make_xml(*lines, *parts)
    return xml.replace('namespace="urn:test"', f'namespace="urn:{name}"').replace('name="m"', f'name="{name}"')


def refer(xml: str, name: str, model: str) -> str:
    """The reference to an element, into another model."""
    return xml.replace(f'href="#id_{name}"', f'href="urn:{model}#id_{name}"')


def decide(*models: str, name: str = "D", warnings: list[FeelWarning] | None = None, **inputs: object) -> Any:
    return dmn.load(list(models), strict=True).evaluate(name, inputs, warnings=warnings).value


RATES = make_model(
    "rates",
    '<itemDefinition name="tRate"><typeRef>number</typeRef><allowedValues><text>[0..1]</text></allowedValues>'
    "</itemDefinition>",
    '<itemDefinition name="tOffer"><itemComponent name="the rate"><typeRef>tRate</typeRef></itemComponent></itemDefinition>',
    data("Age", "number"),
    decision("Base rate", "if Age < 30 then 0.1 else 0.2", inputs=["Age"], type_ref="tRate"),
    knowledge("twice", ["x"], "2 * x"),
    '<decisionService id="id_Service" name="Service"><outputDecision href="#id_Baserate"/><inputData href="#id_Age"/>'
    "</decisionService>",
)


def test_imported_decision_stands_behind_the_name_of_the_import() -> None:
    main = make_model("main", decision("D", "R.Base rate + 1", decisions=["Base rate"]), imports={"R": "rates"})

    assert float(decide(refer(main, "Baserate", "rates"), RATES, Age=20)) == pytest.approx(1.1)


def test_names_of_imports_may_have_spaces() -> None:
    main = make_model("main", decision("D", "My rates.Base rate", decisions=["Base rate"]), imports={"My rates": "rates"})

    assert float(decide(refer(main, "Baserate", "rates"), RATES, Age=40)) == pytest.approx(0.2)


def test_imported_knowledge_and_services_are_functions_behind_the_name() -> None:
    main = make_model(
        "main",
        decision("D", "[R.twice(3), R.twice(x: 4), R.Service(50)]", knowledge=["twice", "Service"]),
        imports={"R": "rates"},
    )
    main = refer(refer(main, "twice", "rates"), "Service", "rates")

    assert [float(one) for one in decide(main, RATES)] == [6, 8, 0.2]


def test_imported_knowledge_is_known_to_knowledge_and_invocations() -> None:
    invocation = (
        "<invocation><literalExpression><text>R.twice</text></literalExpression><binding><parameter name='x'/>"
        "<literalExpression><text>21</text></literalExpression></binding></invocation>"
    )
    main = make_model(
        "main",
        knowledge("K", ["a"], "R.twice(a) + 1", needs=["twice"]),
        decision("D", "K(5)", knowledge=["K"]),
        decision("E", invocation, knowledge=["twice"]),
        imports={"R": "rates"},
    )
    main = refer(main, "twice", "rates")

    assert decide(main, RATES) == 11
    assert decide(main, RATES, name="E") == 42


def test_imported_inputs_stand_behind_the_name_and_are_given_by_their_own_or_below_it() -> None:
    main = make_model(
        "main", data("Age"), decision("D", "[Age, R.Age]", inputs=["Age", "Other"]), imports={"R": "rates"}
    ).replace('href="#id_Other"', 'href="urn:rates#id_Age"')

    assert decide(main, RATES, Age=20) == [20, 20]
    assert decide(main, RATES, Age=20, R={"Age": 50}) == [20, 50]


def test_imported_types_have_the_name_of_the_import_before_them() -> None:
    main = make_model(
        "main",
        data("x", "R.tRate"),
        data("y", "R.tOffer"),
        decision("D", "x", inputs=["x"], type_ref="R.tRate"),
        decision("E", "y.the rate", inputs=["y"]),
        decision("F", "[x instance of R.tRate, y instance of R.tOffer, 5 instance of R.tOffer]", inputs=["x", "y"]),
        imports={"R": "rates"},
    )

    assert decide(main, RATES, x=1) == 1
    assert decide(main, RATES, x=2) is None
    assert decide(main, RATES, name="E", y={"the rate": 1}) == 1
    assert decide(main, RATES, name="E", y={"the rate": 2}) is None
    assert decide(main, RATES, name="F", x=1, y={"the rate": 1}) == [True, True, False]


def test_types_of_the_same_name_stay_apart() -> None:
    main = make_model(
        "main",
        '<itemDefinition name="tRate"><typeRef>string</typeRef></itemDefinition>',
        data("x", "tRate"),
        data("y", "R.tRate"),
        decision("D", "[x, y, x instance of tRate, y instance of R.tRate, y instance of tRate]", inputs=["x", "y"]),
        imports={"R": "rates"},
    )

    assert decide(main, RATES, x="a", y=1) == ["a", 1, True, True, False]


def test_tables_and_type_checks_work_across_models() -> None:
    rules = [["< 0.15", '"low"'], [">= 0.15", '"high"']]
    main = make_model(
        "main",
        decision("D", table(["R.Base rate"], ["o"], rules, types=["R.tRate"]), decisions=["Base rate"]),
        imports={"R": "rates"},
    )

    assert decide(refer(main, "Baserate", "rates"), RATES, Age=20) == "low"


def test_imports_reach_through_models_and_meet_again() -> None:
    one = refer(
        make_model("one", decision("A", "R.Base rate + 1", decisions=["Base rate"]), imports={"R": "rates"}),
        "Baserate",
        "rates",
    )
    two = refer(
        make_model("two", decision("A", "S.Base rate + 2", decisions=["Base rate"]), imports={"S": "rates"}),
        "Baserate",
        "rates",
    )
    main = make_model("main", decision("D", "One.A + Two.A", decisions=["A", "B"]), imports={"One": "one", "Two": "two"})
    main = main.replace('href="#id_B"', 'href="urn:two#id_A"').replace('href="#id_A"', 'href="urn:one#id_A"')
    model = dmn.load([main, two, RATES, one], strict=True)

    result = model.evaluate("D", {"Age": 20})

    assert float(result.value) == pytest.approx(3.2)
    assert [one.id for one in result.trace] == ["urn:rates#id_Baserate", "urn:one#id_A", "urn:two#id_A", "id_D"]
    assert [(one.name, one.inputs) for one in model.decisions] == [("D", ("Age",))]


def test_order_of_the_files_after_the_first_does_not_matter_and_others_are_left_alone() -> None:
    main = refer(
        make_model("main", decision("D", "R.twice(1)", knowledge=["twice"]), imports={"R": "rates"}), "twice", "rates"
    )
    other = make_model("other", decision("D", "1 +"))

    assert decide(main, other, RATES) == 2
    assert dmn.load([main, other, RATES]).problems == ()


# --- imports without a name (DMN 1.5) ---


def test_import_without_a_name_adds_its_names() -> None:
    main = make_model(
        "main",
        data("x", "tRate"),
        decision(
            "D", "[Base rate, twice(2), x instance of tRate]", decisions=["Base rate"], knowledge=["twice"], inputs=["x"]
        ),
        imports={"": "rates"},
    )

    assert [float(one) for one in decide(main, RATES, Age=20, x=1)] == [0.1, 4, 1]


def test_own_names_come_before_those_of_an_import_without_a_name() -> None:
    main = make_model(
        "main",
        '<itemDefinition name="tRate"><typeRef>string</typeRef></itemDefinition>',
        data("x", "tRate"),
        decision("Base rate", '"own"'),
        decision("D", "[Base rate, x]", decisions=["Base rate"], inputs=["x"]),
        imports={"": "rates"},
    )

    assert decide(main, RATES, x="a") == ["own", "a"]


def test_what_an_import_without_a_name_brings_can_be_evaluated() -> None:
    model = dmn.load([make_model("main", imports={"": "middle"}), RATES, make_model("middle", imports={"": "rates"})])

    assert float(model.evaluate("Base rate", {"Age": 20}).value) == 0.1
    assert [one.name for one in model.decisions] == ["Base rate"]


# --- what is wrong ---


def get_problems(*models: str) -> tuple[str, ...]:
    with pytest.raises(DmnError) as caught:
        dmn.load(list(models))
    return caught.value.problems


def test_model_that_is_missing_is_told() -> None:
    (problem,) = get_problems(make_model("main", imports={"R": "rates"}))

    assert problem.startswith("import 'R'")
    assert "namespace 'urn:rates' beside this one, but it was not given" in problem


def test_model_that_an_import_misses_is_told_with_the_model() -> None:
    problems = get_problems(make_model("main", imports={"A": "a"}), make_model("a", imports={"B": "b"}))

    assert [one.startswith("model 'a', import 'B'") for one in problems] == [True]


def test_reference_into_a_model_that_is_not_imported_is_told() -> None:
    main = refer(make_model("main", decision("D", "1", decisions=["Base rate"])), "Baserate", "rates")

    assert "Expected an import of 'urn:rates'" in get_problems(main, RATES)[0]


def test_reference_to_nothing_in_another_model_is_told() -> None:
    main = make_model("main", decision("D", "1", decisions=["None"]), imports={"R": "rates"})

    assert "id 'urn:rates#id_None'" in get_problems(refer(main, "None", "rates"), RATES)[0]


def test_unknown_type_of_an_import_is_told() -> None:
    assert "'R.tNone'" in get_problems(make_model("main", data("x", "R.tNone"), imports={"R": "rates"}), RATES)[0]


def test_cycle_of_decisions_across_models_is_told() -> None:
    one = refer(make_model("one", decision("A", "T.B", decisions=["B"]), imports={"T": "two"}), "B", "two")
    two = refer(make_model("two", decision("B", "O.A", decisions=["A"]), imports={"O": "one"}), "A", "one")

    assert any("A -> B -> A" in problem for problem in get_problems(one, two))


def test_models_that_import_each_other_without_a_cycle_of_decisions_work() -> None:
    one = refer(
        make_model("one", decision("D", "T.B", decisions=["B"]), decision("C", "5"), imports={"T": "two"}), "B", "two"
    )
    two = refer(make_model("two", decision("B", "O.C + 1", decisions=["C"]), imports={"O": "one", "": "two"}), "C", "one")

    assert decide(one, two) == 6


def test_two_models_of_one_namespace_are_told() -> None:
    assert "namespace of its own" in get_problems(RATES, RATES)[0]


def test_imports_of_one_name_are_told() -> None:
    main = make_model("main", imports={"R": "rates"}).replace("<import", '<import name="R" namespace="urn:b"/><import')

    assert any("another import has it" in one for one in get_problems(main, RATES, make_model("b")))


def test_import_with_the_name_of_an_element_is_told() -> None:
    assert "called the same" in get_problems(make_model("main", decision("R", "1"), imports={"R": "rates"}), RATES)[0]


def test_import_of_something_else_than_a_model_is_told() -> None:
    main = make_model("main", imports={"R": "rates"}).replace(NAMESPACE + '"/>', 'http://www.w3.org/2001/XMLSchema"/>')

    assert "importType is 'http://www.w3.org/2001/XMLSchema'" in get_problems(main, RATES)[0]


def test_problem_of_an_imported_decision_names_its_model() -> None:
    main = refer(make_model("main", decision("D", "[R.X]", decisions=["X"]), imports={"R": "rates"}), "X", "rates")
    model = dmn.load([main, make_model("rates", decision("X", "1 +"))])
    warnings: list[FeelWarning] = []

    assert model.evaluate("D", {}, warnings=warnings).value == [None]
    assert "model 'rates', decision 'X'" in str(warnings[0])
    assert model.problems[0].startswith("model 'rates', decision 'X'")


def test_limits_count_all_models() -> None:
    main = make_model("main", decision("D", "1"), imports={"R": "rates"})

    with pytest.raises(DmnError, match="at most 2 decisions"):
        dmn.load([main, RATES], max_decisions=2)


def test_no_file_at_all_is_refused() -> None:
    with pytest.raises(DmnError, match="the list is empty"):
        dmn.load([])
