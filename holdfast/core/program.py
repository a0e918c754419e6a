"""The seam between the engine and what decides: user code being replayed, or the BPMN interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from holdfast.core.commands import AnyCommand, Untaken
from holdfast.core.events import AnyEvent, Given, HistoryTurn
from holdfast.core.instants import Instant
from holdfast.core.payloads import Payload
from holdfast.core.shown_values import ShownValue

if TYPE_CHECKING:
    from holdfast.core.definition import Definition
    from holdfast.core.effects import Checked
    from holdfast.core.envelopes import Update
    from holdfast.core.failures import Failure


class Step(msgspec.Struct, frozen=True, gc=False):
    """What a program answered to one event: events of its own, and commands, in order."""

    commands: Sequence[AnyCommand] = ()
    events: Sequence[AnyEvent] = ()


class SignalPlace(ShownValue, frozen=True):
    """A wait of a program for a signal."""

    name: str
    place: str | None = None
    """The line of the user's code that waits, as `file:line`; None if that cannot be told."""


class LocalWait(ShownValue, frozen=True):
    """A wait of a program for something that only its own code can bring: an event, a queue, a lock, a future."""

    what: str
    """What is awaited: `Event.wait`, `Queue.get`, `Lock.acquire` and so on; `Future` for a plain future."""
    place: str | None
    """The line of the user's code that waits, as `file:line`; None if a task of its own waits that nobody awaits."""
    task: str
    """The name of the asyncio task that waits."""


class Waits(msgspec.Struct, frozen=True):
    """What a program that rests waits for, as far as only the program knows."""

    signals: tuple[SignalPlace, ...] = ()
    local: tuple[LocalWait, ...] = ()
    places: dict[int, str] = {}
    """By the number of what was asked for (activities, timers, children, signals sent): the line that waits for it."""
    lines: tuple[str, ...] = ()
    """All lines at which its tasks wait, each once."""


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

    def untaken_signals(self) -> Sequence[Untaken] | None:
        """The signals and updates that it was given and has not taken, in their order; None: that cannot be told."""
        ...

    def check_update(self, update: Update) -> Checked:
        """Whether an update may be accepted: there is a handler for it, its value fits, its validator lets it pass."""
        ...

    def check_form(self, number: int, form: Payload) -> Checked:
        """Whether what a person filled in can be read as the type that the code gave the human task with that number."""
        ...

    def update_names(self) -> tuple[str, ...]:
        """The names of the updates that it handles now."""
        ...

    def answer_query(self, name: str, args: Payload) -> Payload:
        """What it answers to a query. Unlike the others it raises HoldfastErrors; the program is of no use after it."""
        ...

    def waiting_signals(self) -> tuple[str, ...]:
        """The names of the signals it waits for now."""
        ...

    def find_waits(self) -> Waits | None:
        """Where in its code it waits, and for what; None if it cannot tell, or does not rest. For people: not cheap."""
        ...

    @property
    def snapshot_schema(self) -> int:
        """The version in which it writes its snapshots; 0 if it has none, as code, whose state is its coroutines."""
        ...

    def take_snapshot(self) -> bytes | None:
        """Its state at rest, from which `restore_snapshot` makes an equal program; None if it has none."""
        ...

    def restore_snapshot(self, body: bytes, schema: int) -> bool:
        """Take the state of a snapshot in the place of the events up to it. To be asked before its first event.

        Whether it did. Where it did not, or raised, the program is of no use: another one takes all events.
        """
        ...

    @property
    def weight(self) -> int | None:
        """About how many bytes of memory it holds; None: the bytes of its history tell it, as for code."""
        ...

    def close(self) -> None:
        """Free what it holds, without any further effect. Idempotent."""
        ...


class WithoutSnapshots:
    """The part of a program whose state cannot be written down: it is rebuilt by replay."""

    snapshot_schema: Final = 0
    weight: Final = None

    def take_snapshot(self) -> None:
        """There is none: coroutines cannot be written down."""

    def restore_snapshot(self, _body: bytes, _schema: int) -> bool:
        """Never done: coroutines are rebuilt by replay."""
        return False
