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

    def update(self, processes: Iterable[str], left: Iterable[str], now: Instant) -> None:
        """Replace what is known by what a heartbeat showed: the processes that are alive, and those that left cleanly."""
        before, self.processes = self.processes, frozenset(processes)
        if before and before.difference(self.processes, left):
            self.note_lost(now)

    def note_lost(self, now: Instant) -> None:
        """A process has ended without leaving: what it was about to do may be what ended it."""
        self._lost_at = now

    def is_alert(self, now: Instant) -> bool:
        """Whether a process ended lately: then each turn leaves a trace, also one that only a call asks for."""
        return self._lost_at is not None and abs(now - self._lost_at) < ALERT_TIME
