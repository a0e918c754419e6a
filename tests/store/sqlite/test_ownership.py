from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from holdfast.errors import StoreOwned
from holdfast.store.sqlite import SqliteStore
from tests.store.builders import NOW, commit, make_row, make_start
from tests.store.sqlite.processes import Process, run

OWN = """
store = SqliteStore(path)
await store.open()
say("open")
await listen()
await store.close()
say("closed")
await listen()
"""

TRY = """
try:
    await SqliteStore(path).open()
except StoreOwned as error:
    say(error)
"""


async def test_a_second_store_in_the_same_process_is_refused(store: SqliteStore) -> None:
    with pytest.raises(StoreOwned, match=f"another store in this very process.*{os.getpid()}"):
        await SqliteStore(store.path).open()

    assert await commit(store, make_start(make_row(1))) == set()


async def test_a_second_process_is_refused_by_name_of_the_owner(store: SqliteStore) -> None:
    [message] = run(TRY, store.path)

    assert message.startswith(f"Expected to own the database '{store.path}', but process {os.getpid()} on host ")
    assert f"'{socket.gethostname()}'" in message
    assert await commit(store, make_start(make_row(1))) == set()


async def test_the_owner_tells_since_when(path: Path) -> None:
    store = SqliteStore(path, clock=lambda: NOW)
    await store.open()

    with pytest.raises(StoreOwned, match=r"since 2025-06-15T15:06:40\+00:00"):
        await SqliteStore(path).open()
    await store.close()


async def test_a_link_leads_to_the_same_owner(store: SqliteStore, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(store.path)

    with pytest.raises(StoreOwned):
        await SqliteStore(link).open()


async def test_an_owner_that_closes_frees_the_database_while_it_lives(path: Path) -> None:
    with Process(OWN, path) as owner:
        assert owner.hear() == "open"
        with pytest.raises(StoreOwned, match=f"process {owner.pid} on host"):
            await SqliteStore(path).open()
        owner.tell()
        assert owner.hear() == "closed"

        await open_and_close(path)


async def test_an_owner_that_is_killed_frees_the_database(path: Path) -> None:
    with Process(OWN, path) as owner:
        assert owner.hear() == "open"
        owner.kill()

    assert path.with_name("app.db.owner").exists()
    await open_and_close(path)
    assert not path.with_name("app.db.owner").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
async def test_a_child_of_a_killed_owner_does_not_keep_the_database(path: Path) -> None:
    body = """
    store = SqliteStore(path)
    await store.open()
    child = os.fork()
    if child == 0:
        say(os.getpid())
        signal.pause()
    await listen()
    """
    with Process("\n".join(line[4:] for line in body.splitlines()), path) as owner:
        child = int(owner.hear())
        try:
            os.kill(owner.pid, signal.SIGKILL)
            os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)

            await open_and_close(path)
            os.kill(child, 0)  # it is still there
        finally:
            os.kill(child, signal.SIGKILL)


async def test_an_owner_without_a_name_is_told_as_well(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    path.with_name("app.db.owner").write_text("")

    with pytest.raises(StoreOwned, match="but another process owns it"):
        await SqliteStore(path).open()
    await store.close()


async def test_of_many_processes_one_becomes_the_owner(path: Path) -> None:
    body = """
try:
    await SqliteStore(path).open()
    say("owner")
except StoreOwned as error:
    say("refused")
await listen()
"""
    processes = [Process(body, path) for _ in range(4)]
    try:
        assert sorted(process.hear() for process in processes) == ["owner", "refused", "refused", "refused"]
    finally:
        for process in processes:
            process.kill()


async def open_and_close(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()
