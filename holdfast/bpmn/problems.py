"""What is wrong with a diagram: one value per finding, with its place and its remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

MOST_PROBLEMS: Final = 1_000
"""So many findings of one severity are told about a file."""


class Severity(StrEnum):
    """Whether a finding refuses the file, or only tells of something that is handled in another way than written."""

    ERROR = "error"
    NOTICE = "notice"


class Problem(msgspec.Struct, frozen=True, order=True):
    """A finding about a file: where, what was expected and found, and what to do about it."""

    file: str
    line: int
    """The line in the file; 0 if the finding is about the file as a whole."""
    element: str
    """The id of the element; empty if it has none."""
    message: str
    """What was expected, and what was found."""
    remedy: str
    severity: Severity = Severity.ERROR
    code: str = ""
    """What kind of finding it is, for programs: a short name with dashes, such as `unknown-reference`."""

    def __str__(self) -> str:
        place = self.file if not self.line else f"{self.file}:{self.line}"
        about = f" ({self.element})" if self.element else ""
        return f"{place}{about}: {self.message} {self.remedy}".rstrip()


class ProblemList:
    """The findings about one file: of each severity so many, as nobody would read more. Notices leave errors their room."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self._counts: Counter[Severity] = Counter()

    def add(self, problem: Problem) -> None:
        """Keep a finding, unless there are enough of its severity."""
        self._counts[problem.severity] += 1
        if self._counts[problem.severity] <= MOST_PROBLEMS:
            self.kept.append(problem)


def list_errors(problems: Iterable[Problem]) -> list[Problem]:
    """Those findings that refuse a file, in the order of files and lines."""
    return sorted(one for one in problems if one.severity is Severity.ERROR)
