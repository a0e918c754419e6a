"""JUEL becomes FEEL that means the same, and never something that cannot be compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import feel
from holdfast.bpmn.reading.juel import JuelError, translate_expression, translate_text

VARIABLES = {"a": 3, "b": -2, "date": 7, "flag": True, "items": [1, 2, 3], "text": "abc", "none": None}


class Juel(NamedTuple):
    """An expression in JUEL and what it is."""

    text: str
    value: Any


def _combine(sign: str, function: Callable[[Any, Any], Any]) -> Callable[[Juel, Juel], Juel]:
    return lambda left, right: Juel(f"({left.text}) {sign} ({right.text})", function(left.value, right.value))


_NUMBERS: st.SearchStrategy[Juel] = st.recursive(
    st.sampled_from([Juel("a", 3), Juel("b", -2), Juel("date", 7), Juel("items[1]", 2), Juel("4", 4), Juel("-a", -3)]),
    lambda inner: st.one_of(
        st.builds(_combine("+", operator.add), inner, inner),
        st.builds(_combine("-", operator.sub), inner, inner),
        st.builds(_combine("*", operator.mul), inner, inner),
    ),
    max_leaves=6,
)
_CONDITIONS: st.SearchStrategy[Juel] = st.recursive(
    st.one_of(
        st.sampled_from([Juel("flag", True), Juel("empty items", False), Juel("not empty none", False), Juel("true", True)]),
        st.sampled_from(
            [Juel("text.contains('b')", True), Juel("text.equals('x')", False), Juel("items.contains(2)", True)]
        ),
        *(
            st.builds(_combine(sign, function), _NUMBERS, _NUMBERS)
            for sign, function in (
                ("<", operator.lt),
                ("gt", operator.gt),
                ("<=", operator.le),
                ("ge", operator.ge),
                ("==", operator.eq),
                ("ne", operator.ne),
            )
        ),
    ),
    lambda inner: st.one_of(
        st.builds(_combine("&&", lambda left, right: left and right), inner, inner),
        st.builds(_combine("or", lambda left, right: left or right), inner, inner),
        st.builds(lambda one: Juel(f"!({one.text})", not one.value), inner),
        st.builds(
            lambda one, two, three: Juel(
                f"({one.text} ? {two.text} : {three.text})", two.value if one.value else three.value
            ),
            inner,
            inner,
            inner,
        ),
    ),
    max_leaves=5,
)


@given(st.one_of(_NUMBERS, _CONDITIONS))
def test_P9_juel_has_the_same_value_in_feel(juel: Juel) -> None:
    assert feel.evaluate(translate_expression(juel.text), VARIABLES) == juel.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${a - 1 - 1}", 1),
        ("${a < 5 == true}", True),
        ("${!flag || flag}", True),
        ("${!flag && none}", False),
        ("order-${a}", "order-3"),
        ("${a}/${b}", "3/-2"),
        ("\\${a}", "${a}"),
        ("${'it\\'s'}", "it's"),
        ('${"}"}', "}"),
        ("${items[a - 2]}", 2),
        ("${17 % 5}", 2),
    ],
)
def test_P9_precedence_escapes_and_texts_are_kept(text: str, value: object) -> None:
    assert feel.evaluate(translate_text(text), VARIABLES) == value


@given(st.text(alphabet="ab1 .[](){}'\"!&|<>=?:+-*/%,$#\\emptynotgetVariablecontains", max_size=40))
def test_P9_any_text_is_translated_to_something_that_compiles_or_refused(text: str) -> None:
    try:
        written = translate_expression(text)
    except JuelError:
        return
    feel.compile(written, functions=())


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "!" * 100_000, "a." * 10_000 + "a", "a" + ".contains(a)" * 1_000, "${" * 9_000]
)
def test_P9_hostile_expressions_are_refused_in_time(text: str) -> None:
    begin = process_time()

    with pytest.raises(JuelError):
        translate_text(f"${{{text}}}")

    assert process_time() - begin < 10
