"""A model that decides: load it once, evaluate it often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from holdfast.dmn.elements import clean_name
from holdfast.dmn.graphs import Graph, compile_graph, list_elements, run_service
from holdfast.dmn.imports import list_unnamed
from holdfast.dmn.loading import MOST_DECISIONS, MOST_RULES, Limits, load_models
from holdfast.dmn.model import Definitions, Element
from holdfast.dmn.problems import Problems, refuse
from holdfast.dmn.texts import Context
from holdfast.dmn.traces import DecisionRun, Trace
from holdfast.dmn.types import accept, convert_to
from holdfast.dmn.validation import validate_table
from holdfast.errors import DmnError, FeelError, FeelLimitExceeded
from holdfast.feel.json_values import to_feel
from holdfast.feel.running import MOST_BYTES, MOST_STEPS, FeelWarning
from holdfast.feel.values import Value


@dataclass(frozen=True, slots=True)
class Result:
    """The value of a decision, and how it came about."""

    value: Value
    trace: Trace


@dataclass(frozen=True, slots=True)
class Summary:
    """A decision or decision service that can be evaluated, and the names of the inputs that it needs."""

    name: str
    id: str
    inputs: tuple[str, ...]


class Model:
    """A decision model. Made by `load`."""

    def __init__(
        self, graph: Graph, models: Sequence[Definitions], warnings: Sequence[str], problems: Sequence[str]
    ) -> None:
        self._graph = graph
        self._orders: dict[str, tuple[str, ...]] = {}
        self.definitions = models[0]
        """What the model is made of, without the models that it imports."""
        self.warnings = tuple(dict.fromkeys(warnings))
        """What may be wrong with the model: gaps and overlaps of tables, names that nothing has."""
        self.problems = tuple(problems)
        """What is wrong with the logic of single decisions and knowledge models, which are null for that reason."""
        known = {one.namespace: one for one in models}
        near = list(list_unnamed(models[0], known))[::-1]
        offered = [element for one in near for element in (*one.services.values(), *one.decisions.values())]
        self._ids = {one.id: one.id for one in offered} | {one.name: one.id for one in offered}
        self._offered = frozenset(self._ids.values())
        self._declared = frozenset(
            name
            for one in near
            for name in (
                *(element.name for element in (*one.inputs.values(), *one.decisions.values())),
                *(imported.name for imported in one.imports),
            )
        )
        self._import_names = {
            element.id: one.name
            for one in models[0].imports
            if one.name and one.namespace in known
            for element in list_elements(known[one.namespace])
        }

    @cached_property
    def decisions(self) -> tuple[Summary, ...]:
        """All decisions, in the order of the file."""
        return tuple(
            Summary(compiled.decision.name, id_, self._name_inputs(self._find_order(id_)))
            for id_, compiled in self._graph.decisions.items()
            if id_ in self._offered
        )

    @cached_property
    def services(self) -> tuple[Summary, ...]:
        """All decision services, in the order of the file."""
        return tuple(
            Summary(one.service.name, id_, self._name_inputs(one.order, [name for name, _, _ in one.parameters]))
            for id_, one in self._graph.services.items()
            if id_ in self._offered
        )

    def evaluate(
        self,
        decision: str,
        inputs: Mapping[str, object],
        *,
        warnings: list[FeelWarning] | None = None,
        clock: Callable[[], datetime] | None = None,
        random: Callable[[int], int] | None = None,
        max_steps: int = MOST_STEPS,
        max_bytes: int = MOST_BYTES,
    ) -> Result:
        """The value of a decision or decision service, by name or id. What goes wrong inside gives null, and a warning.

        `inputs` are the values of input data by their names; those that are missing are null. Raises DmnError if the model
        has no such decision, FeelError if an input is nothing that FEEL has, FeelLimitExceeded if it takes too many steps
        or bytes.
        """
        run = DecisionRun(warnings, clock, random, max_steps, max_bytes)
        try:
            value = self._evaluate(decision, inputs, run)
        except RecursionError:
            raise FeelLimitExceeded(
                f"Expected {decision!r} to fit on the stack, but it goes too deep. Let fewer functions call each other."
            ) from None
        return Result(value, Trace(tuple(run.decisions), run.left_out))

    def _evaluate(self, name: str, inputs: Mapping[str, object], run: DecisionRun) -> Value:
        graph = self._graph
        if not isinstance(inputs, Mapping) or not all(isinstance(key, str) for key in inputs):
            raise FeelError("Expected inputs by their names, but they are something else. Pass a dict with str keys.")
        given = {clean_name(key): value for key, value in inputs.items()}
        # Inputs that the model does not declare are visible as well: models made for Camunda just use them.
        undeclared = {key: value for key, value in given.items() if key not in self._declared}
        id_ = self._ids.get(name)
        if id_ is None:
            raise self._refuse_decision(name)
        service = graph.services.get(id_)
        if service is None:
            order = self._find_order(id_)
            values = self._take_inputs(given, self._list_needed(order), run)
            graph.make_decisions(run, order, values, undeclared)
            return values[id_]
        parameters = [parameter for _, parameter, _ in service.parameters]
        values = self._take_inputs(given, dict.fromkeys([*self._list_needed(service.order), *parameters]), run)
        return run_service(graph, service, run, values, undeclared)

    def _take_inputs(self, given: Context, needed: Mapping[str, None], run: DecisionRun) -> dict[str, Value]:
        """The values of input data and input decisions by id, each as one of its type."""
        graph = self._graph
        values: dict[str, Value] = {}
        for id_ in needed:
            is_data = id_ in graph.definitions.inputs
            element = graph.definitions.inputs[id_] if is_data else graph.definitions.decisions[id_]
            shown = f"input {element.name!r}"
            source = self._find_source(given, element)
            name = element.name if element.name in source else element.variable.name
            if name not in source:
                run.warn(f"{shown} is null, because it was not given")
                values[id_] = None
                continue
            wanted = graph.input_types[id_] if is_data else graph.decisions[id_].type
            values[id_] = convert_to(run, accept(run, to_feel(source[name]), wanted, shown), wanted, shown)
        return values

    def _find_source(self, given: Context, element: Element) -> Mapping[str, object]:
        """Where an input stands among those that were given: one of an imported model may stand behind the import's name."""
        behind = given.get(self._import_names.get(element.id, ""))
        if isinstance(behind, Mapping) and (element.name in behind or element.variable.name in behind):
            return behind
        return given

    def _list_needed(self, order: tuple[str, ...]) -> dict[str, None]:
        """The ids of the input data that decisions need."""
        return dict.fromkeys(one for id_ in order for one in self._graph.definitions.decisions[id_].required_inputs)

    def _find_order(self, id_: str) -> tuple[str, ...]:
        order = self._orders.get(id_)
        if order is None:
            order = self._orders[id_] = self._graph.find_order([id_])
        return order

    def _name_inputs(self, order: tuple[str, ...], others: Sequence[str] = ()) -> tuple[str, ...]:
        declared = [self._graph.definitions.inputs[id_].name for id_ in self._list_needed(order)]
        unknown = [name for id_ in order for name in sorted(self._graph.decisions[id_].unknown)]
        return tuple(dict.fromkeys([*others, *declared, *unknown]))

    def _refuse_decision(self, name: str) -> DmnError:
        known = ", ".join(repr(summary.name) for summary in (*self.decisions, *self.services)) or "none at all"
        return refuse(f"Expected a decision or decision service of the model, but there is no {name!r}. It has {known}.")


