"""The owner's side: who may call, what is refused, and that no client holds up the engine or another client."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Client, WorkflowHandle
from holdfast.client.links import connect
from holdfast.engine.serving.frames import PROTOCOL, FrameKind, make_frame, read_frame
from holdfast.engine.serving.messages import Call, Hello, decode_error
from holdfast.engine.serving.places import open_place
from holdfast.engine.serving.server import GREETING_TIME, ClientServer, list_verbs
from holdfast.errors import ConnectionRefused, InvalidArguments, PayloadTooLarge
from holdfast.store.endpoints import Endpoint
from holdfast.store.sqlite.ownership import read_owner
from holdfast.store.sqlite.store import SqliteStore
from tests.client.conftest import ROOT, make_engine
from tests.eventually import eventually


def find_endpoint(url: str) -> Endpoint:
    owner = read_owner(Path(url.removeprefix("sqlite:///")))
    assert owner is not None
    assert owner.endpoint is not None
    return owner.endpoint


async def open_raw(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has been greeted, and may send anything."""
    reader, writer = await asyncio.open_unix_connection(find_endpoint(url).socket)
    writer.write(make_frame(FrameKind.HELLO, 0, msgspec.json.encode(Hello(PROTOCOL, "test"))))
    assert await read_frame(reader, 10_000) is not None
    return reader, writer


async def test_U3_the_socket_is_in_a_folder_that_only_its_user_can_enter(file_url: str) -> None:
    async with make_engine(file_url):
        path = Path(find_endpoint(file_url).socket)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert len(os.fsencode(path)) < 104

    assert not path.parent.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can run as another user")
async def test_U3_another_user_is_refused() -> None:
    code = (
        "import asyncio, os, sys\n"
        "import holdfast.client.owned_files\n"  # as root: another user may not be able to read this checkout
        "from holdfast import Client\n"
        "os.setgid(65534), os.setuid(65534)\n"
        "async def main():\n"
        "    async with Client(sys.argv[1]) as client:\n"
        "        await client.list()\n"
        "try:\n"
        "    asyncio.run(main())\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        url = f"sqlite:///{folder}/app.db"
        async with make_engine(url):
            command = [sys.executable, "-c", code, url]
            run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = (await asyncio.to_thread(run.communicate))[0].decode()

    assert said.startswith("ConnectionRefused"), said
    assert "another user" in said


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 64,
        make_frame(FrameKind.CALL, 1, b"no json"),
        make_frame(FrameKind.ANSWER, 1, b"{}"),
        make_frame(FrameKind.CALL, 1, b'{"verb": 7}'),
        make_frame(FrameKind.CALL, 1, b'{"verb": "nodes", "positional": ' + b"[" * 100_000),
        make_frame(FrameKind.CALL, 0, msgspec.json.encode(Call("nodes"))),
    ],
)
async def test_U3_a_malformed_frame_ends_its_own_connection_and_no_other(file_url: str, sent: bytes) -> None:
    async with make_engine(file_url), Client(file_url) as client:
        await client.nodes()
        reader, writer = await open_raw(file_url)
        writer.write(sent)

        frame = await read_frame(reader, 10_000)
        assert frame is not None
        assert (frame.kind, frame.number) == (FrameKind.ERROR, 0)
        assert isinstance(decode_error(frame.body), ConnectionRefused)
        assert await read_frame(reader, 10_000) is None
        assert len(await client.nodes()) == 1
        writer.close()


async def test_U3_a_verb_that_is_none_and_arguments_that_do_not_fit_are_refused(file_url: str) -> None:
    async with make_engine(file_url):
        link = await connect(find_endpoint(file_url))
        for call in (
            Call("shutdown"),
            Call("_close"),
            Call("cancel", ["a", "b", "c", "d"]),
            Call("list", [], None, {"x": 1}),
        ):
            with pytest.raises(InvalidArguments):
                await link.call(call)
        await link.close()


async def test_U3_a_call_that_is_too_large_is_refused_by_both_sides(file_url: str) -> None:
    async with make_engine(file_url, payload_limit=1000), Client(file_url) as client:
        await client.start("collect", 1, workflow_id="c")
        with pytest.raises(PayloadTooLarge):
            await client.signal_workflow("c", "value", "x" * 2_000)
        with pytest.raises(PayloadTooLarge):
            await client.signal_workflow("c", "value", "x" * 2_000_000)
        assert len(await client.nodes()) == 1


