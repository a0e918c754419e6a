"""Executions of deployed processes take their definitions and incidents along when they are exported and imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.events import IncidentRaised, WorkflowStarted
from holdfast.core.payloads import NULL
from holdfast.engine.transfer.copying import export_executions, import_executions, require_sound
from holdfast.errors import InvalidArguments
from holdfast.store.contract import Store, TurnWrite
from holdfast.store.definitions import DefinitionFilter
from holdfast.store.incidents import IncidentFilter
from holdfast.store.rows import HistoryRow
from tests.engine.transfer.databases import name_database, opened
from tests.store.builders import NOW, ORG, commit, id_of
from tests.store.definition_builders import (
    deploy,
    make_definition,
    make_deployment,
    make_incident,
    make_process,
    make_resource,
    make_snapshot,
    make_starting,
)


async def start(store: Store, number: int, version: int = 1) -> None:
    """An execution of a process that waits at an incident."""
    row = replace(make_process(number, version), sequence=2)
    started = WorkflowStarted(workflow="order", workflow_id=row.workflow_id, input=NULL, code_version=row.code_version)
    raised = IncidentRaised(number=3, element="charge", element_name="Charge the card", kind="job", message="no such card")
    history = HistoryRow(row.execution_id, 1, 2, NOW, codec.SCHEMA, codec.encode([started, raised]))
    incident = make_incident(3, of=number)
    write = TurnWrite(row, None, history=history, incidents=[incident], snapshot=make_snapshot(2, of=number))
    assert await commit(store, write) == set()


async def export(store: Store, *targets: str) -> list[bytes]:
    return [require_sound(line) async for line in export_executions(store, targets, org=ORG)]


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where executions are imported."""
    return name_database(request, tmp_path, request.param, "target")


@pytest.fixture
async def lines(tmp_path: Path) -> list[bytes]:
    """Exported: three executions of two versions."""
    async with opened(f"sqlite:///{tmp_path / 'source'}.db") as store:
        rows = [make_definition(name="Order", version_tag="stable"), make_definition(version=2)]
        await deploy(store, make_deployment(*rows, starts=[make_starting("begin")], at=NOW))
        for number, version in ((1, 1), (2, 2), (3, 1)):
            await start(store, number, version)
        return await export(store)


async def test_P12_definition_comes_once_before_the_executions_that_keep_its_version(
    lines: list[bytes], target: str
) -> None:
    async with opened(target) as store:
        report = await import_executions(store, lines)
        found = await store.definitions.find(ORG, "bpmn", "order", version=1)
        newest = await store.definitions.find(ORG, "bpmn", "order")
        listed = await store.definitions.search(DefinitionFilter(ORG))
        content = await store.definitions.read_resource(ORG, make_resource("v1").digest)
        again = await export(store)
        problems = await store.check()

    assert [json.loads(line)["holdfast"] for line in lines] == ["definition", "definition", *["execution"] * 3]
    assert (report.imported, report.skipped) == (3, 0)
    assert found is not None
    assert (found.name, found.version_tag, found.deployment, found.state) == ("Order", "stable", "d1", "undeployed")
    assert newest is None, "a copy starts nothing"
    assert [row.version for row in listed] == [2, 1]
    assert content == make_resource("v1")
    assert again == lines
    assert problems == []


async def test_P10_incidents_come_along_and_snapshots_stay_behind(lines: list[bytes], target: str) -> None:
    async with opened(target) as store:
        await import_executions(store, lines)
        incidents = await store.incidents.search(IncidentFilter(ORG))
        snapshot = await store.load_snapshot(id_of(1))

    assert incidents == [make_incident(3, of=number) for number in (1, 2, 3)]
    assert snapshot is None


async def test_P11_definition_that_is_there_stays_as_it_is(lines: list[bytes], target: str) -> None:
    async with opened(target) as store:
        await deploy(store, make_deployment(make_definition()))
        await import_executions(store, lines)
        rows = await store.definitions.search(DefinitionFilter(ORG))

    assert [(row.version, row.state) for row in rows] == [(2, "undeployed"), (1, "active")]


async def test_P11_version_that_has_another_content_here_is_refused(lines: list[bytes], target: str) -> None:
    other = make_resource("other")
    async with opened(target) as store:
        await deploy(store, make_deployment(make_definition(resource=other), resources=[other]))
        with pytest.raises(InvalidArguments, match="version 1 of 'order' to be the same here"):
            await import_executions(store, lines)


async def test_D3_imported_definition_goes_with_its_executions(lines: list[bytes], target: str) -> None:
    async with opened(target) as store:
        await import_executions(store, lines)
        await store.purge(2**62, 10)
        kept = await store.definitions.search(DefinitionFilter(ORG))

    assert len(kept) == 2, "its executions are open"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("content", "PGE+", "the content is not what the digest says - at `$.digest`"),
        ("content", "?", "the content is no base64"),
        ("number", 0, "at `$.number`"),
        ("version", 2, "at `$.version`"),
        ("kind", "python", "at `$.kind`"),
        ("more", 1, "unknown field `more`"),
    ],
)
async def test_line_that_is_no_definition_is_refused(
    lines: list[bytes], tmp_path: Path, field: str, value: object, reason: str
) -> None:
    broken = json.dumps({**json.loads(lines[0]), field: value})

    async with opened(f"sqlite:///{tmp_path / 'target'}.db") as store:
        with pytest.raises(InvalidArguments, match="Expected line 1 to hold an execution") as refused:
            await import_executions(store, [broken])

    assert reason in str(refused.value)


async def test_incidents_that_the_history_does_not_leave_open_are_refused(lines: list[bytes], tmp_path: Path) -> None:
    line = json.loads(lines[2])
    del line["incidents"]

    async with opened(f"sqlite:///{tmp_path / 'target'}.db") as store:
        with pytest.raises(InvalidArguments, match=r"incidents are not those that its history leaves open"):
            await import_executions(store, [json.dumps(line)])
