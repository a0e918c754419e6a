"""Programs for executions whose own cannot run."""

from __future__ import annotations

from typing import NoReturn

from holdfast.core.commands import Fail
from holdfast.core.effects import ACCEPTED, Checked
from holdfast.core.events import AnyEvent
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.program import Step
from holdfast.errors import QueryFailed


class _WithoutCode:
    """What programs answer that run no code."""

    definition = None
    code_version = ""
    snapshot_schema = 0
    weight = None

    def untaken_signals(self) -> None:
        """What was taken cannot be told, since no code runs."""

    def apply(self, _turns: object) -> None:
        """Agrees with every history, since no code is compared with it."""

    def check_update(self, _update: object) -> Checked:
        """Nothing is checked: the update waits until the execution can run, or is answered when it closes."""
        return ACCEPTED

    def check_form(self, _number: int, _form: object) -> Checked:
        """Nothing is checked: the type of the form is not known."""
        return ACCEPTED

    def update_names(self) -> tuple[str, ...]:
        """No update is handled, since no code runs."""
        return ()

    def answer_query(self, name: str, _args: object) -> NoReturn:
        """No query is answered, since no code runs."""
        raise QueryFailed(
            f"Expected query '{name}' to be answered, but the code of the execution cannot run. See its status."
        )

    def waiting_signals(self) -> tuple[str, ...]:
        """No signal is waited for, since no code runs."""
        return ()

    def find_waits(self) -> None:
        """Nothing is known: no code runs."""

    def take_snapshot(self) -> None:
        """There is no state, since no code runs."""

    def restore_snapshot(self, _body: object, _schema: int) -> bool:
        """Agrees with every snapshot, as with every history."""
        return True

    def close(self) -> None:
        """Nothing to free: there are no coroutines."""


class NoProgram(_WithoutCode):
    """Stands in for a program that cannot run: blocked, or of an unknown workflow."""

    def advance(self, _event: object, _now: Instant) -> Step:
        """Only ever asked about what needs no program."""
        return Step()


class FailingProgram(_WithoutCode):
    """Fails once it runs: for code that did not survive its first turn."""

    def __init__(self, error: Failure) -> None:
        self._error = error

    def advance(self, event: AnyEvent, _now: Instant) -> Step:
        """The failure, at the first event that is not held. No other run is tried."""
        return Step() if getattr(event, "held", False) else Step([Fail(failure=self._error, is_final=True)])
