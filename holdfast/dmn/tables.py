"""Decision tables, compiled: evaluate the inputs, find the rules, make outputs, apply the hit policy (DMN 10.3.2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.dmn.cells import Cell, analyse
from holdfast.dmn.matching import Matcher
from holdfast.dmn.model import DecisionTable, HitPolicy, InputClause, OutputClause, Rule
from holdfast.dmn.policies import BY_PRIORITY, POLICIES, Hit, Ranking, get_empty
from holdfast.dmn.problems import Problems
from holdfast.dmn.texts import Context, Tests, Text, TextCompiler, Visible
from holdfast.dmn.traces import DecisionRun, TracedRule, TracedTable
from holdfast.dmn.type_definitions import TypeDefinitions
from holdfast.dmn.types import ANY, Type, convert_to, find_values
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import Value


@dataclass(frozen=True, slots=True)
class Input:
    """A column of conditions. `values` are the tests that its value has to meet."""

    label: str
    expression: Text
    type: Type
    values: Tests | None
    values_text: str


@dataclass(frozen=True, slots=True)
class Output:
    """A column of results. `values` are the tests that they have to meet; `default` counts where no rule matches."""

    name: str
    type: Type
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
            if each.type is not ANY:
                value = convert_to(run, value, each.type, f"{self._shown}: input {each.label!r}")
            values.append(value)
            if each.values is not None and value is not None and not _is_allowed(run, value, each.values, context):
                raise Fail(f"the value of input {each.label!r} is none of those allowed: {each.values_text}")

    def _find_rows(self, run: Run, context: Context, values: Sequence[Value]) -> list[Row]:
        found: list[Row] = []
        run.spend(1)
        for index, asked in self._matcher.find(values):
            row = self.rows[index]
            if asked:
                run.spend(1)
                if not all(row.tests[at].test(run, values[at], context) for at in asked):
                    continue
            found.append(row)
            if self._stops_early:
                break
        return found

    def _evaluate_outputs(self, run: Run, context: Context, row: Row) -> list[Value]:
        run.spend(1)
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
            value = convert_to(run, value, output.type, what)
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


def _is_allowed(run: Run, value: Value, values: Tests, context: Context) -> bool:
    """Whether a value meets the tests of its column; a list does if each of its items does."""
    if values.test(run, value, context):
        return True
    if type(value) is not list:
        return False
    run.spend(len(value))
    return all(item is None or values.test(run, item, context) for item in value)


# --- compiling ---


def compile_table(
    table: DecisionTable, texts: TextCompiler, types: TypeDefinitions, problems: Problems, visible: Visible
) -> Table:
    """The table, ready to be evaluated. What is wrong with it becomes problems."""
    inputs = [_compile_input(clause, texts, types, visible) for clause in table.inputs]
    outputs = [_compile_output(clause, texts, types, visible) for clause in table.outputs]
    if table.hit_policy in BY_PRIORITY and outputs and all(output.ranking is None for output in outputs):
        problems.add(
            table.place,
            f"Expected output values, whose order is the priority of the hit policy {table.hit_policy.value}, but there are "
            "none. List them, the most important first.",
        )
    rows = [_compile_row(rule, texts, visible) for rule in table.rules]
    # A row with too few cells is a problem already.
    return Table(table, inputs, outputs, [row for row in rows if len(row.tests) == len(inputs)])


def _compile_input(clause: InputClause, texts: TextCompiler, types: TypeDefinitions, visible: Visible) -> Input:
    values = clause.values
    return Input(
        label=clause.label,
        expression=texts.compile(clause.expression.text, clause.expression.place, visible),
        type=types.find(clause.expression.type_ref, clause.expression.place),
        values=None if values is None else texts.compile_tests(values.text, values.place, visible),
        values_text="" if values is None else values.text,
    )


def _compile_output(clause: OutputClause, texts: TextCompiler, types: TypeDefinitions, visible: Visible) -> Output:
    values = clause.values
    tests = None if values is None else texts.compile_tests(values.text, values.place, visible)
    kind = types.find(clause.type_ref, clause.place)
    ranked = tests or find_values(kind)
    default = clause.default
    return Output(
        name=clause.name,
        type=kind,
        values=tests,
        values_text="" if values is None else values.text,
        ranking=None if ranked is None else Ranking(ranked.tests),
        default=None if default is None else texts.compile(default.text, default.place, visible),
    )


def _compile_row(rule: Rule, texts: TextCompiler, visible: Visible) -> Row:
    tests = tuple(texts.compile_tests(cell.text, cell.place, visible) for cell in rule.inputs)
    return Row(
        rule=rule,
        tests=tests,
        cells=tuple(analyse(test.tests) for test in tests),
        outputs=tuple(texts.compile(cell.text, cell.place, visible) for cell in rule.outputs),
    )
