"""Decision tables, compiled: evaluate the inputs, find the rules, make outputs, apply the hit policy (DMN 10.3.2.10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from holdfast.dmn.cells import Cell, analyse
from holdfast.dmn.matching import Matcher
from holdfast.dmn.model import DecisionTable, HitPolicy, InputClause, OutputClause, Rule
from holdfast.dmn.policies import BY_PRIORITY, POLICIES, Hit, Ranking, get_empty
from holdfast.dmn.problems import Problems
from holdfast.dmn.texts import Context, Tests, Text, TextCompiler, Visible
from holdfast.dmn.traces import DecisionRun, TracedRule, TracedTable
from holdfast.dmn.type_definitions import TypeDefinitions
from holdfast.dmn.types import ANY, TEMPORAL, BuiltIn, Type, convert_if_possible, convert_to, find_values
from holdfast.feel import syntax
from holdfast.feel.running import Fail, Run
from holdfast.feel.types import name_type
from holdfast.feel.values import Value

_BYTES: Final = 112
"""Of a value, and its place in what holds it."""
_KINDS: Final = {Decimal: "number", str: "string", bool: "boolean"}
_SIMPLE: Final = frozenset((*_KINDS.values(), *TEMPORAL))

CELL_INPUT: Final = "cellInput"
"""What Camunda calls the value of a column in its cells, where the column has no name for it."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What tables and other boxes of one model are compiled with."""

    texts: TextCompiler
    types: TypeDefinitions
    problems: Problems
    warnings: list[str]
    has_strict_columns: bool
    """Whether a value has to be of the type that FEEL itself has and its column names; otherwise that is only a hint."""


@dataclass(frozen=True, slots=True)
class Input:
    """A column of conditions. `values` are the tests that its value has to meet."""

    label: str
    expression: Text
    expression_text: str
    type: Type
    is_strict: bool
    """Whether what is not of the type becomes null."""
    names: tuple[str, ...]
    """What its cells may call the value, beside `?`."""
    values: Tests | None
    values_text: str


@dataclass(frozen=True, slots=True)
class Output:
    """A column of results. `values` are the tests that they have to meet; `default` counts where no rule matches."""

    name: str
    type: Type
    is_strict: bool
    values: Tests | None
    values_text: str
    ranking: Ranking | None
    default: Text | None


@dataclass(frozen=True, slots=True)
class Row:
    """A rule of a table, compiled; `cells` is what is known of its tests without evaluating them."""

    rule: Rule
    tests: tuple[Tests, ...]
    cells: tuple[Cell | None, ...]
    outputs: tuple[Text, ...]


