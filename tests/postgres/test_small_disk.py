"""A full disk is told as one, and ends."""

from __future__ import annotations

import psycopg.errors
import pytest

from tests.postgres.access import connect
from tests.postgres.small_disk import SmallDisk, is_possible


def test_full_disk_refuses_writes_until_it_is_freed() -> None:
    if not is_possible():
        pytest.skip("no user namespaces on this system")
    with SmallDisk() as disk, connect(disk.url()) as connection:
        connection.execute("CREATE TABLE notes (text text)")

        disk.fill()
        with pytest.raises(psycopg.errors.DiskFull):
            connection.execute("INSERT INTO notes SELECT repeat('x', 1900) FROM generate_series(1, 100)")
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (0,)

        disk.free()
        connection.execute("INSERT INTO notes SELECT repeat('x', 1900) FROM generate_series(1, 100)")
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (100,)
