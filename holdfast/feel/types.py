"""Types: how they are written, what belongs to them, and which conversions happen by themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from holdfast.feel import syntax
from holdfast.feel.lexer import Kind, describe
from holdfast.feel.temporal.building import start_day
from holdfast.feel.temporal.values import name_type as name_temporal
from holdfast.feel.values import Function, Range, Value

if TYPE_CHECKING:
    from holdfast.feel.lexer import Lexer
    from holdfast.feel.running import Run
    from holdfast.feel.syntax import Type

Types = Mapping[str, syntax.Type]
"""Types that somebody else defines, by their names."""

_ALIASES: Final[Mapping[str, str]] = {
    "any": "Any",
    "null": "Null",
    "dateTime": "date and time",
    "date time": "date and time",
    "dayTimeDuration": "days and time duration",
    "yearMonthDuration": "years and months duration",
    "days and time": "days and time duration",
    "day-time-duration": "days and time duration",
    "year-month-duration": "years and months duration",
}
_HYPHENED: Final = re.compile(r"(?:day-time|year-month)-duration\b")
"""As Camunda called them once."""
_BY_PYTHON: Final[Mapping[type, str]] = {
    Decimal: "number",
    str: "string",
    bool: "boolean",
    list: "list",
    dict: "context",
    Range: "range",
    Function: "function",
    type(None): "Null",
}
BUILT_IN: Final = frozenset(
    {
        "number",
        "string",
        "boolean",
        "date",
        "time",
        "date and time",
        "days and time duration",
        "years and months duration",
        "list",
        "context",
        "range",
        "function",
    }
)
"""The types of values other than null."""
_SIMPLE: Final = BUILT_IN | {"Null", "Any"}
_MOST_NESTED: Final = 50


def name_type(value: Value) -> str:
    """The name of a value's type, as FEEL has it."""
    return _BY_PYTHON.get(type(value)) or name_temporal(value) or type(value).__name__


# --- reading ---


def parse_type(lexer: Lexer, depth: int = 0) -> Type:
    """The type that stands next. Raises FeelSyntaxError."""
    token = lexer.peek()
    if depth > _MOST_NESTED:
        raise lexer.error(token.at, f"types at most {_MOST_NESTED} deep", "they are deeper")
    found = _HYPHENED.match(lexer.text, token.at)
    if found is not None:
        lexer.move_to(found.end())
        return syntax.NamedType(_ALIASES[found.group()])
    if token.kind is Kind.KEYWORD and token.text in ("function", "null"):
        name = lexer.next().text
    elif token.kind is Kind.NAME:
        name = lexer.next().text
        while lexer.peek().text == ".":
            lexer.next()
            name += f".{lexer.read_property().text}"
    else:
        raise lexer.error(token.at, "a type", describe(token))
    name = _ALIASES.get(name, name)
    if lexer.peek().text != "<" or name not in _GENERIC:
        return syntax.NamedType(name)
    lexer.next()
    return _GENERIC[name](lexer, depth + 1)


def _close(lexer: Lexer) -> None:
    token = lexer.peek()
    if token.text != ">":
        raise lexer.error(token.at, "'>'", describe(token))
    lexer.next()


def _parse_list(lexer: Lexer, depth: int) -> Type:
    item = parse_type(lexer, depth)
    _close(lexer)
    return syntax.ListType(item)


def _parse_range(lexer: Lexer, depth: int) -> Type:
    end = parse_type(lexer, depth)
    _close(lexer)
    return syntax.RangeType(end)


def _parse_context(lexer: Lexer, depth: int) -> Type:
    entries: list[tuple[str, Type]] = []
    while lexer.peek().text != ">":
        if entries:
            _expect(lexer, ",")
        key = lexer.read_key()
        if key is None:
            raise lexer.error(lexer.peek().at, "a key with ':' behind it", describe(lexer.peek()))
        entries.append((key.text, parse_type(lexer, depth)))
    _close(lexer)
    return syntax.ContextType(tuple(entries))


def _parse_function(lexer: Lexer, depth: int) -> Type:
    parameters: list[Type] = []
    while lexer.peek().text != ">":
        if parameters:
            _expect(lexer, ",")
        parameters.append(parse_type(lexer, depth))
    _close(lexer)
    _expect(lexer, "->")
    return syntax.FunctionType(tuple(parameters), parse_type(lexer, depth))


def _expect(lexer: Lexer, sign: str) -> None:
    token = lexer.peek()
    if token.text != sign:
        raise lexer.error(token.at, repr(sign), describe(token))
    lexer.next()


_GENERIC: Final[Mapping[str, Callable[[Lexer, int], Type]]] = {
    "list": _parse_list,
    "range": _parse_range,
    "context": _parse_context,
    "function": _parse_function,
}


