"""Resolving incidents: the phase in which something went wrong runs again, with the variables as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.bpmn import moving, records
from holdfast.bpmn.beginning import begin_process
from holdfast.bpmn.boundaries import start_event_sub_process
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.handlers.table import find_handler
from holdfast.bpmn.model import BoundaryEvent
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.running import Place
from holdfast.bpmn.scopes import complete_body, leave
from holdfast.bpmn.state import ENTERING, LEAVING, ROOT, WORKING
from holdfast.bpmn.waiting import arm, prepare, waits_of
from holdfast.core import commands

if TYPE_CHECKING:
    from holdfast.bpmn.executable import Catch
    from holdfast.bpmn.running import Run
    from holdfast.bpmn.state import Instance


def list_incidents(run: Run) -> list[int]:
    """The numbers of all open incidents."""
    return sorted(run.state.incidents)


def resolve(run: Run, number: int) -> bool:
    """Try again what an incident is about; whether there is one with that number. What fails again raises another one."""
    key = run.state.incidents.get(number)
    if key is None:
        return False
    one = run.state.active[key]
    incident = one.incidents[number]
    run.emit(records.Resolved(one.key, number))
    run.issue(commands.ResolveIncident(number=number))
    if incident.kind == "deadlock":
        run.touched.append(one.key)  # raised again at rest, if nothing changed
        return True
    if incident.catcher and incident.catcher != one.element:
        _wait_again(run, one, incident.catcher)
    elif incident.phase == ENTERING:
        _enter_again(run, one)
    elif incident.phase == LEAVING and one.loop is not None:
        complete_body(run, one)
    elif incident.phase == LEAVING and one.children:
        run.emit(records.Began(one.key))  # an event sub-process has begun in it since: it is left once that is done
    elif incident.phase == LEAVING:
        leave(run, one, one.result or {})
    else:
        find_handler(run.node_of(one)).work_again(run, one)
    return True


def _enter_again(run: Run, one: Instance) -> None:
    if one.key == ROOT:
        begin_process(run)
        return
    node = run.node_of(one)
    sub = node.container.find_event_sub_process(node)
    if sub is not None:
        start_event_sub_process(run, run.state.active[one.scope], sub, one.result or {}, one.key)
        return
    own = None if one.index < 0 else one.variables
    moving.enter(run, node, Place(one.scope, "", one.index, own, one.key))


def _wait_again(run: Run, one: Instance, catcher: str) -> None:
    catch = _find_catch(run, catcher)
    if catch is None or any(wait.catcher == catcher for wait in waits_of(run, one)):
        return  # a standing wait is still there
    try:
        around = run.look(one.scope) if isinstance(catch.node.element, BoundaryEvent) else None
        prepared = prepare(run, catch, run.look(one.key), around=around)
    except Fault as fault:
        raise_incident(run, one, fault, WORKING, catcher)
        return
    arm(run, one, (prepared,))


def _find_catch(run: Run, catcher: str) -> Catch | None:
    node = run.process.nodes.get(catcher)
    return None if node is None else node.catch
