"""What a server is asked while its nodes have nothing to do, as its log tells: for servers with `log_statement = all`."""

from __future__ import annotations

import re
from typing import Final

from tests.eventually import eventually
from tests.postgres.server import PostgresServer

STATEMENT: Final = re.compile(r"^\S+ \S+ \S+ \[\d+\] .*?LOG:  (?:statement|execute [^:]*): ", re.MULTILINE)
"""How the log introduces a statement."""
BEAT: Final = ".nodes AS stored (node"
"""What only a heartbeat says."""


async def expect_only_beats(server: PostgresServer, settling: int, count: int) -> None:
    """Let some heartbeats pass, in which what was under way is done; from then on nothing comes but heartbeats."""
    await _until_beats(server, settling)
    start = len(server.log)
    await _until_beats(server, count)
    await eventually(lambda: _has_only_beats(server, start), "nothing but heartbeats")


async def _until_beats(server: PostgresServer, count: int) -> None:
    goal = server.log.count(BEAT) + count
    await eventually(lambda: server.log.count(BEAT) >= goal, f"{count} heartbeats")


def _has_only_beats(server: PostgresServer, start: int) -> bool:
    log = server.log[start:]  # read once: nodes go on beating, however long it takes to count
    others = [statement for statement in STATEMENT.split(log)[1:] if BEAT not in statement]
    assert len(others) <= 1, others  # one, if the log ends in the middle of it
    return not others
