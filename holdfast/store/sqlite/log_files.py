"""The write-ahead log as a file: how long it is, and what of it counts.

SQLite begins the log anew at its start once all of it has been moved into the database file, and leaves the file as long as
it was; with `journal_size_limit` the first commit then cuts it to that length. So a file that is longer than the limit holds
more than the limit that is still to be moved, or is cut with the next commit.

A transaction for which the disk has no room leaves in the file what it has already written, and that takes the room which
moving the log would need. It is behind the last commit, and counts for nobody: `cut` gives it back. The format of the file
is described at sqlite.org/walformat.html: a header of 32 bytes, then frames of 24 bytes and a page each. A frame that ends a
commit has the size of the database in bytes 4 to 8; frames of this round of the log repeat the salt of the header.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_HEADER: Final = 32
_FRAME_HEADER: Final = 24


class LogFile:
    """The write-ahead log that lies beside a database file."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}-wal")

    def read_size(self) -> int:
        """How many bytes the file has; 0 if there is none."""
        try:
            return os.stat(self.path).st_size  # noqa: PTH116 - after each commit: a Path costs as much again
        except OSError:
            return 0

    def cut(self) -> None:
        """Give back what lies behind the last commit. Only while nobody can write: the caller holds SQLite's own lock."""
        end = self._find_end()
        if end < self.read_size():
            os.truncate(self.path, end)

    def _find_end(self) -> int:
        """Where the last commit ends, or a later place. Checksums are not looked at: what a commit began counts as one."""
        with self.path.open("rb", buffering=0) as file:
            header = file.read(_HEADER)
            if len(header) < _HEADER:
                return 0
            length, salt = _FRAME_HEADER + int.from_bytes(header[8:12], "big"), header[16:24]
            end = at = _HEADER
            while True:
                file.seek(at)
                frame = file.read(_FRAME_HEADER)
                if len(frame) < _FRAME_HEADER or frame[8:16] != salt:
                    return end
                at += length
                if frame[4:8] != b"\0\0\0\0":
                    end = at
