"""All that is wrong with a model, told at once.

Some problems refuse the whole model: XML that is broken, references that lead nowhere, types that nobody can make. Those in
the logic of a single decision or knowledge model are kept with that element: it is null, with a warning, and the others can
be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from holdfast.errors import DmnError

MOST_PROBLEMS: Final = 200
"""Beyond these, they are only counted."""


class Problems:
    """Collects what is wrong, each with the place where it stands."""

    def __init__(self) -> None:
        self.found: list[str] = []
        """Those that refuse the model."""
        self._of_elements: dict[str, str] = {}
        self._all: dict[str, None] = {}
        self._left_out = 0
        self._element: str | None = None
        self._before = ""

    @contextmanager
    def inside(self, element: str) -> Iterator[None]:
        """What is added meanwhile concerns the logic of one element, given by its id, and nothing else."""
        outer, self._element = self._element, element
        try:
            yield
        finally:
            self._element = outer

    @contextmanager
    def inside_model(self, name: str) -> Iterator[None]:
        """What is added meanwhile stands in another model, which the places name."""
        outer, self._before = self._before, f"model {name!r}, " if name else ""
        try:
            yield
        finally:
            self._before = outer

    def add(self, place: str, message: str) -> None:
        """`message` goes by the formula "Expected …, but …. What to do."."""
        text = f"{self._before}{place}: {message}"
        if self._element is not None:
            self._of_elements.setdefault(self._element, text)
        elif len(self.found) < MOST_PROBLEMS:
            self.found.append(text)
        if text in self._all:
            return
        if len(self._all) >= MOST_PROBLEMS:
            self._left_out += 1
            return
        self._all[text] = None

    def get_first(self, element: str) -> str | None:
        """The first problem in the logic of an element, if there is any."""
        return self._of_elements.get(element)

    def list_all(self) -> list[str]:
        """Problems of the model and of its elements; beyond `MOST_PROBLEMS` they are counted."""
        return [*self._all, f"and {self._left_out} more"] if self._left_out else list(self._all)

    def raise_if_any(self, *, is_strict: bool = False) -> None:
        """Raises DmnError with all of them, if one refuses the model; strictly, if there is any at all."""
        if not self.found and not (is_strict and self._all):
            return
        count = len(self._all) + self._left_out
        what = "1 problem" if count == 1 else f"{count} problems"
        problems = self.list_all()
        raise DmnError(
            f"Expected a sound decision model, but it has {what}. Fix them and load it again. " + "; ".join(problems),
            problems,
        )


def refuse(message: str) -> DmnError:
    """The error for a file that cannot be read as a model at all."""
    return DmnError(message, [message])
