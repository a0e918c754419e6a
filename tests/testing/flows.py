"""The workflows and activities that the tests of virtual time run."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any, Final, TypeVar

from holdfast import (
    ActivityFailed,
    ActivityTimedOut,
    Context,
    Retry,
    WorkflowHandle,
    activity,
    activity_info,
    heartbeat,
    workflow,
)
from holdfast.activities.definitions import Activity
from holdfast.code.definitions import Workflow

R = TypeVar("R")

notes: Final[list[str]] = []
"""What activities did, in order."""

_released = threading.Event()
_gates: dict[str, asyncio.Event] = {}


def open_gate(name: str) -> None:
    """Let an activity that waits at a gate go on."""
    _gates[name].set()


def release_threads() -> None:
    """Let every thread that hangs go on."""
    _released.set()
    _released.clear()


async def result_now(handle: WorkflowHandle[R]) -> R:
    """The result of an execution that has ended by now."""
    status = await handle.status()
    assert status.closed_at is not None, status
    return await handle.result()


# --- activities ---


@activity
async def note(text: str) -> str:
    notes.append(text)
    return text


@activity
def note_in_thread(text: str) -> str:
    time.sleep(0.01)  # real work of a thread
    notes.append(text)
    return text


@activity
async def note_slowly(text: str) -> str:
    await asyncio.sleep(0.01)  # real waiting, as for a network
    notes.append(text)
    return text


@activity(retry=Retry(max_attempts=4, initial=60, factor=2, maximum=600, jitter=0))
async def fail_thrice() -> int:
    attempt = activity_info().attempt
    notes.append(f"attempt {attempt}")
    if attempt < 4:
        raise ValueError(f"attempt {attempt} fails")
    return attempt


@activity
async def hang() -> None:
    notes.append(f"hanging in attempt {activity_info().attempt}")
    await asyncio.Event().wait()


@activity(executor="thread")
def hang_in_thread() -> None:
    notes.append("hanging in a thread")
    _released.wait(timeout=10)


@activity(heartbeat=30, retry=Retry(max_attempts=2, initial=10, jitter=0))
async def beat_once_and_hang() -> str:
    info = activity_info()
    if info.attempt == 2:
        return f"the first attempt had come to {info.heartbeat_details}"
    heartbeat("half")
    await asyncio.Event().wait()
    return "never"


@activity(max_concurrent=1, retry=Retry(max_attempts=1))
async def hang_alone() -> None:
    notes.append("hanging alone")
    await asyncio.Event().wait()


@activity(max_concurrent=1, retry=Retry(max_attempts=2, initial=10, jitter=0))
async def wait_at_gate(name: str) -> None:
    notes.append(name)
    if name == "second":
        raise ValueError("the second fails")
    _gates[name] = asyncio.Event()
    await _gates[name].wait()


@activity(rate_per_second=1)
async def note_once_a_second(text: str) -> str:
    notes.append(text)
    return text


# --- workflows ---


@workflow
async def sleep_for(ctx: Context, days: float) -> str:
    await ctx.sleep(timedelta(days=days))
    return await ctx.run(note, f"slept {days:g} days")


@workflow
async def wake_hourly(ctx: Context, hours: int) -> int:
    for _ in range(hours):
        await asyncio.sleep(3600)
    return hours


@workflow
async def retry_thrice(ctx: Context) -> int:
    return await ctx.run(fail_thrice)


@workflow
async def time_out(ctx: Context, options: dict[str, Any]) -> str:
    retry = Retry(max_attempts=options.pop("attempts", 1), initial=10, jitter=0)
    try:
        await ctx.run(hang.with_options(retry=retry, **options))
    except ActivityTimedOut as error:
        return f"{error.type} in attempt {error.attempt}"
    return "it ended"


@workflow
async def time_out_in_thread(ctx: Context) -> str:
    try:
        await ctx.run(hang_in_thread.with_options(start_to_close=60, retry=Retry(max_attempts=1)))
    except ActivityTimedOut as error:
        return error.type
    return "it ended"


@workflow
async def beat(ctx: Context) -> str:
    return await ctx.run(beat_once_and_hang)


@workflow
async def give_up_after(ctx: Context, minutes: float) -> str:
    try:
        async with asyncio.timeout(minutes * 60):
            await ctx.run(hang)
    except TimeoutError:
        return f"gave up at {ctx.now():%H:%M}"
    return "it ended"


@workflow
async def queue_behind(ctx: Context, options: dict[str, Any]) -> str:
    ahead = asyncio.ensure_future(ctx.run(hang_alone))
    try:
        await ctx.run(hang_alone.with_options(**options))
    except ActivityTimedOut as error:
        return f"{error.type} at {ctx.now():%H:%M:%S}"
    finally:
        ahead.cancel()
    return "it ended"


@workflow
async def queue_twice(ctx: Context) -> str:
    """The second waits for its place, gets it, fails, and waits again, behind the third."""
    first, second = ctx.run(wait_at_gate, "first"), ctx.run(wait_at_gate.with_options(schedule_to_start=60), "second")
    third = ctx.run(wait_at_gate, "third")
    await first
    try:
        await second
    except ActivityTimedOut as error:
        third.cancel()
        return f"{error.type} in attempt {error.attempt}"
    return "it ended"


@workflow
async def note_at_a_rate(ctx: Context, count: int) -> str:
    await asyncio.gather(*(ctx.run(note_once_a_second, str(number)) for number in range(count)))
    return f"{ctx.now():%H:%M:%S}"


@workflow
async def work_daily(ctx: Context, how: str, days: int) -> str:
    """A step of real work each day: time must not run ahead of it."""
    work = {"thread": note_in_thread, "slow": note_slowly, "plain": note}[how]
    for day in range(days):
        await ctx.run(work, f"day {day}")
        await ctx.sleep(timedelta(days=1))
    return f"{ctx.now():%d %H:%M:%S}"


@workflow
async def await_signal(ctx: Context, days: float) -> str:
    """Sleeps after its signal."""
    word = await ctx.wait_for_signal("word", str)
    await ctx.sleep(timedelta(days=days))
    return word


@workflow
async def fail_after(ctx: Context, hours: float) -> None:
    await ctx.sleep(timedelta(hours=hours))
    try:
        await ctx.run(hang.with_options(start_to_close=1, retry=Retry(max_attempts=1)))
    except (ActivityFailed, ActivityTimedOut) as error:
        raise ValueError("too late") from error


@workflow
async def run_and_sleep(ctx: Context) -> str:
    first = await ctx.run(note, "before")
    await ctx.sleep(timedelta(days=2))
    second = await ctx.run(note, "after")
    return f"{first}, {second}"


@workflow
async def continue_daily(ctx: Context, days: int) -> str:
    await ctx.sleep(timedelta(days=1))
    if days > 1:
        ctx.continue_as(days - 1)
    return f"{ctx.now():%d}"


WORKFLOWS: Final[list[Workflow[..., Any]]] = [
    sleep_for,
    wake_hourly,
    retry_thrice,
    time_out,
    time_out_in_thread,
    beat,
    give_up_after,
    queue_behind,
    queue_twice,
    note_at_a_rate,
    work_daily,
    await_signal,
    fail_after,
    run_and_sleep,
    continue_daily,
]
ACTIVITIES: Final[list[Activity[..., Any]]] = [
    note,
    note_in_thread,
    note_slowly,
    fail_thrice,
    hang,
    hang_in_thread,
    beat_once_and_hang,
    hang_alone,
    wait_at_gate,
    note_once_a_second,
]