def load(
    xml: str | bytes | list[str | bytes] | tuple[str | bytes, ...],
    *,
    strict: bool = False,
    strict_columns: bool = False,
    max_decisions: int = MOST_DECISIONS,
    max_rules: int = MOST_RULES,
) -> Model:
    """The model that a DMN file holds; of several files, the first, with the others to be imported by it.

    Raises DmnError, with everything that is wrong in its `problems`, if the file, its references or its types cannot be
    used. What is wrong with the logic of a single decision or knowledge model makes that one null, and stands in the
    `problems` of the model; if it is `strict`, it is refused too. With `strict_columns`, values of tables have to be of the
    types that their columns declare; otherwise `typeRef="string"` is no more than a hint, as it is to Camunda.
    """
    sources: list[str | bytes] = list(xml) if isinstance(xml, list | tuple) else [xml]
    if not sources:
        raise refuse("Expected the XML of at least one decision model, but the list is empty. Give the model first.")
    problems = Problems()
    models = load_models(sources, problems, Limits(max_decisions, max_rules))
    graph = compile_graph(models, problems, has_strict_columns=strict_columns)
    problems.raise_if_any(is_strict=strict)
    warnings = [*graph.warnings, *(text for table in graph.tables for text in validate_table(table))]
    return Model(graph, models, warnings, problems.list_all())
