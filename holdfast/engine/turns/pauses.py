"""The pauses of workflows and queues as this node knows them: see `holdfast.store.pauses`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from holdfast.errors import StoreError
from holdfast.store.pauses import PauseKind, PauseRow, Settings

if TYPE_CHECKING:
    from holdfast.core.envelopes import Start
    from holdfast.core.execution import Execution
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow

log = logging.getLogger("holdfast.engine")

_NO_STATE: Final = -1
"""A settings number that no state of the database has."""


class PauseView:
    """All pauses as of one settings number. It never changes: a batch decides by one view from its claim to its write."""

    __slots__ = ("_queues", "_workflows", "any", "number", "rows")

    def __init__(self, settings: Settings | None) -> None:
        self.number: Final = None if settings is None else settings.number
        """None: the pauses were never read, as by who runs no code."""
        self.rows: Final = () if settings is None else tuple(settings.pauses)
        self._workflows = frozenset((row.org, row.name) for row in self.rows if row.kind == PauseKind.WORKFLOW)
        self._queues = frozenset((row.org, row.name) for row in self.rows if row.kind == PauseKind.QUEUE)
        self.any: Final = bool(self.rows)

    def covers(self, one: ExecutionRow | Execution) -> bool:
        """Whether the workflow or the queue of an execution is paused."""
        return (one.org, one.workflow) in self._workflows or (one.org, one.queue) in self._queues

    def covers_start(self, org: str, start: Start) -> bool:
        """Whether the workflow or the queue of an execution that begins is paused."""
        return (org, start.workflow) in self._workflows or (org, start.queue) in self._queues

    def has_queue(self, org: str, queue: str) -> bool:
        """Whether a queue of an org is paused."""
        return (org, queue) in self._queues

    def find(self, one: ExecutionRow) -> list[PauseRow]:
        """The pauses that hold up an execution."""
        names = {(PauseKind.WORKFLOW.value, one.workflow), (PauseKind.QUEUE.value, one.queue)}
        return [row for row in self.rows if row.org == one.org and (str(row.kind), row.name) in names]


class KnownPauses:
    """Keeps the present view. `on_change` is called after it was replaced by another.

    `follow` reads what else the settings number stands for, the deployed definitions, before the view moves on to it.
    """

    def __init__(self, store: Store, on_change: Callable[[], None], follow: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._follow = follow
        self._on_change = on_change
        self.present = PauseView(None)

    def note_went_back(self) -> None:
        """The database is at an earlier state: nothing is written by what is known until it is read anew."""
        if self.present.number is not None:
            self.present = PauseView(Settings(_NO_STATE, self.present.rows))

    async def refresh(self) -> None:
        """Read the pauses, if they have changed or were never read. Raises StoreError."""
        while (settings := await self._store.read_settings()).number != self.present.number:
            before = self.present
            await self._follow()
            if self.present is not before:
                continue  # somebody else was faster, and what was read here may be older
            self.present = PauseView(settings)
            if before.number is not None:
                self._on_change()
            return

    async def try_refresh(self) -> None:
        """As `refresh`; if the store is out of reach, the next heartbeat or lost turn leads here again."""
        try:
            await self.refresh()
        except StoreError as error:
            log.debug("the pauses could not be read: %s", error)
