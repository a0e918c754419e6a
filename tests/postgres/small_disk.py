"""A server with a small disk, to see what becomes of us when it is full.

    with SmallDisk() as disk:
        engine = Engine(disk.url(schema="hf_mine"), ...)
        disk.fill()     # from here on, what needs a new page fails with disk_full (53100)
        disk.free()     # space again

The disk is a file system in memory, mounted in a namespace that only the server sees: neither root nor cleaning up is
needed, but Linux, and leave to make user namespaces (`is_possible`). The database's tables lie on it; its write-ahead
log does not, for a server whose log cannot grow stops altogether. What is on it is gone when the server stops.

A limit of file sizes (RLIMIT_FSIZE) was tried first: it is reported as an internal error (XX000), unlike a full disk.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg.errors

from tests.postgres.access import connect
from tests.postgres.processes import find_account, make_folder, remove_folder, run
from tests.postgres.server import PostgresServer

MEGABYTE: Final = 1 << 20

# As the root of a namespace one may mount; PostgreSQL wants no root, so a second one gives the old identity back.
MOUNT: Final = (
    'mount -t tmpfs -o "size=$1,mode=700" tmpfs "$2" && user=$3 && group=$4 && shift 4 && '
    'exec unshare --user "--map-user=$user" "--map-group=$group" "$@"'
)


class SmallDisk:
    """A server of its own, and a database on a disk of `size` bytes; eight million of them are taken from the start."""

    def __init__(self, size: int = 16 * MEGABYTE) -> None:
        self._folder = make_folder("holdfast-disk-")
        self._server = PostgresServer(wrapper=_wrap(self._folder, size))

    def url(self, *, schema: str | None = None) -> str:
        """The database on the small disk."""
        return self._server.url(database="small", schema=schema)

    def fill(self) -> None:
        """Leave less than a page free."""
        with connect(self.url()) as connection:
            # Plain: with a table for long values beside it, it could not be emptied on a full disk.
            connection.execute("CREATE TABLE IF NOT EXISTS public.ballast (text text STORAGE PLAIN)")
            rows = 1000
            while rows:
                try:
                    connection.execute(
                        "INSERT INTO public.ballast SELECT repeat('x', 1900) FROM generate_series(1, %s)", [rows]
                    )
                except psycopg.errors.DiskFull:
                    rows //= 2

    def free(self) -> None:
        """Give back what `fill` took."""
        with connect(self.url()) as connection:
            connection.execute("TRUNCATE public.ballast")

    def __enter__(self) -> Self:
        self._server.start()
        with connect(self._server.url()) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{self._folder}'".encode())
            connection.execute("CREATE DATABASE small TABLESPACE small")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        remove_folder(self._folder)


def is_possible() -> bool:
    """Whether this system lets us mount in a namespace of our own."""
    if sys.platform != "linux":
        return False
    folder = make_folder("holdfast-disk-")
    try:
        run([*_wrap(folder, MEGABYTE), "true"], folder)
    except (OSError, RuntimeError):
        return False
    finally:
        remove_folder(folder)
    return True


def _wrap(folder: Path, size: int) -> list[str]:
    account = find_account()
    user, group = account.user or os.geteuid(), account.group or os.getegid()
    shell = ["sh", "-c", MOUNT, "sh", str(size), str(folder), str(user), str(group)]
    return ["unshare", "--user", "--map-root-user", "--mount", *shell]
