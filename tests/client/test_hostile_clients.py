"""What a client may send or leave undone: it is refused with an error, changes nothing, and harms nobody else."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from holdfast import Client, Engine
from holdfast.engine.serving import places
from holdfast.engine.serving.frames import FrameKind, make_frame, read_frame
from holdfast.engine.serving.messages import Call
from holdfast.engine.serving.server import ClientServer, list_verbs
from holdfast.store.sqlite.store import SqliteStore
from tests.client.conftest import make_engine
from tests.client.test_serving import open_raw
from tests.eventually import eventually


@pytest.fixture
async def engine(file_url: str) -> AsyncIterator[Engine]:
    async with make_engine(file_url) as engine:
        await engine.start("collect", 2, workflow_id="c")
        yield engine


@pytest.fixture(autouse=True)
def no_tracebacks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a client does, no traceback is logged."""
    with caplog.at_level(logging.DEBUG):
        yield
    assert [one.getMessage() for one in caplog.records if one.exc_info is not None] == []


async def test_U3_a_client_that_sends_half_a_frame_and_waits_holds_up_nobody(engine: Engine, file_url: str) -> None:
    _, writer = await open_raw(file_url)
    writer.write(make_frame(FrameKind.CALL, 1, b"{}" * 50)[:40])

    async with Client(file_url) as client:
        assert (await client.query_status("c")).workflow == "collect"
    await engine.shutdown()  # nor does it hold up the end

    writer.close()


async def test_U3_a_client_that_closed_its_side_is_answered(engine: Engine, file_url: str) -> None:
    reader, writer = await open_raw(file_url)
    writer.write(make_frame(FrameKind.CALL, 1, msgspec.json.encode(Call("signal_workflow", ["c", "value", 1]))))
    writer.write_eof()

    frame = await read_frame(reader, 10_000)

    assert frame is not None
    assert frame.kind is FrameKind.ANSWER
    writer.close()


async def test_U3_a_client_that_reads_nothing_is_cut_off_with_all_that_it_sent(
    engine: Engine, file_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(engine.store, SqliteStore)
    for number in range(50):
        await engine.start("collect", 1, workflow_id=f"c{number}")
    server = ClientServer(list_verbs(engine), 1_000_000, stalled=0.2)
    await server.open(engine.store)
    listening = set(places._OWN_SOCKETS)
    _, writer = await open_raw(file_url)
    body = msgspec.json.encode(Call("list", [], None, {"limit": 1_000}))
    for number in range(1, 3_000):
        writer.write(make_frame(FrameKind.CALL, number, body))
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # it reads none of the answers

    await eventually(lambda: len(places._OWN_SOCKETS) > len(listening))
    await eventually(lambda: listening == places._OWN_SOCKETS)

    assert [one.getMessage() for one in caplog.records if one.name == "asyncio" and one.levelno > logging.INFO] == []
    writer.transport.abort()
    await server.close()


async def test_U3_the_number_of_a_closed_socket_is_not_closed_in_a_child(engine: Engine, file_url: str) -> None:
    _, writer = await open_raw(file_url)
    [called] = [one for one in places._OWN_SOCKETS if one.getsockname() and one.fileno() not in find_listening(engine)]
    number = called.fileno()
    writer.transport.abort()
    await eventually(lambda: called.fileno() < 0)
    read_end, write_end = os.pipe()
    try:
        assert all(one.fileno() not in (read_end, write_end) for one in places._OWN_SOCKETS), number
    finally:
        os.close(read_end)
        os.close(write_end)


def find_listening(engine: Engine) -> list[int]:
    assert engine._server is not None
    assert engine._server._place is not None
    return [engine._server._place.listener.fileno()]
