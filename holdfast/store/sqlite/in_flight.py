"""Which executions the owner of a database is about to take turns of, in a small file beside the database.

The database itself cannot tell: its one write transaction is open while turns are taken, and is rolled back when the process
ends. The file is overwritten in place with each batch and never synced: the page cache outlives the process, which is all
that is asked of it. It holds a checksum, the length of what follows, and a JSON list of marks. Whatever is wrong with the
file, or with writing it, costs the marks and nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

import msgspec

from holdfast.store.nodes import InFlightMark

_HEADER: Final = Struct(">II")
"""Checksum and length of the list."""
_LONGEST: Final = 64 * 1024 * 1024
"""Bytes of a list that is read: whatever is longer is another's file, or damage."""
_OPEN_TO_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Without waiting: what has the file's name may be a pipe to which nobody writes."""
_MOST_KEPT: Final = 64
"""How many marks of earlier processes are kept: crash upon crash must not make the file grow."""

if sys.platform == "win32":

    def _overwrite(fd: int, content: bytes) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, content)

else:

    def _overwrite(fd: int, content: bytes) -> None:
        os.pwrite(fd, content, 0)


class _Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one process recorded last in one slot."""

    process: str
    slot: int
    versions: Mapping[str, int]


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[_Mark])


class InFlightFile:
    """The marks of this process and of those that ended before it, `<database>-in-flight`."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + "-in-flight")
        self._fd: int | None = None
        self._process = ""
        self._own: dict[int, _Mark] = {}
        """What the process that marks now recorded last, by slot."""
        self._others: list[_Mark] = []
        """What earlier processes recorded last, the newest last."""
        self._encoded_others = b""

    def open(self) -> None:
        """Read what earlier processes left behind. Never raises."""
        self._keep_others(_read(self._path)[-_MOST_KEPT:])

    def mark(self, process: str, slot: int, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        """Record what a process has in flight; which of it others had at the same version. Never raises."""
        if process != self._process:
            self._keep_others([*self._others, *self._own.values()])
            self._process, self._own = process, {}
        self._own[slot] = _Mark(process, slot, versions)
        self._write()
        return self._find_in_others(versions) if self._others else {}

    def _find_in_others(self, versions: Mapping[str, int]) -> dict[str, list[InFlightMark]]:
        """Which executions other processes had in flight at the same version. Marks at other versions are stale, and go."""
        found: dict[str, list[InFlightMark]] = {}
        kept: list[_Mark] = []
        for mark in self._others:
            stale = set()
            for execution_id in mark.versions.keys() & versions.keys():
                if mark.versions[execution_id] == versions[execution_id]:
                    found.setdefault(execution_id, []).append(InFlightMark(mark.process, mark.slot))
                else:
                    stale.add(execution_id)
            left = {one: version for one, version in mark.versions.items() if one not in stale}
            if left:
                kept.append(_Mark(mark.process, mark.slot, left))
        if kept != self._others:
            self._keep_others(kept)
        return found

    def forget(self, processes: Collection[str]) -> None:
        """Drop the marks of these processes. Never raises."""
        self._own = {slot: mark for slot, mark in self._own.items() if mark.process not in processes}
        kept = [mark for mark in self._others if mark.process not in processes]
        if kept != self._others:
            self._keep_others(kept)
            self._write()

    def _keep_others(self, marks: list[_Mark]) -> None:
        self._others = marks
        self._encoded_others = b",".join(_ENCODER.encode(mark) for mark in marks)

    def _write(self) -> None:
        content = _ENCODER.encode(list(self._own.values()))
        if self._encoded_others:
            content = b"[" + self._encoded_others + (b"," + content[1:] if self._own else b"]")
        try:
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            _overwrite(self._fd, _HEADER.pack(crc32(content), len(content)) + content)
        except OSError:
            return  # whoever comes next is not warned, and nothing else

    def close(self) -> None:
        """The process leaves nothing in flight: remove the file. Never raises."""
        self._own = {}
        self._keep_others([])
        try:
            if self._fd is not None:
                os.ftruncate(self._fd, 0)
            self._path.unlink(missing_ok=True)
        except OSError:
            pass  # an empty file says the same
        self.abandon()

    def abandon(self) -> None:
        """Let go of the file as it is, as the end of the process would."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _read(path: Path) -> list[_Mark]:
    """The marks in a file; none if it is missing, damaged or another's."""
    try:
        with os.fdopen(os.open(path, _OPEN_TO_READ), "rb") as file:
            checksum, length = _HEADER.unpack(file.read(_HEADER.size))
            body = file.read(length) if length <= _LONGEST else b""
        return _DECODER.decode(body) if crc32(body) == checksum else []
    except Exception:  # noqa: BLE001 - whatever it is, it is not worth a database that does not open
        return []
