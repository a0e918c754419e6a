"""Calling functions: which form of a built-in one is meant, how arguments find parameters, what a definition makes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from holdfast.core.safe_texts import count_noun
from holdfast.errors import FeelLimitExceeded
from holdfast.feel.comparing import is_in_range
from holdfast.feel.functions.signatures import Form
from holdfast.feel.operators import Evaluate
from holdfast.feel.paths import MISSING, take_in
from holdfast.feel.python_values import is_function
from holdfast.feel.running import DEEPEST, Fail, Run
from holdfast.feel.scopes import CONTEXT, RUN, Frame
from holdfast.feel.spots import Spot
from holdfast.feel.syntax import NamedType, Type
from holdfast.feel.types import MISMATCH, Types, convert, is_instance, name_type
from holdfast.feel.values import Function, Range, Value
from holdfast.feel.weights import Weight

_LEFT_OUT: Final = object()
_SHOWN_NAMES: Final = 10
_SHOWN_CHARACTERS: Final = 80
_STEPS_OF_CALL: Final = 3
"""Of a function that an expression defines, beside those of its body."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call, as closures: by position, or by the names of parameters."""

    positional: Sequence[Evaluate]
    named: Sequence[tuple[str, Evaluate]]


# --- built-in functions ---


def call_built_in(run: Run, name: str, forms: Sequence[Form], arguments: Sequence[Value], spot: Spot | None = None) -> Value:
    """Call the first form that the arguments fit. Null, with a warning, if none does or it fails."""
    return _call_first(run, name, [(form, arguments) for form in forms], spot)


def _call_first(run: Run, name: str, calls: Sequence[tuple[Form, Sequence[Value]]], spot: Spot | None) -> Value:
    run.calling = spot
    reason = ""
    for form, arguments in calls:
        found = _fit(form, arguments)
        if isinstance(found, str):
            reason = reason or found
            continue
        try:
            return form.call(run, *found)
        except Fail as error:
            run.warn(f"{name}(): {error}", spot)
            return None
    run.warn(f"{name}(): {reason}", spot)
    return None


def _fit(form: Form, arguments: Sequence[Value]) -> Sequence[Value] | str:
    """The arguments as a form takes them, or why it does not."""
    parameters = form.parameters
    is_variadic = form.is_variadic and len(arguments) > 0
    if is_variadic:
        arguments = _spread(form, arguments)
        if form.takes_anything:
            return arguments
        last = parameters[-1]
        parameters = (*parameters, *(last for _ in range(len(arguments) - len(parameters))))
    count = len(arguments)
    if not form.required <= count <= len(parameters) and not (is_variadic and count == 0):
        wanted = str(form.required) if form.required == len(parameters) else f"{form.required} to {len(parameters)}"
        return f"it takes {wanted} argument{'' if wanted == '1' else 's'}, not {count}"
    fitting = []
    for parameter, argument in zip(parameters, arguments, strict=False):
        value = convert(argument, parameter.type)
        if value is MISMATCH:
            return f"its {parameter.name} is a {parameter.type.removesuffix('?')}, not a {name_type(argument)}"
        fitting.append(value)
    return fitting


def _spread(form: Form, arguments: Sequence[Value]) -> Sequence[Value]:
    """`sum([1, 2])` is `sum(1, 2)`: a single list stands for its items, unless lists are what is wanted."""
    is_list = len(arguments) == 1 and type(arguments[0]) is list
    return arguments[0] if is_list and len(form.parameters) == 1 and form.parameters[0].type != "list" else arguments


def order_named(forms: Sequence[Form], named: Mapping[str, Value]) -> list[tuple[Form, Sequence[Value]]]:
    """The forms that have parameters of these names, each with the arguments in its order.

    Of two with the same names, `before(point, range)` and `before(range, point)`, the one in the written order comes first.
    """
    found: list[tuple[bool, Form, Sequence[Value]]] = []
    for form in forms:
        names = _name_arguments(form, named)
        if not named.keys() <= set(names):
            continue
        arguments = [named.get(name, _LEFT_OUT) for name in names]
        while arguments and arguments[-1] is _LEFT_OUT:
            arguments.pop()
        if _LEFT_OUT not in arguments[: form.required] and len(arguments) >= form.required:
            is_as_written = [name for name in names if name in named] == list(named)
            found.append((not is_as_written, form, [None if one is _LEFT_OUT else one for one in arguments]))
    found.sort(key=lambda one: one[0])
    return [(form, arguments) for _, form, arguments in found]


def _name_arguments(form: Form, named: Mapping[str, Value]) -> list[str]:
    """The names of a form's parameters; of a variadic one, as many as there are numbered arguments: `c1`, `c2`."""
    names = [parameter.name for parameter in form.parameters]
    if form.is_variadic and f"{form.numbered}1" in named:
        count = len(named) - (len(names) - 1)
        names[-1:] = [f"{form.numbered}{number}" for number in range(1, count + 1)]
    return names


def call_built_in_by_name(
    run: Run, name: str, forms: Sequence[Form], named: Mapping[str, Value], spot: Spot | None = None
) -> Value:
    """Call the first form that has parameters of these names and that the arguments fit. Null, with a warning, if none."""
    calls = order_named(forms, named)
    if calls:
        return _call_first(run, name, calls, spot)
    known = " or ".join(dict.fromkeys(f"({', '.join(_show_parameters(form))})" for form in forms))
    run.warn(f"{name}(): its parameters are {known}, not ({_show_names(named)})", spot)
    return None


def _show_names(names: Collection[str]) -> str:
    """Names for a warning, the first of many."""
    shown = [name[:_SHOWN_CHARACTERS] for name in islice(names, _SHOWN_NAMES)]
    return ", ".join([*shown, "…"] if len(names) > _SHOWN_NAMES else shown)


