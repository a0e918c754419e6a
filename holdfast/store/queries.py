"""SQL kept in `.sql` files: each statement has a name, and a comment that says why it is as it is.

-- name: append_turns
-- Appended, whoever's they are.
INSERT INTO ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_NAME: Final = re.compile(r"^-- name: (\w+)$")
_ROW: Final = re.compile(r"VALUES (\(\?(?:, \?)*\))")


def load_queries(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """The statements of a file by name, without their comments. Raises ValueError if a name is missing or there twice."""
    queries: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in files(package).joinpath(file).read_text("utf-8").splitlines():
        name = _NAME.match(line)
        if name is not None:
            if name[1] in queries:
                raise ValueError(f"Expected every name once in {file}, but '{name[1]}' is there twice. Rename one.")
            lines = queries[name[1]] = []
        elif line.strip() and not line.startswith("--"):
            if lines is None:
                raise ValueError(f"Expected '-- name: …' before the first statement of {file}, but found {line!r}. Add one.")
            lines.append(line)
    return MappingProxyType({name: "\n".join(lines).rstrip().removesuffix(";") for name, lines in queries.items()})


def widen(statement: str, rows: int) -> str:
    """The same statement for `rows` rows at once: its one `VALUES (?, …)` is repeated."""
    widened, found = _ROW.subn(lambda values: "VALUES " + ", ".join([values[1]] * rows), statement)
    if found != 1:
        raise ValueError(f"Expected one VALUES (?, …) to widen, but found {found} in: {statement}")
    return widened
