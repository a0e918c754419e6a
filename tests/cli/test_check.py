from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from holdfast.store.sqlite.store import SqliteStore

Invoke = Callable[..., Result]


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement)


def test_sound_database_is_ok_with_its_counts(invoke: Invoke, database: Path) -> None:
    result = invoke("check", database)

    assert result.exit_code == 0
    assert result.output == "ok: 2 open executions (2 suspended), 2 timers, 0 waiting envelopes, 1 dead letter\n"


def test_database_can_be_named_by_url(invoke: Invoke, database: Path) -> None:
    assert invoke("check", f"sqlite:///{database}").exit_code == 0


def test_each_contradiction_is_a_line_and_the_exit_code_is_1(invoke: Invoke, database: Path) -> None:
    change(database, "DELETE FROM events WHERE first = 1")

    result = invoke("check", database)

    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) >= 4
    assert "problems in" in result.stderr


def test_newer_formats_are_listed_and_nothing_is_wrong(invoke: Invoke, database: Path) -> None:
    change(database, "UPDATE events SET schema = 99 WHERE first = 1")

    result = invoke("check", database)

    assert result.exit_code == 0
    assert result.output.splitlines()[0].startswith("newer: execution ")
    assert "a newer Holdfast wrote it" in result.output.splitlines()[0]
    assert result.output.splitlines()[-1].startswith("ok: ")


def test_file_that_is_no_database_is_refused_by_name(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes\n" * 100)

    result = invoke("check", path)

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Expected" in result.stderr
    assert "notes.txt" in result.stderr
    assert path.read_text() == "these are my notes\n" * 100


def test_database_of_another_program_is_refused_and_left_alone(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    change(path, "CREATE TABLE customers (name TEXT)")
    before = path.read_bytes()

    result = invoke("check", path)

    assert result.exit_code == 1
    assert "other.db" in result.stderr
    assert path.read_bytes() == before


def test_newer_database_is_refused(invoke: Invoke, database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.commit()

    result = invoke("check", database)

    assert result.exit_code == 1
    assert "newer" in result.stderr.lower()


def test_only_what_rewrites_a_file_has_to_own_it(
    spawn: Callable[..., subprocess.CompletedProcess[str]], database: Path
) -> None:
    async def look() -> list[subprocess.CompletedProcess[str]]:
        store = SqliteStore(database)
        await store.open()
        try:
            commands = [("check", database), ("show", database, "done"), ("purge", database, "--older-than", "1d")]
            return [spawn(*command) for command in commands]
        finally:
            await store.close()

    *read, purged = asyncio.run(look())

    assert [one.returncode for one in read] == [0, 0], read
    assert purged.returncode == 1
    assert purged.stdout == ""
    assert purged.stderr.startswith("Error: Expected to own the database")
    assert "Traceback" not in purged.stderr


@pytest.mark.parametrize("command", [["check"], ["list"], ["show"], ["history"], ["dead-letters"]])
def test_missing_file_is_a_usage_error_and_is_not_made(invoke: Invoke, tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "nowhere.db"
    rest = {"show": ["x"], "history": ["x"], "dead-letters": ["list"]}.get(command[0], [])

    result = invoke(*command, path, *rest)

    assert result.exit_code == 2
    assert "there is none" in result.stderr
    assert not path.exists()
