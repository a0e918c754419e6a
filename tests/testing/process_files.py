"""Processes, decisions and case files for the tests of process tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

HEAD: Final = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" id="d" targetNamespace="urn:test">'
)

ORDER: Final = (
    HEAD
    + """
  <message id="paid" name="paid"><extensionElements>
    <zeebe:subscription correlationKey="=orderId"/></extensionElements></message>
  <signal id="stop" name="stop"/>
  <error id="declined" name="declined" errorCode="DECLINED"/>
  <process id="order" name="Order" isExecutable="true">
    <startEvent id="start" name="Ordered"/>
    <sequenceFlow id="to_charge" sourceRef="start" targetRef="charge"/>
    <serviceTask id="charge" name="Charge card">
      <extensionElements>
        <zeebe:taskDefinition type="charge-card"/>
        <zeebe:properties>
          <zeebe:property name="camundaModeler:exampleOutputJson" value="{&quot;receipt&quot;: &quot;example&quot;}"/>
        </zeebe:properties>
      </extensionElements>
    </serviceTask>
    <boundaryEvent id="on_declined" name="Declined" attachedToRef="charge">
      <errorEventDefinition errorRef="declined"/></boundaryEvent>
    <sequenceFlow id="to_declined" sourceRef="on_declined" targetRef="end_declined"/>
    <endEvent id="end_declined" name="Order declined"/>
    <sequenceFlow id="to_wait" sourceRef="charge" targetRef="wait"/>
    <intermediateCatchEvent id="wait" name="Paid"><messageEventDefinition messageRef="paid"/></intermediateCatchEvent>
    <sequenceFlow id="to_ship" sourceRef="wait" targetRef="ship"/>
    <userTask id="ship" name="Ship it">
      <extensionElements>
        <zeebe:userTask/><zeebe:assignmentDefinition assignee="ann" candidateGroups="shipping, sales"/>
      </extensionElements>
    </userTask>
    <sequenceFlow id="to_end" sourceRef="ship" targetRef="end"/>
    <endEvent id="end" name="Done"/>
    <boundaryEvent id="late" name="Late" cancelActivity="false" attachedToRef="ship">
      <timerEventDefinition><timeDuration>PT2H</timeDuration></timerEventDefinition>
    </boundaryEvent>
    <sequenceFlow id="to_remind" sourceRef="late" targetRef="remind"/>
    <serviceTask id="remind" name="Remind"><extensionElements>
      <zeebe:taskDefinition type="=&quot;remind-&quot; + channel"/></extensionElements></serviceTask>
    <sequenceFlow id="to_reminded" sourceRef="remind" targetRef="reminded"/>
    <endEvent id="reminded" name="Reminded"/>
    <subProcess id="stopping" name="Stopping" triggeredByEvent="true">
      <startEvent id="on_stop"><signalEventDefinition signalRef="stop"/></startEvent>
      <sequenceFlow id="to_stopped" sourceRef="on_stop" targetRef="stopped"/>
      <endEvent id="stopped"/>
    </subProcess>
  </process>
</definitions>
"""
)

CALLING: Final = (
    HEAD
    + """
  <process id="calling" isExecutable="true">
    <startEvent id="start"/>
    <sequenceFlow id="f1" sourceRef="start" targetRef="rate"/>
    <businessRuleTask id="rate" name="Rate"><extensionElements>
      <zeebe:calledDecision decisionId="rating" resultVariable="rating"/></extensionElements></businessRuleTask>
    <sequenceFlow id="f2" sourceRef="rate" targetRef="call"/>
    <callActivity id="call" name="Call"><extensionElements>
      <zeebe:calledElement processId="called"/></extensionElements></callActivity>
    <sequenceFlow id="f3" sourceRef="call" targetRef="divide"/>
    <scriptTask id="divide" name="Divide"><extensionElements>
      <zeebe:script expression="=if divisor = 0 then assert(null, false) else 10 / divisor" resultVariable="share"/>
    </extensionElements></scriptTask>
    <sequenceFlow id="f4" sourceRef="divide" targetRef="end"/>
    <endEvent id="end"/>
  </process>
  <process id="called" isExecutable="true">
    <startEvent id="called_start"/><sequenceFlow id="c1" sourceRef="called_start" targetRef="work"/>
    <serviceTask id="work"><extensionElements><zeebe:taskDefinition type="work"/></extensionElements></serviceTask>
    <sequenceFlow id="c2" sourceRef="work" targetRef="called_end"/><endEvent id="called_end"/>
  </process>
</definitions>
"""
)

RATING: Final = """
<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="m" name="m" namespace="urn:m">
  <decision id="rating" name="Rating"><variable name="Rating"/>
    <decisionTable hitPolicy="FIRST">
      <input id="i"><inputExpression typeRef="number"><text>total</text></inputExpression></input>
      <output id="o" name="rating" typeRef="string"/>
      <rule id="r1"><inputEntry><text>&gt; 100</text></inputEntry><outputEntry><text>"gold"</text></outputEntry></rule>
      <rule id="r2"><inputEntry><text>-</text></inputEntry><outputEntry><text>"tin"</text></outputEntry></rule>
    </decisionTable>
  </decision>
</definitions>
"""


def write_case(folder: Path, *instructions: dict[str, Any], name: str = "case", file: str = "cases.json") -> Path:
    """Write the models and a file with one case into a folder; the path of the case file."""
    (folder / "order.bpmn").write_text(ORDER)
    (folder / "calling.bpmn").write_text(CALLING)
    (folder / "rating.dmn").write_text(RATING)
    path = folder / file
    path.write_text(json.dumps({"testCases": [{"name": name, "instructions": instructions}]}))
    return path


def create(process: str = "order", **variables: Any) -> dict[str, Any]:
    """The instruction that starts a process."""
    selector = {"processDefinitionId": process}
    return {"type": "CREATE_PROCESS_INSTANCE", "processDefinitionSelector": selector, "variables": variables}


def of(process: str = "order") -> dict[str, Any]:
    """The field by which an assertion names its process."""
    return {"processInstanceSelector": {"processDefinitionId": process}}


def expect_state(state: str, process: str = "order", **more: Any) -> dict[str, Any]:
    """The assertion that a process is in a state."""
    return {"type": "ASSERT_PROCESS_INSTANCE", **of(process), "state": state, **more}


def expect_elements(state: str, *elements: str, process: str = "order") -> dict[str, Any]:
    """The assertion that elements are in a state."""
    selectors = [{"elementId": one} for one in elements]
    return {"type": "ASSERT_ELEMENT_INSTANCES", **of(process), "elementSelectors": selectors, "state": state}


def expect_variables(process: str = "order", **variables: Any) -> dict[str, Any]:
    """The assertion that a process has variables with these values."""
    return {"type": "ASSERT_VARIABLES", **of(process), "variables": variables}


CHARGE: Final[dict[str, Any]] = {
    "type": "COMPLETE_JOB",
    "jobSelector": {"jobType": "charge-card"},
    "variables": {"receipt": 7},
}
PAY: Final[dict[str, Any]] = {
    "type": "PUBLISH_MESSAGE",
    "name": "paid",
    "correlationKey": "o-1",
    "variables": {"paid": True},
}
SHIP: Final[dict[str, Any]] = {
    "type": "COMPLETE_USER_TASK",
    "userTaskSelector": {"taskName": "Ship it"},
    "variables": {"shipped": True},
}
