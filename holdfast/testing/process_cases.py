"""Test cases of processes as JSON, in the form of Camunda Process Test: what a case does and expects, as values.

A file is `{"testCases": [{"name": …, "instructions": [{"type": "CREATE_PROCESS_INSTANCE", …}, …]}]}`. Beside that, it may
name the files to deploy (`"resources": ["order.bpmn"]`, relative to itself). An instruction, a field of one or a value that
is not known here fails the file: nothing that a case says is left out in silence. `process_runs` carries cases out.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.errors import InvalidArguments

Variables: TypeAlias = dict[str, Any]
_TYPE: Final = re.compile(r"Invalid value '(.*)' - at `\$\.testCases\[(\d+)\]\.instructions\[(\d+)\]\.type`")
_PLACE: Final = re.compile(r" - at `\$\.testCases\[(\d+)\]\.instructions\[(\d+)\](.*)`$")


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The root of all parts of a case."""


# --- selectors ---


class ProcessSelector(Part, frozen=True, kw_only=True):
    """A process, and of its instances the one that began last."""

    process_definition_id: str


class ElementSelector(Part, frozen=True, kw_only=True):
    """An element of a process, by its id or its name."""

    element_id: str | None = None
    element_name: str | None = None


class JobSelector(Part, frozen=True, kw_only=True):
    """A job that waits for its worker: the oldest that has all that is named."""

    job_type: str | None = None
    element_id: str | None = None
    process_definition_id: str | None = None


class UserTaskSelector(Part, frozen=True, kw_only=True):
    """A user task: the oldest that has all that is named."""

    element_id: str | None = None
    task_name: str | None = None
    process_definition_id: str | None = None


class IncidentSelector(Part, frozen=True, kw_only=True):
    """An incident that is open: the oldest that has all that is named."""

    element_id: str | None = None
    process_definition_id: str | None = None


class MessageSelector(Part, frozen=True, kw_only=True):
    """A wait for a message, by its name and perhaps its key."""

    message_name: str
    correlation_key: str | None = None


class DecisionSelector(Part, frozen=True, kw_only=True):
    """A decision of a deployed model."""

    decision_definition_id: str | None = None
    decision_definition_name: str | None = None


# --- what is expected ---


class ProcessState(StrEnum):
    """What an instance of a process is expected to be."""

    ACTIVE = "IS_ACTIVE"
    COMPLETED = "IS_COMPLETED"
    CREATED = "IS_CREATED"
    TERMINATED = "IS_TERMINATED"


class ElementState(StrEnum):
    """What an element is expected to be."""

    ACTIVE = "IS_ACTIVE"
    COMPLETED = "IS_COMPLETED"
    TERMINATED = "IS_TERMINATED"


class ElementsState(StrEnum):
    """What several elements are expected to be."""

    ACTIVE = "IS_ACTIVE"
    COMPLETED = "IS_COMPLETED"
    TERMINATED = "IS_TERMINATED"
    NOT_ACTIVE = "IS_NOT_ACTIVE"
    NOT_ACTIVATED = "IS_NOT_ACTIVATED"
    ACTIVE_EXACTLY = "IS_ACTIVE_EXACTLY"
    COMPLETED_IN_ORDER = "IS_COMPLETED_IN_ORDER"


class UserTaskState(StrEnum):
    """What a user task is expected to be."""

    CREATED = "IS_CREATED"
    COMPLETED = "IS_COMPLETED"
    CANCELED = "IS_CANCELED"
    FAILED = "IS_FAILED"


class SubscriptionState(StrEnum):
    """What a wait for a message is expected to be."""

    WAITING = "IS_WAITING"
    NOT_WAITING = "IS_NOT_WAITING"
    CORRELATED = "IS_CORRELATED"


# --- instructions ---


class Instruction(Part, frozen=True, kw_only=True, tag_field="type"):
    """The root of all instructions of a case."""


class StartInstruction(Part, frozen=True, kw_only=True):
    """Where an instance begins, if not at its start event."""

    element_id: str


class RuntimeInstruction(Part, frozen=True, kw_only=True):
    """An order to end an instance once an element has completed."""

    type: str
    after_element_id: str


