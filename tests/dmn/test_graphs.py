"""Decision requirements graphs: decisions, knowledge, services, inputs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import dmn
from holdfast.errors import FeelError, FeelLimitExceeded
from holdfast.feel import FeelWarning, Function
from tests.dmn.models import data, decision, knowledge, make_id, make_xml, table, text


def service(name: str, outputs: list[str], *, data_: list[str] | None = None, decisions: list[str] | None = None) -> str:
    parts = [f'<outputDecision href="#{make_id(one)}"/>' for one in outputs]
    parts += [f'<inputDecision href="#{make_id(one)}"/>' for one in decisions or []]
    parts += [f'<inputData href="#{make_id(one)}"/>' for one in data_ or []]
    return f'<decisionService id="{make_id(name)}" name="{name}">{"".join(parts)}</decisionService>'


def tell(warnings: list[FeelWarning]) -> list[str]:
    return [str(warning) for warning in warnings]


# --- decisions ---


@pytest.mark.parametrize(
    "namespace",
    [
        "http://www.omg.org/spec/DMN/20151101/dmn.xsd",
        "http://www.omg.org/spec/DMN/20151101/dmn11.xsd",
        "http://www.omg.org/spec/DMN/20151101/",
        "http://www.omg.org/spec/DMN/20180521/MODEL/",
        "https://www.omg.org/spec/DMN/20180521/MODEL/",
        "https://www.omg.org/spec/DMN/20191111/MODEL/",
        "http://www.omg.org/spec/DMN/20191111/MODEL/",
        "https://www.omg.org/spec/DMN/20191111/MODEL",
        "https://www.omg.org/spec/DMN/20211108/MODEL/",
        "https://www.omg.org/spec/DMN/20230324/MODEL/",
        "https://www.omg.org/spec/DMN/20240513/MODEL/",
    ],
)
def test_every_version_of_dmn_is_read(namespace: str) -> None:
    xml = make_xml(data("A", "feel:number"), decision("D", "A + 1", inputs=["A"]), namespace=namespace)

    assert dmn.load(xml).evaluate("D", {"A": 1}).value == 2


@pytest.mark.parametrize(
    "language",
    ["feel", "FEEL", "http://www.omg.org/spec/FEEL/20140401", "https://www.omg.org/spec/DMN/20240513/FEEL/"],
)
def test_every_name_of_feel_is_read(language: str) -> None:
    assert dmn.load(make_xml(decision("D", "1"), attributes=f'expressionLanguage="{language}"')).problems == ()


def test_prefixes_do_not_matter() -> None:
    xml = '<x:definitions xmlns:x="https://www.omg.org/spec/DMN/20191111/MODEL/"><x:decision name="D"/></x:definitions>'

    assert dmn.load(xml).evaluate("D", {}).value is None


def test_decision_is_found_by_name_and_by_id() -> None:
    model = dmn.load(make_xml(decision("My Decision", "1")))

    assert model.evaluate("My Decision", {}).value == 1
    assert model.evaluate("id_MyDecision", {}).value == 1


def test_each_decision_is_made_once_behind_those_it_needs() -> None:
    model = dmn.load(
        make_xml(
            decision("Top", "Left Side + Right", decisions=["Left Side", "Right"]),
            decision("Left Side", "Base * 2", decisions=["Base"]),
            decision("Right", "Base * 3", decisions=["Base"]),
            decision("Base", "n + 1", inputs=["n"]),
            data("n"),
        )
    )

    result = model.evaluate("Top", {"n": 1})

    assert result.value == 10
    assert [one.name for one in result.trace] == ["Base", "Left Side", "Right", "Top"]


def test_long_chains_of_decisions_are_made() -> None:
    chain = [decision(f"D{at}", f"D{at - 1} + 1", decisions=[f"D{at - 1}"]) for at in range(1, 2_000)]

    assert dmn.load(make_xml(decision("D0", "0"), *chain)).evaluate("D1999", {}).value == 1_999


def test_decision_sees_only_what_it_requires() -> None:
    model = dmn.load(make_xml(data("a"), decision("B", "a", inputs=["a"]), decision("D", "[a, B]", decisions=["B"])))
    warnings: list[FeelWarning] = []

    assert model.evaluate("D", {"a": 1}, warnings=warnings).value == [None, 1]
    assert "'a' is not required" in model.warnings[0]


def test_summaries_name_all_inputs_that_are_needed() -> None:
    model = dmn.load(
        make_xml(
            data("Full Name"),
            data("b"),
            decision("B", "b + other", inputs=["b"]),
            decision("D", "B", inputs=["Full Name"], decisions=["B"]),
        )
    )

    assert model.decisions[1].name == "D"
    assert model.decisions[1].inputs == ("b", "Full Name", "other")


def test_names_with_signs_and_keywords_are_names() -> None:
    names = ["Time in Service", "a-b", "Profit / Loss", "if any"]
    model = dmn.load(
        make_xml(*map(data, names), decision("D", "Time in Service + a-b + Profit / Loss + if any", inputs=names))
    )

    assert model.evaluate("D", dict.fromkeys(names, 2)).value == 8


def test_clock_and_randomness_are_those_that_were_given() -> None:
    model = dmn.load(make_xml(decision("D", "today()"), decision("U", "uuid()")))
    warnings: list[FeelWarning] = []

    assert str(model.evaluate("D", {}, clock=lambda: datetime(2024, 2, 29, tzinfo=UTC)).value) == "2024-02-29"
    assert model.evaluate("U", {}, random=lambda bits: 0).value is not None
    assert model.evaluate("D", {}, warnings=warnings).value is None
    assert tell(warnings)[0].startswith("decision 'D': ")


# --- inputs ---


def test_missing_input_is_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []
    model = dmn.load(make_xml(data("A"), decision("D", "A", inputs=["A"])))

    assert model.evaluate("D", {}, warnings=warnings).value is None
    assert tell(warnings) == ["input 'A' is null, because it was not given"]


def test_inputs_that_nobody_needs_are_left_alone() -> None:
    assert dmn.load(make_xml(decision("D", "1"))).evaluate("D", {"A": object()}).value == 1


def test_input_that_was_never_declared_is_taken_as_camunda_does_with_a_warning_at_deployment() -> None:
    made = table(["season"], ["dish"], [['"winter"', '"stew"'], ['"summer"', '"salad"']])
    model = dmn.load(make_xml(decision("Dish", made)))

    assert model.evaluate("Dish", {"season": "winter"}).value == "stew"
    assert model.decisions[0].inputs == ("season",)
    assert "'season' is nothing that the model knows" in model.warnings[0]


def test_required_decision_is_seen_by_its_id_as_camunda_does() -> None:
    model = dmn.load(make_xml(decision("My Base", "5"), decision("D", "id_MyBase + My Base", decisions=["My Base"])))

    assert model.evaluate("D", {}).value == 10
    assert model.warnings == ()


def test_variable_may_have_another_name_than_its_element() -> None:
    base = decision("Base", "5").replace('<variable name="Base"', '<variable name="the base"')
    model = dmn.load(make_xml(base, decision("D", "the base + Base", decisions=["Base"])))

    assert model.evaluate("D", {}).value == 10


@pytest.mark.parametrize("inputs", [None, [], {1: 2}])
def test_inputs_that_are_no_names_and_values_are_refused(inputs: Any) -> None:
    with pytest.raises(FeelError, match="Expected inputs"):
        dmn.load(make_xml(decision("D", "1"))).evaluate("D", inputs)


def test_input_that_feel_does_not_have_is_refused() -> None:
    with pytest.raises(FeelError):
        dmn.load(make_xml(data("A"), decision("D", "A", inputs=["A"]))).evaluate("D", {"A": object()})


# --- business knowledge ---


def test_knowledge_is_called_like_a_function_by_position_and_by_name() -> None:
    model = dmn.load(
        make_xml(
            knowledge("Net of", ["gross", "tax rate"], "gross / (1 + tax rate)"),
            decision("D", "[Net of(119, 0.19), Net of(tax rate: 1, gross: 4)]", knowledge=["Net of"]),
        )
    )

    assert model.evaluate("D", {}).value == [100, 2]


def test_knowledge_may_be_a_table() -> None:
    made = table(["age"], ["o"], [["< 18", '"child"'], [">= 18", '"adult"']])
    model = dmn.load(
        make_xml(
            knowledge("Kind of", ["age"], made), decision("D", "for a in [5, 50] return Kind of(a)", knowledge=["Kind of"])
        )
    )

    result = model.evaluate("D", {})

    assert result.value == ["child", "adult"]
    assert [traced.rules[0].number for traced in result.trace[0].tables] == [1, 2]
    assert {traced.name for traced in result.trace[0].tables} == {"Kind of"}


def test_knowledge_calls_knowledge_that_it_requires() -> None:
    model = dmn.load(
        make_xml(
            knowledge("Outer", ["x"], "Inner(x) + 1", needs=["Inner"]),
            knowledge("Inner", ["x"], "x * 10"),
            decision("D", "Outer(2)", knowledge=["Outer"]),
        )
    )

    assert model.evaluate("D", {}).value == 21


def test_knowledge_sees_neither_inputs_nor_what_it_does_not_require() -> None:
    model = dmn.load(
        make_xml(
            data("a"),
            knowledge("K", [], "[a, Other]"),
            knowledge("Other", [], "1"),
            decision("D", "K()", inputs=["a"], knowledge=["K", "Other"]),
        )
    )

    assert model.evaluate("D", {"a": 1, "b": 2}).value == [None, None]
    assert len(model.warnings) == 2


def test_knowledge_may_call_itself_and_others_in_a_circle() -> None:
    model = dmn.load(
        make_xml(
            knowledge("fact", ["n"], "if n <= 1 then 1 else n * fact(n - 1)"),
            knowledge("is even", ["n"], "if n = 0 then true else is odd(n - 1)", needs=["is odd"]),
            knowledge("is odd", ["n"], "if n = 0 then false else is even(n - 1)", needs=["is even"]),
            decision("D", "[fact(20), is even(11)]", knowledge=["fact", "is even"]),
        )
    )

    assert model.evaluate("D", {}).value == [2432902008176640000, False]


def test_recursion_without_end_is_stopped() -> None:
    model = dmn.load(make_xml(knowledge("f", ["n"], "f(n + 1)"), decision("D", "f(1)", knowledge=["f"])))

    with pytest.raises(FeelLimitExceeded):
        model.evaluate("D", {})


def test_recursion_through_deep_boxes_is_stopped() -> None:
    box = text("f(n + 1)")
    for _ in range(20):
        box = f"<context><contextEntry><variable name='a'/>{box}</contextEntry></context>"
    model = dmn.load(make_xml(knowledge("f", ["n"], box), decision("D", "f(1)", knowledge=["f"])))

    with pytest.raises(FeelLimitExceeded):
        model.evaluate("D", {})


def test_steps_of_all_decisions_are_counted_together() -> None:
    model = dmn.load(
        make_xml(
            decision("A", "count(for i in 1..600 return i)"),
            decision("D", "count(for i in 1..600 return i) + A", decisions=["A"]),
        )
    )

    assert model.evaluate("D", {}).value == 1200
    with pytest.raises(FeelLimitExceeded):
        model.evaluate("D", {}, max_steps=1_000)


def test_wrong_number_of_arguments_is_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []
    model = dmn.load(make_xml(knowledge("f", ["a", "b"], "1"), decision("D", "f(1)", knowledge=["f"])))

    assert model.evaluate("D", {}, warnings=warnings).value is None
    assert tell(warnings) == ["decision 'D': f: it takes 2 arguments, not 1"]


def test_argument_of_another_type_makes_the_call_null() -> None:
    warnings: list[FeelWarning] = []
    model = dmn.load(make_xml(knowledge("f", ["a: number"], "5"), decision("D", 'f("x")', knowledge=["f"])))

    assert model.evaluate("D", {}, warnings=warnings).value is None
    assert "'a'" in tell(warnings)[0]


def test_arguments_are_converted() -> None:
    model = dmn.load(make_xml(knowledge("f", ["a: number"], "a + 1"), decision("D", "f([4])", knowledge=["f"])))

    assert model.evaluate("D", {}).value == 5


def test_result_of_knowledge_is_of_its_type() -> None:
    model = dmn.load(make_xml(knowledge("f", [], '"x"', type_ref="number"), decision("D", "f()", knowledge=["f"])))

    assert model.evaluate("D", {}).value is None


def test_functions_can_be_passed_on() -> None:
    model = dmn.load(
        make_xml(
            knowledge("desc", ["a", "b"], "a > b"),
            decision("F", "desc", knowledge=["desc"]),
            decision("D", "[sort([1, 3, 2], desc), F(1, 2)]", knowledge=["desc"], decisions=["F"]),
        )
    )

    result = model.evaluate("D", {})

    assert result.value == [[3, 2, 1], False]
    assert isinstance(model.evaluate("F", {}).value, Function)
    assert result.trace.to_json()[0]["value"] == "function(a, b)"


# --- decision services ---

PARTS = [
    data("n"),
    decision("Base", "n + 1", inputs=["n"]),
    decision("Middle", "Base * 10", decisions=["Base"]),
    decision("Top", "Middle + n", decisions=["Middle"], inputs=["n"]),
]


def test_service_gives_the_value_of_its_only_output() -> None:
    model = dmn.load(make_xml(*PARTS, service("S", ["Top"], data_=["n"])))

    assert model.evaluate("S", {"n": 1}).value == 21
    assert model.services[0].inputs == ("n",)


def test_service_gives_a_context_of_several_outputs() -> None:
    model = dmn.load(make_xml(*PARTS, service("S", ["Top", "Base"], data_=["n"])))

    assert model.evaluate("S", {"n": 1}).value == {"Top": 21, "Base": 2}


def test_service_takes_its_input_decisions_from_outside() -> None:
    model = dmn.load(make_xml(*PARTS, service("S", ["Top"], data_=["n"], decisions=["Base"])))

    result = model.evaluate("S", {"n": 1, "Base": 7})

    assert result.value == 71
    assert [one.name for one in result.trace] == ["Middle", "Top"]


def test_service_is_a_function_of_its_input_data_then_its_input_decisions() -> None:
    caller = decision("D", "[S(1, 7), S(Base: 2, n: 3)]", knowledge=["S"])
    model = dmn.load(make_xml(*PARTS, service("S", ["Top"], data_=["n"], decisions=["Base"]), caller))

    result = model.evaluate("D", {"n": 100})

    assert result.value == [71, 23]
    assert [one.name for one in result.trace] == ["Middle", "Top", "Middle", "Top", "D"]


def test_service_that_is_not_given_what_its_decisions_need_is_warned_of() -> None:
    model = dmn.load(make_xml(*PARTS, service("S", ["Top"])))

    assert any("decision service 'S'" in warning and "needs n" in warning for warning in model.warnings)


def test_argument_of_a_service_of_another_type_makes_the_call_null() -> None:
    model = dmn.load(
        make_xml(
            data("n", "number"),
            decision("A", "1", inputs=["n"]),
            service("S", ["A"], data_=["n"]),
            decision("D", 'S("x")', knowledge=["S"]),
        )
    )

    assert model.evaluate("D", {}).value is None
