"""Incidents and variables: listed, counted and corrected, by engines and by clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Client,
    Context,
    EncodingError,
    Engine,
    ExecutionClosed,
    ExecutionNotFound,
    IncidentNotFound,
    InvalidArguments,
    InvalidIdentifier,
    NobodyAnswers,
    WorkflowHandle,
    workflow,
)
from holdfast.store.incidents import IncidentFilter
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.engine.support.ledgers import Ledger
from tests.eventually import eventually


@workflow
async def coded(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


async def begin(engine: Engine, name: str = "l", *words: str) -> WorkflowHandle[Any]:
    handle = await engine.start("ledger", workflow_id=name)
    for word in words:
        await handle.signal("word", word)
    return handle


# --- incidents ---


async def test_P10_incident_is_listed_shown_and_resolved(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), coded)
    handle = await begin(engine, "l", "a", "fail")

    [found] = await engine.incidents()
    info = await handle.status()

    assert (found.workflow_id, found.workflow, found.element, found.element_name) == ("l", "ledger", "Task_1", "Charge")
    assert (found.kind, found.message, found.number) == ("job", "no money", 2)
    assert str(found) == "incident 2 at Charge (Task_1): no money"
    assert (info.waiting_kind, info.waiting_token) == ("incident", "2")
    assert info.pending is not None
    assert [(one.number, one.element) for one in info.pending.incidents] == [(2, "Task_1")]
    await engine.resolve_incident("l", found.number, variables={"money": 7})
    assert await engine.incidents() == []
    assert await handle.variables() == {"money": 7}
    assert "IncidentResolved" in (await handle.history()).kinds


async def test_P10_all_incidents_of_an_execution_are_resolved_at_once(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), coded)
    handle = await begin(engine, "l", "fail", "fail", "fail")
    assert await engine.count_incidents() == 3

    await handle.resolve_incident()

    assert await engine.count_incidents() == 0
    assert await handle.incidents() == []


async def test_incidents_end_with_their_execution(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), coded)
    ended, cancelled = await begin(engine, "a", "fail", "end"), await begin(engine, "b", "fail")

    await cancelled.terminate("enough")

    assert await ended.result() == ["fail", "end"]
    assert await engine.incidents() == []
    assert await engine.store.incidents.search(IncidentFilter("default")) == []


async def test_incidents_are_found_by_their_conditions_page_by_page(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), coded)
    for name in ("a", "b"):
        await begin(engine, name, "fail", "fail")
        await engine.clock.advance(seconds=1)
    await engine.start("ledger", workflow_id="a", org="other")

    pages: list[str] = []
    cursor: str | None = None
    while True:
        page = await engine.incidents(limit=3, cursor=cursor)
        pages += [f"{one.workflow_id}{one.number}" for one in page]
        cursor = page.cursor
        if cursor is None:
            break

    assert pages == ["a1", "a2", "b1", "b2"]
    assert [one.number for one in await engine.incidents(target="b")] == [1, 2]
    assert await engine.count_incidents(workflow="ledger", element="Task_1", kind="job") == 4
    assert await engine.count_incidents(element="Task_2") == 0
    assert await engine.count_incidents(kind="expression") == 0
    assert await engine.count_incidents(workflow="coded") == 0
    assert await engine.incidents(org="other") == []


@pytest.mark.parametrize(
    "conditions",
    [
        {"limit": 0},
        {"limit": 10_001},
        {"limit": "ten"},
        {"cursor": "elsewhere"},
        {"cursor": 7},
        {"workflow": ""},
        {"element": 7},
        {"kind": "a\0b"},
    ],
)
async def test_bad_conditions_of_a_list_are_refused(open_engine: OpenEngine, conditions: dict[str, Any]) -> None:
    engine = await open_engine(Ledger(), coded)

    with pytest.raises(InvalidArguments, match=r"^Expected "):
        await engine.incidents(**conditions)


async def test_what_is_not_there_or_no_process_is_refused(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), coded)
    await begin(engine, "l", "fail")
    await engine.start(coded, workflow_id="c")
    closed = await begin(engine, "closed", "end")
    await closed.result()

    with pytest.raises(ExecutionNotFound):
        await engine.incidents(target="nobody")
    with pytest.raises(ExecutionNotFound):
        await engine.resolve_incident("nobody")
    with pytest.raises(ExecutionClosed):
        await engine.resolve_incident("closed")
    with pytest.raises(IncidentNotFound, match="incident 9"):
        await engine.resolve_incident("l", 9)
    with pytest.raises(InvalidArguments, match="one of a process, but its workflow is code"):
        await engine.resolve_incident("c")
    with pytest.raises(InvalidArguments, match="one of a process, but its workflow is code"):
        await engine.set_variables("c", {"a": 1})
    with pytest.raises(InvalidArguments, match="one of a process, but its workflow is code"):
        await engine.variables("c")
    with pytest.raises(InvalidArguments, match="number of an incident"):
        await engine.resolve_incident("l", 0)
    with pytest.raises(InvalidArguments, match="number of an incident"):
        await engine.resolve_incident("l", True)
    with pytest.raises(InvalidArguments, match="mapping from names"):
        await engine.set_variables("l", ["a"])  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match="mapping from names"):
        await engine.set_variables("l", {1: "a"})  # type: ignore[dict-item]
    with pytest.raises(InvalidArguments, match="scope="):
        await engine.variables("l", scope="")
    with pytest.raises(InvalidArguments, match="local="):
        await engine.set_variables("l", {"a": 1}, local="yes")  # type: ignore[arg-type]
    with pytest.raises(EncodingError):
        await engine.set_variables("l", {"a": object()})
    with pytest.raises(InvalidIdentifier):
        await engine.set_variables("", {"a": 1})
    assert await engine.count_incidents() == 1


# --- variables ---


async def test_variables_are_set_once_for_each_request_id(open_engine: OpenEngine) -> None:
    engine = await open_engine(Ledger(), coded)
    handle = await begin(engine)

    await handle.set_variables({"a": 1, "b": None}, request_id="r")
    await handle.set_variables({"a": 2}, request_id="r")

    assert await engine.variables("l") == {"a": 1, "b": None}
    assert (await handle.history()).kinds.count("UpdateAccepted") == 1
    await engine.restart()
    assert await handle.variables() == {"a": 1, "b": None}


async def test_incident_of_another_node_is_resolved_with_the_same_errors(cluster: Cluster) -> None:
    first = await cluster.open("first", Ledger())
    second = await cluster.open("second", coded)
    await begin(first, "l", "fail")

    with pytest.raises(IncidentNotFound, match="incident 9"):
        await second.resolve_incident("l", 9)
    await second.resolve_incident("l", 1, variables={"a": 1})

    assert await second.incidents() == []
    assert await second.variables("l") == {"a": 1}


# --- clients ---


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Engine]:
    async with Engine(f"sqlite:///{tmp_path}/app.db", workflows=[Ledger(), coded]) as engine:
        yield engine


async def test_U1_client_of_an_owner_repairs_as_the_engine_does(owner: Engine, tmp_path: Path) -> None:
    await begin(owner, "l", "fail")
    async with Client(f"sqlite:///{tmp_path}/app.db") as client:
        [found] = await client.incidents(target="l", limit=5)
        with pytest.raises(IncidentNotFound):
            await client.resolve_incident("l", 9)
        with pytest.raises(InvalidArguments, match="number of an incident"):
            await client.resolve_incident("l", -1)
        await client.set_variables("l", {"a": [1, {"b": None}]}, request_id="r")
        await client.handle("l").resolve_incident(found.number)

        assert await client.variables("l") == {"a": [1, {"b": None}]}
        assert (await client.incidents(), await client.count_incidents()) == ([], 0)


async def test_U1_file_that_nobody_owns_tells_its_incidents(tmp_path: Path) -> None:
    async with Engine(f"sqlite:///{tmp_path}/app.db", workflows=[Ledger()]) as engine:
        await begin(engine, "l", "fail")
        await eventually(engine.count_incidents)
    async with Client(f"sqlite:///{tmp_path}/app.db") as client:
        assert [one.number for one in await client.incidents(workflow="ledger")] == [1]
        assert await client.count_incidents() == 1
        with pytest.raises(NobodyAnswers):
            await client.variables("l")
        with pytest.raises(NobodyAnswers):
            await client.resolve_incident("l")
