"""What a server was asked, as its log tells: for servers with `log_statement = all`."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final

from tests.postgres.server import PostgresServer

LINE: Final = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (.*?) ?LOG:  (?:statement|execute [^:]*): (.*)$")


def read_statements(server: PostgresServer, start: int = 0) -> dict[int, list[str]]:
    """The first line of each statement, by the process that ran it; from a place in the log on."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for line in server.log[start:].splitlines():
        match = LINE.match(line)
        if match is not None:
            found[int(match[1])].append(match[3])
    return dict(found)


def count_statements(server: PostgresServer, text: str = "", start: int = 0) -> int:
    """How many statements ran whose first line holds this text."""
    return sum(text in one for statements in read_statements(server, start).values() for one in statements)
