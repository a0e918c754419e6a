"""Test cases of processes: what each instruction does, what assertions hold, and how a failure is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, activity, workflow
from holdfast.errors import InvalidArguments
from holdfast.testing import process_runs, run_process_cases
from tests.testing.process_files import (
    CALLING,
    CHARGE,
    HEAD,
    PAY,
    SHIP,
    create,
    expect_elements,
    expect_state,
    expect_variables,
    of,
    write_case,
)


def run(folder: Path, *instructions: dict[str, Any]) -> str:
    """Why a case with these instructions failed; empty if it passed."""
    [outcome] = run_process_cases(write_case(folder, *instructions)).outcomes
    return outcome.failure


def test_P1_order_goes_its_way(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        create(orderId="o-1"),
        expect_elements("IS_ACTIVE_EXACTLY", "charge"),
        expect_elements("IS_NOT_ACTIVATED", "wait", "ship", "late"),
        CHARGE,
        {
            "type": "ASSERT_PROCESS_INSTANCE_MESSAGE_SUBSCRIPTION",
            **of(),
            "messageSelector": {"messageName": "paid", "correlationKey": "o-1"},
            "state": "IS_WAITING",
        },
        PAY,
        {
            "type": "ASSERT_PROCESS_INSTANCE_MESSAGE_SUBSCRIPTION",
            **of(),
            "messageSelector": {"messageName": "paid"},
            "state": "IS_CORRELATED",
        },
        {
            "type": "ASSERT_USER_TASK",
            "userTaskSelector": {"elementId": "ship"},
            "state": "IS_CREATED",
            "assignee": "ann",
            "candidateGroups": ["sales", "shipping"],
            "name": "Ship it",
        },
        expect_state("IS_ACTIVE", hasActiveIncidents=False),
        SHIP,
        expect_state("IS_COMPLETED"),
        expect_elements("IS_COMPLETED_IN_ORDER", "start", "charge", "wait", "ship", "end"),
        expect_elements("IS_NOT_ACTIVE", "charge", "ship"),
        {"type": "ASSERT_USER_TASK", "userTaskSelector": {"elementId": "ship"}, "state": "IS_COMPLETED"},
        expect_variables(orderId="o-1", receipt=7, paid=True, shipped=True),
        {"type": "ASSERT_VARIABLE", **of(), "variableName": "receipt", "satisfiesExpression": "= receipt > 6"},
    )

    assert failure == ""


def test_P3_error_of_a_job_takes_its_boundary_event(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        create(orderId="o-1"),
        {
            "type": "THROW_BPMN_ERROR_FROM_JOB",
            "jobSelector": {"elementId": "charge"},
            "errorCode": "DECLINED",
            "variables": {"why": "no cover"},
        },
        expect_elements("IS_TERMINATED", "charge"),
        expect_elements("IS_COMPLETED", "on_declined", "end_declined"),
        expect_state("IS_COMPLETED"),
        expect_variables(why="no cover"),
    )

    assert failure == ""


def test_T1_time_passes_only_where_the_case_says_so(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        create(orderId="o-1", channel="mail"),
        CHARGE,
        PAY,
        {"type": "INCREASE_TIME", "duration": "PT1H59M"},
        expect_elements("IS_NOT_ACTIVATED", "late"),
        {"type": "INCREASE_TIME", "duration": "PT1M"},
        expect_elements("IS_ACTIVE", "ship", "remind"),
        {"type": "COMPLETE_JOB", "jobSelector": {"jobType": "remind-mail"}},
        {"type": "ASSERT_ELEMENT_INSTANCE", **of(), "elementSelector": {"elementName": "Reminded"}, "state": "IS_COMPLETED"},
        SHIP,
        expect_state("IS_COMPLETED"),
    )

    assert failure == ""


def test_time_is_set_and_does_not_go_back(tmp_path: Path) -> None:
    forth = {"type": "SET_TIME", "time": "2031-01-01T00:00:00Z"}

    assert (
        run(tmp_path, create(orderId="o-1", channel="x"), CHARGE, PAY, forth, expect_elements("IS_ACTIVE", "remind")) == ""
    )
    early = {"type": "SET_TIME", "time": "2026-03-15T10:00:00Z"}
    assert (
        run(tmp_path, create(orderId="o-1", channel="x"), CHARGE, PAY, early, expect_elements("IS_ACTIVE", "remind")) == ""
    )
    failure = run(tmp_path, forth, {"type": "SET_TIME", "time": "2030-06-01T00:00:00Z"})
    assert failure.startswith("Expected a time in the future, but 2030-06-01T00:00:00Z is before 2031-01-01")


def test_B1_signal_starts_an_interrupting_event_sub_process(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        create(orderId="o-1"),
        {"type": "BROADCAST_SIGNAL", "signalName": "stop", "variables": {"by": "ann"}},
        expect_elements("IS_TERMINATED", "charge"),
        expect_elements("IS_COMPLETED", "stopping", "on_stop", "stopped"),
        expect_state("IS_COMPLETED"),
        expect_variables(by="ann"),
    )

    assert failure == ""


def test_mocked_jobs_are_served_at_their_times(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        {"type": "MOCK_JOB_WORKER_COMPLETE_JOB", "jobType": "charge-card", "useExampleData": True},
        {"type": "MOCK_JOB_WORKER_COMPLETE_JOB", "jobType": "remind-mail", "variables": {"reminded": True}},
        create(orderId="o-1", channel="mail"),
        expect_variables(receipt="example"),
        PAY,
        {"type": "INCREASE_TIME", "duration": "P1D"},
        expect_elements("IS_COMPLETED", "remind"),
        expect_variables(reminded=True),
        expect_elements("IS_ACTIVE_EXACTLY", "ship"),
    )

    assert failure == ""


def test_mocked_job_throws_an_error(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        {"type": "MOCK_JOB_WORKER_THROW_BPMN_ERROR", "jobType": "charge-card", "errorCode": "DECLINED"},
        create(orderId="o-1"),
        expect_elements("IS_COMPLETED", "end_declined"),
    )

    assert failure == ""


def test_child_process_and_decision_are_mocked(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        {
            "type": "MOCK_CHILD_PROCESS",
            "processDefinitionId": "called",
            "variables": {"divisor": 5, "list": [1, {"a": None}]},
        },
        {"type": "MOCK_DMN_DECISION", "decisionDefinitionId": "rating", "output": "silver"},
        create("calling", total=1),
        expect_state("IS_COMPLETED", "calling"),
        expect_variables("calling", rating="silver", share=2, list=[1, {"a": None}]),
    )

    assert failure == ""


def test_decision_is_looked_at_wherever_it_was_made(tmp_path: Path) -> None:
    selector = {"decisionDefinitionId": "rating"}
    failure = run(
        tmp_path,
        create("calling", total=500, divisor=1),
        {"type": "ASSERT_DECISION", "decisionSelector": selector, "output": "gold", "matchedRules": [1]},
        {"type": "COMPLETE_JOB", "jobSelector": {"processDefinitionId": "called"}},
        expect_state("IS_COMPLETED", "called"),
        expect_state("IS_COMPLETED", "calling"),
        {"type": "EVALUATE_DECISION", "decisionDefinitionSelector": selector, "variables": {"total": 1}},
        {
            "type": "ASSERT_DECISION",
            "decisionSelector": {"decisionDefinitionName": "Rating"},
            "output": "tin",
            "notMatchedRules": [1],
        },
    )

    assert failure == ""


def test_P10_incident_is_corrected_and_resolved(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        create("calling", total=1, divisor=0),
        {"type": "COMPLETE_JOB", "jobSelector": {"jobType": "work"}},
        expect_state("IS_ACTIVE", "calling", hasActiveIncidents=True),
        {"type": "UPDATE_VARIABLES", **of("calling"), "variables": {"divisor": 2}},
        {"type": "RESOLVE_INCIDENT", "incidentSelector": {"elementId": "divide"}},
        expect_state("IS_COMPLETED", "calling"),
        expect_variables("calling", share=5),
    )

    assert failure == ""


def test_P10_failed_job_is_an_incident_and_runs_again(tmp_path: Path) -> None:
    failure = run(
        tmp_path,
        create(orderId="o-1"),
        {"type": "FAIL_JOB", "jobSelector": {"jobType": "charge-card"}, "errorMessage": "no network"},
        expect_state("IS_ACTIVE", hasActiveIncidents=True),
        {"type": "RESOLVE_INCIDENT", "incidentSelector": {"processDefinitionId": "order"}},
        expect_state("IS_ACTIVE", hasActiveIncidents=False),
        CHARGE,
        expect_elements("IS_ACTIVE", "wait"),
    )

    assert failure == ""


def test_conditional_behavior_acts_whenever_its_conditions_hold(tmp_path: Path) -> None:
    active = {"type": "ASSERT_ELEMENT_INSTANCE", **of(), "elementSelector": {"elementId": "charge"}, "state": "IS_ACTIVE"}
    failing = {"type": "FAIL_JOB", "jobSelector": {"elementId": "charge"}}
    broken = expect_state("IS_ACTIVE", hasActiveIncidents=True)
    failure = run(
        tmp_path,
        {
            "type": "CONDITIONAL_BEHAVIOR",
            "conditions": [broken],
            "actions": [{"type": "RESOLVE_INCIDENT", "incidentSelector": {}}],
        },
        {
            "type": "CONDITIONAL_BEHAVIOR",
            "conditions": [active, expect_state("IS_ACTIVE", hasActiveIncidents=False)],
            "actions": [failing, CHARGE],
        },
        create(orderId="o-1"),
        expect_elements("IS_ACTIVE", "wait"),
    )

    assert failure == ""


def test_conditional_behavior_that_does_not_end_fails_the_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_runs, "MOST_ACTIONS", 20)
    endless = {
        "type": "CONDITIONAL_BEHAVIOR",
        "name": "another order",
        "conditions": [expect_state("IS_ACTIVE")],
        "actions": [create(orderId="again")],
    }
    report = run_process_cases(write_case(tmp_path, endless, create(orderId="o-1")))

    [outcome] = report.outcomes
    assert outcome.instruction == 2
    assert outcome.failure == (
        "Expected the case to come to rest, but after 20 actions of conditional behaviour the conditions of "
        "CONDITIONAL_BEHAVIOR 'another order' still hold. Let its action end one of them, or add one."
    )


def test_conditional_behavior_is_counted_anew_behind_each_instruction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_runs, "MOST_ACTIONS", 1)
    active = {"type": "ASSERT_ELEMENT_INSTANCE", **of(), "elementSelector": {"elementId": "charge"}, "state": "IS_ACTIVE"}
    behavior = {"type": "CONDITIONAL_BEHAVIOR", "conditions": [active], "actions": [CHARGE]}

    assert run(tmp_path, behavior, create(orderId="o-1"), create(orderId="o-2"), create(orderId="o-3")) == ""


def test_M2_message_that_is_correlated_needs_a_wait(tmp_path: Path) -> None:
    correlate = {"type": "CORRELATE_MESSAGE", "name": "paid", "correlationKey": "o-1"}

    assert run(tmp_path, create(orderId="o-1"), CHARGE, correlate, expect_elements("IS_ACTIVE", "ship")) == ""
    assert "message 'paid'" in run(tmp_path, create(orderId="o-1"), correlate)


def test_message_without_a_key_finds_the_oldest_wait(tmp_path: Path) -> None:
    pay = {"type": "PUBLISH_MESSAGE", "name": "paid"}

    assert run(tmp_path, create(orderId="o-7"), CHARGE, pay, expect_elements("IS_ACTIVE", "ship")) == ""


def test_M1_published_message_is_kept_for_as_long_as_it_may_live(tmp_path: Path) -> None:
    assert run(tmp_path, PAY, create(orderId="o-1"), CHARGE, expect_elements("IS_ACTIVE", "ship")) == ""
    short = PAY | {"timeToLive": 0}
    assert run(tmp_path, short, create(orderId="o-1"), CHARGE, expect_elements("IS_ACTIVE", "wait")) == ""


def test_P5_local_variables_of_an_element(tmp_path: Path) -> None:
    element = {"elementSelector": {"elementId": "charge"}}
    failure = run(
        tmp_path,
        create(orderId="o-1"),
        {"type": "UPDATE_VARIABLES", **of(), **element, "variables": {"tries": 2}},
        {"type": "ASSERT_VARIABLES", **of(), **element, "variables": {"tries": 2}},
        {"type": "ASSERT_VARIABLES", **of(), "variableNames": ["tries"]},
    )

    assert failure == "Expected process 'order' to have the variables 'tries', but it has 'orderId'."


def test_activities_do_the_jobs_of_their_types(tmp_path: Path) -> None:
    @activity(name="charge-card")
    async def charge(orderId: str) -> dict[str, str]:  # noqa: N803  # the name of the variable
        return {"receipt": f"r-{orderId}"}

    path = write_case(tmp_path, create(orderId="o-1"), expect_variables(receipt="r-o-1"))

    run_process_cases(path, activities=[charge]).check()


@pytest.mark.parametrize(
    ("instruction", "told"),
    [
        (expect_state("IS_COMPLETED"), "Expected process 'order' to be completed, but it is active. Active is: charge."),
        (expect_elements("IS_ACTIVE", "ship"), "Expected the element with elementId 'ship' to be active, but it is not."),
        (expect_variables(total=1), "Expected process 'order' to have the variables 'total', but it has 'orderId'."),
        (expect_variables(orderId=1), "Expected variable 'orderId' of process 'order' to be 1, but it is \"o-1\"."),
        (
            {"type": "COMPLETE_JOB", "jobSelector": {"jobType": "ship"}},
            "Expected a job with jobType 'ship' to wait, but none does. Waiting are: 'charge-card' of 'charge'.",
        ),
        (
            SHIP,
            "Expected a user task with taskName 'Ship it', but there is none that is open. There is no user task at all.",
        ),
        (
            {"type": "RESOLVE_INCIDENT", "incidentSelector": {"elementId": "charge"}},
            "Expected an incident with elementId 'charge', but there is none. No incident is open.",
        ),
        (expect_state("IS_ACTIVE", "other"), "Expected an instance of process 'other', but none was started."),
        (create("other"), "other"),
        ({"type": "INCREASE_TIME", "duration": "1 hour"}, "Expected a duration of ISO 8601"),
        (
            {"type": "ASSERT_VARIABLE", **of(), "variableName": "orderId", "satisfiesExpression": "orderId = 'x'"},
            "to be FEEL, but",
        ),
        (expect_elements("IS_COMPLETED_IN_ORDER", "charge", "start"), "Completed were: start."),
        ({"type": "CONDITIONAL_BEHAVIOR", "conditions": [], "actions": []}, "to have conditions and actions"),
        (create() | {"startInstructions": [{"elementId": "ship"}]}, "which are not supported yet"),
        ({"type": "SET_TIME", "time": "tomorrow"}, "Expected a date and time of ISO 8601"),
        (
            {"type": "EVALUATE_DECISION", "decisionDefinitionSelector": {"decisionDefinitionId": "price"}},
            "to have the decision decisionDefinitionId 'price', but they have 'rating'.",
        ),
        (
            {"type": "ASSERT_DECISION", "decisionSelector": {"decisionDefinitionId": "rating"}},
            "Expected decision 'rating' to have been evaluated, but it was not.",
        ),
        (
            {
                "type": "ASSERT_ELEMENT_INSTANCE",
                **of(),
                "elementSelector": {"elementId": "start"},
                "state": "IS_COMPLETED",
                "amount": 2,
            },
            "to be completed 2 times, but it is once. It is completed once.",
        ),
    ],
)
def test_failure_says_what_is_there_instead(tmp_path: Path, instruction: dict[str, Any], told: str) -> None:
    report = run_process_cases(write_case(tmp_path, create(orderId="o-1"), instruction, name="orders"))

    [outcome] = report.failed
    assert told in outcome.failure
    assert outcome.instruction == 2
    assert outcome.describe().startswith(f"failed: orders ({tmp_path / 'cases.json'}, instruction 2): Expected ")
    with pytest.raises(AssertionError, match="failed: orders"):
        report.check()


def test_case_without_models_or_with_bad_ones_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"testCases": [{"name": "x", "instructions": [create()]}]}))

    with pytest.raises(InvalidArguments, match=r"Expected files to deploy for .*cases\.json, but it names none"):
        run_process_cases(path)
    (tmp_path / "bad.bpmn").write_text("<nothing/>")
    [outcome] = run_process_cases(path).outcomes
    assert "bad.bpmn" in outcome.failure
    assert outcome.instruction == 0
    with pytest.raises(InvalidArguments, match=r"Expected to read .*missing\.json"):
        run_process_cases(tmp_path / "missing.json")


def test_files_of_a_case_are_those_that_it_names(tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"))
    content = json.loads(path.read_text()) | {"resources": ["order.bpmn"]}
    path.write_text(json.dumps(content))

    report = run_process_cases(path)

    report.check()
    assert [one.process.id for one in report.coverage.processes] == ["order"]
    named = run_process_cases(path, resources=[tmp_path / "calling.bpmn"])
    assert "order" in named.failed[0].failure


async def test_cases_run_within_an_async_test(tmp_path: Path) -> None:
    run_process_cases(write_case(tmp_path, create(orderId="o-1"))).check()


def test_no_case_at_all_is_no_success(tmp_path: Path) -> None:
    path = write_case(tmp_path)
    path.write_text('{"testCases": []}')

    with pytest.raises(AssertionError, match="Expected test cases of processes, but the files hold none"):
        run_process_cases(path).check()


def test_process_without_an_end_fails_its_case(tmp_path: Path) -> None:
    (tmp_path / "endless.bpmn").write_text(
        f"""{HEAD}<process id="endless" isExecutable="true"><startEvent id="start"/>
        <sequenceFlow id="f1" sourceRef="start" targetRef="again"/><exclusiveGateway id="again"/>
        <sequenceFlow id="f2" sourceRef="again" targetRef="work"/><task id="work"/>
        <sequenceFlow id="f3" sourceRef="work" targetRef="again"/></process></definitions>"""
    )
    path = write_case(tmp_path, create("endless"))

    [outcome] = run_process_cases(path, resources=[tmp_path / "endless.bpmn"], patience=0.5).outcomes

    assert outcome.failure.startswith("Expected what follows from the instruction to end, but it has not within 0.5 s.")


def test_P11_call_activity_calls_a_workflow_of_the_test(tmp_path: Path) -> None:
    @workflow
    async def called(ctx: Context, total: int) -> dict[str, int]:
        return {"divisor": total}

    whole = CALLING.split('<process id="called"')[0] + "</definitions>"
    path = write_case(tmp_path, create("calling", total=5), expect_variables("calling", share=2))
    (tmp_path / "calling.bpmn").write_text(whole)
    files = [tmp_path / "calling.bpmn", tmp_path / "rating.dmn"]

    run_process_cases(path, resources=files, workflows=[called]).check()
