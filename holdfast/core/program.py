"""The seam between the engine and what decides: user code being replayed, or the BPMN interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from holdfast.core.commands import AnyCommand
from holdfast.core.events import AnyEvent, Given, HistoryTurn
from holdfast.core.instants import Instant

if TYPE_CHECKING:
    from holdfast.core.definition import Definition
    from holdfast.core.failures import Failure


class Step(msgspec.Struct, frozen=True, gc=False):
    """What a program answered to one event: events of its own, and commands, in order."""

    commands: Sequence[AnyCommand] = ()
    events: Sequence[AnyEvent] = ()


class Program(Protocol):
    """Turns events into commands. Pure: the same events give the same commands. Never raises: failures are returned.

    It is provisional until the turn that advanced it is committed; after anything else it is thrown away and rebuilt.
    """

    @property
    def definition(self) -> Definition | None:
        """The definition that made it; None for a null program, of an execution whose own cannot run."""
        ...

    @property
    def code_version(self) -> str:
        """The version of the code behind it, as the user named it; empty if it has none."""
        ...

    def advance(self, event: Given, now: Instant) -> Step:
        """Take one event, run to rest, and say what is wanted."""
        ...

    def apply(self, turns: Iterable[HistoryTurn]) -> Failure | None:
        """Take what has already happened. Returns the failure if the program does not agree with it, else None."""
        ...

    def waiting_signals(self) -> tuple[str, ...]:
        """The names of the signals it waits for now."""
        ...

    def close(self) -> None:
        """Free what it holds, without any further effect. Idempotent."""
        ...
