"""Decision models and forms that processes refer to: loaded outside of turns, found within them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from holdfast.engine.processes.compiling import load_decisions
from holdfast.store.definitions import DefinitionKind, DefinitionState

if TYPE_CHECKING:
    from holdfast.bpmn import model
    from holdfast.bpmn.linked import LinkedDecision
    from holdfast.engine.processes.compiling import Reference
    from holdfast.engine.processes.known_definitions import KnownDefinitions
    from holdfast.store.contract import Store
    from holdfast.store.definitions import DefinitionRow


class LoadedResources:
    """The decision models and forms that are in memory, by their org and digest."""

    def __init__(self, store: Store, known: KnownDefinitions) -> None:
        self._store = store
        self.known = known
        self._loaded: dict[tuple[str, str], Any] = {}
        self._users: WeakValueDictionary[tuple[str, str, tuple[Reference, ...]], ResourcesOfDeployment] = (
            WeakValueDictionary()
        )
        """What programs that are in memory find their decisions by."""

    def share(self, org: str, deployment: str, references: tuple[Reference, ...]) -> ResourcesOfDeployment:
        """What programs of a process find: what it refers to stays in memory as long as somebody has it."""
        key = org, deployment, references
        found = self._users.get(key)
        if found is None:
            found = self._users[key] = ResourcesOfDeployment(org, deployment, self)
        return found

    def list_rows(self, org: str, deployment: str, references: Iterable[Reference]) -> Iterator[DefinitionRow]:
        """The definitions that references mean now; of those that are not there, none."""
        for one in references:
            ids = [one.id] if one.id else self.known.list_names(org, one.kind)
            for definition_id in ids:
                row = self.find_row(org, deployment, one.kind, definition_id, one.binding, one.version_tag)
                if row is not None:
                    yield row

    def find_row(
        self, org: str, deployment: str, kind: DefinitionKind, name: str, binding: str, version_tag: str
    ) -> DefinitionRow | None:
        """The definition that a reference means, as the org has it now; None if it has none that may be used."""
        if binding == "deployment":
            row = self.known.find_of_deployment(org, kind, name, deployment)
        elif binding == "versionTag":
            row = self.known.find_tagged(org, kind, name, version_tag)
        else:
            row = self.known.find_latest(org, kind, name)
        if row is None or (row.state == DefinitionState.DISABLED and binding != "deployment"):
            return None
        return row

    def has(self, row: DefinitionRow) -> bool:
        """Whether the content of a definition is in memory."""
        return (row.org, row.digest) in self._loaded

    def get(self, row: DefinitionRow) -> Any:
        """The decision model of a definition, or the bytes of a form; None if it is not in memory."""
        return self._loaded.get((row.org, row.digest))

    async def load(self, rows: Iterable[DefinitionRow]) -> None:
        """Read what is not in memory; models are loaded in threads. Raises StoreError, or DmnError for damaged content."""
        for row in rows:
            if self.has(row):
                continue
            resource = await self._store.definitions.read_resource(row.org, row.digest)
            if resource is None:
                continue  # it was purged meanwhile
            is_model = row.kind == DefinitionKind.DMN
            self._loaded[row.org, row.digest] = (
                await asyncio.to_thread(load_decisions, resource) if is_model else resource.data
            )

    def forget_unused(self, rows: Iterable[DefinitionRow]) -> None:
        """Forget all that is not needed for these, nor for programs that are in memory."""
        used = (row for key in list(self._users) for row in self.list_rows(*key))
        wanted = {(row.org, row.digest) for row in chain(rows, used)}
        self._loaded = {key: content for key, content in self._loaded.items() if key in wanted}


class ResourcesOfDeployment:
    """What a version of a process finds within turns: it is a `holdfast.bpmn.linked.LinkedResources`."""

    def __init__(self, org: str, deployment: str, loaded: LoadedResources) -> None:
        self._org = org
        self.deployment = deployment
        self._loaded = loaded

    def find_decision(self, decision_id: str, binding: model.Binding, version_tag: str) -> LinkedDecision | None:
        """The decision model that has a decision, with its version; None if there is none."""
        from holdfast.bpmn.linked import LinkedDecision  # noqa: PLC0415

        kind = DefinitionKind.DMN
        row = self._loaded.find_row(self._org, self.deployment, kind, decision_id, binding.value, version_tag)
        content = None if row is None else self._loaded.get(row)
        return None if row is None or content is None else LinkedDecision(content, row.version)

    def find_form(self, form_id: str) -> bytes | None:
        """The JSON of the newest version of a form; None if there is none."""
        row = self._loaded.find_row(self._org, self.deployment, DefinitionKind.FORM, form_id, "latest", "")
        found: bytes | None = None if row is None else self._loaded.get(row)
        return found
