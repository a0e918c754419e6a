"""What a BPMN file says, as frozen values in BPMN's own words. Readers make them, checks and the compiler read them.

Values hold ids where the file holds references: nothing here points at another element, so that a model with mistakes in it
can be held, and all of them be told. `line` is where an element begins in its file.

Expressions are FEEL by the time they are here, whatever the file was written for: JUEL was translated by its reader.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import field

from holdfast.bpmn import model_drawings, model_roots

Value: TypeAlias = model_roots.Value
Expression: TypeAlias = model_roots.Expression
Element: TypeAlias = model_roots.Element
Bounds: TypeAlias = model_drawings.Bounds
Shape: TypeAlias = model_drawings.Shape
Edge: TypeAlias = model_drawings.Edge
Diagram: TypeAlias = model_drawings.Diagram


# --- what a file declares beside its processes -----------------------------------------------------------------------------


class Message(Element, frozen=True, kw_only=True):
    """A message that events and tasks refer to by its id; it is published under its name."""

    title: Expression | None = None
    """Its name where that is an expression (`=…`): evaluated when a wait begins, or when it is thrown."""
    correlation_key: Expression | None = None
    """None: the key is the workflow id of the execution."""


class Signal(Element, frozen=True, kw_only=True):
    """A broadcast signal that events refer to by its id; it is published under its name."""

    title: Expression | None = None


class Error(Element, frozen=True, kw_only=True):
    """An error that events refer to by its id, and that is matched by its code."""

    code: str = ""
    code_expression: Expression | None = None
    """Its code where that is an expression (`=…`): evaluated when it is thrown. Events that catch it need a constant."""


class Escalation(Element, frozen=True, kw_only=True):
    """An escalation that events refer to by its id, and that is matched by its code."""

    code: str = ""
    code_expression: Expression | None = None
    """Its code where that is an expression (`=…`): evaluated when it is thrown. Events that catch it need a constant."""


# --- event definitions -----------------------------------------------------------------------------------------------------


class EventDefinition(Value, frozen=True, kw_only=True):
    """The root of what an event catches or throws. An event without one is a none event."""

    id: str = ""
    line: int = 0


class MessageEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """A message is caught or thrown."""

    message: str = ""
    """The id of the message; empty if the file names none."""


class TimerKind(StrEnum):
    """In which of BPMN's three ways a timer says when it fires."""

    DURATION = "timeDuration"
    DATE = "timeDate"
    CYCLE = "timeCycle"


class TimerEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """A timer that fires at a time."""

    kind: TimerKind | None = None
    """None if the file says none: that is a problem."""
    when: Expression | None = None


class SignalEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """A broadcast signal is caught or thrown."""

    signal: str = ""
    """The id of the signal; empty if the file names none."""


class ErrorEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """An error is caught or thrown."""

    error: str = ""
    """The id of the error; empty: every error is caught."""
    code_variable: str = ""
    message_variable: str = ""


class EscalationEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """An escalation is caught or thrown."""

    escalation: str = ""
    """The id of the escalation; empty: every escalation is caught."""
    code_variable: str = ""


class TerminateEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """Everything in the scope of the end event ends."""


class LinkEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """An edge to the catching event of the same name in the same scope."""

    name: str = ""


class ConditionalEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """A condition that is awaited to become true."""

    condition: Expression | None = None


class CompensateEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """What completed activities did is undone."""

    activity: str = ""
    """The id of the activity to compensate; empty: everything in the scope."""


class CancelEventDefinition(EventDefinition, frozen=True, kw_only=True):
    """A transaction is cancelled, or was."""


AnyEventDefinition: TypeAlias = (
    MessageEventDefinition
    | TimerEventDefinition
    | SignalEventDefinition
    | ErrorEventDefinition
    | EscalationEventDefinition
    | TerminateEventDefinition
    | LinkEventDefinition
    | ConditionalEventDefinition
    | CompensateEventDefinition
    | CancelEventDefinition
)


# --- what nodes are given beside their kind --------------------------------------------------------------------------------


class Mapping(Value, frozen=True, kw_only=True):
    """One input or output mapping: the value of an expression goes to a variable."""

    source: Expression
    target: str
    """A name, or a path of names with dots: then a context is made or changed."""
    line: int = 0


