"""Human tasks by clients: over the owner's socket, without an event loop, and on PostgreSQL without the code."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Client, Context, Engine, SyncClient, TaskInfo, Workflow, workflow
from holdfast.engine.use_cases.stale_work import LONGEST_ANSWER
from holdfast.errors import AnswerTimedOut, EngineClosed, TaskEnded, TaskFormMismatch, TaskNotClaimed
from holdfast.store.sqlite.ownership import read_owner
from tests.client.conftest import drop_calls, path_of
from tests.eventually import eventually


@workflow
async def asking(ctx: Context) -> int:
    return await ctx.human_task("ask", int, candidates=["staff"], due=timedelta(days=1))


@workflow
async def asking_without_due_date(ctx: Context) -> int:
    return await ctx.human_task("ask", int, candidates=["staff"])


async def find_task(client: Client) -> str:
    found: list[str] = []

    async def look() -> bool:
        found[:] = [one.task_id for one in await client.tasks(candidate_group="staff")]
        return bool(found)

    await eventually(look)
    return found[0]


async def take_steps(client: Client) -> None:
    task_id = await find_task(client)
    claimed = await client.claim_task(task_id, by="ann", groups=["staff"])
    with pytest.raises(TaskNotClaimed):
        await client.complete_task(task_id, 7, by="bob")
    with pytest.raises(TaskFormMismatch):
        await client.complete_task(task_id, "seven", by="ann")
    assert claimed.due is not None
    moved = await client.set_task_due(task_id, claimed.due + timedelta(days=1), by="boss", timeout=timedelta(seconds=60))
    done = await client.complete_task(task_id, 7, by="ann", request_id="r", timeout=60)
    again = await client.complete_task(task_id, 7, by="ann", request_id="r", timeout=None)
    with pytest.raises(TaskEnded):
        await client.cancel_task(task_id, by="ann")

    assert (moved.due, done.state, again) == (claimed.due + timedelta(days=1), "completed", done)
    assert await client.handle("w", workflow=asking).result() == 7


async def test_H1_a_client_takes_steps_over_the_socket_of_the_owner(file_url: str) -> None:
    async with Engine(file_url, workflows=[asking]) as engine, Client(file_url) as client:
        await engine.start(asking, workflow_id="w")

        await take_steps(client)


async def test_H1_a_client_on_postgres_is_answered_by_a_node_that_has_the_code(postgres_url: str) -> None:
    async with Engine(postgres_url, workflows=[asking]) as engine, Client(postgres_url) as client:
        await engine.start(asking, workflow_id="w")

        await take_steps(client)


async def test_H1_a_client_without_an_event_loop_takes_steps(file_url: str) -> None:
    def take(task_id: str) -> list[str]:
        with SyncClient(file_url) as client:
            client.claim_task(task_id, by="ann", groups=["staff"])
            client.set_task_due(task_id, None, by="ann")
            client.complete_task(task_id, 7, by="ann")
            return [one.kind for one in client.task_events(task_id)]

    async with Engine(file_url, workflows=[asking]) as engine, Client(file_url) as client:
        await engine.start(asking, workflow_id="w")

        kinds = await asyncio.to_thread(take, await find_task(client))

    assert kinds == ["created", "claimed", "rescheduled", "completed"]


# --- while nobody owns the file ---

Step = Callable[[Client, str, str | None], Coroutine[Any, Any, TaskInfo]]
STEPS: dict[str, Step] = {
    "completed": lambda client, task_id, key: client.complete_task(task_id, 7, by="ann", request_id=key, timeout=60),
    "cancelled": lambda client, task_id, key: client.cancel_task(task_id, by="ann", request_id=key, timeout=None),
    "rescheduled": lambda client, task_id, key: client.set_task_due(task_id, None, by="ann", request_id=key, timeout=60),
}


async def leave_task(url: str, asks: Workflow[[], int] = asking) -> str:
    """The id of a task that 'ann' has claimed, in a file that nobody owns any more."""
    async with Engine(url, workflows=[asks]) as engine, Client(url) as client:
        await engine.start(asks, workflow_id="w")
        task_id = await find_task(client)
        await client.claim_task(task_id, by="ann", groups=["staff"])
    return task_id


async def has_left(url: str, count: int = 1) -> bool:
    """Whether so many steps wait in the inbox, and nobody owns the file."""
    async with Client(url) as client:
        info = await client.query_status("w")
    return len(info.inbox) == count and read_owner(path_of(url)) is None


async def list_steps(client: Client | Engine, task_id: str) -> list[str]:
    return [one.kind for one in await client.task_events(task_id)]


@pytest.mark.parametrize("key", ["r", None], ids=["with a request id", "without a request id"])
@pytest.mark.parametrize("kind", STEPS)
async def test_H1_a_step_on_a_file_that_nobody_owns_is_answered_by_the_next_engine(
    file_url: str, kind: str, key: str | None
) -> None:
    task_id = await leave_task(file_url)

    async with Client(file_url) as client:
        steps = asyncio.create_task(STEPS[kind](client, task_id, key))
        await eventually(lambda: has_left(file_url))
        began = time.monotonic()
        async with Engine(file_url, workflows=[asking]) as engine:
            opened_after = time.monotonic() - began
            task = await steps

            assert await list_steps(engine, task_id) == ["created", "claimed", kind]
    assert task.state == ("claimed" if kind == "rescheduled" else kind)
    assert opened_after < 5, "nobody who waits for an answer owns the file"


async def test_H1_a_step_that_cannot_be_taken_is_refused_though_nobody_owns_the_file(file_url: str) -> None:
    task_id = await leave_task(file_url)

    async with Client(file_url) as client:
        with pytest.raises(TaskNotClaimed):
            await client.complete_task(task_id, 7, by="bob", timeout=None)
        with pytest.raises(TaskFormMismatch):
            await client.complete_task(task_id, "seven", by="ann", request_id="r", timeout=None)
        assert await has_left(file_url, 0)


async def test_H1_a_step_that_nobody_answers_in_time_is_joined_later(file_url: str) -> None:
    task_id = await leave_task(file_url)

    async with Client(file_url) as client:
        with pytest.raises(AnswerTimedOut, match=r"within 0\.2 seconds.*request_id='(\w+)'") as late:
            await client.complete_task(task_id, 7, by="ann", timeout=0.2)
        assert await has_left(file_url)
        joining_id = str(late.value).split("'")[-2]
        with pytest.raises(AnswerTimedOut):
            await client.complete_task(task_id, 7, by="ann", request_id=joining_id, timeout=0)
        async with Engine(file_url, workflows=[asking]) as engine:
            done = await client.complete_task(task_id, 7, by="ann", request_id=joining_id)

            assert done.state == "completed"
            assert await list_steps(engine, task_id) == ["created", "claimed", "completed"]


async def test_H1_the_answer_of_an_engine_that_came_and_went_is_found_in_the_file(
    file_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_endpoint: object) -> None:
        raise ConnectionRefusedError

    task_id = await leave_task(file_url)
    monkeypatch.setattr("holdfast.client.owned_files.connect", refuse)

    async with Client(file_url) as client:
        steps = asyncio.create_task(client.complete_task(task_id, 7, by="ann", timeout=60))
        await eventually(lambda: has_left(file_url))
        async with Engine(file_url, workflows=[asking]) as engine:
            assert await engine.handle("w").result() == 7

        assert (await steps).state == "completed"


async def test_H1_closing_a_client_ends_its_wait_for_a_step(file_url: str) -> None:
    task_id = await leave_task(file_url)
    client = Client(file_url)
    await client.open()
    steps = asyncio.create_task(client.complete_task(task_id, 7, by="ann", timeout=None))
    await eventually(lambda: has_left(file_url))

    await asyncio.wait_for(client.close(), 5)

    with pytest.raises(EngineClosed):
        await steps


async def test_U2_a_step_whose_owner_is_lost_is_taken_by_the_next(file_url: str) -> None:
    task_id = await leave_task(file_url)

    async with Client(file_url) as client:
        async with drop_calls(file_url) as calls:
            steps = asyncio.create_task(client.complete_task(task_id, 7, by="ann", request_id="r", timeout=60))
            await eventually(lambda: len(calls) == 2)
        await eventually(lambda: has_left(file_url))
        async with Engine(file_url, workflows=[asking]) as engine:
            assert (await steps).state == "completed"
            assert await list_steps(engine, task_id) == ["created", "claimed", "completed"]


async def test_U1_ending_stale_tasks_waits_for_nobody_while_nobody_owns_the_file(file_url: str) -> None:
    task_id = await leave_task(file_url, asking_without_due_date)

    async with Client(file_url) as client:
        await eventually(lambda: is_stale(client))
        began = time.monotonic()
        ended = await client.end_stale(timedelta(milliseconds=20))

        assert time.monotonic() - began < LONGEST_ANSWER
        assert [one.kind for one in ended] == []
        assert (await client.task(task_id)).state == "claimed"


async def is_stale(client: Client) -> bool:
    return [one.kind for one in await client.stale(timedelta(milliseconds=20))] == ["task"]
