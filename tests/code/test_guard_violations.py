"""What the guard refused stops the execution, whatever its code did about it; other lost exceptions are logged."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import Any

import msgspec
import pytest

from holdfast import Context, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import events
from holdfast.core.behaviours import KEPT_VIOLATIONS, PRESENT
from holdfast.core.events import HistoryTurn
from tests.code.playing import EXECUTION_ID, Play, replay


def read_clock() -> float:
    return time.time()


def connect() -> None:
    asyncio.get_running_loop().add_reader(0, print)


def draw() -> float:
    return random.random()


def open_file() -> None:
    open("/etc/hostname").close()  # noqa: PTH123 - workflow code, as beginners write it


async def violate(function: Any) -> None:
    function()


async def swallow(ctx: Context, function: Any) -> None:
    try:
        function()
    except Exception:
        pass


async def swallow_everything(ctx: Context, function: Any) -> None:
    try:
        function()
    except:  # noqa: E722 - what beginners write
        pass


async def never_awaited(ctx: Context, function: Any) -> None:
    asyncio.create_task(violate(function))  # type: ignore[unused-awaitable]  # noqa: RUF006 - what beginners write


async def gathered(ctx: Context, function: Any) -> None:
    await asyncio.gather(violate(function), return_exceptions=True)


async def waited_for(ctx: Context, function: Any) -> None:
    await asyncio.wait([asyncio.create_task(violate(function))])


async def in_a_callback(ctx: Context, function: Any) -> None:
    asyncio.get_running_loop().call_soon(function)


async def grouped(ctx: Context, function: Any) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(violate(function))
    except* Exception:
        pass


def make(way: Any, function: Any, signal: str = "") -> Workflow[..., Any]:
    @workflow(name="order")
    async def order(ctx: Context) -> str:
        if signal:
            await ctx.wait_for_signal(signal)
        await way(ctx, function)
        await ctx.sleep(60)
        return "went on"

    return order


WAYS = [swallow, swallow_everything, never_awaited, gathered, waited_for, in_a_callback, grouped]


@pytest.mark.parametrize("way", WAYS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("function", [read_clock, connect, draw, open_file], ids=lambda one: one.__name__)
def test_R7_refusal_stops_the_execution_however_it_is_handled(way: Any, function: Any) -> None:
    play = Play(make(way, function, "go"))
    play.signal("go")

    assert play.blocked is not None
    assert play.blocked.type == "ForbiddenInWorkflow"
    assert play.kinds == ["WorkflowStarted"], "nothing of the turn is recorded"


def test_R7_refusal_counts_on_replay_too() -> None:
    play = Play(make(swallow, lambda: None))

    refused = replay(make(swallow, read_clock), play.history, EXECUTION_ID)

    assert refused is not None
    assert refused.type == "ForbiddenInWorkflow"


def test_R7_older_executions_go_on_as_they_did() -> None:
    play = Play(make(swallow, lambda: None))
    started = play.history[0].events[0]
    assert isinstance(started, events.WorkflowStarted)
    old = msgspec.structs.replace(started, behaviours=tuple(sorted(set(PRESENT) - {KEPT_VIOLATIONS})))
    turn = play.history[0]

    assert replay(make(swallow, read_clock), [HistoryTurn(turn.first, turn.at, (old, *turn.events[1:]))]) is None


def test_refusal_in_one_execution_does_not_reach_the_next() -> None:
    assert Play(make(swallow, read_clock)).blocked is not None

    play = Play(make(swallow, lambda: None))
    assert play.blocked is None
    play.fire()
    assert play.result == "went on"


def test_refusal_while_a_program_is_unloaded_is_nobodys() -> None:
    @workflow(name="order")
    async def order(ctx: Context) -> None:
        try:
            await ctx.sleep(1)
        finally:
            time.time()

    play = Play(order)
    play.program.close()

    assert Play(make(swallow, lambda: None)).blocked is None


async def fail_later() -> None:
    await asyncio.sleep(0)
    raise ValueError("bad")


@workflow
async def forgetful(ctx: Context) -> str:
    task = asyncio.create_task(fail_later(), name="forgotten")
    await ctx.sleep(1)
    del task
    return "done"


def test_exception_in_a_task_that_nobody_awaits_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"):
        play = Play(forgetful)
        play.fire()
        assert play.result == "done"
        assert play.replay() is None
        play.program.close()

    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "task 'forgotten' of the workflow raised ValueError: bad at" in record.getMessage()
    assert "test_guard_violations.py:" in record.getMessage()
    assert record.__dict__["execution_id"] == EXECUTION_ID
    assert record.__dict__["event"] == "task_not_awaited"


def test_exception_that_somebody_looks_at_later_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    @workflow(name="order")
    async def order(ctx: Context) -> str:
        task = asyncio.create_task(fail_later())
        await ctx.sleep(1)
        try:
            await task
        except ValueError:
            return "caught"
        return "?"

    with caplog.at_level(logging.WARNING, "holdfast"):
        play = Play(order)
        play.fire()
        assert play.result == "caught"
        play.program.close()

    assert caplog.records == []
