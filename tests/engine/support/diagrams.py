"""Small diagrams for tests of deployments: one process with one start event, something between, and an end event."""

from __future__ import annotations

from typing import Final

_FILE: Final = """<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="file" targetNamespace="http://example.org">
{declared}
{processes}
</bpmn:definitions>
"""

_PROCESS: Final = """  <bpmn:process id="{id}" isExecutable="true">
    {extensions}
    <bpmn:startEvent id="begin">{trigger}<bpmn:outgoing>in</bpmn:outgoing></bpmn:startEvent>
    <bpmn:sequenceFlow id="in" sourceRef="begin" targetRef="work"/>
    {work}
    <bpmn:sequenceFlow id="out" sourceRef="work" targetRef="end"/>
    <bpmn:endEvent id="end"><bpmn:incoming>out</bpmn:incoming></bpmn:endEvent>
  </bpmn:process>"""

_FLOWS: Final = "<bpmn:incoming>in</bpmn:incoming><bpmn:outgoing>out</bpmn:outgoing>"


def make_process(process_id: str = "order", *, says: str = "one", trigger: str = "", work: str = "", tag: str = "") -> str:
    """A process that sets the variable `said`, or does `work`; another `says` is other content."""
    script = (
        f'<bpmn:scriptTask id="work"><bpmn:extensionElements><zeebe:script expression="=&quot;{says}&quot;" '
        f'resultVariable="said"/></bpmn:extensionElements>{_FLOWS}</bpmn:scriptTask>'
    )
    extensions = (
        f'<bpmn:extensionElements><zeebe:versionTag value="{tag}"/></bpmn:extensionElements>' if tag else "<!-- no tag -->"
    )
    return _PROCESS.format(id=process_id, trigger=trigger, work=work or script, extensions=extensions)


def make_file(*processes: str, declared: str = "") -> str:
    """A file with these processes, and what they declare. Ids of elements in processes behind the first get its number."""
    first, *others = processes
    renamed = [_rename(process, number) for number, process in enumerate(others, start=2)]
    return _FILE.format(declared=declared, processes="\n".join([first, *renamed]))


def _rename(process: str, number: int) -> str:
    for name in ("begin", "in", "work", "out", "end"):
        process = process.replace(f'"{name}"', f'"{name}{number}"').replace(f">{name}<", f">{name}{number}<")
    return process


def make_diagram(process_id: str = "order", **changes: str) -> str:
    """A file with one process, see `make_process`."""
    return make_file(make_process(process_id, **changes))


def make_wait(message: str = "go") -> str:
    """A task that waits for a message whose key is in the variable `key`; declared by `declare_message`."""
    return f'<bpmn:receiveTask id="work" messageRef="{message}">{_FLOWS}</bpmn:receiveTask>'


def declare_message(name: str) -> str:
    """A message of which the id is its name, with the variable `key` for its correlation key."""
    return (
        f'<bpmn:message id="{name}" name="{name}"><bpmn:extensionElements><zeebe:subscription correlationKey="=key"/>'
        "</bpmn:extensionElements></bpmn:message>"
    )


def make_waiting(process_id: str = "order", *, says: str = "one") -> str:
    """A file with a process that waits for the message `go`; another `says` is other content."""
    return make_file(make_process(process_id, work=make_wait()), declared=f"<!-- {says} -->{declare_message('go')}")


def make_timed(kind: str, text: str, process_id: str = "order", *, says: str = "one") -> str:
    """A file with a process that a timer starts."""
    timer = f"<bpmn:timerEventDefinition><bpmn:{kind}>{text}</bpmn:{kind}></bpmn:timerEventDefinition>"
    return make_file(make_process(process_id, says=says, trigger=timer))


def make_by_message(process_id: str = "order", message: str = "placed", *, work: str = "") -> str:
    """A file with a process that a message starts."""
    trigger = f'<bpmn:messageEventDefinition messageRef="{message}"/>'
    declared = f'<bpmn:message id="{message}" name="{message}"/>' + (declare_message("go") if work else "")
    return make_file(make_process(process_id, trigger=trigger, work=work), declared=declared)


def make_by_signal(process_id: str = "order", signal: str = "opened") -> str:
    """A file with a process that a broadcast signal starts."""
    trigger = f'<bpmn:signalEventDefinition signalRef="{signal}"/>'
    declared = f'<bpmn:signal id="{signal}" name="{signal}"/>'
    return make_file(make_process(process_id, trigger=trigger), declared=declared)


def make_caller(
    called: str, *, process_id: str = "caller", binding: str = "latest", tag: str = "", says: str = "one"
) -> str:
    """A file with a process that calls another one."""
    work = (
        f'<bpmn:callActivity id="work"><bpmn:extensionElements><zeebe:calledElement processId="{called}" '
        f'propagateAllChildVariables="true" bindingType="{binding}"{f" versionTag={chr(34)}{tag}{chr(34)}" if tag else ""}/>'
        f"</bpmn:extensionElements>{_FLOWS}</bpmn:callActivity>"
    )
    return make_file(make_process(process_id, work=work), declared=f"<!-- {says} -->")
