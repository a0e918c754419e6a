"""asyncio's locks, queues, shields and cancels in a workflow: fair, in order, and durable where they wait."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast import Context, activity, workflow
from tests.code.playing import Play


@activity
async def work(name: str) -> str:
    return name


def played(story: Play, result: Any) -> None:
    """It ended with this result, and a replay agrees."""
    story.run(lambda _name, args: args[0])
    assert story.result == result
    assert story.replay() is None


def test_queue_hands_over_in_order_and_holds_back_at_its_size() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        log: list[str] = []

        async def produce() -> None:
            for number in range(3):
                await queue.put(number)
                log.append(f"put {number}")

        producer = asyncio.create_task(produce())
        await ctx.sleep(1)
        log.append("take")
        for _ in range(3):
            log.append(f"got {await queue.get()}")
            await asyncio.sleep(0)
        await producer
        return log

    played(Play(story), ["put 0", "take", "got 0", "put 1", "got 1", "put 2", "got 2"])


def test_event_wakes_everybody_in_the_order_of_waiting() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        event, woken = asyncio.Event(), []

        async def wait(number: int) -> None:
            await event.wait()
            woken.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(5)]
        await ctx.wait_for_signal("go")
        event.set()
        await asyncio.gather(*tasks)
        return woken

    play = Play(story)
    play.signal("go")

    assert play.result == [0, 1, 2, 3, 4]


def test_lock_lets_one_in_at_a_time_in_the_order_of_asking() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        lock, log = asyncio.Lock(), []

        async def enter(number: int) -> None:
            async with lock:
                log.append(f"in {number}")
                await ctx.run(work, str(number))
                log.append(f"out {number}")

        await asyncio.gather(*(enter(number) for number in range(3)))
        return log

    played(Play(story), ["in 0", "out 0", "in 1", "out 1", "in 2", "out 2"])


def test_semaphore_lets_as_many_in_as_it_counts() -> None:
    @workflow
    async def story(ctx: Context) -> int:
        limit, inside, most = asyncio.BoundedSemaphore(3), 0, 0

        async def enter(number: int) -> None:
            nonlocal inside, most
            async with limit:
                inside += 1
                most = max(most, inside)
                await ctx.run(work, str(number))
                inside -= 1

        await asyncio.gather(*(enter(number) for number in range(10)))
        return most

    played(Play(story), 3)


def test_condition_wakes_as_many_as_asked() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        condition, woken = asyncio.Condition(), []

        async def wait(number: int) -> None:
            async with condition:
                await condition.wait()
                woken.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(4)]
        await ctx.sleep(1)
        async with condition:
            condition.notify(2)
        await ctx.sleep(1)
        for task in tasks[2:]:
            task.cancel()
        await asyncio.wait(tasks)
        return woken

    played(Play(story), [0, 1])


def test_barrier_lets_all_through_together() -> None:
    @workflow
    async def story(ctx: Context) -> int:
        barrier, through = asyncio.Barrier(3), []

        async def come(number: int) -> None:
            await ctx.run(work, str(number))
            await barrier.wait()
            through.append(number)

        await asyncio.gather(*(come(number) for number in range(3)))
        return len(through)

    played(Play(story), 3)


# --- shield and cancel ---


async def ctx_step(ctx: Context, name: str) -> str:
    return await ctx.run(work, name)


def test_shield_keeps_what_is_inside_going() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        inner = ctx.run(work, "precious")
        try:
            async with asyncio.timeout(5):
                await asyncio.shield(inner)
        except TimeoutError:
            return await inner
        return "in time"

    play = Play(story)
    play.fire()
    assert "ActivityCancelRequested" not in play.kinds
    play.complete(1, "precious")

    assert play.result == "precious"
    assert play.replay() is None


def test_task_that_is_cancelled_withdraws_what_it_asked_for() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        task = asyncio.create_task(ctx_step(ctx, "slow"))
        await ctx.sleep(1)
        task.cancel("enough")
        try:
            await task
        except asyncio.CancelledError as error:
            return f"cancelled: {error}"
        return "done"

    play = Play(story)
    play.fire()

    assert play.result == "cancelled: enough"
    assert play.kinds.count("ActivityCancelRequested") == 1
    assert play.replay() is None


def test_request_that_is_withdrawn_before_the_turn_ends_never_was() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        ctx.run(work, "never").cancel()
        ctx.sleep(5).cancel()
        ctx.run_child("other").cancel()
        return await ctx.run(work, "real")

    play = Play(story)

    assert play.kinds == ["WorkflowStarted", "ActivityScheduled"]
    play.complete(4, "real")
    assert play.result == "real"
    assert play.replay() is None
