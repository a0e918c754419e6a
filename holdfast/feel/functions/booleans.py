"""Functions over booleans and nulls: DMN 10.3.4.2, `is` of 10.3.4.6, and those that Camunda adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.errors import FeelError
from holdfast.feel.comparing import is_identical
from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.running import Run
from holdfast.feel.values import Value

_LEFT_OUT: Final = object()


def negate(run: Run, negand: bool | None) -> bool | None:
    """`not`: the opposite of true or false; null stays null."""
    return None if negand is None else not negand


def compare_identity(run: Run, value1: Value = _LEFT_OUT, value2: Value = _LEFT_OUT) -> bool:
    """`is`: whether both are the same element of the semantic domain. A value that is left out is not the same as any."""
    return value1 is not _LEFT_OUT and value2 is not _LEFT_OUT and is_identical(value1, value2, run)


def get_or_else(run: Run, value: Value, default: Value) -> Value:
    """`get or else` (Camunda): the value, or the default if it is null."""
    return default if value is None else value


def assert_condition(run: Run, value: Value, condition: Value, cause: str | None = None) -> Value:
    """`assert` (Camunda): the value if the condition is true. Raises FeelError otherwise: no null, but an end."""
    if condition is True:
        return value
    reason = f"it is not: {cause}" if cause else "it is not"
    raise FeelError(f"Expected the condition of an assert() to be true, but {reason}. Give a value that fulfils it.")


def tag_value(run: Run, value: Value, *_description: Value) -> Value:
    """`fromAi` (Camunda): the value. What else is said of it is for tools that read the expression."""
    return value


def is_there(run: Run, value: Value) -> bool:
    """`is defined` (Camunda). The compiler sees to it, unless it is handed about as a value."""
    return value is not None


_ABOUT: Final = (("description", "string?"), ("type", "string?"), ("schema", "context?"), ("options", "context?"))

BOOLEANS: Final[Mapping[str, tuple[Form, ...]]] = {
    "not": (form(negate, ("negand", "boolean?")),),
    "is": (form(compare_identity, ("value1", "any?"), ("value2", "any?"), required=0),),
    "is defined": (form(is_there, ("value", "any?")),),
    "get or else": (form(get_or_else, ("value", "any?"), ("default", "any?")),),
    "assert": (form(assert_condition, ("value", "any?"), ("condition", "any?"), ("cause", "string?"), required=2),),
    "fromAi": (form(tag_value, ("value", "any?"), *_ABOUT, required=1),),
}
"""By name."""