class Mappings(Value, frozen=True, kw_only=True):
    """The input and output mappings of an element."""

    inputs: tuple[Mapping, ...] = ()
    outputs: tuple[Mapping, ...] = ()


class Job(Value, frozen=True, kw_only=True):
    """Work for an activity: the type is the activity's name."""

    type: Expression
    retries: Expression | None = None
    """How many attempts there are in all; None: as the activity says."""
    headers: dict[str, str] = field(default_factory=dict)
    """`zeebe:taskHeaders`: constants that the activity is given beside the variables."""
    result_variable: str = ""
    """Where the whole result goes, if it is not merged by its names (Camunda 7's `camunda:resultVariable`)."""


class Script(Value, frozen=True, kw_only=True):
    """A FEEL script: its value goes to the result variable."""

    expression: Expression
    result_variable: str = ""
    """Empty: a context is merged by its names, anything else is dropped."""


class Binding(StrEnum):
    """Which version of what is called by its id is meant."""

    LATEST = "latest"
    DEPLOYMENT = "deployment"
    VERSION_TAG = "versionTag"


class CalledDecision(Value, frozen=True, kw_only=True):
    """A DMN decision that a business rule task evaluates."""

    decision: Expression
    result_variable: str = ""
    binding: Binding = Binding.LATEST
    version_tag: str = ""


class CalledElement(Value, frozen=True, kw_only=True):
    """The process or code workflow that a call activity starts."""

    process: Expression
    binding: Binding = Binding.LATEST
    version_tag: str = ""
    propagates_all_parent_variables: bool = True
    """Whether the child gets every visible variable, beside what the input mappings make."""
    propagates_all_child_variables: bool = True
    """Whether every variable of the child is merged, where there are no output mappings."""


class Assignment(Value, frozen=True, kw_only=True):
    """Who does a user task, and when."""

    assignee: Expression | None = None
    candidate_groups: Expression | None = None
    """A list of texts, or a text with commas where it is static."""
    candidate_users: Expression | None = None
    due_date: Expression | None = None
    follow_up_date: Expression | None = None
    priority: Expression | None = None


class FormDefinition(Value, frozen=True, kw_only=True):
    """The form of a user task: an id of a linked form, a key of somebody else's, or a JSON text embedded in the process."""

    form_id: str = ""
    form_key: str = ""
    embedded: str = ""


class ComplexBehavior(Value, frozen=True, kw_only=True):
    """What a multi-instance activity throws when one of its instances ends and a condition holds."""

    condition: Expression | None = None
    event: AnyEventDefinition | None = None


class Loop(Value, frozen=True, kw_only=True):
    """Multi-instance: the activity runs once for each item, or so many times."""

    is_sequential: bool = False
    cardinality: Expression | None = None
    input_collection: Expression | None = None
    input_element: str = ""
    output_collection: str = ""
    output_element: Expression | None = None
    completion_condition: Expression | None = None
    behavior: str = ""
    """BPMN's own `behavior`; empty or `All` needs nothing to be thrown."""
    one_event: AnyEventDefinition | None = None
    """With the behavior `One`: thrown when the first instance ends."""
    none_event: AnyEventDefinition | None = None
    """With the behavior `None`: thrown whenever an instance ends."""
    complex_behaviors: tuple[ComplexBehavior, ...] = ()
    line: int = 0


class StandardLoop(Value, frozen=True, kw_only=True):
    """The activity is repeated while a condition holds."""

    condition: Expression | None = None
    tests_before: bool = False
    maximum: int | None = None
    line: int = 0


class Listener(Value, frozen=True, kw_only=True):
    """An execution or task listener: a job at the beginning or the end of an element."""

    event: str
    type: str
    retries: str = ""
    line: int = 0


# --- flow nodes ------------------------------------------------------------------------------------------------------------


class FlowNode(Element, frozen=True, kw_only=True):
    """The root of what tokens go through. Incoming and outgoing flows are found by the flows' own ends."""

    mappings: Mappings | None = None
    listeners: tuple[Listener, ...] = ()


