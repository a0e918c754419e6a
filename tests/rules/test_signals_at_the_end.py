"""S7: an execution cannot complete over an accepted signal that it was not given."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast import Context, Status, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec
from holdfast.core.envelopes import Sender, Signal, SignalAnswered, Start
from holdfast.core.events import SignalReceived
from holdfast.core.ids import make_execution_id
from holdfast.core.payloads import NULL, Payload, encode
from holdfast.errors import ExecutionClosed
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.rows import InboxRow
from tests.eventually import eventually
from tests.rules.steps import GATES, gate, pass_gate
from tests.rules.world import Nodes, World, hear_nothing


@workflow
async def counter(ctx: Context) -> list[int]:
    """Ends after its activity, with whatever has arrived until then."""
    await ctx.run(pass_gate, "gate")
    return ctx.drain_signals("x", int)


@workflow
async def immediate(ctx: Context) -> list[int]:
    return ctx.drain_signals("x", int)


@workflow
async def on_end(ctx: Context) -> list[int]:
    await ctx.wait_for_signal("end")
    return ctx.drain_signals("x", int)


@workflow
async def fails(ctx: Context) -> None:
    await ctx.wait_for_signal("end")
    raise ValueError(f"with {ctx.drain_signals('x', int)}")


@workflow
async def timed(ctx: Context) -> list[int]:
    await ctx.sleep(60)
    return ctx.drain_signals("x", int)


@workflow
async def child(ctx: Context) -> int:
    return await ctx.wait_for_signal("end", int)


@workflow
async def parent(ctx: Context) -> list[int]:
    first = await ctx.run_child(child, workflow_id="child")
    return [first, *ctx.drain_signals("x", int)]


ALL: list[Workflow[..., Any]] = [counter, immediate, on_end, fails, timed, child, parent]


def assert_no_signal_after_the_end(kinds: list[str]) -> None:
    assert kinds[-1] in ("WorkflowCompleted", "WorkflowFailed", "WorkflowCancelled", "ContinuedAs")
    assert kinds.count("SignalReceived") == kinds[:-1].count("SignalReceived")


async def test_S7_a_signal_that_meets_the_end_is_given_before_it(world: World) -> None:
    engine = await world.open(ALL, [pass_gate])
    handle = await engine.start(on_end)

    _, met = await asyncio.gather(handle.signal("end"), handle.signal("x", 1))

    assert await handle.result() == [1]
    history = await handle.history()
    assert history.kinds == ["WorkflowStarted", "SignalReceived", "SignalReceived", "WorkflowCompleted"]
    assert met.signal_event_sequence in (2, 3)


async def test_S7_signals_that_meet_the_first_and_last_turn_are_given_before_its_end(world: World) -> None:
    engine = await world.open(ALL)

    answers = await asyncio.gather(
        *(engine.signal_with_start_workflow("i", immediate, signal_name="x", signal_value=number) for number in range(5))
    )

    assert {answer.workflow_execution_id for answer in answers} == {answers[0].workflow_execution_id}
    assert await engine.handle(answers[0].workflow_execution_id).result() == [0, 1, 2, 3, 4]


async def test_S7_signals_that_meet_a_failing_end_are_given_before_it(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(fails)

    await asyncio.gather(handle.signal("end"), handle.signal("x", 1), handle.signal("x", 2))

    with pytest.raises(Exception, match=r"with \[1, 2\]"):
        await handle.result()


async def test_S7_a_turn_taken_again_keeps_the_order_of_the_signals(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_end)

    await asyncio.gather(handle.signal("x", 0), handle.signal("end"), *(handle.signal("x", n) for n in range(1, 10)))

    assert await handle.result() == list(range(10))
    assert_no_signal_after_the_end((await handle.history()).kinds)


async def test_S7_every_call_is_either_given_to_the_workflow_or_refused(world: World) -> None:
    engine = await world.open(ALL, [pass_gate])
    handle = await engine.start(counter)

    async def send(number: int) -> int | None:
        for _ in range(number):
            await asyncio.sleep(0)
        if number == 20:
            gate("gate").set()
        try:
            await handle.signal("x", number)
        except ExecutionClosed:
            return None
        return number

    sent = await asyncio.gather(*(send(number) for number in range(60)))

    accepted = [number for number in sent if number is not None]
    assert sorted(await handle.result()) == accepted
    assert_no_signal_after_the_end((await handle.history()).kinds)


async def test_S7_replay_of_a_turn_that_was_taken_again_gives_the_same(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(chain)
    await asyncio.gather(handle.signal("end"), *(handle.signal("x", number) for number in range(3)))
    history = (await handle.history()).kinds

    await engine.restart()

    assert await handle.result() == [0, 1, 2]
    assert (await handle.history()).kinds == history


@workflow
async def chain(ctx: Context) -> list[int]:
    await ctx.wait_for_signal("end")
    return ctx.drain_signals("x", int)


ALL.append(chain)


async def test_S7_a_signal_delivered_to_the_inbox_while_the_end_is_being_written_is_given_before_it(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    handle = await one.start(on_end, workflow_id="w")
    nodes.pause("one")
    ending = asyncio.ensure_future(one.signal_workflow("w", "end"))
    await nodes.paused("one")

    waiting = await two.signal_workflow("w", "x", 7)
    nodes.resume("one")
    await ending

    assert waiting.signal_event_sequence is None
    assert await handle.result() == [7]
    assert (await handle.history()).kinds == ["WorkflowStarted", "SignalReceived", "SignalReceived", "WorkflowCompleted"]


async def test_S7_the_first_try_of_a_turn_that_is_dropped_leaves_nothing(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    handle = await one.start(on_end, workflow_id="w")
    nodes.pause("one")
    ending = asyncio.ensure_future(one.signal_workflow("w", "end", request_id="r"))
    await nodes.paused("one")
    await two.signal_workflow("w", "x", 7)

    nodes.resume("one")
    await ending
    await nodes.clock.settle()

    turns = [turn for commit in nodes.commits for turn in commit.turns if turn.row.workflow_id == "w"]
    versions = [turn.row.state_version for turn in turns]
    assert versions in ([1, 2], [1, 2, 3]), "the other node may be the first to give it the signal"
    assert (await handle.status()).state_version == versions[-1]
    assert (await one.store.count()).inbox == 0


async def test_S7_a_delivery_that_holds_the_row_makes_the_end_wait_its_turn(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    handle = await one.start(on_end, workflow_id="w")
    nodes.pause("one")
    ending = asyncio.ensure_future(one.signal_workflow("w", "end"))
    await nodes.paused("one")
    nodes.gate.shut(Point.DELIVER_COMMIT)
    sending = asyncio.ensure_future(two.signal_workflow("w", "x", 7))
    await nodes.reached(Point.DELIVER_COMMIT)

    nodes.resume("one")
    for _ in range(50):
        await asyncio.sleep(0)
    still = await two.query_status("w")
    nodes.gate.open(Point.DELIVER_COMMIT)
    await asyncio.gather(sending, ending)

    assert not still.status.is_closed
    assert await handle.result() == [7]


async def test_S7_a_delivery_that_comes_after_the_end_is_refused(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    handle = await one.start(on_end, workflow_id="w")
    nodes.gate.shut(Point.COMMIT)
    ending = asyncio.ensure_future(one.signal_workflow("w", "end"))
    await nodes.reached(Point.COMMIT)
    sending = asyncio.ensure_future(two.signal_workflow("w", "x", 7))
    nodes.gate.open(Point.COMMIT)
    await ending

    with pytest.raises(ExecutionClosed):
        await sending

    assert await handle.result() == []
    assert (await one.store.count()).inbox == 0


async def test_S7_signals_of_two_nodes_that_meet_the_end_are_given_or_refused(nodes: Nodes) -> None:
    engines = [await nodes.open("one", ALL), await nodes.open("two", ALL)]
    handle = await engines[0].start(on_end, workflow_id="w")

    async def send(number: int) -> int | None:
        for _ in range(number // 2):
            await asyncio.sleep(0)
        try:
            await engines[number % 2].signal_workflow("w", "end" if number == 30 else "x", number)
        except ExecutionClosed:
            return None
        return number

    sent = await asyncio.gather(*(send(number) for number in range(60)))
    await nodes.clock.settle()

    accepted = [number for number in sent if number is not None and number != 30]
    assert sorted(await handle.result()) == accepted


async def test_S7_an_end_by_timer_is_taken_again_with_the_signal_before_it(nodes: Nodes) -> None:
    one = await nodes.open("one", ALL)
    handle = await one.start(timed, workflow_id="w")
    await nodes.clock.advance(seconds=59)
    nodes.faults["two"] = hear_nothing
    nodes.pause("one")
    moving = asyncio.ensure_future(nodes.clock.advance(seconds=2))
    await nodes.paused("one")
    two = await nodes.open("two", ALL)  # only now: each of two nodes might be first to see that the timer is due

    await two.signal_workflow("w", "x", 7)
    nodes.resume("one")
    await moving

    assert await handle.result() == [7]
    assert (await handle.history()).kinds[-3:] == ["SignalReceived", "TimerFired", "WorkflowCompleted"]


async def test_S7_an_end_by_the_end_of_a_child_is_taken_again_with_the_signal_before_it(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    handle = await one.start(parent, workflow_id="w")
    await nodes.clock.settle()
    nodes.faults["two"] = hear_nothing
    await one.signal_workflow("child", "end", 1)
    nodes.pause("one")
    await nodes.paused("one")

    await two.signal_workflow("w", "x", 7)
    nodes.resume("one")

    assert await handle.result() == [1, 7]
    assert (await handle.history()).kinds[-3:] == ["SignalReceived", "ChildCompleted", "WorkflowCompleted"]


@pytest.mark.parametrize("action", [FaultAction.FAIL, FaultAction.LOST_UNKNOWN])
async def test_S7_a_failed_commit_of_the_end_keeps_the_accepted_signal(nodes: Nodes, action: FaultAction) -> None:
    one, two = await nodes.open("one", ALL, [pass_gate]), await nodes.open("two", ALL, [pass_gate])
    handle = await one.start(counter, workflow_id="w")
    await eventually(lambda: "gate" in GATES)
    plan = [action]
    nodes.faults["one"] = lambda point, _node: plan.pop() if point == Point.COMMIT and plan else FaultAction.NONE

    gate("gate").set()
    await eventually(lambda: not plan)
    await two.signal_workflow("w", "x", 7)
    await nodes.clock.advance(seconds=30)

    assert await handle.result() == [7]


async def test_S7_a_run_that_cannot_even_begin_is_given_its_signals(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL)
    sender = await engine.start(on_end, workflow_id="sender")
    bad = Start(
        execution_id=make_execution_id(nodes.clock.now(), 1),
        workflow_id="w",
        workflow="immediate",
        input=Payload(msgspec.Raw(b'["too", "many"]')),
    )
    signal = Signal(name="x", value=NULL, sender=Sender(str(sender.execution_id), 1))

    await nodes.put_row(*(InboxRow("default", "", "w", codec.encode(envelope)) for envelope in (bad, signal)))
    await engine.settle()

    assert (await engine.history("w")).kinds == ["WorkflowStarted", "SignalReceived", "WorkflowFailed"]
    answers = [row for commit in nodes.commits for turn in commit.turns for row in turn.outgoing]
    assert [codec.decode_envelope(row.body) for row in answers] == [SignalAnswered(number=1)]


async def test_S7_a_cancelled_execution_was_given_what_was_accepted_before(world: World) -> None:
    engine = await world.open([cleaner])
    handle = await engine.start(cleaner)

    await asyncio.gather(handle.cancel(), handle.signal("x", 1), handle.signal("x", 2))

    assert await handle.result() == [1, 2]


@workflow
async def cleaner(ctx: Context) -> list[int]:
    try:
        await ctx.wait_for_signal("never")
    except asyncio.CancelledError:
        return ctx.drain_signals("x", int)
    return []


async def test_S7_a_terminated_execution_is_immediate_and_refuses_what_comes_with_it(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_end)

    terminated, refused = await asyncio.gather(handle.terminate(), handle.signal("x", 1), return_exceptions=True)

    assert terminated is True
    assert isinstance(refused, ExecutionClosed)
    assert (await handle.history()).kinds == ["WorkflowStarted", "WorkflowTerminated"]


async def test_S7_an_accepted_signal_that_a_termination_overtakes_is_kept_as_a_dead_letter(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [dooming, doomed]), await nodes.open("two", [dooming, doomed])
    nodes.faults["two"] = hear_nothing
    await one.start(dooming, workflow_id="p")
    await nodes.clock.settle()
    nodes.pause("one")
    ending = asyncio.ensure_future(one.signal_workflow("p", "end"))
    await nodes.paused("one")

    # The order to terminate goes into the child's inbox, and behind it a signal that its caller is told was accepted.
    nodes.resume("one")
    nodes.pause("one")
    await ending
    await nodes.paused("one")
    accepted = await two.signal_workflow("c", "x", 7)
    nodes.resume("one")
    await nodes.clock.settle()

    assert accepted.signal_event_sequence is None
    assert (await two.query_status("c")).status is Status.TERMINATED
    letters = await two.dead_letters()
    assert [letter.envelope["name"] for letter in letters] == ["x"]


@workflow
async def doomed(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


@workflow
async def dooming(ctx: Context) -> None:
    _ = ctx.start_child(doomed, workflow_id="c", parent_close="terminate")
    await ctx.wait_for_signal("end")


# --- an end under a flood ---

SENDERS = 8
MOST_ROUNDS = 60


async def test_S7_flood_of_signals_from_another_node_does_not_keep_an_execution_from_its_end(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    handle = await one.start(on_end, workflow_id="w")
    accepted: list[int] = []
    rounds = [0] * SENDERS

    async def flood(sender: int) -> None:
        while rounds[sender] < MOST_ROUNDS:
            rounds[sender] += 1
            value = sender * 1_000_000 + rounds[sender]
            try:
                await two.signal_workflow("w", "x", value)
            except ExecutionClosed:
                return
            accepted.append(value)

    floods = [asyncio.ensure_future(flood(sender)) for sender in range(SENDERS)]
    await eventually(lambda: min(rounds) >= 3)
    await one.signal_workflow("w", "end")
    await asyncio.gather(*floods)

    assert max(rounds) < MOST_ROUNDS, "it closed only when the flood had ended"
    assert sorted(await handle.result()) == sorted(accepted)
    by_sender = [[value for value in await handle.result() if value // 1_000_000 == one] for one in range(SENDERS)]
    assert by_sender == [sorted(values) for values in by_sender]


async def test_S7_after_a_lost_end_what_waits_is_committed_before_the_next_try(nodes: Nodes) -> None:
    one = await nodes.open("one", ALL)
    handle = await one.start(on_end, workflow_id="w")
    nodes.pause("one")
    ending = asyncio.ensure_future(one.signal_workflow("w", "end"))
    await nodes.paused("one")
    for value in range(4):
        signal = Signal(name="x", value=encode(value, "a value"))
        await nodes.put_into_inbox(str(handle.execution_id), signal)

    nodes.resume("one")
    await ending

    turns = [turn.history for commit in nodes.commits for turn in commit.turns if turn.history is not None]
    assert [turn.count for turn in turns][:2] == [1, 3]
    assert await handle.result() == [0, 1, 2, 3]
    held = [one.event.held for one in (await handle.history()).events if isinstance(one.event, SignalReceived)]
    assert held == [True, True, True, False, False]
