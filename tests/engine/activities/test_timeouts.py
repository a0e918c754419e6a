"""A3: the four timeouts of an activity, and heartbeats."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast import ActivityTimedOut, Context, Retry, activity, activity_info, heartbeat, workflow
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow
from holdfast.core import events
from tests.engine.conftest import OpenEngine
from tests.engine.support.held_activities import Door
from tests.engine.support.histories import find_events
from tests.eventually import eventually

ONCE = Retry(max_attempts=1)
AT_ONCE = Retry(initial=0, jitter=0)


def call(task: Activity[..., Any], *args: Any) -> Workflow[..., Any]:
    """A workflow that runs one activity and says how that went."""

    @workflow
    async def order(ctx: Context) -> Any:
        try:
            return await ctx.run(task, *args)
        except ActivityTimedOut as error:
            return [error.type, error.attempt]

    return order


# --- start to close ---


async def test_A3_start_to_close_ends_an_attempt_and_the_next_may_succeed(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(start_to_close=10, retry=AT_ONCE)
    async def slow() -> int:
        if activity_info().attempt == 1:
            await door.wait()
        return activity_info().attempt

    order = call(slow)
    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(9.999)
    assert door.turned_away == []
    await engine.clock.advance(0.001)

    assert await handle.result() == 2
    assert door.turned_away == [None]


async def test_A3_start_to_close_of_the_last_attempt_reaches_the_workflow(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(start_to_close=10, retry=Retry(max_attempts=2, initial=0))
    async def slow() -> None:
        await door.wait()

    order = call(slow)
    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    for attempt in (1, 2):
        await eventually(lambda attempt=attempt: len(door.came) == attempt)  # type: ignore[misc]
        await engine.clock.advance(10)

    assert await handle.result() == ["start_to_close", 2]


async def test_A3_start_to_close_counts_from_the_start_and_not_from_the_queue(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(start_to_close=10, retry=ONCE, max_concurrent=1)
    async def slow(number: int) -> int:
        await door.wait(number)
        return number

    @workflow
    async def order(ctx: Context) -> list[int]:
        return await asyncio.gather(*(ctx.run(slow, number) for number in range(2)))

    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(9)
    door.open()
    await eventually(lambda: len(door.came) == 2)
    door.shut()
    await engine.clock.advance(9)
    door.open()

    assert await handle.result() == [0, 1]


async def test_A3_start_to_close_does_not_wait_for_a_thread_that_will_not_end(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(start_to_close=10, retry=ONCE)
    def stuck() -> None:
        door.block()

    order = call(stuck)
    engine = await open_engine(order, stuck)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(10)

    assert await handle.result() == ["start_to_close", 1]
    door.open()


# --- schedule to start ---


async def test_A3_schedule_to_start_ends_what_found_no_place(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(schedule_to_start=30)
    async def slow(number: int) -> int:
        await door.wait(number)
        return number

    @workflow
    async def order(ctx: Context) -> list[Any]:
        first, second = ctx.run(slow, 1), ctx.run(slow, 2)
        try:
            await second
        except ActivityTimedOut as error:
            return [error.type, await first]
        return []

    engine = await open_engine(order, slow, max_activities=1)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(29)
    assert await find_events(engine, handle.workflow_id, events.ActivityTimedOut) == []
    await engine.clock.advance(1)
    door.open()

    assert await handle.result() == ["schedule_to_start", 1]
    assert door.came == [1]


async def test_A3_schedule_to_start_of_an_earlier_attempt_does_not_end_a_later_one(open_engine: OpenEngine) -> None:
    door, failing = Door(), [True]

    @activity(schedule_to_start=30, retry=Retry(initial=5, jitter=0), max_concurrent=1)
    async def shared(name: str) -> str:
        await door.wait(name)
        door.shut()
        if name == "late" and failing:
            failing.clear()
            raise ValueError("once")
        return name

    @workflow
    async def order(ctx: Context) -> list[str]:
        early, late = ctx.run(shared, "early"), ctx.run(shared, "late")
        again = asyncio.create_task(after(ctx))
        return [await early, await late, await again]

    async def after(ctx: Context) -> str:
        await ctx.sleep(22)
        return await ctx.run(shared.with_options(schedule_to_start=300), "again")

    engine = await open_engine(order, shared)
    handle = await engine.start(order)
    await eventually(lambda: door.came == ["early"])
    await engine.clock.advance(20)
    door.open()  # early ends, late gets the place
    await eventually(lambda: door.came == ["early", "late"])
    await engine.clock.advance(3)  # again waits for the place
    door.open()  # late fails once; again gets the place
    await eventually(lambda: door.came == ["early", "late", "again"])
    await engine.clock.advance(5)  # late's second attempt waits for the place
    await engine.clock.advance(5)  # the limit of its first attempt would have passed now
    door.open()
    await eventually(lambda: len(door.came) == 4)
    door.open()

    assert await handle.result() == ["early", "late", "again"]


# --- schedule to close ---


async def test_A3_schedule_to_close_bounds_all_attempts_together(open_engine: OpenEngine) -> None:
    @activity(schedule_to_close=100, retry=Retry(initial=30, factor=1, jitter=0))
    async def fail() -> None:
        raise ValueError("never")

    order = call(fail)
    engine = await open_engine(order, fail)
    handle = await engine.start(order)
    await engine.clock.advance(99)
    assert await find_events(engine, handle.workflow_id, events.ActivityTimedOut) == []
    await engine.clock.advance(1)

    assert await handle.result() == ["schedule_to_close", 4]
    assert (await engine.store.count()).timers == 0


async def test_A3_schedule_to_close_ends_a_running_attempt_for_good(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(schedule_to_close=100, retry=AT_ONCE)
    async def slow() -> None:
        await door.wait()

    order = call(slow)
    engine = await open_engine(order, slow)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(100)

    assert await handle.result() == ["schedule_to_close", 1]
    assert door.turned_away == [None]


async def test_A3_schedule_to_close_ends_what_found_no_place(open_engine: OpenEngine) -> None:
    door = Door()

    @activity
    async def hog() -> None:
        await door.wait("hog")

    @activity(schedule_to_close=100)
    async def patient() -> None:
        await door.wait("patient")

    @workflow
    async def order(ctx: Context) -> Any:
        other = ctx.run(hog)
        try:
            await ctx.run(patient)
        except ActivityTimedOut as error:
            other.cancel()
            return error.type
        return None

    engine = await open_engine(order, hog, patient, max_activities=1)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(100)

    assert await handle.result() == "schedule_to_close"
    assert door.came == ["hog"]


async def test_A3_schedule_to_close_counts_on_over_a_crash(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(schedule_to_close=100)
    async def slow() -> None:
        await door.wait()

    order = call(slow)
    engine = await open_engine(order, slow)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    await engine.crash()
    await engine.clock.advance(60)
    await engine.restart()
    await eventually(lambda: len(door.came) == 2)
    await engine.clock.advance(40)

    assert await engine.handle("order").result() == ["schedule_to_close", 2]


async def test_A3_schedule_to_close_that_passed_while_everything_was_down_ends_it_on_start(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(schedule_to_close=100)
    async def slow() -> None:
        await door.wait()

    order = call(slow)
    engine = await open_engine(order, slow)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: door.came)
    await engine.crash()
    await engine.clock.advance(200)
    await engine.restart()

    assert await engine.handle("order").result() == ["schedule_to_close", 2]


# --- heartbeats ---


async def test_A3_heartbeat_that_stays_away_ends_the_attempt(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(heartbeat=5, retry=ONCE)
    async def silent() -> None:
        heartbeat()
        await door.wait()

    order = call(silent)
    engine = await open_engine(order, silent)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.clock.advance(5)

    assert await handle.result() == ["heartbeat", 1]


async def test_A3_heartbeat_keeps_an_attempt_alive(open_engine: OpenEngine) -> None:
    ticks: asyncio.Queue[int] = asyncio.Queue()

    @activity(heartbeat=5, retry=ONCE)
    async def alive() -> str:
        while await ticks.get() > 0:
            heartbeat()
        return "done"

    order = call(alive)
    engine = await open_engine(order, alive)
    handle = await engine.start(order)
    for _ in range(10):
        ticks.put_nowait(1)
        await eventually(ticks.empty)
        await engine.clock.advance(4)
    ticks.put_nowait(0)

    assert await handle.result() == "done"


async def test_A3_heartbeat_details_are_given_to_the_next_attempt(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(heartbeat=5, retry=AT_ONCE)
    async def copy() -> list[Any]:
        done = activity_info().heartbeat_details or {"rows": 0}
        if activity_info().attempt < 3:
            heartbeat({"rows": done["rows"] + 100})
            await door.wait()
        return [activity_info().attempt, done]

    order = call(copy)
    engine = await open_engine(order, copy)
    handle = await engine.start(order)
    for attempt in (1, 2):
        await eventually(lambda attempt=attempt: len(door.came) == attempt)  # type: ignore[misc]
        await engine.clock.advance(5)

    assert await handle.result() == [3, {"rows": 200}]


async def test_A3_heartbeat_details_survive_a_failure_without_a_new_report(open_engine: OpenEngine) -> None:
    @activity(retry=AT_ONCE)
    async def copy() -> Any:
        if activity_info().attempt == 1:
            heartbeat("half")
            raise ValueError("first")
        if activity_info().attempt == 2:
            raise ValueError("second")
        return activity_info().heartbeat_details

    order = call(copy)
    engine = await open_engine(order, copy)
    handle = await engine.start(order)

    assert await handle.result() == "half"


async def test_A3_heartbeat_details_survive_a_crash(open_engine: OpenEngine) -> None:
    door = Door()

    @activity
    async def copy() -> list[Any]:
        found = activity_info().heartbeat_details
        heartbeat((found or 0) + 1)
        await door.wait()
        return [activity_info().attempt, found]

    order = call(copy)
    engine = await open_engine(order, copy)
    await engine.start(order, workflow_id="order")
    for crashes in (1, 2):
        await eventually(lambda crashes=crashes: len(door.came) == crashes)  # type: ignore[misc]
        await engine.settle()
        await engine.restart()
    await eventually(lambda: len(door.came) == 3)
    door.open()

    assert await engine.handle("order").result() == [3, 2]


async def test_A3_heartbeat_works_from_a_thread(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(heartbeat=5, retry=AT_ONCE)
    def copy() -> Any:
        if activity_info().attempt == 1:
            heartbeat("from a thread")
            door.block()
        return activity_info().heartbeat_details

    order = call(copy)
    engine = await open_engine(order, copy)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.settle()
    await engine.clock.advance(5)

    assert await handle.result() == "from a thread"
    door.open()


async def test_A3_heartbeats_in_quick_succession_are_stored_as_one(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(heartbeat=5, retry=AT_ONCE)
    async def hasty() -> Any:
        if activity_info().attempt == 1:
            for number in range(10_000):
                heartbeat(number)
            await door.wait()
        return activity_info().heartbeat_details

    order = call(hasty)
    engine = await open_engine(order, hasty)
    handle = await engine.start(order)
    await eventually(lambda: door.came)
    await engine.settle()
    assert (await handle.status()).state_version <= 3
    await engine.clock.advance(5)

    assert await handle.result() == 9_999
