"""Diagrams that cannot be deployed, and definitions that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors.definitions import UnknownWorkflow
from holdfast.errors.roots import Conflict, InvalidRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence


class InvalidProcess(InvalidRequest):
    """Files cannot be deployed. `problems` lists everything that is wrong, each with file, line, element and remedy."""

    def __init__(self, message: str, problems: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class UnknownDefinition(NotFound):
    """The org has no such process, or no such version of it. `known` are those that it has."""

    def __init__(self, message: str, *, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


class ProcessNotStartable(UnknownWorkflow):
    """The process is known, but it was undeployed or disabled, or it cannot be started in this way."""


class DeploymentRefused(Conflict):
    """A process cannot be deployed beside what is there: its id is that of a code workflow, or its message is taken."""


class IncidentNotFound(NotFound):
    """The execution has no open incident of that number."""
