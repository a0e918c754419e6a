"""Database files that cannot be used: each is refused in so many words, and left as it is."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import Context, Engine, workflow
from holdfast.errors import HoldfastError, NewerDatabase, NotOurDatabase, StoreUnavailable, status_code

ROOT = Path(__file__).parents[1]


@workflow
async def order(ctx: Context, item: str) -> str:
    return await ctx.wait_for_signal("go", str)


async def look(engine: Engine) -> object:
    """Everything that a refused request must leave as it is."""
    found = await engine.list(limit=1_000)
    return found, [(await engine.history(one.execution_id)).to_json() for one in found], await engine.store.count()


async def refuse_to_open(path: Path, kind: type[HoldfastError]) -> str:
    with pytest.raises(kind) as refused:
        await Engine(f"sqlite:///{path}", workflows=[order]).open()
    assert refused.value.message.startswith("Expected ")
    assert ", but " in refused.value.message
    return refused.value.message


@pytest.mark.parametrize("content", [b"hello" * 100, b"SQLite format 3\0 and then nonsense" * 20, b"\0" * 4096])
async def test_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)

    message = await refuse_to_open(path, NotOurDatabase)

    assert str(path) in message
    assert path.read_bytes() == content


async def test_database_of_another_application_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE executions (id)")
        theirs.commit()
    content = path.read_bytes()

    await refuse_to_open(path, NotOurDatabase)

    assert path.read_bytes() == content


async def test_folder_is_refused(tmp_path: Path) -> None:
    await refuse_to_open(tmp_path, NotOurDatabase)


async def test_file_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    await refuse_to_open(tmp_path / "missing" / "app.db", StoreUnavailable)


async def test_database_of_a_newer_holdfast_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    async with Engine(f"sqlite:///{path}", workflows=[order]) as engine:
        await engine.start(order, "tea", workflow_id="kept")
    with closing(sqlite3.connect(path)) as ours:
        (version,) = ours.execute("PRAGMA user_version").fetchone()
        ours.execute("PRAGMA user_version = 1000")

    message = await refuse_to_open(path, NewerDatabase)

    assert "1000" in message
    with closing(sqlite3.connect(path)) as ours:
        ours.execute(f"PRAGMA user_version = {version}")
    async with Engine(f"sqlite:///{path}", workflows=[order]) as engine:
        assert (await engine.query_status("kept")).workflow == "order"


def limit_pages(engine: Engine, more: int) -> None:
    """Let the database grow by so many pages; then SQLite says that the disk is full."""
    from holdfast.store.sqlite import SqliteStore

    assert isinstance(engine.store, SqliteStore)
    writer = engine.store._connections.writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages + more}")


async def test_full_disk_refuses_the_request_and_loses_nothing(tmp_path: Path) -> None:
    async with Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[order]) as engine:
        await engine.start(order, "tea", workflow_id="open")
        before = await look(engine)
        limit_pages(engine, 2)

        with pytest.raises(StoreUnavailable, match=r"^Expected .*, but .* full") as refused:
            await engine.start(order, "x" * 500_000, workflow_id="large")
        with pytest.raises(StoreUnavailable):
            await engine.signal_workflow("open", "go", "x" * 500_000)

        assert status_code(refused.value) == 503
        assert await look(engine) == before
        limit_pages(engine, 100_000)
        await engine.signal_workflow("open", "go", "there is room again")
        assert await engine.handle("open").result() == "there is room again"
        assert await engine.store.check() == []


READ_ONLY = """
import asyncio, os, sys, tempfile
from holdfast import Engine
from holdfast.errors import StoreUnavailable

async def open_and_close(path):
    async with Engine("sqlite:///" + path):
        pass

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(open_and_close(folder + "/other.db"))  # whatever is loaded late is loaded before the rights are gone
if os.getuid() == 0:
    os.setuid(65534)
try:
    asyncio.run(open_and_close(sys.argv[1]))
except StoreUnavailable as error:
    print(error.message)
"""


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555)])
async def test_database_that_cannot_be_written_to_is_refused(file_mode: int, folder_mode: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "app.db"
        async with Engine(f"sqlite:///{path}") as engine:
            assert await engine.list() == []
        content = path.read_bytes()
        path.chmod(file_mode)
        folder.chmod(folder_mode)

        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(path)],
            cwd="/",
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

        folder.chmod(0o755)
        assert done.stdout.startswith("Expected "), done.stderr
        assert ", but " in done.stdout
        assert path.read_bytes() == content
