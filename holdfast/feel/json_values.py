"""FEEL's values as JSON and back.

| FEEL | JSON |
|---|---|
| null, boolean, string, list, context | the same |
| number | a number if it comes back as it was, else `{"@number": "0.1000000000000000000000000001"}` |
| date, time, date and time | `{"@date": "2024-02-29"}`, `{"@time": …}`, `{"@date and time": …}` |
| both durations | `{"@duration": "P1Y2M"}` |
| range | `{"@range": {"start": 1, "end": 5, "start included": true, "end included": false}}`, or `{"@range": {"=": 10}}` |
| a context that looks like one of these | `{"@context": {"@date": …}}` |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, time
from decimal import Decimal
from functools import partial
from typing import Any, Final

from holdfast.errors import FeelLimitExceeded
from holdfast.feel.python_values import look_from_python, name_entry, to_feel
from holdfast.feel.rebuilding import Branch, Refused, rebuild
from holdfast.feel.running import MOST_ITEMS
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.parsing import parse_date, parse_date_time, parse_duration, parse_time
from holdfast.feel.temporal.values import TYPE_NAMES, ExactDateTime
from holdfast.feel.values import NUMBERS, Function, Range, Value

__all__ = ["from_json", "to_feel", "to_json"]

_MOST_DIGITS: Final = 34
"""Whole numbers with more digits end with zeros that need not be written out."""


# --- to JSON ---


def to_json(value: Value) -> object:
    """A value as JSON has it: made of None, bool, int, float, str, list and dict alone; `from_json` gives it back.

    Raises FeelError if there is a function in it, or if it is too much once it is written out.
    """
    return JsonWriter(_look_to_json).write(value)


class JsonWriter:
    """Writes values as JSON, as many as may be written out together."""

    def __init__(self, look: Callable[[Value], Value]) -> None:
        self._look = look
        self._left = MOST_ITEMS

    def write(self, value: Value) -> object:
        """One more of them. Raises FeelError for what `look` refuses, or if it is too much with those before it."""
        made = rebuild(value, self._look)
        self._left -= _count_parts(made)
        if self._left < 0:
            raise FeelLimitExceeded(
                f"Expected at most {MOST_ITEMS:,} values to be written as JSON, but there are more. Ask for a part."
            )
        return made


def look_to_shown_json(value: Value) -> Value:
    """For a JsonWriter: functions, which JSON has no form for, are shown."""
    if type(value) is Function:
        return f"function({', '.join(value.parameters)})"
    return _look_to_json(value)


def _count_parts(data: object) -> int:
    """How many values there are in a value; one that occurs in many places is written out in each of them."""
    sizes: dict[int, int] = {}
    waiting = [data]
    while waiting:
        inside = _list_parts(waiting[-1])
        unknown = [part for part in inside if isinstance(part, list | dict) and id(part) not in sizes]
        if unknown:
            waiting.extend(unknown)
            continue
        sizes[id(waiting.pop())] = 1 + sum(sizes.get(id(part), 1) for part in inside)
    return sizes[id(data)]


def _list_parts(data: object) -> Collection[object]:
    return data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()


def _look_to_json(value: Value) -> Value:
    kind = type(value)
    if kind is bool or value is None:
        return value
    if kind is str:
        return look_from_python(value)
    if kind is Decimal:
        return _write_number(value)
    if kind is list:
        return Branch(value, value, list)
    if kind is dict:
        names = [name_entry(key) for key in value]
        return Branch(value, value.values(), lambda made: _write_context(value, made), names)
    if kind is Range:
        return _open_range(value)
    if kind in TYPE_NAMES:
        return _write_temporal(value)
    if kind is Function:
        raise Refused("a function, which JSON cannot hold")
    return _look_to_json(to_feel(value))


def _write_number(value: Decimal) -> object:
    if not value.is_finite():
        return None
    if not value:
        return 0
    if value.adjusted() < _MOST_DIGITS and value == value.to_integral_value():
        return int(value)
    nearest = float(value)
    return nearest if Decimal(repr(nearest)) == value else {"@number": str(value)}


def _write_temporal(value: Any) -> dict[str, object]:
    name = TYPE_NAMES[type(value)]
    tag = "@duration" if name.endswith("duration") else f"@{name}"
    text = to_text(value)
    # The second time that a clock shows what it shows: the text alone stands for the first.
    return {tag: [text, 1] if getattr(value, "fold", 0) else text}


def _open_range(value: Range) -> Branch:
    if not value.has_start and not value.has_end:
        operator = "=" if value.start_included else "!="
        return Branch(value, (value.start,), lambda made: {"@range": {operator: made[0]}}, (operator,))
    ends = {"start": value.start} if value.has_start else {}
    if value.has_end:
        ends["end"] = value.end

    def finish(made: list[Value]) -> Value:
        included = {"start included": value.start_included, "end included": value.end_included}
        return {"@range": dict(zip(ends, made, strict=True)) | included}

    return Branch(value, ends.values(), finish, ends)


def _write_context(value: dict[str, Value], made: list[Value]) -> Value:
    written = dict(zip(value, made, strict=True))
    # Every "@" is kept for tags, also for those that are not there yet.
    is_like_tag = len(value) == 1 and next(iter(value)).startswith("@")
    return {"@context": written} if is_like_tag else written


# --- from JSON ---


def from_json(data: object) -> Value:
    """The value that `to_json` wrote; other JSON as it is, with its numbers exact.

    Raises FeelError if what a tag holds is not of its kind.
    """
    return rebuild(data, _look_from_json)


def _look_from_json(data: Any) -> Value:
    if type(data) is dict and len(data) == 1:
        ((tag, content),) = data.items()
        read = _TAGS.get(tag)
        if read is not None:
            return read(data, content)
    return look_from_python(data)


def _read_number(_data: object, content: object) -> Value:
    number = NUMBERS.create_decimal(content) if isinstance(content, str) else None
    if number is None or not number.is_finite():
        raise Refused("no number in the tag @number")
    return number


def _read_temporal(tag: str, parse: Callable[[str], Value]) -> Callable[[object, object], Value]:
    def read(_data: object, content: object) -> Value:
        is_second = isinstance(content, list) and content[1:] == [1]
        text = content[0] if is_second and isinstance(content, list) else content
        value = parse(text) if isinstance(text, str) else None
        if value is None:
            raise Refused(f"nothing that the tag {tag} can hold")
        return _make_second(value) if is_second else value

    return read


def _make_second(value: Value) -> Value:
    if isinstance(value, (datetime, time)):
        return value.replace(fold=1)
    if isinstance(value, ExactDateTime):
        parts = {name: getattr(value, name) for name in ExactDateTime.__slots__}
        return ExactDateTime(**parts | {"fold": 1})
    raise Refused("a fold, which only a date and time has")


def _read_range(data: object, content: object) -> Value:
    if not isinstance(content, dict):
        raise Refused("no range in the tag @range")
    for operator in ("=", "!="):
        if operator in content:
            return Branch(data, (content[operator],), partial(_compare_with, operator), (operator,))
    ends = {name: content[name] for name in ("start", "end") if name in content}

    def finish(made: list[Value]) -> Range:
        new = dict(zip(ends, made, strict=True))
        return Range(
            new.get("start"),
            new.get("end"),
            content.get("start included") is not False,
            content.get("end included") is not False,
            "start" in ends,
            "end" in ends,
        )

    return Branch(data, ends.values(), finish, ends)


def _compare_with(operator: str, made: list[Value]) -> Range:
    is_equal = operator == "="
    return Range(made[0], made[0], is_equal, is_equal, has_start=False, has_end=False)


def _read_context(data: object, content: object) -> Value:
    if not isinstance(content, dict):
        raise Refused("no context in the tag @context")
    keys = [name_entry(key) for key in content]
    return Branch(data, content.values(), lambda made: dict(zip(keys, made, strict=True)), keys)


_TAGS: Final[Mapping[str, Callable[[object, object], Value]]] = {
    "@number": _read_number,
    "@date": _read_temporal("@date", parse_date),
    "@time": _read_temporal("@time", parse_time),
    "@date and time": _read_temporal("@date and time", parse_date_time),
    "@duration": _read_temporal("@duration", parse_duration),
    "@range": _read_range,
    "@context": _read_context,
}
