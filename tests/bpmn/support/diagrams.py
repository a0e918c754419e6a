"""Small diagrams for tests, written as a few calls.

    process = diagram(start(), job("charge"), end(), path("start", "charge", "end"))

Messages `m` and `m2` have no correlation key, `keyed` has `=key`. Signals are `s` and `s2`, errors `E1` and `E2`,
escalations `X1` and `X2`; all of them have their id as name and code.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import quoteattr

from holdfast.bpmn.executable import CompiledProcess
from tests.bpmn.support.playing import compile_xml

HEAD: Final = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="d" targetNamespace="urn:tests">'
)
ROOTS: Final = (
    '<message id="m" name="m"/><message id="m2" name="m2"/><message id="keyed" name="keyed"><extensionElements>'
    '<zeebe:subscription correlationKey="=key"/></extensionElements></message><signal id="s" name="s"/>'
    '<signal id="s2" name="s2"/><error id="E1" name="first" errorCode="E1"/><error id="E2" name="second" errorCode="E2"/>'
    '<escalation id="X1" escalationCode="X1"/><escalation id="X2" escalationCode="X2"/>'
)


def write(*parts: str, process_id: str = "p", roots: str = "") -> str:
    """A file with one process of these parts."""
    inside = "".join(parts)
    return f'{HEAD}{ROOTS}{roots}<process id="{process_id}" isExecutable="true">{inside}</process></definitions>'


def diagram(*parts: str, roots: str = "") -> CompiledProcess:
    """A process of these parts, ready to be played."""
    return compile_xml(write(*parts, roots=roots))


def path(*ids: str) -> str:
    """Flows from each element to the next."""
    return "".join(flow(source, target) for source, target in pairwise(ids))


def flow(source: str, target: str, condition: str = "") -> str:
    """A flow with the id `source_target`."""
    inner = f'<conditionExpression xsi:type="tFormalExpression">={condition}</conditionExpression>' if condition else ""
    return f'<sequenceFlow id="{source}_{target}" sourceRef="{source}" targetRef="{target}">{inner}</sequenceFlow>'


def start(id_: str = "start", definition: str = "", *, interrupting: bool = True) -> str:
    """A start event."""
    return f'<startEvent id="{id_}" isInterrupting="{_show(interrupting)}">{definition}</startEvent>'


def end(id_: str = "end", definition: str = "", mapping: str = "") -> str:
    """An end event."""
    return f'<endEvent id="{id_}">{_extend(mapping)}{definition}</endEvent>'


def task(id_: str) -> str:
    """A task that does nothing."""
    return f'<manualTask id="{id_}"/>'


def job(id_: str, *, mapping: str = "", more: str = "", type_: str = "work") -> str:
    """A service task with a job."""
    header = f"<zeebe:taskDefinition type={quoteattr(type_)}/>"
    return f'<serviceTask id="{id_}">{_extend(header + mapping)}{more}</serviceTask>'


def script(id_: str, expression: str, result: str, *, mapping: str = "", more: str = "") -> str:
    """A script task in FEEL."""
    inner = f"<zeebe:script expression={quoteattr('=' + expression)} resultVariable={quoteattr(result)}/>"
    return f'<scriptTask id="{id_}">{_extend(inner + mapping)}{more}</scriptTask>'


def user(id_: str, inner: str = "", more: str = "") -> str:
    """A user task."""
    return f'<userTask id="{id_}">{_extend("<zeebe:userTask/>" + inner)}{more}</userTask>'


def receive(id_: str, message: str = "m", more: str = "") -> str:
    """A receive task."""
    return f'<receiveTask id="{id_}" messageRef="{message}">{more}</receiveTask>'


def call(id_: str, process: str = "child", mapping: str = "", more: str = "", *, propagates: bool = True) -> str:
    """A call activity."""
    shown = _show(propagates)
    called = f'<zeebe:calledElement processId="{process}" propagateAllChildVariables="{shown}"/>'
    return f'<callActivity id="{id_}">{_extend(called + mapping)}{more}</callActivity>'


def sub(id_: str, *parts: str, event: bool = False, mapping: str = "") -> str:
    """A sub-process, or an event sub-process."""
    trigger = ' triggeredByEvent="true"' if event else ""
    return f'<subProcess id="{id_}"{trigger}>{_extend(mapping)}{"".join(parts)}</subProcess>'


def boundary(id_: str, host: str, definition: str, *, interrupting: bool = True, mapping: str = "") -> str:
    """A boundary event."""
    inner = f"{_extend(mapping)}{definition}"
    return f'<boundaryEvent id="{id_}" attachedToRef="{host}" cancelActivity="{_show(interrupting)}">{inner}</boundaryEvent>'


def catch(id_: str, definition: str, mapping: str = "") -> str:
    """An intermediate catching event."""
    return f'<intermediateCatchEvent id="{id_}">{_extend(mapping)}{definition}</intermediateCatchEvent>'


def throw(id_: str, definition: str, mapping: str = "") -> str:
    """An intermediate throwing event."""
    return f'<intermediateThrowEvent id="{id_}">{_extend(mapping)}{definition}</intermediateThrowEvent>'


def gateway(kind: str, id_: str, default: str = "") -> str:
    """A gateway: `exclusive`, `parallel` or `eventBased`."""
    return f'<{kind}Gateway id="{id_}"{f" default={quoteattr(default)}" if default else ""}/>'


def timer(text: str, kind: str = "timeDuration") -> str:
    """The definition of a timer event."""
    return f"<timerEventDefinition><{kind}>{text}</{kind}></timerEventDefinition>"


def message(name: str = "m") -> str:
    """The definition of a message event."""
    return f'<messageEventDefinition messageRef="{name}"/>'


def signal(name: str = "s") -> str:
    """The definition of a signal event."""
    return f'<signalEventDefinition signalRef="{name}"/>'


def error(code: str = "E1") -> str:
    """The definition of an error event; without a code it catches all."""
    return f'<errorEventDefinition errorRef="{code}"/>' if code else "<errorEventDefinition/>"


def escalation(code: str = "X1") -> str:
    """The definition of an escalation event; without a code it catches all."""
    return f'<escalationEventDefinition escalationRef="{code}"/>' if code else "<escalationEventDefinition/>"


TERMINATE: Final = "<terminateEventDefinition/>"


def mappings(inputs: Mapping[str, str] | None = None, outputs: Mapping[str, str] | None = None) -> str:
    """Input and output mappings, by their targets."""
    parts = [
        f"<zeebe:input source={quoteattr(f'={source}')} target='{target}'/>" for target, source in (inputs or {}).items()
    ]
    parts += [
        f"<zeebe:output source={quoteattr(f'={source}')} target='{target}'/>" for target, source in (outputs or {}).items()
    ]
    return f"<zeebe:ioMapping>{''.join(parts)}</zeebe:ioMapping>"


def repeat(collection: str, output: str = "", *, sequential: bool = False, until: str = "", into: str = "results") -> str:
    """Multi-instance over a collection, whose items are `item`; the outputs go to `results`."""
    outputs = f"outputCollection='{into}' outputElement={quoteattr('=' + output)}" if output else ""
    condition = f'<completionCondition xsi:type="tFormalExpression">={until}</completionCondition>' if until else ""
    return (
        f'<multiInstanceLoopCharacteristics isSequential="{_show(sequential)}"><extensionElements>'
        f"<zeebe:loopCharacteristics inputCollection={quoteattr('=' + collection)} inputElement='item' {outputs}/>"
        f"</extensionElements>{condition}</multiInstanceLoopCharacteristics>"
    )


def _extend(inner: str) -> str:
    return f"<extensionElements>{inner}</extensionElements>" if inner else ""


def _show(value: bool) -> str:
    return "true" if value else "false"
