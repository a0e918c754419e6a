"""Where the process that owns a database file takes calls of others: written beside the file, for clients to find."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec


class Endpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """The place where the owner of a database listens: a Unix socket, or a port of this machine with a token file."""

    socket: str = ""
    """The path of the socket, in a folder that only the owner's user can enter."""
    port: int = 0
    """The port on the loopback interface, where there are no Unix sockets."""
    token_file: str = ""
    """The file with what clients of the port and the owner prove themselves by; only the owner's user can read it."""


@runtime_checkable
class OwnedStore(Protocol):
    """A store in a file that one process owns, and beside which it can say where it takes calls."""

    @property
    def path(self) -> Path:
        """The path of the database file."""
        ...

    @property
    def is_owned(self) -> bool:
        """Whether this process owns the file by this store. A forked child of it does not."""
        ...

    def abandon(self) -> None:
        """Let go at once, as the end of the process would: nothing is waited for."""
        ...

    def announce(self, endpoint: Endpoint) -> None:
        """Write beside the file where this process takes calls; until it lets the file go. The store must be open."""
        ...

    def keep_announced(self) -> None:
        """Write it again if somebody removed what was written. Never raises: it is tried again."""
        ...

    def find_left_endpoint(self) -> Endpoint | None:
        """Where the owner before this one took calls, if it ended without tidying up."""
        ...
