"""S1 to S3: signals are events, queued by name, buffered, and seen alike on replay."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Status, workflow
from holdfast.core.events import SignalReceived
from holdfast.errors import (
    ExecutionNotFound,
)
from tests.rules.steps import gate, note, pass_gate
from tests.rules.world import Nodes, World


@workflow
async def collector(ctx: Context, name: str, wanted: int) -> list[int]:
    return [await ctx.wait_for_signal(name, int) for _ in range(wanted)]


@workflow
async def two_queues(ctx: Context) -> list[str]:
    return [f"{name}{await ctx.wait_for_signal(name, int)}" for name in ("b", "a", "b", "a")]


@workflow
async def forever(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


# --- S1 -------------------------------------------------------------------------------------------------------------------


async def test_S1_each_call_is_one_event(world: World) -> None:
    engine = await world.open([forever])
    handle = await engine.start(forever)

    answers = [await handle.signal("x", number) for number in range(5)]

    assert (await handle.history()).kinds == ["WorkflowStarted"] + ["SignalReceived"] * 5
    assert [answer.signal_event_sequence for answer in answers] == [2, 3, 4, 5, 6]
    assert {answer.workflow_execution_id for answer in answers} == {handle.execution_id}


async def test_S1_equal_signals_are_not_taken_for_one(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 3)

    for _ in range(3):
        await handle.signal("x", 7)

    assert await handle.result() == [7, 7, 7]


async def test_S1_one_name_many_times_is_a_queue_in_the_order_of_the_calls(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 200)

    await asyncio.gather(*(handle.signal("x", number) for number in range(200)))

    assert await handle.result() == list(range(200))


async def test_S1_names_do_not_mix(world: World) -> None:
    engine = await world.open([two_queues])
    handle = await engine.start(two_queues)

    for name, value in (("a", 1), ("a", 2), ("c", 9), ("b", 3), ("b", 4)):
        await handle.signal(name, value)

    assert await handle.result() == ["b3", "a1", "b4", "a2"]


async def test_S1_several_waits_for_one_name_are_served_in_their_order(world: World) -> None:
    engine = await world.open([crowd])
    handle = await engine.start(crowd)

    for value in range(3):
        await handle.signal("x", value)

    assert await handle.result() == [0, 1, 2]


@workflow
async def crowd(ctx: Context) -> list[int]:
    return list(await asyncio.gather(*(ctx.wait_for_signal("x", int) for _ in range(3))))


async def test_S1_the_order_survives_a_crash(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 6)
    for value in range(3):
        await handle.signal("x", value)
    await engine.restart()

    for value in range(3, 6):
        await handle.signal("x", value)

    assert await handle.result() == [0, 1, 2, 3, 4, 5]


async def test_S1_a_repeated_request_id_is_delivered_once_and_answered_alike(world: World) -> None:
    engine = await world.open([forever])
    handle = await engine.start(forever)

    first = await handle.signal("x", 1, request_id="r-1")
    await handle.signal("x", 2, request_id="r-2")
    again = await handle.signal("x", 1, request_id="r-1")

    assert again == first
    assert (await handle.history()).kinds.count("SignalReceived") == 2


async def test_S1_concurrent_calls_with_one_request_id_are_one_signal(world: World) -> None:
    engine = await world.open([forever])
    handle = await engine.start(forever)

    answers = await asyncio.gather(*(handle.signal("x", 1, request_id="r-1") for _ in range(20)))

    assert {answer.signal_event_sequence for answer in answers} == {2}
    assert (await handle.history()).kinds.count("SignalReceived") == 1


async def test_S1_a_request_id_is_known_after_a_crash_and_after_the_end(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 1)
    first = await handle.signal("x", 1, request_id="r-1")
    await handle.result()
    await engine.restart()

    again = await handle.signal("x", 1, request_id="r-1")

    assert again == first


async def test_S1_one_request_id_to_two_executions_is_two_requests(world: World) -> None:
    engine = await world.open([collector])
    one, two = await engine.start(collector, "x", 1), await engine.start(collector, "x", 1)

    await one.signal("x", 1, request_id="r-1")
    await two.signal("x", 2, request_id="r-1")

    assert [await one.result(), await two.result()] == [[1], [2]]


async def test_S1_a_refused_signal_does_not_use_up_its_request_id(world: World) -> None:
    engine = await world.open([collector])
    with pytest.raises(ExecutionNotFound):
        await engine.signal_workflow("c", "x", 1, request_id="r-1")
    handle = await engine.start(collector, "x", 1, workflow_id="c")

    await engine.signal_workflow("c", "x", 1, request_id="r-1")

    assert await handle.result() == [1]


async def test_S1_a_request_id_is_delivered_once_though_the_signal_waits_in_the_inbox(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [collector]), await nodes.open("two", [collector])
    await one.start(collector, "x", 2, workflow_id="c")
    nodes.pause("one")
    holding = asyncio.ensure_future(one.signal_workflow("c", "y", 0))
    await nodes.paused("one")

    first = await two.signal_workflow("c", "x", 1, request_id="r-1")
    second = await two.signal_workflow("c", "x", 1, request_id="r-1")
    nodes.resume("one")
    await holding
    third = await two.signal_workflow("c", "x", 1, request_id="r-1")
    await nodes.clock.settle()

    assert first.signal_event_sequence is second.signal_event_sequence is None
    assert third.workflow_execution_id == first.workflow_execution_id
    history = await one.history("c")
    assert [one.event.name for one in history.events if isinstance(one.event, SignalReceived)] == ["y", "x"]


# --- S2 -------------------------------------------------------------------------------------------------------------------


@workflow
async def late_reader(ctx: Context) -> list[int]:
    await ctx.run(pass_gate, "reader")
    return [await ctx.wait_for_signal("x", int) for _ in range(3)]


async def test_S2_signals_sent_before_the_workflow_asks_are_buffered(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)
    for value in range(3):
        await handle.signal("x", value)
    before = await handle.status()

    gate("reader").set()

    assert before.status is Status.RUNNING
    assert await handle.result() == [0, 1, 2]


async def test_S2_buffered_signals_survive_a_crash(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)
    for value in range(3):
        await handle.signal("x", value)
    await engine.restart()

    gate("reader").set()

    assert await handle.result() == [0, 1, 2]


async def test_S2_waiting_for_a_signal_records_no_command(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 2)

    await handle.signal("x", 1)
    waiting = await handle.history()
    await handle.signal("x", 2)
    await handle.result()

    assert waiting.kinds == ["WorkflowStarted", "SignalReceived"]
    assert (await handle.history()).kinds == ["WorkflowStarted", "SignalReceived", "SignalReceived", "WorkflowCompleted"]
    assert (await engine.store.count()).timers == 0


# --- S3 -------------------------------------------------------------------------------------------------------------------


@workflow
async def looker(ctx: Context) -> list[Any]:
    """Looks into its queues at three moments, and takes another path for each thing it may see."""
    seen: list[Any] = []
    for moment in ("first", "second", "third"):
        await ctx.run(pass_gate, moment)
        if ctx.has_signal("x"):
            count = ctx.pending_signal_count("x")
            for _ in range(count):
                await ctx.run(note, count)
            taken = ctx.drain_signals("x", int)
            seen.append([count, taken, ctx.has_signal("x"), ctx.pending_signal_count("x"), ctx.drain_signals("x", int)])
        else:
            seen.append(await ctx.run(note, "nothing"))
    await ctx.wait_for_signal("end")
    return seen


async def run_looker(engine: Any, *, crash: bool) -> tuple[list[Any], list[str]]:
    """Let it look while signals arrive between its turns; with a crash before each look, every look is replayed."""
    handle = await engine.start(looker)
    for moment, count in (("first", 0), ("second", 2), ("third", 1)):
        for value in range(count):
            await handle.signal("x", value)
        if crash:
            await engine.restart()
        gate(moment).set()
        await engine.settle()
    if crash:
        await engine.restart()
    await handle.signal("x", 99)
    await handle.signal("end")
    return await handle.result(), (await handle.history()).kinds


LOOKS = ["nothing", [2, [0, 1], False, 0, []], [1, [0], False, 0, []]]


async def test_S3_a_workflow_sees_what_arrived_between_its_turns(world: World) -> None:
    engine = await world.open([looker], [pass_gate, note], patience=0)

    seen, _ = await run_looker(engine, crash=False)

    assert seen == LOOKS


async def test_S3_replay_sees_exactly_what_was_seen_the_first_time(world: World) -> None:
    engine = await world.open([looker], [pass_gate, note], patience=0)

    seen, history = await run_looker(engine, crash=True)

    assert seen == LOOKS
    assert history.count("ActivityScheduled") == 3 + 1 + 2 + 1


async def test_S3_a_signal_between_the_end_of_an_activity_and_the_look_is_seen_in_the_order_of_history(world: World) -> None:
    engine = await world.open([looker], [pass_gate, note], patience=0)
    handle = await engine.start(looker)

    gate("first").set()
    sent = await asyncio.gather(*(handle.signal("x", value) for value in range(3)))
    for moment in ("second", "third"):
        gate(moment).set()
    await handle.signal("end")
    first = await handle.result()
    await engine.restart()
    history = await handle.history()

    done = next(one.sequence for one in history.events if one.kind == "ActivityCompleted")
    before = sum(answer.signal_event_sequence < done for answer in sent if answer.signal_event_sequence is not None)
    looks = [look[0] for look in first if isinstance(look, list)]
    assert sum(looks) == 3
    assert (looks[0] if isinstance(first[0], list) else 0) == before
