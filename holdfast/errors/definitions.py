"""Functions that cannot be workflows or activities, and names that are not registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors.roots import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence


class InvalidDefinition(InvalidRequest):
    """A function cannot serve as a workflow or an activity."""


class DuplicateName(InvalidDefinition):
    """Two different functions claim one name."""


class UnknownWorkflow(InvalidRequest):
    """No workflow of that name is registered here. `known` are the names that are, or the versions of `workflow`."""

    def __init__(self, message: str, *, workflow: str = "", version: str | None = None, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.workflow = workflow
        self.version = version
        """The version that was asked for, where the workflow has others."""
        self.known = tuple(known)


class UnknownActivity(InvalidRequest):
    """No activity of that name is registered here."""


class UnknownEvent(InvalidRequest):
    """No type of events has that name here, nor on a living node. `known` are the names that there are."""

    def __init__(self, message: str, *, event: str = "", known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.event = event
        self.known = tuple(known)
