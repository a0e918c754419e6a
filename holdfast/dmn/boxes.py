"""Boxed expressions, compiled: one function for each kind makes a closure of the closures of its parts (DMN 10.2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.core.safe_texts import count_noun
from holdfast.dmn import loops, model
from holdfast.dmn.loops import COPIED_IN_ONE_STEP, Evaluate
from holdfast.dmn.tables import Table, Tools, compile_table
from holdfast.dmn.texts import Context, Text, TextCompiler, Visible, has_filter
from holdfast.dmn.type_definitions import TypeDefinitions
from holdfast.dmn.types import ANY, Type, convert_to, is_function
from holdfast.feel import syntax
from holdfast.feel.invocations import call_deeper, call_function
from holdfast.feel.running import Fail, Run
from holdfast.feel.types import name_type
from holdfast.feel.values import Function, Value

_STEPS_OF_CALL: Final = 5
_BYTES: Final = 120
"""Of an item or an entry, and its place."""
_FREE: Final = frozenset(("?", "item", "partial"))
"""Names that the language gives a meaning by itself."""


@dataclass(slots=True)
class BoxCompiler:
    """Compiles the boxed expressions of one element, and gathers what it came by."""

    tools: Tools
    visible: Visible
    unknown: set[str] = field(default_factory=set)
    """Names that its texts use and do not see."""
    uses_partial: bool = False
    found_tables: list[Table] = field(default_factory=list)

    @property
    def texts(self) -> TextCompiler:
        """What compiles the FEEL texts of the model."""
        return self.tools.texts

    @property
    def types(self) -> TypeDefinitions:
        """The types that the model knows."""
        return self.tools.types

    def compile(self, box: model.Expression | None) -> Evaluate:
        """The closure of a box, with its value checked against its type. Without a box, it is null."""
        if box is None:
            return _give_null
        evaluate = MAKERS[type(box)](self, box)
        if isinstance(box, model.FunctionDefinition):  # it looks after its results itself
            return evaluate
        return self.compile_check(box, evaluate, box.type_ref, box.place)

    def compile_check(self, box: model.Expression | None, evaluate: Evaluate, type_ref: str, what: str) -> Evaluate:
        """What makes the value of a box one of a type.

        DMN 7.3.3 has types of functions; most modelers give the type of the result instead where a box is a function.
        """
        wanted = self.types.find(type_ref, what)
        if wanted is ANY:
            return evaluate
        if is_function(wanted) or not self._defines_function(box):
            return lambda run, context: convert_to(run, evaluate(run, context), wanted, what)
        return lambda run, context: _check_result(evaluate(run, context), wanted)

    def _defines_function(self, box: model.Expression | None) -> bool:
        if isinstance(box, model.LiteralExpression):
            return isinstance(self.texts.compile(box.text, box.place, self.visible).tree, syntax.FunctionDefinition)
        return isinstance(box, model.FunctionDefinition)

    def compile_inside(self, box: model.Expression | None, names: Iterable[str]) -> Evaluate:
        """As `compile`, for a box that sees these names as well."""
        added = list(names)
        for name in added:
            self.visible.add(name)
        evaluate = self.compile(box)
        for name in added:
            self.visible.remove(name)
        return evaluate

    def note(self, text: Text, also: Collection[str] = ()) -> None:
        """Remember the names that a text uses and does not see. With a filter in it, those may be entries of the items."""
        self.uses_partial = self.uses_partial or "partial" in text.names
        unknown = {name for name in text.names if name not in self.visible and name not in _FREE and name not in also}
        if unknown and not has_filter(text.tree):
            self.unknown |= unknown

    def compile_variable(self, item: model.InformationItem, place: str) -> Callable[[Run, Value], Value]:
        """What makes a value one of the variable's type."""
        wanted = self.types.find(item.type_ref, place)
        if wanted is ANY:
            return _keep
        return lambda run, value: convert_to(run, value, wanted, repr(item.name))


def _give_null(_run: Run, _context: Context) -> Value:
    return None


