"""From the tree to closures: everything that can be decided once is decided here, before the first evaluation.

Here are values and operators; calls, loops and tests, which need more than their parts, are in `compiling_calls`,
`compiling_loops` and `compiling_tests`. The table at the end has one function for each kind of node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.feel import membership, operators, paths, syntax, unread
from holdfast.feel.compiling_calls import compile_function, compile_invocation
from holdfast.feel.compiling_loops import compile_filter, compile_for, compile_quantified
from holdfast.feel.compiling_tests import compile_in, compile_unary_tests
from holdfast.feel.functions.table import BUILT_INS
from holdfast.feel.invocations import as_function
from holdfast.feel.operators import Evaluate
from holdfast.feel.running import Fail
from holdfast.feel.scopes import RUN, Frame, Scope
from holdfast.feel.spots import Spot
from holdfast.feel.types import Types, is_instance
from holdfast.feel.values import Function, Value

_FUNCTIONS: Final[Mapping[str, Function]] = {name: as_function(name, forms) for name, forms in BUILT_INS.items()}


class Compiler:
    """Compiles what belongs together; `types` are those that somebody else defines, `text` is what was parsed."""

    def __init__(self, types: Types | None = None, text: str = "") -> None:
        self.types = types
        self._text = text

    def spot(self, node: syntax.Node) -> Spot:
        """Where a node begins, for warnings."""
        return Spot(self._text, node.at)

    def compile(self, node: syntax.Node, scope: Scope) -> Evaluate:
        """The closure that evaluates a node, given a frame with the places of `scope`."""
        return _COMPILED[type(node)](self, node, scope)

    # --- values ---

    def _literal(self, node: syntax.Literal, _scope: Scope) -> Evaluate:
        value = node.value
        return lambda _frame: value

    def _bad_literal(self, node: syntax.BadLiteral, _scope: Scope) -> Evaluate:
        text, spot = node.text, self.spot(node)

        def bad_literal(frame: Frame) -> None:
            frame[RUN].warn(f"'{text}' is no date, time, date and time or duration", spot)

        return bad_literal

    def _name(self, node: syntax.Name, scope: Scope) -> Evaluate:
        items, place = scope.find(node.name)
        if place is not None:
            outer = paths.make_local(place)
        else:
            built_in = _FUNCTIONS.get(node.name)
            if built_in is None:
                scope.unit.names[node.name] = None
            outer = paths.make_variable(node.name, built_in, self.spot(node))
        if items and items[0] in scope.unit.unread:
            return unread.make_entry(items[0], node.name, self.spot(node), outer)
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
        start_included, end_included, spot = node.start_included, node.end_included, self.spot(node)

        def make(frame: Frame) -> Value:
            try:
                return membership.make_range(start(frame), end(frame), start_included, end_included)
            except Fail as error:
                frame[RUN].warn(str(error), spot)
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
                return make(place, node.name, self.spot(node))
        steps = paths.make_path(self.compile(source, scope), node.name, self.spot(node))
        names = [node.name]
        while isinstance(source, syntax.Path):
            names.append(source.name)
            source = source.source
        if isinstance(source, syntax.Name) and scope.find(source.name) == ([], None):
            return paths.make_variable_path(source.name, names[::-1], steps)
        return steps

    # --- operators ---

    def _arithmetic(self, node: syntax.Arithmetic, scope: Scope) -> Evaluate:
        left, right = self.compile(node.left, scope), self.compile(node.right, scope)
        return operators.make_arithmetic(node.operator, left, right, self.spot(node))

    def _negation(self, node: syntax.Negation, scope: Scope) -> Evaluate:
        return operators.make_negation(self.compile(node.operand, scope), self.spot(node))

    def _comparison(self, node: syntax.Comparison, scope: Scope) -> Evaluate:
        left, right = self.compile(node.left, scope), self.compile(node.right, scope)
        return operators.make_comparison(node.operator, left, right, self.spot(node))

    def _between(self, node: syntax.Between, scope: Scope) -> Evaluate:
        operand, low, high = (self.compile(one, scope) for one in (node.operand, node.low, node.high))
        return operators.make_between(operand, low, high, self.spot(node))

    def _logic(self, node: syntax.Logic, scope: Scope) -> Evaluate:
        make = operators.make_conjunction if node.operator == "and" else operators.make_disjunction
        return make([self.compile(one, scope) for one in node.operands], self.spot(node))

    def _if(self, node: syntax.If, scope: Scope) -> Evaluate:
        condition, then, otherwise = (self.compile(one, scope) for one in (node.condition, node.then, node.otherwise))
        return operators.make_condition(condition, then, otherwise, self.spot(node.condition))

    def _instance_of(self, node: syntax.InstanceOf, scope: Scope) -> Evaluate:
        operand, wanted, types, spot = self.compile(node.operand, scope), node.type, self.types, self.spot(node)

        def instance_of(frame: Frame) -> bool | None:
            answer = is_instance(operand(frame), wanted, types, frame[RUN])
            if answer is None:
                frame[RUN].warn("nobody knows the type behind instance of", spot)
            return answer

        return instance_of


_COMPILED: Final[Mapping[type[syntax.Node], Callable[[Compiler, Any, Scope], Evaluate]]] = {
    syntax.Literal: Compiler._literal,
    syntax.BadLiteral: Compiler._bad_literal,
    syntax.Name: Compiler._name,
    syntax.ListLiteral: Compiler._list,
    syntax.ContextLiteral: Compiler._context,
    syntax.RangeLiteral: Compiler._range,
    syntax.ComparisonTest: Compiler._comparison_test,
    syntax.Path: Compiler._path,
    syntax.Filter: compile_filter,
    syntax.Invocation: compile_invocation,
    syntax.FunctionDefinition: compile_function,
    syntax.Arithmetic: Compiler._arithmetic,
    syntax.Negation: Compiler._negation,
    syntax.Comparison: Compiler._comparison,
    syntax.Between: Compiler._between,
    syntax.Logic: Compiler._logic,
    syntax.If: Compiler._if,
    syntax.InstanceOf: Compiler._instance_of,
    syntax.For: compile_for,
    syntax.Quantified: compile_quantified,
    syntax.In: compile_in,
    syntax.UnaryTests: compile_unary_tests,
}
