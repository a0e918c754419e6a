"""Values as texts: as FEEL writes them, for `string()`, and as JSON, for `to json()`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from holdfast.feel.running import MOST_CHARACTERS, Run
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.properties import get_property
from holdfast.feel.temporal.texts import SECOND, write_zone
from holdfast.feel.temporal.values import name_type
from holdfast.feel.temporal.zones import make_offset
from holdfast.feel.values import Function, Range, Value

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_NAME: Final = re.compile(r"(?:[^\W\d]|[\U00010000-\U000EFFFF])[\w'\U00010000-\U000EFFFF]*(?: [\w'\U00010000-\U000EFFFF]+)*")
"""Keys that need no quotes: words with single spaces between them. DMN 10.3.1.2, rules 27 to 29."""


@dataclass(frozen=True, slots=True)
class _Style:
    separator: str
    colon: str
    write_key: Callable[[str], str]
    write_simple: Callable[[Run, Value], str]


def write_text(run: Run, value: Value) -> str:
    """A value as FEEL writes it, texts without quotes: `[1, "a", {b: null}]`. Raises FeelLimitExceeded if it is too long."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is not Decimal:
        return _write(run, value, _FEEL)
    text = write_number(value)
    run.spend(len(text) >> 8, len(text))
    return text


def write_json(run: Run, value: Value) -> str:
    """A value as JSON, without spaces; what JSON does not have, as a text. Raises FeelLimitExceeded if it is too long."""
    return _write(run, value, _JSON)


def write_number(value: Decimal) -> str:
    """A number with all its digits and without an exponent."""
    text = format(value, "f")
    return text if value else text.removeprefix("-")


def _write(run: Run, value: Value, style: _Style) -> str:
    """Without recursion: a list can be as deep as the steps of an evaluation go."""
    parts: list[str] = []
    size = 0
    rest: list[Value] = [value]  # a tuple, which is no value, is a text that is written already
    while rest:
        one = rest.pop()
        kind = type(one)
        if kind is tuple:
            text = one[0]
        elif kind is list:
            run.spend(2 * len(one) + 1)
            text = "["
            rest.append(("]",))
            for item in reversed(one):
                rest += (item, (style.separator,))
            _drop_separator(rest, one)
        elif kind is dict:
            run.spend(3 * len(one) + 1)
            text = "{"
            rest.append(("}",))
            for key, item in reversed(one.items()):
                rest += (item, (style.write_key(key) + style.colon,), (style.separator,))
            _drop_separator(rest, one)
        elif kind is Range and style is _FEEL:
            text = ""
            rest += _list_range(one)
        else:
            text = style.write_simple(run, one)
        parts.append(text)
        size += len(text)
        if size > MOST_CHARACTERS:
            break
    run.check_text(size, *parts)
    return "".join(parts)


def _drop_separator(rest: list[Value], whole: list[Value] | dict[str, Value]) -> None:
    """Drop the separator before the first part of a list or context; an empty one has none."""
    if whole:
        rest.pop()


def _list_range(value: Range) -> list[Value]:
    """What is to be written of a range, the last first. DMN 10.3.1.2, rule 7: one with a single end is a comparison."""
    if not value.has_start and not value.has_end:
        return [value.start, ("= " if value.start_included else "!= ",)]
    if not value.has_start:
        return [value.end, ("<= " if value.end_included else "< ",)]
    if not value.has_end:
        return [value.start, (">= " if value.start_included else "> ",)]
    start, end = "[" if value.start_included else "(", "]" if value.end_included else ")"
    return [(end,), value.end, ("..",), value.start, (start,)]


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _write_key(key: str) -> str:
    return key if _NAME.fullmatch(key) else _quote(key)


def _write_simple(_run: Run, value: Value) -> str:
    kind = type(value)
    if kind is str:
        return _quote(value)
    if kind is Decimal:
        return write_number(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    return "<function>" if kind is Function else to_text(value)


def _quote_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _write_simple_json(run: Run, value: Value) -> str:
    kind = type(value)
    if kind is str:
        return _quote_json(value)
    if kind is Decimal or kind is bool or value is None:
        return _write_simple(run, value)
    if kind is Range:
        return _quote_json(_write(run, value, _FEEL))
    return _quote_json(_write_zoned(value) or _write_simple(run, value))


def _write_zoned(value: Value) -> str | None:
    """`2025-11-24T10:00:00+01:00[Europe/Berlin]`, as Camunda writes a date and time with the id of its zone."""
    if name_type(value) != "date and time" or not isinstance(value.tzinfo, ZoneInfo):
        return None
    offset = make_offset(get_property(value, "time offset").nanoseconds // SECOND)
    local = to_text(value.replace(tzinfo=None)) if hasattr(value, "replace") else to_text(value).partition("@")[0]
    return None if offset is None else f"{local}{write_zone(offset)}[{value.tzinfo.key}]"


_FEEL: Final = _Style(", ", ": ", _write_key, _write_simple)
_JSON: Final = _Style(",", ":", _quote_json, _write_simple_json)
