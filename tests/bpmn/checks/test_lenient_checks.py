"""What BPMN forbids and Camunda runs all the same: told as a notice in files that were made for it."""

from __future__ import annotations

import pytest

from tests.bpmn.checks.model_files import CAMUNDA, START, ZEEBE, find_codes, find_notices, flow, make_path, make_process

TASK = '<bpmn:task id="it"/>'
TIMER_EVENT = "<bpmn:timerEventDefinition><bpmn:timeDuration>PT1S</bpmn:timeDuration></bpmn:timerEventDefinition>"


@pytest.mark.parametrize("vendor", [ZEEBE, CAMUNDA])
def test_P9_events_that_nothing_leaves_end_their_path_where_camunda_runs_them(vendor: str) -> None:
    bare = f'<bpmn:boundaryEvent id="b" attachedToRef="it">{TIMER_EVENT}</bpmn:boundaryEvent>'
    data = make_path(TASK + bare, vendor=vendor)
    alone = make_process(START, vendor=vendor)

    assert find_codes(data) == find_codes(alone) == []
    assert ("b", "implicit-end") in find_notices(data)
    assert ("start", "implicit-end") in find_notices(alone)


@pytest.mark.parametrize("vendor", [ZEEBE, CAMUNDA])
def test_P9_an_element_that_nothing_leads_to_is_told_where_camunda_deploys_it(vendor: str) -> None:
    data = make_path(TASK, more='<bpmn:task id="lost"/>' + flow("lost", "end"), vendor=vendor)

    assert find_codes(data) == []
    assert ("lost", "not-connected") in find_notices(data)


def _choose(*conditions: str) -> bytes:
    ends = "".join(f'<bpmn:endEvent id="e{n}"/>' + flow("it", f"e{n}", text) for n, text in enumerate(conditions))
    return make_process(f'{START}<bpmn:exclusiveGateway id="it"/>{ends}' + flow("start", "it"), vendor=CAMUNDA)


def test_P8_one_flow_without_a_condition_is_told_in_files_of_camunda_7() -> None:
    data = _choose("${a}", "")
    two = _choose("${a}", "", "")

    assert find_codes(data) == []
    assert ("it_e1", "missing-condition") in find_notices(data)
    assert find_codes(two) == [("it_e1", "missing-condition"), ("it_e2", "missing-condition")]
