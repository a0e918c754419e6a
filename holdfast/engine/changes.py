"""Who watches executions, and how changes are told to them, on this node and across nodes.

A node on which somebody watches tells the others so, when that begins and with each heartbeat. For `TOLD_FOR` after that
they wake it when executions change, at most every `PAUSE` seconds, whatever changes: it reads the versions of all executions
that are watched in one go. A lost wake-up costs at most a heartbeat, with which it looks too. While nobody watches, nobody
is told and nothing is read: a commit costs one look at `is_active`.

Pauses of workflows and queues change no version of an execution. The settings number stands for them
(`holdfast.store.pauses`): when it has changed, everybody who watches is told, and compares the pauses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

from holdfast.core.instants import SECOND, Instant
from holdfast.errors import HoldfastError, StoreError
from holdfast.store.nodes import WakeReason

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")

TOLD_FOR: Final = 30 * SECOND
"""How long others are told of changes after somebody said that they are watched: several heartbeats."""
PAUSE: Final = 0.05
"""Seconds between two wake-ups of others, at least."""


class Watch:
    """Somebody waits for an execution to have another version than one that is known."""

    def __init__(self, execution_id: str, version: int) -> None:
        self.execution_id = execution_id
        self.version = version
        self.changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Changes:
    """Tells those who watch executions of this node's changes, and of those of others."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        wake: Callable[[WakeReason], None],
    ) -> None:
        """`wake` wakes all other nodes and clients."""
        self._store = store
        self._clock = clock
        self._spawn = spawn
        self._wake = wake
        self._watches: dict[str, list[Watch]] = {}
        self._told_until: Instant = 0
        self._pause: asyncio.TimerHandle | None = None
        self._is_due = False
        self._settings: int | None = None
        """The settings number at the last look; None: nobody has looked."""
        self.is_active = False
        """Whether somebody watches, here or elsewhere."""

    # --- watching ---

    def watch(self, execution_id: str, version: int) -> Watch:
        """Begin to watch an execution whose version is known. Call `forget` when nobody awaits the watch any more."""
        watch = Watch(execution_id, version)
        if not self._watches and not self._store.exclusive:
            self._wake(WakeReason.WATCHED)
        self._watches.setdefault(execution_id, []).append(watch)
        self.is_active = True
        return watch

    def forget(self, watch: Watch) -> None:
        """Drop a watch that `watch` gave out."""
        watches = self._watches.get(watch.execution_id, [])
        if watch in watches:
            watches.remove(watch)
            if not watches:
                del self._watches[watch.execution_id]
        if not watch.changed.done():
            watch.changed.cancel()
        self._note_activity()

    def fail_all(self, error: HoldfastError) -> None:
        """Fail all who watch: nobody will be told any more."""
        for watch in [one for watches in self._watches.values() for one in watches]:
            if not watch.changed.done():
                watch.changed.set_exception(error)
        if self._pause is not None:
            self._pause.cancel()

    def on_heartbeat(self) -> None:
        """Ask others again to tell of changes, and look for those of which no wake-up told."""
        self._note_activity()
        if self._watches and not self._store.exclusive:
            self._wake(WakeReason.WATCHED)
            self._spawn(self.look())

    async def look(self) -> None:
        """Read the versions of what is watched here, in one go, and the settings number."""
        if not self._watches:
            return
        try:
            settings = await self._store.read_settings()
            transaction = await self._store.begin()
            try:
                rows = await transaction.read_rows(list(self._watches))
            finally:
                await transaction.rollback()
        except StoreError as error:
            log.debug("changes could not be looked for, which is tried again with the next heartbeat: %s", error)
            return
        for execution_id in list(self._watches):
            row = rows.get(execution_id)
            self._tell(execution_id, -1 if row is None else row.state_version)
        if settings.number != self._settings:
            self._settings = settings.number
            self.on_pauses_changed()

    def on_pauses_changed(self) -> None:
        """Other workflows or queues are paused than before: tell all who watch here."""
        for watches in self._watches.values():
            for watch in watches:
                if not watch.changed.done():
                    watch.changed.set_result(None)

    # --- telling ---

    def on_watched(self) -> None:
        """Another node, or a client, watches executions."""
        self._told_until = self._clock.now() + TOLD_FOR
        self.is_active = True

    def note(self, changed: Iterable[tuple[str, int]]) -> None:
        """Executions have changed here, and that is committed: their ids and versions."""
        for execution_id, version in changed:
            if execution_id in self._watches:
                self._tell(execution_id, version)
        self._tell_others_who_watch()

    def note_pauses(self) -> None:
        """A workflow or a queue was paused or resumed here, and that is committed."""
        self.on_pauses_changed()
        self._tell_others_who_watch()

    def _tell_others_who_watch(self) -> None:
        if self._told_until and self._clock.now() < self._told_until:
            self._tell_others()

    def _tell_others(self) -> None:
        if self._pause is not None:
            self._is_due = True
            return
        self._wake(WakeReason.CHANGES)
        self._pause = asyncio.get_running_loop().call_later(PAUSE, self._end_pause)

    def _end_pause(self) -> None:
        self._pause = None
        if self._is_due:
            self._is_due = False
            self._tell_others()

    def _tell(self, execution_id: str, version: int) -> None:
        for watch in self._watches.get(execution_id, ()):
            if watch.version != version and not watch.changed.done():
                watch.changed.set_result(None)

    def _note_activity(self) -> None:
        if self._told_until and self._clock.now() >= self._told_until:
            self._told_until = 0
        self.is_active = bool(self._watches or self._told_until)
