"""Deployed processes as definitions: found by their names within a turn, made ready outside of turns.

Theory of operation
-------------------
A process is *known* by its row, which is all that is needed to start it: its input is one JSON object of variables. To take
a turn, it has to be *ready*: compiled, with the decisions and forms that it refers to. That takes time, so it never happens
in a turn or in a transaction: who finds an execution whose process is not ready puts it off, as one with a long history
(`engine.turns.loading`), and `make_ready` reads the content, compiles it in a thread, and keeps the result.

Which version a start without one gets is decided by the batch that makes its execution (`bind_start`), by what the node
knows then: a batch that knows less than the settings number says loses its turns (`holdfast.store.definitions`). From then
on the execution is pinned, also if its first turn comes later, and begins whatever becomes of the version. A start that has
no execution yet is refused if its version may start nothing any more.

Results are kept by the org, the id and the version; those that were used least recently go when there are too many bytes of
content behind them. Programs that are in memory hold their definition and do not need it here. Decisions that are bound to
the newest version are loaded before this node moves on to the settings number with which they came (`refresh`): so a
program that is in memory finds them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from holdfast.core.effects import ChildBinding
from holdfast.core.failures import Failure
from holdfast.core.routes import PROCESS_ROUTE_NAME
from holdfast.engine.processes.compiling import compile_content
from holdfast.engine.processes.known_definitions import KnownDefinitions
from holdfast.engine.processes.linked_resources import LoadedResources
from holdfast.engine.processes.process_definitions import ProcessDefinition
from holdfast.errors import CorruptStore, HoldfastError, ProcessNotStartable
from holdfast.log_events import LogEvent, tag
from holdfast.store.definitions import DefinitionKind, DefinitionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.bpmn.linked import LinkedResources
    from holdfast.core.commands import StartChild
    from holdfast.core.envelopes import Start
    from holdfast.core.execution import Execution
    from holdfast.engine.processes.compiling import CompiledContent
    from holdfast.store.contract import Store
    from holdfast.store.definitions import DefinitionRow

log = logging.getLogger("holdfast.engine")

MOST_BYTES_READY: Final = 64 * 1024 * 1024
"""How many bytes of content the processes may have together that are kept compiled; one is kept in any case."""
MOST_WARMED: Final = 50
"""How many processes are compiled ahead when others have deployed them."""
NOT_STARTABLE: Final = "ProcessNotStartable"

ProcessKey: TypeAlias = tuple[str, str, int]
"""(org, process id, version)."""


class DeployedProcesses:
    """The processes of all orgs, as this node knows them."""

    def __init__(
        self, store: Store, on_change: Callable[[], None] = lambda: None, most_bytes: int = MOST_BYTES_READY
    ) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self.known = KnownDefinitions(store, on_change)
        self._loaded = LoadedResources(store, self.known)
        self._definitions: dict[ProcessKey, ProcessDefinition] = {}
        self._ready: OrderedDict[ProcessDefinition, CompiledContent] = OrderedDict()
        """What is compiled, the least recently used first."""
        self._bytes_ready = 0
        self._compiling: dict[ProcessDefinition, asyncio.Task[None]] = {}
        self._start_messages: tuple[int, frozenset[str]] = (0, frozenset())
        """The settings number as of which they are known, and the names of messages that start processes."""

    # --- following the store ---

    async def refresh(self) -> None:
        """Read what has changed in the store, with the decisions that compiled processes refer to. Raises StoreError."""
        before = self.known.number
        await self.known.refresh()
        if self.known.number != before and self._ready:
            await self._load_linked(list(self._ready.items()))

    async def _load_linked(self, ready: Sequence[tuple[ProcessDefinition, CompiledContent]]) -> None:
        rows = [row for definition, content in ready for row in self._list_linked(definition, content)]
        try:
            await self._loaded.load(rows)
        except CorruptStore as error:
            log.warning("a decision or form could not be loaded: %s", error, extra=tag(LogEvent.LINKED_NOT_LOADED))

    # --- finding ---

    def find_newest(self, org: str, name: str) -> ProcessDefinition | None:
        """The newest version of a process that may start something; None if there is none."""
        row = self.known.find_latest(org, DefinitionKind.BPMN, name)
        return None if row is None or row.state != DefinitionState.ACTIVE else self._define(row)

    def find_version(self, org: str, name: str, version: str) -> ProcessDefinition | None:
        """One version of a process, whatever its state."""
        row = self._find_row(org, name, version)
        return None if row is None else self._define(row)

    def find_for(self, execution: Execution) -> ProcessDefinition | None:
        """The version that takes the turns of a process's execution; None if it is not known, or may not begin."""
        org, name = execution.org, execution.workflow
        if execution.details.pinned:
            row = self._find_row(org, name, execution.code_version)
            # What a parent has begun begins, whatever becomes of the version.
            is_asked = execution.state_version == 0 and execution.details.parent is None
            return None if row is None or (is_asked and row.state != DefinitionState.ACTIVE) else self._define(row)
        newest = self.find_newest(org, name)
        if newest is not None or execution.state_version == 0:
            return newest
        return self.find_version(org, name, execution.code_version)

    def find_start(self, org: str, name: str, version: str | None) -> ProcessDefinition | None:
        """The version that a caller's start gets; None if the org has no such process, undeployed ones aside.

        Raises ProcessNotStartable.
        """
        if version is None:
            row = self.known.find_latest(org, DefinitionKind.BPMN, name)
            if row is None:
                return None
        else:
            if not self.known.list_versions(org, DefinitionKind.BPMN, name):
                return None
            row = self._find_row(org, name, version)
        if row is None or row.state != DefinitionState.ACTIVE:
            raise self._refuse(org, name, version, row)
        return self._define(row)

    def refuse(self, execution: Execution) -> ProcessNotStartable:
        """Why the execution of a process has no definition here."""
        org, name = execution.org, execution.workflow
        version = execution.code_version if execution.details.pinned else None
        row = self._find_row(org, name, version) if version else self.known.find_latest(org, DefinitionKind.BPMN, name)
        return self._refuse(org, name, version, row)

    def _refuse(self, org: str, name: str, version: str | None, row: DefinitionRow | None) -> ProcessNotStartable:
        known = [str(one.version) for one in self.known.list_versions(org, DefinitionKind.BPMN, name)]
        what = f"process '{name}'" if version is None else f"version {version} of process '{name}'"
        if row is None:
            why = f"it is not deployed (versions: {', '.join(known) or 'none'})"
            remedy = "Deploy it."
        elif row.state == DefinitionState.DISABLED:
            why, remedy = "it is disabled", f'Enable it: enable("{name}").'
        else:
            why, remedy = "it was undeployed", "Deploy it again."
        return ProcessNotStartable(
            f"Expected to start {what} of org '{org}', but {why}. {remedy}", workflow=name, version=version, known=known
        )

    def has(self, org: str, name: str) -> bool:
        """Whether an org has a process of that name that is not undeployed, disabled ones included."""
        return self.known.find_latest(org, DefinitionKind.BPMN, name) is not None

    def list_names(self) -> set[str]:
        """The ids of the processes of all orgs, in whatever state."""
        return self.known.list_all_names(DefinitionKind.BPMN)

    @property
    def start_messages(self) -> frozenset[str]:
        """The names of the messages that start processes, of all orgs. Asked with every batch."""
        number, found = self._start_messages
        if number != self.known.number:
            latest = map(self._define, self.known.list_latest(DefinitionKind.BPMN))
            found = frozenset(mark.name for one in latest for mark in one.details.starts if mark.kind == "message")
            self._start_messages = self.known.number, found
        return found

    def _find_row(self, org: str, name: str, version: str) -> DefinitionRow | None:
        if not version.isdecimal():
            return None
        return self.known.find_version(org, DefinitionKind.BPMN, name, int(version))

    def _define(self, row: DefinitionRow) -> ProcessDefinition:
        key = row.org, row.definition_id, row.version
        found = self._definitions.get(key)
        if found is None or found.digest != row.digest or found.deployment != row.deployment:
            found = self._definitions[key] = ProcessDefinition(row, self._find_content)
        return found

    # --- binding ---

    def bind_start(self, org: str, start: Start) -> Start:
        """The start of a process, pinned to the version that it gets: the newest, unless it asks for one.

        Where there is none that may start something, it is pinned to the one that its caller saw, which refuses it.
        """
        if start.pinned:
            return start
        newest = self.find_newest(org, start.workflow)
        return replace(start, code_version=start.code_version if newest is None else newest.version, pinned=True)

    def bind_child(self, org: str, command: StartChild) -> ChildBinding | None:
        """Which version of which process a child is bound to; None if its name is that of code."""
        name, kind = command.workflow, DefinitionKind.BPMN
        if not self.known.list_versions(org, kind, name):
            return None
        if command.version:
            row, which = self._find_row(org, name, command.version), f" version {command.version}"
        elif command.version_tag:
            row, which = self.known.find_tagged(org, kind, name, command.version_tag), f" tagged '{command.version_tag}'"
        elif command.deployment:
            row, which = self.known.find_of_deployment(org, kind, name, command.deployment), " of the same deployment"
        else:
            row, which = self.known.find_latest(org, kind, name), ""
        if row is None and not which:
            return None  # all of its versions are undeployed: the name may be that of code
        remedy = "Deploy or enable it"
        # An execution goes on with what it was deployed with, also after that was undeployed.
        states = (DefinitionState.ACTIVE, DefinitionState.UNDEPLOYED) if command.deployment else (DefinitionState.ACTIVE,)
        if row is None or row.state not in states:
            why = "there is none" if row is None else f"it is {row.state}"
        elif self._define(row).details.has_none_start:
            return ChildBinding(str(row.version), PROCESS_ROUTE_NAME)
        else:
            why, remedy = "all of its start events wait for something", "Deploy a version that has a plain start event"
        message = f"Expected to call process '{name}'{which}, but {why}. {remedy}, and resolve the incident."
        return ChildBinding(failure=Failure(type=NOT_STARTABLE, message=message, non_retryable=True))

    # --- readiness ---

    def is_ready(self, org: str, name: str, version: str) -> bool:
        """Whether programs of a version of a process can be made at once: it is compiled, or not known at all."""
        definition = self.find_version(org, name, version)
        return definition is None or self._is_ready(definition)

    async def make_ready(self, org: str, name: str, version: str) -> None:
        """Read and compile a version of a process, with what it refers to. Raises HoldfastErrors.

        What is not known is read first.
        """
        if self.find_version(org, name, version) is None:
            await self.refresh()
        if (definition := self.find_version(org, name, version)) is not None:
            await self._make_ready(definition)

    async def warm(self, rows: Sequence[DefinitionRow]) -> None:
        """Compile processes that will be used soon. What fails is found again where it is used."""
        for row in rows[:MOST_WARMED]:
            if row.kind == DefinitionKind.BPMN and row.state == DefinitionState.ACTIVE:
                try:
                    await self._make_ready(self._define(row))
                except HoldfastError as error:
                    log.debug("process '%s' could not be compiled ahead: %s", row.definition_id, error)

    def _is_ready(self, definition: ProcessDefinition) -> bool:
        content = self._ready.get(definition)
        return content is not None and all(map(self._loaded.has, self._list_linked(definition, content)))

    def _list_linked(self, definition: ProcessDefinition, content: CompiledContent) -> Sequence[DefinitionRow]:
        if not content.references or definition.org is None:
            return ()
        return list(self._loaded.list_rows(definition.org, definition.deployment, content.references))

    async def _make_ready(self, definition: ProcessDefinition) -> None:
        """Several who want the same one wait for one compilation."""
        while not self._is_ready(definition):
            under_way = self._compiling.get(definition)
            if under_way is None:
                under_way = asyncio.get_running_loop().create_task(self._compile(definition))
                self._compiling[definition] = under_way
                under_way.add_done_callback(lambda _: self._compiling.pop(definition, None))
            await asyncio.shield(under_way)

    async def _compile(self, definition: ProcessDefinition) -> None:
        assert definition.org is not None  # noqa: S101 - processes are those of an org
        content = self._ready.get(definition)
        if content is None:
            resource = await self._store.definitions.read_resource(definition.org, definition.digest)
            if resource is None:
                raise CorruptStore(
                    f"Expected the file of {definition.describe()} to be in the store, but it is not. Deploy it again."
                )
            content = await asyncio.to_thread(compile_content, resource, definition.name)
        await self._loaded.load(self._list_linked(definition, content))
        self._keep(definition, content)

    def _keep(self, definition: ProcessDefinition, content: CompiledContent) -> None:
        if definition not in self._ready:
            self._bytes_ready += content.size
        self._ready[definition] = content
        self._ready.move_to_end(definition)
        while self._bytes_ready > self._most_bytes and len(self._ready) > 1:
            _, gone = self._ready.popitem(last=False)
            self._bytes_ready -= gone.size
            self._loaded.forget_unused(row for one in self._ready.items() for row in self._list_linked(*one))

    def _find_content(self, definition: ProcessDefinition) -> tuple[CompiledContent, LinkedResources] | None:
        content = self._ready.get(definition)
        if content is None or definition.org is None:
            return None
        self._ready.move_to_end(definition)
        return content, self._loaded.share(definition.org, definition.deployment, content.references)
