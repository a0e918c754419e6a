"""As much of PostgreSQL's protocol as a proxy needs: where messages end, which SQL they run, when the reply is complete.

"PostgreSQL Frontend/Backend Protocol", version 3: after the start, a message is a letter, a length that counts itself,
and a body. Not understood: encryption (the proxy declines it) and replication.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

ENCRYPTION_REQUESTS: Final = {80877103, 80877104}
"""SSLRequest and GSSENCRequest; the client starts anew after the answer `N`."""

ENDS_WITH_READY: Final = {"Q", "S", "F"}
"""Query, Sync and FunctionCall: the server ends its reply to each with ReadyForQuery."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a client."""

    kind: str
    """The letter; `start` and `encrypt` for those at the start, which have none."""
    raw: bytes
    sql: str | None = None
    """What it makes the server run: the text of a Query, or of the statement that an Execute executes."""


Predicate = Callable[[Message], bool]


def is_commit(message: Message) -> bool:
    """Whether it commits a transaction, as a query of its own or by a prepared statement."""
    return message.sql is not None and re.match(r"\s*(COMMIT|END)\b(?!\s+PREPARED)", message.sql, re.IGNORECASE) is not None


def runs(text: str) -> Predicate:
    """Whether it runs SQL that contains this text, in any case."""
    return lambda message: message.sql is not None and text.lower() in message.sql.lower()


class ClientStream:
    """What a client sends, cut into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._has_started = False
        self._statements: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are complete now."""
        self._buffer += data
        messages: list[Message] = []
        while (message := self._next()) is not None:
            messages.append(message)
        return messages

    def _next(self) -> Message | None:
        prefix = 1 if self._has_started else 0
        if len(self._buffer) < prefix + 4:
            return None
        end = prefix + int.from_bytes(self._buffer[prefix : prefix + 4])
        if len(self._buffer) < end:
            return None
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        if self._has_started:
            kind = chr(raw[0])
            return Message(kind, raw, self._find_sql(kind, raw[5:]))
        if int.from_bytes(raw[4:8]) in ENCRYPTION_REQUESTS:
            return Message("encrypt", raw)
        self._has_started = True
        return Message("start", raw)

    def _find_sql(self, kind: str, body: bytes) -> str | None:
        match kind:
            case "Q":
                return body[:-1].decode(errors="replace")
            case "P":
                name, text, _ = body.split(b"\0", 2)
                self._statements[name] = text.decode(errors="replace")
            case "B":
                portal, name, _ = body.split(b"\0", 2)
                self._portals[portal] = self._statements.get(name, "")
            case "E":
                return self._portals.get(body.split(b"\0", 1)[0])
        return None


class ServerStream:
    """What a server answers; counts the replies that are complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.replies = 0
        """ReadyForQuery so far; the first ends the start."""

    def feed(self, data: bytes) -> None:
        self._buffer += data
        at = 0
        while len(self._buffer) >= at + 5:
            end = at + 1 + int.from_bytes(self._buffer[at + 1 : at + 5])
            if len(self._buffer) < end:
                break
            self.replies += self._buffer[at : at + 1] == b"Z"
            at = end
        del self._buffer[:at]
