"""What a node knows of deployed processes, and when they are ready for turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from holdfast.core.commands import StartChild
from holdfast.core.payloads import encode
from holdfast.engine.processes.deployed_processes import DeployedProcesses
from holdfast.engine.processes.known_definitions import KnownDefinitions
from holdfast.errors import ProcessNotStartable
from holdfast.store.definitions import DefinitionKind
from holdfast.testing import TestEngine
from tests.engine.support.diagrams import make_diagram, make_file, make_process

ORG = "default"
DECISION = """<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/" id="d" name="d" namespace="http://example.org">
  <decision id="rate" name="rate">
    <variable name="rate"/><literalExpression><text>{value}</text></literalExpression>
  </decision>
</definitions>"""
RULE = """<bpmn:businessRuleTask id="work"><bpmn:extensionElements><zeebe:calledDecision decisionId="rate"
  resultVariable="said"/></bpmn:extensionElements><bpmn:incoming>in</bpmn:incoming><bpmn:outgoing>out</bpmn:outgoing>
  </bpmn:businessRuleTask>"""


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine in memory."""
    async with TestEngine() as engine:
        yield engine


def start_child(name: str, *, version: str = "", version_tag: str = "", deployment: str = "") -> StartChild:
    """The command of a parent."""
    given = encode({}, "the input")
    return StartChild(number=1, workflow=name, input=given, version=version, version_tag=version_tag, deployment=deployment)


async def test_a_process_is_ready_once_it_is_compiled(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram()})
    processes = DeployedProcesses(engine.store)
    await processes.refresh()
    assert not processes.is_ready(ORG, "order", "1")

    await asyncio.gather(*(processes.make_ready(ORG, "order", "1") for _ in range(5)))

    assert processes.is_ready(ORG, "order", "1")
    assert processes.is_ready(ORG, "unknown", "1")


async def test_those_used_least_recently_go_when_there_are_too_many_bytes(engine: TestEngine) -> None:
    files = {f"{name}.bpmn": make_diagram(name) for name in ("a", "b", "c")}
    await engine.deploy(files)
    processes = DeployedProcesses(engine.store, most_bytes=2 * len(make_diagram("a").encode()))

    for name in ("a", "b", "c"):
        await processes.make_ready(ORG, name, "1")

    assert [processes.is_ready(ORG, name, "1") for name in ("a", "b", "c")] == [False, True, True]


async def test_what_is_not_known_is_read_before_it_is_made_ready(engine: TestEngine) -> None:
    processes = DeployedProcesses(engine.store)
    await processes.refresh()
    await engine.deploy({"order.bpmn": make_diagram()})

    await processes.make_ready(ORG, "order", "1")

    assert processes.is_ready(ORG, "order", "1")
    assert processes.find_newest(ORG, "order") is processes.find_version(ORG, "order", "1")


async def test_a_child_is_bound_to_a_version_a_tag_or_the_newest(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram(tag="stable")})
    await engine.deploy({"order.bpmn": make_diagram(says="two")})
    processes = DeployedProcesses(engine.store)
    await processes.refresh()

    found = [
        processes.bind_child(ORG, start_child("order", **binding))
        for binding in ({}, {"version": "1"}, {"version_tag": "stable"})
    ]

    assert [one.version for one in found if one is not None] == ["2", "1", "1"]
    assert processes.bind_child(ORG, start_child("code")) is None
    assert processes.bind_child("other", start_child("order")) is None
    for missing in ({"version": "7"}, {"version_tag": "none"}, {"deployment": "none"}):
        bound = processes.bind_child(ORG, start_child("order", **missing))
        assert bound is not None
        assert bound.failure is not None
        assert bound.failure.type == "ProcessNotStartable"


async def test_a_disabled_process_is_no_child_and_an_undeployed_name_may_be_code(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram()})
    await engine.disable("order")
    processes = DeployedProcesses(engine.store)
    await processes.refresh()

    disabled = processes.bind_child(ORG, start_child("order"))
    await engine.undeploy("order")
    await processes.refresh()

    assert disabled is not None
    assert disabled.failure is not None
    assert "disabled" in disabled.failure.message
    assert processes.bind_child(ORG, start_child("order")) is None


async def test_a_decision_that_is_deployed_later_is_used_by_the_next_task(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_file(make_process(work=RULE)), "rate.dmn": DECISION.format(value=1)})
    first = await (await engine.start("order", {})).result(timeout=60)

    await engine.deploy({"rate.dmn": DECISION.format(value=2)})
    second = await (await engine.start("order", {})).result(timeout=60)

    assert [first["said"], second["said"]] == [1, 2]


async def test_a_process_without_a_plain_start_event_cannot_be_called(engine: TestEngine) -> None:
    timer = "<bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition>"
    await engine.deploy({"order.bpmn": make_diagram(trigger=timer)})

    with pytest.raises(ProcessNotStartable, match="start event"):
        await engine.start("order", {})


async def test_keywords_and_a_dataclass_are_variables_too(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram()})

    by_name = await (await engine.start("order", total=7)).result(timeout=60)
    by_input = await (await engine.start("order", workflow_input={"total": 8})).result(timeout=60)

    assert [by_name["total"], by_input["total"]] == [7, 8]


async def test_a_process_is_started_by_a_schedule_with_its_newest_version(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram()})
    await engine.create_schedule("daily", "PT1H", "order", {"total": 7})
    await engine.deploy({"order.bpmn": make_diagram(says="two")})

    await engine.clock.advance(hours=1)
    await engine.settle()

    (info,) = await engine.list(workflow="order")
    assert info.code_version == "2"
    assert await engine.handle(info.workflow_id).result(timeout=60) == {"total": 7, "said": "two"}


async def test_what_is_undeployed_goes_with_its_last_execution(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram()})
    await (await engine.start("order", {})).result(timeout=60)
    await engine.undeploy("order")
    assert len(await engine.definitions(all_versions=True)) == 1

    await engine.clock.advance(days=40)
    now = engine.clock.now()
    while await engine.store.purge(now, 100):
        pass

    assert await engine.definitions(all_versions=True) == []
    again = await engine.deploy({"order.bpmn": make_diagram(says="two")})
    assert again.definitions[0].is_new
    assert await (await engine.start("order", {})).result(timeout=60) == {"said": "two"}


async def test_a_disabled_process_that_is_not_compiled_is_refused(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram()})
    await engine.disable("order")
    await engine.restart()

    with pytest.raises(ProcessNotStartable, match="disabled"):
        await engine.start("order", {})
    with pytest.raises(ProcessNotStartable, match="disabled"):
        await engine.start("order", {}, version="1")

    assert await engine.list() == []


async def test_definitions_of_a_later_state_are_forgotten_when_the_database_goes_back(engine: TestEngine) -> None:
    await engine.deploy({"order.bpmn": make_diagram()})
    known = KnownDefinitions(engine.store)
    await known.refresh()
    gone = next(known.list_latest(DefinitionKind.BPMN))
    known._take([replace(gone, version=2)])

    known.note_went_back()
    await known.refresh()

    assert known.find_version("default", DefinitionKind.BPMN, "order", 2) is None
    assert known.find_version("default", DefinitionKind.BPMN, "order", 1) is not None
