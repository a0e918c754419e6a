"""Engines that are open when the process ends: the log says so, since what they ran is begun again elsewhere."""

from __future__ import annotations

import atexit
import logging
from typing import Final, Protocol
from weakref import WeakSet

from holdfast.log_events import LogEvent, tag

log = logging.getLogger("holdfast.engine")


class Closable(Protocol):
    """An engine, as far as its end is concerned."""

    @property
    def node(self) -> str:
        """The name of the node that it is."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether it has not been shut down yet."""
        ...


_opened: Final[WeakSet[Closable]] = WeakSet()


def note_open(engine: Closable) -> None:
    """Remember an engine that was opened, until it is gone."""
    _opened.add(engine)


@atexit.register
def report_open() -> None:
    """Log each engine that is still open."""
    for engine in list(_opened):
        if engine.is_open:
            log.warning(
                "node %s was not shut down before the process ended: what it ran is begun again by other nodes when its "
                "lease has run out, or by the next process. Use `async with Engine(…)`, or await shutdown()",
                engine.node,
                extra=tag(LogEvent.ENGINE_NOT_CLOSED, node=engine.node),
            )
