"""What a filter may say about each field, and how its values become those that stores keep."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from holdfast.core.instants import from_datetime
from holdfast.core.lifecycle import Status
from holdfast.core.searchable_values import (
    INSTANT,
    LONGEST_NAME,
    LONGEST_VALUE,
    TEXT,
    encode_value,
    find_type_end,
    is_storable_name,
    read_instant,
)
from holdfast.filters.lexer import Kind, Token
from holdfast.filters.syntax import (
    And,
    Attribute,
    AttributeKind,
    Column,
    Condition,
    Field,
    Has,
    Not,
    OneOf,
    Or,
    Range,
    Value,
)

ALIASES: Final = {"created_at": "created", "closed_at": "closed", "parent_id": "parent_execution_id", "id": "workflow_id"}
COLUMNS: Final = {one.value: one for one in Column} | {alias: Column(name) for alias, name in ALIASES.items()}
TIMES: Final = (Column.CREATED, Column.CLOSED)
KEYED: Final = {"metadata": AttributeKind.METADATA, "state": AttributeKind.STATE, "reference": AttributeKind.PART}
FIELDS: Final = ", ".join([*(one.value for one in Column), "metadata.<key>", "state.<key>", "reference", "reference.<part>"])


class Refusal(Exception):
    """Why a condition cannot be made: what is expected in the place of its value or operator, and a hint."""

    def __init__(self, expected: str, hint: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.hint = hint


def make_attribute(group: str, name: str) -> Attribute:
    """A key of the metadata or the state, or a part of the business reference. Raises Refusal."""
    if not is_storable_name(name):
        raise Refusal(f"a key of 1 to {LONGEST_NAME} bytes", "No search finds longer ones.")
    return Attribute(KEYED[group], name)


def read_value(field: Field, token: Token) -> Value:
    """The value that a token stands for, as stores keep it in this field. Raises Refusal."""
    is_text = token.kind in (Kind.TEXT, Kind.QUOTED)
    if isinstance(field, Attribute) and field.kind is AttributeKind.STATE:
        return _read_state_value(token, is_text=is_text)
    if not is_text:
        raise Refusal("text in single quotes", "Only values of states are numbers, true or false.")
    if field in TIMES:
        found = read_instant(token.text)
        if found is None:
            raise Refusal("a time as in '2026-11-18T09:30:00Z' or '2026-11-18'", "Without an offset it is UTC.")
        return from_datetime(found)
    if field is Column.STATUS:
        try:
            return Status(token.text.lower()).value
        except ValueError:
            raise Refusal(f"a status among {', '.join(Status)}") from None
    if isinstance(field, Attribute) and len(token.text.encode()) > LONGEST_VALUE:
        raise Refusal(f"text of at most {LONGEST_VALUE} bytes", "No search finds longer values.")
    return token.text


def _read_state_value(token: Token, *, is_text: bool) -> str:
    if token.kind is Kind.NUMBER:
        try:
            encoded = encode_value(Decimal(token.text))
        except InvalidOperation:
            encoded = None
    elif token.upper in ("TRUE", "FALSE"):
        encoded = encode_value(token.upper == "TRUE")
    elif is_text:
        encoded = encode_value(token.text)
    elif token.upper in ("NULL", "NONE"):
        raise Refusal("a value", "Write HAS state.key, or NOT HAS state.key.")
    else:
        raise Refusal("text in single quotes, a number, true or false")
    if encoded is None:
        raise Refusal(f"text of at most {LONGEST_VALUE} bytes, or a number of at most {LONGEST_VALUE - 10} digits")
    return encoded


def compare(field: Field, sign: str, value: Value) -> Condition:
    """The condition that a comparison stands for. Raises Refusal if the field cannot be compared so."""
    if sign == "=":
        return OneOf(field, (value,))
    if sign == "!=":
        return And((Has(field), Not(OneOf(field, (value,)))))
    if isinstance(field, Column) and field not in TIMES:
        raise Refusal("=, !=, IN or STARTS WITH", f"Only times and attributes have an order, and {field} is none of them.")
    behind: Value = value + 1 if isinstance(value, int) else value + "\x01"  # nothing stored lies between: no text has NUL
    low = {">": behind, ">=": value}.get(sign)
    high = {"<": value, "<=": behind}.get(sign)
    if isinstance(field, Attribute) and field.kind is AttributeKind.STATE and isinstance(value, str):
        low, high = (value[0] if low is None else low), (find_type_end(value) if high is None else high)
    return Range(field, low, high)


def start_with(field: Field, prefix: str) -> Condition:
    """The condition that the text of a field begins so. Raises Refusal if the field has no text."""
    if field in TIMES or field is Column.STATUS:
        raise Refusal("=, !=, <, <=, >, >= or IN" if field in TIMES else "=, != or IN")
    if isinstance(field, Attribute) and field.kind is AttributeKind.STATE:
        ranges = tuple(Range(field, kind + prefix, find_prefix_end(kind + prefix)) for kind in (TEXT, INSTANT))
        encoded = encode_value(prefix)
        if encoded is None or encoded.startswith((TEXT, INSTANT + prefix)):
            return Or(ranges)
        return Or((*ranges, OneOf(field, (encoded,))))  # an instant that is not written as stores keep it begins with itself
    return Range(field, prefix, find_prefix_end(prefix))


def find_prefix_end(prefix: str) -> str | None:
    """The first text behind all that begin with a prefix; None if there is none."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    last = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if last == 0xD800 else last)
