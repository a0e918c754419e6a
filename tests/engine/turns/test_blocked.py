"""Code that does not fit its history blocks its execution, and nothing else; mended code goes on where it stood."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Status, WorkflowFailed, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import events
from holdfast.errors import ExecutionNotFound, SignalLimitReached, WorkflowCancelled
from holdfast.store.contract import Claim, Wanted
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.engine.support.held_activities import Door
from tests.engine.support.histories import find_events
from tests.eventually import eventually


@activity
async def work(name: str) -> str:
    return name


@activity
async def other_work(name: str) -> str:
    return name


@workflow(name="order", version="1")
async def good(ctx: Context) -> list[str]:
    log = [await ctx.run(work, "first")]
    while (word := await ctx.wait_for_signal("word", str)) != "end":
        log.append(word)
    return log


@workflow(name="order", version="2")
async def bad(ctx: Context) -> list[str]:
    log = [await ctx.run(other_work, "first")]
    while (word := await ctx.wait_for_signal("word", str)) != "end":
        log.append(word)
    return log


@workflow
async def bystander(ctx: Context) -> str:
    return await ctx.run(work, "fine")


async def block(open_engine: OpenEngine, **options: Any) -> TestEngine:
    """An engine whose code has changed under an open execution, which a signal has found out."""
    engine = await open_engine(good, bystander, work, other_work, **options)
    await engine.start(good, workflow_id="order")
    await eventually(lambda: find_events(engine, "order", events.ActivityCompleted))
    await engine.restart(workflows=[bad, bystander])
    await engine.signal_workflow("order", "word", "one")
    return engine


async def test_mismatch_blocks_and_says_what_where_and_which_version(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)

    info = await engine.query_status("order")
    assert info.status is Status.BLOCKED
    assert info.closed_at is None
    assert info.code_version == "1"
    assert info.last_error is not None
    assert str(info.last_error).startswith("NonDeterminismError: Expected workflow 'order' ('order', execution ")
    assert "to call ctx.run('work') again, which is event 2 of its history" in str(info.last_error)
    assert "but it called ctx.run('other_work') at " in str(info.last_error)
    assert "test_blocked.py:" in str(info.last_error)
    assert "test_blocked.py:" in info.last_error.trace
    assert "holdfast/" not in info.last_error.trace


async def test_blocked_execution_has_no_trace_of_the_attempt_in_its_history(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)

    assert (await engine.history("order")).kinds == ["WorkflowStarted", "ActivityScheduled", "ActivityCompleted"]


async def test_other_executions_go_on(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)

    assert await (await engine.start(bystander)).result() == "fine"


async def test_signals_to_a_blocked_execution_are_kept_in_order(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)
    for word in ("two", "three"):
        answer = await engine.signal_workflow("order", "word", word)
        assert answer.signal_event_sequence is None, "it waits in the inbox"
    await engine.restart(workflows=[good, bystander])
    await engine.signal_workflow("order", "word", "four")
    await engine.signal_workflow("order", "word", "end")

    assert await engine.handle("order").result() == ["first", "one", "two", "three", "four"]


async def test_signal_with_start_finds_the_blocked_execution(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)
    answer = await engine.signal_with_start_workflow("order", bad, signal_name="word", signal_value="two")
    await engine.restart(workflows=[good])
    await engine.signal_workflow("order", "word", "end")

    assert not answer.workflow_created
    assert await engine.handle("order").result() == ["first", "one", "two"]


async def test_retry_of_code_that_is_still_wrong_blocks_again(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)

    assert await engine.retry_blocked("order")
    await eventually(lambda: has_status(engine, Status.BLOCKED))
    await engine.settle()
    assert (await engine.query_status("order")).status is Status.BLOCKED


async def has_status(engine: TestEngine, status: Status) -> bool:
    return (await engine.query_status("order")).status is status


async def test_retry_after_the_code_was_mended_goes_on(open_engine: OpenEngine) -> None:
    is_mended: list[bool] = []

    @workflow
    async def order(ctx: Context) -> str:
        word = await ctx.wait_for_signal("word", str)
        if not is_mended:
            await asyncio.get_running_loop().getaddrinfo("localhost", 1)
        return word

    engine = await open_engine(order)
    handle = await engine.start(order, workflow_id="order")
    await handle.signal("word", "one")
    assert (await handle.status()).status is Status.BLOCKED
    assert "ForbiddenInWorkflow" in str((await handle.status()).last_error)
    is_mended.append(True)

    assert await engine.retry_blocked("order")
    assert await handle.result() == "one"
    assert not await engine.retry_blocked("order")


async def test_retry_of_what_is_not_blocked_does_nothing(open_engine: OpenEngine) -> None:
    engine = await open_engine(good, work)
    await engine.start(good, workflow_id="order")

    assert not await engine.retry_blocked("order")
    with pytest.raises(ExecutionNotFound, match=r"^Expected to retry 'nobody', but "):
        await engine.retry_blocked("nobody")


async def test_blocked_execution_can_be_terminated_though_signals_wait(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)
    await engine.signal_workflow("order", "word", "two")

    assert await engine.terminate("order", "given up")
    await engine.settle()
    assert (await engine.query_status("order")).status is Status.TERMINATED
    assert (await engine.store.count()).inbox == 0
    assert not await engine.terminate("order")


async def test_blocked_execution_that_is_cancelled_is_so_when_it_goes_on(open_engine: OpenEngine) -> None:
    engine = await block(open_engine)
    assert await engine.cancel("order")
    await engine.restart(workflows=[good])

    with pytest.raises(WorkflowCancelled):
        await engine.handle("order").result()


async def test_activity_of_a_blocked_execution_runs_on_and_its_result_is_kept(open_engine: OpenEngine) -> None:
    door = Door()
    is_mended: list[bool] = []

    @activity
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def order(ctx: Context) -> str:
        future = ctx.run(slow)
        await ctx.wait_for_signal("word")
        if not is_mended:
            await asyncio.get_running_loop().getaddrinfo("localhost", 1)
        return await future

    engine = await open_engine(order, slow)
    handle = await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    await handle.signal("word")
    assert (await handle.status()).status is Status.BLOCKED
    door.open()
    await eventually(lambda: door.left)
    await engine.settle()
    is_mended.append(True)
    await engine.retry_blocked("order")

    assert await handle.result() == "done"
    assert len(door.came) == 1


async def test_timer_of_a_blocked_execution_fires_when_it_goes_on(open_engine: OpenEngine) -> None:
    is_mended: list[bool] = []

    @workflow
    async def order(ctx: Context) -> list[str]:
        async def tick() -> str:
            await ctx.sleep(60)
            return "slept"

        task = asyncio.create_task(tick())
        word = await ctx.wait_for_signal("word", str)
        if not is_mended:
            await asyncio.get_running_loop().getaddrinfo("localhost", 1)
        return [word, await task]

    engine = await open_engine(order)
    handle = await engine.start(order, workflow_id="order")
    await handle.signal("word", "one")
    await engine.clock.advance(120)
    assert (await handle.status()).status is Status.BLOCKED
    is_mended.append(True)
    await engine.retry_blocked("order")

    assert await handle.result() == ["one", "slept"]


# --- turns that do not come to rest ---


def make_restless(*, waits_first: bool) -> Workflow[..., Any]:
    @workflow
    async def restless(ctx: Context) -> None:
        if waits_first:
            await ctx.wait_for_signal("go")
        while True:
            await asyncio.sleep(0)

    return restless


async def test_loop_that_never_waits_does_not_take_the_node_down(open_engine: OpenEngine) -> None:
    restless = make_restless(waits_first=True)
    engine = await open_engine(restless, bystander, work)
    handle = await engine.start(restless)
    others = [await engine.start(bystander) for _ in range(5)]
    await handle.signal("go")

    assert [await other.result() for other in others] == ["fine"] * 5
    info = await handle.status()
    assert info.status is Status.BLOCKED
    assert str(info.last_error).startswith("TurnTooLong: Expected workflow 'restless' to come to rest, but it ran ")


async def test_loop_that_never_waits_in_its_first_turn_fails(open_engine: OpenEngine) -> None:
    restless = make_restless(waits_first=False)
    engine = await open_engine(restless, bystander, work)
    handle = await engine.start(restless)

    with pytest.raises(WorkflowFailed, match=r"but it raised TurnTooLong: Expected workflow 'restless' to come to rest"):
        await handle.result()
    assert await (await engine.start(bystander)).result() == "fine"


@pytest.mark.parametrize("how", ["exit", "odd", "silent"])
async def test_workflow_that_raises_what_it_should_not_fails_alone(open_engine: OpenEngine, how: str) -> None:
    class Odd(BaseException):
        """No Exception."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("I cannot be described")

    @workflow
    async def rude(ctx: Context, how: str) -> None:
        await ctx.sleep(1)
        raise {"exit": SystemExit, "odd": Odd, "silent": Silent}[how]

    engine = await open_engine(rude, bystander, work)
    handle = await engine.start(rude, how)
    await engine.clock.advance(1)

    with pytest.raises(WorkflowFailed, match=r"^Expected execution .* to return a result, but it raised "):
        await handle.result()
    assert await (await engine.start(bystander)).result() == "fine"


