"""The decision requirements graph, compiled: decisions in an order in which they can be made; knowledge as functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from holdfast.core.safe_texts import count_noun
from holdfast.dmn.boxes import BoxCompiler, check_argument, compile_function
from holdfast.dmn.imports import list_unnamed
from holdfast.dmn.loops import COPIED_IN_ONE_STEP, Evaluate
from holdfast.dmn.model import BusinessKnowledgeModel, Decision, DecisionService, Definitions, Element
from holdfast.dmn.problems import Problems
from holdfast.dmn.requirements import merge
from holdfast.dmn.tables import Table, Tools
from holdfast.dmn.texts import Context, TextCompiler, Visible
from holdfast.dmn.traces import DecisionRun, TracedDecision
from holdfast.dmn.type_definitions import TypeDefinitions
from holdfast.dmn.types import Type, convert_to
from holdfast.feel.invocations import call_deeper
from holdfast.feel.running import Fail, Run
from holdfast.feel.values import Function, Value

_STEPS_OF_DECISION: Final = 5
Imported: TypeAlias = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Names of imports, each with the names behind it and the ids of the elements that these stand for."""


@dataclass(frozen=True, slots=True)
class CompiledDecision:
    """A decision that can be made, once the values of what it needs are known."""

    decision: Decision
    evaluate: Evaluate
    type: Type
    bindings: tuple[tuple[str, str], ...]
    """The names that its logic sees, and the ids of the elements whose values they stand for."""
    functions: tuple[tuple[str, str], ...]
    imported: Imported
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
            for name, members in compiled.imported:
                context[name] = {member: self.functions.get(key) or values.get(key) for member, key in members}
            values[id_] = _make_decision(run, compiled, context)


