"""The decision requirements graph, compiled: decisions in an order in which they can be made; knowledge as functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.dmn.boxes import BoxCompiler, check_argument, compile_function
from holdfast.dmn.loops import COPIED_IN_ONE_STEP, Evaluate
from holdfast.dmn.model import BusinessKnowledgeModel, Decision, DecisionService, Definitions, Element
from holdfast.dmn.problems import Problems
from holdfast.dmn.tables import Table
from holdfast.dmn.texts import Context, TextCompiler, Visible
from holdfast.dmn.traces import DecisionRun, TracedDecision
from holdfast.dmn.type_definitions import TypeDefinitions
from holdfast.dmn.types import Type, convert_to
from holdfast.feel.invocations import call_deeper
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import Function, Value


@dataclass(frozen=True, slots=True)
class CompiledDecision:
    """A decision that can be made, once the values of what it needs are known."""

    decision: Decision
    evaluate: Evaluate
    type: Type
    bindings: tuple[tuple[str, str], ...]
    """The names that its logic sees, and the ids of the elements whose values they stand for."""
    functions: tuple[tuple[str, str], ...]
    unknown: frozenset[str]
    """Names that it uses and that nothing in the model has: inputs that were never declared."""


@dataclass(frozen=True, slots=True)
class CompiledService:
    """A decision service: the decisions to make, in their order, and the types of what they are given."""

    service: DecisionService
    order: tuple[str, ...]
    type: Type
    parameters: tuple[tuple[str, str, Type], ...]
    """Name, id and type."""


@dataclass(slots=True)
class Graph:
    """All that can be evaluated in a model, by id."""

    definitions: Definitions
    input_types: dict[str, Type] = field(default_factory=dict)
    decisions: dict[str, CompiledDecision] = field(default_factory=dict)
    services: dict[str, CompiledService] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    """Knowledge models and services."""
    tables: list[Table] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def find_order(self, wanted: Iterable[str], given: Iterable[str] = ()) -> tuple[str, ...]:
        """The ids of the decisions that have to be made for the wanted ones, each behind those it needs."""
        order: dict[str, None] = {}
        done = set(given)
        open_ = [(id_, False) for id_ in reversed(list(wanted))]
        while open_:
            id_, is_ready = open_.pop()
            if is_ready:
                order[id_] = None
            elif id_ not in done:
                done.add(id_)
                open_.append((id_, True))
                open_.extend((one, False) for one in reversed(self.definitions.decisions[id_].required_decisions))
        return tuple(order)

    def make_decisions(self, run: Run, order: Sequence[str], values: dict[str, Value], undeclared: Context) -> None:
        """Add the values of decisions, in their order, to those of what they need."""
        for id_ in order:
            if id_ in values:
                continue
            compiled = self.decisions[id_]
            context = dict(undeclared)
            for name, function in compiled.functions:
                context[name] = self.functions[function]
            for name, required in compiled.bindings:
                context[name] = values.get(required)
            values[id_] = _make_decision(run, compiled, context)


def _make_decision(run: Run, compiled: CompiledDecision, context: Context) -> Value:
    decision = compiled.decision
    shown = f"decision {decision.name!r}"
    run.spend(1 + len(context) // COPIED_IN_ONE_STEP)
    if not isinstance(run, DecisionRun):
        return convert_to(run, compiled.evaluate(run, context), compiled.type, shown)
    outer, outer_tables = run.now_in, run.tables
    run.now_in, run.tables = shown, []
    value = convert_to(run, compiled.evaluate(run, context), compiled.type, "its result")
    run.keep_decision(TracedDecision(decision.name, decision.id, value, tuple(run.tables)))
    run.now_in, run.tables = outer, outer_tables
    return value


# --- compiling ---


def compile_graph(definitions: Definitions, problems: Problems) -> Graph:
    """The graph of a model. What is wrong with its texts and types becomes problems."""
    types = TypeDefinitions(definitions, problems)
    texts = TextCompiler(problems, types.syntax, types.component_names)
    types.define(texts)
    graph = Graph(definitions)
    for data in definitions.inputs.values():
        graph.input_types[data.id] = types.find(data.variable.type_ref, data.place)
    knowledge: Mapping[str, Element] = {**definitions.knowledge, **definitions.services}
    elements = (*definitions.decisions.values(), *definitions.inputs.values(), *knowledge.values())
    places = {element.name: element.place for element in elements}
    compiler = _GraphCompiler(definitions, graph, types, texts, problems, knowledge, places)
    for model in definitions.knowledge.values():
        compiler.compile_knowledge(model)
    for decision in definitions.decisions.values():
        compiler.compile_decision(decision)
    if not problems.found:
        for service in definitions.services.values():
            compiler.compile_service(service)
    return graph


@dataclass(frozen=True, slots=True)
class _GraphCompiler:
    definitions: Definitions
    graph: Graph
    types: TypeDefinitions
    texts: TextCompiler
    problems: Problems
    knowledge: Mapping[str, Element]
    """Knowledge models and services, by id."""
    places: Mapping[str, str]
    """Where each element stands, by name."""

    def compile_decision(self, decision: Decision) -> None:
        bindings = self._bind(decision)
        functions = self._bind_knowledge(decision.required_knowledge)
        boxes = BoxCompiler(self.texts, self.types, self.problems, Visible((*functions, *bindings)))
        evaluate = boxes.compile(decision.expression)
        self.graph.tables.extend(boxes.found_tables)
        self._warn_of_unknown(decision, boxes.unknown)
        self.graph.decisions[decision.id] = CompiledDecision(
            decision=decision,
            evaluate=evaluate,
            type=self.types.find(decision.variable.type_ref, decision.place),
            bindings=tuple(bindings.items()),
            functions=tuple(functions.items()),
            unknown=frozenset(boxes.unknown - self.places.keys()),
        )

    def compile_knowledge(self, model: BusinessKnowledgeModel) -> None:
        functions = self._bind_knowledge((*model.required_knowledge, model.id))
        boxes = BoxCompiler(self.texts, self.types, self.problems, Visible(functions))
        result = self.types.find(model.variable.type_ref, model.place)
        define = compile_function(boxes, model.logic, model.name, result)
        self.graph.tables.extend(boxes.found_tables)
        for name in sorted(boxes.unknown):
            self.graph.warnings.append(
                f"{model.place}: {name!r} is neither a parameter nor required, so that it is null. Add what is missing."
            )
        surroundings: Context = {}
        self.graph.functions[model.id] = _Surrounded(define(surroundings), surroundings, functions, self.graph).function

    def compile_service(self, service: DecisionService) -> None:
        graph, definitions = self.graph, self.definitions
        order = graph.find_order(service.output_decisions, service.input_decisions)
        parameters = [
            *((definitions.inputs[id_].variable.name, id_, graph.input_types[id_]) for id_ in service.input_data),
            *((definitions.decisions[id_].variable.name, id_, graph.decisions[id_].type) for id_ in service.input_decisions),
        ]
        compiled = CompiledService(
            service=service,
            order=order,
            type=self.types.find(service.variable.type_ref, service.place),
            parameters=tuple(parameters),
        )
        graph.services[service.id] = compiled
        graph.functions[service.id] = _make_service_function(graph, compiled)
        given = {id_ for _, id_, _ in parameters}
        for id_ in order:
            decision = self.definitions.decisions[id_]
            missing = [self.definitions.inputs[one].name for one in decision.required_inputs if one not in given]
            if missing:
                graph.warnings.append(
                    f"{service.place}: decision {decision.name!r} needs {', '.join(missing)}, which it is not given: "
                    "that is null where the service is called as a function. Add it to the service's input data."
                )

    def _bind(self, decision: Decision) -> dict[str, str]:
        """Names of what a decision needs: those of the variables, of the elements, and, as Camunda has it, ids."""
        required: list[Element] = [
            *(self.definitions.inputs[id_] for id_ in decision.required_inputs if id_ in self.definitions.inputs),
            *(self.definitions.decisions[id_] for id_ in decision.required_decisions if id_ in self.definitions.decisions),
        ]
        bound = {element.id: element.id for element in required if element.id.isidentifier()}
        bound |= {element.name: element.id for element in required if element.name}
        return bound | {element.variable.name: element.id for element in required if element.variable.name}

    def _bind_knowledge(self, ids: Iterable[str]) -> dict[str, str]:
        elements = [self.knowledge[id_] for id_ in ids if id_ in self.knowledge]
        bound = {element.name: element.id for element in elements if element.name}
        return bound | {element.variable.name: element.id for element in elements if element.variable.name}

    def _warn_of_unknown(self, decision: Decision, unknown: Iterable[str]) -> None:
        for name in sorted(unknown):
            if name in self.places:
                told = f"is not required, so that it is null. Add a requirement of {self.places[name]}."
            else:
                told = (
                    "is nothing that the model knows; it is taken from the inputs. Add input data and a requirement of it."
                )
            self.graph.warnings.append(f"{decision.place}: {name!r} {told}")


class _Surrounded:
    """A knowledge model's function, whose surroundings are filled at its first call: those may not be compiled yet."""

    def __init__(self, inner: Function, surroundings: Context, functions: dict[str, str], graph: Graph) -> None:
        self._inner = inner
        self._surroundings = surroundings
        self._functions = functions
        self._graph = graph
        self.function = Function(inner.name, inner.parameters, self._call)

    def _call(self, run: Run, arguments: Sequence[Value]) -> Value:
        if not self._surroundings:
            self._surroundings.update((name, self._graph.functions[id_]) for name, id_ in self._functions.items())
        return self._inner.call(run, arguments)


def _make_service_function(graph: Graph, compiled: CompiledService) -> Function:
    names = tuple(name for name, _, _ in compiled.parameters)

    def call(run: Run, arguments: Sequence[Value]) -> Value:
        if len(arguments) != len(names):
            raise Fail(f"it takes {len(names)} arguments, not {len(arguments)}")
        given = {
            id_: check_argument(run, name, kind, argument)
            for (name, id_, kind), argument in zip(compiled.parameters, arguments, strict=True)
        }
        return call_deeper(run, lambda _frame: run_service(graph, compiled, run, given, {}), [])

    return Function(compiled.service.name, names, call)


def run_service(graph: Graph, compiled: CompiledService, run: Run, values: dict[str, Value], undeclared: Context) -> Value:
    """What the service decides: the value of its only output decision, or a context of all of them (DMN 10.4)."""
    service = compiled.service
    graph.make_decisions(run, compiled.order, values, undeclared)
    if len(service.output_decisions) == 1:
        value = values[service.output_decisions[0]]
    else:
        value = {graph.definitions.decisions[id_].variable.name: values[id_] for id_ in service.output_decisions}
    return convert_to(run, value, compiled.type, f"decision service {service.name!r}")
