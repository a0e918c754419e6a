"""In-flight marks of an SQLite store: a small file beside the database, which a dead process leaves behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.in_flight import _read
from tests.store.builders import commit, id_of, make_row, make_start
from tests.store.sqlite.processes import Process
from tests.store.test_in_flight import mark


@pytest.fixture
def marks(path: Path) -> Path:
    return path.with_name(path.name + "-in-flight")


async def reopen(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    await store.open()
    return store


async def leave_behind(path: Path, process: str, versions: dict[str, int]) -> None:
    """Mark executions, and end without closing."""
    store = await reopen(path)
    await mark(store, process, versions)
    store.abandon()


async def test_a_killed_process_leaves_its_marks(path: Path) -> None:
    body = """
    store = SqliteStore(path)
    await store.open()
    transaction = await store.begin()
    await transaction.mark_in_flight("killed", 0, {id_of(1): 3, id_of(2): 0})
    die()
    """
    with Process(body, path) as process:
        process.end()

    store = await reopen(path)

    assert await mark(store, "next", {id_of(1): 3, id_of(2): 1}) == {id_of(1): "killed"}
    await store.close()


async def test_a_store_that_was_closed_leaves_nothing(path: Path, marks: Path) -> None:
    store = await reopen(path)
    await mark(store, "closed", {id_of(1): 3})
    assert marks.exists()

    await store.close()

    assert not marks.exists()
    await store.open()
    assert await mark(store, "next", {id_of(1): 3}) == {}
    await store.close()


async def test_marks_are_kept_over_several_crashes_until_they_are_forgotten(path: Path) -> None:
    await leave_behind(path, "first", {id_of(1): 1})
    await leave_behind(path, "second", {id_of(2): 2})
    both = {id_of(1): 1, id_of(2): 2}

    store = await reopen(path)
    assert await mark(store, "third", both) == {id_of(1): "first", id_of(2): "second"}
    await store.forget_processes(["first"])
    store.abandon()

    store = await reopen(path)
    assert await mark(store, "fourth", {id_of(1): 1}) == {id_of(1): "third"}
    assert await mark(store, "fourth", {id_of(2): 2}) == {id_of(2): "third"}
    await store.close()


async def test_the_file_does_not_grow_with_each_crash(path: Path, marks: Path) -> None:
    for number in range(100):
        await leave_behind(path, f"process-{number:03}", {id_of(1): 1})

    assert marks.stat().st_size < 70 * 100


@pytest.mark.parametrize("content", [b"", b"\0", b"\0" * 100, b"[]", os.urandom(1000), b"\0\0\0\0\0\0\0\0[1]"])
async def test_a_damaged_file_is_ignored(path: Path, marks: Path, content: bytes) -> None:
    marks.write_bytes(content)

    store = await reopen(path)

    assert await mark(store, "next", {id_of(1): 3}) == {}
    assert await commit(store, make_start(make_row(1))) == set()
    await store.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
async def test_a_pipe_in_its_place_is_not_waited_for(path: Path, marks: Path) -> None:
    os.mkfifo(marks)

    store = await asyncio.wait_for(reopen(path), 60)

    assert await mark(store, "next", {id_of(1): 3}) == {}
    assert await commit(store, make_start(make_row(1))) == set()
    await store.close()


def test_no_more_is_read_than_the_file_says_and_never_very_much(marks: Path) -> None:
    with marks.open("wb") as file:
        file.write(b"\0" * 4 + b"\xff" * 4)
        file.truncate(1 << 40)

    assert _read(marks) == []


async def test_a_file_that_was_cut_off_is_ignored(path: Path, marks: Path) -> None:
    await leave_behind(path, "killed", {id_of(1): 3})
    marks.write_bytes(marks.read_bytes()[:-1])

    store = await reopen(path)

    assert await mark(store, "next", {id_of(1): 3}) == {}
    await store.close()


async def test_what_is_left_of_a_longer_mark_is_not_read(path: Path) -> None:
    store = await reopen(path)
    await mark(store, "killed", {id_of(number): 1 for number in range(20)})
    await mark(store, "killed", {id_of(1): 2})
    store.abandon()

    store = await reopen(path)

    assert await mark(store, "next", {id_of(1): 2, id_of(19): 1}) == {id_of(1): "killed"}
    await store.close()


async def test_a_file_that_cannot_be_written_costs_the_marks_alone(path: Path, marks: Path) -> None:
    marks.mkdir()

    store = await reopen(path)

    assert await mark(store, "one", {id_of(1): 3}) == {}
    assert await commit(store, make_start(make_row(1))) == set()
    await store.close()
    assert marks.is_dir()
