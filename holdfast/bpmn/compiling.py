"""From a model to a process that can run: references resolved, expressions compiled. For models that have no problems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from holdfast import feel
from holdfast.bpmn import model
from holdfast.bpmn.executable import (
    Catch,
    CodeCatch,
    CompiledJob,
    CompiledLoop,
    CompiledMapping,
    CompiledProcess,
    Container,
    EventSubProcess,
    Flow,
    Node,
    Text,
)
from holdfast.bpmn.work import (
    AssignmentWork,
    CallWork,
    CatchWork,
    DecisionWork,
    ErrorWork,
    EscalationWork,
    EventBasedWork,
    ExclusiveWork,
    LinkWork,
    MessageWork,
    ParallelWork,
    PassWork,
    ScriptWork,
    SignalWork,
    SubProcessWork,
    TerminateWork,
    UserWork,
)
from holdfast.core.times.specs import AnySpec, make_spec
from holdfast.errors import InvalidProcess, InvalidSchedule

_PATH: Final = re.compile(r"\s*=?\s*([^\W\d]\w*)(\s*\.\s*[^\W\d]\w*)*\s*")
_WORDS: Final = frozenset({"true", "false", "null"})
_WITHOUT_TOKENS: Final = (model.BoundaryEvent,)


def compile_process(definitions: model.Definitions, process_id: str) -> CompiledProcess:
    """Make a process of a file ready to run. Raises InvalidProcess if the file has none with that id."""
    for process in definitions.processes:
        if process.id == process_id:
            return _Compiler(definitions).compile(process)
    raise InvalidProcess(
        f"Expected a process '{process_id}' in {definitions.file}, but there is none. Deploy the file again."
    )


class _Compiler:
    """Compiles one process of a file."""

    def __init__(self, definitions: model.Definitions) -> None:
        self._file = definitions
        self._nodes: dict[str, Node] = {}
        self._flows: dict[str, Flow] = {}

    def compile(self, process: model.Process) -> CompiledProcess:
        """Compile one process of the file: its nodes, flows and expressions."""
        container = self._compile_container(process, process.id, process.name)
        starts = {one.id: one for one in container.nodes.values() if isinstance(one.element, model.StartEvent)}
        return CompiledProcess(process.id, process.name, container, self._nodes, self._flows, starts, len(self._nodes))

    # --- containers ---

    def _compile_container(self, holder: model.AnyContainer, id_: str, name: str) -> Container:
        container = Container(id_, name)
        for element in holder.nodes:
            node = Node(element.id, element.name, element, container)
            container.nodes[element.id] = self._nodes[element.id] = node
        self._connect(holder, container)
        for node in container.nodes.values():
            self._fill(node)
        self._attach_boundaries(container)
        self._collect_event_sub_processes(container)
        container.links = {
            definition.name: node
            for node in container.nodes.values()
            if isinstance(node.element, model.IntermediateCatchEvent)
            for definition in node.element.definitions
            if isinstance(definition, model.LinkEventDefinition)
        }
        container.initial = tuple(_find_initial(container))
        return container

    def _connect(self, holder: model.AnyContainer, container: Container) -> None:
        outgoing: dict[str, list[Flow]] = {}
        incoming: dict[str, list[str]] = {}
        for flow in holder.flows:
            source, target = container.nodes.get(flow.source), container.nodes.get(flow.target)
            if source is None or target is None:
                continue
            default = getattr(source.element, "default", "")
            condition = None if flow.condition is None else self._compile_expression(flow.condition)
            made = Flow(flow.id, target, condition, flow.id == default)
            self._flows[flow.id] = made
            outgoing.setdefault(flow.source, []).append(made)
            incoming.setdefault(flow.target, []).append(flow.id)
        for id_, node in container.nodes.items():
            node.outgoing = tuple(outgoing.get(id_, ()))
            node.incoming = tuple(incoming.get(id_, ()))
            node.flow_ids = tuple(flow.id for flow in node.outgoing)
            if isinstance(node.element, model.ExclusiveGateway):
                node.has_choice = len(node.outgoing) > 1 or any(flow.condition is not None for flow in node.outgoing)
            elif not isinstance(node.element, model.ParallelGateway | model.EventBasedGateway):
                node.has_choice = any(flow.condition is not None or flow.is_default for flow in node.outgoing)

    def _attach_boundaries(self, container: Container) -> None:
        catches: dict[str, list[Catch]] = {}
        errors: dict[str, list[CodeCatch]] = {}
        escalations: dict[str, list[CodeCatch]] = {}
        for node in container.nodes.values():
            element = node.element
            if not isinstance(element, model.BoundaryEvent):
                continue
            self._add_catch(
                node, element.definitions, is_interrupting=element.cancel_activity,
                catches=catches.setdefault(element.attached_to, []),
                errors=errors.setdefault(element.attached_to, []),
                escalations=escalations.setdefault(element.attached_to, []),
            )  # fmt: skip
        for host in container.nodes.values():
            host.boundaries = tuple(catches.get(host.id, ()))
            host.errors = _specific_first(errors.get(host.id, ()))
            host.escalations = _specific_first(escalations.get(host.id, ()))

    def _collect_event_sub_processes(self, container: Container) -> None:
        catches: list[Catch] = []
        errors: list[CodeCatch] = []
        escalations: list[CodeCatch] = []
        for node in container.nodes.values():
            if not (isinstance(node.element, model.SubProcess) and node.element.triggered_by_event) or node.inner is None:
                continue
            for start in node.inner.nodes.values():
                if isinstance(start.element, model.StartEvent):
                    is_interrupting = start.element.is_interrupting
                    container.event_sub_processes[start.id] = EventSubProcess(node, start, is_interrupting)
                    self._add_catch(
                        start, start.element.definitions, is_interrupting=is_interrupting,
                        catches=catches, errors=errors, escalations=escalations,
                    )  # fmt: skip
        container.catches = tuple(catches)
        container.errors = _specific_first(errors)
        container.escalations = _specific_first(escalations)

    def _add_catch(
        self,
        node: Node,
        definitions: Iterable[model.AnyEventDefinition],
        *,
        is_interrupting: bool,
        catches: list[Catch],
        errors: list[CodeCatch],
        escalations: list[CodeCatch],
    ) -> None:
        for definition in definitions:
            if isinstance(definition, model.ErrorEventDefinition):
                error = self._file.errors.get(definition.error)
                code = "" if error is None else error.code
                names = definition.code_variable, definition.message_variable
                errors.append(CodeCatch(node, code, is_interrupting=True, code_variable=names[0], message_variable=names[1]))
            elif isinstance(definition, model.EscalationEventDefinition):
                escalation = self._file.escalations.get(definition.escalation)
                code = "" if escalation is None else escalation.code
                escalations.append(CodeCatch(node, code, is_interrupting, definition.code_variable))
            else:
                catch = self._make_catch(node, definition)
                if catch is not None:
                    catch.is_interrupting = is_interrupting
                    node.catch = catch
                    catches.append(catch)

    # --- nodes ---

    def _fill(self, node: Node) -> None:
        element = node.element
        if element.mappings is not None:
            node.inputs = tuple(self._compile_mapping(one) for one in element.mappings.inputs)
            node.outputs = tuple(self._compile_mapping(one) for one in element.mappings.outputs)
        if isinstance(element, model.Activity) and isinstance(element.loop, model.Loop):
            node.loop = self._compile_loop(element.loop)
        if isinstance(element, model.SubProcess):
            node.inner = self._compile_container(element, element.id, element.name)
            node.work = SubProcessWork()
            return
        match element:
            case model.ServiceTask() | model.ScriptTask() | model.BusinessRuleTask() | model.SendTask():
                node.work = self._compile_task(element)
            case model.ReceiveTask():
                node.catch, node.work = self._catch_message(node, element.message), CatchWork()
            case model.UserTask():
                node.work = self._compile_job(element.job) if element.job is not None else self._compile_user(element)
            case model.CallActivity() if element.called is not None:
                called = element.called
                node.work = CallWork(
                    self._compile_text(called.process),
                    called.binding,
                    called.version_tag,
                    called.propagates_all_parent_variables,
                    called.propagates_all_child_variables,
                )
            case model.IntermediateCatchEvent():
                for definition in element.definitions:
                    node.catch = self._make_catch(node, definition)
                node.work = PassWork() if node.catch is None else CatchWork()
            case model.IntermediateThrowEvent() | model.EndEvent():
                node.work = self._compile_throw(element)
            case model.ExclusiveGateway():
                node.work = ExclusiveWork()
            case model.ParallelGateway():
                node.work = ParallelWork()
            case model.EventBasedGateway():
                node.work = EventBasedWork()
            case _:
                node.work = PassWork()

    def _compile_task(
        self, element: model.ServiceTask | model.ScriptTask | model.BusinessRuleTask | model.SendTask
    ) -> CompiledJob | ScriptWork | DecisionWork | MessageWork | PassWork:
        if element.job is not None:
            return self._compile_job(element.job)
        if (script := element.script) is not None:
            return ScriptWork(self._compile_text(script.expression), script.result_variable)
        if isinstance(element, model.SendTask):
            return self._send_message(element.message)
        if isinstance(element, model.BusinessRuleTask) and (called := element.decision) is not None:
            return DecisionWork(
                self._compile_text(called.decision), called.result_variable, called.binding, called.version_tag
            )
        return PassWork()

    def _compile_throw(
        self, element: model.IntermediateThrowEvent | model.EndEvent
    ) -> CompiledJob | MessageWork | SignalWork | ErrorWork | EscalationWork | TerminateWork | LinkWork | PassWork:
        if element.job is not None:
            return self._compile_job(element.job)
        for definition in element.definitions:
            match definition:
                case model.MessageEventDefinition():
                    return self._send_message(definition.message)
                case model.SignalEventDefinition():
                    return SignalWork(self._name_of(self._file.signals.get(definition.signal)))
                case model.ErrorEventDefinition():
                    error = self._file.errors.get(definition.error)
                    return ErrorWork("" if error is None else error.code, "" if error is None else error.name)
                case model.EscalationEventDefinition():
                    escalation = self._file.escalations.get(definition.escalation)
                    return EscalationWork("" if escalation is None else escalation.code)
                case model.TerminateEventDefinition():
                    return TerminateWork()
                case model.LinkEventDefinition():
                    return LinkWork(definition.name)
                case _:
                    pass
        return PassWork()

    def _compile_user(self, element: model.UserTask) -> UserWork:
        given = element.assignment
        form = element.form
        return UserWork(
            AssignmentWork(
                self._compile_optional(given.assignee),
                self._compile_optional(given.candidate_groups),
                self._compile_optional(given.candidate_users),
                self._compile_optional(given.due_date),
                self._compile_optional(given.follow_up_date),
                self._compile_optional(given.priority),
            ),
            "" if form is None else form.form_id,
            "" if form is None else form.form_key,
            "" if form is None else form.embedded,
        )

    def _compile_job(self, job: model.Job) -> CompiledJob:
        return CompiledJob(
            self._compile_text(job.type), self._compile_optional(job.retries), job.headers, job.result_variable
        )

    def _compile_loop(self, loop: model.Loop) -> CompiledLoop:
        return CompiledLoop(
            loop.is_sequential,
            None if loop.cardinality is None else self._compile_expression(loop.cardinality),
            self._compile_optional(loop.input_collection),
            loop.input_element,
            loop.output_collection,
            self._compile_optional(loop.output_element),
            "" if loop.output_element is None else _find_variable(loop.output_element.text),
            None if loop.completion_condition is None else self._compile_expression(loop.completion_condition),
        )

    # --- events ---

    def _make_catch(self, node: Node, definition: model.AnyEventDefinition) -> Catch | None:
        match definition:
            case model.TimerEventDefinition(when=when) if when is not None:
                text = self._compile_text(when)
                spec = None if text.expression is not None else _read_time(text.text)
                return Catch(node, "timer", timer_kind=definition.kind, when=text, spec=spec)
            case model.MessageEventDefinition():
                return self._catch_message(node, definition.message)
            case model.SignalEventDefinition():
                return Catch(node, "broadcast", name=self._name_of(self._file.signals.get(definition.signal)))
            case _:
                return None

    def _catch_message(self, node: Node, message_id: str) -> Catch:
        message = self._file.messages.get(message_id)
        key = None if message is None or message.correlation_key is None else message.correlation_key
        return Catch(node, "message", name=self._name_of(message), key=self._compile_optional(key))

    def _send_message(self, message_id: str) -> MessageWork:
        message = self._file.messages.get(message_id)
        key = None if message is None or message.correlation_key is None else message.correlation_key
        return MessageWork(self._name_of(message), self._compile_optional(key))

    def _name_of(self, declared: model.Message | model.Signal | None) -> Text:
        if declared is None:
            return Text("")
        return Text(declared.name or declared.id) if declared.title is None else self._compile_text(declared.title)

    # --- expressions ---

    def _compile_mapping(self, mapping: model.Mapping) -> CompiledMapping:
        return CompiledMapping(self._compile_text(mapping.source), tuple(mapping.target.split(".")))

    def _compile_optional(self, given: model.Expression | None) -> Text | None:
        return None if given is None else self._compile_text(given)

    def _compile_text(self, given: model.Expression) -> Text:
        return Text(given.text) if given.is_static else Text(given.text, self._compile_expression(given))

    def _compile_expression(self, given: model.Expression) -> feel.Expression:
        return feel.compile(given.text)


def _read_time(text: str) -> AnySpec | None:
    try:
        return make_spec(text)
    except InvalidSchedule:
        return None  # an incident, or a problem that was found before


def _find_variable(text: str) -> str:
    """The variable of an expression that is a name, or the way to an entry of a context; empty if it is anything else."""
    found = _PATH.fullmatch(text)
    return "" if found is None or found[1] in _WORDS else found[1]


def _specific_first(catches: Iterable[CodeCatch]) -> tuple[CodeCatch, ...]:
    return tuple(sorted(catches, key=lambda one: not one.code))


def _find_initial(container: Container) -> Iterator[Node]:
    """Start events without a trigger; where there is no start event, all that has no incoming flow (13.3.4 of BPMN 2.0)."""
    starts = [one for one in container.nodes.values() if isinstance(one.element, model.StartEvent)]
    if starts:
        yield from (one for one in starts if isinstance(one.element, model.StartEvent) and not one.element.definitions)
        return
    for node in container.nodes.values():
        element = node.element
        if node.incoming or isinstance(element, _WITHOUT_TOKENS):
            continue
        if isinstance(element, model.Activity) and element.is_for_compensation:
            continue
        if isinstance(element, model.SubProcess) and element.triggered_by_event:
            continue
        if isinstance(element, model.IntermediateCatchEvent) and any(
            isinstance(one, model.LinkEventDefinition) for one in element.definitions
        ):
            continue
        yield node
