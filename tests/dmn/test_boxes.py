"""Boxed expressions, one kind after the other."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from holdfast import dmn
from holdfast.errors import FeelLimitExceeded
from holdfast.feel import FeelWarning
from tests.dmn.models import data, decision, knowledge, make_xml, table, text


def decide(box: str, *others: str, warnings: list[FeelWarning] | None = None, **inputs: object) -> Any:
    names = [name.replace("_", " ") for name in inputs]
    xml = make_xml(*others, *map(data, names), decision("D", box, inputs=names))
    return dmn.load(xml).evaluate("D", dict(zip(names, inputs.values(), strict=True)), warnings=warnings).value


def entry(name: str, value: str, attributes: str = "") -> str:
    body = value if value.startswith("<") else text(value)
    return f"<contextEntry><variable name='{name}' {attributes}/>{body}</contextEntry>"


def part(tag: str, value: str) -> str:
    return f"<{tag}>{value if value.startswith('<') else text(value)}</{tag}>"


# --- literal expressions ---


def test_literal_expression_gives_its_value() -> None:
    assert decide("Monthly Salary * 12", Monthly_Salary=1_000) == 12_000


def test_decision_without_logic_and_text_without_content_are_null() -> None:
    model = dmn.load(make_xml(decision("D"), decision("E", "<literalExpression/>")))

    assert model.evaluate("D", {}).value is None
    assert model.evaluate("E", {}).value is None


def test_literal_expression_of_another_type_is_null() -> None:
    warnings: list[FeelWarning] = []

    assert decide(text('"foo"', attributes='typeRef="number"'), warnings=warnings) is None
    assert "a string, not a number" in str(warnings[0])


# --- contexts ---


def test_entries_of_a_context_see_those_before_them() -> None:
    box = f"<context>{entry('Base Pay', 'x * 2')}{entry('b', 'Base Pay + 1')}</context>"

    assert decide(box, x=5) == {"Base Pay": 10, "b": 11}


def test_result_cell_is_the_value_of_the_context() -> None:
    assert decide(f"<context>{entry('a', '2')}{part('contextEntry', 'a * 10')}</context>") == 20


def test_entry_of_another_type_is_null() -> None:
    box = f"<context>{entry('a', '2', 'typeRef=' + chr(39) + 'string' + chr(39))}</context>"

    assert decide(box) == {"a": None}


def test_context_hides_what_is_outside_only_inside() -> None:
    box = f"<list><context>{entry('x', '1')}</context>{text('x')}</list>"

    assert decide(box, x=5) == [{"x": 1}, 5]


def test_contexts_and_tables_stand_inside_of_each_other() -> None:
    made = table(["a"], ["o"], [["> 1", '"large"'], ["-", '"small"']], policy="FIRST")
    box = f"<context>{entry('a', 'x')}{entry('b', made)}</context>"

    assert decide(box, x=5) == {"a": 5, "b": "large"}


# --- functions and invocations ---

BOUND = [("sub trahend", "3"), ("minuend", "x")]


def test_function_definition_in_a_context_can_be_called_and_call_itself() -> None:
    body = "<formalParameter name='n'/>" + text("if n <= 1 then 1 else n * fact(n - 1)")
    function = entry("fact", f"<functionDefinition>{body}</functionDefinition>")
    box = f"<context>{function}{part('contextEntry', 'fact(5)')}</context>"

    assert decide(box) == 120


def test_function_definition_sees_its_surroundings() -> None:
    body = "<formalParameter name='n'/>" + text("n * x")
    box = (
        f"<context>{entry('f', f'<functionDefinition>{body}</functionDefinition>')}{part('contextEntry', 'f(3)')}</context>"
    )

    assert decide(box, x=4) == 12


def test_invocation_binds_parameters_by_their_names() -> None:
    called = knowledge("Rest of", ["minuend", "sub trahend"], "minuend - sub trahend")
    bindings = [f"<binding><parameter name='{name}'/>{text(value)}</binding>" for name, value in BOUND]
    box = f"<invocation>{text('Rest of')}{''.join(bindings)}</invocation>"
    xml = make_xml(called, data("x"), decision("D", box, inputs=["x"], knowledge=["Rest of"]))

    assert dmn.load(xml).evaluate("D", {"x": 10}).value == 7


def test_invocation_leaves_parameters_without_a_binding_null() -> None:
    called = knowledge("K", ["a", "b"], "[a, b]")
    box = f"<invocation>{text('K')}<binding><parameter name='b'/>{text('3')}</binding></invocation>"

    assert dmn.load(make_xml(called, decision("D", box, knowledge=["K"]))).evaluate("D", {}).value == [None, 3]


def test_invocation_of_a_built_in_function_works() -> None:
    assert decide(f"<invocation>{text('sum')}<binding><parameter name='list'/>{text('[1, 2]')}</binding></invocation>") == 3


@pytest.mark.parametrize("called", ["nothing", "5"])
def test_invocation_of_what_is_no_function_is_null_with_a_warning(called: str) -> None:
    warnings: list[FeelWarning] = []

    assert decide(f"<invocation>{text(called)}</invocation>", warnings=warnings) is None
    assert "cannot be called" in str(warnings[-1])


def test_invocation_with_an_unknown_parameter_is_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []
    box = f"<invocation>{text('K')}<binding><parameter name='c'/>{text('3')}</binding></invocation>"
    model = dmn.load(make_xml(knowledge("K", ["a"], "a"), decision("D", box, knowledge=["K"])))

    assert model.evaluate("D", {}, warnings=warnings).value is None
    assert "its parameters are a, not c" in str(warnings[0])


# --- lists and relations ---


def test_list_gives_its_items() -> None:
    assert decide(f"<list>{text('1')}{text('x')}<list>{text('2')}</list></list>", x="a") == [1, "a", [2]]


def test_relation_is_a_list_of_contexts() -> None:
    rows = f"<row>{text('1')}{text('2')}</row><row>{text('x')}{text('4')}</row>"
    box = f"<relation><column name='First One'/><column name='b'/>{rows}</relation>"

    assert decide(box, x=3) == [{"First One": 1, "b": 2}, {"First One": 3, "b": 4}]


# --- DMN 1.4 ---


@pytest.mark.parametrize(("value", "expected"), [(True, 1), (False, 2), (None, 2)])
def test_conditional_takes_one_of_two(value: object, expected: int) -> None:
    assert decide(f"<conditional>{part('if', 'x')}{part('then', '1')}{part('else', '2')}</conditional>", x=value) == expected


def test_for_gives_one_value_for_each_item() -> None:
    assert decide(f"<for iteratorVariable='one item'>{part('in', 'x')}{part('return', 'one item * 2')}</for>", x=[1, 2]) == [
        2,
        4,
    ]


def test_for_goes_through_ranges() -> None:
    assert decide(f"<for iteratorVariable='i'>{part('in', '[1..3]')}{part('return', 'i * i')}</for>") == [1, 4, 9]


def test_for_sees_what_it_has_so_far() -> None:
    box = f"<for iteratorVariable='i'>{part('in', '[1..4]')}{part('return', 'if i = 1 then 1 else i * partial[-1]')}</for>"

    assert decide(box) == [1, 2, 6, 24]


def test_for_over_null_is_null_with_a_warning() -> None:
    warnings: list[FeelWarning] = []

    assert decide(f"<for iteratorVariable='i'>{part('in', 'null')}{part('return', 'i')}</for>", warnings=warnings) is None
    assert warnings


@pytest.mark.parametrize(
    ("kind", "items", "expected"),
    [
        ("every", [1, 2], True),
        ("every", [1, -2], False),
        ("every", [], True),
        ("every", [1, "a"], None),
        ("some", [-1, 2], True),
        ("some", [-1, -2], False),
        ("some", [], False),
        ("some", [-1, "a"], None),
    ],
)
def test_quantified_asks_every_item_or_some(kind: str, items: list[object], expected: bool | None) -> None:
    box = f"<{kind} iteratorVariable='i'>{part('in', 'x')}{part('satisfies', 'i > 0')}</{kind}>"

    assert decide(box, x=items) is expected


def test_filter_keeps_the_items_that_match() -> None:
    assert decide(f"<filter>{part('in', 'x')}{part('match', 'item > 1')}</filter>", x=[1, 2, 3]) == [2, 3]


def test_filter_sees_the_entries_of_items() -> None:
    items = [{"age": 10, "name": "a"}, {"age": 30, "name": "b"}]

    assert decide(f"<filter>{part('in', 'x')}{part('match', 'age > limit')}</filter>", x=items, limit=20) == [items[1]]


# DMN 1.5, 7.3.20 to 7.3.24, and the TCK's 1150 to 1154: what asks takes booleans, and null, alone.
@pytest.mark.parametrize("value", ["a", 1, 0, [], [True], {}])
def test_conditional_without_a_boolean_is_null_with_a_warning(value: object) -> None:
    warnings: list[FeelWarning] = []
    box = f"<conditional>{part('if', 'x')}{part('then', '1')}{part('else', '2')}</conditional>"

    assert decide(box, warnings=warnings, x=value) is None
    assert "'if' is a" in str(warnings[0])
    assert "not a boolean" in str(warnings[0])


@pytest.mark.parametrize("match", ['"no boolean"', "-1", 'if item <= 2 then true else "no boolean"', "[true]"])
def test_filter_without_a_boolean_is_null_with_a_warning(match: str) -> None:
    warnings: list[FeelWarning] = []

    assert decide(f"<filter>{part('in', 'x')}{part('match', match)}</filter>", warnings=warnings, x=[1, 2, 3]) is None
    assert "'match' is a" in str(warnings[0])


def test_filter_leaves_out_items_that_match_null() -> None:
    items = [{"a": False}, {"a": None}, {}, {"a": True}]

    assert decide(f"<filter>{part('in', 'x')}{part('match', 'item.a')}</filter>", x=items) == [{"a": True}]


@pytest.mark.parametrize(
    ("kind", "satisfies", "expected"),
    [
        ("some", '"no boolean"', None),
        ("some", 'if i = 2 then true else "no boolean"', None),
        ("some", 'if i = 1 then true else "no boolean"', True),
        ("some", "i * 2", None),
        ("every", '"no boolean"', None),
        ("every", "if i = 2 then false else 1", None),
        ("every", "if i = 1 then false else 1", False),
        ("every", "if i = 1 then null else false", False),
    ],
)
def test_quantified_without_a_boolean_is_null_once_it_comes_upon_it(
    kind: str, satisfies: str, expected: bool | None
) -> None:
    box = f"<{kind} iteratorVariable='i'>{part('in', '[1, 2]')}{part('satisfies', satisfies)}</{kind}>"

    assert decide(box) is expected


@pytest.mark.parametrize(("value", "expected"), [(None, []), (5, [5])])
def test_filter_of_what_is_no_list(value: object, expected: list[object]) -> None:
    assert decide(f"<filter>{part('in', 'x')}{part('match', 'true')}</filter>", x=value) == expected


# --- limits ---


def test_loops_of_boxes_come_to_an_end() -> None:
    inner = f"<for iteratorVariable='j'>{part('in', '[1..2000]')}{part('return', '1')}</for>"

    with pytest.raises(FeelLimitExceeded):
        decide(f"<for iteratorVariable='i'>{part('in', '[1..2000]')}{part('return', inner)}</for>")


def test_values_are_not_changed_by_what_is_done_to_them() -> None:
    given = {"a": [1, 2]}

    assert decide("append(x.a, 3)", x=given) == [Decimal(1), Decimal(2), Decimal(3)]
    assert given == {"a": [1, 2]}


# --- functions whose type is that of their result, as modelers write it ---

FUNCTIONS = [
    "<functionDefinition><formalParameter name='a' typeRef='number'/>" + text("a + 1") + "</functionDefinition>",
    "function(a) a + 1",
]


def call(result: str, *entries: str) -> str:
    return f"<context>{''.join(entries)}<contextEntry>{text(result)}</contextEntry></context>"


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", ["number", "Any", "", "tFunction"])
def test_entry_that_is_a_function_may_have_the_type_of_its_result(function: str, kind: str) -> None:
    item = '<itemDefinition name="tFunction"><functionItem outputTypeRef="number"/></itemDefinition>'

    assert decide(call("f(41)", entry("f", function, f"typeRef='{kind}'")), item) == 42


@pytest.mark.parametrize("function", FUNCTIONS)
def test_result_of_a_function_has_to_be_of_the_type_of_its_entry(function: str) -> None:
    warnings: list[FeelWarning] = []

    assert decide(call("f(41)", entry("f", function, "typeRef='string'")), warnings=warnings) is None
    assert "a number, not a string" in str(warnings[0])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_decision_that_is_a_function_may_have_the_type_of_its_result(function: str) -> None:
    model = dmn.load(make_xml(decision("F", function, type_ref="number"), decision("D", "F(41)", decisions=["F"])))

    assert model.evaluate("D", {}).value == 42


def test_function_of_a_typed_entry_still_calls_itself() -> None:
    body = text("if n < 2 then 1 else n * fac(n - 1)")
    function = f"<functionDefinition><formalParameter name='n'/>{body}</functionDefinition>"

    assert decide(call("fac(5)", entry("fac", function, "typeRef='number'"))) == 120


def test_value_that_is_no_function_does_not_get_by_as_one() -> None:
    kind = "typeRef='number'"

    assert decide(f"<context>{entry('f', 'x', kind)}</context>", x="a") == {"f": None}
