"""Programs for executions whose own cannot run."""

from __future__ import annotations

from holdfast.core.commands import Fail
from holdfast.core.events import AnyEvent
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.program import Step


class FailingProgram:
    """Fails once it runs: for code that did not survive its first turn."""

    definition = None
    code_version = ""

    def __init__(self, error: Failure) -> None:
        self._error = error

    def advance(self, event: AnyEvent, _now: Instant) -> Step:
        """The failure, at the first event that is not held. No other run is tried."""
        return Step() if getattr(event, "held", False) else Step([Fail(failure=self._error, is_final=True)])

    def untaken_signals(self) -> None:
        """Nobody has taken any, nor will."""

    def apply(self, _turns: object) -> None:
        """Nothing to compare: it fails before anything is recorded."""

    def waiting_signals(self) -> tuple[str, ...]:
        """No signal is waited for, since no code runs."""
        return ()

    def find_waits(self) -> None:
        """Nothing is known: no code runs."""

    def close(self) -> None:
        """Nothing to free: there are no coroutines."""


class NoProgram:
    """Stands in for a program that cannot run: blocked, or of an unknown workflow."""

    definition = None
    code_version = ""

    def advance(self, _event: object, _now: Instant) -> Step:
        """Only ever asked about what needs no program."""
        return Step()

    def untaken_signals(self) -> None:
        """What was taken cannot be told, since no code runs."""

    def apply(self, _turns: object) -> None:
        """Agrees with every history, since no code is compared with it."""

    def waiting_signals(self) -> tuple[str, ...]:
        """No signal is waited for, since no code runs."""
        return ()

    def find_waits(self) -> None:
        """Nothing is known: no code runs."""

    def close(self) -> None:
        """Nothing to free: there are no coroutines."""
