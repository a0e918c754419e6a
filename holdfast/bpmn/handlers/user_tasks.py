"""User tasks: human tasks of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.bpmn import records
from holdfast.bpmn.expressions import check_name
from holdfast.bpmn.faults import Fault
from holdfast.bpmn.forms import ANY_OBJECT, find_missing, make_schema
from holdfast.bpmn.handlers.protocol import WaitingHandler
from holdfast.bpmn.mappings import read_result
from holdfast.bpmn.records import Wait
from holdfast.bpmn.repairing.incidents import raise_incident
from holdfast.bpmn.scopes import leave
from holdfast.bpmn.state import WORKING
from holdfast.bpmn.values import show_value, to_json
from holdfast.bpmn.waiting import read_time
from holdfast.bpmn.work import UserWork
from holdfast.core import commands, events
from holdfast.core.payloads import Payload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.bpmn.executable import Node, Text
    from holdfast.bpmn.linked import LinkedResources
    from holdfast.bpmn.running import Place, Run
    from holdfast.bpmn.state import Instance
    from holdfast.bpmn.values import Variable
    from holdfast.bpmn.variables import View
    from holdfast.core.instants import Instant

USUAL_PRIORITY: Final = 50
"""What a task has that names no priority, as in Camunda 7 and 8."""
_PRIORITIES: Final = range(-1_000_000, 1_000_001)


@dataclass(frozen=True, slots=True)
class _Task:
    payload: Payload
    schema: bytes
    form: str
    assignee: str
    users: tuple[str, ...]
    groups: tuple[str, ...]
    priority: int
    due: Instant | None
    follow_up: Instant | None


class UserTaskHandler(WaitingHandler):
    """User tasks: a person gets a task, and what the person fills in are variables."""

    def prepare(self, run: Run, node: Node, view: View, place: Place) -> _Task:
        """Evaluate who does it and when, and find the form."""
        work: UserWork = node.work
        given = work.assignment
        if node.inputs:
            names = {mapping.target[0] for mapping in node.inputs}
            shown = {name: value for name, value in view.flatten().items() if name in names}
            shown.update(place.variables or {})
        else:
            shown = view.flatten()
        return _Task(
            payload=Payload(msgspec.Raw(to_json(shown))),
            schema=_find_form(run, node, work),
            form=work.form_id or work.form_key,
            assignee=_evaluate_person(run, node, given.assignee, view),
            users=_evaluate_list(run, node, given.users, view, "the candidate users"),
            groups=_evaluate_list(run, node, given.groups, view, "the candidate groups"),
            priority=_evaluate_priority(run, node, given.priority, view),
            due=_evaluate_date(run, node, given.due_date, view, "the due date"),
            follow_up=_evaluate_date(run, node, given.follow_up_date, view, "the follow-up date"),
        )

    def start(self, run: Run, one: Instance, node: Node, prepared: _Task) -> None:
        """Create the human task for the person."""
        number = run.next_number()
        run.count_bytes(len(prepared.payload.data))
        run.emit(records.Waits(one.key, (Wait(number, "task", node.id),)))
        run.issue(
            commands.CreateTask(
                number=number,
                name=node.name or node.id,
                payload=prepared.payload,
                form=prepared.form,
                schema=prepared.schema,
                check=prepared.schema,
                description=node.element.documentation,
                assignee=prepared.assignee,
                users=prepared.users,
                groups=prepared.groups,
                priority=prepared.priority,
                due=prepared.due,
                follow_up=prepared.follow_up,
            )
        )

    def trigger(self, run: Run, one: Instance, wait: Wait, event: Any) -> None:
        """The person completed it, or cancelled it: that is an incident."""
        del wait
        node = run.node_of(one)
        try:
            if type(event) is events.TaskCancelled:
                reason = f": {event.reason}" if event.reason else ""
                who = f" by {event.by}" if event.by else ""
                raise Fault(
                    "task", f"Expected the task of '{one.element}' to be completed, but it was cancelled{who}{reason}."
                )
            result = read_result(event.result.data, node, "task")
        except Fault as fault:
            raise_incident(run, one, fault, WORKING)
            return
        leave(run, one, result)


def list_missing(linked: LinkedResources, node: Node, given: Mapping[str, Variable]) -> list[str]:
    """The names that the form of a user task requires, and that what a person filled in does not have."""
    work = node.work
    form = _read_form(linked, work) if isinstance(work, UserWork) else None
    schema = None if form is None else make_schema(form)
    return [] if schema is None else find_missing(schema, {name: value.feel for name, value in given.items()})


def _read_form(linked: LinkedResources, work: UserWork) -> bytes | None:
    if work.embedded_form:
        return work.embedded_form.encode()
    return linked.find_form(work.form_id) if work.form_id else None


def _find_form(run: Run, node: Node, work: UserWork) -> bytes:
    form = _read_form(run.setting.linked, work)
    if form is None and work.form_id:
        raise Fault("form", f"Expected form '{work.form_id}' of '{node.id}' to be deployed, but there is none. Deploy it.")
    if form is None:
        return ANY_OBJECT
    schema = make_schema(form)
    if schema is None:
        raise Fault("form", f"Expected the form of '{node.id}' to be a JSON object, but it is not. Correct the form.")
    return schema


def _evaluate_person(run: Run, node: Node, given: Text | None, view: View) -> str:
    if given is None:
        return ""
    value = run.evaluator.evaluate_text(given, view, f"the assignee of '{node.id}'", "expression")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Fault("expression", f"Expected the assignee of '{node.id}' to be a text, but it is {show_value(value)}.")
    return check_name(value, f"the assignee of '{node.id}'", "expression")


def _evaluate_list(run: Run, node: Node, given: Text | None, view: View, what: str) -> tuple[str, ...]:
    if given is None:
        return ()
    value = run.evaluator.evaluate_text(given, view, f"{what} of '{node.id}'", "expression")
    if isinstance(value, str):
        value = value.split(",")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Fault("expression", f"Expected {what} of '{node.id}' to be a list of texts, but it is {show_value(value)}.")
    named = f"each of {what} of '{node.id}'"
    return tuple(dict.fromkeys(check_name(one.strip(), named, "expression") for one in value if one.strip()))


def _evaluate_priority(run: Run, node: Node, given: Text | None, view: View) -> int:
    if given is None:
        return USUAL_PRIORITY
    value = run.evaluator.evaluate_text(given, view, f"the priority of '{node.id}'", "expression")
    try:
        number = Decimal(value) if isinstance(value, str) else value
        found = int(number)
        is_whole = isinstance(number, Decimal) and number == found
    except (ArithmeticError, TypeError, ValueError):
        is_whole, found = False, 0
    if not is_whole or found not in _PRIORITIES:
        raise Fault(
            "expression", f"Expected the priority of '{node.id}' to be a whole number, but it is {show_value(value)}."
        )
    return found


def _evaluate_date(run: Run, node: Node, given: Text | None, view: View, what: str) -> Instant | None:
    if given is None:
        return None
    # As a variable, which may be null: without a date there is none, as in Camunda 8.
    value = run.evaluator.make_variable(given, view, f"{what} of '{node.id}'", "timer").feel
    if value is None or value == "":
        return None
    spec = read_time(value, None, f"{what} of '{node.id}'")
    return spec.first(run.now)
