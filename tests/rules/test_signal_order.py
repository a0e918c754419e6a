"""S1 over several nodes: what one sender was told of arrives in the order of its calls, by whichever way each came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import Context, workflow
from holdfast.core import codec
from holdfast.core.envelopes import Signal, Start
from holdfast.core.events import SignalReceived
from holdfast.core.ids import DEFAULT_ORG, make_execution_id
from holdfast.core.instants import SECOND
from holdfast.core.payloads import decode, encode
from holdfast.core.request_keys import RequestKey
from holdfast.engine.use_cases.transactional_outbox import make_envelope_row
from holdfast.store.contract import UnroutedWrite
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.nodes import WakeReason
from holdfast.store.rows import InboxRow
from holdfast.testing import TestEngine
from tests.rules.world import Nodes, hear_nothing


@workflow
async def collects(ctx: Context, count: int) -> list[int]:
    return [await ctx.wait_for_signal("x", int) for _ in range(count)]


@workflow(name="second-run")
async def second_run(ctx: Context, count: int) -> list[int]:
    return [await ctx.wait_for_signal("x", int) for _ in range(count)]


@workflow
async def first_run(ctx: Context, count: int) -> None:
    await ctx.wait_for_signal("go")
    ctx.continue_as(count, workflow=second_run)


@workflow
async def runs_on(ctx: Context, left: int, count: int) -> list[int]:
    """Continues many times without taking a signal: more often than one transaction allows."""
    if left == ROUNDS:
        await ctx.wait_for_signal("go")
    if left:
        ctx.continue_as(left - 1, count)
    return [await ctx.wait_for_signal("x", int) for _ in range(count)]


ROUNDS = 50
UUID7 = "01930000-0000-7000-8000-000000000000"
"""A workflow id that looks like an execution id."""


def make_signal(value: int) -> Signal:
    return Signal(name="x", value=encode(value, "a value", 100))


def by_workflow_id(workflow_id: str, value: int) -> InboxRow:
    """A signal as a user's transaction leaves it."""
    return make_envelope_row(DEFAULT_ORG, workflow_id, make_signal(value))


def start_with_signal(workflow_id: str, name: str, arguments: list[Any], value: int) -> InboxRow:
    start = Start(
        execution_id=make_execution_id(1_700_000_000_000_000, 1),
        workflow_id=workflow_id,
        workflow=name,
        input=encode(arguments, "arguments", 1000),
        signal=make_signal(value),
    )
    return InboxRow(DEFAULT_ORG, "", workflow_id, codec.encode(start))  # for anybody: who takes it may not have its code


@asynccontextmanager
async def committed_later(nodes: Nodes, *rows: InboxRow) -> AsyncIterator[None]:
    """A user's transaction that puts rows into inboxes at once, and is committed at the end of the block."""
    store = await nodes.open_onlooker()
    transaction = await store.begin()
    await transaction.write([], UnroutedWrite(outgoing=list(rows)))
    yield
    await transaction.commit()
    await store.wake(WakeReason.WORK)
    await store.close()


async def read_values(engine: TestEngine, target: str) -> list[int]:
    """The values of the signals "x" of the newest run, as its history has them."""
    events = [one.event for one in (await engine.history(target)).events]
    return [decode(one.value, int, "a value") for one in events if isinstance(one, SignalReceived) and one.name == "x"]


@pytest.mark.parametrize("workflow_id", ["w", UUID7])
@pytest.mark.parametrize("address", ["execution id", "workflow id"])
@pytest.mark.parametrize("is_cached", [True, False])
async def test_S1_what_waits_under_the_workflow_id_comes_before_a_later_call(
    nodes: Nodes, workflow_id: str, address: str, is_cached: bool
) -> None:
    one, two = await nodes.open("one", [collects]), await nodes.open("two", [collects])
    handle = await one.start(collects, 2, workflow_id=workflow_id)
    nodes.faults["one"] = nodes.faults["two"] = hear_nothing
    await nodes.put_row(by_workflow_id(workflow_id, 1))

    target = str(handle.execution_id) if address == "execution id" else workflow_id
    await (one if is_cached else two).signal_workflow(target, "x", 2)

    assert await read_values(one, str(handle.execution_id)) == [1, 2]


