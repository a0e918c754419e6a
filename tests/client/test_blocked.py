"""Blocked executions by every way: waits that raise, waits that end in time, and retries that happen once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, Engine, SyncClient, WorkflowHandle
from holdfast.core.lifecycle import Status
from holdfast.errors import ExecutionBlocked, ExecutionNotFound, InvalidArguments, InvalidDuration, ResultTimedOut
from tests.client.conftest import Way, make_engine, open_way
from tests.client.workflows import before_change
from tests.eventually import eventually


async def make_changing(url: str) -> None:
    """Let there be an execution that its next turn blocks, since its code was changed."""
    async with Engine(url, workflows=[before_change]) as engine:
        await engine.start(before_change, workflow_id="w")
        await engine.signal_workflow("w", "ready")
        await eventually(lambda: has_signals(engine, 1))


async def has_signals(engine: Engine, count: int) -> bool:
    return (await engine.history("w")).kinds.count("SignalReceived") == count


async def is_blocked(verbs: Any) -> bool:
    return (await verbs.query_status("w")).status is Status.BLOCKED


@pytest.fixture(params=["engine", "postgres", "socket", "nobody"])
async def blocked_way(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Way]:
    """Each way in turn, to a database with a blocked execution 'w'."""
    is_postgres = request.param == "postgres"
    url = str(request.getfixturevalue("postgres_url")) if is_postgres else f"sqlite:///{tmp_path / 'app.db'}"
    await make_changing(url)
    async with open_way(request.param, url) as way:
        await way.verbs.signal_workflow("w", "go")
        if way.is_idle:
            async with make_engine(url) as engine:
                await eventually(lambda: is_blocked(engine))
        await eventually(lambda: is_blocked(way.verbs))
        yield way


async def test_O2_a_wait_for_a_blocked_execution_raises_if_it_is_told_to(blocked_way: Way) -> None:
    handle = blocked_way.verbs.handle("w")

    with pytest.raises(ExecutionBlocked, match=r"^Expected execution 'w' .* but it is blocked by NonDeterminism") as raised:
        await handle.result(on_blocked="raise")
    with pytest.raises(ResultTimedOut, match="blocked"):
        await handle.result(timeout=0.05)

    assert (raised.value.workflow_id, bool(raised.value.reason)) == ("w", True)


async def test_O2_a_wait_that_has_begun_raises_when_the_execution_is_blocked(postgres_url: str) -> None:
    await make_changing(postgres_url)
    async with make_engine(postgres_url), Client(postgres_url) as client:
        waiting = asyncio.create_task(client.handle("w").result(on_blocked="raise"))
        await asyncio.sleep(0)
        await client.signal_workflow("w", "go")

        with pytest.raises(ExecutionBlocked):
            await waiting


async def test_O2_a_result_is_awaited_for_so_long(way: Way) -> None:
    handle: WorkflowHandle[Any] = await way.verbs.start("collect", 1, workflow_id="c")

    with pytest.raises(TimeoutError, match=r"^Expected execution 'c' \(.*\) to end within 0\.05 s, but .*\.$") as raised:
        await handle.result(timeout=timedelta(seconds=0.05))
    with pytest.raises(ResultTimedOut):
        await handle.result(timeout=0)
    with pytest.raises(InvalidDuration):
        await handle.result(timeout=-1)
    with pytest.raises(InvalidArguments, match="on_blocked"):
        await handle.result(on_blocked="never")  # type: ignore[arg-type]
    with pytest.raises(ExecutionNotFound):
        await way.verbs.handle("nobody").result(timeout=1)

    assert isinstance(raised.value, ResultTimedOut)
    assert (raised.value.workflow_id, raised.value.execution_id) == ("c", handle.execution_id)


async def test_O2_sync_clients_wait_for_so_long_and_raise_if_they_are_told_to(blocked_way: Way) -> None:
    if isinstance(blocked_way.verbs, Engine):
        pytest.skip("an engine has no sync client")

    def ask() -> None:
        with SyncClient(blocked_way.url) as client:
            with pytest.raises(ExecutionBlocked):
                client.handle("w").result(on_blocked="raise")
            with pytest.raises(ResultTimedOut):
                client.handle("w").result(timeout=0.05)

    await asyncio.to_thread(ask)


async def test_I2_a_repeated_retry_gets_the_first_answer_and_does_nothing(blocked_way: Way) -> None:
    verbs = blocked_way.verbs

    answers = await asyncio.gather(*(verbs.retry_blocked("w", request_id="r") for _ in range(3)))
    version = (await verbs.query_status("w")).state_version
    await asyncio.sleep(0.05)
    again = await verbs.retry_blocked("w", request_id="r")

    assert (answers, again) == ([True] * 3, True)
    if blocked_way.is_idle:  # nobody takes a turn meanwhile
        assert (await verbs.query_status("w")).status is Status.RUNNING
        assert (await verbs.query_status("w")).state_version == version
        assert not await verbs.retry_blocked("w", request_id="s")
        async with make_engine(blocked_way.url) as engine:
            await eventually(lambda: is_blocked(engine))
            assert await engine.retry_blocked("w", request_id="r"), "as it was answered before the restart"
            assert not await engine.retry_blocked("w", request_id="s"), "as it was answered before the restart"
            assert await is_blocked(engine)


async def test_N2_nodes_take_up_at_once_what_a_client_retried(postgres_url: str) -> None:
    await make_changing(postgres_url)
    async with make_engine(postgres_url) as node, Client(postgres_url) as client:
        await client.signal_workflow("w", "go")
        await eventually(lambda: is_blocked(client))
        version = (await client.query_status("w")).state_version
        await node.query_status("w")
        began = asyncio.get_running_loop().time()

        assert await client.retry_blocked("w")

        async def was_tried() -> bool:
            info = await client.query_status("w")
            return info.status is Status.BLOCKED and info.state_version > version

        await eventually(was_tried)
        assert asyncio.get_running_loop().time() - began < 15, "not first when nodes look again by themselves"
