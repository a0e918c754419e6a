"""E1 to E4: typed events are delivered, kept and refused as their types say, in whatever order they are sent and awaited."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from holdfast import (
    Context,
    EventOutcome,
    ExecutionClosed,
    ExecutionNotFound,
    InvalidArguments,
    TooManyKept,
    UnknownEvent,
    event,
    workflow,
)
from holdfast.errors import WorkflowCancelled, WorkflowFailed, WorkflowTerminated
from tests.rules.world import Nodes, World


@event
@dataclass
class Paid:
    order: int
    amount: int = 0


@event(consume_on_read=False)
@dataclass
class Told:
    text: str


@event(delivery_mode="after_wait")
@dataclass
class Now:
    text: str


@event(delivery_mode="after_create")
@dataclass
class Since:
    text: str


@event(expire_after=timedelta(minutes=1))
@dataclass
class Short:
    text: str


@event(on_target_terminated="dead_letter")
@dataclass
class Precious:
    text: str


TYPES: dict[str, Any] = {"Paid": Paid, "Told": Told, "Now": Now, "Since": Since, "Short": Short, "Precious": Precious}


@workflow
async def shipper(ctx: Context, order: int) -> int:
    return (await ctx.wait_for_event(Paid, where={"order": order})).amount


@workflow
async def reader(ctx: Context, kind: str) -> Any:
    found = await ctx.wait_for_event(TYPES[kind])
    return getattr(found, "text", None) or getattr(found, "amount", None)


@workflow
async def later_reader(ctx: Context, kind: str) -> Any:
    await ctx.wait_for_signal("read")
    return (await ctx.wait_for_event(TYPES[kind])).text


@workflow
async def picky(ctx: Context, text: str) -> str:
    return (await ctx.wait_for_event(Told, where={"text": text})).text


@workflow
async def either(ctx: Context) -> list[Any]:
    winner = await ctx.wait_any(
        ctx.event(Paid, where={"order": 1}), ctx.event(Told), ctx.message("m", "k"), ctx.broadcast("b"), ctx.timer(60)
    )
    await ctx.wait_for_signal("end")
    return [winner.index, str(winner.value)]


@workflow
async def runs(ctx: Context, left: int) -> str:
    """The last of so many runs waits for an event."""
    if left > 1:
        await ctx.continue_as(left - 1)
    return (await ctx.wait_for_event(Precious)).text


@workflow
async def continuing(ctx: Context, left: int) -> str:
    """The last of so many runs waits for an event, the others for a signal."""
    if left > 1:
        await ctx.wait_for_signal("go on")
        await ctx.continue_as(left - 1)
    return (await ctx.wait_for_event(Since)).text


@workflow
async def teller(ctx: Context, target: str) -> Any:
    if target:
        return (await ctx.send_event_to(target, Told("from a workflow"))).delivered
    return (await ctx.send_event(Told("from a workflow"))).delivered


@workflow
async def missender(ctx: Context, target: str) -> str:
    wrong: Any = Paid("one")  # type: ignore[arg-type]
    try:
        await (ctx.send_event_to(target, wrong) if target else ctx.send_event(wrong))
    except InvalidArguments as error:
        return type(error).__name__
    return "sent"


# --- E1 -------------------------------------------------------------------------------------------------------------------


async def test_E1_fields_select_who_gets_it_and_one_consumer_does(world: World) -> None:
    engine = await world.open([shipper])
    first, second, other = [await engine.start(shipper, order) for order in (1, 1, 2)]

    assert await engine.send_event(Paid(1, 10)) == EventOutcome(delivered=1)
    assert await first.result() == 10
    assert (await second.status()).status == "suspended"

    await engine.send_event(Paid(2, 20))
    await engine.send_event(Paid(1, 11))
    assert [await second.result(), await other.result()] == [11, 20]


async def test_E1_event_that_is_not_consumed_reaches_every_waiter_and_later_ones(world: World) -> None:
    engine = await world.open([reader])
    waiting = [await engine.start(reader, "Told") for _ in range(3)]

    assert await engine.send_event(Told("hello")) == EventOutcome(delivered=3, kept=True)

    assert [await one.result() for one in waiting] == ["hello"] * 3
    assert await (await engine.start(reader, "Told")).result() == "hello"


async def test_E1_after_wait_gets_only_what_was_sent_since_and_keeps_nothing(world: World) -> None:
    engine = await world.open([reader], events=[Now])

    assert await engine.send_event(Now("early")) == EventOutcome()
    handle = await engine.start(reader, "Now")
    assert await engine.pending_events(Now) == []
    await engine.send_event(Now("late"))

    assert await handle.result() == "late"


async def test_E1_after_create_gets_what_was_sent_since_the_execution_exists(world: World) -> None:
    engine = await world.open([reader, later_reader])
    await engine.send_event(Since("before"))
    await engine.clock.advance(seconds=1)
    handle = await engine.start(later_reader, "Since")
    await engine.clock.advance(seconds=1)
    await engine.send_event(Since("between"))

    await handle.signal("read")

    assert await handle.result() == "between"
    assert [one.value for one in await engine.pending_events(Since)] == [Since("before")]


async def test_E1_event_expires(world: World) -> None:
    engine = await world.open([reader])
    await engine.send_event(Short("gone"))
    (kept,) = await engine.pending_events(Short)
    assert kept.expires_at - kept.timestamp == timedelta(minutes=1)

    await engine.clock.advance(seconds=61)

    assert await engine.pending_events(Short) == []
    handle = await engine.start(reader, "Short")
    assert (await handle.status()).status == "suspended"


async def test_E1_event_for_one_that_ends_is_discarded_or_a_dead_letter(world: World) -> None:
    engine = await world.open([later_reader])
    for kind in ("Told", "Precious"):
        handle = await engine.start(later_reader, kind, workflow_id=kind)
        sent = await engine.send_event_to(kind, TYPES[kind]("for you"))
        assert sent == EventOutcome(kept=True)
        await handle.terminate()
        with pytest.raises(WorkflowTerminated):
            await handle.result()

    (letter,) = await engine.dead_letters()
    assert letter.envelope["publication"]["name"] == "Precious"
    assert await engine.pending_events(Told) == []


# --- E2 -------------------------------------------------------------------------------------------------------------------


async def test_E2_send_and_wait_at_the_same_time_lose_nothing(world: World) -> None:
    engine = await world.open([shipper])

    async def start(order: int) -> Any:
        return await (await engine.start(shipper, order)).result()

    async def send(order: int) -> None:
        await engine.send_event(Paid(order, order * 10))

    calls = [
        call
        for order in range(1, 31)
        for call in ((start(order), send(order)) if order % 2 else (send(order), start(order)))
    ]
    found = await asyncio.gather(*calls)

    assert sorted(one for one in found if one is not None) == [order * 10 for order in range(1, 31)]
    assert await engine.pending_events(Paid) == []


async def test_E2_send_on_one_node_while_another_suspends_loses_nothing(nodes: Nodes) -> None:
    one = await nodes.open("one", [shipper])
    two = await nodes.open("two", [])
    nodes.pause("one")
    starting = asyncio.create_task(one.start(shipper, 1))
    await nodes.paused("one")
    sending = asyncio.create_task(two.send_event(Paid(1, 5)))
    await asyncio.sleep(0.02)
    nodes.resume("one")

    handle = await starting
    await sending
    assert await handle.result() == 5


async def test_E2_cancelled_wait_does_not_resume_and_its_event_stays(world: World) -> None:
    engine = await world.open([either, reader])
    handle = await engine.start(either)

    await handle.cancel()
    await engine.clock.advance(seconds=120)
    assert (await handle.status()).status == "cancelled"
    assert (await engine.send_event(Paid(1, 5))).kept

    assert (await handle.status()).status == "cancelled"
    assert await (await engine.start(reader, "Paid")).result() == 5


async def test_E2_event_for_an_execution_that_completed_is_for_the_next(world: World) -> None:
    engine = await world.open([shipper])
    first = await engine.start(shipper, 1)

    sent = await asyncio.gather(*(engine.send_event(Paid(1, amount)) for amount in (1, 2)))
    assert await first.result() in (1, 2)
    await engine.settle()

    assert sum(one.delivered for one in sent) + sum(one.kept for one in sent) == 2
    assert {await first.result(), await (await engine.start(shipper, 1)).result()} == {1, 2}


async def test_E2_events_for_one_execution_come_before_those_for_everybody(world: World) -> None:
    engine = await world.open([later_reader])
    handle = await engine.start(later_reader, "Precious", workflow_id="w")
    await engine.send_event(Precious("for all"))
    await engine.send_event_to("w", Precious("for you"))

    await handle.signal("read")

    assert await handle.result() == "for you"
    assert [one.value for one in await engine.pending_events(Precious)] == [Precious("for all")]


async def test_E2_workflow_sends_to_all_and_to_one(world: World) -> None:
    engine = await world.open([teller, reader])
    waiting = await engine.start(reader, "Told", workflow_id="w")

    assert await (await engine.start(teller, "w")).result() == 1
    assert await waiting.result() == "from a workflow"
    again = await engine.start(reader, "Told")
    assert await (await engine.start(teller, "")).result() == 1
    assert await again.result() == "from a workflow"


# --- E3 -------------------------------------------------------------------------------------------------------------------


async def test_E3_one_wins_and_the_others_leave_nothing_behind(world: World) -> None:
    engine = await world.open([either])
    handle = await engine.start(either)
    await engine.send_event(Told("first"))
    await engine.settle()

    assert await engine.store.list_subscriptions("default", str(handle.execution_id)) == []
    assert (await engine.broadcast_signal("b")).delivered == 0
    assert (await engine.send_event(Paid(1, 5))).kept
    assert (await engine.send_message("m", "k", ttl=60)).kept
    await handle.signal("end")
    assert (await handle.result())[0] == 1
    assert [one.value for one in await engine.pending_events(Paid)] == [Paid(1, 5)]


# --- E4 -------------------------------------------------------------------------------------------------------------------


async def test_E4_more_than_may_be_kept_are_refused(world: World) -> None:
    engine = await world.open([shipper], max_pending_events=2)
    for order in (1, 2):
        await engine.send_event(Paid(order))

    with pytest.raises(TooManyKept, match="2 events"):
        await engine.send_event(Paid(3))

    assert len(await engine.pending_events(Paid)) == 2


async def test_E4_an_event_beyond_the_limit_reaches_those_who_wait_and_is_not_kept(world: World) -> None:
    engine = await world.open([picky], max_pending_events=1)
    await engine.send_event(Told("kept"))
    handle = await engine.start(picky, "urgent")

    assert await engine.send_event(Told("urgent")) == EventOutcome(delivered=1, kept=False)

    assert await handle.result() == "urgent"
    with pytest.raises(TooManyKept):
        await engine.send_event(Told("urgent"))


async def test_E4_events_are_kept_for_seven_days_and_then_removed(world: World) -> None:
    engine = await world.open([reader])
    await engine.send_event(Paid(1, 5))
    (kept,) = await engine.pending_events(Paid)
    assert kept.expires_at - kept.timestamp == timedelta(days=7)

    await engine.clock.advance(days=8)

    assert await engine.store.list_pending("default", "event", "Paid", 0) == []


async def test_E4_engine_says_for_how_long_events_are_kept_whose_type_does_not(world: World) -> None:
    engine = await world.open([reader], event_retention=3600)
    await engine.send_event(Paid(1, 5))
    await engine.send_event(Short("soon"))

    (kept,), (short,) = await engine.pending_events(Paid), await engine.pending_events(Short)

    assert kept.expires_at - kept.timestamp == timedelta(hours=1)
    assert short.expires_at - short.timestamp == timedelta(minutes=1)


async def test_E4_kept_events_are_listed_in_order_by_pages_and_removed_by_id(world: World) -> None:
    engine = await world.open([reader], events=[Paid])
    for amount in range(5):
        await engine.send_event("Paid", {"order": 1, "amount": amount}, org="blue")

    page = await engine.pending_events("Paid", org="blue", limit=3)
    rest = await engine.pending_events(Paid, org="blue", after=page[-1].position)

    assert [one.value.amount for one in [*page, *rest]] == [0, 1, 2, 3, 4]
    assert await engine.remove_pending_event("Paid", page[1].id, org="blue", request_id="r")
    assert await engine.remove_pending_event("Paid", page[1].id, org="blue", request_id="r")
    assert not await engine.remove_pending_event(Paid, page[1].id, org="blue")
    assert not await engine.remove_pending_event(Paid, page[0].id)
    assert [one.value.amount for one in await engine.pending_events(Paid, org="blue")] == [0, 2, 3, 4]


# --- bad input ------------------------------------------------------------------------------------------------------------


async def test_E1_unknown_types_and_bad_values_are_refused(world: World) -> None:
    engine = await world.open([reader], events=[Paid, Told])

    with pytest.raises(UnknownEvent, match="Paid, Told") as unknown:
        await engine.send_event("Payed", {"order": 1})
    assert (unknown.value.event, unknown.value.known) == ("Payed", ("Paid", "Told"))
    with pytest.raises(InvalidArguments, match="order"):
        await engine.send_event("Paid", {"order": "one"})
    with pytest.raises(InvalidArguments, match="@event"):
        await engine.send_event(object())
    with pytest.raises(InvalidArguments):
        await engine.send_event(Paid(1), {"order": 1})
    with pytest.raises(ExecutionNotFound):
        await engine.send_event_to("nobody", Paid(1))
    assert await engine.pending_events(Paid) == []


async def test_E1_instance_that_its_class_could_not_read_is_refused_and_not_kept(world: World) -> None:
    engine = await world.open([reader, missender], events=[Paid])
    wrong: Any = Paid("one")  # type: ignore[arg-type]
    await engine.start(reader, "Paid", workflow_id="r")

    with pytest.raises(InvalidArguments, match=r"Expected event 'Paid' to be Paid, but .*order"):
        await engine.send_event(wrong)
    with pytest.raises(InvalidArguments, match="Paid"):
        await engine.send_event_to("r", wrong)
    told = await (await engine.start(missender, "")).result()
    told_one = await (await engine.start(missender, "r")).result()

    assert told == told_one == "InvalidArguments"
    assert await engine.pending_events(Paid) == []
    assert await engine.dead_letters() == []
    assert (await engine.send_event(Paid(7, 12))).delivered == 1


async def test_E1_event_for_a_closed_execution_is_refused(world: World) -> None:
    engine = await world.open([reader])
    handle = await engine.start(reader, "Told", workflow_id="w")
    await handle.terminate()

    with pytest.raises(ExecutionClosed):
        await engine.send_event_to("w", Told("too late"))


async def test_E1_event_for_an_earlier_run_reaches_its_next_run_and_no_other_execution(world: World) -> None:
    engine = await world.open([runs, later_reader])
    first = await engine.start(runs, 3, workflow_id="w")
    assert first.execution_id is not None
    assert (await engine.send_event_to(first.execution_id, Precious("in time"))).delivered == 1
    assert await first.result() == "in time"

    other = await engine.start(runs, 1, workflow_id="w")
    with pytest.raises(ExecutionClosed):
        await engine.send_event_to(first.execution_id, Precious("too late"))
    await engine.cancel("w")
    with pytest.raises(WorkflowCancelled):
        await other.result()
    failed = await engine.start(later_reader, "no such type", workflow_id="w")
    assert failed.execution_id is not None
    await failed.signal("read")
    with pytest.raises(WorkflowFailed):
        await failed.result()
    await engine.start(runs, 1, workflow_id="w")
    with pytest.raises(ExecutionClosed):
        await engine.send_event_to(failed.execution_id, Precious("too late"))


async def test_E1_types_of_other_nodes_are_known_by_name(nodes: Nodes) -> None:
    await nodes.open("one", [shipper], events=[Paid])
    two = await nodes.open("two", [])

    assert (await two.send_event("Paid", {"order": 1, "amount": 3})).kept
    with pytest.raises(InvalidArguments, match="order"):
        await two.send_event("Paid", {"order": "one"})
    with pytest.raises(UnknownEvent, match="Paid"):
        await two.send_event("Nothing", 1)


async def test_E1_event_for_one_execution_survives_continue_as_whatever_its_mode(world: World) -> None:
    engine = await world.open([continuing])
    handle = await engine.start(continuing, 2, workflow_id="w")
    assert (await engine.send_event_to("w", Since("kept for it"))).kept
    await engine.clock.advance(seconds=1)

    await handle.signal("go on")

    assert await handle.result() == "kept for it"
