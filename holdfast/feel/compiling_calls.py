"""Compiling invocations and definitions of functions."""

from __future__ import annotations

from holdfast.feel import membership, paths, syntax
from holdfast.feel.functions.table import BUILT_INS
from holdfast.feel.invocations import Arguments, make_built_in_call, make_call, make_function
from holdfast.feel.node_compiler import NodeCompiler
from holdfast.feel.operators import Evaluate
from holdfast.feel.running import Fail
from holdfast.feel.scopes import Frame, Scope
from holdfast.feel.spots import Spot
from holdfast.feel.values import Value
from holdfast.feel.weights import NOTHING, weigh


def compile_invocation(compiler: NodeCompiler, node: syntax.Invocation, scope: Scope) -> Evaluate:
    """A call: of a built-in function by its name, else of what the expression before the parenthesis gives."""
    function, spot = node.function, compiler.spot(node)
    if isinstance(function, syntax.Name) and scope.find(function.name)[1] is None:
        if function.name == "is defined" and len(node.positional) == 1:
            return _compile_is_defined(compiler, node.positional[0], scope)
        if function.name == "is defined" and [name for name, _ in node.named] == ["value"]:
            return _compile_is_defined(compiler, node.named[0][1], scope)
        if function.name in BUILT_INS:
            arguments = _compile_arguments(compiler, node, scope)
            return make_built_in_call(function.name, BUILT_INS[function.name], arguments, spot)
    arguments = _compile_arguments(compiler, node, scope)
    if isinstance(function, syntax.Name) and function.name in BUILT_INS:  # a variable, and a function too
        otherwise = make_built_in_call(function.name, BUILT_INS[function.name], arguments, spot)
        return make_call(compiler.compile(function, scope), arguments, spot, otherwise)
    if isinstance(function, syntax.Name) and scope.find(function.name)[1] is None:
        return make_call(_compile_function_name(function, scope, spot), arguments, spot)
    return make_call(compiler.compile(function, scope), arguments, spot)


def _compile_function_name(node: syntax.Name, scope: Scope, spot: Spot) -> Evaluate:
    """A function that is neither built in nor defined here: it is in the context; in a filter, perhaps in the items."""
    scope.unit.names[node.name] = None
    found = paths.make_function_variable(node.name, BUILT_INS, spot)
    items, _ = scope.find(node.name)
    if items:
        return paths.make_item_variable(node.name, items, found)
    scope.unit.calls.setdefault(node.name, node.at)
    return found


def _compile_arguments(compiler: NodeCompiler, node: syntax.Invocation, scope: Scope) -> Arguments:
    positional = [compiler.compile(one, scope) for one in node.positional]
    return Arguments(positional, [(name, compiler.compile(one, scope)) for name, one in node.named])


def _compile_is_defined(compiler: NodeCompiler, node: syntax.Node, scope: Scope) -> Evaluate:
    """Camunda: whether there is a value, other than null. A function of the language is none that was defined."""
    if not isinstance(node, syntax.Name) or node.name not in BUILT_INS:
        return membership.make_is_defined(compiler.compile(node, scope))
    items, place = scope.find(node.name)
    scope.unit.names.setdefault(node.name)
    value = paths.make_variable(node.name, None, compiler.spot(node)) if place is None else paths.make_local(place)
    return membership.make_is_defined(paths.make_item_variable(node.name, items, value) if items else value)


def compile_function(compiler: NodeCompiler, node: syntax.FunctionDefinition, scope: Scope) -> Evaluate:
    """A function as a value. An external one compiles too, and gives null when it is called."""
    inner = scope.nest()
    scope.unit.functions += 1
    parameters = [(name, inner.declare(name), wanted) for name, wanted in node.parameters]
    if node.is_external:
        return make_function(parameters, _refuse_external, compiler.types, NOTHING)
    functions = scope.unit.functions
    body = compiler.compile(node.body, inner)
    weight = weigh(node.body)
    keeps_frames = scope.unit.functions > functions
    return make_function(parameters, body, compiler.types, weight, keeps_frames=keeps_frames)


def _refuse_external(_frame: Frame) -> Value:
    raise Fail("it is an external function, and there are none here")
