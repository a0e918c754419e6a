"""Places where the owner of a database listens: private to its user, found by what is written beside the database.

A Unix socket lies in a folder of its own that only the user can enter (mode 0700); both sides also ask the system who the
other is, where it tells. Where there are no Unix sockets it is a port of the loopback interface: anybody on the machine can
connect to that, so both sides prove that they know the token in a file that only the user can read (mode 0600). The token
itself is never sent: another process may have got the port of an owner that ended.
"""

from __future__ import annotations

import errno
import os
import secrets
import socket
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast.errors import ConnectionRefused
from holdfast.store.endpoints import Endpoint

HAS_UNIX_SOCKETS: Final = hasattr(socket, "AF_UNIX")
LONGEST_PATH: Final = 100
"""The most bytes of a socket's path: systems take 104 to 108."""
_PREFIX: Final = "holdfast-"
_NOBODY: Final = -1
"""Who is at the other end of a socket that is not connected."""
BACKLOG: Final = 1_024
"""How many connections wait to be taken, while the engine is busy, before the system turns others away."""
_OWN_SOCKETS: Final[set[socket.socket]] = set()
"""Sockets on which this process listens or is called. A forked child must not keep them: clients would not notice when its
parent is gone. Sockets, not their numbers: the number of one that was closed belongs to the next file that is opened."""


def _close_inherited() -> None:
    for sock in _OWN_SOCKETS:
        if (fd := sock.fileno()) >= 0:
            os.close(fd)
    _OWN_SOCKETS.clear()


@contextmanager
def kept_from_children(sock: socket.socket) -> Iterator[None]:
    """While this lasts and the socket is open, a forked child closes its copy of it."""
    _OWN_SOCKETS.add(sock)
    try:
        yield
    finally:
        _OWN_SOCKETS.discard(sock)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


class ListeningPlace:
    """A socket on which the owner of a database listens, and the private folder that belongs to it."""

    def __init__(self, listener: socket.socket, endpoint: Endpoint, folder: Path, token: str = "") -> None:
        self.listener = listener
        self.endpoint = endpoint
        self.token = token
        """What clients have to know; empty where the system keeps others out."""
        self._folder = folder
        self._file = Path(endpoint.socket or endpoint.token_file)
        self._made = self._file.lstat()
        _OWN_SOCKETS.add(listener)

    @property
    def is_there(self) -> bool:
        """Whether clients find the place: programs that tidy up temporary folders may have removed it."""
        try:
            return os.path.samestat(self._made, self._file.lstat())
        except OSError:
            return False

    def hide(self) -> None:
        """Remove the folder, so that nobody finds the place any more. Idempotent; never raises."""
        remove_folder(self._folder)

    def close(self) -> None:
        """Listen no longer, and remove the folder. Idempotent; never raises."""
        _OWN_SOCKETS.discard(self.listener)
        self.listener.close()
        self.hide()


def open_place(*, prefers_unix: bool = HAS_UNIX_SOCKETS) -> ListeningPlace:
    """A new private place to listen. Raises OSError if there is none."""
    if prefers_unix and (folder := _make_short_folder()) is not None:
        path = folder / "socket"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            path.chmod(0o600)
            return _listen(listener, Endpoint(socket=str(path)), folder)
        except OSError:
            listener.close()
            remove_folder(folder)
            raise
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", 0))
        token, file = secrets.token_hex(32), folder / "token"
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as out:
            out.write(token)
        return _listen(listener, Endpoint(port=listener.getsockname()[1], token_file=str(file)), folder, token)
    except OSError:
        listener.close()
        remove_folder(folder)
        raise


def _listen(listener: socket.socket, endpoint: Endpoint, folder: Path, token: str = "") -> ListeningPlace:
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return ListeningPlace(listener, endpoint, folder, token)


def _make_short_folder() -> Path | None:
    """A folder that only this user can enter, with room for the name of a socket; None if all are too long."""
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes it private
        if not parent or len(os.fsencode(parent)) + len(_PREFIX) + 20 > LONGEST_PATH:
            continue
        try:
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))  # with mode 0700
        except OSError:
            continue
    return None


def remove_left(endpoint: Endpoint) -> None:
    """Remove what an owner left that ended without tidying up: its folder, if it is one of ours."""
    left = endpoint.socket or endpoint.token_file
    folder = Path(left).parent
    try:
        is_ours = left and folder.name.startswith(_PREFIX) and _is_private(folder)
    except (OSError, ConnectionRefused):
        return
    if is_ours:
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove a private folder with what we put there. Never raises: nobody minds an empty folder."""
    try:
        for name in ("socket", "token"):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:
        return


def read_peer(sock: socket.socket) -> int | None:
    """The id of the user at the other end of a Unix socket; None where the system does not tell.

    Raises OSError if nobody is there: a system without room for another connection says "try again", which asyncio takes
    for a connection.
    """
    if not hasattr(socket, "SO_PEERCRED") or sock.family != getattr(socket, "AF_UNIX", None):
        return None
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if uid == _NOBODY:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody is at the other end")
    return int(uid)


def may_call(uid: int | None) -> bool:
    """Whether a user may call this process: its own, or root."""
    return uid is None or uid in (os.geteuid(), 0)


def find_user(endpoint: Endpoint) -> int | None:
    """The user whose process listens at a place, by its private folder. Raises ConnectionRefused if it is not private.

    None where the system has no users of this kind. Raises FileNotFoundError if the place is gone.
    """
    if not hasattr(os, "geteuid"):
        return None
    folder = Path(endpoint.socket or endpoint.token_file).parent
    try:
        if not _is_private(folder):
            raise ConnectionRefused(
                f"Expected '{folder}', where the owner of the database takes calls, to be private to the user who runs this "
                "program, but it is another user's, or others can enter it. Run both as the same user."
            )
        return folder.stat().st_uid
    except PermissionError as error:
        raise ConnectionRefused(
            f"Expected to reach the process that owns the database at '{folder}', but it is another user's. Run both as the "
            "same user."
        ) from error


def _is_private(folder: Path) -> bool:
    """Whether a folder is this user's, and nobody else can enter it. Root may enter any."""
    if not hasattr(os, "geteuid"):
        return True
    status = folder.lstat()
    return status.st_uid == os.geteuid() or os.geteuid() == 0 if status.st_mode & 0o170077 == 0o040000 else False
