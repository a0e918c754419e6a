"""Owners of a SQLite file come, go and are killed while a client uses it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, WorkflowHandle
from holdfast.errors import (
    ConnectionRefused,
    DatabaseNotFound,
    EngineClosed,
    InvalidConfiguration,
    NotOurDatabase,
    OutcomeUnknown,
    StoreOwned,
)
from holdfast.store.sqlite.ownership import Ownership, read_owner
from tests.client.conftest import ROOT, Owner, drop_calls, make_engine, path_of


async def test_U2_a_wait_outlives_an_owner_that_is_killed(file_url: str, owner: Owner) -> None:
    async with Client(file_url) as client:
        handle: WorkflowHandle[Any] = await client.start("collect", 1, workflow_id="c")
        waiting = asyncio.create_task(handle.result())
        left = read_owner(path_of(file_url))
        owner.end(how=signal.SIGKILL)

        accepted = await client.signal_workflow("c", "value", "kept", request_id="r")
        second = Owner(file_url)
        try:
            assert await waiting == ["kept"]
            assert accepted.workflow_execution_id == handle.execution_id
        finally:
            second.end()

    assert left is not None
    assert left.endpoint is not None
    assert not Path(left.endpoint.socket).parent.exists(), "the next owner tidies up"


async def test_U2_calls_go_on_when_the_owner_ends_cleanly_and_another_begins(file_url: str, owner: Owner) -> None:
    async with Client(file_url) as client:
        await client.start("collect", 3, workflow_id="c")
        await client.signal_workflow("c", "value", 1)
        ending = asyncio.create_task(asyncio.to_thread(owner.end))
        await client.signal_workflow("c", "value", 2, request_id="r")
        await ending
        async with make_engine(file_url) as engine:
            await client.signal_workflow("c", "value", 3)
            assert await engine.handle("c").result() == [1, 2, 3]
            assert await client.query_result("c") == [1, 2, 3]


async def test_U2_a_call_whose_answer_is_lost_is_repeated_only_with_a_request_id(file_url: str) -> None:
    async with make_engine(file_url) as engine:
        await engine.start("collect", 2, workflow_id="c")

    async with Client(file_url) as client:
        async with drop_calls(file_url) as calls:
            with pytest.raises(OutcomeUnknown, match="request_id"):
                await client.signal_workflow("c", "value", 1)
            assert len(calls) == 1
            await client.signal_workflow("c", "value", 2, request_id="r")
            assert len(calls) == 2
        assert (await client.query_status("c")).history_length > 0

    async with make_engine(file_url) as engine:
        await engine.signal_workflow("c", "value", 3)
        assert await engine.handle("c").result() == [2, 3]


async def test_an_owner_that_takes_no_calls_is_named(file_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.owned_files.PATIENCE", 0.0)
    async with make_engine(file_url) as engine:
        await engine.start("collect", 2, workflow_id="c")
    ownership = Ownership(path_of(file_url))
    ownership.take(0)
    try:
        async with Client(file_url) as client:
            assert (await client.query_status("c")).workflow == "collect"
            with pytest.raises((StoreOwned, ConnectionRefused), match="process"):
                await client.signal_workflow("c", "value", 1)
    finally:
        ownership.give_up()


async def test_what_no_client_can_reach_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="Call the engine itself"):
        Client("memory://")
    with pytest.raises(InvalidConfiguration):
        Client("http://localhost")
    with pytest.raises(DatabaseNotFound, match="the first engine makes it") as missing:
        await Client(f"sqlite:///{tmp_path / 'missing.db'}").open()
    assert isinstance(missing.value, NotOurDatabase)
    (tmp_path / "other.db").write_text("no database")
    async with Client(f"sqlite:///{tmp_path / 'other.db'}") as client:
        with pytest.raises(Exception, match="database"):
            await client.list()
        with pytest.raises(NotOurDatabase) as refused:
            await client.start("collect", 1)
        assert not isinstance(refused.value, DatabaseNotFound)
    assert (tmp_path / "other.db").read_text() == "no database"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
async def test_U2_a_child_of_an_owner_that_was_killed_does_not_keep_its_clients_waiting(file_url: str) -> None:
    code = (
        "import asyncio, os, sys, time\n"
        "from tests.client.conftest import make_engine\n"
        "async def main():\n"
        "    async with make_engine(sys.argv[1]) as engine:\n"
        "        print('ready', flush=True)\n"
        "        while not await engine.list():\n"
        "            await asyncio.sleep(0.01)\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"  # it has copies of all that its parent had open
        "            os._exit(0)\n"
        "        os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, file_url]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        async with Client(file_url) as client:
            handle: WorkflowHandle[Any] = await client.start("collect", 1, workflow_id="c", request_id="s")
            waiting = asyncio.create_task(handle.result())
            await asyncio.to_thread(process.wait)
            await client.signal_workflow("c", "value", 1, request_id="r")
            async with make_engine(file_url):
                assert await waiting == [1]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


async def test_U2_a_copy_of_a_database_does_not_lead_to_the_owner_of_the_original(file_url: str, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    copy_url = f"sqlite:///{tmp_path / 'copies' / 'app.db'}"
    async with make_engine(file_url) as engine:
        await engine.start("collect", 1, workflow_id="c")
        for file in tmp_path.glob("app.db*"):
            shutil.copy(file, tmp_path / "copies")

        async with Client(copy_url) as client:
            assert await client.terminate("c")
            assert (await client.query_status("c")).status == "terminated"
        assert (await engine.query_status("c")).status == "suspended"

        for file in tmp_path.glob("app.db*"):
            shutil.copy(file, tmp_path / "copies")
        async with make_engine(copy_url), Client(file_url) as client:
            assert not (await client.start("collect", 1, workflow_id="c")).created, "the socket of the original is there"


async def test_U2_an_owner_is_reached_after_its_folder_was_renamed(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    async with make_engine(f"sqlite:///{tmp_path / 'before' / 'app.db'}") as engine:
        await engine.start("collect", 1, workflow_id="c")
        (tmp_path / "before").rename(tmp_path / "after")
        async with Client(f"sqlite:///{tmp_path / 'after' / 'app.db'}") as client:
            assert not (await client.start("collect", 1, workflow_id="c")).created


@pytest.mark.usefixtures("owner")
async def test_U1_close_finishes_what_was_asked_and_ends_waits(file_url: str) -> None:
    client = Client(file_url)
    await client.open()
    handle: WorkflowHandle[Any] = await client.start("collect", 21, workflow_id="c")
    waiting = asyncio.create_task(handle.result())
    signals = [asyncio.create_task(client.signal_workflow("c", "value", number)) for number in range(20)]
    reads = [asyncio.create_task(client.query_status("c")) for _ in range(20)]
    await asyncio.sleep(0)  # all were called
    await client.close()

    await asyncio.gather(*signals, *reads)
    with pytest.raises(EngineClosed):
        await waiting
    async with Client(file_url) as other:
        await other.signal_workflow("c", "value", 20)
        assert await other.handle("c").result() == [*range(21)]


async def test_U2_an_engine_can_open_a_file_that_clients_use_all_the_time(file_url: str) -> None:
    async with make_engine(file_url) as engine:
        await engine.start("collect", 1_000_000, workflow_id="c")
    is_over = asyncio.Event()

    async def send_on(client: Client) -> None:
        while not is_over.is_set():
            await client.signal_workflow("c", "value", 1, request_id=uuid.uuid4().hex)

    one, other = Client(file_url), Client(file_url)
    await one.open()
    await other.open()
    sending = [asyncio.create_task(send_on(client)) for client in (one, one, one, other)]
    try:
        for _ in range(5):
            await asyncio.sleep(0.05)
            async with make_engine(file_url) as engine:
                assert (await engine.query_status("c")).status == "suspended"
    finally:
        is_over.set()
        await asyncio.gather(*sending)
        await one.close()
        await other.close()
    assert not list(path_of(file_url).parent.glob("*wanted*"))