async def test_U3_a_client_that_goes_away_waits_for_nothing_any_more(file_url: str) -> None:
    async with make_engine(file_url) as engine:
        client = Client(file_url)
        await client.open()
        handle: WorkflowHandle[Any] = await client.start("collect", 1)
        one, two = (asyncio.create_task(handle.result()) for _ in range(2))
        waiters = engine._runtime.result_waiters
        await eventually(lambda: sum(map(len, waiters._watchers.values())) == 2)
        one.cancel()
        await eventually(lambda: sum(map(len, waiters._watchers.values())) == 1)
        two.cancel()
        await client.close()
        await eventually(lambda: not waiters.watched)


async def test_U3_many_waits_and_a_stalled_client_do_not_keep_others_from_being_served(file_url: str) -> None:
    async with make_engine(file_url) as engine, Client(file_url) as client:
        handles: list[WorkflowHandle[Any]] = [await client.start("collect", 1, workflow_id=f"c{n}") for n in range(50)]
        waits = [asyncio.create_task(handle.result()) for handle in handles for _ in range(10)]
        _reader, writer = await open_raw(file_url)
        body = msgspec.json.encode(Call("list", [], None, {"limit": 1000}))
        for number in range(1, 400):  # and reads none of the answers
            writer.write(make_frame(FrameKind.CALL, number, body))

        began = time.monotonic()
        await engine.signal_workflow("c0", "value", 0)
        own = time.monotonic() - began
        await asyncio.gather(*(client.signal_workflow(f"c{n}", "value", n) for n in range(1, 50)))
        results = await asyncio.gather(*waits)

        assert results[-1] == [49]
        assert own < 5
        writer.transport.abort()


async def test_U3_without_unix_sockets_both_sides_prove_that_they_know_a_token(file_url: str) -> None:
    async with make_engine(file_url) as engine:
        assert isinstance(engine.store, SqliteStore)
        server = ClientServer(list_verbs(engine), 1_000_000, prefers_unix=False)
        await server.open(engine.store)
        try:
            endpoint = find_endpoint(file_url)
            async with Client(file_url) as client:
                await client.start("collect", 1, workflow_id="c")
                assert (await client.query_status("c")).workflow == "collect"
            assert stat.S_IMODE(Path(endpoint.token_file).stat().st_mode) == 0o600
            Path(endpoint.token_file).write_text("another")
            with pytest.raises(ConnectionRefused, match="another process"):
                await connect(endpoint)
            reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
            frame = None
            for hello in (Hello(PROTOCOL, "", "n"), Hello(PROTOCOL, "", "", "guessed")):
                writer.write(make_frame(FrameKind.HELLO, 0, msgspec.json.encode(hello)))
                frame = await read_frame(reader, 10_000)
            assert frame is not None
            assert "token" in str(decode_error(frame.body))
            writer.close()
        finally:
            await server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let fewer wait, whatever is asked for")
async def test_U3_many_clients_can_come_at_once(file_url: str) -> None:
    async with make_engine(file_url):
        path = find_endpoint(file_url).socket
        with ExitStack() as stack:
            for _ in range(200):  # the engine takes none of them before this test awaits something
                sock = stack.enter_context(socket.socket(socket.AF_UNIX))
                sock.setblocking(False)
                sock.connect(path)


async def test_U2_an_owner_that_has_no_room_for_a_connection_is_tried_again() -> None:
    place = open_place()
    place.listener.listen(0)
    try:
        with ExitStack() as stack:
            while True:
                sock = stack.enter_context(socket.socket(socket.AF_UNIX))
                sock.setblocking(False)
                try:
                    sock.connect(place.endpoint.socket)
                except OSError:
                    break
            with pytest.raises(ConnectionRefusedError):  # which a client takes for an owner that is not there yet
                await connect(place.endpoint)
    finally:
        place.close()


@pytest.mark.parametrize("steps", range(8))
async def test_U3_a_client_that_connects_while_the_engine_ends_is_let_go_at_once(file_url: str, steps: int) -> None:
    engine = make_engine(file_url)
    await engine.open()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(find_endpoint(file_url).socket)
        client.setblocking(False)
        for _ in range(steps):
            await asyncio.sleep(0)  # the loop is somewhere between hearing of the client and serving it

        await engine.shutdown()

        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), GREETING_TIME / 2) == b""
