"""S4: signals that nobody can take, and what the answer tells."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast import Context, Engine, SignalResponse, Status, workflow
from holdfast.errors import (
    ExecutionClosed,
    ExecutionNotFound,
    InvalidIdentifier,
    PayloadTooLarge,
    SignalLimitReached,
    status_code,
)
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.steps import gate, pass_gate
from tests.rules.world import Nodes, World


class Item(msgspec.Struct, frozen=True):
    """A signal's value."""

    name: str
    count: int = 1


@workflow
async def collector(ctx: Context, name: str, wanted: int) -> list[int]:
    return [await ctx.wait_for_signal(name, int) for _ in range(wanted)]


@workflow
async def forever(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


@workflow
async def late_reader(ctx: Context) -> list[int]:
    await ctx.run(pass_gate, "reader")
    return [await ctx.wait_for_signal("x", int) for _ in range(3)]


@workflow
async def ender(ctx: Context, how: str) -> None:
    if how == "failed":
        raise ValueError("as asked")
    if how != "completed":
        await ctx.wait_for_signal("never")


@pytest.mark.parametrize("by", ["workflow id", "execution id"])
@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "terminated"])
async def test_S4_a_signal_to_a_closed_execution_is_refused_and_nothing_is_stored(world: World, how: str, by: str) -> None:
    engine = await world.open([ender])
    handle = await engine.start(ender, how, workflow_id="e")
    if how in ("cancelled", "terminated"):
        await (handle.cancel() if how == "cancelled" else handle.terminate())
    await engine.settle()
    before = await handle.history()

    with pytest.raises(ExecutionClosed, match=how) as refused:
        await engine.signal_workflow("e" if by == "workflow id" else str(handle.execution_id), "x", 1)

    assert status_code(refused.value) == 409
    assert "or signal with start" in str(refused.value)
    assert await handle.history() == before
    counts = await engine.store.count()
    assert (counts.inbox, counts.dead_letters) == (0, 0)


@pytest.mark.parametrize("target", ["nobody", "01890000-0000-7000-8000-000000000000"])
async def test_S4_a_signal_to_an_unknown_execution_is_refused_and_nothing_is_stored(world: World, target: str) -> None:
    engine = await world.open([forever])

    with pytest.raises(ExecutionNotFound, match=target) as refused:
        await engine.signal_workflow(target, "x", 1)

    assert status_code(refused.value) == 404
    counts = await engine.store.count()
    assert (counts.executions, counts.inbox, counts.dead_letters) == ({}, 0, 0)


async def test_S4_more_signals_than_one_run_may_have_are_refused_and_not_stored(world: World) -> None:
    engine = await world.open([forever], max_signals=5)
    handle = await engine.start(forever)
    for number in range(5):
        await handle.signal("x", number)
    before = await handle.status()

    with pytest.raises(SignalLimitReached, match="5") as refused:
        await handle.signal("x", 5)

    assert status_code(refused.value) == 409
    assert await handle.status() == before
    assert (await handle.history()).kinds.count("SignalReceived") == 5


async def test_S4_the_limit_counts_what_was_received_before_a_crash(world: World) -> None:
    engine = await world.open([forever], max_signals=5)
    handle = await engine.start(forever)
    for number in range(4):
        await handle.signal("x", number)
    await engine.restart()

    await handle.signal("x", 4)

    with pytest.raises(SignalLimitReached):
        await handle.signal("x", 5)


async def test_S4_of_concurrent_signals_only_those_within_the_limit_are_accepted(world: World) -> None:
    engine = await world.open([forever], max_signals=5)
    handle = await engine.start(forever)

    answers = await asyncio.gather(*(handle.signal("x", number) for number in range(20)), return_exceptions=True)

    assert sum(isinstance(answer, SignalLimitReached) for answer in answers) == 15
    assert (await handle.history()).kinds.count("SignalReceived") == 5


async def test_S4_signals_beyond_the_limit_do_not_keep_a_run_from_its_first_turn(world: World) -> None:
    engine = await world.open([ender], max_signals=2)

    answers = await asyncio.gather(
        *(engine.signal_with_start_workflow("e", ender, "completed", signal_name="x") for _ in range(5))
    )

    runs = await engine.list()
    assert [answer.workflow_created for answer in answers] == [True, False, True, False, True]
    assert {run.status for run in runs} == {Status.COMPLETED}
    assert {run.execution_id for run in runs} == {answer.workflow_execution_id for answer in answers}


