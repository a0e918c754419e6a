"""The loop that workflow code runs on: the same order in every process, and no way to take the node down."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, activity, workflow
from holdfast.code.program import CodeProgram
from tests.code.playing import Play
from tests.code.stories import STORIES, play

ROOT = Path(__file__).parents[2]


@activity
async def work(name: str) -> str:
    return name


# --- the same in every process ---


def run_stories(hash_seed: int, histories: dict[str, Any] | None = None) -> dict[str, Any]:
    """Play all stories in a fresh process; `histories` are replayed there first."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.code.stories", str(hash_seed * 1_000)],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)},
        input=json.dumps(histories or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_R1_every_process_asks_for_the_same_and_replays_what_another_recorded() -> None:
    first = run_stories(1)

    others = [run_stories(seed, first) for seed in (2, 3, 42)]

    assert first.keys() == STORIES.keys()
    for name, history in first.items():
        for other in others:
            assert other[name] == history, name


@pytest.mark.parametrize("name", STORIES)
def test_R1_story_is_the_same_in_a_process_that_has_run_others(name: str) -> None:
    assert play(name) == play(name)


def test_R1_executions_that_run_side_by_side_do_not_touch_each_others_order() -> None:
    story = STORIES["cancelling_everything"]
    alone = play(story.name)

    together = [Play(story, execution_id=f"0197745a-0000-7abc-8def-0123456789{number:02x}") for number in range(20)]
    again = play(story.name)

    assert again == alone
    for one in together:
        one.program.close()


# --- a turn comes to rest ---


@workflow
async def restless(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    while True:
        await asyncio.sleep(0)


def test_loop_that_never_waits_blocks_its_execution() -> None:
    story = Play(restless)

    story.signal("go")

    assert story.blocked is not None
    assert story.blocked.type == "TurnTooLong"
    assert "Expected workflow 'restless' to come to rest, but it ran 100000 callbacks in one turn." in story.blocked.message


@workflow
async def leaving(ctx: Context, how: str) -> str:
    await ctx.wait_for_signal("go")
    if how == "task":
        await asyncio.create_task(leave())
    await leave()
    return "stayed"


async def leave() -> None:
    sys.exit("enough")


@pytest.mark.parametrize("how", ["task", "main"])
def test_workflow_that_calls_exit_fails_and_the_process_lives(how: str) -> None:
    story = Play(leaving, how)

    story.signal("go")

    assert (story.failure.type, story.failure.message) == ("SystemExit", "enough")
    assert story.replay() is None


def test_exit_in_a_task_that_nobody_awaits_changes_nothing() -> None:
    @workflow
    async def careless(ctx: Context) -> str:
        task = asyncio.create_task(leave())
        await ctx.sleep(1)
        return type(task.exception()).__name__

    story = Play(careless)
    story.fire()

    assert story.result == "SystemExit"


@pytest.mark.parametrize("seconds", [1e11, 1e30, float("inf"), float("nan")])
def test_sleep_that_nobody_can_mean_is_refused_in_the_workflow(seconds: float) -> None:
    @workflow
    async def sleepy(ctx: Context, length: str) -> str:
        try:
            await asyncio.sleep(float(length))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "slept"

    assert Play(sleepy, str(seconds)).result.startswith(("InvalidDuration: Expected", "ValueError"))


def test_timeout_that_nobody_can_mean_is_refused_in_the_workflow() -> None:
    @workflow
    async def patient(ctx: Context) -> str:
        try:
            async with asyncio.timeout(1e30):
                await ctx.wait_for_signal("go")
        except Exception as error:
            return type(error).__name__
        return "went"

    assert Play(patient).result == "InvalidDuration"


class Own(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError("no"), Own(), asyncio.CancelledError(), GeneratorExit()], ids=repr)
def test_exception_in_a_callback_does_not_stop_the_workflow(error: BaseException) -> None:
    @workflow
    async def careless(ctx: Context) -> str:
        def fail(*_: Any) -> None:
            raise error

        loop = asyncio.get_running_loop()
        loop.call_soon(fail)
        loop.call_later(1, fail)
        task = asyncio.create_task(asyncio.sleep(0))
        task.add_done_callback(fail)
        await ctx.sleep(2)
        return "went on"

    assert _run(Play(careless)).result == "went on"


# --- nothing leaks in or out ---

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


def test_context_of_the_caller_does_not_reach_the_workflow() -> None:
    @workflow
    async def curious(ctx: Context) -> list[str]:
        seen = [COLOUR.get()]
        await ctx.sleep(1)
        seen.append(await asyncio.create_task(look()))
        await ctx.wait_for_signal("go")
        asyncio.get_running_loop().call_soon(lambda: seen.append(COLOUR.get()))
        await asyncio.sleep(0)
        return seen

    async def look() -> str:
        return COLOUR.get()

    def begin() -> Play:
        COLOUR.set("red")
        story = Play(curious)
        story.fire()
        return story

    story = contextvars.Context().run(begin)
    COLOUR.set("green")
    story.signal("go")

    assert story.result == ["none", "none", "none"]


def test_context_that_the_workflow_sets_stays_inside() -> None:
    @workflow
    async def painter(ctx: Context) -> str:
        COLOUR.set("blue")
        await ctx.sleep(1)
        return await asyncio.create_task(look())

    async def look() -> str:
        return COLOUR.get()

    def run() -> tuple[str, str]:
        story = Play(painter)
        story.fire()
        return story.result, COLOUR.get()

    assert contextvars.Context().run(run) == ("blue", "none")


def test_running_loop_of_the_caller_is_back_after_a_turn() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def turn() -> None:
            Play(STORIES["gathering"])
            done.set_result(asyncio.get_running_loop() is loop)

        loop.call_soon(turn)
        assert await done
        assert asyncio.current_task() is not None

    asyncio.run(main())


@pytest.mark.parametrize(
    "method", ["run_in_executor", "call_soon_threadsafe", "create_server", "add_reader", "subprocess_exec", "stop", "close"]
)
def test_what_the_loop_cannot_do_is_refused_with_a_remedy(method: str) -> None:
    @workflow
    async def reaching(ctx: Context, method: str) -> None:
        getattr(asyncio.get_running_loop(), method)(None)

    blocked = Play(reaching, method).blocked

    assert blocked is not None
    assert blocked.message.startswith(
        f"Expected workflow 'reaching' to be deterministic, but it called the event loop's {method}()"
    )


def test_exception_that_nobody_awaits_does_not_stop_the_workflow() -> None:
    async def fail() -> None:
        raise ValueError("unheard")

    @workflow
    async def careless(ctx: Context) -> str:
        task = asyncio.create_task(fail())
        await ctx.sleep(1)
        del task
        gc.collect()
        return "done"

    story = Play(careless)
    story.fire()

    assert story.result == "done"


# --- async generators ---


async def count(ctx: Context, log: list[str]) -> AsyncIterator[int]:
    number = 0
    try:
        while True:
            await ctx.run(work, str(number))
            yield number
            number += 1
    finally:
        log.append("closing")
        await ctx.run(work, "clean up")
        log.append("closed")


def test_async_generator_that_is_left_early_is_closed_on_the_workflows_own_loop() -> None:
    @workflow
    async def counting(ctx: Context) -> list[str]:
        log: list[str] = []
        async for number in count(ctx, log):
            if number == 1:
                break
        await ctx.sleep(1)
        return log

    async def main() -> Play:
        story: Play = await _plainly(lambda: Play(counting))
        await _plainly(lambda: _run(story))
        return story

    story = asyncio.run(main())

    assert story.result == ["closing", "closed"]
    assert [json.loads(one)["input"]["data"] for one in story.asked if "activity_scheduled" in one] == [
        ["0"],
        ["1"],
        ["clean up"],
    ]
    assert story.replay() is None


def test_async_generator_of_an_evicted_program_runs_no_more() -> None:
    log: list[str] = []

    @workflow
    async def counting(ctx: Context) -> None:
        async for _ in count(ctx, log):
            await ctx.wait_for_signal("more")

    async def main() -> list[str]:
        story = await _plainly(lambda: Play(counting))
        await _plainly(lambda: story.complete(1, "0"))
        kinds = list(story.kinds)
        await _plainly(story.program.close)
        gc.collect()
        await asyncio.sleep(0)
        assert not story.program.loop._ready
        return kinds

    kinds = asyncio.run(main())

    assert kinds == ["WorkflowStarted", "ActivityScheduled", "ActivityCompleted"]
    assert "closed" not in log


def _run(story: Play) -> Play:
    story.run(lambda _name, args: args[0])
    return story


async def _plainly(function: Any) -> Any:
    """Call it as the engine does: from a callback, not inside of a task."""
    done = asyncio.get_running_loop().create_future()

    def call() -> None:
        try:
            done.set_result(function())
        except BaseException as error:
            done.set_exception(error)

    asyncio.get_running_loop().call_soon(call)
    return await done


def test_program_without_a_start_can_be_closed() -> None:
    program = CodeProgram(restless, "default", "0197745a-0000-7abc-8def-0123456789ab")

    program.close()
    program.close()

    assert program.loop.is_closed()
