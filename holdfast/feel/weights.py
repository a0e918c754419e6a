"""What one evaluation of a node costs, told before the first: loops and functions are charged for each of their turns.

A tenth of a step is about a tenth of a microsecond. The nodes of an expression count for the time that its closures take and
for the lists, contexts and functions that it makes; what depends on values (texts, items of lists, powers) is charged where
it is known, when it is evaluated. Bodies of loops, conditions of filters and bodies of functions are not part of what is
around them: they pay for themselves, turn by turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from holdfast.feel import syntax

_NODE: Final = 1
_CALL: Final = 20
_OPERATOR: Final = 2
_NUMBER: Final = 104
"""Bytes of a value that was just made, if it is a number."""
_FUNCTION: Final = 600
_MADE: Final = (syntax.Arithmetic, syntax.Negation, syntax.Invocation, syntax.If, syntax.Between, syntax.Filter)
"""What gives values that may be new, and stay where something holds them."""


class Weight(NamedTuple):
    """What each evaluation of a node costs: steps, and bytes that it may leave behind."""

    steps: int
    size: int


NOTHING: Final = Weight(0, 0)


def weigh(node: syntax.Node, *, holds_new: bool = False) -> Weight:
    """The weight of a body: of its nodes, and of its value. `holds_new`: it may hold a number that was made for it."""
    tenths, size = _add_up(node)
    is_held = holds_new and not isinstance(node, (syntax.Literal, *_MADE))
    return Weight(tenths // 10, size + _hold(node) + (_NUMBER if is_held else 0))


def weigh_iterator(iterator: syntax.Iterator) -> Weight:
    """The weight of what an iterator goes through, which is made anew in each turn of the iterator before it."""
    tenths, size = _add_up(iterator)
    return Weight(tenths // 10, size)


def _add_up(root: syntax.Node | syntax.Iterator) -> tuple[int, int]:
    tenths = size = 0
    waiting: list[object] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
            continue
        if not isinstance(node, syntax.Node | syntax.Iterator):
            continue
        tenths += _TENTHS.get(type(node), _OPERATOR)
        measure = _SIZES.get(type(node))
        if measure is not None:
            size += measure(node)
        own = _OWN.get(type(node), ())
        waiting.extend(getattr(node, name) for name in node.__dataclass_fields__ if name not in own)
    return tenths, size


def _hold(node: syntax.Node) -> int:
    """Bytes of a value that is kept in a list or a context: of its place, and of itself if it is new."""
    return 8 + (_NUMBER if isinstance(node, _MADE) else 0)


def _measure_list(node: syntax.ListLiteral) -> int:
    return 64 + sum(map(_hold, node.items))


def _measure_context(node: syntax.ContextLiteral) -> int:
    return 120 + sum(60 + _hold(value) for _, value in node.entries)


def _measure_function(_node: syntax.FunctionDefinition) -> int:
    return _FUNCTION


_TENTHS: Final[Mapping[type, int]] = {
    syntax.Literal: _NODE,
    syntax.Name: _NODE,
    syntax.Invocation: _CALL,
    syntax.FunctionDefinition: _CALL,
    syntax.For: _CALL,
    syntax.Quantified: _CALL,
    syntax.Filter: _CALL,
    syntax.ContextLiteral: 5,
    syntax.RangeLiteral: 10,
    syntax.In: 5,
    syntax.InstanceOf: 5,
}
_OWN: Final[Mapping[type, tuple[str, ...]]] = {
    syntax.For: ("body",),
    syntax.Quantified: ("condition",),
    syntax.Filter: ("condition",),
    syntax.FunctionDefinition: ("body",),
}
"""Parts that pay for themselves, each time that they are evaluated."""
_SIZES: Final[Mapping[type, Callable[[Any], int]]] = {
    syntax.ListLiteral: _measure_list,
    syntax.ContextLiteral: _measure_context,
    syntax.FunctionDefinition: _measure_function,
}
