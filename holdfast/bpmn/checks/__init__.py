"""Whether a model can be run: every problem at once, each with its place and its remedy.

    problems = check(reading.definitions)
    list_errors(problems)  # empty: it can be deployed

One file for each topic: `files` (something is executable), `containers` (start events), `flows`, `events`, `timers`,
`gateways`, `activities`, `expressions`. What BPMN has and the engine does not run yet is refused with that reason and the
code `not-yet`. Only executable processes are checked: the others are drawings. Reading has its own problems, in
`Reading.problems`; a model that has errors there may have others here because of them.
"""

from __future__ import annotations

from holdfast.bpmn.checks.activities import check_activities
from holdfast.bpmn.checks.containers import check_container
from holdfast.bpmn.checks.events import check_events
from holdfast.bpmn.checks.expressions import Compiler, check_declared, check_expressions
from holdfast.bpmn.checks.files import check_file, check_listeners
from holdfast.bpmn.checks.findings import NOT_YET, Findings
from holdfast.bpmn.checks.flows import check_connections, check_flows
from holdfast.bpmn.checks.gateways import check_gateways
from holdfast.bpmn.checks.scopes import Scope, make_scopes
from holdfast.bpmn.model import Definitions
from holdfast.bpmn.problems import Problem

__all__ = ["NOT_YET", "check"]


def check(definitions: Definitions) -> list[Problem]:
    """Everything that is wrong with a file's model, in the order of lines. Never raises because of what the model says."""
    findings = Findings(definitions)
    compiler = Compiler(findings)
    check_file(findings)
    check_declared(findings, compiler)
    scopes = {process.id: make_scopes(process) for process in definitions.processes}
    owners: dict[str, Scope] = {id_: scope for inside in scopes.values() for scope in inside for id_ in scope.nodes}
    for process in definitions.processes:
        if not process.is_executable:
            continue
        for scope in scopes[process.id]:
            check_container(findings, scope)
            check_flows(findings, scope, owners)
            check_connections(findings, scope)
            check_events(findings, scope)
            check_gateways(findings, scope)
            check_activities(findings, scope)
            check_expressions(findings, scope, compiler)
            check_listeners(findings, scope)
    return sorted(findings.problems)
