"""Types of a model: what belongs to them, and which values become others on their way into them.

DMN 7.3.3 for item definitions, 10.3.2.9 for conformance and conversions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.dmn.texts import Tests
from holdfast.feel import syntax
from holdfast.feel.running import Run
from holdfast.feel.temporal.parsing import parse_temporal
from holdfast.feel.types import MISMATCH, convert, name_type
from holdfast.feel.values import Function, Value

TEMPORAL: Final = frozenset({"date", "time", "date and time", "days and time duration", "years and months duration"})


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A type that FEEL itself has, by its name: `number`, `date and time`, `Any`."""

    name: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose items all belong to a type."""

    item: Type


@dataclass(frozen=True, slots=True)
class Structure:
    """A context with at least these entries."""

    name: str
    components: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Restricted:
    """The values of a type that meet tests, which a person reads as `text`."""

    of: Type
    tests: Tests
    text: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A type of the model by its name, so that structures may hold values of their own type."""

    name: str
    types: Mapping[str, Type]

    def find(self) -> Type:
        """The type that has the name, once all types of the model are made."""
        return self.types[self.name]


@dataclass(frozen=True, slots=True)
class AnyFunction:
    """The type of all functions, whatever they take and return."""


Type: TypeAlias = BuiltIn | ListOf | Structure | Restricted | Reference | AnyFunction

ANY: Final = BuiltIn("Any")


def convert_to(run: Run, value: Value, wanted: Type, what: str) -> Value:
    """The value as one of that type; null, with a warning that names `what`, if it cannot be one (DMN 10.3.2.9.4)."""
    if value is None or wanted is ANY:
        return value
    converted, fault = _try_to_convert(run, value, wanted)
    if fault is not None:
        run.warn(f"{what} is null, because its value {fault}")
        return None
    return converted


def convert_if_possible(run: Run, value: Value, wanted: Type) -> Value:
    """The value as one of that type, or as it is, if it cannot be one."""
    if value is None or wanted is ANY:
        return value
    converted, fault = _try_to_convert(run, value, wanted)
    return converted if fault is None else value


def _try_to_convert(run: Run, value: Value, wanted: Type) -> tuple[Value, str | None]:
    """The value as one of that type, or what is wrong with it."""
    fault = find_fault(run, value, wanted)
    if fault is None:
        return value, None
    if type(value) is list:
        if len(value) == 1 and find_fault(run, value[0], wanted) is None:
            return value[0], None
    elif is_list(wanted):
        if find_fault(run, [value], wanted) is None:
            return [value], None
    elif _strip(wanted) == BuiltIn("date and time"):
        converted = convert(value, "date and time")
        if converted is not MISMATCH and find_fault(run, converted, wanted) is None:
            return converted, None
    return value, fault


def find_fault(run: Run, value: Value, wanted: Type) -> str | None:
    """Why a value does not belong to a type, to be read behind "its value"; None if it does. Null belongs to every type."""
    if value is None:
        return None
    match wanted:
        case BuiltIn(name):
            if name in ("Any", name_type(value)):
                return None
            return f"is a {name_type(value)}, not a {name}"
        case ListOf(item):
            return _find_fault_in_list(run, value, item)
        case Structure():
            return _find_fault_in_structure(run, value, wanted)
        case Restricted(of, tests, text):
            fault = find_fault(run, value, of)
            if fault is None and not tests.test(run, value, {}):
                return f"is none of those allowed: {text}"
            return fault
        case Reference():
            return find_fault(run, value, wanted.find())
        case AnyFunction():
            return None if type(value) is Function else f"is a {name_type(value)}, not a function"


def _find_fault_in_list(run: Run, value: Value, item: Type) -> str | None:
    if type(value) is not list:
        return f"is a {name_type(value)}, not a list"
    run.spend(len(value))
    for number, one in enumerate(value, 1):
        fault = find_fault(run, one, item)
        if fault is not None:
            return f"has an item {number} that {fault}"
    return None


def _find_fault_in_structure(run: Run, value: Value, wanted: Structure) -> str | None:
    if type(value) is not dict:
        return f"is a {name_type(value)}, not a {wanted.name}"
    run.spend(len(wanted.components))
    for name, kind in wanted.components:
        if name not in value:
            return f"has no component {name!r}"
        fault = find_fault(run, value[name], kind)
        if fault is not None:
            return f"has a component {name!r} that {fault}"
    return None


def _strip(wanted: Type) -> Type:
    """The type itself, whatever it is called and however it is restricted."""
    while isinstance(wanted, Reference | Restricted):
        wanted = wanted.find() if isinstance(wanted, Reference) else wanted.of
    return wanted


def is_list(wanted: Type) -> bool:
    """Whether only lists belong to it."""
    stripped = _strip(wanted)
    return isinstance(stripped, ListOf) or stripped == BuiltIn("list")


def is_function(wanted: Type) -> bool:
    """Whether only functions belong to it."""
    return isinstance(_strip(wanted), AnyFunction) or _strip(wanted) == BuiltIn("function")


def find_values(wanted: Type) -> Tests | None:
    """The tests that restrict a type, if it is restricted."""
    while isinstance(wanted, Reference):
        wanted = wanted.find()
    return wanted.tests if isinstance(wanted, Restricted) else None


# --- what comes from outside ---


def accept(run: Run, value: Value, wanted: Type, what: str) -> Value:
    """A value from outside, which may be JSON.

    Texts become dates and durations where the type says so; components that are missing become null, with a warning.
    """
    stripped = _strip(wanted)
    match stripped:
        case BuiltIn(name):
            if type(value) is str and name in TEMPORAL:
                parsed = parse_temporal(value)
                return value if parsed is None else parsed
        case ListOf(item):
            if type(value) is list:
                run.spend(len(value))
                return [accept(run, one, item, f"item {number} of {what}") for number, one in enumerate(value, 1)]
        case Structure(_, components):
            if type(value) is dict:
                return _accept_components(run, value, components, what)
        case _:
            pass
    return value


def _accept_components(run: Run, value: dict[str, Value], components: tuple[tuple[str, Type], ...], what: str) -> Value:
    run.spend(len(components))
    accepted = dict(value)
    for name, kind in components:
        if name in value:
            accepted[name] = accept(run, value[name], kind, f"{name} of {what}")
        else:
            run.warn(f"{name} of {what} is null, because it was not given")
            accepted[name] = None
    return accepted


# --- for `instance of` ---


def to_syntax(wanted: Type) -> syntax.Type:
    """The type as expressions know it. What restricts its values is not part of that."""
    match wanted:
        case BuiltIn(name) | Reference(name):
            return syntax.NamedType(name)
        case ListOf(item):
            return syntax.ListType(to_syntax(item))
        case Structure(_, components):
            return syntax.ContextType(tuple((name, to_syntax(kind)) for name, kind in components))
        case Restricted(of):
            return to_syntax(of)
        case AnyFunction():
            return syntax.NamedType("function")
