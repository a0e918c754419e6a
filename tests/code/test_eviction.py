"""Unloading a program: its code ends where it stands, and nothing that it does on the way out has an effect."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import Context, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.code.loop import MOST_CLOSINGS
from holdfast.code.program import CodeProgram
from holdfast.core import events
from holdfast.core.payloads import DEFAULT_LIMIT
from tests.code.playing import EXECUTION_ID, Play

SEEN: list[str] = []


@activity
async def work(name: str) -> str:
    return name


@workflow
async def awaiting(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("go")
    finally:
        await ctx.run(work, "clean up")
        await ctx.sleep(5)
        SEEN.append("cleaned up")


@workflow
async def awaiting_asyncio(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("go")
    finally:
        await asyncio.sleep(5)
        await asyncio.sleep(0)
        SEEN.append("slept")


@workflow
async def starting_tasks(ctx: Context) -> None:
    async def background() -> None:
        SEEN.append("background")

    try:
        await ctx.wait_for_signal("go")
    finally:
        task = asyncio.create_task(background())
        await task


@workflow
async def grouping(ctx: Context) -> None:
    async def step(name: str) -> None:
        try:
            await ctx.run(work, name)
        finally:
            await ctx.run(work, f"clean {name}")
            SEEN.append(name)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(step(str(number)))
        await ctx.wait_for_signal("go")


@workflow
async def calling(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("go")
    finally:
        for call in CALLS:
            try:
                call(ctx)
            except BaseException as error:
                SEEN.append(type(error).__name__)


CALLS: list[Callable[[Context], Any]] = [
    lambda ctx: ctx.run(work, "late"),
    lambda ctx: ctx.start_child("other"),
    lambda ctx: ctx.sleep(1),
    lambda ctx: ctx.signal_external_workflow("other", "go"),
    lambda ctx: ctx.side_effect(lambda: SEEN.append("effect")),
    lambda ctx: ctx.patched("late"),
    lambda ctx: ctx.set_state("late"),
    lambda ctx: ctx.wait_any(ctx.timer(5)),
]


@workflow
async def stubborn(ctx: Context) -> None:
    for _ in range(1_000):
        try:
            await ctx.wait_for_signal("go")
        except BaseException:
            SEEN.append("swallowed")


@workflow
async def endless(ctx: Context) -> None:
    while True:
        try:
            await ctx.wait_for_signal("go")
        except BaseException:
            SEEN.append("swallowed")


@workflow
async def managing(ctx: Context) -> None:
    @asynccontextmanager
    async def resource() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await ctx.run(work, "release")
            SEEN.append("released")

    async with resource():
        await asyncio.gather(ctx.run(work, "a"), asyncio.shield(ctx.run(work, "b")), ctx.wait_for_signal("go"))


@pytest.fixture(autouse=True)
def _forget() -> None:
    SEEN.clear()


@pytest.mark.parametrize(
    "definition", [awaiting, awaiting_asyncio, starting_tasks, grouping, managing], ids=lambda one: one.name
)
def test_clean_up_of_an_unloaded_program_goes_nowhere(definition: Workflow[..., Any]) -> None:
    story = Play(definition)
    asked = list(story.asked)

    story.program.close()
    gc.collect()

    assert SEEN == []
    assert story.program.issuer.commands == []
    assert not story.program.loop._ready
    assert story.asked == asked


@pytest.mark.parametrize("definition", [stubborn, endless], ids=lambda one: one.name)
def test_code_that_will_not_end_is_left_behind_and_never_runs_again(definition: Workflow[..., Any]) -> None:
    story = Play(definition)
    program = story.program

    with pytest.warns(RuntimeWarning, match=f"^Expected workflow '{definition.name}' to end when it is unloaded, but it"):
        program.close()
    program.close()
    del story, program
    gc.collect()

    assert len(SEEN) == MOST_CLOSINGS


def test_no_call_of_a_dead_context_does_anything() -> None:
    story = Play(calling)

    story.program.close()

    assert SEEN == ["GeneratorExit"], "the side effect, which has no value to give"
    assert story.program.issuer.commands == []


@workflow
async def retrying(ctx: Context, how: str) -> None:
    while True:
        try:
            await ctx.wait_for_signal("go")
            await WAYS[how](ctx)
        except BaseException:
            SEEN.append("swallowed")
            await WAYS[how](ctx)


WAYS: dict[str, Callable[[Context], Any]] = {
    "activity": lambda ctx: ctx.run(work, "late"),
    "child": lambda ctx: ctx.run_child("other"),
    "sleep": lambda ctx: ctx.sleep(0),
    "asyncio": lambda ctx: asyncio.sleep(1),
    "task": lambda ctx: asyncio.create_task(asyncio.sleep(0)),
    "gather": lambda ctx: asyncio.gather(ctx.run(work, "late"), asyncio.sleep(0)),
    "signal": lambda ctx: ctx.wait_for_signal("go", timeout=0),
    "any": lambda ctx: ctx.wait_any(ctx.timer(0)),
}


@pytest.mark.parametrize("how", WAYS)
def test_code_that_catches_everything_does_not_spin_when_it_is_unloaded(how: str) -> None:
    story = Play(retrying, how)

    story.program.close()
    gc.collect()

    assert SEEN == ["swallowed"]


def test_unloaded_program_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def talking(ctx: Context) -> None:
        try:
            await ctx.wait_for_signal("go")
        finally:
            ctx.logger.warning("good-bye")

    story = Play(talking)
    with caplog.at_level(logging.INFO):
        story.program.close()

    assert caplog.records == []


def test_what_was_unloaded_is_replayed_to_where_it_stood() -> None:
    story = Play(grouping)
    story.complete(1, "0")
    story.program.close()

    assert story.replay() is None


def test_a_program_whose_start_is_held_may_be_dropped_without_being_run() -> None:
    started = events.WorkflowStarted(
        workflow="awaiting", workflow_id="w", input=awaiting.signature.encode_arguments((), {}, DEFAULT_LIMIT), held=True
    )
    program = CodeProgram(awaiting, "default", EXECUTION_ID)
    program.advance(started, 1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del program
        gc.collect()

    assert caught == []


def test_closing_in_the_middle_of_a_loops_turn_leaves_that_loop_running() -> None:
    async def main() -> None:
        story = Play(awaiting_asyncio)
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def close() -> None:
            story.program.close()
            done.set_result(asyncio.get_running_loop() is loop)

        loop.call_soon(close)
        assert await done

    asyncio.run(main())
