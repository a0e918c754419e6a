"""Where in the text of an expression something stands, for warnings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spot:
    """The beginning of a part of an expression: `offset` characters behind the beginning of `text`."""

    text: str
    offset: int

    @property
    def line(self) -> int:
        """Its line, from 1 on. Counted when it is asked for: most warnings are never looked at."""
        return self.text.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int:
        """Its column in the line, from 1 on."""
        return self.offset - self.text.rfind("\n", 0, self.offset)