class Table:
    """A decision table that can be evaluated."""

    def __init__(
        self, table: DecisionTable, inputs: Sequence[Input], outputs: Sequence[Output], rows: Sequence[Row]
    ) -> None:
        self.table = table
        self.inputs = inputs
        self.outputs = outputs
        self.rows = rows
        self._matcher = Matcher([row.cells for row in rows], len(inputs))
        self._stops_early = table.hit_policy is HitPolicy.FIRST
        self._needs_priorities = table.hit_policy in BY_PRIORITY
        # Inputs are evaluated one by one, and rules looked up in blocks of some hundreds.
        self._steps = 5 + 2 * len(inputs) + len(inputs) * (len(rows) >> 8)
        self._shown = f"decision table {table.name!r}"

    def evaluate(self, run: Run, context: Context) -> Value:
        """Its value. A violated hit policy, or an input that is not allowed, gives null and a warning."""
        values: list[Value] = []
        hits: list[Hit] = []
        traced: list[TracedRule] = []
        try:
            self._evaluate_inputs(run, context, values)
            for row in self._find_rows(run, context, values):
                outputs = self._evaluate_outputs(run, context, row)
                hits.append(Hit(row.rule.number, self._compose(outputs), self._rank(run, outputs)))
                names = (output.name for output in self.outputs)
                traced.append(
                    TracedRule(row.rule.number, row.rule.id, tuple(zip(names, outputs, strict=True)), row.rule.annotations)
                )
            value = POLICIES[self.table.hit_policy](hits, run) if hits else self._evaluate_default(run, context)
        except Fail as error:
            run.warn(f"{self._shown}: {error}")
            value = None
        if isinstance(run, DecisionRun):
            labels = (each.label for each in self.inputs)
            shown = tuple(zip(labels, values, strict=False))
            run.keep_table(TracedTable(self.table.name, self.table.hit_policy.value, shown, tuple(traced), value))
        return value

    def _evaluate_inputs(self, run: Run, context: Context, values: list[Value]) -> None:
        """Fill in the values. Raises Fail for one that is not among the allowed ones."""
        for each in self.inputs:
            value = each.expression.evaluate(run, context)
            if not each.expression_text:
                run.warn(f"{self._shown}: input {each.label!r} is null, because it has no expression")
            elif each.type is not ANY:
                value = _convert(run, value, each, f"{self._shown}: input {each.label!r}")
            values.append(value)
            if each.values is not None and value is not None and not _is_allowed(run, value, each.values, context):
                raise Fail(f"the value of input {each.label!r} is none of those allowed: {each.values_text}")

    def _find_rows(self, run: Run, context: Context, values: Sequence[Value]) -> list[Row]:
        found: list[Row] = []
        run.spend(self._steps)
        for index, asked in self._matcher.find(values):
            row = self.rows[index]
            if asked:
                run.spend(2)
                if not all(self._test(run, row, at, values[at], context) for at in asked):
                    continue
            found.append(row)
            if self._stops_early:
                break
        return found

    def _test(self, run: Run, row: Row, at: int, value: Value, context: Context) -> bool:
        test = row.tests[at]
        names = [name for name in self.inputs[at].names if name in test.names]
        return test.test(run, value, context | dict.fromkeys(names, value) if names else context)

    def _evaluate_outputs(self, run: Run, context: Context, row: Row) -> list[Value]:
        run.spend(3, 4 * _BYTES)
        return [
            self._check_output(run, context, output, text.evaluate(run, context), f"rule {row.rule.number}")
            for output, text in zip(self.outputs, row.outputs, strict=True)
        ]

    def _check_output(self, run: Run, context: Context, output: Output, value: Value, source: str) -> Value:
        if value is None or (output.type is ANY and output.values is None):
            return value
        what = (
            f"{self._shown}: output {output.name!r} of {source}" if output.name else f"{self._shown}: the output of {source}"
        )
        if output.type is not ANY:
            value = _convert(run, value, output, what)
        if output.values is not None and value is not None and not _is_allowed(run, value, output.values, context):
            run.warn(f"{what} is null, because its value is none of those allowed: {output.values_text}")
            return None
        return value

    def _compose(self, outputs: Sequence[Value]) -> Value:
        """DMN 10.3.2.10: several outputs are a context."""
        if len(self.outputs) == 1:
            return outputs[0]
        return {output.name: value for output, value in zip(self.outputs, outputs, strict=True)}

    def _rank(self, run: Run, outputs: Sequence[Value]) -> tuple[int, ...]:
        """DMN 8.2.11: of several outputs, the first one counts most."""
        if not self._needs_priorities:
            return ()
        pairs = zip(self.outputs, outputs, strict=True)
        return tuple(output.ranking.rank(run, value) for output, value in pairs if output.ranking is not None)

    def _evaluate_default(self, run: Run, context: Context) -> Value:
        if all(output.default is None for output in self.outputs):
            return get_empty(self.table.hit_policy)
        return self._compose(
            [
                None
                if output.default is None
                else self._check_output(run, context, output, output.default.evaluate(run, context), "the default")
                for output in self.outputs
            ]
        )


def _convert(run: Run, value: Value, column: Input | Output, what: str) -> Value:
    if column.is_strict:
        return convert_to(run, value, column.type, what)
    return convert_if_possible(run, value, column.type)


def _is_allowed(run: Run, value: Value, values: Tests, context: Context) -> bool:
    """Whether a value meets the tests of its column; a list does if each of its items does."""
    if values.test(run, value, context):
        return True
    if type(value) is not list:
        return False
    run.spend(len(value))
    return all(item is None or values.test(run, item, context) for item in value)


# --- compiling ---


