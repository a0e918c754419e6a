"""Rules P11, P12 and I5 of processes: versions, which of them a start gets, and whose they are."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from holdfast import workflow
from holdfast.code.context import Context
from holdfast.errors import DeploymentRefused, InvalidArguments, InvalidProcess, ProcessNotStartable, UnknownWorkflow
from holdfast.testing import TestEngine
from tests.engine.support.diagrams import (
    make_by_message,
    make_caller,
    make_diagram,
    make_file,
    make_process,
    make_waiting,
)
from tests.rules.world import Nodes, World


@workflow(name="order")
async def order_in_code(_ctx: Context) -> str:
    return "code"


async def run(engine: TestEngine, process: str = "order", **options: str) -> str:
    """What the newest version, or the one asked for, says."""
    handle = await engine.start(process, {}, **options)
    result = await handle.result(timeout=60)
    said: str = result["said"]
    return said


async def test_P11_unchanged_content_makes_no_new_version(world: World) -> None:
    engine = await world.open()

    first = await engine.deploy({"order.bpmn": make_diagram()})
    again = await engine.deploy({"other name.bpmn": make_diagram()})
    changed = await engine.deploy({"order.bpmn": make_diagram(says="two")})

    assert [(one.version, one.is_new) for one in first.definitions] == [(1, True)]
    assert [(one.version, one.is_new) for one in again.definitions] == [(1, False)]
    assert again.id == first.id
    assert [(one.version, one.is_new) for one in changed.definitions] == [(2, True)]
    assert await run(engine) == "two"
    assert await run(engine, version="1") == "one"


async def test_P11_a_deployment_is_all_or_nothing(world: World) -> None:
    engine = await world.open()

    with pytest.raises(InvalidProcess, match=r"bad\.bpmn:1") as caught:
        await engine.deploy({"order.bpmn": make_diagram(), "bad.bpmn": "<a/>", "worse.dmn": "<b/>"})

    assert {one.file for one in caught.value.problems} == {"bad.bpmn", "worse.dmn"}
    assert await engine.definitions() == []
    with pytest.raises(UnknownWorkflow):
        await engine.start("order", {})


async def test_P11_a_call_binds_to_the_newest_to_its_deployment_or_to_a_tag(world: World) -> None:
    engine = await world.open()
    await engine.deploy(
        {
            "order.bpmn": make_diagram(says="one", tag="stable"),
            "latest.bpmn": make_caller("order", process_id="by_latest"),
            "deployment.bpmn": make_caller("order", process_id="by_deployment", binding="deployment"),
            "tag.bpmn": make_caller("order", process_id="by_tag", binding="versionTag", tag="stable"),
        }
    )

    await engine.deploy({"order.bpmn": make_diagram(says="two")})

    assert await run(engine, "by_latest") == "two"
    assert await run(engine, "by_deployment") == "one"
    assert await run(engine, "by_tag") == "one"


async def test_P11_another_version_of_what_is_bound_by_deployment_is_another_version_of_the_caller(world: World) -> None:
    engine = await world.open()
    caller = make_caller("order", binding="deployment")
    await engine.deploy({"order.bpmn": make_diagram(), "caller.bpmn": caller})

    unchanged = await engine.deploy({"order.bpmn": make_diagram(), "caller.bpmn": caller})
    changed = await engine.deploy({"order.bpmn": make_diagram(says="two"), "caller.bpmn": caller})

    assert {one.id: one.is_new for one in unchanged.definitions} == {"order": False, "caller": False}
    assert {one.id: one.version for one in changed.definitions} == {"order": 2, "caller": 2}
    assert await run(engine, "caller") == "two"


async def test_P12_a_start_after_deploy_returned_gets_the_new_version_on_every_node(nodes: Nodes) -> None:
    one, two = await nodes.open("one"), await nodes.open("two")

    for says in ("first", "second", "third"):
        await one.deploy({"order.bpmn": make_diagram(says=says)})
        assert [await run(two), await run(one)] == [says, says]
        one, two = two, one


async def test_P12_a_node_whose_batch_is_under_way_takes_the_new_version(nodes: Nodes) -> None:
    one, two = await nodes.open("one"), await nodes.open("two")
    await one.deploy({"order.bpmn": make_diagram(says="old")})
    assert await run(two) == "old"

    nodes.pause("two")
    late = asyncio.ensure_future(run(two))
    await nodes.paused("two")
    await one.deploy({"order.bpmn": make_diagram(says="new")})
    nodes.resume("two")

    assert await late == "new"


async def test_P12_an_execution_keeps_its_version(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_waiting(says="one")})
    handle = await engine.start("order", {"key": "7"})

    await engine.deploy({"order.bpmn": make_diagram(says="two")})
    await engine.restart()
    await engine.send_message("go", "7", {"paid": True})

    assert await engine.handle(handle.workflow_id).result(timeout=60) == {"key": "7", "paid": True}
    assert (await engine.query_status(handle.workflow_id)).code_version == "1"


async def test_P12_undeploying_ends_starts_and_not_instances(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_waiting()})
    handle = await engine.start("order", {"key": "7"})

    assert await engine.undeploy("order")
    assert not await engine.undeploy("order")

    with pytest.raises(UnknownWorkflow, match="order"):
        await engine.start("order", {"key": "8"})
    await engine.restart()
    await engine.send_message("go", "7", {})
    assert await engine.handle(handle.workflow_id).result(timeout=60) == {"key": "7"}


async def test_P12_undeploying_the_newest_version_brings_the_one_before_back(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_diagram(says="one")})
    await engine.deploy({"order.bpmn": make_diagram(says="two")})

    await engine.undeploy("order", version=2)

    assert await run(engine) == "one"


async def test_P12_what_is_disabled_starts_nothing_until_it_is_enabled(nodes: Nodes) -> None:
    one, two = await nodes.open("one"), await nodes.open("two")
    await one.deploy({"order.bpmn": make_diagram()})
    assert await run(two) == "one"

    assert await one.disable("order")

    for engine in (one, two):
        with pytest.raises(ProcessNotStartable, match="disabled"):
            await engine.start("order", {})
    assert await two.enable("order")
    assert [await run(one), await run(two)] == ["one", "one"]


async def test_P12_deployments_at_the_same_time_give_each_content_its_own_version(nodes: Nodes) -> None:
    engines = [await nodes.open(f"node-{number}") for number in range(3)]
    files = [make_diagram(says=f"content {number}") for number in range(6)]

    done = await asyncio.gather(
        *(engines[number % 3].deploy({"order.bpmn": content}) for number, content in enumerate(files))
    )

    versions = {one.definitions[0].version: content for one, content in zip(done, files, strict=True)}
    assert sorted(versions) == [1, 2, 3, 4, 5, 6]
    for version, content in versions.items():
        assert await engines[0].definition_xml("order", version=version) == content.encode()


async def test_I4_variables_that_are_no_object_are_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_diagram()})

    for bad in (["a"], "text", 7, {1: "x"}):
        with pytest.raises(InvalidArguments):
            await engine.start("order", bad)

    assert await engine.list() == []


async def test_I5_processes_of_two_orgs_never_meet(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_diagram(says="a")}, org="a")
    await engine.deploy({"order.bpmn": make_diagram(says="b")}, org="b")

    results = [await (await engine.start("order", {}, org=org)).result(timeout=60) for org in ("a", "b")]
    with pytest.raises(UnknownWorkflow):
        await engine.start("order", {})

    assert results == [{"said": "a"}, {"said": "b"}]
    assert [one.org for one in await engine.definitions(org="a")] == ["a"]
    await engine.undeploy("order", org="a")
    assert (await (await engine.start("order", {}, org="b")).result(timeout=60)) == {"said": "b"}


async def test_P11_a_process_cannot_have_the_name_of_a_code_workflow_of_a_node(nodes: Nodes) -> None:
    await nodes.open("one", [order_in_code])
    other = await nodes.open("two")

    with pytest.raises(DeploymentRefused, match="order"):
        await other.deploy({"order.bpmn": make_diagram()})


async def test_M2_a_message_cannot_start_two_processes_of_an_org(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"one.bpmn": make_by_message("one")})

    with pytest.raises(DeploymentRefused, match="placed"):
        await engine.deploy({"two.bpmn": make_by_message("two")})

    await engine.deploy({"two.bpmn": make_by_message("two")}, org="other")
    await engine.undeploy("one")
    assert (await engine.deploy({"two.bpmn": make_by_message("two")})).definitions[0].is_new


async def test_P11_a_file_may_have_several_processes(world: World) -> None:
    engine = await world.open()

    done = await engine.deploy({"both.bpmn": make_file(make_process("one", says="1"), make_process("two", says="2"))})

    assert [one.id for one in done.definitions] == ["one", "two"]
    assert [await run(engine, "one"), await run(engine, "two")] == ["1", "2"]


BOUND = {"binding": "deployment", "process_id": "parent"}


async def test_P11_unchanged_content_without_what_it_is_bound_to_makes_no_new_version(world: World) -> None:
    engine = await world.open()
    parent = make_caller("order", **BOUND)
    await engine.deploy({"order.bpmn": make_diagram(), "parent.bpmn": parent})

    alone = await engine.deploy({"parent.bpmn": parent})

    assert not alone.definitions[0].is_new
    assert await run(engine, "parent") == "one"


async def test_P12_execution_calls_what_it_was_deployed_with_after_that_was_undeployed(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_diagram(), "parent.bpmn": make_caller("order", **BOUND)})
    await engine.undeploy("order")

    assert await run(engine, "parent") == "one"


async def test_P12_what_an_execution_is_bound_to_is_not_purged(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_diagram(), "parent.bpmn": make_caller("order", **BOUND)})
    await engine.start("parent", {}, workflow_id="parent", delay=timedelta(days=80))
    await engine.undeploy("order")
    await engine.clock.advance(days=40)
    while await engine.store.purge(engine.clock.now(), 100):
        pass

    await engine.deploy({"order.bpmn": make_diagram(says="another")})

    result = await engine.handle("parent").result()
    assert result["said"] == "one"


async def test_P11_other_content_with_the_number_of_a_purged_version_makes_a_new_caller(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_diagram(), "parent.bpmn": make_caller("order", **BOUND)})
    await engine.undeploy("order")
    await engine.clock.advance(days=40)
    while await engine.store.purge(engine.clock.now(), 100):
        pass
    await engine.restart()  # by what is stored, the number is free

    again = await engine.deploy({"order.bpmn": make_diagram(says="two"), "parent.bpmn": make_caller("order", **BOUND)})

    assert [(one.id, one.version) for one in again.definitions] == [("order", 1), ("parent", 2)]
    result = await (await engine.start("parent", {})).result(timeout=60)
    assert result["said"] == "two"


async def test_P12_whoever_passes_code_means_the_code(world: World) -> None:
    engine = await world.open()
    await engine.deploy({"order.bpmn": make_diagram()})
    engine.add_workflow(order_in_code)

    in_code = await engine.start(order_in_code)

    assert await in_code.result(timeout=60) == "code"
    assert await run(engine) == "one"