def _keep(_run: Run, value: Value) -> Value:
    return value


def _check_result(value: Value, wanted: Type) -> Value:
    """A function whose results are of a type; what is none, because it could not be made, stays as it is."""
    if type(value) is not Function:
        return value
    function = value
    shown = f"the value of {function.name or 'the function'}"

    def call(run: Run, arguments: Sequence[Value]) -> Value:
        return convert_to(run, function.call(run, arguments), wanted, shown)

    return Function(function.name, function.parameters, call, function.types)


# --- the kinds ---


def _make_literal(compiler: BoxCompiler, box: model.LiteralExpression) -> Evaluate:
    text = compiler.texts.compile(box.text, box.place, compiler.visible)
    compiler.note(text)
    return text.evaluate


def _make_table(compiler: BoxCompiler, box: model.DecisionTable) -> Evaluate:
    table = compile_table(box, compiler.tools, compiler.visible)
    for each in table.inputs:
        compiler.note(each.expression)
    for row in table.rows:
        for each, test in zip(table.inputs, row.tests, strict=True):
            compiler.note(test, each.names)
        for text in row.outputs:
            compiler.note(text)
    compiler.found_tables.append(table)
    return table.evaluate


def _make_context(compiler: BoxCompiler, box: model.Context) -> Evaluate:
    entries: list[tuple[str | None, Evaluate]] = []
    for entry in box.entries:
        variable = entry.variable
        if variable is None:
            entries.append((None, compiler.compile(entry.expression)))
            continue
        own = [variable.name] if isinstance(entry.expression, model.FunctionDefinition) else []  # it may call itself
        evaluate = compiler.compile_inside(entry.expression, own)
        at = f"{box.place}, entry {variable.name!r}"
        entries.append((variable.name, compiler.compile_check(entry.expression, evaluate, variable.type_ref, at)))
        compiler.visible.add(variable.name)
    for name, _ in entries:
        if name is not None:
            compiler.visible.remove(name)

    def make(run: Run, context: Context) -> Value:
        # DMN 10.2.1.4: each entry sees those before it; the result cell, if there is one, is the value.
        run.spend(len(entries) + len(context) // COPIED_IN_ONE_STEP, _BYTES * (2 + len(entries)))
        inner = dict(context)
        made: dict[str, Value] = {}
        for name, evaluate in entries:
            value = evaluate(run, inner)
            if name is None:
                return value
            inner[name] = made[name] = value
        return made

    return make


def _make_invocation(compiler: BoxCompiler, box: model.Invocation) -> Evaluate:
    called = compiler.compile(box.called)
    bindings = [
        (parameter.name, compiler.compile(expression), compiler.compile_variable(parameter, box.place))
        for parameter, expression in box.bindings
    ]
    shown = box.called.text if isinstance(box.called, model.LiteralExpression) else "what it calls"

    def invoke(run: Run, context: Context) -> Value:
        function = called(run, context)
        if type(function) is not Function:
            run.warn(f"{shown} is a {name_type(function)}, which cannot be called")
            return None
        arguments = {name: check(run, evaluate(run, context)) for name, evaluate, check in bindings}
        return call_named(run, function, arguments)

    return invoke


def call_named(run: Run, function: Function, arguments: dict[str, Value]) -> Value:
    """Call a function with named arguments; parameters without one are null."""
    nothing = [None] * len(function.parameters) if function.call_by_name is None else []
    return call_function(run, function, nothing, arguments)


def _make_function(compiler: BoxCompiler, box: model.FunctionDefinition) -> Evaluate:
    define = compile_function(compiler, box, "")
    return lambda _run, context: define(context)


def compile_function(
    compiler: BoxCompiler, box: model.FunctionDefinition, name: str, result: Type = ANY
) -> Callable[[Context], Function]:
    """What makes the function of its surroundings. `result` is the type of its value, unless the box has one."""
    parameters = tuple(parameter.name for parameter in box.parameters)
    checks = [compiler.types.find(parameter.type_ref, box.place) for parameter in box.parameters]
    body = compiler.compile_inside(box.body, parameters)
    own = compiler.types.find(box.type_ref, box.place)
    # DMN 7.3.3 has types of functions; most modelers give the type of the result instead.
    wanted = ANY if is_function(own) or (own is ANY and is_function(result)) else result if own is ANY else own
    shown = f"the value of {name}" if name else "the value of the function"

    def define(surroundings: Context) -> Function:
        def call(run: Run, arguments: Sequence[Value]) -> Value:
            if len(arguments) != len(parameters):
                raise Fail(f"it takes {count_noun(len(parameters), 'argument')}, not {len(arguments)}")
            run.spend(_STEPS_OF_CALL + len(surroundings) // COPIED_IN_ONE_STEP)
            context = dict(surroundings)
            for parameter, kind, argument in zip(parameters, checks, arguments, strict=True):
                context[parameter] = check_argument(run, parameter, kind, argument)
            value = call_deeper(run, lambda _frame: body(run, context), [])
            return convert_to(run, value, wanted, shown)

        return Function(name, parameters, call)

    return define


def check_argument(run: Run, parameter: str, kind: Type, argument: Value) -> Value:
    """An argument as one of the parameter's type. Raises Fail if it is none: then the call as a whole is null."""
    value = convert_to(run, argument, kind, f"its parameter {parameter!r}")
    if value is None and argument is not None:
        raise Fail(f"its parameter {parameter!r} is of another type")
    return value


def _make_list(compiler: BoxCompiler, box: model.List) -> Evaluate:
    items = [compiler.compile(item) for item in box.items]

    def make(run: Run, context: Context) -> Value:
        run.spend(len(items), _BYTES * len(items))
        return [item(run, context) for item in items]

    return make


def _make_relation(compiler: BoxCompiler, box: model.Relation) -> Evaluate:
    checks = [compiler.compile_variable(column, box.place) for column in box.columns]
    columns = [column.name for column in box.columns]
    rows = [[compiler.compile(cell) for cell in row] for row in box.rows]

    def make(run: Run, context: Context) -> Value:
        run.spend(len(rows) * (1 + len(columns)), _BYTES * len(rows) * (2 + len(columns)))
        return [
            {name: check(run, cell(run, context)) for name, check, cell in zip(columns, checks, row, strict=True)}
            for row in rows
        ]

    return make


def _make_conditional(compiler: BoxCompiler, box: model.Conditional) -> Evaluate:
    condition, then, otherwise = (compiler.compile(part) for part in (box.condition, box.then, box.otherwise))
    return loops.make_conditional(condition, then, otherwise)


def _make_for(compiler: BoxCompiler, box: model.For) -> Evaluate:
    source = compiler.compile(box.source)
    body = compiler.compile_inside(box.body, [box.variable, "partial"])
    return loops.make_for(box.variable, source, body, looks_back=compiler.uses_partial)


def _make_quantified(compiler: BoxCompiler, box: model.Quantified) -> Evaluate:
    source = compiler.compile(box.source)
    condition = compiler.compile_inside(box.condition, [box.variable])
    return loops.make_quantified(box.variable, source, condition, is_every=box.is_every)


def _make_filter(compiler: BoxCompiler, box: model.Filter) -> Evaluate:
    source = compiler.compile(box.source)
    unknown = set(compiler.unknown)
    match = compiler.compile_inside(box.match, ["item"])
    # What it does not know may be entries of the items.
    compiler.unknown = unknown
    return loops.make_filter(source, match)


MAKERS: Final[Mapping[type, Callable[[BoxCompiler, Any], Evaluate]]] = {
    model.LiteralExpression: _make_literal,
    model.DecisionTable: _make_table,
    model.Context: _make_context,
    model.Invocation: _make_invocation,
    model.FunctionDefinition: _make_function,
    model.List: _make_list,
    model.Relation: _make_relation,
    model.Conditional: _make_conditional,
    model.For: _make_for,
    model.Quantified: _make_quantified,
    model.Filter: _make_filter,
}
"""How each kind of boxed expression is compiled."""
