"""All that is wrong with a model, told at once."""

from __future__ import annotations

from typing import Final

from holdfast.errors import DmnError

MOST_PROBLEMS: Final = 200
"""Beyond these, they are only counted."""


class Problems:
    """Collects what is wrong, each with the place where it stands."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._left_out = 0

    def add(self, place: str, message: str) -> None:
        """`message` goes by the formula "Expected …, but …. What to do."."""
        text = f"{place}: {message}"
        if text in self.found:
            return
        if len(self.found) >= MOST_PROBLEMS:
            self._left_out += 1
            return
        self.found.append(text)

    def raise_if_any(self) -> None:
        """Raises DmnError with all of them."""
        if not self.found:
            return
        problems = list(self.found)
        if self._left_out:
            problems.append(f"and {self._left_out} more")
        count = len(self.found) + self._left_out
        what = "1 problem" if count == 1 else f"{count} problems"
        raise DmnError(
            f"Expected a sound decision model, but it has {what}. Fix them and load it again. " + "; ".join(problems),
            problems,
        )


def refuse(message: str) -> DmnError:
    """The error for a file that cannot be read as a model at all."""
    return DmnError(message, [message])
