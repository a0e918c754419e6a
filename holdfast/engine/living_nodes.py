"""Which processes of other nodes are alive, as the last heartbeat showed: told by the membership, read by the quarantine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.core.instants import SECOND, Instant

ALERT_TIME: Final = 300 * SECOND
"""For how long nodes are on the alert after a process has ended without leaving."""


class LivingNodes:
    """The other nodes that share the store and are not known to have ended, and whether one of them ended lately."""

    def __init__(self) -> None:
        self.processes: frozenset[str] = frozenset()
        """The tokens of their processes: a node that was started again under its name has another one."""
        self._lost_at: Instant | None = None
        self._is_complete = False
        """Whether a heartbeat has shown who is there since this node joined: others may have joined after it."""
        self._has_guessed = False
        """Whether a process was taken to be alive only because no heartbeat had shown yet that it is not."""
        self._ended: set[str] = set()
        """Processes that are known to have ended whatever heartbeats show: those before this one, under its name."""

    def is_alive(self, process: str) -> bool:
        """Whether a process may be alive: it was at the last heartbeat, or there was none yet that would show it.

        An empty name stands for no process.
        """
        if process in self.processes:
            return True
        if not process or self._is_complete or process in self._ended:
            return False
        self._has_guessed = True
        return True

    def is_known_alive(self, process: str) -> bool:
        """Whether the last heartbeat showed a process of another node."""
        return process in self.processes

    def join(self, earlier: Iterable[str], *, is_exclusive: bool) -> None:
        """This node joins the others. `earlier`: the processes that worked under its name before."""
        self._ended.update(earlier)
        self._is_complete = is_exclusive

    def update(self, processes: Iterable[str], left: Iterable[str], now: Instant) -> bool:
        """Replace what is known by what a heartbeat showed: the processes that are alive, and those that left cleanly.

        Whether somebody was taken to be alive until now only for lack of one: those who asked may ask again.
        """
        before, self.processes = self.processes, frozenset(processes)
        if before and before.difference(self.processes, left):
            self.note_lost(now)
        self._is_complete = True
        had_guessed, self._has_guessed = self._has_guessed, False
        return had_guessed

    def note_lost(self, now: Instant) -> None:
        """A process has ended without leaving: what it was about to do may be what ended it."""
        self._lost_at = now

    def is_alert(self, now: Instant) -> bool:
        """Whether a process ended lately: then each turn leaves a trace, also one that only a call asks for."""
        return self._lost_at is not None and abs(now - self._lost_at) < ALERT_TIME