async def test_S1_what_waits_under_the_workflow_id_comes_first_though_another_node_has_that_id(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [collects]), await nodes.open("two", [collects])
    handle = await one.start(collects, 3, workflow_id="w")
    nodes.faults["one"] = nodes.faults["two"] = hear_nothing
    await nodes.put_row(by_workflow_id("w", 1))
    nodes.pause("two")
    looking = asyncio.ensure_future(two.signal_workflow("w", "x", 3))  # it holds the id, and the execution
    await nodes.paused("two")

    await one.signal_workflow("w", "x", 2)
    nodes.resume("two")
    await looking
    nodes.faults.clear()
    await nodes.put_row()
    await nodes.clock.settle()

    assert await read_values(one, str(handle.execution_id)) == [1, 3, 2]


async def test_S1_signal_of_a_start_that_is_left_to_others_comes_before_later_ones(nodes: Nodes) -> None:
    await nodes.open("one", [first_run])
    nodes.faults["one"] = hear_nothing
    await nodes.put_row(start_with_signal("w", "second-run", [3], 1))

    async with committed_later(nodes, by_workflow_id("w", 2)):
        nodes.faults.clear()
        await nodes.put_row()
        await nodes.clock.settle()
    two = await nodes.open("two", [second_run])
    await two.signal_workflow("w", "x", 3)
    await nodes.clock.settle()

    assert await read_values(two, "w") == [1, 2, 3]


@pytest.mark.parametrize("rounds", [0, ROUNDS])
async def test_S1_signals_carried_over_come_before_what_was_sent_to_the_next_run(nodes: Nodes, rounds: int) -> None:
    one = await nodes.open("one", [first_run, runs_on])
    handle = await (one.start(runs_on, rounds, 3, workflow_id="w") if rounds else one.start(first_run, 3, workflow_id="w"))
    await handle.signal("x", 1)

    async with committed_later(nodes, by_workflow_id("w", 2)):
        await one.signal_workflow("w", "go")
        if rounds:
            await nodes.kill("one")
    two = await nodes.open("two", [second_run, runs_on])
    await two.signal_workflow("w", "x", 3)
    await nodes.clock.settle()

    assert await read_values(two, "w") == [1, 2, 3]


async def test_S1_what_was_sent_to_a_run_that_continued_comes_before_later_calls(nodes: Nodes) -> None:
    one = await nodes.open("one", [first_run, second_run])
    handle = await one.start(first_run, 2, workflow_id="w")
    await one.signal_workflow("w", "go")
    nodes.faults["one"] = hear_nothing

    await nodes.put_row(by_workflow_id(str(handle.execution_id), 1))
    await nodes.put_row(by_workflow_id("w", 2))
    nodes.faults.clear()
    await nodes.put_row()
    await nodes.clock.settle()

    assert await read_values(one, "w") == [1, 2]


async def test_S1_request_ids_of_waiting_signals_are_looked_up_together(nodes: Nodes) -> None:
    """One by one, thousands of them would take longer than a transaction may, and their execution be blocked."""
    engine = await nodes.open("one", [collects])
    handle = await engine.start(collects, 50, workflow_id="w")
    reads: list[str] = []

    def note(point: str, _node: str) -> FaultAction:
        reads.append(point)
        return FaultAction.NONE

    nodes.faults["one"] = note
    keys = [RequestKey("signal", f"w\n{number}", nodes.clock.now() + SECOND) for number in range(50)]
    signals = [Signal(name="x", value=encode(number, "x"), request=key) for number, key in enumerate(keys)]

    await nodes.put_row(*(InboxRow(DEFAULT_ORG, str(handle.execution_id), "", codec.encode(one)) for one in signals * 2))

    assert await handle.result() == [*range(50)]
    assert reads.count(Point.READ) < 50
