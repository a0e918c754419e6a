"""Which processes of other nodes are alive, as the last heartbeat showed: told by the membership, read by the quarantine."""

from __future__ import annotations

from collections.abc import Iterable


class LivingNodes:
    """The other nodes that share the store and are not known to have ended."""

    def __init__(self) -> None:
        self.processes: frozenset[str] = frozenset()
        """The tokens of their processes: a node that was started again under its name has another one."""

    def update(self, processes: Iterable[str]) -> None:
        """Replace what is known by what a heartbeat showed."""
        self.processes = frozenset(processes)
