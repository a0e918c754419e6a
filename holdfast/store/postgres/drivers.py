"""The driver's connection, with one thing less to ask.

Before its first use of an array of numbers or bytes on a connection, the driver asks the server what such an array is, by a
query that takes longer than all the rest of a batch. What is built into PostgreSQL is the same on every server and in every
version: it is asked once in a process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg

Connection: TypeAlias = "asyncpg.Connection[Any]"
if TYPE_CHECKING:
    _Driver: TypeAlias = asyncpg.Connection[Any]
else:
    _Driver = asyncpg.Connection  # to be derived from: the driver's types are not there when it runs

_FIRST_OF_USERS: Final = 16_384
"""From here on, types are what somebody created in a database."""
_known: Final[dict[frozenset[int], Any]] = {}


class _NotAsked:
    """In the place of the statement that asked: the driver looks whether it had a name of its own."""

    name: Final = "known"


class DriverConnection(_Driver):
    """A connection that knows what others of this process were told."""

    async def _introspect_types(self, typeoids: Any, timeout: float | None) -> Any:
        wanted = frozenset(typeoids)
        if wanted in _known:
            return _known[wanted], _NotAsked
        types, statement = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]
        if max(wanted) < _FIRST_OF_USERS:
            _known[wanted] = types
        return types, statement