async def test_blocked_execution_that_another_node_holds_is_soon_terminated(
    cluster: Cluster,
) -> None:
    no_heartbeat: dict[str, Any] = {"heartbeat": 1_000.0, "lease": 3_000.0}  # which would find it, too
    engine = await cluster.open("a", good, work, other_work, **no_heartbeat)
    await engine.start(good, workflow_id="order")
    await eventually(lambda: find_events(engine, "order", events.ActivityCompleted))
    await cluster.shut_down("a")
    engine = await cluster.open("b", bad, work, other_work, **no_heartbeat)
    await engine.signal_workflow("order", "word", "one")
    row = await cluster.find_row("order")
    await eventually(lambda: row.execution_id in hooks.skipped_by(engine))
    holder = await engine.store.begin()
    await holder.claim(Claim([Wanted(row.org, row.execution_id, -1)]))

    terminating = asyncio.create_task(engine.terminate("order", reason="given up"))
    await asyncio.sleep(0.2)
    await holder.rollback()
    assert await terminating

    async def is_terminated() -> bool:
        return (await engine.query_status("order")).status is Status.TERMINATED

    await eventually(is_terminated, patience=20)  # less than after which everything that is skipped is tried again


@pytest.mark.parametrize("target", ["workflow id", "execution id", "start"])
async def test_S4_signals_that_wait_for_a_blocked_execution_count_against_the_limit(
    open_engine: OpenEngine, target: str
) -> None:
    engine = await block(open_engine, max_signals=5)  # one signal waits: the one that found it out
    execution_id = (await engine.query_status("order")).execution_id

    async def signal(word: str) -> object:
        if target == "start":
            return await engine.signal_with_start_workflow("order", bad, signal_name="word", signal_value=word)
        return await engine.signal_workflow("order" if target == "workflow id" else execution_id, "word", word)

    for number in range(3):
        await signal(f"{number}")
    answers = await asyncio.gather(*(signal("more") for _ in range(4)), return_exceptions=True)

    assert sum(isinstance(answer, SignalLimitReached) for answer in answers) == 3
    assert (await engine.store.count()).inbox == 5
    with pytest.raises(SignalLimitReached, match="0 signals, and 5 envelopes wait for it"):
        await signal("too many")