def compile_table(table: DecisionTable, tools: Tools, visible: Visible) -> Table:
    """The table, ready to be evaluated. What is wrong with it becomes problems, what is suspicious warnings."""
    inputs = [_compile_input(clause, tools, visible) for clause in table.inputs]
    outputs = [_compile_output(clause, tools, visible) for clause in table.outputs]
    if table.hit_policy in BY_PRIORITY and outputs and all(output.ranking is None for output in outputs):
        tools.problems.add(
            table.place,
            f"Expected output values, whose order is the priority of the hit policy {table.hit_policy.value}, but there are "
            "none. List them, the most important first.",
        )
    rows = [_compile_row(rule, inputs, tools.texts, visible) for rule in table.rules]
    # A row with too few cells is a problem already.
    made = Table(table, inputs, outputs, [row for row in rows if len(row.tests) == len(inputs)])
    tools.warnings.extend(find_contradictions(made))
    return made


def _compile_input(clause: InputClause, tools: Tools, visible: Visible) -> Input:
    values = clause.values
    kind = tools.types.find(clause.expression.type_ref, clause.expression.place)
    if not clause.expression.text:
        tools.warnings.append(
            f"{clause.expression.place}: it has no expression, so that it is null. Say what is compared with the cells."
        )
    names = (clause.variable, CELL_INPUT)
    return Input(
        label=clause.label,
        expression=tools.texts.compile(clause.expression.text, clause.expression.place, visible),
        expression_text=clause.expression.text,
        type=kind,
        is_strict=tools.has_strict_columns or not isinstance(kind, BuiltIn),
        names=tuple(name for name in names if name and (name == clause.variable or name not in visible)),
        values=None if values is None else tools.texts.compile_tests(values.text, values.place, visible),
        values_text="" if values is None else values.text,
    )


def _compile_output(clause: OutputClause, tools: Tools, visible: Visible) -> Output:
    values = clause.values
    tests = None if values is None else tools.texts.compile_tests(values.text, values.place, visible)
    kind = tools.types.find(clause.type_ref, clause.place)
    ranked = tests or find_values(kind)
    default = clause.default
    return Output(
        name=clause.name,
        type=kind,
        is_strict=tools.has_strict_columns or not isinstance(kind, BuiltIn),
        values=tests,
        values_text="" if values is None else values.text,
        ranking=None if ranked is None else Ranking(ranked.tests),
        default=None if default is None else tools.texts.compile(default.text, default.place, visible),
    )


def _compile_row(rule: Rule, inputs: Sequence[Input], texts: TextCompiler, visible: Visible) -> Row:
    tests = []
    for cell, each in zip(rule.inputs, inputs, strict=False):
        for name in each.names:
            visible.add(name)
        tests.append(texts.compile_tests(cell.text, cell.place, visible))
        for name in each.names:
            visible.remove(name)
    return Row(
        rule=rule,
        tests=tuple(tests),
        cells=tuple(analyse(test.tests) for test in tests),
        outputs=tuple(texts.compile(cell.text, cell.place, visible) for cell in rule.outputs),
    )


# --- types that cannot be meant ---


def find_contradictions(table: Table) -> list[str]:
    """Columns whose literals are of another type than the one they declare, each with the first rule that shows it."""
    found = []
    clauses = table.table
    for at, each in enumerate(table.inputs):
        kinds = ((row.rule.number, _list_kinds(row.cells[at])) for row in table.rows)
        found += _contradict(each.type, kinds, clauses.inputs[at].expression.place, "compares it with")
    for at, output in enumerate(table.outputs):
        kinds = ((row.rule.number, _list_constant(row.outputs[at])) for row in table.rows if at < len(row.outputs))
        found += _contradict(output.type, kinds, clauses.outputs[at].place, "gives")
    return found


def _contradict(wanted: Type, kinds: Iterable[tuple[int, list[str]]], place: str, verb: str) -> list[str]:
    if not isinstance(wanted, BuiltIn) or wanted.name not in _SIMPLE:
        return []
    wrong = [(number, kind) for number, names in kinds for kind in names if kind != wanted.name]
    if not wrong:
        return []
    (number, kind), more = wrong[0], len({number for number, _ in wrong}) - 1
    others = f" and {more} more" if more else ""
    return [f"{place}: its typeRef is {wanted.name}, but rule {number}{others} {verb} a {kind}. Correct the typeRef."]


def _list_kinds(cell: Cell | None) -> list[str]:
    return [] if cell is None else [_KINDS[kind] for kind in cell.list_kinds()]


def _list_constant(text: Text) -> list[str]:
    tree = text.tree.operand if isinstance(text.tree, syntax.Negation) else text.tree
    if not isinstance(tree, syntax.Literal) or tree.value is None:
        return []
    return [name_type(tree.value)]
