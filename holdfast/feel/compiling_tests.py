"""Compiling tests of one value, which is `?`: what stands behind `in`, in cells of decision tables, and some filters."""

from __future__ import annotations

from holdfast.feel import membership, operators, syntax
from holdfast.feel.node_compiler import NodeCompiler
from holdfast.feel.operators import Evaluate
from holdfast.feel.scopes import Scope


def compile_in(compiler: NodeCompiler, node: syntax.In, scope: Scope) -> Evaluate:
    """`operand in (tests)`; inside of the tests, `?` is the operand."""
    operand = compiler.compile(node.operand, scope)
    inner = scope.nest()
    place = inner.declare("?")
    return membership.make_in(operand, [compile_test(compiler, one, inner, place) for one in node.tests], place)


def compile_unary_tests(compiler: NodeCompiler, node: syntax.UnaryTests, scope: Scope) -> Evaluate:
    """A cell of a decision table; the scope must have a place for `?`."""
    place = scope.locals["?"]
    tests = [compile_test(compiler, one, scope, place, is_cell=True) for one in node.tests]
    return membership.make_tests(tests, is_negated=node.is_negated)


def compile_test(compiler: NodeCompiler, node: syntax.Node, scope: Scope, place: int, *, is_cell: bool = False) -> Evaluate:
    """A test of what stands at a place, which is `?`."""
    if isinstance(node, syntax.ComparisonTest):
        return membership.make_comparison_test(
            node.operator, compiler.compile(node.operand, scope), place, compiler.spot(node)
        )
    if isinstance(node, syntax.Logic) and is_test(node):
        return _join_tests(compiler, node, scope, place)
    used = scope.unit.used
    before = place in used
    used.discard(place)
    value = compiler.compile(node, scope)
    asks = place in used
    if before:
        used.add(place)
    if is_cell:
        return membership.make_cell_test(value, place, asks=asks, is_literal=isinstance(node, syntax.Literal))
    return membership.make_value_test(value, place, compiler.spot(node), asks=asks)


def _join_tests(compiler: NodeCompiler, node: syntax.Logic, scope: Scope, place: int) -> Evaluate:
    """Camunda: `> 3 and < 10`, each of which is a test of `?`. Elsewhere these are ranges, and no logic joins ranges."""
    make = operators.make_conjunction if node.operator == "and" else operators.make_disjunction
    return make(
        [
            compile_test(compiler, one, scope, place) if is_test(one) else compiler.compile(one, scope)
            for one in node.operands
        ],
        compiler.spot(node),
    )


def is_test(node: syntax.Node) -> bool:
    """Whether this is a test of something that it does not name: `> 3`, `[1..3]`, `> 3 and < 10`."""
    if isinstance(node, syntax.Logic):
        return any(map(is_test, node.operands))
    return isinstance(node, syntax.ComparisonTest | syntax.RangeLiteral)
