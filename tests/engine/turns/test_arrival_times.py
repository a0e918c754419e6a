"""T6: histories show when something arrived, however long it waited for its turn. The code goes by the time of the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from holdfast import Context, Engine, activity, workflow
from holdfast.core import events
from holdfast.core.event_times import TOLERANCE
from holdfast.core.instants import SECOND, from_datetime
from holdfast.engine.views import RecordedEvent
from holdfast.testing import replay
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.engine.support.held_activities import Door
from tests.eventually import eventually
from tests.rules.world import Nodes

MENDED: list[bool] = []
MINUTES = timedelta(minutes=10)
DOOR = Door()
DRIFT = SECOND // 20
"""By how much two nodes may be apart in what they take for the database's time."""


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    MENDED.clear()
    DOOR.begin_anew()
    yield
    DOOR.open()


@activity
async def work() -> str:
    await DOOR.wait()
    return "done"


@workflow
async def order(ctx: Context) -> list[Any]:
    """Its code is broken until it is mended."""
    result = ctx.run(work)
    await ctx.wait_for_signal("break")
    if not MENDED:
        await asyncio.get_running_loop().getaddrinfo("localhost", 1)
    return [await ctx.wait_for_signal("word"), await result, ctx.now().isoformat()]


@workflow
async def listens(ctx: Context) -> str:
    word = await ctx.wait_for_signal("word", str)
    await ctx.wait_for_signal("end")
    return f"{word} at {ctx.now().isoformat()}"


@workflow
async def sleeps(ctx: Context) -> str:
    await ctx.sleep(timedelta(minutes=1))
    return ctx.now().isoformat()


async def read(engine: Engine, workflow_id: str) -> list[RecordedEvent]:
    """The history of an execution, whose times never go back."""
    found = (await engine.handle(workflow_id).history()).events
    assert all(one.at <= two.at for one, two in pairwise(found))
    assert all(one.at <= one.taken_at for one in found)
    return found


def find(history: list[RecordedEvent], kind: type[events.Event], **fields: Any) -> RecordedEvent:
    (found,) = (
        one
        for one in history
        if type(one.event) is kind and all(getattr(one.event, name) == value for name, value in fields.items())
    )
    return found


async def test_T6_what_waited_for_a_blocked_execution_is_shown_when_it_arrived(open_engine: OpenEngine) -> None:
    engine = await open_engine(order, work)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: DOOR.inside == 1)
    await engine.signal_workflow("order", "break")
    broken_at = engine.clock.present
    await engine.clock.advance(MINUTES)
    await engine.signal_workflow("order", "word", "a")
    accepted_at = engine.clock.present
    await engine.clock.advance(MINUTES)
    ended_at = engine.clock.present
    DOOR.open()
    await eventually(lambda: engine.is_at_rest() and len(DOOR.left) == 1)
    await engine.clock.advance(MINUTES)
    MENDED.append(True)
    await engine.retry_blocked("order")
    mended_at = engine.clock.present

    assert await engine.handle("order").result() == ["a", "done", mended_at.isoformat()]
    history = await read(engine, "order")
    assert find(history, events.SignalReceived, name="break").at == broken_at
    assert find(history, events.SignalReceived, name="word").at == accepted_at
    assert find(history, events.ActivityCompleted).at == ended_at
    assert find(history, events.WorkflowCompleted).taken_at == mended_at


async def test_T6_what_waited_for_a_paused_execution_is_shown_when_it_arrived(open_engine: OpenEngine) -> None:
    engine = await open_engine(listens)
    await engine.start(listens, workflow_id="paused")
    await engine.settle()
    await engine.pause("paused")
    await engine.clock.advance(MINUTES)
    await engine.signal_workflow("paused", "word", "a")
    accepted_at = engine.clock.present
    for _ in range(2):
        await engine.clock.advance(MINUTES)
        await engine.resume("paused")
        await engine.pause("paused")
    await engine.resume("paused")
    await engine.settle()
    resumed_at = engine.clock.present
    await engine.clock.advance(MINUTES)
    await engine.signal_workflow("paused", "end")

    assert await engine.handle("paused").result() == f"a at {engine.clock.present.isoformat()}"
    history = await read(engine, "paused")
    word = find(history, events.SignalReceived, name="word")
    assert accepted_at == word.at < word.taken_at <= resumed_at
    assert find(history, events.SignalReceived, name="end").at == engine.clock.present


