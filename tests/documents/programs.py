"""The programs in a page of the documents, and what each prints.

A block of Python is a program. Comments of the page, on the line before a block, say more about it:

- `<!-- continues -->`: it goes on with the program before it.
- `<!-- not run: why -->`: it is a fragment; only its syntax is checked.
- `<!-- file: name.py -->`: it is a file of that name beside the programs that follow. So may be a block of another language.

A block of text right behind a program is what the program prints.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


class Program(NamedTuple):
    """One program of a page, with the line on which its last block begins."""

    page: str
    line: int
    text: str
    is_run: bool
    files: dict[str, str]
    """The files beside it, by name."""
    prints: str | None = None
    """What the page says that it prints; None if the page does not say it."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_programs(page: Path) -> list[Program]:
    """All programs of a page, in order."""
    text, name = page.read_text(), page.relative_to(ROOT).as_posix()
    found: list[Program] = []
    files: dict[str, str] = {}
    end_of_program = -1
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("text"))
        note, body = block["note"] or "", block["text"]
        if block["language"] == "text" and end_of_program >= 0 and not text[end_of_program : block.start()].strip():
            found[-1] = found[-1]._replace(prints=body)
        end_of_program = -1
        if note.startswith("file: "):
            files[note.removeprefix("file: ")] = body
            continue
        if block["language"] != "python":
            continue
        if note == "continues":
            found[-1] = found[-1]._replace(text=found[-1].text + body, line=line)
        else:
            found.append(Program(name, line, body, not note.startswith("not run: "), dict(files)))
        end_of_program = block.end()
    return found
