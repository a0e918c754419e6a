"""U1: processes are deployed, started and taken back by every way to reach a database."""

from __future__ import annotations

import pytest

from holdfast.errors import InvalidProcess, UnknownDefinition, UnknownWorkflow
from tests.client.conftest import Way, make_engine
from tests.engine.support.diagrams import make_diagram
from tests.eventually import eventually

UTF_16 = make_diagram("wide").replace("UTF-8", "UTF-16").encode("utf-16")


async def test_U1_a_process_is_deployed_and_started(way: Way) -> None:
    done = await way.verbs.deploy({"purchase.bpmn": make_diagram("purchase"), "wide.bpmn": UTF_16})
    again = await way.verbs.deploy({"purchase.bpmn": make_diagram("purchase")})
    assert [(one.id, one.version, one.is_new) for one in done.definitions] == [("purchase", 1, True), ("wide", 1, True)]
    assert [one.is_new for one in again.definitions] == [False]
    assert await way.verbs.definition_xml("purchase") == make_diagram("purchase").encode()
    assert await way.verbs.definition_xml("wide") == UTF_16

    handle = await way.verbs.start("purchase", {"total": 7}, workflow_id="o")
    if way.is_idle:  # somebody has to own the file for a moment, so that it begins
        async with make_engine(way.url) as engine:
            await engine.handle("o").result(timeout=30)

    assert await handle.result(timeout=30) == {"total": 7, "said": "one"}


async def test_U1_definitions_are_listed_by_pages_and_change_their_states(way: Way) -> None:
    await way.verbs.deploy({"one.bpmn": make_diagram("one"), "two.bpmn": make_diagram("two")})

    page = await way.verbs.definitions(limit=1)
    rest = await way.verbs.definitions(limit=1, cursor=page.cursor)
    assert [one.id for one in [*page, *rest]] == ["one", "two"]
    assert rest.cursor is None

    assert await way.verbs.disable("one")
    assert not await way.verbs.disable("one")
    assert (await way.verbs.definition("one")).state == "disabled"
    with pytest.raises(UnknownWorkflow, match="disabled"):
        await way.verbs.start("one", {})
    assert await way.verbs.enable("one")
    assert await way.verbs.undeploy("one")
    assert [one.id for one in await way.verbs.definitions()] == ["two"]
    with pytest.raises(UnknownDefinition, match="three"):
        await way.verbs.undeploy("three")


async def test_U1_every_problem_reaches_the_caller(way: Way) -> None:
    with pytest.raises(InvalidProcess) as caught:
        await way.verbs.deploy({"a.bpmn": "<a/>", "b.bpmn": "<b/>"})

    assert "a.bpmn:1" in caught.value.message
    assert "b.bpmn:1" in caught.value.message
    assert len(caught.value.problems) == 2
    await eventually(lambda: _has_nothing(way))


async def _has_nothing(way: Way) -> bool:
    return await way.verbs.definitions() == []
