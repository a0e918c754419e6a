"""Deployed definitions, incidents and snapshots for tests of stores."""

from __future__ import annotations

import hashlib
from typing import Any

from holdfast.core import codec, snapshots
from holdfast.core.execution import Details
from holdfast.core.instants import Instant
from holdfast.store.contract import Store
from holdfast.store.definitions import (
    DefinitionKind,
    DefinitionRow,
    DefinitionState,
    DeploymentWrite,
    ResourceRow,
    StateChange,
)
from holdfast.store.incidents import IncidentRow
from holdfast.store.publications import StartSubscriptionRow
from holdfast.store.rows import ExecutionRow
from holdfast.store.snapshots import SnapshotRow
from tests.store.builders import NOW, ORG, id_of, make_row

PROCESS = codec.encode(Details(route_name="bpmn/1"))
"""The details of an execution of a deployed process."""


def make_resource(text: str = "v1", *, org: str = ORG, kind: str = DefinitionKind.BPMN.value) -> ResourceRow:
    data = f"<definitions>{text}</definitions>".encode()
    return ResourceRow(org, hashlib.sha256(data).hexdigest(), f"{text}.{kind}", kind, data)


def make_definition(
    definition_id: str = "order", version: int = 1, *, resource: ResourceRow | None = None, **columns: Any
) -> DefinitionRow:
    content = resource or make_resource(f"v{version}")
    values: dict[str, Any] = {"deployment": f"d{version}", "deployed_at": NOW + version, "kind": content.kind} | columns
    return DefinitionRow(
        org=content.org, definition_id=definition_id, version=version, digest=content.digest, details=b"{}", **values
    )


def make_deployment(
    *definitions: DefinitionRow, resources: Any = None, org: str = ORG, at: Instant = 0, **more: Any
) -> DeploymentWrite:
    """A deployment of these versions, by default with the content that `make_definition` gives them."""
    if resources is None:
        resources = [make_resource(f"v{row.version}", org=row.org, kind=row.kind) for row in definitions]
    return DeploymentWrite(org, at, resources, definitions, **more)


async def read_number(store: Store) -> int:
    """The settings number."""
    return (await store.definitions.read_changed(0, 0)).number


async def deploy(store: Store, write: DeploymentWrite) -> int:
    """Write a deployment, which must be up to date."""
    number = await store.definitions.deploy(write, await read_number(store))
    assert number is not None
    return number


def undeploy(definition_id: str = "order", version: int = 1, kind: str = DefinitionKind.BPMN.value) -> StateChange:
    return StateChange(kind, definition_id, version, DefinitionState.UNDEPLOYED.value)


def make_starting(name: str, workflow: str = "order", *, org: str = ORG, version: str = "1") -> StartSubscriptionRow:
    """A start subscription of a deployment."""
    return StartSubscriptionRow("message", name, workflow, "default", "default\tbpmn/1", version, org)


async def read_starting(store: Store, *names: str, org: str = ORG) -> list[tuple[str, str, str]]:
    """(message, workflow, node) of all that starts by messages of these names in an org."""
    transaction = await store.begin()
    rows = await transaction.read_starts([("message", name) for name in names], org)
    await transaction.rollback()
    return sorted((row.name, row.workflow, row.node) for row in rows)


def make_process(number: int = 1, version: int = 1, **columns: Any) -> ExecutionRow:
    """An execution of a deployed process."""
    return make_row(number, **({"details": PROCESS, "code_version": str(version)} | columns))


def make_incident(number: int = 1, *, of: int = 1, org: str = ORG, **columns: Any) -> IncidentRow:
    """Incident `number` of execution `of`."""
    values: dict[str, Any] = {
        "workflow": "order",
        "workflow_id": f"order-{of}",
        "element": "charge",
        "element_name": "Charge the card",
        "kind": "job",
        "message": "no such card",
        "at": NOW,
    } | columns
    return IncidentRow(org=org, execution_id=id_of(of), number=number, **values)


def make_snapshot(sequence: int = 1, *, of: int = 1, org: str = ORG, program: bytes = b"{}") -> SnapshotRow:
    """The snapshot of execution `of` after so many events."""
    body = snapshots.encode(
        snapshots.Snapshot(
            sequence=sequence,
            last_turn=(1, NOW),
            history_bytes=10,
            open=snapshots.OpenThings(),
            program=program,
            program_schema=1,
        )
    )
    return SnapshotRow(org, id_of(of), sequence, snapshots.SCHEMA, body)