# --- belonging ---


def is_instance(value: Value, wanted: Type, types: Types | None = None, run: Run | None = None) -> bool | None:
    """Whether a value belongs to a type; None if nobody knows the type. Null belongs to its own type alone.

    DMN 10.3.2.9.3: null conforms to every type inside of lists and contexts. With a run, each item is a step of it.
    """
    match wanted:
        case syntax.NamedType(name):
            if types is not None and name in types:
                return is_instance(value, types[name], types, run)
            if name not in _SIMPLE:
                return None
            return value is not None if name == "Any" else name_type(value) == name
        case syntax.ListType(item):
            return type(value) is list and _are_members([(one, item) for one in value], types, run)
        case syntax.RangeType(end):
            return type(value) is Range and _are_members([(value.start, end), (value.end, end)], types, run)
        case syntax.ContextType(entries):
            if type(value) is not dict or not all(key in value for key, _ in entries):
                return False
            return _are_members([(value[key], kind) for key, kind in entries], types, run)
        case syntax.FunctionType(parameters, _):
            if type(value) is not Function or len(value.parameters) != len(parameters):
                return False
            # It has to take whatever the type says that it takes. What it gives, nobody knows before.
            return all(
                own is None or conforms(given, own, types) for given, own in zip(parameters, value.types, strict=False)
            )


def _are_members(pairs: Sequence[tuple[Value, Type]], types: Types | None, run: Run | None) -> bool | None:
    """Whether each value is null or belongs to its type."""
    if run is not None:
        run.spend(len(pairs))
    result: bool | None = True
    for value, wanted in pairs:
        answer = value is None or is_instance(value, wanted, types, run)
        if answer is False:
            return False
        if answer is None:
            result = None
    return result


def conforms(one: Type, other: Type, types: Types | None = None) -> bool:
    """DMN 10.3.2.9.2: whether all values of one type belong to another."""
    one, other = _unfold(one, types), _unfold(other, types)
    if other in (one, _ANY):
        return True
    match one, other:
        case (syntax.ListType(mine), syntax.ListType(its)) | (syntax.RangeType(mine), syntax.RangeType(its)):
            return conforms(mine, its, types)
        case syntax.ContextType(mine), syntax.ContextType(its):
            entries = dict(mine)
            return all(key in entries and conforms(entries[key], kind, types) for key, kind in its)
        case syntax.FunctionType(mine, gives), syntax.FunctionType(its, wanted):
            takes = len(mine) == len(its) and all(conforms(given, own, types) for own, given in zip(mine, its, strict=True))
            return takes and conforms(gives, wanted, types)
    return one == syntax.NamedType("Null")


def _unfold(one: Type, types: Types | None) -> Type:
    """A type that somebody else defines, as it is defined; a list of anything as a list of Any."""
    for _ in range(_MOST_NAMES):
        if not isinstance(one, syntax.NamedType) or types is None or one.name not in types:
            break
        one = types[one.name]
    return _WHOLE.get(one.name, one) if isinstance(one, syntax.NamedType) else one


_ANY: Final = syntax.NamedType("Any")
_MOST_NAMES: Final = 100
"""Types that are only other names for each other are followed so far: they may name themselves."""
_WHOLE: Final[Mapping[str, Type]] = {
    "list": syntax.ListType(_ANY),
    "range": syntax.RangeType(_ANY),
    "context": syntax.ContextType(()),
}


# --- conversions that happen by themselves ---

MISMATCH: Final = object()
"""No conversion leads to the wanted type."""

ACCEPTS: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset({name}) for name in _SIMPLE - {"Any"}},
    "duration": frozenset({"days and time duration", "years and months duration"}),
    "temporal": frozenset({"date", "time", "date and time"}),
}
"""The types of values that a parameter's type takes as they are."""


_AS_IT_IS: Final[Mapping[str, type]] = {
    "number": Decimal,
    "string": str,
    "boolean": bool,
    "list": list,
    "context": dict,
}
"""The usual case: one Python type."""


def convert(value: Value, wanted: str) -> Value:
    """A value as a parameter of a built-in function takes it, or MISMATCH.

    DMN 10.3.2.9.4: from and to a list of one, and from a date to a date and time.
    """
    if type(value) is _AS_IT_IS.get(wanted):
        return value
    if value is None:
        return None if wanted.endswith("?") or wanted == "any" else MISMATCH
    name = wanted.removesuffix("?")
    if name == "any":
        return value
    accepted = ACCEPTS[name]
    kind = name_type(value)
    if kind in accepted:
        return value
    if name == "list":
        return [value]
    if kind == "list" and len(value) == 1:
        only = value[0]
        return only if name_type(only) in accepted else MISMATCH
    return start_day(value) if kind == "date" and "date and time" in accepted else MISMATCH
