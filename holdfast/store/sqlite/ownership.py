"""One process owns a database file. A lock beside it says so, and ends with the process however that ends."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path
from typing import Final

import msgspec

from holdfast.core.instants import Instant, to_datetime
from holdfast.errors import StoreOwned
from holdfast.store.endpoints import Endpoint
from holdfast.store.sqlite.failures import translate_os

if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, 1 << 30, os.SEEK_SET)  # beyond the text, which others must be able to read
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Owner(msgspec.Struct, frozen=True):
    """Who owns a database, as the file beside it tells those who come later."""

    pid: int
    host: str
    since: str
    endpoint: Endpoint | None = None
    """Where it takes calls of other processes; None while it does not."""
    file: str = ""
    """The very file in which this was written: a copy, made with the database or restored from a backup, names another."""
    is_passing: bool = False
    """Whether it owns the database for the length of a call only."""


_HELD_BY_ANOTHER: Final = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})
"""How systems say that somebody else has the lock, rather than that there are no locks."""
_HELD: Final[set[int]] = set()
"""The descriptors that hold a lock in this process."""


def _close_inherited() -> None:
    # A forked child shares the lock, and would keep it when we are dead: a worker process must not own our database.
    for fd in _HELD:
        os.close(fd)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


class Ownership:
    """The exclusive right to one database file."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file = database.with_name(database.name + ".owner")
        self._fd: int | None = None
        self._owner: Owner | None = None
        self._announced_for: os.stat_result | None = None
        """The database file beside which it is written where calls are taken."""
        self.before: Owner | None = None
        """The owner before this one, if it ended without letting go."""

    def take(self, now: Instant, *, is_passing: bool = False) -> None:
        """Become the owner. Raises StoreOwned, with the owner's name, if there is one."""
        while self._fd is None:
            try:
                fd = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise translate_os(error, "open the database", self._database) from error
            try:
                _lock(fd)
            except OSError as error:
                owner = _read(fd)
                os.close(fd)
                if error.errno not in _HELD_BY_ANOTHER:
                    raise translate_os(error, "lock", self._file) from error
                raise self._refusal(owner) from error
            if self._is_current(fd):
                self._fd = fd
                _HELD.add(fd)
            else:
                os.close(fd)  # the last owner removed it between our opening and our locking
        self.before = _read(self._fd)
        since, file = to_datetime(now).isoformat(), _name_file(self._fd)
        self._owner = Owner(os.getpid(), socket.gethostname(), since, file=file, is_passing=is_passing)
        try:
            os.ftruncate(self._fd, 0)
            self._write(self._fd, self._owner)
        except OSError as error:
            self.give_up()
            raise translate_os(error, "become the owner of", self._database) from error

    @property
    def is_held(self) -> bool:
        """Whether this process owns the database by this. A forked child does not."""
        return self._fd in _HELD

    def announce(self, endpoint: Endpoint) -> None:
        """Tell others where this process takes calls. Who reads half of it finds no owner, and looks again."""
        if self._fd is None or self._owner is None:
            return
        self._owner = msgspec.structs.replace(self._owner, endpoint=endpoint)
        try:
            self._write(self._fd, self._owner)
            self._announced_for = self._database.stat()
        except OSError as error:
            raise translate_os(error, "write into", self._file) from error

    def restore(self) -> None:
        """Write anew who owns the database if somebody removed that, and lock it. Never raises.

        Not where the database itself is gone or another by now: its folder may have been renamed. Nor if another process
        has become the owner meanwhile.
        """
        if self._fd is None or self._owner is None or self._announced_for is None or self._is_current(self._fd):
            return
        try:
            if not os.path.samestat(self._announced_for, self._database.stat()):
                return
            fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        except OSError:
            return
        try:
            _lock(fd)
            self._owner = msgspec.structs.replace(self._owner, file=_name_file(fd))
            self._write(fd, self._owner)
        except OSError:
            os.close(fd)
            return
        former, self._fd = self._fd, fd
        _HELD.add(fd)
        _HELD.discard(former)
        os.close(former)

    @staticmethod
    def _write(fd: int, owner: Owner) -> None:
        text = msgspec.json.encode(owner) + b"\n"
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, text)
        os.ftruncate(fd, len(text))

    def give_up(self) -> None:
        """Let the next one have it. Idempotent; a forked child's call does nothing."""
        fd, self._fd = self._fd, None
        if fd not in _HELD:
            return
        try:
            self._file.unlink()  # before the lock ends, so that nobody can have locked what is removed
        except OSError:
            pass  # it may stay: the lock is what counts
        _HELD.discard(fd)
        os.close(fd)

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self._file.stat())
        except FileNotFoundError:
            return False

    def _refusal(self, owner: Owner | None) -> StoreOwned:
        if owner is not None and owner.pid == os.getpid() and owner.host == socket.gethostname():
            return StoreOwned(
                f"Expected to own the database '{self._database}', but another store in this very process (process "
                f"{owner.pid} on host '{owner.host}', since {owner.since}) owns it. Use the engine that is open; or shut it "
                "down first, in its own event loop: by `async with Engine(…)`, or by `await engine.shutdown()`."
            )
        if owner is None:
            name = "another process"
        else:
            name = f"process {owner.pid} on host '{owner.host}' (since {owner.since})"
        return StoreOwned(
            f"Expected to own the database '{self._database}', but {name} owns it. "
            "One process runs the workflows of a SQLite file: stop that one first, or start one worker "
            '(`uvicorn --workers 1`). For several processes take PostgreSQL (`Engine("postgresql://…")`); to start, signal '
            f'and query from others, use `holdfast.Client("sqlite:///{self._database}")`, which asks the owner.'
        )


def read_owner(database: Path) -> Owner | None:
    """Who owns a database, or did until it ended without letting go; None if nobody does, or it has just begun to."""
    try:
        fd = os.open(database.with_name(database.name + ".owner"), os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translate_os(error, "read the owner of", database) from error
    try:
        return _read(fd)
    finally:
        os.close(fd)


def _read(fd: int) -> Owner | None:
    try:
        os.lseek(fd, 0, os.SEEK_SET)
        owner = msgspec.json.decode(os.read(fd, 4096), type=Owner)
        return owner if owner.file in ("", _name_file(fd)) else None  # in a copy it tells who owns another database
    except (msgspec.MsgspecError, OSError):
        return None  # it became the owner this moment and has not written its name yet


def _name_file(fd: int) -> str:
    """A name of an open file that stays when it is moved, and that no copy has."""
    status = os.fstat(fd)
    return f"{status.st_dev}:{status.st_ino}"
