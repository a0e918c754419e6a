"""Variables, and what is inside of them: entries of contexts, properties of dates, the same of each item of a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Final

from holdfast.feel.comparing import NOT_TEMPORAL
from holdfast.feel.json_values import to_feel
from holdfast.feel.mistakes import suggest
from holdfast.feel.operators import Evaluate
from holdfast.feel.running import Fail, Run
from holdfast.feel.scopes import CONTEXT, RUN, Frame
from holdfast.feel.spots import Spot
from holdfast.feel.temporal.properties import get_property
from holdfast.feel.types import name_type
from holdfast.feel.values import Function, Range, Value

MISSING: Final = object()
FINE: Final = frozenset({bool, type(None)})
"""Python types that need no look on their way in. ASCII needs none either; other texts may hold what is no character."""
_TAKEN_IN_ONCE: Final = frozenset({list, dict, FunctionType, BuiltinFunctionType, MethodType, partial})
"""What is large, and functions, which are equal to themselves alone."""
_RANGE_PROPERTIES: Final = {
    "start": "start",
    "end": "end",
    "start included": "start_included",
    "end included": "end_included",
}


# --- variables ---


def take_in(run: Run, value: object) -> Value:
    """A value of the context as FEEL has it. What is large is looked through once in an evaluation, functions too."""
    if type(value) not in _TAKEN_IN_ONCE:
        return to_feel(value)
    found = run.taken_in.get(id(value), MISSING)
    if found is MISSING:
        found = run.taken_in[id(value)] = to_feel(value)
    return found


def make_local(place: int) -> Evaluate:
    """A name that the expression itself gives a value to."""

    def local(frame: Frame) -> Value:
        return frame[place]

    return local


def make_variable(name: str, built_in: Function | None, spot: Spot) -> Evaluate:
    """A name from the context; else the built-in function of that name; else null."""

    def variable(frame: Frame) -> Value:
        value = frame[CONTEXT].get(name, MISSING)
        kind = type(value)
        if kind in FINE or (kind is str and value.isascii()):
            return value
        if value is not MISSING:
            return take_in(frame[RUN], value)
        if built_in is None:
            _warn_of_missing(frame, f"there is no variable '{name}'", name, (), spot)
        return built_in

    return variable


def make_function_variable(name: str, built_ins: Iterable[str], spot: Spot) -> Evaluate:
    """A name from the context, before the parenthesis of a call; MISSING, with a warning, if there is none."""

    def variable(frame: Frame) -> Value:
        value = frame[CONTEXT].get(name, MISSING)
        if value is MISSING:
            _warn_of_missing(frame, f"there is no function '{name}'", name, built_ins, spot)
            return MISSING
        return take_in(frame[RUN], value)

    return variable


def _warn_of_missing(frame: Frame, message: str, name: str, known: Iterable[str], spot: Spot) -> None:
    run: Run = frame[RUN]
    hint = suggest(name, chain(known, filter(_is_text, frame[CONTEXT]))) if run.may_hint() else ""
    run.warn(f"{message}{hint}", spot)


def _is_text(key: object) -> bool:
    return type(key) is str


def make_item_variable(name: str, items: Sequence[int], otherwise: Evaluate) -> Evaluate:
    """A name inside of filters: an entry of the item, the innermost first; `item` is the item itself."""
    if len(items) == 1 and name != "item":
        return _make_entry_variable(name, items[0], otherwise)

    def item_variable(frame: Frame) -> Value:
        for place in items:
            item = frame[place]
            if type(item) is dict and name in item:
                return item[name]
            if name == "item":
                return item
        return otherwise(frame)

    return item_variable


def _make_entry_variable(name: str, place: int, otherwise: Evaluate) -> Evaluate:
    """The usual case: one filter."""

    def entry_variable(frame: Frame) -> Value:
        item = frame[place]
        if type(item) is dict:
            found = item.get(name, MISSING)
            if found is not MISSING:
                return found
        return otherwise(frame)

    return entry_variable


# --- paths ---


def make_path(source: Evaluate, name: str, spot: Spot) -> Evaluate:
    """`source.name`, where the source is any expression; of a list, of each of its items."""

    def path(frame: Frame) -> Value:
        value = source(frame)
        if type(value) is dict:
            found = value.get(name, MISSING)
            if found is not MISSING:
                return found
        return find_inside(frame[RUN], value, name, spot)

    return path


def make_local_path(place: int, name: str, spot: Spot) -> Evaluate:
    """`x.name`, where x is a name of the expression itself."""

    def local_path(frame: Frame) -> Value:
        value = frame[place]
        if type(value) is dict:
            found = value.get(name, MISSING)
            if found is not MISSING:
                return found
        return find_inside(frame[RUN], value, name, spot)

    return local_path


def make_variable_path(root: str, names: Sequence[str], otherwise: Evaluate) -> Evaluate:
    """`root.a.b` from the context: only what stands at its end is looked at on its way in. `otherwise` does it in steps."""

    def variable_path(frame: Frame) -> Value:
        value = frame[CONTEXT].get(root, MISSING)
        for name in names:
            if type(value) is not dict:
                return otherwise(frame)
            value = value.get(name, MISSING)
        kind = type(value)
        if kind in FINE or (kind is str and value.isascii()):
            return value
        return otherwise(frame) if value is MISSING else take_in(frame[RUN], value)

    return variable_path


def find_inside(run: Run, value: Value, name: str, spot: Spot) -> Value:
    """What a value has under a name; null if nothing. DMN 10.3.2.5: of a list, a list of what each item has."""
    kind = type(value)
    if kind is list:
        run.spend(len(value), 112 * len(value))
        return [find_inside(run, item, name, spot) for item in value]
    if kind is dict:
        if name in value:
            return value[name]
        hint = suggest(name, value) if run.may_hint() else ""
        run.warn(f"the context has no entry '{name}'{hint}", spot)
        return None
    if kind is Range and name in _RANGE_PROPERTIES:
        return getattr(value, _RANGE_PROPERTIES[name])
    if value is None:
        run.warn(f"null has no entry '{name}'", spot)
        return None
    if kind in NOT_TEMPORAL:
        run.warn(f"a {name_type(value)} has no property '{name}'", spot)
        return None
    try:
        return get_property(value, name)
    except Fail as error:
        run.warn(str(error), spot)
    return None
