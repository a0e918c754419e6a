"""A codec that is out of order: whatever needs no value works, the rest waits, and nothing is blamed on an execution."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, Context, EncodedPayload, Engine, Status, workflow
from holdfast.errors import StoreUnavailable
from tests.eventually import eventually
from tests.places import make_url

SHOWN = "<encoded as 'backwards' with key 'default'>"


class Fragile:
    """Turns values around, as long as it is in order."""

    def __init__(self) -> None:
        self.is_down = self.is_silent = False
        self.encodes = True
        self.lost_keys: set[str] = set()

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        if not self.encodes:
            raise ConnectionError("the key service is away")
        return [EncodedPayload(one.data[::-1], "backwards", org) for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        if self.is_silent:
            await asyncio.Event().wait()
        if self.is_down or not self.lost_keys.isdisjoint(one.key for one in payloads):
            raise ConnectionError("the key service is away")
        return [EncodedPayload(one.data[::-1]) for one in payloads]


@workflow
async def wait(ctx: Context, text: str) -> str:
    ctx.set_state({"text": text})
    return text + await ctx.wait_for_signal("go", str)


@pytest.fixture(params=["sqlite", "postgres"])
def file_or_server_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of store that a client can reach, empty."""
    return make_url(request, tmp_path)


@asynccontextmanager
async def begin(url: str, codec: Fragile, *ids: str) -> AsyncIterator[Engine]:
    """An engine whose codec goes out of order after executions began, and that has none of them in memory."""
    async with Engine(url, workflows=[wait], codec=codec, max_live_programs=1) as engine:
        for workflow_id in [*ids, "other"]:
            await engine.start(wait, "a", workflow_id=workflow_id)
        yield engine


@pytest.mark.parametrize("fault", ["raises", "raises both ways", "never answers"])
async def test_outage_of_the_codec_stops_no_verb_that_needs_no_value(
    url: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.payload_codecs.LONGEST_CALL", 0.1)
    monkeypatch.setattr("holdfast.engine.payload_codecs.LONGEST_LOOK", 0.1)
    codec = Fragile()
    async with begin(url, codec, "kept", "cancelled", "terminated") as engine:
        codec.is_down, codec.is_silent = fault != "never answers", fault == "never answers"
        codec.encodes = fault != "raises both ways"

        assert (await engine.query_status("kept")).state == SHOWN
        assert {one.workflow_id for one in await engine.list()} == {"kept", "cancelled", "terminated", "other"}
        assert (await engine.history("kept")).kinds[0] == "WorkflowStarted"
        assert await engine.terminate("terminated", reason="enough")
        assert (await engine.query_status("terminated")).status is Status.TERMINATED
        assert await engine.cancel("cancelled")
        assert await engine.cancel("other")

        codec.is_down, codec.is_silent, codec.encodes = False, False, True
        await eventually(lambda: _has_status(engine, "cancelled", Status.CANCELLED))
        await eventually(lambda: _has_status(engine, "other", Status.CANCELLED))
        await engine.signal_workflow("kept", "go", "b")
        assert await engine.handle("kept").result(timeout=25) == "ab"


async def _has_status(engine: Any, workflow_id: str, status: Status) -> bool:
    return (await engine.query_status(workflow_id)).status is status


@workflow
async def asking(ctx: Context, question: str) -> str:
    answer: str = await ctx.human_task("ask", str, payload=question)
    return answer


@pytest.mark.parametrize("encodes", [True, False])
async def test_H1_steps_of_a_task_that_need_no_value_are_taken_in_an_outage_of_the_codec(url: str, encodes: bool) -> None:
    codec = Fragile()
    async with Engine(url, workflows=[asking], codec=codec) as engine:
        handle = await engine.start(asking, "why?")
        [task] = await eventually(engine.tasks)
        codec.is_down, codec.encodes = True, encodes

        assigned = await engine.assign_task(task.task_id, "ann", by="boss", request_id="r")
        claimed = await engine.claim_task(task.task_id, by="ann")
        again = await engine.assign_task(task.task_id, "ann", by="boss", request_id="r")

        assert (assigned.assignee, claimed.claimer, again.claimer) == ("ann", "ann", "ann")
        assert claimed.payload == SHOWN
        codec.is_down, codec.encodes = False, True
        assert (await engine.task(task.task_id)).payload == "why?"
        await engine.complete_task(task.task_id, "therefore", by="ann")
        assert await handle.result() == "therefore"


async def test_execution_that_rests_in_an_outage_is_cancelled_and_terminated_at_once(url: str) -> None:
    codec = Fragile()
    async with begin(url, codec, "cancelled", "terminated") as engine:
        codec.is_down = True
        for workflow_id in ("cancelled", "terminated") * 3:
            with pytest.raises((StoreUnavailable, TimeoutError)):
                async with asyncio.timeout(0.2):
                    await engine.signal_workflow(workflow_id, "nothing", "b")

        assert await engine.cancel("cancelled")
        assert await engine.terminate("terminated")

        codec.is_down = False
        await eventually(lambda: _has_status(engine, "cancelled", Status.CANCELLED))
        await eventually(lambda: _has_status(engine, "terminated", Status.TERMINATED))


@workflow
async def nap(ctx: Context, text: str) -> str:
    await ctx.sleep(0.1)
    return text


async def test_outage_for_one_key_blocks_nobody_and_the_log_does_not_say_so(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    codec = Fragile()
    async with Engine(url, workflows=[nap], codec=codec, max_live_programs=1, max_lost=1) as engine:
        codec.lost_keys.add("lost")
        lost = await engine.start(nap, "a", workflow_id="n", org="lost")
        with caplog.at_level(logging.WARNING, "holdfast.engine"):
            for _ in range(3):
                assert await (await engine.start(nap, "b")).result(timeout=25) == "b"
            await eventually(lambda: caplog.text.count("cannot be committed; it is tried again later, apart") >= 3)

        assert "is blocked" not in caplog.text
        assert (await engine.query_status("n", org="lost")).status is not Status.BLOCKED
        codec.lost_keys.clear()
        assert await lost.result(timeout=25) == "a"


async def test_client_shows_and_ends_executions_in_an_outage_of_its_codec(file_or_server_url: str) -> None:
    url, codec = file_or_server_url, Fragile()
    async with begin(url, codec, "kept", "cancelled", "terminated") as engine:
        codec.is_down = True
        async with Client(url, codec=codec) as client:
            assert (await client.query_status("kept")).state == SHOWN
            assert len(await client.list()) == 4
            assert (await client.history("kept")).kinds[0] == "WorkflowStarted"
            assert await client.cancel("cancelled")
            assert await client.terminate("terminated")
        codec.is_down = False
        await eventually(lambda: _has_status(engine, "cancelled", Status.CANCELLED))
        await eventually(lambda: _has_status(engine, "terminated", Status.TERMINATED))
        await engine.signal_workflow("kept", "go", "b")
        assert await engine.handle("kept").result(timeout=25) == "ab"
    codec.is_down = True
    async with Client(url, codec=codec) as client:
        assert (await client.query_status("kept")).state == SHOWN
        assert (await client.history("kept")).kinds[-1] == "WorkflowCompleted"
        with pytest.raises(StoreUnavailable, match="the key service is away"):
            await client.query_result("kept")
