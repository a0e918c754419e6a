"""Updates and queries that were not answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors.roots import Conflict, HoldfastError, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence


class UnknownUpdate(InvalidRequest):
    """The workflow has no handler for such an update, or has not registered it yet. `known` are those that it has."""

    def __init__(self, message: str, *, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


class UnknownQuery(InvalidRequest):
    """The workflow has no handler for such a query, or has not registered it yet. `known` are those that it has."""

    def __init__(self, message: str, *, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


class ExecutionNotBegun(Conflict):
    """A query came before the first step of the workflow's code, which registers the handlers; the message says why.

    The start is delayed, somebody has paused the execution, or no node has taken its first turn yet. Ask again later.
    """


class ReadOnlyHandler(InvalidRequest):
    """The handler of a query, or the validator of an update, asked for something that would change the execution."""


class UpdateRejected(Conflict):
    """The workflow's validator refused an update; nothing was stored."""


class UpdateUnfinished(Conflict):
    """The workflow ended while the handler of the update ran: how far it came is in the history."""


class UpdateFailed(HoldfastError):
    """The handler of an update raised. `type` names what it raised; the workflow goes on."""

    def __init__(self, message: str, *, type: str = "") -> None:
        super().__init__(message)
        self.type = type


class QueryFailed(HoldfastError):
    """A query was not answered: its handler raised, or the history of the execution cannot be replayed here."""

    def __init__(self, message: str, *, type: str = "") -> None:
        super().__init__(message)
        self.type = type


class AnswerTimedOut(HoldfastError, TimeoutError):
    """No answer came in time, or a status that was waited for did not. An update that was accepted still goes on."""


class NobodyAnswers(HoldfastError):
    """No process is there that has the code: for an update or a query of a file that nobody owns. Nothing was stored."""
