"""Conversions: `string`, `number`, and Camunda's `from json` and `to json`. DMN 10.3.4.1."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from holdfast.errors import FeelError
from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.python_values import to_feel
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import NUMBERS, Value
from holdfast.feel.writing import write_json, write_text

_BYTES_OF_VALUE: Final = 180
"""Of a number or an entry of a context, and its place."""
_NUMERAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GROUPING_SEPARATORS: Final = (" ", ",", ".", None)
_DECIMAL_SEPARATORS: Final = (".", ",", None)


def to_string(run: Run, value: Value) -> str | None:
    """A value as a text; null stays null."""
    return None if value is None else write_text(run, value)


def to_number(run: Run, text: str, grouping: str | None = None, decimal: str | None = None) -> Decimal:
    """The number that a text shows, once its grouping separators are removed and its decimal separator is a period."""
    if grouping not in _GROUPING_SEPARATORS:
        raise Fail("the grouping separator is a space, a comma, a period or null")
    if decimal not in _DECIMAL_SEPARATORS:
        raise Fail("the decimal separator is a period, a comma or null")
    if grouping is not None and grouping == decimal:
        raise Fail("the grouping separator and the decimal separator are the same")
    run.spend(len(text) >> 7)
    plain = text if grouping is None else text.replace(grouping, "")
    if decimal == ",":
        plain = plain.replace(".", "?").replace(",", ".")
    number = NUMBERS.create_decimal(plain) if _NUMERAL.fullmatch(plain) else None
    if number is None or not number.is_finite():
        raise Fail(f"'{text[:60]}' is no number")
    return number


def from_json_text(run: Run, text: str) -> Value:
    """The value that a JSON text shows."""
    values = 1 + text.count(",") + text.count("[") + text.count("{")
    run.spend(len(text) >> 3, values * _BYTES_OF_VALUE + len(text) * (1 if text.isascii() else 4))
    try:
        value = json.loads(text, parse_int=_read_number, parse_float=_read_number, parse_constant=_refuse_constant)
        # Escapes are the only way to half of a surrogate pair.
        return to_feel(value) if "\\u" in text else value
    except FeelError:
        raise Fail("this is JSON with half of a surrogate pair in it, which is no character, or too deep") from None
    except ValueError as error:
        raise Fail(f"this is no JSON: {error}") from None
    except RecursionError:
        raise Fail("this is JSON too deep to be read") from None


def _read_number(digits: str) -> Decimal | None:
    number = NUMBERS.create_decimal(digits)
    return number if number.is_finite() else None


def _refuse_constant(name: str) -> Value:
    raise ValueError(f"it has no {name}")


CONVERSIONS: Final[Mapping[str, tuple[Form, ...]]] = {
    "string": (form(to_string, ("from", "any?")),),
    "number": (
        form(to_number, ("from", "string"), ("grouping separator", "string?"), ("decimal separator", "string?"), required=1),
    ),
    "from json": (form(from_json_text, ("value", "string")),),
    "to json": (form(write_json, ("value", "any?")),),
}