class StartEvent(FlowNode, frozen=True, kw_only=True):
    """Where a process or sub-process begins."""

    definitions: tuple[AnyEventDefinition, ...] = ()
    is_interrupting: bool = True
    """Of the start of an event sub-process."""
    is_parallel_multiple: bool = False


class IntermediateCatchEvent(FlowNode, frozen=True, kw_only=True):
    """An event at which a token waits."""

    definitions: tuple[AnyEventDefinition, ...] = ()
    is_parallel_multiple: bool = False


class IntermediateThrowEvent(FlowNode, frozen=True, kw_only=True):
    """Something is thrown as a token passes."""

    definitions: tuple[AnyEventDefinition, ...] = ()
    job: Job | None = None
    """A message that an activity sends, as in Camunda 8; None: the engine publishes it."""


class EndEvent(FlowNode, frozen=True, kw_only=True):
    """An event at which a token ends."""

    definitions: tuple[AnyEventDefinition, ...] = ()
    job: Job | None = None


class BoundaryEvent(FlowNode, frozen=True, kw_only=True):
    """An event that is attached to an activity, its host, and caught while that is active."""

    attached_to: str = ""
    cancel_activity: bool = True
    definitions: tuple[AnyEventDefinition, ...] = ()
    is_parallel_multiple: bool = False


class Activity(FlowNode, frozen=True, kw_only=True):
    """The root of tasks, sub-processes and call activities: they can be looped, and have boundary events."""

    loop: Loop | StandardLoop | None = None
    default: str = ""
    """The id of its default flow."""
    is_for_compensation: bool = False
    start_quantity: int = 1
    completion_quantity: int = 1


class Task(Activity, frozen=True, kw_only=True):
    """An undefined task: a token passes."""


class ManualTask(Activity, frozen=True, kw_only=True):
    """Something that somebody does without the engine: a token passes."""


class ServiceTask(Activity, frozen=True, kw_only=True):
    """A task that an activity of the engine does, or an expression, as with `camunda:expression`."""

    job: Job | None = None
    implementation: str = ""
    script: Script | None = None


class SendTask(Activity, frozen=True, kw_only=True):
    """A message is sent: by an activity, or published by the engine; or a script runs."""

    job: Job | None = None
    message: str = ""
    implementation: str = ""
    script: Script | None = None


class ReceiveTask(Activity, frozen=True, kw_only=True):
    """A task that waits for a message."""

    message: str = ""
    instantiate: bool = False


class UserTask(Activity, frozen=True, kw_only=True):
    """A task that a person does; with a job, an activity does it: Camunda 8's older user tasks."""

    assignment: Assignment = Assignment()
    form: FormDefinition | None = None
    job: Job | None = None


class ScriptTask(Activity, frozen=True, kw_only=True):
    """A FEEL expression, or an activity."""

    script: Script | None = None
    job: Job | None = None
    script_format: str = ""


class BusinessRuleTask(Activity, frozen=True, kw_only=True):
    """A DMN decision, an activity, or a script."""

    decision: CalledDecision | None = None
    job: Job | None = None
    implementation: str = ""
    script: Script | None = None


class CallActivity(Activity, frozen=True, kw_only=True):
    """Another process or a code workflow, as a child execution."""

    called: CalledElement | None = None


class Gateway(FlowNode, frozen=True, kw_only=True):
    """The root of all kinds of gateways."""

    direction: str = ""
    """BPMN's own `gatewayDirection`: `Diverging`, `Converging`, `Mixed`, `Unspecified`, or empty."""


class ExclusiveGateway(Gateway, frozen=True, kw_only=True):
    """One flow is taken: the first whose condition holds, else the default one."""

    default: str = ""


class ParallelGateway(Gateway, frozen=True, kw_only=True):
    """All flows are taken once a token has come by each incoming one."""


class InclusiveGateway(Gateway, frozen=True, kw_only=True):
    """Each flow whose condition holds is taken once no more tokens can come."""

    default: str = ""


class EventBasedGateway(Gateway, frozen=True, kw_only=True):
    """The flow is taken whose event comes first."""

    instantiate: bool = False
    is_parallel: bool = False


class ComplexGateway(Gateway, frozen=True, kw_only=True):
    """An activation condition says how many tokens it takes."""

    default: str = ""
    activation_condition: Expression | None = None


