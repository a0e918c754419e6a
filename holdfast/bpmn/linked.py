"""What a process refers to outside of its file: decisions and forms of deployments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from holdfast import dmn
    from holdfast.bpmn import model


@dataclass(frozen=True, slots=True)
class LinkedDecision:
    """A deployed decision model, and the version of the decision that was found in it."""

    model: dmn.Model
    version: int


class LinkedResources(Protocol):
    """Finds what a process refers to. Called within turns: answers from memory."""

    @property
    def deployment(self) -> str:
        """The id of the deployment by which this version of the process came; empty if there is none."""
        ...

    def find_decision(self, decision_id: str, binding: model.Binding, version_tag: str) -> LinkedDecision | None:
        """The model that has a decision; None if there is none."""
        ...

    def find_form(self, form_id: str) -> bytes | None:
        """The JSON of a deployed form; None if there is none."""
        ...


class _NothingLinked:
    deployment = ""

    def find_decision(self, _decision_id: str, _binding: model.Binding, _version_tag: str) -> None:
        """None: no decision is deployed beside the process."""

    def find_form(self, _form_id: str) -> None:
        """None: no form is deployed beside the process."""


NOTHING_LINKED: Final[LinkedResources] = _NothingLinked()
"""For processes that refer to nothing outside of their file."""
