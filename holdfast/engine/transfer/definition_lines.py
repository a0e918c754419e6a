"""Versions of deployed processes as exported lines of their own, and the incidents of an execution as parts of its line.

A line of a definition comes before the first execution that needs it. Where it is imported, the version is there for its
executions and starts nothing: whoever wants to start it there deploys it. So a copy never starts by timers and messages what
the original starts too.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from holdfast.core import codec
from holdfast.core.instants import from_datetime, to_datetime
from holdfast.engine.transfer.line_types import Name, Number, StrictStruct, Text, Time
from holdfast.errors import InvalidArguments, StoreError
from holdfast.store.attributes import is_process
from holdfast.store.definitions import DefinitionKind, DefinitionRow, DefinitionState, DeploymentWrite, ResourceRow
from holdfast.store.incidents import IncidentRow
from holdfast.store.rows import ExecutionRow

if TYPE_CHECKING:
    from holdfast.store.contract import Store

VERSION: Final = 1
"""The version of the format that this code writes."""
_TRIES: Final = 100
"""So often a definition is put anew if others deploy or pause at the same time."""


class IncidentFields(StrictStruct, frozen=True, kw_only=True):
    """An open incident of the execution."""

    number: Number
    element: Text
    element_name: Text
    kind: Name
    message: Text
    at: Time


def write_incidents(rows: Sequence[IncidentRow]) -> list[IncidentFields]:
    """The open incidents of an execution."""
    return [
        IncidentFields(
            number=one.number,
            element=one.element,
            element_name=one.element_name,
            kind=one.kind,
            message=one.message.replace("\0", "\ufffd"),
            at=to_datetime(one.at),
        )
        for one in rows
    ]


def read_incidents(row: ExecutionRow, incidents: Sequence[IncidentFields]) -> tuple[IncidentRow, ...]:
    """The rows of the open incidents of an execution."""
    return tuple(
        IncidentRow(
            org=row.org,
            execution_id=row.execution_id,
            number=one.number,
            workflow=row.workflow,
            workflow_id=row.workflow_id,
            element=one.element,
            element_name=one.element_name,
            kind=one.kind,
            message=one.message,
            at=from_datetime(one.at),
        )
        for one in incidents
    )


# --- definitions ----------------------------------------------------------------------------------------------------------


class DefinitionCopy(Struct, frozen=True):
    """A version of a deployed process with its content."""

    row: DefinitionRow
    resource: ResourceRow


class DefinitionLine(StrictStruct, frozen=True, kw_only=True):
    """One exported version of a deployed process: the whole line."""

    holdfast: Literal["definition"] = "definition"
    version: Annotated[int, Meta(ge=1, le=VERSION)] = VERSION
    org: Name
    kind: DefinitionKind
    definition_id: Name
    number: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    """Its version."""
    name: Text
    version_tag: Text
    deployment: Text
    deployed_at: Time
    details: Raw
    file: Text
    """The name of the deployed file."""
    digest: Name
    content: str
    """The content of the deployed file, in base64."""


class _Kind(Struct):
    holdfast: str = ""


_LINE: Final = msgspec.json.Decoder(DefinitionLine)
_KIND: Final = msgspec.json.Decoder(_Kind)
_START: Final = b'{"holdfast":"definition"'


class DefinitionsWriter:
    """Writes each definition of exported executions once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written: set[tuple[str, str, str]] = set()

    async def list_lines(self, rows: Sequence[ExecutionRow]) -> list[bytes]:
        """The lines of definitions that these executions need and that were not written before."""
        lines = []
        for row in rows:
            key = (row.org, row.workflow, row.code_version)
            if key in self._written or not is_process(row.details) or not row.code_version.isdecimal():
                continue
            self._written.add(key)
            found = await self._read(row.org, row.workflow, int(row.code_version))
            if found is not None:
                lines.append(write_definition(found))
        return lines

    async def _read(self, org: str, definition_id: str, version: int) -> DefinitionCopy | None:
        """A version with its content; None where it is gone, without which an execution is still worth keeping."""
        definitions = self._store.definitions
        row = await definitions.find(org, DefinitionKind.BPMN.value, definition_id, version=version)
        resource = None if row is None else await definitions.read_resource(org, row.digest)
        return None if row is None or resource is None else DefinitionCopy(row, resource)


def write_definition(copy: DefinitionCopy) -> bytes:
    """Encode a version of a process as one line of JSON."""
    row, resource = copy.row, copy.resource
    line = DefinitionLine(
        org=row.org,
        kind=DefinitionKind(row.kind),
        definition_id=row.definition_id,
        number=row.version,
        name=row.name,
        version_tag=row.version_tag,
        deployment=row.deployment,
        deployed_at=to_datetime(row.deployed_at),
        details=Raw(row.details),
        file=resource.name,
        digest=resource.digest,
        content=b64encode(resource.data).decode(),
    )
    return codec.encode(line)


def is_definition(text: bytes) -> bool:
    """Whether a line is one of a definition."""
    if text.startswith(_START):
        return True
    try:
        return _KIND.decode(text).holdfast == "definition"
    except (msgspec.MsgspecError, RecursionError):
        return False


def read_definition(text: bytes) -> DefinitionCopy:
    """Decode the line of a definition, and check its content. Raises ValueError that names the field."""
    try:
        line = _LINE.decode(text)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    try:
        data = b64decode(line.content, validate=True)
    except (Base64Error, ValueError) as error:
        raise ValueError(f"the content is no base64 ({error}) - at `$.content`") from error
    if hashlib.sha256(data).hexdigest() != line.digest:
        raise ValueError("the content is not what the digest says - at `$.digest`")
    row = DefinitionRow(
        line.org,
        line.kind.value,
        line.definition_id,
        line.number,
        line.digest,
        line.deployment,
        from_datetime(line.deployed_at),
        DefinitionState.UNDEPLOYED.value,
        line.name,
        line.version_tag,
        details=bytes(line.details),
    )
    return DefinitionCopy(row, ResourceRow(line.org, line.digest, line.file, line.kind.value, data))


async def put_definition(store: Store, copy: DefinitionCopy) -> bool:
    """Put a version of a process for its executions alone, unless it is there; whether it was put.

    Raises InvalidArguments if the version has another content here.
    """
    row, definitions = copy.row, store.definitions
    for _ in range(_TRIES):
        number = (await definitions.read_changed(0, 0)).number
        found = await definitions.find(row.org, row.kind, row.definition_id, version=row.version)
        if found is not None:
            if found.digest != row.digest:
                raise InvalidArguments(
                    f"Expected version {row.version} of '{row.definition_id}' to be the same here, but another content was "
                    "deployed as that version. Import into a database where it was not."
                )
            return False
        write = DeploymentWrite(row.org, time_ns() // 1000, [copy.resource], [row])
        if await definitions.deploy(write, number) is not None:
            return True
    raise StoreError("Expected to import a definition, but others deploy or pause all the time. Import it again.")
