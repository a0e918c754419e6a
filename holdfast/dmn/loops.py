"""Boxes that ask again and again, `for`, `some`, `every` and filters, and the conditional (DMN 1.4).

Each turn of a loop is a step, and what it copies counts too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from holdfast.dmn.texts import Context
from holdfast.feel.iterations import list_items
from holdfast.feel.running import Fail, Run
from holdfast.feel.types import name_type
from holdfast.feel.values import Value

Evaluate: TypeAlias = Callable[[Run, Context], Value]
"""What a box becomes: its value, for the variables that it sees."""

_BYTES: Final = 112
"""Of a result, and its place in a list."""
COPIED_IN_ONE_STEP: Final = 20
"""Variables that are copied for one step of a run."""


def make_for(variable: str, source: Evaluate, body: Evaluate, *, looks_back: bool) -> Evaluate:
    """A list of what `body` is for each item. `looks_back`: it may use `partial`, the results so far."""

    def loop(run: Run, context: Context) -> Value:
        results: list[Value] = []
        for item in list_items(run, source(run, context)):
            inner = _add(run, context, variable, item)
            if looks_back:
                run.spend(len(results))
                inner["partial"] = results[:]
            run.spend(0, _BYTES)
            results.append(body(run, inner))
        return results

    return _make_failing(loop)


def make_quantified(variable: str, source: Evaluate, condition: Evaluate, *, is_every: bool) -> Evaluate:
    """The three-valued `and`, or `or`, of `condition` for all items, up to the one that settles it.

    DMN 1.5, 7.3.22 and 7.3.23: `satisfies` is a boolean. Null is the third of the three values, as in FEEL; anything else,
    where it is come upon, leaves no answer for the whole.
    """

    def quantified(run: Run, context: Context) -> Value:
        result: bool | None = is_every
        for item in list_items(run, source(run, context)):
            value = _check_boolean(condition(run, _add(run, context, variable, item)), "satisfies")
            if value is (not is_every):
                return value
            if value is None:
                result = None
        return result

    return _make_failing(quantified)


def make_filter(source: Evaluate, match: Evaluate) -> Evaluate:
    """The items that `match` is true for. It sees the entries of each item.

    DMN 1.5, 7.3.24: `match` is a boolean, so that a number is no position here, unlike in FEEL's brackets. Null leaves an
    item out; anything else that is no boolean leaves no answer for the whole.
    """

    def choose(run: Run, context: Context) -> Value:
        value = source(run, context)
        items = value if type(value) is list else [] if value is None else [value]
        chosen: list[Value] = []
        for item in items:
            inner = _add(run, context, "item", item)
            if type(item) is dict:
                inner.update(item)
            if _check_boolean(match(run, inner), "match"):
                chosen.append(item)
        return chosen

    return _make_failing(choose)


def make_conditional(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    """`then`, if `condition` is true, else `otherwise`.

    DMN 1.5, 7.3.20: `if` is a boolean. Null takes the other way, as behind FEEL's `if`; anything else leaves no answer.
    """

    def choose(run: Run, context: Context) -> Value:
        try:
            is_met = _check_boolean(condition(run, context), "if")
        except Fail as error:
            run.warn(str(error))
            return None
        return (then if is_met else otherwise)(run, context)

    return choose


def _check_boolean(value: Value, part: str) -> bool | None:
    if value is None or type(value) is bool:
        return value
    raise Fail(f"'{part}' is a {name_type(value)}, not a boolean")


def _add(run: Run, context: Context, name: str, value: Value) -> Context:
    run.spend(2 + len(context) // COPIED_IN_ONE_STEP)
    return {**context, name: value}


def _make_failing(evaluate: Evaluate) -> Evaluate:
    """What fails is null, with a warning."""

    def try_it(run: Run, context: Context) -> Value:
        try:
            return evaluate(run, context)
        except Fail as error:
            run.warn(str(error))
            return None

    return try_it
