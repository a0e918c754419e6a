"""Loops over lists of the context that are not taken in as a whole: of each item only the entries that are asked for.

Only for what is known to look inside of the items and nowhere else; all other loops see values as FEEL has them.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.feel import syntax
from holdfast.feel.json_values import to_feel
from holdfast.feel.operators import Evaluate
from holdfast.feel.paths import FINE, MISSING, find_inside, take_in
from holdfast.feel.python_values import from_int
from holdfast.feel.running import Run
from holdfast.feel.scopes import CONTEXT, RUN, Frame
from holdfast.feel.spots import Spot
from holdfast.feel.values import Value
from holdfast.feel.weights import Weight


def looks_inside(node: syntax.Node, item: str, *, by_path: bool) -> bool:
    """Whether an expression asks for nothing of a variable but its entries: as `item.entry` if that is the way, `by_path`.

    In a filter it is not: there, entries go by their names alone.
    """
    match node:
        case syntax.Name(name=name):
            return name != item
        case syntax.Path(source=syntax.Name(name=name)):
            return by_path or name != item
        case syntax.Arithmetic(left=left, right=right) | syntax.Comparison(left=left, right=right):
            return looks_inside(left, item, by_path=by_path) and looks_inside(right, item, by_path=by_path)
        case syntax.Logic(operands=operands):
            return all(looks_inside(one, item, by_path=by_path) for one in operands)
        case syntax.Negation(operand=operand):
            return looks_inside(operand, item, by_path=by_path)
    return isinstance(node, syntax.Literal)


# --- sources ---


def find_source(node: syntax.Node) -> list[str] | None:
    """The names on the way to a list, the first one from the context; None if it comes from elsewhere."""
    names: list[str] = []
    while isinstance(node, syntax.Path):
        names.append(node.name)
        node = node.source
    return [node.name, *reversed(names)] if isinstance(node, syntax.Name) else None


def get_items(frame: Frame, way: Sequence[str]) -> list[object] | None:
    """The list there, as Python has it; None if there is something else, or nothing."""
    value = frame[CONTEXT].get(way[0])
    for name in way[1:]:
        if type(value) is not dict:
            return None
        value = value.get(name)
    return value if type(value) is list else None


# --- entries ---


def make_entry(place: int, name: str, spot: Spot, otherwise: Evaluate | None = None) -> Evaluate:
    """An entry of the item at a place; `otherwise`, if it has none of that name."""

    def entry(frame: Frame) -> Value:
        item = frame[place]
        if type(item) is dict:
            found = item.get(name, MISSING)
            kind = type(found)
            if kind is int:
                return from_int(found)
            if kind in FINE or (kind is str and found.isascii()):
                return found
            if found is not MISSING:
                return take_in(frame[RUN], found)
        return find_inside(frame[RUN], item, name, spot) if otherwise is None else otherwise(frame)

    return entry


# --- loops ---


def make_for(way: Sequence[str], place: int, body: Evaluate, otherwise: Evaluate, turn: Weight) -> Evaluate:
    """`for item in way return body`; `otherwise` does the same, for what is no list of the context."""

    def loop(frame: Frame) -> Value:
        items = get_items(frame, way)
        if items is None:
            return otherwise(frame)
        count = len(items)
        frame[RUN].spend(count + count * turn.steps, count * turn.size)
        results: list[Value] = []
        for item in items:
            frame[place] = item if type(item) is dict else to_feel(item)
            results.append(body(frame))
        return results

    return loop


def make_filter(way: Sequence[str], place: int, condition: Evaluate, otherwise: Evaluate, turn: Weight) -> Evaluate:
    """`way[condition]`; only the items that are chosen are taken in."""

    def choose(frame: Frame) -> Value:
        items = get_items(frame, way)
        if items is None:
            return otherwise(frame)
        run: Run = frame[RUN]
        count = len(items)
        run.spend(count + count * turn.steps, count * turn.size)
        chosen: list[Value] = []
        for item in items:
            frame[place] = item if type(item) is dict else to_feel(item)
            if condition(frame) is True:
                chosen.append(take_in(run, item))
        return chosen

    return choose