class CreateProcessInstance(Instruction, frozen=True, kw_only=True, tag="CREATE_PROCESS_INSTANCE"):
    """Start a process, at its start event without a trigger."""

    process_definition_selector: ProcessSelector
    variables: Variables = {}
    start_instructions: tuple[StartInstruction, ...] = ()
    runtime_instructions: tuple[RuntimeInstruction, ...] = ()


class CompleteJob(Instruction, frozen=True, kw_only=True, tag="COMPLETE_JOB"):
    """Let a job return these variables, or those that the modeler keeps as the element's example."""

    job_selector: JobSelector
    variables: Variables = {}
    use_example_data: bool = False


class ThrowBpmnErrorFromJob(Instruction, frozen=True, kw_only=True, tag="THROW_BPMN_ERROR_FROM_JOB"):
    """Let a job throw a BPMN error."""

    job_selector: JobSelector
    error_code: str
    error_message: str = ""
    variables: Variables = {}


class FailJob(Instruction, frozen=True, kw_only=True, tag="FAIL_JOB"):
    """Let a job fail for good: an incident follows. Camunda has no such instruction."""

    job_selector: JobSelector
    error_message: str = "the job failed"


class MockJobWorkerCompleteJob(Instruction, frozen=True, kw_only=True, tag="MOCK_JOB_WORKER_COMPLETE_JOB"):
    """Let all jobs of a type return these variables from now on."""

    job_type: str
    variables: Variables = {}
    use_example_data: bool = False


class MockJobWorkerThrowBpmnError(Instruction, frozen=True, kw_only=True, tag="MOCK_JOB_WORKER_THROW_BPMN_ERROR"):
    """Let all jobs of a type throw a BPMN error from now on."""

    job_type: str
    error_code: str
    error_message: str = ""
    variables: Variables = {}


class MockChildProcess(Instruction, frozen=True, kw_only=True, tag="MOCK_CHILD_PROCESS"):
    """Deploy, in the place of a process, one that completes at once with these variables."""

    process_definition_id: str
    variables: Variables = {}


class MockDmnDecision(Instruction, frozen=True, kw_only=True, tag="MOCK_DMN_DECISION"):
    """Deploy, in the place of a decision, one that always gives this."""

    decision_definition_id: str
    variables: Any = None
    output: Any = msgspec.UNSET


class PublishMessage(Instruction, frozen=True, kw_only=True, tag="PUBLISH_MESSAGE"):
    """Send a message, which is kept if nobody waits for it and it may live so long."""

    name: str
    correlation_key: str = ""
    variables: Variables = {}
    time_to_live: int = 3_600_000
    """In milliseconds."""
    message_id: str = ""


class CorrelateMessage(Instruction, frozen=True, kw_only=True, tag="CORRELATE_MESSAGE"):
    """Send a message for which somebody waits, or that starts a process; the case fails if nobody does."""

    name: str
    correlation_key: str = ""
    variables: Variables = {}


class BroadcastSignal(Instruction, frozen=True, kw_only=True, tag="BROADCAST_SIGNAL"):
    """Throw a signal for everybody who waits for it."""

    signal_name: str
    variables: Variables = {}


class CompleteUserTask(Instruction, frozen=True, kw_only=True, tag="COMPLETE_USER_TASK"):
    """Let whoever has a user task complete it."""

    user_task_selector: UserTaskSelector
    variables: Variables = {}
    use_example_data: bool = False


class IncreaseTime(Instruction, frozen=True, kw_only=True, tag="INCREASE_TIME"):
    """Let time pass: everything that comes due meanwhile fires, in its order."""

    duration: str


class SetTime(Instruction, frozen=True, kw_only=True, tag="SET_TIME"):
    """Let time pass until a moment. It does not go back."""

    time: str


class UpdateVariables(Instruction, frozen=True, kw_only=True, tag="UPDATE_VARIABLES"):
    """Set variables of an instance, or local ones of an element that is active."""

    process_instance_selector: ProcessSelector
    variables: Variables
    element_selector: ElementSelector | None = None


class ResolveIncident(Instruction, frozen=True, kw_only=True, tag="RESOLVE_INCIDENT"):
    """Let an element try again what failed."""

    incident_selector: IncidentSelector