def _make_decision(run: Run, compiled: CompiledDecision, context: Context) -> Value:
    decision = compiled.decision
    run.spend(_STEPS_OF_DECISION + len(context) // COPIED_IN_ONE_STEP)
    if not isinstance(run, DecisionRun):
        return compiled.evaluate(run, context)
    outer, outer_tables = run.now_in, run.tables
    run.now_in, run.tables = f"decision {decision.name!r}", []
    value = compiled.evaluate(run, context)
    run.keep_decision(TracedDecision(decision.name, decision.id, value, tuple(run.tables)))
    run.now_in, run.tables = outer, outer_tables
    return value


# --- compiling ---


def compile_graph(models: Sequence[Definitions], problems: Problems, *, has_strict_columns: bool = False) -> Graph:
    """The graph of a model and of those that it imports. What is wrong with texts and types becomes problems."""
    whole = merge(models)
    graph = Graph(whole)
    compilers = _prepare(models, graph, problems, has_strict_columns=has_strict_columns)
    for compiler in compilers:
        with problems.inside_model(compiler.shown):
            compiler.compile_inputs()
            compiler.compile_knowledge_models()
    for compiler in compilers:
        with problems.inside_model(compiler.shown):
            compiler.compile_decisions()
    if not problems.found:
        for compiler in compilers:
            compiler.compile_services()
    return graph


def _prepare(
    models: Sequence[Definitions], graph: Graph, problems: Problems, *, has_strict_columns: bool
) -> list[_GraphCompiler]:
    """A compiler for each model, once all of them know the types of each other."""
    by_namespace = {one.namespace: one for one in models}
    types: dict[str, TypeDefinitions] = {}
    for one in models:
        types[one.namespace] = TypeDefinitions(one, problems, types, "" if one is models[0] else f"{one.namespace}#")
    inner = {name for one in types.values() for name in one.component_names}
    if len(models) > 1:  # what stands behind the name of an import
        inner |= {name for one in models for element in list_elements(one) for name in (element.name, element.variable.name)}
    compilers = []
    for one in models:
        own = types[one.namespace]
        texts = TextCompiler(problems, own.syntax, inner)
        with problems.inside_model("" if one is models[0] else one.name):
            own.define(texts)
        tools = Tools(texts, own, problems, graph.warnings, has_strict_columns)
        compilers.append(_GraphCompiler(one, graph, tools, by_namespace, is_main=one is models[0]))
    for each in types.values():
        each.name_all()
    return compilers


def list_elements(definitions: Definitions) -> list[Element]:
    """All that requirements can name in a model."""
    return [
        *definitions.decisions.values(),
        *definitions.inputs.values(),
        *definitions.knowledge.values(),
        *definitions.services.values(),
    ]


class _GraphCompiler:
    """Compiles the elements of one model into a graph that other models may share."""

    def __init__(
        self, own: Definitions, graph: Graph, tools: Tools, models: Mapping[str, Definitions], *, is_main: bool
    ) -> None:
        self._own = own
        self._graph = graph
        self._tools = tools
        self.shown = "" if is_main else own.name
        self._places = {element.name: element.place for element in list_elements(own)}
        self._places |= {one.name: one.place for one in own.imports if one.name}
        self._near = {element.id for model in list_unnamed(own, models) for element in list_elements(model)}
        """The ids of what is known by its plain name."""
        self._import_names = {
            element.id: one.name
            for one in own.imports
            if one.name and one.namespace in models
            for element in list_elements(models[one.namespace])
        }

    def compile_inputs(self) -> None:
        for data in self._own.inputs.values():
            self._graph.input_types[data.id] = self._tools.types.find(data.variable.type_ref, data.place)

    def compile_knowledge_models(self) -> None:
        for model in self._own.knowledge.values():
            with self._tools.problems.inside(model.id):
                self._compile_knowledge(model)

    def compile_decisions(self) -> None:
        for decision in self._own.decisions.values():
            with self._tools.problems.inside(decision.id):
                self._compile_decision(decision)

    def compile_services(self) -> None:
        for service in self._own.services.values():
            self._compile_service(service)

    def _compile_decision(self, decision: Decision) -> None:
        required = [
            *_find_all(decision.required_inputs, self._graph.definitions.inputs),
            *_find_all(decision.required_decisions, self._graph.definitions.decisions),
        ]
        known = self._find_knowledge(decision.required_knowledge)
        bindings, functions = self._bind(required), self._bind_functions(known)
        imported = self._bind_imported([*known, *required])
        boxes = BoxCompiler(self._tools, Visible((*functions, *bindings, *(name for name, _ in imported))))
        place = "its result"
        evaluate = boxes.compile(decision.expression)
        evaluate = boxes.compile_check(decision.expression, evaluate, decision.variable.type_ref, place)
        problem = self._tools.problems.get_first(decision.id)
        self._warn_of_unknown(decision, boxes.unknown)
        if problem is None:
            self._graph.tables.extend(boxes.found_tables)
        self._graph.decisions[decision.id] = CompiledDecision(
            decision=decision,
            evaluate=evaluate if problem is None else _make_failing(problem),
            type=self._tools.types.find(decision.variable.type_ref, decision.place),
            bindings=tuple(bindings.items()),
            functions=tuple(functions.items()),
            imported=imported,
            unknown=frozenset(boxes.unknown - self._places.keys()),
        )

    def _compile_knowledge(self, model: BusinessKnowledgeModel) -> None:
        if model.logic is None or (model.logic.body is None and self._tools.problems.get_first(model.id) is None):
            self._graph.warnings.append(f"{model.place}: it has no logic, so that it gives null. Add an encapsulatedLogic.")
            self._graph.functions[model.id] = _make_failing_function(model.name, (), "it has no logic")
            return
        known = self._find_knowledge((*model.required_knowledge, model.id))
        functions, imported = self._bind_functions(known), self._bind_imported(known)
        boxes = BoxCompiler(self._tools, Visible((*functions, *(name for name, _ in imported))))
        result = self._tools.types.find(model.variable.type_ref, model.place)
        define = compile_function(boxes, model.logic, model.name, result)
        problem = self._tools.problems.get_first(model.id)
        if problem is not None:
            names = tuple(parameter.name for parameter in model.logic.parameters)
            self._graph.functions[model.id] = _make_failing_function(model.name, names, problem)
            return
        self._graph.tables.extend(boxes.found_tables)
        for name in sorted(boxes.unknown):
            self._graph.warnings.append(
                f"{model.place}: {name!r} is neither a parameter nor required, so that it is null. Add what is missing."
            )
        surroundings: Context = {}
        surrounded = _Surrounded(define(surroundings), surroundings, functions, imported, self._graph)
        self._graph.functions[model.id] = surrounded.function

    def _compile_service(self, service: DecisionService) -> None:
        graph, definitions = self._graph, self._graph.definitions
        order = graph.find_order(service.output_decisions, service.input_decisions)
        parameters = [
            *((definitions.inputs[id_].variable.name, id_, graph.input_types[id_]) for id_ in service.input_data),
            *((definitions.decisions[id_].variable.name, id_, graph.decisions[id_].type) for id_ in service.input_decisions),
        ]
        compiled = CompiledService(
            service=service,
            order=order,
            type=self._tools.types.find(service.variable.type_ref, service.place),
            parameters=tuple(parameters),
        )
        graph.services[service.id] = compiled
        graph.functions[service.id] = _make_service_function(graph, compiled)
        self._warn_of_service(compiled)

    def _warn_of_service(self, compiled: CompiledService) -> None:
        service, definitions = compiled.service, self._graph.definitions
        if not service.output_decisions:
            self._graph.warnings.append(
                f"{service.place}: it has no output decision, so that it gives null. Add an outputDecision."
            )
        given = {id_ for _, id_, _ in compiled.parameters}
        for id_ in compiled.order:
            decision = definitions.decisions[id_]
            missing = [definitions.inputs[one].name for one in decision.required_inputs if one not in given]
            if missing:
                self._graph.warnings.append(
                    f"{service.place}: decision {decision.name!r} needs {', '.join(missing)}, which it is not given: "
                    "that is null where the service is called as a function. Add it to the service's input data."
                )

    # --- names ---

    def _bind(self, required: Iterable[Element]) -> dict[str, str]:
        """Names of what a decision needs: those of the variables, of the elements, and, as Camunda has it, ids."""
        near = [element for element in required if element.id in self._near]
        bound = {element.id: element.id for element in near if element.id.isidentifier()}
        bound |= {element.name: element.id for element in near if element.name}
        return bound | {element.variable.name: element.id for element in near if element.variable.name}

    def _find_knowledge(self, ids: Iterable[str]) -> list[Element]:
        definitions = self._graph.definitions
        return _find_all(ids, {**definitions.knowledge, **definitions.services})

    def _bind_functions(self, known: Iterable[Element]) -> dict[str, str]:
        near = [element for element in known if element.id in self._near]
        bound = {element.name: element.id for element in near if element.name}
        return bound | {element.variable.name: element.id for element in near if element.variable.name}

    def _bind_imported(self, required: Iterable[Element]) -> Imported:
        """What stands behind the names of imports. DMN 6.3.3: the name of the import, a dot, the name of the element."""
        bound: dict[str, dict[str, str]] = {}
        for element in required:
            name = self._import_names.get(element.id)
            if name is not None:
                members = bound.setdefault(name, {})
                members |= {one: element.id for one in (element.name, element.variable.name) if one}
        return tuple((name, tuple(members.items())) for name, members in bound.items())

    def _warn_of_unknown(self, decision: Decision, unknown: Iterable[str]) -> None:
        for name in sorted(unknown):
            if name in self._places:
                told = f"is not required, so that it is null. Add a requirement of {self._places[name]}."
            else:
                told = (
                    "is nothing that the model knows; it is taken from the inputs. Add input data and a requirement of it."
                )
            self._graph.warnings.append(f"{decision.place}: {name!r} {told}")


SomeElement = TypeVar("SomeElement", bound=Element)


def _find_all(ids: Iterable[str], known: Mapping[str, SomeElement]) -> list[SomeElement]:
    return [known[id_] for id_ in ids if id_ in known]


def _make_failing(problem: str) -> Evaluate:
    """The value of an element whose logic cannot be used."""

    def fail(run: Run, _context: Context) -> Value:
        run.warn(f"it is null, because its logic cannot be used: {problem}")
        return None

    return fail


def _make_failing_function(name: str, parameters: tuple[str, ...], problem: str) -> Function:
    def call(_run: Run, _arguments: Sequence[Value]) -> Value:
        raise Fail(problem)

    return Function(name, parameters, call)


class _Surrounded:
    """A knowledge model's function, whose surroundings are filled at its first call: those may not be compiled yet."""

    def __init__(
        self, inner: Function, surroundings: Context, functions: dict[str, str], imported: Imported, graph: Graph
    ) -> None:
        self._inner = inner
        self._surroundings = surroundings
        self._functions = functions
        self._imported = imported
        self._graph = graph
        self.function = Function(inner.name, inner.parameters, self._call)

    def _call(self, run: Run, arguments: Sequence[Value]) -> Value:
        if not self._surroundings:
            known = self._graph.functions
            self._surroundings.update((name, known[id_]) for name, id_ in self._functions.items())
            for name, members in self._imported:
                self._surroundings[name] = {member: known[id_] for member, id_ in members}
        return self._inner.call(run, arguments)


def _make_service_function(graph: Graph, compiled: CompiledService) -> Function:
    names = tuple(name for name, _, _ in compiled.parameters)

    def call(run: Run, arguments: Sequence[Value]) -> Value:
        if len(arguments) != len(names):
            raise Fail(f"it takes {count_noun(len(names), 'argument')}, not {len(arguments)}")
        given = {
            id_: check_argument(run, name, kind, argument)
            for (name, id_, kind), argument in zip(compiled.parameters, arguments, strict=True)
        }
        return call_deeper(run, lambda _frame: run_service(graph, compiled, run, given, {}), [])

    return Function(compiled.service.name, names, call)


def run_service(graph: Graph, compiled: CompiledService, run: Run, values: dict[str, Value], undeclared: Context) -> Value:
    """What the service decides: the value of its only output decision, or a context of all of them (DMN 10.4)."""
    service = compiled.service
    if not service.output_decisions:
        run.warn(f"decision service {service.name!r} is null, because it has no output decision")
        return None
    graph.make_decisions(run, compiled.order, values, undeclared)
    if len(service.output_decisions) == 1:
        value = values[service.output_decisions[0]]
    else:
        value = {graph.definitions.decisions[id_].variable.name: values[id_] for id_ in service.output_decisions}
    return convert_to(run, value, compiled.type, f"decision service {service.name!r}")
