"""Waiting for results: with a limit of time, and not in silence where the execution is blocked."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, Engine, ExecutionBlocked, ResultTimedOut, WorkflowTerminated, workflow
from holdfast.errors import InvalidArguments, InvalidDuration
from holdfast.log_events import LogEvent
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually


@workflow
async def waits(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow(name="changing")
async def changing(ctx: Context, again: bool = False) -> str:
    await ctx.wait_for_signal("ready")
    await ctx.wait_for_signal("go")
    return "done"


@workflow(name="changing")
async def changed(ctx: Context, again: bool = False) -> str:
    await ctx.sleep(3600)
    await ctx.wait_for_signal("go")
    return "done"


@workflow(name="changing")
async def chained(ctx: Context, again: bool = False) -> str:
    if not again:
        ctx.continue_as(True)
    await ctx.wait_for_signal("ready")
    await ctx.wait_for_signal("go")
    return "done"


def find(caplog: pytest.LogCaptureFixture, event: LogEvent) -> list[logging.LogRecord]:
    return [one for one in caplog.records if getattr(one, "event", None) == event]


async def start_blocked(engine: TestEngine) -> None:
    """Let there be an execution that its next signal blocks."""
    await engine.start(changing, workflow_id="w")
    await engine.signal_workflow("w", "ready")
    await engine.settle()
    await engine.restart(workflows=[changed])


@pytest.mark.parametrize("limit", [5, 5.0, timedelta(seconds=5)])
async def test_O2_timeout_says_what_the_execution_waits_for(open_engine: OpenEngine, limit: Any) -> None:
    engine = await open_engine(waits, auto_advance=True)
    handle = await engine.start(waits, workflow_id="w")
    before = engine.clock.now()

    with pytest.raises(TimeoutError, match=r"^Expected execution 'w' \(.*\) to end within 5 s, but .*go") as raised:
        await handle.result(timeout=limit)

    assert isinstance(raised.value, ResultTimedOut)
    assert (raised.value.workflow_id, raised.value.execution_id) == ("w", handle.execution_id)
    assert engine.clock.now() - before == 5_000_000
    await handle.signal("go", "went")
    assert await handle.result(timeout=limit) == "went"
    assert not engine.clock.alarms


async def test_O2_result_that_is_there_needs_no_time(open_engine: OpenEngine) -> None:
    engine = await open_engine(waits)
    handle = await engine.start(waits, workflow_id="w")
    with pytest.raises(ResultTimedOut):
        await handle.result(timeout=0)
    await handle.signal("go", "went")
    await handle.result()
    await engine.restart()

    assert await engine.handle("w").result(timeout=0) == "went"


async def test_O2_timeout_in_real_time() -> None:
    async with Engine("memory://", workflows=[waits]) as engine:
        handle = await engine.start(waits, workflow_id="w")
        with pytest.raises(ResultTimedOut):
            await handle.result(timeout=0.01)
        with pytest.raises(TimeoutError):
            await engine.wait_for_result("w", timeout=timedelta(milliseconds=10))
        assert not hooks.awaited_by(engine)


@pytest.mark.parametrize("limit", [-1, float("nan"), "5", True])
async def test_timeout_that_is_none_is_refused(limit: Any) -> None:
    async with TestEngine(workflows=[waits]) as engine:
        handle = await engine.start(waits)
        with pytest.raises(InvalidDuration):
            await handle.result(timeout=limit)
        with pytest.raises(InvalidArguments, match="on_blocked"):
            await handle.result(on_blocked="never")  # type: ignore[arg-type]


@pytest.mark.parametrize("is_blocked_before", [True, False])
async def test_O2_blocked_execution_ends_the_wait_if_that_is_asked(open_engine: OpenEngine, is_blocked_before: bool) -> None:
    engine = await open_engine(changing)
    await start_blocked(engine)
    handle = engine.handle("w")
    answer: asyncio.Task[Any] | None = None
    if not is_blocked_before:
        answer = asyncio.create_task(handle.result(on_blocked="raise"))
        await eventually(lambda: hooks.awaited_by(engine))
    await handle.signal("go")
    await engine.settle()

    with pytest.raises(ExecutionBlocked, match=r"^Expected execution 'w' \(") as raised:
        await asyncio.wait_for(answer or handle.result(), 20)

    assert (raised.value.workflow_id, raised.value.type) == ("w", "NonDeterminismError")
    assert raised.value.execution_id
    assert raised.value.reason
    assert not hooks.awaited_by(engine)


async def test_O2_timeout_of_a_blocked_execution_does_not_say_that_it_goes_on(open_engine: OpenEngine) -> None:
    engine = await open_engine(changing, auto_advance=True)
    await start_blocked(engine)
    await engine.signal_workflow("w", "go")
    await engine.settle()

    with pytest.raises(ResultTimedOut, match=r"blocked by .* It goes on once its code was corrected and") as raised:
        await engine.handle("w").result(timeout=5, on_blocked="wait")

    assert ".." not in str(raised.value)


async def test_O2_wait_for_a_blocked_execution_is_logged_once_and_goes_on(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(changing)
    await start_blocked(engine)
    answer = asyncio.create_task(engine.handle("w").result(on_blocked="wait"))
    await eventually(lambda: hooks.awaited_by(engine))
    await engine.signal_workflow("w", "go")
    await engine.settle()
    await engine.retry_blocked("w")
    await engine.settle()

    (record,) = find(caplog, LogEvent.RESULT_WAITS_FOR_BLOCKED)
    assert (record.levelno, vars(record)["workflow_id"], vars(record)["node"]) == (logging.WARNING, "w", engine.node)
    assert not answer.done()
    engine.add_workflow(changing_again)
    await engine.retry_blocked("w")
    assert await asyncio.wait_for(answer, 20) == "done"


@workflow(name="changing", version="2")
async def changing_again(ctx: Context, again: bool = False) -> str:
    await ctx.wait_for_signal("ready")
    await ctx.wait_for_signal("go")
    return "done"


async def test_O2_blocked_run_later_in_a_chain_ends_the_wait(open_engine: OpenEngine) -> None:
    engine = await open_engine(chained)
    handle = await engine.start(chained, workflow_id="w")
    await engine.signal_workflow("w", "ready")
    await engine.settle()
    await engine.restart(workflows=[changed])
    await engine.signal_workflow("w", "go")
    await engine.settle()

    with pytest.raises(ExecutionBlocked) as raised:
        await asyncio.wait_for(engine.handle(str(handle.execution_id)).result(), 20)

    assert raised.value.execution_id != handle.execution_id


async def test_O2_wait_hears_of_an_execution_that_another_node_blocked(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    a = await cluster.open("a", changing)
    await a.start(changing, workflow_id="w")
    await a.signal_workflow("w", "ready")
    await cluster.shut_down("a")
    await cluster.open("b", changed)
    c = await cluster.open("c")
    raising = asyncio.create_task(c.handle("w").result(on_blocked="raise"))
    waiting = asyncio.create_task(c.handle("w").result())
    await eventually(lambda: hooks.awaited_by(c))
    await c.signal_workflow("w", "go")

    with pytest.raises(ExecutionBlocked, match="NonDeterminismError"):
        await asyncio.wait_for(raising, 20)
    await eventually(lambda: find(caplog, LogEvent.RESULT_WAITS_FOR_BLOCKED))
    assert not waiting.done()
    waiting.cancel()


async def test_O2_wait_for_code_that_nobody_has_is_logged_and_goes_on(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(waits)
    await engine.start(waits, workflow_id="w")
    await engine.settle()
    await engine.restart(workflows=[])
    answer = asyncio.create_task(engine.handle("w").result())
    await eventually(lambda: find(caplog, LogEvent.RESULT_WAITS_FOR_CODE))

    assert not answer.done()
    with pytest.raises(ResultTimedOut, match="workflow 'waits' is on no living node"):
        await engine.handle("w").result(timeout=0)
    answer.cancel()


@pytest.mark.parametrize("is_closed_before", [True, False])
async def test_O2_error_of_a_result_names_the_workflow_id(open_engine: OpenEngine, is_closed_before: bool) -> None:
    engine = await open_engine(waits)
    handle = await engine.start(waits, workflow_id="order-7")
    waiting = None if is_closed_before else asyncio.ensure_future(handle.result())
    await engine.settle()
    await handle.terminate()
    await engine.settle()

    with pytest.raises(WorkflowTerminated, match="execution 'order-7'") as caught:
        await (waiting or handle.result())
    assert (caught.value.workflow_id, caught.value.execution_id) == ("order-7", handle.execution_id)