async def test_T6_what_waited_for_another_queue_is_shown_when_it_arrived(open_engine: OpenEngine) -> None:
    engine = await open_engine(listens, queues=["default"])
    await engine.start(listens, workflow_id="there", queue="elsewhere")
    started_at = engine.clock.present
    await engine.clock.advance(MINUTES)
    await engine.signal_workflow("there", "word", "a")
    accepted_at = engine.clock.present
    await engine.clock.advance(MINUTES)
    hooks.change_options(engine, queues=["default", "elsewhere"])
    await engine.restart()
    await engine.settle()
    taken_at = engine.clock.present
    await engine.signal_workflow("there", "end")

    assert await engine.handle("there").result() == f"a at {taken_at.isoformat()}"
    history = await read(engine, "there")
    assert find(history, events.WorkflowStarted).at == started_at
    assert find(history, events.SignalReceived, name="word").at == accepted_at
    assert find(history, events.SignalReceived, name="end").at == taken_at


async def test_T6_a_timer_that_came_due_while_no_node_ran_is_shown_when_it_was_due(open_engine: OpenEngine) -> None:
    engine = await open_engine(sleeps)
    await engine.start(sleeps, workflow_id="sleeper")
    due = engine.clock.present + timedelta(minutes=1)
    await engine.crash()
    await engine.clock.advance(MINUTES)
    await engine.restart()

    assert await engine.handle("sleeper").result() == engine.clock.present.isoformat()
    fired = find(await read(engine, "sleeper"), events.TimerFired)
    assert (fired.at, fired.taken_at) == (due, engine.clock.present)


async def test_a_replay_does_not_care_when_something_arrived(open_engine: OpenEngine) -> None:
    engine = await open_engine(sleeps)
    await engine.start(sleeps, workflow_id="sleeper")
    await engine.crash()
    await engine.clock.advance(MINUTES)
    await engine.restart()
    ended = await engine.handle("sleeper").result()
    history = await engine.handle("sleeper").history()

    assert replay(history, [sleeps]).events == len(history.events)
    assert ended == history.events[-1].taken_at.isoformat()


async def test_T6_a_signal_by_a_node_without_the_code_is_shown_when_that_accepted_it(cluster: Cluster) -> None:
    first = await cluster.open("a", listens)
    await first.start(listens, workflow_id="far")
    await cluster.shut_down("a")
    second = await cluster.open("b", sleeps)
    before = second.clock.now()
    await second.signal_workflow("far", "word", "a")
    after = second.clock.now()
    await eventually(lambda: second.clock.now() > after + 10 * TOLERANCE)

    third = await cluster.open("c", listens)
    await third.signal_workflow("far", "end")

    assert (await third.handle("far").result()).startswith("a at ")
    received = find(await read(third, "far"), events.SignalReceived, name="word")
    assert before - DRIFT <= from_datetime(received.at) <= after + DRIFT
    assert from_datetime(received.taken_at) > after + 5 * TOLERANCE


async def test_T6_a_signal_to_an_execution_that_another_node_holds_is_shown_when_it_was_accepted() -> None:
    nodes = Nodes()
    left, right = [await nodes.open(name, [listens]) for name in ("left", "right")]
    await left.start(listens, workflow_id="held")
    nodes.pause("left")
    first = asyncio.create_task(left.signal_workflow("held", "word", "a"))
    await nodes.paused("left")
    await right.signal_workflow("held", "end")
    accepted_at = nodes.clock.present
    nodes.clock.call_at(from_datetime(accepted_at + MINUTES), lambda: None)
    while nodes.clock.present < accepted_at + MINUTES:
        nodes.clock.step()  # `advance` would wait until both are at rest
    nodes.resume("left")
    await first
    await left.settle()
    await right.settle()

    await right.handle("held").result()
    history = await read(right, "held")
    assert find(history, events.SignalReceived, name="end").at == accepted_at
    assert find(history, events.WorkflowCompleted).taken_at == nodes.clock.present
    for engine in (left, right):
        await engine.shutdown()
