"""Service tasks that call by HTTP, in processes as they are drawn: results, error events and incidents."""

from __future__ import annotations

from holdfast import http_activity
from holdfast.testing import TestEngine
from tests.connectors.loopback_service import LoopbackService, respond, serving

PROCESS = """<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
             id="file" targetNamespace="http://example.com">
  <process id="prices" isExecutable="true">
    <startEvent id="start" />
    <sequenceFlow id="f1" sourceRef="start" targetRef="ask" />
    <serviceTask id="ask" name="Ask for the price">
      <extensionElements>
        <zeebe:taskDefinition type="TYPE" retries="2" />
        <zeebe:taskHeaders>
          <zeebe:header key="errorExpression"
            value="=if error.code = &quot;404&quot; then bpmnError(&quot;unknown&quot;, null, {article: null}) else null" />
          HEADERS
        </zeebe:taskHeaders>
        <zeebe:ioMapping>
          <zeebe:input source="=base + &quot;/prices&quot;" target="url" />
          <zeebe:input source="={article: article}" target="queryParameters" />
          <zeebe:input source="bearer" target="authentication.type" />
          <zeebe:input source="{{secrets.PRICES}}" target="authentication.token" />
          OUTPUTS
        </zeebe:ioMapping>
      </extensionElements>
    </serviceTask>
    <boundaryEvent id="unknown" attachedToRef="ask"><errorEventDefinition errorRef="error" /></boundaryEvent>
    <sequenceFlow id="f2" sourceRef="unknown" targetRef="none" />
    <endEvent id="none" />
    <sequenceFlow id="f3" sourceRef="ask" targetRef="end" />
    <endEvent id="end" />
  </process>
  <error id="error" errorCode="unknown" />
</definitions>"""
OURS = (
    PROCESS.replace("TYPE", "holdfast:http")
    .replace("HEADERS", "")
    .replace("OUTPUTS", '<zeebe:output source="=response.body.price" target="price" />')
)
CAMUNDAS = (
    PROCESS.replace("TYPE", "io.camunda:http-json:1")
    .replace("HEADERS", '<zeebe:header key="resultExpression" value="={price: response.body.price}" />')
    .replace("OUTPUTS", "")
)
PRICE = respond(200, b'{"price": 12.50}', "Content-Type: application/json")


def make_engine(service: LoopbackService, name: str = "holdfast:http") -> TestEngine:
    activity = http_activity(
        allow=[f"127.0.0.1:{service.port}"], allow_private=["127.0.0.1"], secrets={"PRICES": "s3cret"}, name=name
    )
    return TestEngine(activities=[activity])


async def test_task_maps_its_inputs_and_its_result() -> None:
    async with serving(PRICE) as service, make_engine(service) as engine:
        await engine.deploy({"prices.bpmn": OURS})
        handle = await engine.start("prices", {"base": service.url, "article": "tea & milk"})

        assert (await handle.result())["price"] == 12.5
        assert service.requests[0].startswith(b"GET /prices?article=tea%20%26%20milk HTTP/1.1\r\n")
        assert b"Authorization: Bearer s3cret\r\n" in service.requests[0]


async def test_task_of_camundas_connector_runs_as_it_was_drawn() -> None:
    async with serving(PRICE) as service, make_engine(service, "io.camunda:http-json:1") as engine:
        await engine.deploy({"prices.bpmn": CAMUNDAS})
        handle = await engine.start("prices", {"base": service.url, "article": "tea"})

        assert (await handle.result())["price"] == 12.5


async def test_P3_error_expression_leads_to_the_error_event() -> None:
    async with serving(respond(404)) as service, make_engine(service) as engine:
        await engine.deploy({"prices.bpmn": OURS})
        handle = await engine.start("prices", {"base": service.url, "article": "tea"})

        assert (await handle.result())["article"] is None


async def test_P10_call_that_fails_is_an_incident_and_can_be_resolved() -> None:
    async with serving(respond(500), respond(500), PRICE) as service, make_engine(service) as engine:
        await engine.deploy({"prices.bpmn": OURS})
        handle = await engine.start("prices", {"base": service.url, "article": "tea"}, workflow_id="prices-1")
        await handle.wait_for(lambda status: status.waiting_kind == "incident")
        [incident] = await engine.incidents(target="prices-1")

        assert (incident.element, incident.kind) == ("ask", "job")
        assert "its status is 500" in incident.message
        assert incident.message.endswith(
            "It is tried again while attempts are left; after the last one, look at the service."
        )
        await engine.resolve_incident("prices-1")
        assert (await handle.result())["price"] == 12.5


async def test_P10_refused_address_is_an_incident_at_once() -> None:
    async with serving() as service, make_engine(service) as engine:
        await engine.deploy({"prices.bpmn": OURS})
        handle = await engine.start("prices", {"base": "http://169.254.169.254", "article": "tea"}, workflow_id="prices-2")
        await handle.wait_for(lambda status: status.waiting_kind == "incident")
        [incident] = await engine.incidents(target="prices-2")

        assert "HttpRefused" in incident.message
        assert "allow-list" in incident.message
