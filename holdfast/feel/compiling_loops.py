"""Compiling filters, `for`, `some` and `every`: those that look inside of items leave the rest of them unread."""

from __future__ import annotations

from typing import Final

from holdfast.feel import iterations, syntax, unread
from holdfast.feel.compiling_tests import compile_test, is_test
from holdfast.feel.node_compiler import NodeCompiler
from holdfast.feel.operators import Evaluate
from holdfast.feel.scopes import Scope
from holdfast.feel.weights import Weight, weigh, weigh_iterator

_BOOLEAN: Final = (syntax.Comparison, syntax.Logic, syntax.Between, syntax.In, syntax.InstanceOf, syntax.Quantified)
"""Expressions that give no position."""


def compile_filter(compiler: NodeCompiler, node: syntax.Filter, scope: Scope) -> Evaluate:
    """`list[condition]`, `list[position]`, or `list[> 1]`, which tests each item."""
    inner = scope.nest_filter()
    assert inner.item is not None  # noqa: S101 - a filter's scope has one
    source = compiler.compile(node.source, scope)
    turn = weigh(node.condition)
    if is_test(node.condition):  # `[1, 2, 3][> 1]`
        test = compile_test(compiler, node.condition, inner, inner.item)
        return iterations.make_filter(source, test, inner.item, compiler.spot(node), is_boolean=True, turn=turn)
    condition = compiler.compile(node.condition, inner)
    is_boolean = isinstance(node.condition, _BOOLEAN)
    made = iterations.make_filter(source, condition, inner.item, compiler.spot(node), is_boolean=is_boolean, turn=turn)
    way = _find_way(node.source, scope)
    if way is None or not is_boolean or not unread.looks_inside(node.condition, "item", by_path=False):
        return made
    inner = scope.nest_filter()
    assert inner.item is not None  # noqa: S101 - a filter's scope has one
    scope.unit.unread.add(inner.item)
    return unread.make_filter(way, inner.item, compiler.compile(node.condition, inner), made, turn)


def compile_for(compiler: NodeCompiler, node: syntax.For, scope: Scope) -> Evaluate:
    """`for … return …`; `partial` is kept only if the body uses it."""
    inner = scope.nest()
    turn = weigh(node.body, holds_new=any(one.end is not None for one in node.iterators))
    sources = _compile_sources(compiler, node.iterators, inner, turn)
    partial = inner.declare("partial")
    functions = scope.unit.functions
    body = compiler.compile(node.body, inner)
    looks_back = partial in scope.unit.used
    copies = scope.unit.functions > functions
    made = iterations.make_for(sources, body, partial if looks_back else None, compiler.spot(node), copies=copies)
    (first, *more) = node.iterators
    way = None if more or first.end is not None or looks_back else _find_way(first.start, scope)
    if way is None or not unread.looks_inside(node.body, first.name, by_path=True):
        return made
    inner = scope.nest()
    place = inner.declare(first.name)
    scope.unit.unread.add(place)
    return unread.make_for(way, place, compiler.compile(node.body, inner), made, turn)


def compile_quantified(compiler: NodeCompiler, node: syntax.Quantified, scope: Scope) -> Evaluate:
    """`some … satisfies …`, or `every`: its iterators are visible in the condition alone."""
    inner = scope.nest()
    sources = _compile_sources(compiler, node.iterators, inner, weigh(node.condition))
    condition = compiler.compile(node.condition, inner)
    return iterations.make_quantified(sources, condition, compiler.spot(node), is_every=node.is_every)


def _compile_sources(
    compiler: NodeCompiler, iterators: tuple[syntax.Iterator, ...], scope: Scope, body: Weight
) -> list[iterations.Source]:
    turns = [*(weigh_iterator(one) for one in iterators[1:]), body]
    sources = []
    for one, turn in zip(iterators, turns, strict=True):
        start = compiler.compile(one.start, scope)
        end = None if one.end is None else compiler.compile(one.end, scope)
        sources.append(iterations.Source(scope.declare(one.name), start, end, turn))
    return sources


def _find_way(node: syntax.Node, scope: Scope) -> list[str] | None:
    """Where in the context a loop finds its list, if that is certain."""
    way = unread.find_source(node)
    if way is None or scope.is_in_filter or scope.find(way[0]) != ([], None):
        return None
    return way
