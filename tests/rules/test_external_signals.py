"""S5: from workflow to workflow. A command and two events in the sender's history, one signal in the receiver's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Engine, ExternalSignalFailed, WorkflowFailed, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec, events
from holdfast.core.envelopes import Signal
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.world import Nodes, World, hear_nothing, once


@workflow
async def receiver(ctx: Context, wanted: int) -> list[Any]:
    return [await ctx.wait_for_signal("x") for _ in range(wanted)]


@workflow
async def sender(ctx: Context, to: str, value: Any) -> str:
    await ctx.signal_external_workflow(to, "x", value)
    return "sent"


@workflow
async def careful_sender(ctx: Context, to: str) -> list[str]:
    try:
        await ctx.signal_external_workflow(to, "x", 1)
    except ExternalSignalFailed as error:
        return [type(error).__name__, error.type, error.name]
    return ["sent"]


@workflow
async def chatty(ctx: Context, to: str, count: int) -> int:
    sent = [ctx.signal_external_workflow(to, "x", number) for number in range(count)]
    await asyncio.gather(*sent)
    return count


@workflow
async def careless(ctx: Context, to: str) -> None:
    _ = ctx.signal_external_workflow(to, "x", "unawaited")


@workflow
async def waits_first(ctx: Context, to: str, value: Any) -> str:
    await ctx.wait_for_signal("go")
    await ctx.signal_external_workflow(to, "x", value)
    await ctx.wait_for_signal("end")
    return "sent"


@workflow
async def loner(ctx: Context) -> str:
    await ctx.signal_external_workflow(ctx.info.workflow_id, "x", "to myself")
    return await ctx.wait_for_signal("x", str)


@workflow
async def ends(ctx: Context, how: str) -> None:
    if how == "failed":
        raise ValueError("as asked")
    if how != "completed":
        await ctx.wait_for_signal("never")


ALL: list[Workflow[..., Any]] = [receiver, sender, careful_sender, chatty, careless, waits_first, loner, ends]


async def received(engine: Engine, target: str) -> list[events.SignalReceived]:
    return [one.event for one in (await engine.history(target)).events if isinstance(one.event, events.SignalReceived)]


# --- one command, two events, one signal ---


async def test_S5_it_is_one_command_and_two_events_in_the_senders_history(world: World) -> None:
    engine = await world.open(ALL)
    await engine.start(receiver, 1, workflow_id="r")
    handle = await engine.start(sender, "r", {"a": 1})

    result = await handle.result()

    assert result == "sent"
    assert (await handle.history()).kinds == [
        "WorkflowStarted",
        "ExternalSignalInitiated",
        "ExternalSignalCompleted",
        "WorkflowCompleted",
    ]
    initiated = (await handle.history()).events[1].event
    assert isinstance(initiated, events.ExternalSignalInitiated)
    assert (initiated.workflow_id, initiated.name, bytes(initiated.value.data)) == ("r", "x", b'{"a":1}')


async def test_S5_the_receiver_gets_the_signal_once(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(receiver, 1, workflow_id="r")

    await engine.start(sender, "r", {"a": 1})

    assert await handle.result() == [{"a": 1}]
    assert (await handle.history()).kinds == ["WorkflowStarted", "SignalReceived", "WorkflowCompleted"]


async def test_S5_the_sender_goes_on_only_when_the_receiver_has_the_signal(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, exclusive=True)
    await engine.start(receiver, 2, workflow_id="r")

    await (await engine.start(sender, "r", 1)).result()

    rows = {turn.row.workflow_id: index for index, commit in enumerate(nodes.commits) for turn in commit.turns}
    completed = next(
        index
        for index, commit in enumerate(nodes.commits)
        for turn in commit.turns
        if turn.history is not None
        and any(
            isinstance(event, events.ExternalSignalCompleted)
            for event in codec.decode_events(turn.history.body, turn.history.schema)
        )
    )
    assert rows["r"] < completed


async def test_S5_many_signals_of_one_sender_arrive_in_their_order(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(receiver, 50, workflow_id="r")

    count = await (await engine.start(chatty, "r", 50)).result()

    assert count == 50
    assert await handle.result() == list(range(50))


async def test_S5_a_signal_that_is_not_awaited_is_delivered_all_the_same(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(receiver, 1, workflow_id="r")

    await (await engine.start(careless, "r")).result()

    assert await handle.result() == ["unawaited"]
    await engine.settle()
    assert (await engine.store.count()).dead_letters == 0


async def test_S5_a_workflow_can_signal_itself(world: World) -> None:
    engine = await world.open(ALL)

    handle = await engine.start(loner, workflow_id="l")

    assert await handle.result() == "to myself"


# --- refusals ---


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "terminated"])
async def test_S5_a_closed_receiver_fails_the_signal_and_stores_nothing(world: World, how: str) -> None:
    engine = await world.open(ALL)
    closed = await engine.start(ends, how, workflow_id="r")
    if how in ("cancelled", "terminated"):
        await (closed.cancel() if how == "cancelled" else closed.terminate())
    await engine.settle()
    before = await closed.history()

    handle = await engine.start(careful_sender, "r")

    assert await handle.result() == ["ExternalSignalFailed", "ExecutionClosed", "signal 'x' to 'r'"]
    assert (await handle.history()).kinds[1:3] == ["ExternalSignalInitiated", "ExternalSignalFailed"]
    assert await closed.history() == before
    assert (await engine.store.count()).dead_letters == 0


async def test_S5_an_unknown_receiver_fails_the_signal(world: World) -> None:
    engine = await world.open(ALL)

    handle = await engine.start(careful_sender, "nobody")

    assert await handle.result() == ["ExternalSignalFailed", "ExecutionNotFound", "signal 'x' to 'nobody'"]
    assert (await engine.store.count()).inbox == 0


async def test_S5_a_receiver_with_all_its_signals_fails_the_signal(world: World) -> None:
    engine = await world.open(ALL, max_signals=1)
    await engine.start(receiver, 3, workflow_id="r")
    await engine.signal_workflow("r", "x", 0)

    handle = await engine.start(careful_sender, "r")

    assert (await handle.result())[1] == "SignalLimitReached"
    assert len(await received(engine, "r")) == 1


async def test_S5_a_failure_that_is_not_caught_fails_the_sender(world: World) -> None:
    engine = await world.open(ALL)

    handle = await engine.start(sender, "nobody", 1)

    with pytest.raises(WorkflowFailed) as failed:
        await handle.result()
    assert failed.value.type == "ExternalSignalFailed"


async def test_S5_a_failure_is_caught_alike_on_replay(world: World) -> None:
    engine = await world.open([recovering])
    handle = await engine.start(recovering)
    await engine.settle()
    await engine.restart()

    await handle.signal("end")

    assert await handle.result() == "caught ExecutionNotFound"


@workflow
async def recovering(ctx: Context) -> str:
    caught = ""
    try:
        await ctx.signal_external_workflow("nobody", "x")
    except ExternalSignalFailed as error:
        caught = f"caught {error.type}"
    await ctx.wait_for_signal("end")
    return caught


async def test_S5_it_does_not_reach_into_another_org(world: World) -> None:
    engine = await world.open(ALL)
    await engine.start(receiver, 1, workflow_id="r", org="theirs")

    handle = await engine.start(careful_sender, "r", org="ours")

    assert (await handle.result())[1] == "ExecutionNotFound"
    assert (await engine.history("r", org="theirs")).kinds == ["WorkflowStarted"]


# --- exactly once, whatever dies ---


async def test_S5_a_crash_of_the_process_at_any_rest_delivers_once(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(receiver, 2, workflow_id="r")
    sending = await engine.start(waits_first, "r", "once", workflow_id="s")

    await engine.restart()
    await sending.signal("go")
    await engine.restart()
    await engine.settle()
    await engine.restart()
    await sending.signal("end")

    assert await sending.result() == "sent"
    assert len(await received(engine, "r")) == 1
    await handle.signal("x", "last")
    assert await handle.result() == ["once", "last"]


POINTS = [
    Point.CLAIM_LOCK,
    Point.CLAIM_READ,
    Point.WRITE_VERSIONS,
    Point.WRITE_ROWS,
    Point.COMMIT,
    Point.COMMITTED,
]


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
async def test_S5_the_senders_node_dies_in_between_and_the_signal_is_delivered_once(
    nodes: Nodes, point: Point, nth: int
) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    await one.start(receiver, 2, workflow_id="r")
    await one.start(waits_first, "r", "once", workflow_id="s")
    await nodes.clock.settle()
    nodes.faults["two"] = hear_nothing  # so that node one does what is to be done, and dies at its nth stop
    left = [FaultAction.NONE] * (nth - 1) + [FaultAction.CRASH]
    nodes.faults["one"] = lambda at, _node: left.pop(0) if at == point and left else FaultAction.NONE
    going = asyncio.ensure_future(one.signal_workflow("s", "go"))
    await nodes.died("one")

    going.cancel()
    await nodes.kill("one")
    await nodes.take_over()
    last = (await two.query_status("s")).last_signal
    if last is None or last.name != "go":
        await two.signal_workflow("s", "go")
    await nodes.clock.settle()

    assert len(await received(two, "r")) == 1
    kinds = (await two.history("s")).kinds
    assert kinds == ["WorkflowStarted", "SignalReceived", "ExternalSignalInitiated", "ExternalSignalCompleted"]


@pytest.mark.parametrize("action", [FaultAction.APPLIED_UNKNOWN, FaultAction.LOST_UNKNOWN, FaultAction.LATE_UNKNOWN])
async def test_S5_a_commit_of_unknown_outcome_delivers_once(nodes: Nodes, action: FaultAction) -> None:
    engine = await nodes.open("one", ALL)
    handle = await engine.start(receiver, 1, workflow_id="r")
    await engine.start(waits_first, "r", "once", workflow_id="s")
    await engine.settle()
    nodes.faults["one"] = fail_commits_after_the_first(action)

    await engine.signal_workflow("s", "go")
    await nodes.clock.advance(seconds=30)

    assert await handle.result() == ["once"]
    assert (await engine.history("s")).kinds[2:] == ["ExternalSignalInitiated", "ExternalSignalCompleted"]


def fail_commits_after_the_first(action: FaultAction) -> Any:
    """The commit that takes the signal goes well; the next three, of delivery and answer, do not."""
    plan = [FaultAction.NONE, action, action, action]
    return lambda point, _node: plan.pop(0) if point == Point.COMMIT and plan else FaultAction.NONE


async def test_S5_an_envelope_that_is_handled_twice_has_one_effect(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL)
    await engine.start(receiver, 9, workflow_id="r")
    await engine.start(waits_first, "r", "once", workflow_id="s")
    await engine.settle()
    nodes.faults["one"] = once(Point.COMMIT, FaultAction.APPLIED_UNKNOWN)

    await engine.signal_workflow("s", "go")
    await engine.settle()

    assert len(await received(engine, "r")) == 1
    assert (await engine.history("s")).kinds.count("ExternalSignalCompleted") == 1
    assert (await engine.store.count()).inbox == 0


async def test_S5_the_envelope_in_the_inbox_carries_ids_and_the_value_alone(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL)
    await engine.start(receiver, 1, workflow_id="r")

    await (await engine.start(sender, "r", "hello", workflow_id="s")).result()

    sent = [codec.decode_envelope(row.body) for commit in nodes.commits for turn in commit.turns for row in turn.outgoing]
    signals = [envelope for envelope in sent if isinstance(envelope, Signal)]
    assert [(envelope.name, bytes(envelope.value.data)) for envelope in signals] == [("x", b'"hello"')]
