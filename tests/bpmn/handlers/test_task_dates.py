"""Due and follow-up dates of user tasks that expressions make."""

from __future__ import annotations

import pytest

from tests.bpmn.support.diagrams import diagram, path, start, user
from tests.bpmn.support.playing import PlayedProcess


@pytest.mark.parametrize("expression", ["missing", "null", "order.due"])
def test_H2_date_that_is_not_there_is_none(expression: str) -> None:
    schedule = f'<zeebe:taskSchedule dueDate="={expression}" followUpDate="={expression}"/>'
    play = PlayedProcess(diagram(start(), user("u", schedule), path("start", "u")))

    assert not play.incidents
    (task,) = play.execution.tasks.values()
    assert task.event.due is None
    assert task.event.follow_up is None


def test_H2_date_that_is_none_is_an_incident() -> None:
    play = PlayedProcess(diagram(start(), user("u", '<zeebe:taskSchedule dueDate="=true"/>'), path("start", "u")))

    assert list(play.incidents.values()) == [("u", "timer")]
