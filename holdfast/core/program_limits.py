"""The bounds within which a program works: how large its values and turns may be, and how long its code may run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from holdfast.core.interrupts import is_interrupt
from holdfast.core.options import FindJobType, find_no_job_type
from holdfast.core.payloads import DEFAULT_LIMIT

T = TypeVar("T")


class RunLimit(Protocol):
    """Calls user code of a workflow, and may interrupt it: the seam by which an engine ends code that does not rest."""

    def call(self, workflow: str, execution_id: str, function: Callable[[Any], T], argument: Any) -> T:
        """Call `function(argument)`, which runs user code of that execution; its result, or what it raises.

        Raises TurnTooLong, with the place in the code, if it ran for too long and was interrupted: then what it worked on
        may be half done and must not be used again. An interruption never arrives after this has returned or raised.
        """
        ...

    def ends_process(self, error: BaseException) -> bool:
        """Whether an exception that user code let through did not come from it, and is to end the process or the turn."""
        ...


class Unlimited:
    """Lets code run for as long as it takes: for replays in tests and in simulations, where nobody else is held up."""

    def call(self, _workflow: str, _execution_id: str, function: Callable[[Any], T], argument: Any) -> T:
        """Call `function(argument)`; its result, or what it raises."""
        return function(argument)

    def ends_process(self, error: BaseException) -> bool:
        """Whether an exception is Ctrl-C, which has nothing to do with the code that was running."""
        return is_interrupt(error)


UNLIMITED: Final[RunLimit] = Unlimited()


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Bounds, one default and one look-up, that all programs of an engine have in common."""

    payload_bytes: int = DEFAULT_LIMIT
    """The most bytes of JSON that one recorded value may have."""
    turn_bytes: int = sys.maxsize
    """The most bytes of values that a program may ask to be recorded after one event."""
    run: RunLimit = UNLIMITED
    """How long its code may run at a stretch."""
    propagate_child_failures: bool = True
    """Whether awaiting a child that ends without a result raises, where the call does not say it."""
    find_job_type: FindJobType = find_no_job_type
    """Looks up what is known of the activity that a task of a process asks for."""


NO_PROGRAM_LIMITS: Final = ProgramLimits()
