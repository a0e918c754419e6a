"""Whether a connection was cut because its transaction idled for too long.

The server says so when it closes the connection. But the driver listens only while a statement is under way, so all that
is known afterwards is that the connection is closed. So the time is measured between the end of the last statement and the
end of the connection.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from holdfast.store.postgres.drivers import Connection

IDLE_SECONDS: Final = 10
"""How long a user's transaction may be left idle before the server ends it, so that its locks become free."""
_TOLERANCE: Final = 0.9


class IdleWatch:
    """Watches a connection on which a user's function works, from its making until `stop`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._used_at = monotonic()
        self._ended_at: float | None = None
        connection.add_query_logger(self._note_use)
        connection.add_termination_listener(self._note_end)

    @property
    def has_idled(self) -> bool:
        """Whether the connection ended when no statement had been under way for as long as a transaction may idle."""
        return self._ended_at is not None and self._ended_at - self._used_at >= _TOLERANCE * IDLE_SECONDS

    def stop(self) -> None:
        """Watch the connection no longer: others may use it."""
        self._connection.remove_query_logger(self._note_use)
        self._connection.remove_termination_listener(self._note_end)

    def _note_use(self, _record: Any) -> None:
        self._used_at = monotonic()

    def _note_end(self, _connection: Any) -> None:
        self._ended_at = monotonic()
