"""Queries and updates, by every way to reach a database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from holdfast import Client, Context, Engine, SyncClient, workflow
from holdfast.errors import (
    AnswerTimedOut,
    ExecutionNotFound,
    HoldfastError,
    InvalidArguments,
    NobodyAnswers,
    OutcomeUnknown,
    UnknownQuery,
    UnknownUpdate,
    UpdateRejected,
)
from tests.client.conftest import Owner, Way, drop_calls, make_engine
from tests.client.workflows import Item, till
from tests.eventually import eventually


async def test_Q4_queries_and_updates_are_answered_whoever_asks(way: Way) -> None:
    verbs = way.verbs
    handle = await verbs.start(till, 100, workflow_id="t")
    if way.is_idle:
        await expect_silence(way)
        return

    assert await handle.update("withdraw", 30, request_id="r") == 70
    assert await handle.update("withdraw", 30, request_id="r", timeout=30) == 70
    assert await handle.query("cash") == 70
    assert await verbs.query("t", "times", 3, timeout=30) == 210
    with pytest.raises(UpdateRejected, match="only 70"):
        await verbs.update("t", "withdraw", 1000)
    with pytest.raises(UnknownUpdate) as update:
        await handle.update("wihtdraw", 1)
    assert set(update.value.known) == {"withdraw", "close"}
    with pytest.raises(UnknownQuery) as query:
        await handle.query("cahs")
    assert set(query.value.known) == {"cash", "times"}
    with pytest.raises(InvalidArguments):
        await handle.query("times")
    with pytest.raises(ExecutionNotFound):
        await verbs.query("nobody", "cash")
    assert await verbs.update("t", "close", hint=Item) == Item("closed", datetime(2030, 1, 2, tzinfo=UTC))
    assert await handle.result() == 70
    assert await handle.query("cash", hint=float) == 70.0


async def expect_silence(way: Way) -> None:
    with pytest.raises(NobodyAnswers, match="Start the application"):
        await way.verbs.query("t", "cash")
    with pytest.raises(NobodyAnswers):
        await way.verbs.update("t", "withdraw", 1)
    with pytest.raises(NobodyAnswers):
        await way.verbs.update_with_start("u", "till", 5, update_name="withdraw", update_value=1)
    async with make_engine(way.url) as engine:
        assert await engine.query("t", "cash") == 100
        with pytest.raises(ExecutionNotFound):
            await engine.query_status("u")


async def test_Q4_update_with_start_starts_once_whoever_asks(way: Way) -> None:
    if way.is_idle:
        pytest.skip("nobody answers")

    for left in (60, 20):
        answer = await way.verbs.update_with_start("u", "till", 100, update_name="withdraw", update_value=40)
        assert answer == left
    assert await way.verbs.query("u", "cash") == 20


def test_Q4_a_sync_client_asks_too(owner: Owner, file_url: str) -> None:
    with SyncClient(file_url) as client:
        handle = client.start(till, 10, workflow_id="t")

        assert handle.update("withdraw", 3) == 7
        assert handle.query("cash") == 7
        assert client.query("t", "times", 2) == 14


async def test_Q4_the_owner_may_end_between_calls(owner: Owner, file_url: str) -> None:
    async with Client(file_url) as client:
        await client.start(till, 10, workflow_id="t")
        assert await client.update("t", "withdraw", 3, request_id="r") == 7
        owner.end()
        with pytest.raises(NobodyAnswers):
            await client.update("t", "withdraw", 3, request_id="r")


async def test_U2_an_update_whose_owner_is_lost_waits_for_the_next(file_url: str) -> None:
    async with make_engine(file_url) as engine:
        await engine.start(till, 100, workflow_id="t")

    async with Client(file_url) as client:
        async with drop_calls(file_url) as calls:
            updates = asyncio.create_task(client.update("t", "withdraw", 30, request_id="r", timeout=60))
            await eventually(lambda: len(calls) == 2)
        await asyncio.sleep(0.5)  # it looks for an owner meanwhile, and there is none
        assert not updates.done()
        async with make_engine(file_url):
            assert await updates == 70
            assert await client.query("t", "cash") == 70


async def test_U2_an_update_whose_owner_is_lost_does_not_wait_for_ever(
    file_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.owned_files.PATIENCE", 0.3)
    async with make_engine(file_url) as engine:
        await engine.start(till, 100, workflow_id="t")

    async with Client(file_url) as client:
        async with drop_calls(file_url):
            with pytest.raises(OutcomeUnknown, match="same request_id"):
                await client.update("t", "withdraw", 30, request_id="r")
        async with drop_calls(file_url):
            with pytest.raises(AnswerTimedOut, match=r"within 0\.1 seconds"):
                await client.update("t", "withdraw", 30, request_id="r", timeout=0.1)
        async with drop_calls(file_url):
            with pytest.raises(NobodyAnswers):
                await client.query("t", "cash")


async def test_U2_an_update_without_a_request_id_is_not_repeated_when_its_owner_ends(file_url: str) -> None:
    @workflow
    async def counts(ctx: Context) -> None:
        begun: list[int] = []

        @ctx.on_update
        async def add(number: int) -> int:
            begun.append(number)
            await ctx.wait_for_signal("go on")
            return len(begun)

        ctx.on_query("begun", lambda: begun)
        await ctx.wait_for_signal("end")

    async with Engine(file_url, workflows=[counts]) as engine:
        await engine.start(counts, workflow_id="c")
        client = Client(file_url)
        await client.open()
        updates = asyncio.create_task(client.update("c", "add", 1))
        await eventually(lambda: has_begun(engine))

    with pytest.raises(OutcomeUnknown, match="request_id"):
        await updates
    async with Engine(file_url, workflows=[counts]) as engine:
        assert await client.query("c", "begun") == [1]
    await client.close()


async def has_begun(engine: Engine) -> bool:
    return bool(await engine.query("c", "begun"))


async def test_Q7_wait_for_tells_whoever_asks(way: Way) -> None:
    if way.is_idle:
        pytest.skip("nothing changes")
    handle = await way.verbs.start("collect", 2, workflow_id="c")

    waits = asyncio.ensure_future(handle.wait_for(lambda info: info.last_signal is not None, timeout=60))
    closes = asyncio.ensure_future(handle.wait_for(lambda info: info.closed_at is not None, timeout=60))
    await asyncio.sleep(0.1)
    await handle.signal("value", 1)
    assert (await waits).last_signal is not None
    await handle.signal("value", 2)
    assert (await closes).status == "completed"


async def test_Q7_pauses_are_told_whoever_asks(way: Way) -> None:
    if way.is_idle:
        pytest.skip("nothing changes")
    handle = await way.verbs.start("collect", 2, workflow_id="c")

    waits = asyncio.ensure_future(handle.wait_for(lambda info: info.pauses, timeout=60))
    await asyncio.sleep(0.1)
    assert await way.verbs.pause_workflow("collect")
    assert [one.kind for one in (await waits).pauses] == ["workflow"]

    resumes = asyncio.ensure_future(handle.wait_for(lambda info: not info.pauses, timeout=60))
    assert await way.verbs.resume_workflow("collect")
    assert (await resumes).pauses == ()
    assert (await handle.wait_for(lambda info: not info.pauses, timeout=0)).pauses == ()


async def test_Q6_closing_a_client_ends_its_waits(file_url: str, owner: Owner) -> None:
    client = Client(file_url)
    await client.open()
    handle = await client.start("collect", 1, workflow_id="c")
    waits = asyncio.ensure_future(handle.wait_for(lambda _: False))
    await asyncio.sleep(0.1)

    await asyncio.wait_for(client.close(), 10)

    with pytest.raises(HoldfastError):
        await waits


async def test_Q4_a_query_waits_for_the_first_turn_of_what_was_just_started(way: Way) -> None:
    if way.is_idle:
        pytest.skip("nobody answers")

    for number in range(5):
        handle = await way.verbs.start("till", number, workflow_id=f"t-{number}")
        assert await handle.query("cash") == number