class EvaluateDecision(Instruction, frozen=True, kw_only=True, tag="EVALUATE_DECISION"):
    """Evaluate a decision by itself, for ASSERT_DECISION to look at."""

    decision_definition_selector: DecisionSelector
    variables: Variables = {}


class AssertProcessInstance(Instruction, frozen=True, kw_only=True, tag="ASSERT_PROCESS_INSTANCE"):
    """Expect an instance to be in a state, with incidents or without."""

    process_instance_selector: ProcessSelector
    state: ProcessState | None = None
    has_active_incidents: bool | None = None


class AssertElementInstance(Instruction, frozen=True, kw_only=True, tag="ASSERT_ELEMENT_INSTANCE"):
    """Expect an element to be in a state so many times."""

    process_instance_selector: ProcessSelector
    element_selector: ElementSelector
    state: ElementState
    amount: int = 1


class AssertElementInstances(Instruction, frozen=True, kw_only=True, tag="ASSERT_ELEMENT_INSTANCES"):
    """Expect several elements to be in a state."""

    process_instance_selector: ProcessSelector
    element_selectors: tuple[ElementSelector, ...]
    state: ElementsState


class AssertVariables(Instruction, frozen=True, kw_only=True, tag="ASSERT_VARIABLES"):
    """Expect variables of an instance, or local ones of an element, by name or with their values."""

    process_instance_selector: ProcessSelector
    element_selector: ElementSelector | None = None
    variable_names: tuple[str, ...] = ()
    variables: Variables = {}


class AssertVariable(Instruction, frozen=True, kw_only=True, tag="ASSERT_VARIABLE"):
    """Expect a FEEL expression about a variable to hold."""

    process_instance_selector: ProcessSelector
    element_selector: ElementSelector | None = None
    variable_name: str
    satisfies_expression: str


class AssertUserTask(Instruction, frozen=True, kw_only=True, tag="ASSERT_USER_TASK"):
    """Expect a user task with what is named."""

    user_task_selector: UserTaskSelector
    state: UserTaskState | None = None
    assignee: str | None = None
    candidate_groups: tuple[str, ...] | None = None
    priority: int | None = None
    element_id: str | None = None
    name: str | None = None
    due_date: str | None = None
    follow_up_date: str | None = None


class AssertMessageSubscription(Instruction, frozen=True, kw_only=True, tag="ASSERT_PROCESS_INSTANCE_MESSAGE_SUBSCRIPTION"):
    """Expect an instance to wait for a message, or to have got it."""

    process_instance_selector: ProcessSelector
    message_selector: MessageSelector
    state: SubscriptionState


class AssertDecision(Instruction, frozen=True, kw_only=True, tag="ASSERT_DECISION"):
    """Expect the last evaluation of a decision to have had an output, or rules that matched."""

    decision_selector: DecisionSelector
    output: Any = msgspec.UNSET
    matched_rules: tuple[int, ...] | None = None
    not_matched_rules: tuple[int, ...] | None = None
    no_matched_rules: bool = False


Action: TypeAlias = (
    CreateProcessInstance
    | CompleteJob
    | ThrowBpmnErrorFromJob
    | FailJob
    | MockJobWorkerCompleteJob
    | MockJobWorkerThrowBpmnError
    | MockChildProcess
    | MockDmnDecision
    | PublishMessage
    | CorrelateMessage
    | BroadcastSignal
    | CompleteUserTask
    | IncreaseTime
    | SetTime
    | UpdateVariables
    | ResolveIncident
    | EvaluateDecision
)
Assertion: TypeAlias = (
    AssertProcessInstance
    | AssertElementInstance
    | AssertElementInstances
    | AssertVariables
    | AssertVariable
    | AssertUserTask
    | AssertMessageSubscription
    | AssertDecision
)


class ConditionalBehavior(Instruction, frozen=True, kw_only=True, tag="CONDITIONAL_BEHAVIOR"):
    """From now on, whenever all conditions hold, take the next of the actions; the last is taken again and again."""

    conditions: tuple[Assertion, ...]
    actions: tuple[Action, ...]
    name: str = ""


AnyInstruction: TypeAlias = Action | Assertion | ConditionalBehavior


class ProcessCase(msgspec.Struct, frozen=True, kw_only=True):
    """One test case: what to do with a process, and what to expect of it."""

    name: str = "unnamed"
    description: str = ""
    instructions: tuple[AnyInstruction, ...]


class CaseFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cases of one file, and the files that they need, if it names them."""

    test_cases: tuple[ProcessCase, ...]
    resources: tuple[str, ...] = ()


ASSERTIONS: Final = Assertion.__args__
"""The types of all assertions."""
INSTRUCTION_TYPES: Final = tuple(
    sorted(str(one.__struct_config__.tag) for one in (*Action.__args__, *ASSERTIONS, ConditionalBehavior))
)
LATER: Final[Mapping[str, str]] = {
    "COMPLETE_JOB_AD_HOC_SUB_PROCESS": "ad-hoc sub-processes do not run yet",
    "COMPLETE_JOB_USER_TASK_LISTENER": "listeners do not run yet",
    "EVALUATE_CONDITIONAL_START_EVENT": "conditional events do not run yet",
    "ASSERT_VARIABLE_JUDGE": "no language model judges here; use ASSERT_VARIABLE with satisfiesExpression",
}
"""Instructions that Camunda has, and why there are none here."""
_DECODER: Final = msgspec.json.Decoder(CaseFile)


def parse_cases(data: bytes, file: str) -> CaseFile:
    """The cases of a file. Raises InvalidArguments that names the case, the instruction and what is wrong with it."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        read = _DECODER.decode(data)
        repeated = _find_repeated(_read_plainly(data))
        if repeated is None:
            return read
        message, cause = repeated, None
    except msgspec.ValidationError as error:
        message, cause = str(error), error
    except RecursionError as error:
        raise InvalidArguments(f"Expected {file} to be JSON, but it is nested too deeply. Make it flatter.") from error
    except ValueError as error:  # of msgspec, of JSON or of UTF-8
        raise InvalidArguments(f"Expected {file} to be JSON in UTF-8, but it is not: {error}. Correct it.") from error
    raise InvalidArguments(f"Expected {file} to hold test cases of processes, but {_explain(data, message)}") from cause


def _explain(data: bytes, message: str) -> str:
    """What msgspec says about a file, with the name of the case, and the known instructions where one is unknown."""
    if (found := _TYPE.match(message)) is not None:
        unknown, case, place = found.group(1), int(found.group(2)), int(found.group(3))
        reason = f", since {LATER[unknown]}" if unknown in LATER else ""
        return (
            f"instruction {place + 1} of case {_name_case(data, case)} is {unknown!r}, which is not known{reason}. "
            f"Known are: {', '.join(INSTRUCTION_TYPES)}."
        )
    if (found := _PLACE.search(message)) is not None:
        case, place, rest = int(found.group(1)), int(found.group(2)), found.group(3)
        said = message[: found.start()]
        about = f" at {rest.lstrip('.')}" if rest else ""
        return f"instruction {place + 1} of case {_name_case(data, case)} is not right{about}: {said}."
    return f"it does not: {message}."


def _name_case(data: bytes, index: int) -> str:
    try:
        case = dict(dict(_read_plainly(data))["testCases"][index])
    except (ValueError, TypeError, LookupError, RecursionError):
        return str(index + 1)  # the file has more that is wrong
    return repr(case["name"]) if case.get("name") else str(index + 1)


class _Pairs(list[tuple[str, Any]]):
    """The names and values of an object as they are written."""


def _read_plainly(data: bytes) -> Any:
    """JSON with objects as `_Pairs`, and numbers as they are written: none is too large. Raises ValueError."""
    return json.loads(data.decode(), object_pairs_hook=_Pairs, parse_int=str, parse_float=str, strict=False)


def _find_repeated(value: Any) -> str | None:
    """What is wrong, in the words of msgspec, if an object has a name twice; None if none has."""
    left = [(value, "$")]
    while left:
        one, place = left.pop()
        if isinstance(one, _Pairs):
            names = Counter(name for name, _ in one)
            if (name := next((name for name, times in names.items() if times > 1), None)) is not None:
                return f"name {name!r} is given more than once - at `{place}`"
            left += [(inner, f"{place}.{name}") for name, inner in reversed(one)]
        elif isinstance(one, list):
            left += [(inner, f"{place}[{index}]") for index, inner in reversed(list(enumerate(one)))]
    return None
