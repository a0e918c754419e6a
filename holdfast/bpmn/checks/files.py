"""The file as a whole: something in it is executable, and its pools refer to its processes."""

from __future__ import annotations

from holdfast.bpmn.checks.findings import Findings
from holdfast.bpmn.checks.scopes import Scope
from holdfast.bpmn.model import Element, FlowNode, Process


def check_file(findings: Findings) -> None:
    """There is an executable process, and participants refer to processes of the file."""
    definitions = findings.definitions
    whole = Element(id="")
    if not definitions.processes:
        findings.report(
            whole,
            "no-process",
            "Expected a process in the file, but there is none.",
            "Draw one, and set isExecutable='true'.",
        )
    elif not any(process.is_executable for process in definitions.processes):
        ids = ", ".join(repr(process.id[:80]) for process in definitions.processes[:5])
        findings.report(
            definitions.processes[0],
            "not-executable",
            f"Expected a process that is executable, but none of them is: {ids}.",
            "Set isExecutable='true' at the process that should run.",
        )
    known = {process.id for process in definitions.processes}
    for participant in definitions.participants:
        if participant.process and participant.process not in known:
            findings.report(
                participant,
                "unknown-reference",
                f"Expected the pool to refer to a process of the file, but none has the id {participant.process[:80]!r}.",
                "Refer to an existing one, or take processRef out.",
            )


def check_listeners(findings: Findings, scope: Scope) -> None:
    """Execution and task listeners come later."""
    own: tuple[Process | FlowNode, ...] = (scope.container,) if isinstance(scope.container, Process) else ()
    for element in (*own, *scope.container.nodes):
        for listener in element.listeners:
            findings.refuse_later(
                element,
                f"a listener for {listener.event[:40]!r}",
                "Make a task of it, or move it into the activity.",
                line=listener.line,
            )
