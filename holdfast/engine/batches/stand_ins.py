"""Programs for executions whose own cannot run."""

from __future__ import annotations

from holdfast.core.commands import Fail
from holdfast.core.events import AnyEvent
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.program import Step


class FailingProgram:
    """Fails once it runs: for code that did not survive its first turn."""

    code_version = ""

    def __init__(self, error: Failure) -> None:
        self._error = error

    def advance(self, event: AnyEvent, _now: Instant) -> Step:
        """The failure, at the first event that is not held."""
        return Step() if getattr(event, "held", False) else Step([Fail(failure=self._error)])

    def apply(self, _turns: object) -> Step:
        """It has no history."""
        return Step()

    def waiting_signals(self) -> tuple[str, ...]:
        """None."""
        return ()

    def close(self) -> None:
        """Nothing to free."""


class NoProgram:
    """Stands in for a program that cannot run: blocked, or of an unknown workflow."""

    code_version = ""

    def advance(self, _event: object, _now: Instant) -> Step:
        """Only ever asked about what needs no program."""
        return Step()

    def apply(self, _turns: object) -> Step:
        """Nothing to agree with."""
        return Step()

    def waiting_signals(self) -> tuple[str, ...]:
        """None."""
        return ()

    def close(self) -> None:
        """Nothing to free."""
