"""Executions of processes get their programs: compiled outside of turns, restored from snapshots, the same after a crash."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Engine, activity
from holdfast.cli.check import check_snapshots
from holdfast.core import codec, snapshots
from holdfast.engine.encoded_store import find_bare_store
from holdfast.store.memory.store import MemoryStore
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    id="definitions" targetNamespace="http://example.com">
  <bpmn:process id="count" isExecutable="true">
    <bpmn:startEvent id="start" name="Begin"/>
    <bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="again"/>
    <bpmn:exclusiveGateway id="again" name="Again?" default="on"/>
    <bpmn:sequenceFlow id="on" sourceRef="again" targetRef="step"/>
    <bpmn:serviceTask id="step" name="Step">
      <bpmn:extensionElements><zeebe:taskDefinition type="step" retries="1"/></bpmn:extensionElements>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="back" sourceRef="step" targetRef="again"/>
    <bpmn:sequenceFlow id="out" sourceRef="again" targetRef="end">
      <bpmn:conditionExpression xsi:type="bpmn:tFormalExpression">=i &gt;= most</bpmn:conditionExpression>
    </bpmn:sequenceFlow>
    <bpmn:endEvent id="end" name="Done"/>
  </bpmn:process>
</bpmn:definitions>
"""
FILES = {"count.bpmn": HEAD.encode()}


class Steps:
    """Counts; fails once at a number."""

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at

    @activity(name="step")
    async def step(self, i: int) -> dict[str, int]:
        if i == self.fails_at:
            self.fails_at = -1
            raise ValueError("not this one")
        return {"i": i + 1}


async def begin(engine: Engine, name: str = "c", most: int = 40) -> Any:
    return await engine.start("count", {"i": 0, "most": most, "text": "x" * 100}, workflow_id=name)


async def has_incident(engine: Engine) -> bool:
    return await engine.count_incidents() == 1


async def find_snapshot(engine: Engine) -> int | None:
    return codec.decode_details((await hooks.find_row(engine, "c")).details).snapshot


@pytest.fixture
def short_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SHORTEST", 1_000)


@pytest.mark.usefixtures("short_snapshots")
async def test_P10_process_goes_on_from_its_snapshot_after_a_crash(open_engine: OpenEngine) -> None:
    engine = await open_engine(Steps(fails_at=30).step)
    await engine.deploy(FILES)
    handle = await begin(engine)
    await eventually(lambda: has_incident(engine))
    assert (await find_snapshot(engine) or 0) > 20

    await engine.restart(activities=[Steps().step])
    before = await handle.variables()
    await handle.resolve_incident()

    assert before["i"] == 30
    assert await handle.result() == {"i": 40, "most": 40, "text": "x" * 100}
    history = await handle.history()
    assert history.kinds.count("ActivityCompleted") == 40


@pytest.mark.usefixtures("short_snapshots")
async def test_R1_snapshot_of_a_process_is_what_its_history_amounts_to(open_engine: OpenEngine) -> None:
    engine = await open_engine(Steps(fails_at=30).step)
    await engine.deploy(FILES)
    await begin(engine)
    await eventually(lambda: has_incident(engine))
    store = find_bare_store(engine.store)

    assert await check_snapshots(store) == []
    if isinstance(store, MemoryStore):
        return
    stored = await store.load_snapshot((await hooks.find_row(engine, "c")).execution_id)
    assert stored is not None
    found = snapshots.decode(stored.body, stored.schema)
    assert found is not None
    assert found.program_schema > 0


async def test_process_that_is_not_compiled_is_compiled_before_the_turn(open_engine: OpenEngine) -> None:
    engine = await open_engine(Steps(fails_at=0).step)
    await engine.deploy(FILES)
    handle = await begin(engine, most=1)
    await eventually(lambda: has_incident(engine))

    await engine.restart()
    processes = engine.catalog.processes
    assert processes is not None
    was_ready = processes.is_ready("default", "count", "1")
    await handle.resolve_incident()

    assert not was_ready
    assert (await handle.result())["i"] == 1


async def test_P12_starts_of_a_process_that_no_node_has_compiled_all_begin(open_engine: OpenEngine) -> None:
    engine = await open_engine(Steps().step)
    await engine.deploy(FILES)
    await engine.restart()

    handles = await asyncio.gather(*(begin(engine, f"c{number}", 2) for number in range(20)))

    assert [(await one.result())["i"] for one in handles] == [2] * 20


async def test_P12_node_that_did_not_deploy_starts_and_goes_on(cluster: Cluster) -> None:
    steps = Steps(fails_at=1)
    first, second = await cluster.open("first", steps.step), await cluster.open("second", steps.step)
    await first.deploy(FILES)

    handle = await begin(second, most=3)
    await eventually(lambda: has_incident(second))
    await cluster.kill("second")
    await first.resolve_incident("c")

    assert (await first.handle("c").result(timeout=20))["i"] == 3
    assert handle.created
