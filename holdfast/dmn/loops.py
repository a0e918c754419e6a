"""Loops of boxes: `for`, `some`, `every` and filters (DMN 1.4). Each turn is a step, and what it copies counts too."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias

from holdfast.dmn.texts import Context
from holdfast.feel.iterations import list_items, take_at
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import Value

Evaluate: TypeAlias = Callable[[Run, Context], Value]
"""What a box becomes: its value, for the variables that it sees."""

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
            results.append(body(run, inner))
        return results

    return _make_failing(loop)


def make_quantified(variable: str, source: Evaluate, condition: Evaluate, *, is_every: bool) -> Evaluate:
    """The three-valued `and`, or `or`, of `condition` for all items."""

    def quantified(run: Run, context: Context) -> Value:
        result: bool | None = is_every
        for item in list_items(run, source(run, context)):
            value = condition(run, _add(run, context, variable, item))
            if value is (not is_every):
                return value
            if value is not is_every:
                result = None
        return result

    return _make_failing(quantified)


def make_filter(source: Evaluate, match: Evaluate) -> Evaluate:
    """The items that `match` is true for, or the one at the position that it gives. It sees the entries of each item."""

    def choose(run: Run, context: Context) -> Value:
        value = source(run, context)
        items = value if type(value) is list else [] if value is None else [value]
        chosen: list[Value] = []
        for item in items:
            inner = _add(run, context, "item", item)
            if type(item) is dict:
                inner.update(item)
            found = match(run, inner)
            if type(found) is Decimal:
                return take_at(run, items, found)
            if found is True:
                chosen.append(item)
        return chosen

    return choose


def _add(run: Run, context: Context, name: str, value: Value) -> Context:
    run.spend(1 + len(context) // COPIED_IN_ONE_STEP)
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