# --- containers ------------------------------------------------------------------------------------------------------------


class SequenceFlow(Element, frozen=True, kw_only=True):
    """An edge between two nodes of one container."""

    source: str
    target: str
    condition: Expression | None = None


class Association(Element, frozen=True, kw_only=True):
    """A dotted line: to an annotation, or from a compensation boundary to its handler."""

    source: str = ""
    target: str = ""
    direction: str = ""


class Annotation(Element, frozen=True, kw_only=True):
    """A text that is written beside elements."""

    text: str = ""


class DataObject(Element, frozen=True, kw_only=True):
    """A data object or store, or a reference to one; kept for drawings, without effect on execution."""

    kind: str
    """The name of the XML element."""
    references: str = ""


class Lane(Element, frozen=True, kw_only=True):
    """A lane of a pool: who does what, for people."""

    nodes: tuple[str, ...] = ()
    lanes: tuple[Lane, ...] = ()


class SubProcess(Activity, frozen=True, kw_only=True):
    """A container that is an activity itself; with `triggered_by_event` it is an event sub-process of its container."""

    nodes: tuple[AnyNode, ...] = ()
    flows: tuple[SequenceFlow, ...] = ()
    associations: tuple[Association, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    data_objects: tuple[DataObject, ...] = ()
    lanes: tuple[Lane, ...] = ()
    triggered_by_event: bool = False


class Transaction(SubProcess, frozen=True, kw_only=True):
    """A sub-process that can be cancelled."""


class AdHocSubProcess(SubProcess, frozen=True, kw_only=True):
    """A sub-process whose elements are activated one by one."""

    is_sequential: bool = False
    completion_condition: Expression | None = None
    cancels_remaining: bool = True
    active_elements: Expression | None = None
    job: Job | None = None


class UnknownNode(FlowNode, frozen=True, kw_only=True):
    """A flow node of a kind that we have no word for: always a problem."""

    tag: str


class Process(Element, frozen=True, kw_only=True):
    """One process of a file, with its content."""

    is_executable: bool = False
    version_tag: str = ""
    nodes: tuple[AnyNode, ...] = ()
    flows: tuple[SequenceFlow, ...] = ()
    associations: tuple[Association, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    data_objects: tuple[DataObject, ...] = ()
    lanes: tuple[Lane, ...] = ()
    listeners: tuple[Listener, ...] = ()


AnyNode: TypeAlias = (
    StartEvent
    | IntermediateCatchEvent
    | IntermediateThrowEvent
    | EndEvent
    | BoundaryEvent
    | Task
    | ManualTask
    | ServiceTask
    | SendTask
    | ReceiveTask
    | UserTask
    | ScriptTask
    | BusinessRuleTask
    | CallActivity
    | ExclusiveGateway
    | ParallelGateway
    | InclusiveGateway
    | EventBasedGateway
    | ComplexGateway
    | SubProcess
    | Transaction
    | AdHocSubProcess
    | UnknownNode
)
AnyContainer: TypeAlias = Process | SubProcess


# --- the whole file --------------------------------------------------------------------------------------------------------


class Participant(Element, frozen=True, kw_only=True):
    """A pool; its process is empty where it is a black box."""

    process: str = ""


class MessageFlow(Element, frozen=True, kw_only=True):
    """A dashed line between pools, for people."""

    source: str = ""
    target: str = ""


class Definitions(Value, frozen=True, kw_only=True):
    """One BPMN file with all that it declares."""

    file: str
    id: str = ""
    name: str = ""
    target_namespace: str = ""
    exporter: str = ""
    processes: tuple[Process, ...] = ()
    messages: dict[str, Message] = field(default_factory=dict)
    signals: dict[str, Signal] = field(default_factory=dict)
    errors: dict[str, Error] = field(default_factory=dict)
    escalations: dict[str, Escalation] = field(default_factory=dict)
    participants: tuple[Participant, ...] = ()
    message_flows: tuple[MessageFlow, ...] = ()
    diagrams: tuple[Diagram, ...] = ()
    dialect: str = ""
    """For what it was made: `camunda-8`, `camunda-7` (which Activiti and Flowable share), or empty for plain BPMN."""
