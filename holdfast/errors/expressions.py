"""FEEL expressions and decision models that cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors.roots import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence


class FeelError(InvalidRequest):
    """A FEEL expression cannot be evaluated at all. Most errors inside of one give null and a warning instead."""


class FeelSyntaxError(FeelError):
    """A FEEL expression cannot be parsed. `line` and `column` begin with 1; `shown` is the line with a caret below it.

    `hint` says what FEEL writes instead, where the text looks like another language; it is empty otherwise.
    """

    def __init__(
        self, message: str, *, line: int = 1, column: int = 1, shown: str = "", expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.line = line
        self.column = column
        self.shown = shown
        self.expected = expected


class FeelLimitExceeded(FeelError):
    """A FEEL expression would take more steps, depth or memory than it may."""


class DmnError(InvalidRequest):
    """A decision model cannot be used. `problems` lists everything that is wrong with it."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