async def test_S4_an_accepted_signal_that_is_one_too_many_is_kept_as_a_dead_letter(nodes: Nodes) -> None:
    one = await nodes.open("one", [forever], max_signals=1)
    two = await nodes.open("two", [forever], max_signals=1)
    handle = await one.start(forever, workflow_id="f")
    nodes.pause("one")
    holding = asyncio.ensure_future(one.signal_workflow("f", "x", 1))
    await nodes.paused("one")

    accepted = await two.signal_workflow("f", "x", 2)
    nodes.resume("one")
    await holding
    await nodes.clock.settle()

    assert accepted.signal_event_sequence is None
    assert (await handle.history()).kinds == ["WorkflowStarted", "SignalReceived"]
    (letter,) = await two.dead_letters()
    assert letter.envelope["value"] == {"data": 2}
    assert "the most one run may" in letter.reason


async def test_S4_the_default_limit_is_ten_thousand() -> None:
    assert Engine("memory://").config.max_signals == 10_000


async def test_S4_the_answer_tells_the_place_of_the_signal_in_the_history(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)

    answer = await handle.signal("x", 1)

    event = (await handle.history()).events[(answer.signal_event_sequence or 0) - 1]
    assert event.sequence == answer.signal_event_sequence
    assert event.kind == "SignalReceived"


async def test_S4_the_place_is_absent_where_the_signal_waits_in_the_inbox(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [collector]), await nodes.open("two", [collector])
    handle = await one.start(collector, "x", 2, workflow_id="c")
    nodes.pause("one")
    held = asyncio.ensure_future(one.signal_workflow("c", "x", 1))
    await nodes.paused("one")

    waiting = await two.signal_workflow("c", "x", 2)
    nodes.resume("one")
    taken = await held

    assert waiting.signal_event_sequence is None
    assert waiting.workflow_execution_id == handle.execution_id
    assert taken.signal_event_sequence == 2
    assert await handle.result() == [1, 2]
    assert "None while it waits in the inbox" in (SignalResponse.__doc__ or "")


@workflow
async def picky(ctx: Context) -> Item:
    return await ctx.wait_for_signal("item", Item)


async def test_S4_a_value_that_does_not_fit_goes_to_the_dead_letters_and_the_workflow_goes_on_waiting(world: World) -> None:
    engine = await world.open([picky])
    handle = await engine.start(picky, workflow_id="p")

    await handle.signal("item", {"name": 7})
    letters = await engine.dead_letters()
    waiting = await handle.status()
    await handle.signal("item", Item("ball", 2))

    assert waiting.status is Status.SUSPENDED
    assert await handle.result() == Item("ball", 2)
    (letter,) = letters
    assert (letter.execution_id, letter.workflow_id) == (handle.execution_id, "p")
    assert "item" in letter.reason
    assert letter.envelope["name"] == "item"
    assert letter.envelope["value"] == {"data": {"name": 7}}


async def test_S4_a_buffered_value_that_does_not_fit_is_passed_over(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)
    for value in (0, "no", 1, None, 2):
        await handle.signal("x", value)

    gate("reader").set()

    assert await handle.result() == [0, 1, 2]
    assert len(await engine.dead_letters()) == 2


async def test_S4_a_value_that_does_not_fit_is_one_dead_letter_also_after_replay(world: World) -> None:
    engine = await world.open([picky])
    handle = await engine.start(picky)
    await handle.signal("item", "no")
    await engine.restart()

    await handle.signal("item", Item("ball"))

    assert await handle.result() == Item("ball")
    assert len(await engine.dead_letters()) == 1


async def test_S4_what_cannot_be_a_signal_is_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open([forever], payload_limit=1000)
    handle = await engine.start(forever)

    with pytest.raises(InvalidIdentifier):
        await handle.signal("")
    with pytest.raises(PayloadTooLarge) as refused:
        await handle.signal("x", "y" * 1000)

    assert status_code(refused.value) == 413
    assert (await handle.history()).kinds == ["WorkflowStarted"]


async def test_S4_a_delivery_that_fails_is_told_to_the_caller(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [collector]), await nodes.open("two", [collector])
    await one.start(collector, "x", 1, workflow_id="c")
    nodes.pause("one")
    held = asyncio.ensure_future(one.signal_workflow("c", "y", 1))
    await nodes.paused("one")
    nodes.faults["two"] = lambda point, _node: FaultAction.FAIL if point == Point.DELIVER_COMMIT else FaultAction.NONE

    with pytest.raises(Exception, match="connection broke") as refused:
        await two.signal_workflow("c", "x", 2)

    assert status_code(refused.value) == 503  # type: ignore[arg-type]
    nodes.resume("one")
    await held
    assert (await one.history("c")).kinds == ["WorkflowStarted", "SignalReceived"]
