"""Variables of processes: JSON as history has it, and the FEEL value that is made of it when an expression asks.

As in Camunda 8, dates, times and durations become texts of ISO 8601, numbers stay exact, and functions and ranges cannot be
stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isinf
from sys import float_info
from typing import Any, Final

import msgspec

from holdfast.bpmn.faults import Fault
from holdfast.core.payloads import CONFIDENCE
from holdfast.errors import FeelError
from holdfast.feel.python_values import to_feel
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.values import TYPE_NAMES
from holdfast.feel.values import Function, Range

_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_MISSING: Final = object()
LARGEST_EXPONENT: Final = float_info.max_10_exp
LONGEST_SHOWN: Final = 80
"""How much of a value a message quotes."""


class Variable:
    """The value of a variable. Never changes."""

    __slots__ = ("_feel", "raw")

    def __init__(self, raw: bytes, feel: Any = _MISSING) -> None:
        self.raw = raw
        """The value as JSON."""
        self._feel = feel

    @property
    def feel(self) -> Any:
        """The value as FEEL has it; made when it is first asked for."""
        if self._feel is _MISSING:
            self._feel = to_feel(_DECODER.decode(self.raw))
        return self._feel

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]  # compared by value, never a key

    def __repr__(self) -> str:
        return f"Variable({self.raw[:80]!r})"


NULL: Final = Variable(b"null", None)
TRUE: Final = Variable(b"true", feel=True)
FALSE: Final = Variable(b"false", feel=False)


def make_number(value: int) -> Variable:
    """A whole number as a variable."""
    return Variable(b"%d" % value, Decimal(value))


def make_text(value: str) -> Variable:
    """A text as the value of a variable."""
    return Variable(msgspec.json.encode(value), value)


def from_feel(value: Any, what: str) -> Variable:
    """The value of an expression as a variable. Raises Fault for what JSON cannot hold; `what` names it in the message."""
    kind = type(value)
    if kind is bool:
        return TRUE if value else FALSE
    if value is None:
        return NULL
    try:
        if kind is Decimal and value.is_finite():
            return Variable(_write_number(value), value)
        raw = msgspec.json.encode(_to_plain(value))
    except (FeelError, TypeError, ValueError, RecursionError) as error:
        raise Fault("expression", f"Expected {what} to be a value that JSON can hold, but {error}.") from None
    return Variable(raw)


def _write_number(value: Decimal) -> bytes:
    if value.adjusted() >= LARGEST_EXPONENT and isinf(float(value)):
        raise ValueError(f"it is a number beyond {float_info.max:.2g}, which other programs cannot read")
    if value == value.to_integral_value() and value.adjusted() < 34:
        return b"%d" % int(value)
    return str(value).encode()


def _to_plain(value: Any) -> Any:
    """What `msgspec` writes as the JSON of a FEEL value. Raises TypeError for functions and ranges."""
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if kind is Decimal:
        return msgspec.Raw(_write_number(value)) if value.is_finite() else None
    if kind is list:
        return [_to_plain(one) for one in value]
    if kind is dict:
        return {name: _to_plain(one) for name, one in value.items()}
    if kind in TYPE_NAMES:
        return to_text(value)
    if kind is Function or kind is Range:
        raise TypeError(f"it is a {kind.__name__.lower()}, which cannot be stored")
    converted = to_feel(value)
    if type(converted) is kind:
        raise TypeError(f"it is a {kind.__name__}")
    return _to_plain(converted)


def read_object(data: bytes | msgspec.Raw) -> dict[str, Variable] | None:
    """The members of a JSON object as variables; None if it is no object."""
    try:
        found = _OBJECT.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return {name: Variable(bytes(value)) for name, value in found.items()}


def split_items(variable: Variable) -> list[bytes] | None:
    """The items of a JSON array, each as JSON; None if it is no array."""
    try:
        return [bytes(item) for item in _ITEMS.decode(variable.raw)]
    except (msgspec.MsgspecError, RecursionError):
        return None


def to_raws(variables: Mapping[str, Variable]) -> dict[str, msgspec.Raw]:
    """Variables as records hold them: JSON by name."""
    return {name: msgspec.Raw(variable.raw) for name, variable in variables.items()}


def to_json(variables: Mapping[str, Variable]) -> bytes:
    """Variables as the bytes of one JSON object."""
    return msgspec.json.encode(to_raws(variables))


def show_value(value: Any) -> str:
    """A FEEL value in a message for people; not the value itself while a codec keeps values from being read."""
    if value is None:
        return "null"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a context"
    if CONFIDENCE:
        return "another value"
    shown = repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def show_json(raw: bytes | msgspec.Raw) -> str:
    """The beginning of a JSON text in a message for people; as `show_value`."""
    return "another value" if CONFIDENCE else bytes(raw)[:LONGEST_SHOWN].decode(errors="replace")
