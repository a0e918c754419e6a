"""SQL kept in `.sql` files: each statement has a name, and a comment that says why it is as it is.

-- name: append_turns
-- Appended, whoever's they are.
INSERT INTO ...

What several statements of a file have in common is a part, which they take up by its name:

-- part: conditions
    AND org = ?
-- with: conditions
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_NAME: Final = re.compile(r"^-- name: (\w+)$")
_PART: Final = re.compile(r"^-- part: (\w+)$")
_WITH: Final = re.compile(r"^-- with: (\w+)$")
_ROW: Final = re.compile(r"VALUES (\(\?(?:, \?)*\))")


def load_queries(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """The statements of a file by name, without their comments; those of topics that are split off it included.

    Split off `queries.sql` is every `queries_….sql` beside it. Raises ValueError if a name is missing or there twice.
    """
    topic = file.removesuffix(".sql") + "_"
    folder = files(package)
    names = sorted(one.name for one in folder.iterdir() if one.name.startswith(topic) and one.name.endswith(".sql"))
    queries: dict[str, list[str]] = {}
    for name in (file, *names):
        _read_statements(name, folder.joinpath(name).read_text("utf-8"), queries)
    return MappingProxyType({name: "\n".join(lines).rstrip().removesuffix(";") for name, lines in queries.items()})


def _read_statements(file: str, text: str, queries: dict[str, list[str]]) -> None:
    """Add the statements of one file to `queries`, as lines without comments."""
    lines: list[str] | None = None
    parts: dict[str, list[str]] = {}
    for line in text.splitlines():
        name = _NAME.match(line)
        if (part := _PART.match(line)) is not None:
            lines = parts[part[1]] = []
        elif (used := _WITH.match(line)) is not None:
            if lines is None or used[1] not in parts:
                raise ValueError(f"Expected a part before it is used in {file}, but '{used[1]}' is none. Define it first.")
            lines += parts[used[1]]
        elif name is not None:
            if name[1] in queries:
                raise ValueError(f"Expected every name once in {file}, but '{name[1]}' is there twice. Rename one.")
            lines = queries[name[1]] = []
        elif line.strip() and not line.startswith("--"):
            if lines is None:
                raise ValueError(f"Expected '-- name: …' before the first statement of {file}, but found {line!r}. Add one.")
            lines.append(line)


def widen(statement: str, rows: int) -> str:
    """The same statement for `rows` rows at once: its one `VALUES (?, …)` is repeated."""
    widened, found = _ROW.subn(lambda values: "VALUES " + ", ".join([values[1]] * rows), statement)
    if found != 1:
        raise ValueError(f"Expected one VALUES (?, …) to widen, but found {found} in: {statement}")
    return widened
