"""Whatever text is given, there is a value or one of our own errors; and the same text has the same value twice."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import feel
from holdfast.errors import FeelError, FeelSyntaxError
from holdfast.feel.functions.table import BUILT_INS
from tests.feel.grammar import CONTEXT, TESTS, fill, make_text, mutate

KINDS = {
    "number": "number",
    "string": "string",
    "boolean": "boolean",
    "list": "numbers",
    "context": "context",
    "date": "date",
    "time": "time",
    "date and time": "date-time",
    "days and time duration": "days",
    "years and months duration": "months",
    "duration": "days",
    "temporal": "date-time",
    "range": "range",
}
"""The kind in the grammar for each type of a parameter; of all others, any."""
STEPS = 20_000
"""Enough for what is asked here, and soon used up by what would go on for ever."""

RANDOMS = st.randoms(use_true_random=False)


def list_calls() -> tuple[str, ...]:
    """A template for each form of each built-in function, by position and by name."""
    templates = []
    for name, forms in BUILT_INS.items():
        for one in forms:
            places = [f"«{KINDS.get(parameter.type.rstrip('?'), 'any')}»" for parameter in one.parameters]
            named = [f"{parameter.name}: {place}" for parameter, place in zip(one.parameters, places, strict=True)]
            templates += [f"{name}({', '.join(places)})", f"{name}({', '.join(named)})"]
    return tuple(templates)


CALLS = list_calls()


def tell(text: str) -> str:
    """What becomes of a text: its value, or the kind of error. Raises whatever is not ours."""
    warnings: list[feel.FeelWarning] = []
    try:
        value = feel.evaluate(text, CONTEXT, warnings=warnings, max_steps=STEPS)
    except FeelError as error:
        return f"{type(error).__name__}: {error}"
    return describe(value) + "".join(f"\n{warning}" for warning in warnings)


def tell_tests(text: str, value: Any) -> str:
    """The same for unary tests."""
    try:
        return str(feel.unary_tests(text, value, CONTEXT, max_steps=STEPS))
    except FeelError as error:
        return f"{type(error).__name__}: {error}"


def find_syntax_error(text: str) -> FeelSyntaxError | None:
    try:
        feel.compile(text, names=CONTEXT)
    except FeelSyntaxError as error:
        return error
    return None


def describe(value: Any) -> str:
    """A value with its types; numbers without zeros at the end; functions by their names, for two are never equal."""
    if isinstance(value, feel.Range):
        return f"range {describe([value.start, value.end])} {value.start_included} {value.end_included}"
    if isinstance(value, feel.Function):
        return f"function {value.name}{value.parameters}"
    if isinstance(value, list):
        return f"[{', '.join(map(describe, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {describe(entry)}' for name, entry in value.items())}}}"
    return f"{type(value).__name__} {value.normalize() if isinstance(value, Decimal) else repr(value)}"


@settings(deadline=None, max_examples=400)
@given(RANDOMS)
def test_expression_that_fits_the_grammar_is_never_a_syntax_error(random: Random) -> None:
    text = make_text(random)

    assert find_syntax_error(text) is None
    assert tell(text) == tell(text)


@settings(deadline=None, max_examples=600)
@given(RANDOMS)
def test_expression_of_kinds_that_do_not_fit_gives_a_value_or_an_error_of_ours(random: Random) -> None:
    text = make_text(random, wildness=0.3, calls=CALLS)

    assert tell(text) == tell(text)


@settings(deadline=None, max_examples=300)
@given(RANDOMS)
def test_value_comes_back_from_json_as_it_was(random: Random) -> None:
    try:
        value = feel.evaluate(make_text(random, wildness=0.1, calls=CALLS), CONTEXT, max_steps=STEPS)
        written = feel.to_json(value)
    except FeelError:
        return  # it has no value, or one with a function in it

    assert describe(feel.from_json(json.loads(json.dumps(written)))) == describe(value)


@settings(deadline=None, max_examples=600)
@given(RANDOMS)
def test_mutated_expression_gives_a_value_or_an_error_of_ours(random: Random) -> None:
    text = mutate(random, make_text(random, wildness=0.1, calls=CALLS))

    assert tell(text) == tell(text)


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=200) | st.text(alphabet='()[]{}<>.,:;"\\@?=!+-*/ 019aex\n', max_size=60))
def test_any_characters_give_a_value_or_an_error_of_ours(text: str) -> None:
    assert tell(text) == tell(text)
    assert tell_tests(text, "a") == tell_tests(text, "a")


@settings(deadline=None, max_examples=400)
@given(RANDOMS, st.sampled_from([1, 2.5, "a", True, None, [1, 2], {"a": 1}]))
def test_unary_tests_give_true_false_null_or_an_error_of_ours(random: Random, value: Any) -> None:
    text = fill(random, random.choice(TESTS), 2, wildness=0.1, calls=CALLS)

    for one in (text, mutate(random, text)):
        told = tell_tests(one, value)
        assert told == tell_tests(one, value)
        assert told in ("True", "False", "None") or told.startswith("Feel")


@settings(deadline=None, max_examples=400)
@given(RANDOMS)
def test_syntax_error_points_at_a_place_in_the_text(random: Random) -> None:
    text = mutate(random, make_text(random, depth=2))

    error = find_syntax_error(text)

    if error is not None:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert error.shown.split("\n")[-1].strip() == "^"
        assert f"line {error.line}, column {error.column}" in str(error)
