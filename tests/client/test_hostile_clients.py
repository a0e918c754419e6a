"""What a client may send or leave undone: it is refused with an error, changes nothing, and harms nobody else."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import msgspec
import pytest

from holdfast import Client, Engine
from holdfast.client.links import Link, connect
from holdfast.engine.serving import places
from holdfast.engine.serving.frames import FrameKind, make_frame, read_frame
from holdfast.engine.serving.messages import Call
from holdfast.engine.serving.server import ClientServer, list_verbs
from holdfast.engine.use_cases.human_tasks import TaskConditions
from holdfast.engine.use_cases.searching import PageOptions
from holdfast.engine.use_cases.start_options import SIGNAL_WITH_START_OPTIONS
from holdfast.engine.verbs import Verbs
from holdfast.errors import HoldfastError, InvalidArguments, InvalidDuration
from holdfast.store.sqlite.store import SqliteStore
from tests.client.conftest import make_engine
from tests.client.test_serving import find_endpoint, open_raw
from tests.eventually import eventually

BAD: Final[list[Any]] = [1e308, -1e308, -1, 2**70, 1.5, True, "", "\0", "nan", [], {}, [None], [[]], {"a": None}, "9" * 500]
NEEDED: Final = {
    "target": "c",
    "workflow": "collect",
    "workflow_id": "c",
    "execution_id": "x",
    "ids": [1],
    "older_than": 1e9,
    "signal_name": "value",
    "task_id": "t",
    "assignee": "ann",
    "comment": "text",
    "priority": 1,
    "name": "value",
    "key": "k",
    "event": "paid",
    "event_id": "e",
    "due": "2030-01-01T00:00:00Z",
    "schedule_id": "s",
    "spec": "R3/PT10M",
    "first": "2030-01-01T00:00:00Z",
    "last": "2030-01-02T00:00:00Z",
    "definition_id": "order",
    "digest": "d",
    "files": {"order.bpmn": "<nothing/>"},
    "variables": {"a": 1},
    "number": 1,
}
MAY_SUCCEED: Final = {"signal_value", "headers", "metadata", "hint", "reason", "connection"}
"""Arguments for which some of the bad values are good ones."""


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


def list_bad_calls() -> Iterator[Call]:
    """Every verb with one bad argument at a time, by position and by name, as a value and as a length of time."""
    for verb, function in inspect.getmembers(Verbs, inspect.isfunction):
        if not inspect.iscoroutinefunction(function) or verb in ("wait_for_result", "wait_for_change"):
            continue
        parameters = inspect.signature(function).parameters.values()
        by_place = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty]
        by_place = [name for name in by_place if name != "self"]
        by_name = {one.name for one in parameters} - {*by_place, "self", "args", "options", "conditions", "kwargs"}
        if verb in ("list", "count"):
            by_name |= {*PageOptions.__annotations__}
        if verb == "tasks":
            by_name |= {*TaskConditions.__annotations__}
        if verb in ("start", "signal_with_start_workflow"):
            by_name |= SIGNAL_WITH_START_OPTIONS
        inputs = [1] if "start" in verb and verb != "find_started" else None
        good = [NEEDED[name] for name in by_place]
        named = {"signal_name": "value"} if verb == "signal_with_start_workflow" else {}
        for bad in BAD:
            for place in range(len(good)):
                yield Call(verb, [*good[:place], bad, *good[place + 1 :]], inputs, named)
            for name in sorted(by_name - MAY_SUCCEED):
                yield Call(verb, good, inputs, {**named, name: bad})
        for name in sorted(by_name):
            yield Call(verb, good, inputs, {**named}, {}, {name: 1e308})
            yield Call(verb, good, inputs, {**named}, {}, {name: -1e308})


async def look(engine: Engine) -> object:
    found = await engine.list(limit=1_000, org="default")
    return found, [(await engine.history(one.execution_id)).to_json() for one in found], await engine.store.count()


async def call_all(link: Link, calls: list[Call]) -> list[Any]:
    return await asyncio.gather(*(link.call(call) for call in calls), return_exceptions=True)


async def test_U3_no_argument_over_the_socket_makes_the_owner_stumble(engine: Engine, file_url: str) -> None:
    link = await connect(find_endpoint(file_url))

    answers = []
    for calls in (list(list_bad_calls())[at : at + 200] for at in range(0, len(list(list_bad_calls())), 200)):
        answers += await call_all(link, calls)

    assert len(answers) > 1_000
    unexpected = [one for one in answers if not isinstance(one, bytes | HoldfastError) or "engine's log" in str(one)]
    assert unexpected == []
    assert link.is_open
    await link.close()


@pytest.mark.parametrize("seconds", [1e308, -1e308, -1.0, 1e15])
async def test_U3_a_length_of_time_that_is_none_is_refused_and_changes_nothing(
    engine: Engine, file_url: str, seconds: float
) -> None:
    link, before = await connect(find_endpoint(file_url)), await look(engine)

    for call in (
        Call("start", ["collect"], [1], {"workflow_id": "new"}, {}, {"delay": seconds}),
        Call("start", ["collect"], [1], {"workflow_id": "new"}, {}, {"execution_timeout": seconds}),
        Call("wait_for_ending", ["c"], None, {}, {}, {"timeout": seconds}),
    ):
        with pytest.raises(InvalidDuration, match="between 0 and a hundred years"):
            await link.call(call)

    assert await look(engine) == before
    await link.close()


async def test_U3_bad_ids_of_dead_letters_are_refused(engine: Engine) -> None:
    ids: Any
    for ids in (None, 7, "12", [1.5], [-1], [2**63], [True]):
        with pytest.raises(InvalidArguments, match="Expected ids of dead letters"):
            await engine.discard_dead_letters(ids)
    with pytest.raises(InvalidArguments, match="Expected limit="):
        await engine.dead_letters(limit=-1)


async def test_U3_random_bytes_end_their_own_connection_and_no_other(engine: Engine, file_url: str) -> None:
    chance, before = random.Random(7), await look(engine)
    good = make_frame(FrameKind.CALL, 1, msgspec.json.encode(Call("signal_workflow", ["nobody", "s"])))
    async with Client(file_url) as client:
        for turn in range(60):
            broken = bytearray(good)
            for _ in range(chance.randint(1, 6)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            sent = chance.randbytes(chance.randint(1, 200)) if turn % 3 == 0 else bytes(broken)
            reader, writer = await open_raw(file_url)
            writer.write(sent)
            writer.write_eof()  # and goes on to listen
            await asyncio.wait_for(reader.read(), 30)
            writer.close()
        assert len(await client.nodes()) == 1

    assert await look(engine) == before


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
