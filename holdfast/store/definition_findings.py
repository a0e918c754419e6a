"""What a check of a store finds in deployed definitions, their content, incidents and snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from holdfast.core import snapshots
from holdfast.core.codec import decode_with
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.definitions import DefinitionKind, DefinitionState, ResourceRow
from holdfast.store.findings import Finding, Newer, describe_unreadable

_JSON: Final = msgspec.json.Decoder()


class DefinitionFound(NamedTuple):
    """What a check reads of a version of a definition."""

    org: str
    kind: str
    definition_id: str
    version: int
    digest: str
    state: str
    changed: int
    details: bytes
    has_resource: bool
    """Whether its content is there."""


def check_definition(row: DefinitionFound, number: int) -> Iterator[Finding]:
    """What is wrong with a version of a definition. `number`: the settings number."""
    name = f"version {row.version} of definition '{row.definition_id}' ({row.kind}) of org '{row.org}'"
    if row.kind not in set(DefinitionKind):
        yield Newer(f"{name}: '{row.kind}' is nothing that is deployed here")
    if row.state not in set(DefinitionState):
        yield Newer(f"{name}: its state is '{row.state}', which is not known here")
    if not row.has_resource:
        yield f"{name}: its content, {row.digest}, is missing"
    if row.version < 1:
        yield f"{name}: versions are counted from 1"
    if row.changed > number:
        yield f"{name}: it changed with number {row.changed}, and the settings are at {number}: nodes would not hear of it"
    try:
        decode_with(_JSON, row.details, "the details of a definition")
    except (CorruptStore, NewerFormat) as error:
        yield describe_unreadable(name, error)


def check_resource(row: ResourceRow, *, is_named: bool) -> Iterator[Finding]:
    """What is wrong with the content of a deployed file. `is_named`: whether a definition is made of it."""
    name = f"deployed file '{row.name}' of org '{row.org}'"
    if hashlib.sha256(row.data).hexdigest() != row.digest:
        yield f"{name}: its content is not what its digest {row.digest} says"
    if not is_named:
        yield f"{name}: no definition is made of it"


def check_incident(
    execution_id: str, number: int, status: str | None, closed_at: int | None, is_of_org: bool | None
) -> Iterator[Finding]:
    """What is wrong with the row of an incident. `status`: of its execution, None if there is none."""
    yield from _check_owner(f"incident {number} of execution {execution_id}", status, closed_at, is_of_org)


class SnapshotFound(NamedTuple):
    """What a check reads of a snapshot and of its execution."""

    execution_id: str
    sequence: int
    schema: int
    body: bytes
    status: str | None
    """Of its execution; None if there is none."""
    closed_at: int | None
    last: int | None
    """How many events the history has."""
    is_of_org: bool | None


def check_snapshot(row: SnapshotFound) -> Iterator[Finding]:
    """What is wrong with a snapshot, as far as it can be told without folding the history."""
    name = f"snapshot of execution {row.execution_id}"
    yield from _check_owner(name, row.status, row.closed_at, row.is_of_org)
    if row.last is not None and row.sequence > row.last:
        yield f"{name}: it tells of {row.sequence} events, and the history has {row.last}"
    try:
        found = snapshots.decode(row.body, row.schema)
    except CorruptStore as error:
        yield describe_unreadable(name, error)
    except NewerFormat:
        pass  # a cache: where it cannot be read, the history is folded
    else:
        if found is not None and found.sequence != row.sequence:
            yield f"{name}: it tells of {found.sequence} events, its row says {row.sequence}"


def _check_owner(name: str, status: str | None, closed_at: int | None, is_of_org: bool | None) -> Iterator[Finding]:
    if status is None:
        yield f"{name}: there is no such execution"
    elif closed_at is not None:
        yield f"{name}: the execution is {status}"
    elif not is_of_org:
        yield f"{name}: the execution is of another org"
