"""What an execution waits for, as `query_status` tells it, on every store."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from holdfast import ApplicationFailure, Context, ExecutionInfo, Retry, activity, event, heartbeat, workflow
from holdfast.cli.searches import describe_wait
from holdfast.engine.pending import ActivityState, PendingWork
from tests.rules.steps import gate, pass_gate
from tests.rules.world import World

FAILING: list[bool] = []


@pytest.fixture(autouse=True)
def _fails() -> None:
    FAILING[:] = [True]


@activity(retry=Retry(initial=60, factor=1))
async def charge(amount: int) -> int:
    heartbeat({"charged": amount})
    if FAILING:
        decline(amount)
    await gate("charge").wait()
    return amount


def decline(amount: int) -> None:
    raise ApplicationFailure("the card is declined", type="Declined", details={"amount": amount})


@workflow
async def pay(ctx: Context) -> int:
    return await ctx.run(charge, 7)


@workflow
async def decide(ctx: Context) -> str:
    return await ctx.wait_for_signal("approve", str, timeout=3600)


@workflow
async def mixed(ctx: Context) -> None:
    event = asyncio.Event()

    async def wake() -> None:
        await ctx.run(pass_gate, "slow")
        event.set()

    await asyncio.gather(wake(), event.wait(), ctx.run_child(decide), ctx.sleep(60), ctx.wait_for_signal("stop"))


@workflow
async def stuck(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    await asyncio.Event().wait()


def pending_of(info: ExecutionInfo) -> PendingWork:
    assert info.pending is not None
    return info.pending


async def test_O3_a_signal_wait_is_told_by_name_token_and_time(world: World) -> None:
    engine = await world.open([decide], auto_advance=False)
    handle = await engine.start(decide, workflow_id="d")
    await engine.settle()

    info = await handle.status()

    due = info.created_at + timedelta(hours=1)
    assert (info.waiting_kind, info.waiting_token, info.waiting_until) == ("signal", "approve", due)
    assert info.waiting_for == "signal approve"
    pending = pending_of(info)
    assert [one.name for one in pending.signals] == ["approve"]
    assert [one.due for one in pending.timers] == [due]
    assert pending.is_code_known
    assert (pending.signals[0].place or "").startswith(__file__)
    [listed] = await engine.list()
    assert (listed.waiting_kind, listed.waiting_token, listed.waiting_until) == ("signal", "approve", due)
    assert listed.pending is None


@event
@dataclass
class Paid:
    order: int


@workflow
async def racing(ctx: Context) -> int:
    paid, called_off = ctx.event(Paid, {"order": 7}), ctx.message("called off", "order-7")
    return (await ctx.wait_any(paid, called_off, ctx.broadcast("closing"), ctx.timer(60))).index


async def test_O3_all_that_is_awaited_of_what_others_publish_is_told(world: World) -> None:
    engine = await world.open([racing], events=[Paid], auto_advance=False)
    await engine.start(racing, workflow_id="r")
    await engine.settle()

    [listed] = await engine.list()

    assert listed.waiting_for == "event Paid (order=7), message called off (order-7), broadcast closing"
    assert (listed.waiting_kind, listed.waiting_until) == ("event", listed.created_at + timedelta(seconds=60))
    told = describe_wait(listed)
    assert told == f"{listed.waiting_for}, timer at {listed.waiting_until:%Y-%m-%d %H:%M:%S}Z"


async def test_O3_each_thing_that_is_open_is_told(world: World) -> None:
    engine = await world.open([mixed, decide], [pass_gate], auto_advance=False)
    handle = await engine.start(mixed, workflow_id="m")
    await engine.settle()

    info = await handle.status()

    pending = pending_of(info)
    [running] = pending.activities
    assert (running.name, running.state, running.attempt, running.node) == ("pass_gate", "running", 1, engine.node)
    assert running.scheduled_at == info.created_at
    assert running.started_at is not None
    [child] = pending.children
    assert (child.workflow, child.status) == ("decide", "suspended")
    assert (await engine.query_status(child.execution_id)).parent_execution_id == info.execution_id
    assert [one.due for one in pending.timers] == [info.created_at + timedelta(seconds=60)]
    assert [one.name for one in pending.signals] == ["stop"]
    assert [one.what for one in pending.local_waits] == ["Event.wait"]
    assert (info.waiting_kind, info.waiting_token) == ("activity", f"{running.number}:1")
    assert info.waiting_until == info.created_at + timedelta(seconds=60)
    assert (info.history_bytes or 0) > 100


async def test_O3_a_program_that_is_not_in_memory_tells_the_same(world: World) -> None:
    engine = await world.open([mixed, decide], [pass_gate], auto_advance=False)
    handle = await engine.start(mixed, workflow_id="m")
    await engine.settle()
    before = await handle.status()

    engine._runtime.cache.clear()
    after = await handle.status()

    assert after == before
    assert len(engine._runtime.cache) == 0


async def test_O3_without_the_code_the_row_and_the_history_tell(world: World) -> None:
    engine = await world.open([mixed, decide], [pass_gate], auto_advance=False)
    handle = await engine.start(mixed, workflow_id="m")
    await engine.start(decide, workflow_id="d")
    await engine.settle()

    engine.remove_workflow("mixed")
    engine.remove_workflow("decide")
    pending, waiting = pending_of(await handle.status()), pending_of(await engine.query_status("d"))

    assert not pending.is_code_known
    assert (len(pending.activities), len(pending.timers), len(pending.children)) == (1, 1, 1)
    assert (pending.signals, pending.local_waits) == ((), ())
    assert [one.name for one in waiting.signals] == ["approve"]


async def test_O6_an_activity_that_is_tried_again_tells_its_last_failure_until_it_succeeds(world: World) -> None:
    engine = await world.open([pay], [charge], auto_advance=False)
    handle = await engine.start(pay, workflow_id="p")
    await engine.settle()

    info = await handle.status()
    [retrying] = pending_of(info).activities
    assert (info.waiting_kind, info.waiting_token) == ("retry", "1:2")
    assert info.waiting_until == retrying.next_try
    assert (retrying.state, retrying.attempt, retrying.failures) == (ActivityState.RETRYING, 2, 1)
    assert retrying.node is None
    assert retrying.heartbeat == {"charged": 7}
    failure = retrying.last_failure
    assert failure is not None
    assert (failure.type, failure.message, failure.details) == ("Declined", "the card is declined", {"amount": 7})
    assert failure.trace.splitlines()[-1].endswith("in decline")
    assert info.last_error == failure
    assert str(info.last_error) == "Declined: the card is declined"
    assert [one.last_error for one in await engine.list()] == [failure]

    FAILING.clear()
    await engine.clock.advance(60)
    running = await handle.status()
    assert pending_of(running).activities[0].state is ActivityState.RUNNING
    assert running.last_error == failure

    gate("charge").set()
    assert await handle.result() == 7
    assert (await handle.status()).last_error is None


async def test_O3_the_last_signal_has_its_place_in_the_history(world: World) -> None:
    engine = await world.open([stuck], auto_advance=False)
    handle = await engine.start(stuck)
    await engine.settle()
    assert (await handle.status()).last_signal is None

    first = await handle.signal("other", 1)
    second = await handle.signal("go", 2)

    last = (await handle.status()).last_signal
    assert last is not None
    assert (last.name, last.sequence) == ("go", second.signal_event_sequence)
    assert (first.signal_event_sequence or 0) < (second.signal_event_sequence or 0)
    assert [one.last_signal for one in await engine.list()] == [msgspec.structs.replace(last, sequence=None)]

    engine._runtime.cache.clear()
    assert (await handle.status()).last_signal == last


async def test_O4_code_that_waits_for_what_cannot_come_is_reported_once(world: World, caplog: Any) -> None:
    caplog.set_level(logging.WARNING, logger="holdfast.engine")
    engine = await world.open([stuck], auto_advance=False)
    handle = await engine.start(stuck, workflow_id="s")
    await handle.signal("go")
    await handle.signal("unwanted")
    await engine.settle()

    info = await handle.status()

    assert info.status == "suspended"
    assert info.waiting_kind == "never"
    assert (info.waiting_token or "").startswith(f"{__file__}:")
    assert (info.waiting_for or "").startswith(f"what can never come, at {__file__}:")
    assert [(one.what, one.place) for one in pending_of(info).local_waits] == [("Event.wait", info.waiting_token)]
    warned = [record for record in caplog.records if getattr(record, "event", "") == "waits_forever"]
    assert [(one.workflow_id, one.execution_id, one.node) for one in warned] == [("s", info.execution_id, engine.node)]
    assert warned[0].org == "default"
    assert str(info.waiting_token) in warned[0].getMessage()

    await handle.cancel()
    assert (await handle.status()).waiting_kind is None


# --- long histories ---


@workflow
async def count_signals(ctx: Context) -> None:
    while await ctx.wait_for_signal("n", str) != "end":
        pass


@pytest.mark.parametrize("by", ["events", "bytes"])
async def test_O5_a_long_history_is_warned_of_at_each_doubling(world: World, caplog: Any, by: str) -> None:
    caplog.set_level(logging.WARNING, logger="holdfast.engine")
    limits: dict[str, Any] = {"history_warning_events": 10} if by == "events" else {"history_warning_bytes": 1_000}
    engine = await world.open([count_signals], auto_advance=False, **limits)
    handle = await engine.start(count_signals, workflow_id="c")
    for _ in range(44):
        await handle.signal("n", "a value that is long enough to count")
    await handle.signal("n", "end")

    warned = [record for record in caplog.records if getattr(record, "event", "") == "long_history"]
    assert {one.node for one in warned} == {engine.node}
    if by == "events":
        assert [one.history_length for one in warned] == [10, 20, 40]
    else:
        sizes = [one.history_bytes for one in warned]
        assert [size // 1_000 for size in sizes] == [1, 2, 4]
    assert {(one.workflow_id, one.org) for one in warned} == {("c", "default")}
    assert "continue_as" in warned[0].getMessage()
