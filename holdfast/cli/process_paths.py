"""What happened at the elements of a process, as people read it: each element by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.bpmn.reading.files import LIMITS
from holdfast.bpmn.records import decode_records
from holdfast.bpmn.views import AuditKind, AuditLine, Auditor
from holdfast.cli.tables import shorten
from holdfast.safe_xml import XmlRefused, parse_xml
from holdfast.store.definitions import DefinitionKind

if TYPE_CHECKING:
    from holdfast.core.events import ProcessAdvanced
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

_ELEMENTS: Final = {
    AuditKind.ENTERED: "element entered",
    AuditKind.LEFT: "element left",
    AuditKind.ENDED: "element ended",
    AuditKind.WAITS: "element waits",
    AuditKind.SENT: "element sent",
    AuditKind.DECIDED: "decided",
    AuditKind.INCIDENT: "incident",
    AuditKind.RESOLVED: "incident resolved",
    AuditKind.FLOW: "flow taken",
    AuditKind.VARIABLE: "variable set",
}


class ProcessPath:
    """Follows one process through its history. `names` are what the diagram calls elements and flows, by their ids."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._auditor = Auditor()

    def follow(self, event: ProcessAdvanced) -> Iterator[tuple[str, str]]:
        """What happened, in words: of what kind, and what. Records that a codec encoded are one line that says so."""
        if event.records.encoding != "json":
            yield "ProcessAdvanced", f"<encoded as {event.records.encoding!r}>"
            return
        try:
            made = decode_records(event.records)
        except (msgspec.MsgspecError, RecursionError) as error:
            yield "ProcessAdvanced", f"<cannot be read: {error}>"
            return
        for line in self._auditor.expand(made):
            yield _ELEMENTS[line.kind], shorten(self._describe(line))

    def _describe(self, line: AuditLine) -> str:
        if line.kind is AuditKind.VARIABLE:
            value = "" if line.value is None else bytes(line.value).decode(errors="replace")
            return f"{line.name} = {value}"
        parts = [self._name(line.flow if line.kind is AuditKind.FLOW else line.element)]
        if line.kind is AuditKind.WAITS:
            parts.append(" ".join(part for part in (line.text, line.name) if part))
        elif line.kind is AuditKind.INCIDENT:
            parts.append(f"{line.name}: {line.text}")
        elif line.kind is AuditKind.DECIDED:
            parts.append(line.name)
        return ", ".join(part for part in parts if part)

    def _name(self, element: str) -> str:
        name = " ".join(self._names.get(element, "").split())
        return f"{name} ({element})" if name else element


async def read_names(store: Store, row: ExecutionRow) -> dict[str, str]:
    """What the diagram of an execution's process calls its elements, by their ids; none if it is no process."""
    if not row.code_version.isdecimal():
        return {}
    found = await store.definitions.find(row.org, DefinitionKind.BPMN, row.workflow, version=int(row.code_version))
    resource = None if found is None else await store.definitions.read_resource(row.org, found.digest)
    if resource is None:
        return {}
    try:
        root = parse_xml(resource.data, LIMITS)
    except XmlRefused:
        return {}
    return {one.get("id", ""): one.get("name", "") for one in root.iter() if one.get("name")}
