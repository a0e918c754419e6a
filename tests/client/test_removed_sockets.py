"""Sockets and notes that somebody removes under a living owner: clients find it again."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Client, Engine
from holdfast.engine.serving.server import ClientServer
from holdfast.errors import StoreOwned
from holdfast.store.endpoints import Endpoint
from holdfast.store.sqlite.ownership import read_owner
from holdfast.store.sqlite.store import SqliteStore
from tests.client.conftest import make_engine
from tests.client.test_serving import find_endpoint
from tests.eventually import eventually


@pytest.fixture(params=["unix", "port"])
async def engine(file_url: str, request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    """An engine whose server looks often whether it can be found."""
    async with make_engine(file_url) as engine:
        assert isinstance(engine.store, SqliteStore)
        assert engine._server is not None
        await engine._server.close()
        verbs, is_unix = engine._server._verbs, request.param == "unix"
        server = ClientServer(verbs, 1_000_000, prefers_unix=is_unix, look_interval=0.05)
        engine._server = server
        await server.open(engine.store)
        yield engine


def find_file(endpoint: Endpoint) -> Path:
    return Path(endpoint.socket or endpoint.token_file)


@pytest.mark.parametrize("removed", ["file", "folder"])
async def test_U2_an_owner_whose_socket_is_removed_is_reached_again(engine: Engine, file_url: str, removed: str) -> None:
    async with Client(file_url) as early, Client(file_url) as late:
        await early.start("collect", 1, workflow_id="c")
        before = find_file(find_endpoint(file_url))
        if removed == "file":
            before.unlink()
        else:
            shutil.rmtree(before.parent)

        await late.signal_workflow("c", "value", 7)  # it waits until it finds the owner

        assert await early.handle("c").result() == [7], "who is connected stays so"
        now = find_file(find_endpoint(file_url))
        assert now != before
        assert now.exists()

    await engine.shutdown()
    assert not now.parent.exists()
    assert removed == "file" or not before.parent.exists()


async def test_U2_an_owner_whose_note_is_removed_writes_it_again_and_stays_the_owner(engine: Engine, file_url: str) -> None:
    path = Path(file_url.removeprefix("sqlite:///"))
    note = path.with_name(path.name + ".owner")
    before = read_owner(path)
    assert before is not None

    note.unlink()
    await eventually(lambda: read_owner(path) is not None)

    owner = read_owner(path)
    assert owner is not None
    assert (owner.pid, owner.endpoint) == (before.pid, before.endpoint)
    with pytest.raises(StoreOwned):
        await make_engine(file_url).open()
    async with Client(file_url) as client:
        assert len(await client.nodes()) == 1
    await engine.shutdown()
    assert not note.exists()


async def test_U2_no_note_is_written_beside_another_database(engine: Engine, file_url: str) -> None:
    path = Path(file_url.removeprefix("sqlite:///"))
    folder = path.parent / "elsewhere"
    folder.mkdir()
    for file in list(path.parent.glob("app.db*")):
        file.rename(folder / file.name)
    path.write_bytes(b"another database")

    endpoint = find_endpoint(f"sqlite:///{folder / path.name}")
    find_file(endpoint).unlink()
    await eventually(lambda: find_endpoint(f"sqlite:///{folder / path.name}") != endpoint)

    assert not path.with_name(path.name + ".owner").exists()
