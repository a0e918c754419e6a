"""What may only look at a program while it runs: the handlers of queries, and the validators of updates."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NoReturn

from holdfast.errors import ReadOnlyHandler


class ReadOnly:
    """Refuses, while something runs that may only look, whatever would change the execution."""

    __slots__ = ("who",)

    def __init__(self) -> None:
        self.who = ""
        """What runs now and may change nothing, in words; empty if all may."""

    def check(self, what: str) -> None:
        """Raises ReadOnlyHandler while something runs that may only look; `what` it tried to do."""
        if self.who:
            self.refuse(what)

    def refuse(self, what: str) -> NoReturn:
        """Raises ReadOnlyHandler, which says what was tried and by whom."""
        raise ReadOnlyHandler(
            f"Expected {self.who} only to look at the workflow, but it tried to {what}. "
            "Do that in the workflow itself, or in the handler of an update."
        )

    @contextmanager
    def during(self, who: str) -> Generator[None]:
        """While it is open, `who` runs and may change nothing."""
        before, self.who = self.who, who
        try:
            yield
        finally:
            self.who = before


NEVER_READ_ONLY: Final = ReadOnly()
"""Of programs that have no handlers: nothing of theirs runs that may only look."""
