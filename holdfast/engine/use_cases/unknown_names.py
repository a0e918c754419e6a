"""Warns of names that may be misspelt: of workflows and queues that no living node has, and nothing that is open uses.

Such a name is no error: the workflow may be deployed later. So whoever pauses it, or starts it by a schedule, is answered as
always, and a warning names those that resemble it. Whether the names can be looked up decides nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holdfast.core.ids import DEFAULT_QUEUE
from holdfast.core.routes import split_route
from holdfast.engine.nodes.input_schemas import list_announcing
from holdfast.engine.processes.process_definitions import ProcessDefinition
from holdfast.errors import HoldfastError, StoreError, UnknownWorkflow
from holdfast.log_events import LogEvent, tag
from holdfast.store.pauses import PauseKind

if TYPE_CHECKING:
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

_MOST_SEARCHED: Final = 10_000


class UnknownNames:
    """Looks up names that were paused or are to be started: what is unknown is read, or logged if nobody knows it."""

    def __init__(self, store: Store, catalog: Catalog, clock: Clock) -> None:
        self._store = store
        self._catalog = catalog
        self._clock = clock

    async def learn(self, org: str, workflow: object, version: str | None = None) -> None:
        """Read what is deployed, if a start would be refused by what is known: another node may have deployed it since.

        Raises StoreError.
        """
        processes = self._catalog.processes
        if processes is None or not isinstance(workflow, str):
            return
        try:
            found = self._catalog.find(workflow, version, org)
        except UnknownWorkflow:
            await processes.refresh()
        except HoldfastError:
            return  # it is refused whatever is deployed
        else:
            if isinstance(found, ProcessDefinition) and not found.details.has_none_start:
                await processes.refresh()

    async def warn_of_pause(self, org: str, kind: PauseKind, name: str) -> None:
        """Log that a workflow or queue was paused which no living node has and nothing that is open uses."""
        if self._is_here(org, kind, name):
            return
        store, now = self._store, self._clock.now()
        try:
            announcing = await list_announcing(store, now)
            rows = [row for row in await store.read_backlog(now, _MOST_SEARCHED) if row.org == org]
        except StoreError:
            return
        if not announcing and store.exclusive:
            return  # nobody can know a name yet
        parts = [split_route(row.route) for row in rows if row.route]
        if kind is PauseKind.WORKFLOW:
            known = {one for node in announcing for one in node.workflows} | {part.name for part in parts}
        else:
            known = {one for node in announcing for one in node.queues} | {part.queue for part in parts}
            known |= {row.queue for row in rows if row.queue}
        log_unknown_pause(kind, name, known)

    async def warn_of_run(self, org: str, schedule_id: str, workflow: str) -> None:
        """Log that a schedule put a start of a workflow into the inbox which no living node has."""
        if self._is_here(org, PauseKind.WORKFLOW, workflow):
            return
        try:
            announcing = await list_announcing(self._store, self._clock.now())
        except StoreError:
            return
        known = {one for node in announcing for one in node.workflows}
        if workflow in known or (self._store.exclusive and not announcing):
            return
        log.warning(
            "schedule '%s' was run, but no living node has workflow '%s': there is no execution until one does; the start "
            "waits for it.%s",
            schedule_id,
            workflow,
            suggest(workflow, known),
            extra=tag(LogEvent.WORKFLOW_NOT_ANNOUNCED, workflow=workflow),
        )

    def _is_here(self, org: str, kind: PauseKind, name: str) -> bool:
        """Whether this process has a workflow of that name, or an activity that names that queue."""
        if kind is PauseKind.WORKFLOW:
            return self._catalog.find_newest(name, org) is not None
        return any(one.options.queue == name for one in self._catalog.activities.values())


def log_unknown_pause(kind: str, name: str, known: Collection[str]) -> None:
    """Log that what was paused is none of these names, with those that resemble it."""
    if name in known or (kind == PauseKind.QUEUE and name == DEFAULT_QUEUE):
        return
    who = "no living node has it" if kind == PauseKind.WORKFLOW else "no living node names it"
    log.warning(
        "%s '%s' is paused, but %s, and nothing that is open uses it: the pause waits for what comes later.%s",
        kind,
        name,
        who,
        suggest(name, known),
        extra=tag(LogEvent.PAUSE_UNKNOWN, **{str(kind): name}),
    )


def suggest(name: str, known: Collection[str]) -> str:
    """The names that resemble one, as a question behind a sentence; empty if none does."""
    near = get_close_matches(name, sorted(known), 3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
