"""User tasks: who gets them, their forms, and how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.bpmn.linked import LinkedDecision
from holdfast.core import envelopes
from holdfast.core.instants import SECOND
from holdfast.core.request_keys import RequestKey
from tests.bpmn.support.diagrams import boundary, diagram, end, mappings, path, start, task, timer, user
from tests.bpmn.support.playing import BEGIN, PlayedProcess

FORM = json.dumps(
    {
        "components": [
            {"type": "textfield", "key": "name", "label": "Name", "validate": {"required": True}},
            {"type": "number", "key": "age"},
            {"type": "group", "components": [{"type": "checkbox", "key": "sure"}]},
            {"type": "button", "key": "ok"},
        ]
    }
)


class Forms:
    """Deployed forms, and nothing else."""

    deployment = "d1"

    def find_decision(self, _decision_id: str, _binding: Any, _version_tag: str) -> LinkedDecision | None:
        return None

    def find_form(self, form_id: str) -> bytes | None:
        return FORM.encode() if form_id == "person" else None


def make(inner: str, variables: dict[str, Any] | None = None) -> PlayedProcess:
    return PlayedProcess(diagram(start(), user("u", inner), end(), path("start", "u", "end")), variables, linked=Forms())


def test_H1_task_has_what_the_model_says() -> None:
    inner = (
        '<zeebe:assignmentDefinition assignee="=who" candidateGroups="=[&quot;a&quot;, &quot;b&quot;]" '
        'candidateUsers="x, y"/>'
        '<zeebe:taskSchedule dueDate="=now() + duration(&quot;P1D&quot;)"/><zeebe:priorityDefinition priority="70"/>'
    )
    play = make(inner, {"who": "ann"})
    [task_] = play.execution.tasks.values()
    made = task_.event

    assert (made.assignee, made.groups, made.users, made.priority) == ("ann", ("a", "b"), ("x", "y"), 70)
    assert made.due == BEGIN + 24 * 3600 * SECOND


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        ('<zeebe:assignmentDefinition assignee="=1"/>', "expression"),
        ('<zeebe:assignmentDefinition assignee="=bad"/>', "expression"),
        ('<zeebe:assignmentDefinition candidateGroups="=[1]"/>', "expression"),
        ('<zeebe:priorityDefinition priority="=1.5"/>', "expression"),
        ('<zeebe:taskSchedule dueDate="=&quot;soon&quot;"/>', "timer"),
        ('<zeebe:formDefinition formId="other"/>', "form"),
    ],
)
def test_P10_task_that_cannot_be_made_is_an_incident(inner: str, kind: str) -> None:
    play = make(inner, {"bad": "a\0b"})

    assert list(play.incidents.values()) == [("u", kind)]
    assert not play.execution.tasks


def test_H1_required_fields_of_a_form_are_checked_and_nothing_changes() -> None:
    play = make('<zeebe:formDefinition formId="person"/>')

    for bad in (None, {}, {"name": None}, {"age": 3}):
        play.complete_task("u", bad)
        assert len(play.execution.tasks) == 1, bad
    play.complete_task("u", {"name": "Ann", "age": 30, "sure": True})

    assert play.result == {"name": "Ann", "age": 30, "sure": True}


@pytest.mark.parametrize("form", [1, "text", [1]])
def test_H1_form_that_is_no_object_is_refused(form: Any) -> None:
    play = make("")

    play.complete_task("u", form)

    assert len(play.execution.tasks) == 1


def test_P5_task_is_shown_what_it_maps_and_maps_what_it_gives() -> None:
    play = make(mappings({"shown": "x * 2"}, {"y": "given + shown"}), {"x": 1, "secret": 2})
    [task_] = play.execution.tasks.values()
    assert json.loads(bytes(task_.event.payload.data)) == {"shown": 2}

    play.complete_task("u", {"given": 10})

    assert play.result == {"x": 1, "secret": 2, "y": 12}


def test_H2_interrupted_host_leaves_no_open_task() -> None:
    late = boundary("late", "u", timer("PT1H"))
    play = PlayedProcess(diagram(start(), user("u"), end(), path("start", "u", "end"), late, task("t"), path("late", "t")))

    play.fire("late")

    assert play.is_closed
    assert not play.execution.tasks


def test_P10_cancelled_task_is_an_incident_and_is_made_again() -> None:
    play = make("")
    [(number, task_)] = play.execution.tasks.items()

    request = RequestKey("task_cancel", "once", play.now + 3600 * SECOND)
    play.tell(envelopes.TaskCancelled(number=number, task_id=task_.event.task_id, by="ann", reason="wrong", request=request))
    assert list(play.incidents.values()) == [("u", "task")]
    play.resolve_incident()
    play.complete_task("u", {"x": 1})

    assert play.result == {"x": 1}


def test_H1_task_without_a_priority_has_the_one_of_camunda() -> None:
    [task_] = make("").execution.tasks.values()

    assert task_.event.priority == 50