def _show_parameters(form: Form) -> list[str]:
    names = [f"{one.name}{'' if at < form.required else '?'}" for at, one in enumerate(form.parameters)]
    return [*names[:-1], f"{form.numbered}1, {form.numbered}2, …"] if form.is_variadic else names


def make_built_in_call(name: str, forms: Sequence[Form], arguments: Arguments, spot: Spot) -> Evaluate:
    """A call of a built-in function by its name; the context may have a function of that name, which comes first."""
    positional, named = arguments.positional, arguments.named

    def call(frame: Frame) -> Value:
        run: Run = frame[RUN]
        own = frame[CONTEXT].get(name)
        if own is not None and is_function(own):
            own = take_in(run, own)
        if type(own) is Function:
            return call_function(run, own, [one(frame) for one in positional], _evaluate_named(named, frame), spot)
        if named:
            return call_built_in_by_name(run, name, forms, _evaluate_named(named, frame), spot)
        return call_built_in(run, name, forms, [one(frame) for one in positional], spot)

    return call


def as_function(name: str, forms: Sequence[Form]) -> Function:
    """A built-in function as a value."""
    names = tuple(parameter.name for parameter in forms[0].parameters)
    return Function(
        name,
        names,
        lambda run, arguments: call_built_in(run, name, forms, arguments, run.calling),
        call_by_name=lambda run, named: call_built_in_by_name(run, name, forms, named, run.calling),
    )


# --- functions as values ---


def _evaluate_named(named: Sequence[tuple[str, Evaluate]], frame: Frame) -> dict[str, Value]:
    return {key: one(frame) for key, one in named}


def make_call(function: Evaluate, arguments: Arguments, spot: Spot, otherwise: Evaluate | None = None) -> Evaluate:
    """A call of whatever the expression before the parenthesis gives; `otherwise`, if that is no function.

    A range is the test of being in it: `{is minor: < 18}.is minor(16)`.
    """
    positional, named = arguments.positional, arguments.named

    def call(frame: Frame) -> Value:
        run: Run = frame[RUN]
        value = function(frame)
        if type(value) is not Function:
            if otherwise is not None:
                return otherwise(frame)
            if value is MISSING:
                return None
            if type(value) is Range and len(positional) == 1:
                return is_in_range(positional[0](frame), value, run)
            run.warn("null cannot be called" if value is None else f"a {name_type(value)} cannot be called", spot)
            return None
        return call_function(run, value, [one(frame) for one in positional], _evaluate_named(named, frame), spot)

    return call


def call_function(
    run: Run, function: Function, arguments: Sequence[Value], named: Mapping[str, Value], spot: Spot | None = None
) -> Value:
    """Call a function. Null, with a warning, if the arguments do not fit or it fails. What is not named is null."""
    shown = function.name or "the function"
    if spot is not None:
        run.calling = spot
    if named and function.call_by_name is None:
        if not named.keys() <= set(function.parameters):
            run.warn(f"{shown}: its parameters are {_show_names(function.parameters)}, not {_show_names(named)}", spot)
            return None
        arguments = [named.get(name) for name in function.parameters]
    try:
        if named and function.call_by_name is not None:
            return function.call_by_name(run, named)
        return function.call(run, arguments)
    except Fail as error:
        run.warn(f"{shown}: {error}", spot)
        return None


def make_function(
    parameters: Sequence[tuple[str, int, Type | None]],
    body: Evaluate,
    types: Types | None,
    weight: Weight,
    *,
    keeps_frames: bool = False,
) -> Evaluate:
    """`function(a, b: number) body`: what it sees of its surroundings, it sees as they are when it is called.

    `weight` is what its body costs; with `keeps_frames`, functions that are made in it hold on to what they see.
    """
    names = tuple(name for name, _, _ in parameters)
    types_of_parameters = tuple(wanted for _, _, wanted in parameters)

    def define(surroundings: Frame) -> Function:
        def call(run: Run, arguments: Sequence[Value]) -> Value:
            if len(arguments) != len(names):
                raise Fail(f"it takes {count_noun(len(names), 'argument')}, not {len(arguments)}")
            places = len(surroundings)
            run.spend(_STEPS_OF_CALL + weight.steps + (places >> 5), weight.size + (8 * places if keeps_frames else 0))
            frame = surroundings[:]
            frame[RUN] = run
            for (name, place, wanted), argument in zip(parameters, arguments, strict=True):
                frame[place] = argument if wanted is None else _to_type(run, name, argument, wanted, types)
            return call_deeper(run, body, frame)

        return Function("", names, call, types_of_parameters, made_by=surroundings[RUN])

    return define


def call_deeper(run: Run, body: Evaluate, frame: Frame) -> Value:
    """Evaluate the body of a function, not too deep inside of others."""
    run.spend(1)
    run.depth += 1
    if run.depth > DEEPEST:
        raise FeelLimitExceeded(
            f"Expected functions to call each other at most {DEEPEST} deep, but they go deeper. Let the recursion end."
        )
    try:
        return body(frame)
    finally:
        run.depth -= 1


def _to_type(run: Run, name: str, value: Value, wanted: Type, types: Types | None) -> Value:
    """An argument as a typed parameter takes it. Raises Fail."""
    if value is None or is_instance(value, wanted, types, run) is not False:
        return value
    if isinstance(wanted, NamedType):
        try:
            converted = convert(value, wanted.name)
        except KeyError:
            converted = MISMATCH
        if converted is not MISMATCH:
            return converted
    elif type(value) is list and len(value) == 1 and is_instance(value[0], wanted, types, run):
        return value[0]
    elif type(value) is not list and is_instance([value], wanted, types, run):
        return [value]
    raise Fail(f"its parameter {name} is of another type than a {name_type(value)}")
