"""Calls with a request id: one effect and one answer, whoever repeats them, wherever, and whatever was killed meanwhile."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from typing import Any

import asyncpg
import pytest

from holdfast import Client, WorkflowHandle
from holdfast.engine.verbs import Verbs
from holdfast.errors import ExecutionClosed
from tests.client.conftest import ROOT, Way, make_engine
from tests.eventually import eventually


async def make_dead_letters(verbs: Verbs, url: str, count: int) -> list[int]:
    """Dead letters: signals in an own transaction for an execution that is not there."""
    connection = await asyncpg.connect(url.partition("?")[0])
    try:
        async with connection.transaction():
            for number in range(count):
                await verbs.signal_workflow("gone", f"s{number}", connection=connection)
    finally:
        await connection.close()
    await eventually(lambda: has_letters(verbs, count))
    return [letter.id for letter in await verbs.dead_letters()]


async def has_letters(verbs: Verbs, count: int) -> bool:
    return len(await verbs.dead_letters()) == count


async def test_I2_repeated_calls_about_dead_letters_get_the_first_answer(way: Way) -> None:
    first = [
        await way.verbs.requeue_dead_letters([1], request_id="r"),
        await way.verbs.discard_dead_letters([1], request_id="r"),
    ]

    assert first == [0, 0]
    assert await way.verbs.requeue_dead_letters([1, 2], request_id="r") == 0


async def test_I2_dead_letters_are_requeued_and_discarded_once_by_two_clients(postgres_url: str) -> None:
    async with make_engine(postgres_url), Client(postgres_url) as one, Client(postgres_url) as two:
        ids = await make_dead_letters(one, postgres_url, 4)

        discarded = await asyncio.gather(
            *(client.discard_dead_letters(ids[:2], request_id="r") for client in (one, two, one, two))
        )
        requeued = await asyncio.gather(
            *(client.requeue_dead_letters(ids[2:], request_id="r") for client in (one, two, one, two))
        )

        assert (discarded, requeued) == ([2] * 4, [2] * 4)
        await eventually(lambda: has_letters(one, 2))  # they did not fit again: new letters, two of them
        assert await two.requeue_dead_letters(ids[2:], request_id="r") == 2
    async with Client(postgres_url) as after_restart:
        assert await after_restart.discard_dead_letters(ids[:2], request_id="r") == 2


@pytest.mark.parametrize("ends_by", ["terminate", "itself"])
@pytest.mark.parametrize("kind", ["postgres", "file"])
async def test_I2_a_cancel_that_an_inbox_accepted_is_answered_alike_after_the_end(
    kind: str, ends_by: str, request: pytest.FixtureRequest, file_url: str
) -> None:
    url = str(request.getfixturevalue("postgres_url")) if kind == "postgres" else file_url
    async with make_engine(url) as engine:
        await engine.start("collect", 1, workflow_id="c")
    async with Client(url) as client:
        if ends_by == "itself":
            await client.signal_workflow("c", "value", 1)
        assert [await client.cancel("c", request_id="r") for _ in range(2)] == [True, True], "it waits for code"
        if ends_by == "terminate":
            assert await client.terminate("c", request_id="t")

        async with make_engine(url) as engine:
            await eventually(lambda: is_closed(engine))

            for verbs in (client, engine):
                assert await verbs.cancel("c", request_id="r")
                assert not await verbs.cancel("c")
                assert not await verbs.cancel("c", request_id="late")
                assert await verbs.terminate("c", request_id="t") == (ends_by == "terminate")


async def call_and_die(url: str, verb: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.client.killed_caller", url, verb, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    assert await process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("kind", ["postgres", "socket"])
async def test_I2_a_call_of_a_killed_process_is_repeated_without_a_second_effect(
    kind: str, request: pytest.FixtureRequest, file_url: str
) -> None:
    url = str(request.getfixturevalue("postgres_url")) if kind == "postgres" else file_url
    async with make_engine(url) as engine, Client(url) as client:
        handle: WorkflowHandle[Any] = await client.start("collect", 2, workflow_id="c")

        await call_and_die(url, "signal")
        await eventually(lambda: has_signal(engine))
        accepted = await client.signal_workflow("c", "value", "once", request_id="r")
        await call_and_die(url, "cancel")
        await eventually(lambda: is_closed(engine))
        with pytest.raises(ExecutionClosed):
            await client.signal_workflow("c", "value", "twice", request_id="s")

        assert accepted.workflow_execution_id == handle.execution_id
        assert await client.cancel("c", request_id="r"), "as the killed caller was to be answered"
        assert not await client.cancel("c", request_id="s")
        kinds = (await client.history("c")).kinds
        assert (kinds.count("SignalReceived"), kinds.count("CancelRequested")) == (1, 1)


async def has_signal(verbs: Verbs) -> bool:
    return "SignalReceived" in (await verbs.history("c")).kinds


async def is_closed(verbs: Verbs) -> bool:
    return (await verbs.query_status("c")).closed_at is not None
