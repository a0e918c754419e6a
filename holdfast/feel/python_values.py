"""Values of Python on their way in, in the form that FEEL works with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from inspect import iscoroutinefunction
from operator import is_
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.feel.rebuilding import Branch, Refused, rebuild
from holdfast.feel.surrogates import HALF_OF_PAIR, has_surrogate
from holdfast.feel.temporal.values import (
    DaysTimeDuration,
    ExactDate,
    ExactDateTime,
    ExactTime,
    YearsMonthsDuration,
    from_python,
)
from holdfast.feel.values import NUMBERS, Function, Range, Value


def to_feel(value: Any) -> Value:
    """A value of Python in the form that `values` describes; what has it already is given back itself, not copied.

    Raises FeelError, with the way to it, for a value that FEEL does not have, for one more than 1,000 deep and for one that
    contains itself.
    """
    kind = type(value)
    if kind in _FINE or (kind is str and value.isascii()):
        return value
    convert = _SIMPLE.get(kind)
    if convert is not None:
        return convert(value)
    try:
        return _convert_quickly(value, [_QUICK_ITEMS], _QUICK_DEPTH)
    except _NotQuick:
        return rebuild(value, look_from_python)


_REMEMBERED: Final = 4_096
"""Numbers that come again and again are converted once."""


class _NotQuick(Exception):
    """There is something in it that needs a closer look."""


def _convert_quickly(value: Any, room: list[int], depth: int) -> Value:
    """Lists and dicts that are not deep, many or strange, as most variables are. Raises _NotQuick for others."""
    kind = type(value)
    convert = _SIMPLE.get(kind)
    if convert is not None:
        return convert(value)
    if kind is str and not has_surrogate(value):
        return value
    if (kind is not dict and kind is not list) or depth == 0:
        raise _NotQuick
    go_on = _convert_quickly
    # Counted, since what occurs in many places is looked at in each of them.
    room[0] -= len(value)
    if room[0] < 0:
        raise _NotQuick
    if kind is list:
        items = [
            item if ((kind := type(item)) is str and item.isascii()) or kind in _FINE else go_on(item, room, depth - 1)
            for item in value
        ]
        return value if all(map(is_, items, value)) else items
    entries = {}
    is_same = True
    for key, item in value.items():
        if type(key) is not str or (not key.isascii() and has_surrogate(key)):
            raise _NotQuick
        kind = type(item)
        if (kind is str and item.isascii()) or kind in _FINE:
            entries[key] = item
        elif kind is int and -_EXACT < item < _EXACT:
            entries[key] = Decimal(item)
            is_same = False
        else:
            new = entries[key] = go_on(item, room, depth - 1)
            is_same = is_same and new is item
    return value if is_same else entries


def look_from_python(value: Any) -> Value:
    """What becomes of one value, for `rebuild`."""
    kind = type(value)
    if kind in _FINE:
        return value
    convert = _CONVERT.get(kind) or _find_conversion(value)
    return convert(value)


@lru_cache(maxsize=_REMEMBERED)
def from_int(value: int) -> Decimal | None:
    """An integer as a number; None if it is too large to be one."""
    if -_EXACT < value < _EXACT:
        return Decimal(value)
    number = NUMBERS.create_decimal(value)
    return number if number.is_finite() else None


@lru_cache(maxsize=_REMEMBERED)
def _from_float(value: float) -> Decimal | None:
    # DMN 10.3.2.3.1: there are no infinities, and nothing that is no number. `repr` is the shortest text of this number.
    number = NUMBERS.create_decimal(float.__repr__(value))
    return number if number.is_finite() else None


def _from_decimal(value: Decimal) -> Decimal | None:
    if not value.is_finite():
        return None
    rounded = NUMBERS.plus(value)
    if rounded == value:
        return value
    return rounded if rounded.is_finite() else None


def _from_text(value: str) -> str:
    if has_surrogate(value):
        raise Refused(HALF_OF_PAIR)
    return str.__str__(value)


def _from_enum(value: Enum) -> Value:
    return look_from_python(value.value)


def is_function(value: object) -> bool:
    """Whether a value of Python can be called as a function. Classes are none: they are what values are made of."""
    return callable(value) and not isinstance(value, type)


def _from_callable(value: Callable[..., Any]) -> Function:
    from holdfast.feel.python_functions import make_function  # noqa: PLC0415 - functions take values in, too

    if iscoroutinefunction(value):
        raise Refused("an async function, which nothing here can wait for")
    return make_function(value)


def _open_list(value: list[Any]) -> Branch:
    return Branch(value, value, lambda made: value if all(map(is_, made, value)) else made)


def _open_sequence(value: tuple[Any, ...] | list[Any]) -> Branch:
    return Branch(value, value, list)


def _open_dict(value: dict[Any, Any]) -> Branch:
    for key in value:
        if type(key) is not str or (not key.isascii() and has_surrogate(key)):
            return _open_mapping(value)

    def finish(made: list[Value]) -> Value:
        return value if all(map(is_, made, value.values())) else dict(zip(value, made, strict=True))

    return Branch(value, value.values(), finish, value)


def _open_mapping(value: Mapping[Any, Any]) -> Branch:
    return _open_entries(value, [name_entry(key) for key in value], list(value.values()))


def _open_dataclass(value: Any) -> Branch:
    names = [field.name for field in fields(value)]
    return _open_entries(value, names, [getattr(value, name) for name in names])


def _open_struct(value: msgspec.Struct) -> Branch:
    names = value.__struct_fields__
    return _open_entries(value, names, [getattr(value, name) for name in names])


def _open_entries(value: Any, names: Collection[str], inside: list[Any]) -> Branch:
    return Branch(value, inside, lambda made: dict(zip(names, made, strict=True)), names)


def _open_range(value: Range) -> Branch:
    def finish(made: list[Value]) -> Range:
        start, end = made
        if start is value.start and end is value.end:
            return value
        return Range(start, end, value.start_included, value.end_included, value.has_start, value.has_end)

    return Branch(value, (value.start, value.end), finish, ("start", "end"))


def name_entry(key: object) -> str:
    """A key of a mapping as the name of an entry. Raises Refused if it is no text."""
    if isinstance(key, str):
        return _from_text(key)
    raise Refused(f"a mapping with the key {key!r}, which is no text")


def _find_conversion(value: Any) -> Callable[[Any], Value]:
    """For what is not exactly of a type that is known: a subclass, or something with entries."""
    for kind, convert in _BY_BASE:
        if isinstance(value, kind):
            return convert
    if is_dataclass(value) and not isinstance(value, type):
        return _open_dataclass
    if is_function(value):
        return _from_callable
    raise Refused(f"a value of type {type(value).__qualname__}")


_EXACT: Final = 10**34
"""Smaller integers are numbers as they are."""
_QUICK_DEPTH: Final = 20
_QUICK_ITEMS: Final = 100_000
_FINE: Final = frozenset(
    {
        bool,
        type(None),
        date,
        DaysTimeDuration,
        YearsMonthsDuration,
        ExactDate,
        ExactTime,
        ExactDateTime,
        Function,
    }
)
"""Types whose values are as they should be. So are texts, but for halves of surrogate pairs."""
_SIMPLE: Final[Mapping[type, Callable[[Any], Value]]] = {
    int: from_int,
    float: _from_float,
    Decimal: _from_decimal,
    datetime: from_python,
    time: from_python,
    timedelta: from_python,
}
"""Types whose values have no others inside."""
_CONVERT: Final[Mapping[type, Callable[[Any], Value]]] = {
    **_SIMPLE,
    str: _from_text,
    list: _open_list,
    dict: _open_dict,
    tuple: _open_sequence,
    Range: _open_range,
}
_BY_BASE: Final[tuple[tuple[type, Callable[[Any], Value]], ...]] = (
    (Enum, _from_enum),
    (str, _from_text),
    (int, from_int),
    (float, _from_float),
    (Decimal, _from_decimal),
    (date, from_python),
    (time, from_python),
    (timedelta, from_python),
    (UUID, str),
    (tuple, _open_sequence),
    (list, _open_sequence),
    (Mapping, _open_mapping),
    (msgspec.Struct, _open_struct),
)
"""What is found by its bases, the first first: an enum that is a text as well is its value."""
