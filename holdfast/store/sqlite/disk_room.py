"""How much room the disk has left, and that the database does not grow into the last of it.

Whatever a transaction adds to the database is written twice: to the log, and from there into the file. If the log takes the
last room, its content cannot be moved any more; then it cannot begin anew either, and not even deleting is possible. So
where little is left, SQLite is told how large the database may become: what would make it larger is refused as on a full
disk, while there still is room for changes within it, and for moving the log.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Final

from holdfast.store.sqlite.statements import SQL

MEGABYTE: Final = 1 << 20
LITTLE: Final = 80 * MEGABYTE
"""With less room than this the size of the database is limited: twice as much as the log has at most."""
RESERVE: Final = 4 * MEGABYTE
"""How much is left for changes that do not make the database larger. Also deleting takes room in the log."""
_NO_LIMIT: Final = 4_294_967_294
"""The most pages that an SQLite database can have."""


class DiskRoom:
    """The room on the disk of one database."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.is_little = False
        """Whether so little was left at the last look that the size of the database is limited."""

    def look(self) -> int:
        """How many bytes are free on the disk."""
        try:
            free = shutil.disk_usage(self._database.parent).free
        except OSError:
            return sys.maxsize  # whoever writes next is told what is wrong
        self.is_little = free < LITTLE
        return free

    def limit(self, connection: sqlite3.Connection) -> None:
        """Limit what the next transaction on a connection may add to the database, by the room that there is now."""
        free = self.look()
        if not self.is_little:
            connection.execute(SQL["limit_pages"] + f" = {_NO_LIMIT}")
            return
        (pages,) = connection.execute(SQL["count_pages"]).fetchone()
        (page_size,) = connection.execute(SQL["read_page_size"]).fetchone()
        still_in_log = max(0, pages * page_size - self._database.stat().st_size)
        may_add = max(0, free - RESERVE - still_in_log) // 2
        connection.execute(SQL["limit_pages"] + f" = {pages + may_add // page_size}")
