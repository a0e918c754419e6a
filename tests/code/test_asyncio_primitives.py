"""asyncio as users know it: each primitive behaves in a workflow as it does elsewhere, durably."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ActivityFailed, Context, activity, workflow
from holdfast.core import events
from tests.code.playing import Play


@activity
async def work(name: str) -> str:
    return name


def answer(_name: str, args: list[Any]) -> Any:
    if args[0].startswith("bad"):
        raise ValueError(args[0])
    return args[0]


def played(story: Play, result: Any) -> None:
    """It ended with this result, left nothing behind, and a replay agrees."""
    story.run(answer)
    assert story.result == result
    open_timers = {one.number for one in story.events if isinstance(one, events.TimerStarted)} - {
        one.number for one in story.events if isinstance(one, events.TimerFired | events.TimerCancelled)
    }
    assert open_timers == set()
    assert story.replay() is None


# --- gather ---


def test_gather_gives_results_in_the_order_given() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        return await asyncio.gather(*(ctx.run(work, name) for name in ("a", "b", "c")))

    play = Play(story)
    for number, name in ((3, "c"), (1, "a"), (2, "b")):
        play.complete(number, name)

    assert play.result == ["a", "b", "c"]
    assert play.replay() is None


def test_gather_raises_the_first_failure_and_the_others_go_on() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        other = ctx.run(work, "other")
        try:
            await asyncio.gather(ctx.run(work, "bad"), other)
        except ActivityFailed as error:
            return [error.type, await other]
        return []

    played(Play(story), ["ValueError", "other"])


def test_gather_can_return_failures() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        found = await asyncio.gather(ctx.run(work, "bad"), ctx.run(work, "good"), return_exceptions=True)
        return [type(one).__name__ for one in found]

    played(Play(story), ["ActivityFailed", "str"])


# --- wait ---


def test_wait_gives_what_is_done_first() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        futures = [ctx.run(work, name) for name in ("a", "b", "c")]
        done, pending = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        for one in pending:
            one.cancel()
        return [futures.index(one) for one in done]

    play = Play(story)
    play.complete(2, "b")

    assert play.result == [1]
    assert play.kinds.count("ActivityCancelRequested") == 2
    assert play.replay() is None


def test_wait_gives_up_after_its_timeout() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        done, pending = await asyncio.wait([asyncio.create_task(asyncio.sleep(one)) for one in (1, 5, 50)], timeout=10)
        for one in pending:
            one.cancel()
        await asyncio.sleep(0)
        return [len(done), len(pending)]

    played(Play(story), [2, 1])


def test_wait_ends_at_the_first_exception() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        futures = [ctx.run(work, name) for name in ("slow", "bad", "slower")]
        done, pending = await asyncio.wait(futures, return_when=asyncio.FIRST_EXCEPTION)
        return [len(done), len(pending)]

    play = Play(story)
    play.fail(2, ValueError("bad"))

    assert play.result == [1, 2]


# --- as_completed ---


@pytest.mark.parametrize("kind", ["futures", "coroutines"])
def test_as_completed_gives_results_as_they_come(kind: str) -> None:
    @workflow
    async def story(ctx: Context, kind: str) -> list[str]:
        async def step(name: str) -> str:
            return await ctx.run(work, name)

        names = ("a", "b", "c")
        awaitables: list[Any] = [ctx.run(work, name) if kind == "futures" else step(name) for name in names]
        return [await one for one in asyncio.as_completed(awaitables)]

    play = Play(story, kind)
    for number, name in ((3, "c"), (1, "a"), (2, "b")):
        play.complete(number, name)

    assert play.result == ["c", "a", "b"]
    assert play.replay() is None


def test_as_completed_starts_coroutines_in_the_order_given() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        async def step(name: str) -> str:
            return await ctx.run(work, name)

        return [await one for one in asyncio.as_completed([step(str(number)) for number in range(50)])]

    scheduled = [one for one in Play(story).events if isinstance(one, events.ActivityScheduled)]

    assert [bytes(one.input.data) for one in scheduled] == [b'["%d"]' % number for number in range(50)]


def test_as_completed_gives_up_after_its_timeout() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        found = []
        try:
            for one in asyncio.as_completed([asyncio.sleep(1, "a"), asyncio.sleep(99, "b")], timeout=5):
                found.append(await one)  # noqa: PERF401 - what came before the timeout counts
        except TimeoutError:
            found.append("too late")
        return found

    play = Play(story)
    play.fire()
    play.fire()

    assert play.result == ["a", "too late"]
    assert play.replay() is None


# --- TaskGroup ---


def test_task_group_waits_for_all() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        found: list[str] = []

        async def step(name: str) -> None:
            found.append(await ctx.run(work, name))

        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                group.create_task(step(name))
        return sorted(found)

    played(Play(story), ["a", "b", "c"])


def test_task_group_cancels_the_others_when_one_fails() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        found: list[str] = []

        async def step(name: str) -> None:
            try:
                await ctx.run(work, name)
            except asyncio.CancelledError:
                found.append(f"{name} cancelled")
                raise

        try:
            async with asyncio.TaskGroup() as group:
                for name in ("a", "bad", "c"):
                    group.create_task(step(name))
        except* ActivityFailed as failed:
            found.append(f"{len(failed.exceptions)} failed")
        return sorted(found)

    play = Play(story)
    play.fail(2, ValueError("bad"))

    assert play.result == ["1 failed", "a cancelled", "c cancelled"]
    assert play.kinds.count("ActivityCancelRequested") == 2
    assert play.replay() is None


def test_task_group_that_fails_fails_the_workflow() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_step(ctx, "bad"))

    play = Play(story)
    play.fail(1, ValueError("bad"))

    assert play.failure.type == "ExceptionGroup"


async def _step(ctx: Context, name: str) -> str:
    return await ctx.run(work, name)


def test_continue_as_inside_a_task_group_continues() -> None:
    @workflow
    async def story(ctx: Context, count: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_step(ctx, "a"))
            await ctx.sleep(1)
            ctx.continue_as(count + 1)

    play = Play(story, 0)
    play.fire()

    assert play.kinds[-1] == "ContinuedAs"
    assert play.replay() is None


def test_what_is_forbidden_blocks_also_inside_a_task_group() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await ctx.sleep(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(_reach_for_the_loop())

    play = Play(story)
    play.fire()

    assert play.blocked is not None
    assert play.blocked.type == "ForbiddenInWorkflow"


async def _reach_for_the_loop() -> None:
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


# --- time ---


def test_sleep_is_a_durable_timer() -> None:
    @workflow
    async def story(ctx: Context) -> float:
        before = ctx.now()
        result = await asyncio.sleep(3600, "slept")
        assert result == "slept"
        return (ctx.now() - before).total_seconds()

    play = Play(story)

    assert play.kinds == ["WorkflowStarted", "TimerStarted"]
    played(play, 3600)


def test_sleep_of_nothing_lets_others_go_first_and_needs_no_timer() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        order: list[str] = []

        async def speak(name: str) -> None:
            for _ in range(2):
                order.append(name)
                await asyncio.sleep(0)

        await asyncio.gather(speak("a"), speak("b"))
        await asyncio.sleep(-1)
        return order

    play = Play(story)

    assert play.result == ["a", "b", "a", "b"]
    assert "TimerStarted" not in play.kinds


def test_timeout_that_passes_cancels_what_is_inside() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            async with asyncio.timeout(5):
                await ctx.run(work, "slow")
        except TimeoutError:
            return "too late"
        return "in time"

    play = Play(story)
    play.fire()

    assert play.result == "too late"
    assert play.kinds[3:] == ["TimerFired", "ActivityCancelRequested", "WorkflowCompleted"]
    assert play.replay() is None


def test_timeout_that_does_not_pass_leaves_no_timer() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        async with asyncio.timeout(5) as limit:
            await ctx.run(work, "quick")
            limit.reschedule(asyncio.get_running_loop().time() + 9)
            return await ctx.run(work, "quick too")

    played(Play(story), "quick too")


@pytest.mark.parametrize("is_late", [True, False])
def test_wait_for_gives_the_result_or_times_out(is_late: bool) -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            return await asyncio.wait_for(ctx.run(work, "quick"), timeout=5)
        except TimeoutError:
            return "too late"

    play = Play(story)
    if is_late:
        play.fire()
    else:
        play.complete(1, "quick")

    played(play, "too late" if is_late else "quick")
