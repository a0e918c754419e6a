"""Workflows that are started by what is published: what this node offers, and what a publication starts.

A start subscription of a code workflow is a row of the node that has the workflow. It holds in every org, and counts while
that node lives: so old and new nodes can run side by side, and a workflow that nobody has is not started.

That of a deployed process is a row of its org, and belongs to one version of the process: deployments replace it. Which of
its start events it means says that version, by the kind and the name.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.core import codec
from holdfast.core.envelopes import Start
from holdfast.core.ids import DEFAULT_QUEUE, LONGEST_ID, make_execution_id
from holdfast.core.payloads import encode
from holdfast.core.publications import Publication, SubscriptionKind
from holdfast.core.routes import find_start_route
from holdfast.engine.nodes.input_schemas import encode_arguments, find_checkers
from holdfast.engine.nodes.roster import NodeState, to_node_info
from holdfast.engine.processes.variables import encode_variables
from holdfast.errors import HoldfastError, InvalidDefinition, InvalidRequest, StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.publications import StartSubscriptionRow
from holdfast.store.rows import InboxRow

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.core.payloads import Payload
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import Store, Transaction

log = logging.getLogger("holdfast.engine")

STARTING_KINDS: Final = frozenset({SubscriptionKind.MESSAGE, SubscriptionKind.BROADCAST})


def check_starts(catalog: Catalog) -> None:
    """Raises InvalidDefinition if one message would start two workflows: only one execution can have its key for an id."""
    known: dict[str, str] = {}
    for definition in catalog:
        for trigger in definition.starts_on:
            if trigger.kind is not SubscriptionKind.MESSAGE:
                continue
            other = known.setdefault(trigger.name, definition.name)
            if other != definition.name:
                raise InvalidDefinition(
                    f"Expected message '{trigger.name}' to start one workflow, but both '{other}' and '{definition.name}' "
                    "start by it. Give one of them a message of another name, or let it wait for the message."
                )


class StartOffers:
    """The start subscriptions of this node: put when it opens, when its workflows change, and again if they are lost."""

    def __init__(self, store: Store, catalog: Catalog, routes: Routes, node: str) -> None:
        self._store = store
        self._catalog = catalog
        self._routes = routes
        self._node = node
        self._put: list[StartSubscriptionRow] = []
        self._own_messages: frozenset[str] = frozenset()

    @property
    def messages(self) -> frozenset[str]:
        """Names of the messages that start workflows here, or processes: one kept may do so when an execution closes."""
        processes = self._catalog.processes
        return self._own_messages if processes is None else self._own_messages | processes.start_messages

    @property
    def has_any(self) -> bool:
        """Whether this node has workflows that are started by what is published."""
        return any(one.starts_on for one in self._catalog)

    async def put(self) -> None:
        """Let the store know what this node starts, if there is or was anything. Raises StoreError."""
        rows = self._list_rows()
        if rows or self._put:
            await self._store.put_starts(self._node, rows)
            self._put = rows
            self._own_messages = frozenset(row.name for row in rows if row.kind == SubscriptionKind.MESSAGE)

    async def try_put(self) -> None:
        """Let the store know what this node starts, where that has changed or may be lost; a failure is logged."""
        try:
            await self.put()
        except StoreError as error:
            log.warning(
                "node %s could not tell which workflows it starts by messages and signals: %s",
                self._node,
                error,
                extra=tag(LogEvent.NODE_NOT_ANNOUNCED, node=self._node),
            )

    def _list_rows(self) -> list[StartSubscriptionRow]:
        queue = self._choose_queue()
        rows: dict[tuple[str, str, str], StartSubscriptionRow] = {}
        for definition in self._catalog:
            newest = self._catalog.find_newest(definition.name) if definition.org is None else None
            if newest is None or newest is not definition:
                continue  # starts without a version use the newest
            for trigger in definition.starts_on:
                kind = trigger.kind.value
                rows[kind, trigger.name, definition.name] = StartSubscriptionRow(
                    kind,
                    trigger.name,
                    definition.name,
                    queue,
                    definition.routes(queue)[0],
                    definition.version,
                    node=self._node,
                )
        return list(rows.values())

    def _choose_queue(self) -> str:
        if self._routes.serves(DEFAULT_QUEUE):
            return DEFAULT_QUEUE
        return min(self._routes.queues)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFinderDeps:
    """What is needed to find out what a publication starts."""

    store: Store
    catalog: Catalog
    clock: Clock
    node: str
    entropy: Callable[[int], int]
    payload_limit: int
    list_peers: Callable[[], Collection[str]]
    """Other nodes that are known to live. More may have come since."""


class StartCause(msgspec.Struct, frozen=True, gc=False):
    """A publication that may start workflows."""

    publication: Publication
    may_fail: bool
    """Whether a broadcast signal starts also what its value is no input for: then the first turn fails that execution, and
    nobody else. So it is where a workflow has sent it; a caller is refused instead."""


class StartFinder:
    """Finds the workflows of living nodes that publications start, and makes their starts."""

    def __init__(self, deps: StartFinderDeps) -> None:
        self._deps = deps

    async def find(
        self, transaction: Transaction, org: str, causes: Sequence[StartCause]
    ) -> list[list[InboxRow] | HoldfastError]:
        """For each publication the starts that it causes; an error if its value is no input for one of them."""
        kinds = [one.publication for one in causes if one.publication.kind in STARTING_KINDS]
        names = {(one.kind.value, one.name) for one in kinds}
        rows = await transaction.read_starts(names, org) if names else []
        if not rows:
            return [[] for _ in causes]
        living = await self._find_living({row.node for row in rows if row.node})
        offered = [row for row in rows if not row.node or row.node in living]
        found: list[list[InboxRow] | HoldfastError] = []
        for cause in causes:
            try:
                chosen = _choose(offered, cause.publication)
                found.append([row for one in chosen for row in await self._make_rows(org, one, cause)])
            except HoldfastError as error:
                found.append(error)
        return found

    async def is_offered(self, transaction: Transaction, messages: Collection[str]) -> bool:
        """Whether a living node starts workflows in every org, or a process is started in its own, by one of these."""
        processes = self._deps.catalog.processes
        if processes is not None and not processes.start_messages.isdisjoint(messages):
            return True
        rows = await transaction.read_starts({(SubscriptionKind.MESSAGE.value, name) for name in messages}, "")
        if not rows:
            return False
        living = await self._find_living({row.node for row in rows if row.node})
        return any(not row.node or row.node in living for row in rows)

    async def _find_living(self, nodes: Collection[str]) -> Collection[str]:
        deps = self._deps
        known = {deps.node, *deps.list_peers()}
        if deps.store.exclusive or known.issuperset(nodes):
            return known
        now = deps.clock.now()
        infos = [to_node_info(row, now, has_ended=False) for row in await deps.store.list_nodes()]
        return {*known, *(info.node for info in infos if info.state is NodeState.ALIVE)}

    async def _make_rows(self, org: str, offered: StartSubscriptionRow, cause: StartCause) -> list[InboxRow]:
        """The starts that a publication causes by one start subscription: of a process, one at each start event."""
        if offered.node:
            return [await self._make_row(org, offered, cause)]
        processes = self._deps.catalog.processes
        if processes is None:
            return []
        definition = processes.find_version(org, offered.workflow, offered.version)
        if definition is None:  # it came just now
            await processes.refresh()
            definition = processes.find_version(org, offered.workflow, offered.version)
        if definition is None:
            return []
        now, publication = self._deps.clock.now(), cause.publication
        encoded = _encode_variables(offered.workflow, cause, self._deps.payload_limit)
        found: list[InboxRow] = []
        for mark in definition.details.starts:
            if (mark.kind, mark.name) != (offered.kind, offered.name):
                continue
            execution_id = make_execution_id(now, self._deps.entropy(62))
            is_message = publication.kind is SubscriptionKind.MESSAGE
            start = Start(
                execution_id=execution_id,
                workflow_id=_name_instance(offered.workflow, publication.key) if is_message else execution_id,
                workflow=offered.workflow,
                input=encoded,
                queue=offered.queue,
                code_version=offered.version,
                pinned=True,
                route_name=definition.route_name,
                element=mark.element,
                headers=publication.headers,
                publication=publication,
            )
            found.append(InboxRow(org, "", start.workflow_id, codec.encode(start), route=find_start_route(start), at=now))
        return found

    async def _make_row(self, org: str, offered: StartSubscriptionRow, cause: StartCause) -> InboxRow:
        now, publication = self._deps.clock.now(), cause.publication
        try:
            encoded = await self._encode_input(offered, publication, now)
        except InvalidRequest:
            if not cause.may_fail or publication.kind is SubscriptionKind.MESSAGE:
                raise
            encoded = encode([msgspec.json.decode(publication.value.data)], f"workflow '{offered.workflow}'")
        execution_id = make_execution_id(now, self._deps.entropy(62))
        start = Start(
            execution_id=execution_id,
            workflow_id=publication.key if publication.kind is SubscriptionKind.MESSAGE else execution_id,
            workflow=offered.workflow,
            input=encoded,
            queue=offered.queue,
            code_version=offered.version,
            headers=publication.headers,
            publication=publication,
        )
        return InboxRow(org, "", start.workflow_id, codec.encode(start), route=find_start_route(start), at=now)

    async def _encode_input(self, offered: StartSubscriptionRow, publication: Publication, now: Instant) -> Payload:
        deps, value = self._deps, msgspec.json.decode(publication.value.data)
        definition = deps.catalog.find_newest(offered.workflow)
        if definition is not None and definition.input_schema is not None:
            args, kwargs = _bind(value, definition.input_schema.parameters)
            return definition.encode_input(args, kwargs, deps.payload_limit)
        checkers = [] if deps.store.exclusive else await find_checkers(deps.store, offered.workflow, offered.version, now)
        arguments = _bind(value, checkers[0].schema.parameters) if checkers else ([value], {})
        return encode_arguments(offered.workflow, checkers, arguments, deps.payload_limit)


def _choose(offered: Sequence[StartSubscriptionRow], publication: Publication) -> list[StartSubscriptionRow]:
    """The workflows that a publication starts, each once: of a message one, whichever node is asked."""
    by_workflow = {row.workflow: row for row in offered if (row.kind, row.name) == (publication.kind, publication.name)}
    chosen = [by_workflow[name] for name in sorted(by_workflow)]
    return chosen[:1] if publication.kind is SubscriptionKind.MESSAGE else chosen


def _name_instance(process: str, key: str) -> str:
    """The workflow id of an instance that a message started: there is one at a time for each process and key."""
    name = f"{process}:{key}"
    return name if len(name) <= LONGEST_ID else hashlib.sha256(name.encode()).hexdigest()


def _encode_variables(process: str, cause: StartCause, limit: int) -> Payload:
    """The value of a publication as the variables of the process that it starts."""
    value = msgspec.json.decode(cause.publication.value.data)
    try:
        return encode_variables(process, [value], {}, limit)
    except InvalidRequest:
        if not cause.may_fail or cause.publication.kind is SubscriptionKind.MESSAGE:
            raise
        return encode(value, f"process '{process}'")


def _bind(value: Any, parameters: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The value of a publication as the arguments of the workflow that it starts.

    One parameter gets the value; of several, each gets the field of its name. A workflow that takes nothing gets nothing.
    """
    if not parameters or (value is None and all(one.has_default for one in parameters)):
        return [], {}
    if len(parameters) > 1 and isinstance(value, dict):
        return [], value
    return [value], {}
