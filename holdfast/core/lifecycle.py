"""The life of an execution as one table. Nobody else decides what status follows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from holdfast.errors import CorruptStore, NewerFormat


class Status(StrEnum):
    """Where an execution stands, from its registration to how it ended."""

    RUNNING = "running"
    """An activity is outstanding, or a turn."""
    SUSPENDED = "suspended"
    """Nothing is outstanding: the execution waits for something to arrive."""
    BLOCKED = "blocked"
    """It takes no turns: its code does not fit its history, or its turns failed or ended their process too often.

    retry_blocked or a termination ends that."""
    PAUSED = "paused"
    """Somebody halted the execution; it takes no turns until somebody lets it go on."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    CONTINUED = "continued"

    @property
    def is_closed(self) -> bool:
        """Whether nothing can happen any more to an execution of this status."""
        return self in CLOSED


def read_status(stored: str, execution_id: str) -> Status:
    """The status of an execution as it is stored. Raises NewerFormat if only a newer Holdfast knows it."""
    try:
        return Status(stored)
    except ValueError:
        raise NewerFormat(
            f"Expected execution {execution_id} to have a status that is known here, but it is '{stored}': "
            "a newer Holdfast wrote it. Upgrade this node; nodes that can read it go on."
        ) from None


class Operation(StrEnum):
    """What can happen to an execution that may change its status."""

    REGISTER = "register"
    SUSPEND = "suspend"
    RESUME = "resume"
    BLOCK = "block"
    UNBLOCK = "unblock"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    COMPLETE = "complete"
    FAIL = "fail"
    CANCEL = "cancel"
    TIME_OUT = "time_out"
    TERMINATE = "terminate"
    CONTINUE = "continue"


CLOSED: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.TERMINATED, Status.CONTINUED})
CLOSING: Final = frozenset(
    {Operation.COMPLETE, Operation.FAIL, Operation.CANCEL, Operation.TIME_OUT, Operation.TERMINATE, Operation.CONTINUE}
)

_R, _S, _B, _P = Status.RUNNING, Status.SUSPENDED, Status.BLOCKED, Status.PAUSED

TRANSITIONS: Final[Mapping[tuple[Status | None, Operation], Status]] = {
    (None, Operation.REGISTER): _R,
    (_R, Operation.SUSPEND): _S,
    (_S, Operation.SUSPEND): _S,
    (_S, Operation.RESUME): _R,
    (_R, Operation.RESUME): _R,
    (_R, Operation.BLOCK): _B,
    (_S, Operation.BLOCK): _B,
    (_B, Operation.BLOCK): _B,
    (_B, Operation.UNBLOCK): _R,
    (_R, Operation.PAUSE): _P,
    (_S, Operation.PAUSE): _P,
    (_P, Operation.UNPAUSE): _R,
    (_R, Operation.COMPLETE): Status.COMPLETED,
    (_S, Operation.COMPLETE): Status.COMPLETED,
    (_R, Operation.FAIL): Status.FAILED,
    (_S, Operation.FAIL): Status.FAILED,
    (_R, Operation.CANCEL): Status.CANCELLED,
    (_S, Operation.CANCEL): Status.CANCELLED,
    (_R, Operation.CONTINUE): Status.CONTINUED,
    (_S, Operation.CONTINUE): Status.CONTINUED,
    (_R, Operation.TIME_OUT): Status.FAILED,
    (_S, Operation.TIME_OUT): Status.FAILED,
    (_B, Operation.TIME_OUT): Status.FAILED,
    (_P, Operation.TIME_OUT): Status.FAILED,
    (_R, Operation.TERMINATE): Status.TERMINATED,
    (_S, Operation.TERMINATE): Status.TERMINATED,
    (_B, Operation.TERMINATE): Status.TERMINATED,
    (_P, Operation.TERMINATE): Status.TERMINATED,
}


def next_status(status: Status | None, operation: Operation) -> Status:
    """The status that follows. Raises CorruptStore for a transition that does not exist."""
    try:
        return TRANSITIONS[status, operation]
    except KeyError:
        raise CorruptStore(
            f"Expected to {operation} an execution, but it is {status}, from where that cannot happen. "
            "This is a defect of Holdfast, or the database was changed by other hands: run `holdfast check`."
        ) from None
