"""A database file is read where nothing can be written: in a read-only folder, or by a user who may only read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Context, Engine, workflow

SCRIPT = """
import asyncio, os, sys
from holdfast.store.sqlite.files import SqliteFile

async def look(path):
    return (await SqliteFile(path).find_latest("default", "a")).workflow_id

asyncio.run(look(sys.argv[2]))  # so that all modules are there: another user may not read them
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print(asyncio.run(look(sys.argv[1])))
"""


@workflow
async def waiting(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that everybody can enter."""
    found = tmp_path / "shared"
    found.mkdir()
    opened = [
        one for one in (found, *found.parents) if one.is_dir() and one.owner() == tmp_path.owner() and one != Path("/")
    ]
    before = {one: one.stat().st_mode for one in opened}
    for one in opened:
        one.chmod(before[one] | 0o055)
    yield found
    for one in opened:
        one.chmod(before[one] | 0o700)


def look(path: Path, readable: Path) -> str:
    """What another user reads, or this one where it may not become another."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, path, readable], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users of this kind")
async def test_file_is_read_by_who_may_not_write_to_it(folder: Path) -> None:
    path, readable = folder / "app.db", folder.parent / "other.db"
    async with Engine(f"sqlite:///{readable}", workflows=[waiting]) as engine:
        await engine.start(waiting, workflow_id="a")
    async with Engine(f"sqlite:///{path}", workflows=[waiting]) as engine:
        await engine.start(waiting, workflow_id="a")
        path.chmod(0o644)
        folder.chmod(0o555)
        assert look(path, readable) == "a"  # beside its owner
        folder.chmod(0o755)

    folder.chmod(0o555)
    names = sorted(one.name for one in folder.iterdir())

    assert look(path, readable) == "a"
    assert sorted(one.name for one in folder.iterdir()) == names
