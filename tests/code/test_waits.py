"""Where workflow code waits, and for what: what a program at rest tells people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from holdfast import Context, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.core.program import LocalWait, Waits
from tests.code.playing import Play, make_signal


@activity
async def work() -> str:
    return "done"


Begin: TypeAlias = Callable[[Workflow[..., Any]], Play]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins a play, whose code is closed when the test is over."""
    plays: list[Play] = []

    def begin(story: Workflow[..., Any]) -> Play:
        plays.append(Play(story))
        return plays[-1]

    yield begin
    for play in plays:
        play.program.close()


def waits_of(play: Play) -> Waits:
    found = play.program.find_waits()
    assert found is not None
    return found


def line_of(function: Any, offset: int) -> str:
    """A line of a workflow's function, counted from its `async def`."""
    code = function.function.__code__
    return f"{code.co_filename}:{code.co_firstlineno + 1 + offset}"  # the decorator comes first


def told(waits: tuple[LocalWait, ...]) -> set[tuple[str, str | None]]:
    return {(one.what, one.place) for one in waits}


def test_a_plain_event_is_told_with_its_line(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await asyncio.Event().wait()

    waits = waits_of(begin(story))

    assert waits.local == (LocalWait("Event.wait", line_of(story, 1), "Task-1"),)
    assert waits.lines == (line_of(story, 1),)


def test_O3_the_timer_of_an_asyncio_sleep_is_told_with_the_line_that_waits(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        async def nap() -> None:
            await asyncio.sleep(7)

        await asyncio.gather(asyncio.sleep(9), nap())

    waits = waits_of(begin(story))

    assert set(waits.places.values()) == {line_of(story, 2), line_of(story, 4)}
    assert waits.local == ()


def test_each_lock_queue_and_future_of_each_task_is_told(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        queue: asyncio.Queue[int] = asyncio.Queue()
        lock, condition, semaphore = asyncio.Lock(), asyncio.Condition(), asyncio.Semaphore(0)
        await lock.acquire()

        async def take() -> None:
            await queue.get()

        async def enter() -> None:
            async with lock:
                pass

        async def be_notified() -> None:
            async with condition:
                await condition.wait()

        async with asyncio.TaskGroup() as group:
            group.create_task(take())
            group.create_task(enter())
            group.create_task(be_notified())
            group.create_task(semaphore.acquire())
            await asyncio.get_running_loop().create_future()

    waits = waits_of(begin(story))

    assert told(waits.local) == {
        ("Queue.get", line_of(story, 6)),
        ("Lock.acquire", line_of(story, 9)),
        ("Condition.wait", line_of(story, 14)),
        ("Semaphore.acquire", None),
        ("Future", line_of(story, 21)),
    }


def test_what_is_asked_for_is_no_local_wait_however_it_is_awaited(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        async def by_shield() -> None:
            await asyncio.shield(ctx.run(work))

        async def by_wait() -> None:
            await asyncio.wait([ctx.run(work)])

        async def by_race() -> None:
            await ctx.wait_any(ctx.timer(5), ctx.run(work))

        async def by_completion() -> None:
            for one in asyncio.as_completed([ctx.run(work)]):
                await one

        await asyncio.gather(
            by_shield(), by_wait(), by_race(), by_completion(), asyncio.sleep(9), ctx.sleep(9), ctx.run(work)
        )

    waits = waits_of(begin(story))

    assert waits.local == ()
    assert waits.signals == ()


def test_a_lock_within_a_timeout_is_told_with_the_line_of_the_timeout(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await asyncio.wait_for(asyncio.Event().wait(), 60)

    assert told(waits_of(begin(story)).local) == {("Event.wait", line_of(story, 1))}


def test_activities_and_signals_are_told_with_the_line_that_awaits_them(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        async def decide() -> None:
            await ctx.wait_for_signal("approve")

        async def race() -> None:
            await ctx.wait_any(ctx.signal("stop"), ctx.timer(60))

        await asyncio.gather(ctx.run(work), decide(), race())

    waits = waits_of(begin(story))

    assert [(one.name, one.place) for one in waits.signals] == [("approve", line_of(story, 2)), ("stop", line_of(story, 5))]
    assert waits.places[1] == line_of(story, 7)


def test_a_function_that_is_called_is_told_by_its_innermost_line(begin: Begin) -> None:
    async def inner() -> None:
        await asyncio.Event().wait()

    @workflow
    async def story(ctx: Context) -> None:
        await inner()

    ((what, place),) = told(waits_of(begin(story)).local)

    assert what == "Event.wait"
    assert place == f"{inner.__code__.co_filename}:{inner.__code__.co_firstlineno + 1}"


@pytest.mark.parametrize("ends", ["completed", "failed"])
def test_code_that_has_ended_tells_nothing(begin: Begin, ends: str) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        if ends == "failed":
            raise ValueError("no")

    assert begin(story).program.find_waits() is None


# --- what is noted with the turn ---


def test_O4_waiting_for_an_own_event_alone_is_waiting_for_what_never_comes(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await ctx.wait_for_signal("go")
        await asyncio.wait([asyncio.get_running_loop().create_future()])

    play = begin(story)
    waiting = play.execution.details.waiting
    assert waiting is not None
    assert (waiting.kind, waiting.token) == ("signal", "go")

    play.signal("go")

    waiting = play.execution.details.waiting
    assert waiting is not None
    assert (waiting.kind, waiting.token) == ("never", line_of(story, 2))


@pytest.mark.parametrize("other", ["signal", "timer", "activity", "child", "answer"])
def test_O4_an_own_event_beside_something_else_may_still_be_set(begin: Begin, other: str) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        event = asyncio.Event()

        async def wake() -> None:
            match other:
                case "signal":
                    await ctx.wait_for_signal("go")
                case "timer":
                    await asyncio.sleep(5)
                case "activity":
                    await ctx.run(work)
                case "child":
                    await ctx.run_child("other")
                case _:
                    await ctx.signal_external_workflow("other", "go")
            event.set()

        waking = asyncio.create_task(wake())
        await event.wait()
        await waking

    waiting = begin(story).execution.details.waiting

    assert waiting is None or waiting.kind != "never"


def test_O4_a_turn_says_only_once_that_nothing_can_come(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await asyncio.Event().wait()

    play = begin(story)
    later = play.tell(make_signal("unwanted", 1))

    assert later.waits_forever is False
    assert play.execution.details.waiting is not None
    assert play.execution.details.waiting.kind == "never"


def test_O4_held_signals_are_no_reason_to_say_that_nothing_can_come(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        await ctx.run(work)
        return ctx.drain_signals("more")

    play = begin(story)
    play.signal("more", 1)

    assert play.execution.details.waiting is None


def test_waits_for_what_is_published_are_told_with_their_lines(begin: Begin) -> None:
    @workflow
    async def story(ctx: Context) -> None:
        task = asyncio.create_task(waits(ctx))
        await ctx.wait_any(ctx.message("m", "k"), ctx.broadcast("stop"))
        await task

    async def waits(ctx: Context) -> None:
        await ctx.wait_for_broadcast("other", timeout=60)

    found = waits_of(begin(story))

    own = waits.__code__
    assert found.places[1] == found.places[2] == line_of(story, 2)
    assert found.places[3] == f"{own.co_filename}:{own.co_firstlineno + 1}"
    assert found.local == ()
