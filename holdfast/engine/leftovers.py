"""Engines that are open when they are collected or the process ends: somebody hears of it, since their work stands still."""

from __future__ import annotations

import atexit
import logging
import warnings
from asyncio import AbstractEventLoop
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

    @property
    def loop(self) -> AbstractEventLoop:
        """The event loop in which it was opened."""
        ...

    def _let_go_of_file(self) -> None:
        """Give back the file that it owns, if there is one."""
        ...


_opened: Final[WeakSet[Closable]] = WeakSet()


def note_open(engine: Closable) -> None:
    """Remember an engine that was opened, until it is gone."""
    _opened.add(engine)


def forget_open(engine: Closable) -> None:
    """Forget an engine that was left as a killed process leaves it, on purpose: by a test, or a simulation."""
    _opened.discard(engine)


def warn_unclosed(engine: Closable) -> None:
    """Warn, as Python does of files and sockets, of an engine that is collected though it was not shut down."""
    warnings.warn(
        f"unclosed engine, node {engine.node}: it was not shut down before its event loop ended. "
        "Use `async with Engine(…)`, or await shutdown()",
        ResourceWarning,
        stacklevel=3,
        source=engine,
    )


def let_go_of_files() -> None:
    """Make engines whose loops were closed without shutting them down let go of their files: they can be used no more."""
    for engine in list(_opened):
        if engine.is_open and engine.loop.is_closed():
            engine._let_go_of_file()


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
