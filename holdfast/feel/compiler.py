"""From the tree to closures: everything that can be decided once is decided here, before the first evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from holdfast.feel import iterations, membership, operators, paths, syntax, unread
from holdfast.feel.functions.table import BUILT_INS
from holdfast.feel.invocations import as_function, make_built_in_call, make_call, make_function
from holdfast.feel.operators import Evaluate
from holdfast.feel.running import Fail
from holdfast.feel.scopes import RUN, Frame, Scope
from holdfast.feel.types import Types, is_instance
from holdfast.feel.values import Function, Value

Compile: TypeAlias = Callable[[syntax.Node, Scope], Evaluate]

_FUNCTIONS: Final[Mapping[str, Function]] = {name: as_function(name, forms) for name, forms in BUILT_INS.items()}
_BOOLEAN: Final = (syntax.Comparison, syntax.Logic, syntax.Between, syntax.In, syntax.InstanceOf, syntax.Quantified)
"""Expressions that give no position."""


class Compiler:
    """Compiles what belongs together; `types` are those that somebody else defines."""

    def __init__(self, types: Types | None = None) -> None:
        self._types = types

    def compile(self, node: syntax.Node, scope: Scope) -> Evaluate:
        """The closure of a node."""
        return _COMPILED[type(node)](self, node, scope)

    # --- values ---

    def _literal(self, node: syntax.Literal, _scope: Scope) -> Evaluate:
        value = node.value
        return lambda _frame: value

    def _bad_literal(self, node: syntax.BadLiteral, _scope: Scope) -> Evaluate:
        text = node.text

        def bad_literal(frame: Frame) -> None:
            frame[RUN].warn(f"'{text}' is no date, time, date and time or duration")

        return bad_literal

    def _name(self, node: syntax.Name, scope: Scope) -> Evaluate:
        items, place = scope.find(node.name)
        if place is not None:
            outer = paths.make_local(place)
        else:
            built_in = _FUNCTIONS.get(node.name)
            if built_in is None:
                scope.unit.names[node.name] = None
            outer = paths.make_variable(node.name, built_in)
        if items and items[0] in scope.unit.unread:
            return unread.make_entry(items[0], node.name, outer)
        return paths.make_item_variable(node.name, items, outer) if items else outer

    def _list(self, node: syntax.ListLiteral, scope: Scope) -> Evaluate:
        items = [self.compile(item, scope) for item in node.items]
        return lambda frame: [item(frame) for item in items]

    def _context(self, node: syntax.ContextLiteral, scope: Scope) -> Evaluate:
        inner = scope.nest()
        entries: list[tuple[str, int, Evaluate]] = []
        for key, value in node.entries:
            if isinstance(value, syntax.FunctionDefinition):  # which may call itself
                place = inner.declare(key)
                entries.append((key, place, self.compile(value, inner)))
            else:
                evaluate = self.compile(value, inner)
                entries.append((key, inner.declare(key), evaluate))

        def context(frame: Frame) -> dict[str, Value]:
            made = {}
            for key, place, evaluate in entries:
                frame[place] = made[key] = evaluate(frame)
            return made

        return context

    def _range(self, node: syntax.RangeLiteral, scope: Scope) -> Evaluate:
        assert node.start is not None and node.end is not None  # noqa: S101, PT018 - the parser gives both
        start, end = self.compile(node.start, scope), self.compile(node.end, scope)
        start_included, end_included = node.start_included, node.end_included

        def make(frame: Frame) -> Value:
            try:
                return membership.make_range(start(frame), end(frame), start_included, end_included)
            except Fail as error:
                frame[RUN].warn(str(error))
                return None

        return make

    def _comparison_test(self, node: syntax.ComparisonTest, scope: Scope) -> Evaluate:
        """Outside of tests, `< 5` is the range of all that is less."""
        operand, operator = self.compile(node.operand, scope), node.operator
        return lambda frame: membership.range_of(operator, operand(frame))

    # --- inside of values ---

    def _path(self, node: syntax.Path, scope: Scope) -> Evaluate:
        source = node.source
        if isinstance(source, syntax.Name):
            items, place = scope.find(source.name)
            if not items and place is not None:
                make = unread.make_entry if place in scope.unit.unread else paths.make_local_path
                return make(place, node.name)
        steps = paths.make_path(self.compile(source, scope), node.name)
        names = [node.name]
        while isinstance(source, syntax.Path):
            names.append(source.name)
            source = source.source
        if isinstance(source, syntax.Name) and scope.find(source.name) == ([], None):
            return paths.make_variable_path(source.name, names[::-1], steps)
        return steps

    def _filter(self, node: syntax.Filter, scope: Scope) -> Evaluate:
        inner = scope.nest_filter()
        assert inner.item is not None  # noqa: S101 - a filter's scope has one
        source = self.compile(node.source, scope)
        if _is_test(node.condition):  # `[1, 2, 3][> 1]`
            return iterations.make_filter(
                source, self.compile_test(node.condition, inner, inner.item), inner.item, is_boolean=True
            )
        condition = self.compile(node.condition, inner)
        is_boolean = isinstance(node.condition, _BOOLEAN)
        made = iterations.make_filter(source, condition, inner.item, is_boolean=is_boolean)
        way = self._find_way(node.source, scope)
        if way is None or not is_boolean or not unread.looks_inside(node.condition, "item", by_path=False):
            return made
        inner = scope.nest_filter()
        assert inner.item is not None  # noqa: S101 - a filter's scope has one
        scope.unit.unread.add(inner.item)
        return unread.make_filter(way, inner.item, self.compile(node.condition, inner), made)

    # --- functions ---

    def _invocation(self, node: syntax.Invocation, scope: Scope) -> Evaluate:
        function = node.function
        if isinstance(function, syntax.Name) and scope.find(function.name)[1] is None:
            if function.name == "is defined" and len(node.positional) == 1:
                return self._is_defined(node.positional[0], scope)
            if function.name in BUILT_INS:
                return make_built_in_call(function.name, BUILT_INS[function.name], *self._arguments(node, scope))
        arguments = self._arguments(node, scope)
        if isinstance(function, syntax.Name) and function.name in BUILT_INS:  # a variable, and a function too
            otherwise = make_built_in_call(function.name, BUILT_INS[function.name], *arguments)
            return make_call(self.compile(function, scope), *arguments, otherwise)
        return make_call(self.compile(function, scope), *arguments)

    def _arguments(self, node: syntax.Invocation, scope: Scope) -> tuple[list[Evaluate], list[tuple[str, Evaluate]]]:
        positional = [self.compile(one, scope) for one in node.positional]
        return positional, [(name, self.compile(one, scope)) for name, one in node.named]

    def _is_defined(self, node: syntax.Node, scope: Scope) -> Evaluate:
        """Camunda: whether there is a value, other than null. A function of the language is none that was defined."""
        if not isinstance(node, syntax.Name) or node.name not in BUILT_INS:
            return membership.make_is_defined(self.compile(node, scope))
        items, place = scope.find(node.name)
        scope.unit.names.setdefault(node.name)
        value = paths.make_variable(node.name, None) if place is None else paths.make_local(place)
        return membership.make_is_defined(paths.make_item_variable(node.name, items, value) if items else value)

    def _function(self, node: syntax.FunctionDefinition, scope: Scope) -> Evaluate:
        inner = scope.nest()
        scope.unit.functions += 1
        parameters = [(name, inner.declare(name), wanted) for name, wanted in node.parameters]
        if node.is_external:
            return make_function(parameters, _refuse_external, self._types)
        return make_function(parameters, self.compile(node.body, inner), self._types)

    # --- operators ---

    def _arithmetic(self, node: syntax.Arithmetic, scope: Scope) -> Evaluate:
        left, right = self.compile(node.left, scope), self.compile(node.right, scope)
        return operators.make_arithmetic(node.operator, left, right)

    def _negation(self, node: syntax.Negation, scope: Scope) -> Evaluate:
        return operators.make_negation(self.compile(node.operand, scope))

    def _comparison(self, node: syntax.Comparison, scope: Scope) -> Evaluate:
        left, right = self.compile(node.left, scope), self.compile(node.right, scope)
        return operators.make_comparison(node.operator, left, right)

    def _between(self, node: syntax.Between, scope: Scope) -> Evaluate:
        parts = (self.compile(one, scope) for one in (node.operand, node.low, node.high))
        return operators.make_between(*parts)

    def _logic(self, node: syntax.Logic, scope: Scope) -> Evaluate:
        make = operators.make_conjunction if node.operator == "and" else operators.make_disjunction
        return make([self.compile(one, scope) for one in node.operands])

    def _if(self, node: syntax.If, scope: Scope) -> Evaluate:
        parts = (self.compile(one, scope) for one in (node.condition, node.then, node.otherwise))
        return operators.make_condition(*parts)

    def _instance_of(self, node: syntax.InstanceOf, scope: Scope) -> Evaluate:
        operand, wanted, types = self.compile(node.operand, scope), node.type, self._types

        def instance_of(frame: Frame) -> bool | None:
            answer = is_instance(operand(frame), wanted, types, frame[RUN])
            if answer is None:
                frame[RUN].warn("nobody knows the type behind instance of")
            return answer

        return instance_of

    # --- loops ---

    def _sources(self, iterators: tuple[syntax.Iterator, ...], scope: Scope) -> list[iterations.Source]:
        sources = []
        for one in iterators:
            start = self.compile(one.start, scope)
            end = None if one.end is None else self.compile(one.end, scope)
            sources.append(iterations.Source(scope.declare(one.name), start, end))
        return sources

    def _for(self, node: syntax.For, scope: Scope) -> Evaluate:
        inner = scope.nest()
        sources = self._sources(node.iterators, inner)
        partial = inner.declare("partial")
        functions = scope.unit.functions
        body = self.compile(node.body, inner)
        looks_back = partial in scope.unit.used
        copies = scope.unit.functions > functions
        made = iterations.make_for(sources, body, partial if looks_back else None, copies=copies)
        (first, *more) = node.iterators
        way = None if more or first.end is not None or looks_back else self._find_way(first.start, scope)
        if way is None or not unread.looks_inside(node.body, first.name, by_path=True):
            return made
        inner = scope.nest()
        place = inner.declare(first.name)
        scope.unit.unread.add(place)
        return unread.make_for(way, place, self.compile(node.body, inner), made)

    def _find_way(self, node: syntax.Node, scope: Scope) -> list[str] | None:
        """Where in the context a loop finds its list, if that is certain."""
        way = unread.find_source(node)
        if way is None or scope.is_in_filter or scope.find(way[0]) != ([], None):
            return None
        return way

    def _quantified(self, node: syntax.Quantified, scope: Scope) -> Evaluate:
        inner = scope.nest()
        sources = self._sources(node.iterators, inner)
        return iterations.make_quantified(sources, self.compile(node.condition, inner), is_every=node.is_every)

    # --- tests ---

    def _in(self, node: syntax.In, scope: Scope) -> Evaluate:
        operand = self.compile(node.operand, scope)
        inner = scope.nest()
        place = inner.declare("?")
        return membership.make_in(operand, [self.compile_test(one, inner, place) for one in node.tests], place)

    def _unary_tests(self, node: syntax.UnaryTests, scope: Scope) -> Evaluate:
        place = scope.locals["?"]
        tests = [self.compile_test(one, scope, place, is_cell=True) for one in node.tests]
        return membership.make_tests(tests, is_negated=node.is_negated)

    def compile_test(self, node: syntax.Node, scope: Scope, place: int, *, is_cell: bool = False) -> Evaluate:
        """A test of what stands at a place, which is `?`."""
        if isinstance(node, syntax.ComparisonTest):
            return membership.make_comparison_test(node.operator, self.compile(node.operand, scope), place)
        if isinstance(node, syntax.Logic) and _is_test(node):
            return self._join_tests(node, scope, place)
        used = scope.unit.used
        before = place in used
        used.discard(place)
        value = self.compile(node, scope)
        asks = place in used
        if before:
            used.add(place)
        if is_cell:
            return membership.make_cell_test(value, place, asks=asks, is_literal=isinstance(node, syntax.Literal))
        return membership.make_value_test(value, place, asks=asks)

    def _join_tests(self, node: syntax.Logic, scope: Scope, place: int) -> Evaluate:
        """Camunda: `> 3 and < 10`, each of which is a test of `?`. Elsewhere these are ranges, and no logic joins ranges."""
        make = operators.make_conjunction if node.operator == "and" else operators.make_disjunction
        return make(
            [self.compile_test(one, scope, place) if _is_test(one) else self.compile(one, scope) for one in node.operands]
        )


def _is_test(node: syntax.Node) -> bool:
    """Whether this is a test of something that it does not name: `> 3`, `[1..3]`, `> 3 and < 10`."""
    if isinstance(node, syntax.Logic):
        return any(map(_is_test, node.operands))
    return isinstance(node, syntax.ComparisonTest | syntax.RangeLiteral)


def _refuse_external(_frame: Frame) -> Value:
    raise Fail("it is an external function, and there are none here")


_COMPILED: Final[Mapping[type[syntax.Node], Callable[[Compiler, Any, Scope], Evaluate]]] = {
    syntax.Literal: Compiler._literal,
    syntax.BadLiteral: Compiler._bad_literal,
    syntax.Name: Compiler._name,
    syntax.ListLiteral: Compiler._list,
    syntax.ContextLiteral: Compiler._context,
    syntax.RangeLiteral: Compiler._range,
    syntax.ComparisonTest: Compiler._comparison_test,
    syntax.Path: Compiler._path,
    syntax.Filter: Compiler._filter,
    syntax.Invocation: Compiler._invocation,
    syntax.FunctionDefinition: Compiler._function,
    syntax.Arithmetic: Compiler._arithmetic,
    syntax.Negation: Compiler._negation,
    syntax.Comparison: Compiler._comparison,
    syntax.Between: Compiler._between,
    syntax.Logic: Compiler._logic,
    syntax.If: Compiler._if,
    syntax.InstanceOf: Compiler._instance_of,
    syntax.For: Compiler._for,
    syntax.Quantified: Compiler._quantified,
    syntax.In: Compiler._in,
    syntax.UnaryTests: Compiler._unary_tests,
}
