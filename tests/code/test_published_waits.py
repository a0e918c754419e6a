"""Waits of workflow code for messages, events and broadcast signals: how they begin, end and are replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest

from holdfast import Context, MessageKeyTaken, PublicationFailed, event, workflow
from holdfast.core import commands, envelopes, events
from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND
from holdfast.core.publications import EventOptions, Publication
from holdfast.core.turn import hold
from tests.code.playing import BEGIN, Play, broadcast, make_signal, message, replay, sent_event


@event
@dataclass
class OrderPaid:
    order: int
    by: str = "ann"


@event(consume_on_read=False, name="news")
class News(msgspec.Struct):
    text: str


def waits_of(play: Play) -> list[tuple[str, str]]:
    return [(one.kind, one.name) for one in play.execution.subscriptions.values()]


# --- plain waits ---


def test_message_is_awaited_by_name_and_key_and_read_by_its_type() -> None:
    @workflow
    async def story(ctx: Context) -> int:
        paid = await ctx.wait_for_message("paid", "o-1", OrderPaid)
        return paid.order

    play = Play(story)
    [subscribed] = play.execution.subscriptions.values()
    assert (subscribed.name, subscribed.key, subscribed.standing) == ("paid", "o-1", False)
    play.publish(message("paid", "o-1", {"order": 7}))

    assert play.result == 7
    assert play.kinds == ["WorkflowStarted", "Subscribed", "SubscriptionTriggered", "WorkflowCompleted"]
    assert play.replay() is None


def test_event_is_awaited_by_its_class_with_fields_and_comes_as_an_instance() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        paid = await ctx.wait_for_event(OrderPaid, where={"order": 7, "by": "bob"})
        return [type(paid).__name__, paid.order]

    play = Play(story)
    [subscribed] = play.execution.subscriptions.values()
    assert (subscribed.name, subscribed.where) == ("OrderPaid", {"by": '"bob"', "order": "7"})
    play.publish(sent_event("OrderPaid", OrderPaid(7, "bob")))

    assert play.result == ["OrderPaid", 7]
    assert play.replay() is None


def test_broadcast_gives_its_variables() -> None:
    @workflow
    async def story(ctx: Context) -> Any:
        return [await ctx.wait_for_broadcast("stop"), await ctx.wait_for_broadcast("stop", int)]

    play = Play(story)
    play.publish(broadcast("stop", {"why": "night"}))
    play.publish(broadcast("stop", 5))

    assert play.result == [{"why": "night"}, 5]
    assert play.replay() is None


def test_waits_at_the_same_time_are_served_each_by_its_own() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        waits = [ctx.wait_for_message("part", "k", int) for _ in range(3)]
        return list(await asyncio.gather(*waits))

    play = Play(story)
    for value in (1, 2, 3):
        play.publish(message("part", "k", value))

    assert play.result == [1, 2, 3]
    assert play.replay() is None


def test_M1_wait_for_a_key_that_another_has_raises_where_it_waits_and_may_be_caught() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        try:
            await ctx.wait_for_message("paid", "o-1")
        except MessageKeyTaken as error:
            return [error.type, error.name, str(error)]
        return []

    play = Play(story)
    play.tell(envelopes.SubscriptionRefused(number=1, holder="another-id"))

    assert play.result[:2] == ["MessageKeyTaken", "a wait for message 'paid' with key 'o-1'"]
    assert "another-id" in play.result[2]
    assert play.replay() is None


def test_M1_uncaught_it_fails_the_workflow() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await ctx.wait_for_message("paid", "o-1")

    play = Play(story)
    play.tell(envelopes.SubscriptionRefused(number=1, holder="another-id"))

    assert play.failure.type == "MessageKeyTaken"
    assert play.replay() is None


# --- values that do not fit ---


@pytest.mark.parametrize("kind", ["message", "event", "broadcast"])
def test_value_that_does_not_fit_goes_to_the_dead_letters_and_the_wait_goes_on(kind: str) -> None:
    @workflow
    async def story(ctx: Context) -> Any:
        if kind == "message":
            return await ctx.wait_for_message("x", "k", int)
        if kind == "event":
            return (await ctx.wait_for_event(OrderPaid)).order
        return await ctx.wait_for_broadcast("x", int)

    ways: dict[str, Callable[[Any], Publication]] = {
        "message": partial(message, "x", "k"),
        "event": lambda value: sent_event("OrderPaid", {"order": value}),
        "broadcast": partial(broadcast, "x"),
    }
    arriving = ways[kind]
    play = Play(story)
    turn = play.publish(arriving("no number"))

    assert len(play.dead_letters) == 1
    assert "Expected the value of" in play.dead_letters[0]
    assert [one.number for one in turn.subscribed] == [2]
    assert list(play.execution.subscriptions) == [2]
    play.publish(arriving(7))
    assert play.result == 7
    assert play.kinds[2:5] == ["SubscriptionTriggered", "PublicationDeclined", "Subscribed"]
    assert play.replay() is None


def test_wait_that_went_on_ends_by_its_timeout_and_leaves_nothing() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            await ctx.wait_for_message("x", "k", int, timeout=60)
        except TimeoutError as error:
            await ctx.wait_for_signal("end")
            return str(error)
        return ""

    play = Play(story)
    play.publish(message("x", "k", "text"))
    play.fire()
    assert (play.execution.subscriptions, play.execution.timers) == ({}, {})
    play.signal("end")

    assert play.result == "no message 'x' with key 'k' came in time"
    assert play.replay() is None


# --- timeouts and cancelling ---


@pytest.mark.parametrize("is_late", [False, True])
def test_timeout_leaves_neither_timer_nor_subscription(is_late: bool) -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            await ctx.wait_for_event(OrderPaid, timeout=60)
        except TimeoutError:
            await ctx.wait_for_signal("end")
            return "late"
        await ctx.wait_for_signal("end")
        return "in time"

    play = Play(story)
    if is_late:
        play.fire()
    else:
        play.publish(sent_event("OrderPaid", OrderPaid(1)))

    assert (play.execution.subscriptions, play.execution.timers) == ({}, {})
    assert play.program.waiting_signals() == ("end",)
    play.signal("end")
    assert play.result == ("late" if is_late else "in time")
    assert play.replay() is None


def test_timeout_of_nothing_ends_at_once_and_records_nothing() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            await ctx.wait_for_message("x", "k", timeout=0)
        except TimeoutError:
            return "nothing"
        return ""

    play = Play(story)

    assert play.result == "nothing"
    assert play.execution.subscriptions == {}
    assert play.replay() is None


def test_asyncio_timeout_ends_the_subscription_too() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            async with asyncio.timeout(60):
                await ctx.wait_for_broadcast("stop")
        except TimeoutError:
            await ctx.wait_for_signal("end")
        return "done"

    play = Play(story)
    play.fire()
    assert play.execution.subscriptions == {}
    play.signal("end")

    assert play.result == "done"
    assert play.replay() is None


def test_cancelled_workflow_unsubscribes_while_it_cleans_up() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        try:
            await ctx.wait_for_message("x", "k")
        finally:
            await ctx.wait_for_signal("cleaned")

    play = Play(story)
    play.cancel()
    assert "Unsubscribed" in play.kinds
    assert play.execution.subscriptions == {}
    late = play.publish(message("x", "k"), number=1)
    assert [one.is_returned for one in late.publications] == [True]
    play.signal("cleaned")

    assert play.kinds[-1] == "WorkflowCancelled"
    assert play.replay() is None


def test_wait_that_is_begun_and_cancelled_at_once_leaves_no_trace() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        ctx.wait_for_message("x", "k").cancel()
        await ctx.wait_for_signal("end")

    play = Play(story)

    assert play.kinds == ["WorkflowStarted"]
    assert play.replay() is None


def test_workflow_that_returns_leaves_no_subscription() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        _ignored = ctx.wait_for_broadcast("stop")
        await ctx.wait_for_signal("end")
        return "done"

    play = Play(story)
    turn = play.tell(make_signal("end"))

    assert [one.number for one in turn.ended_subscriptions] == [1]
    assert play.result == "done"
    assert play.replay() is None


def test_next_run_subscribes_anew() -> None:
    @workflow
    async def story(ctx: Context, done: int) -> None:
        value = await ctx.wait_for_message("x", "k", int)
        _ignored = ctx.wait_for_broadcast("stop")
        ctx.continue_as(done + value)

    play = Play(story, 1)
    turn = play.tell(envelopes.Triggered(number=1, publication=message("x", "k", 2)))

    assert turn.successor is not None
    assert (turn.subscribed, turn.ended_subscriptions) == ([], [])
    assert play.kinds[-2:] == ["Subscribed", "ContinuedAs"]
    assert play.replay() is None


# --- events that stay kept ---


def test_kept_event_that_several_get_is_not_given_twice_to_one_execution() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        texts = [(await ctx.wait_for_event(News)).text for _ in range(3)]
        await ctx.wait_for_event(OrderPaid)
        return texts

    shared = EventOptions(consume_on_read=False)
    play = Play(story)

    def give(item: str, until: int) -> tuple[str, ...]:
        turn = play.publish(sent_event("news", News(item), id=item, event=shared, expires_at=until))
        return turn.subscribed[0].seen

    assert give("a", BEGIN + 60 * SECOND) == ("a",)
    play.now += 30 * SECOND
    assert give("b", BEGIN + 90 * SECOND) == ("a", "b")
    play.now += 40 * SECOND  # the first has expired
    assert give("c", BEGIN + 90 * SECOND) == ()  # the next wait is for events of another name
    play.publish(sent_event("OrderPaid", OrderPaid(1)))
    assert play.result == ["a", "b", "c"]
    assert play.replay() is None


def test_what_was_seen_is_known_after_a_replay() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        await ctx.wait_for_event(News)
        await ctx.wait_for_signal("again")
        await ctx.wait_for_event(News)

    play = Play(story)
    play.publish(
        sent_event("news", News("a"), id="a", event=EventOptions(consume_on_read=False), expires_at=BEGIN + 60 * SECOND)
    )
    program = type(play.program)(story, "default", play.execution.execution_id)
    assert program.apply(play.history) is None
    play.program = program

    turn = play.tell(make_signal("again"))

    assert [one.seen for one in turn.subscribed] == [("a",)]


# --- what comes when the wait is over ---


def test_message_for_a_race_that_a_held_signal_has_won_goes_back() -> None:
    @workflow
    async def story(ctx: Context) -> int:
        winner = await ctx.wait_any(ctx.message("x", "k"), ctx.signal("go"))
        await ctx.wait_for_signal("end")
        return winner.index

    play = Play(story)
    held = hold(play.execution, play.program, [make_signal("go")], play.now)
    recorded = tuple(held.events)
    play.history.append(type(play.history[0])(play.execution.sequence + 1, held.now, recorded))
    play.execution.sequence += len(recorded)

    turn = play.publish(message("x", "k", "for somebody else"))

    assert [item.is_returned for item in turn.publications] == [True]
    play.signal("end")
    assert play.result == 1
    assert play.replay() is None


# --- sending ---


def test_sending_is_told_what_became_of_it() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        sent = await ctx.send_message("paid", "o-1", {"sum": 5}, ttl=60, message_id="m-1")
        thrown = await ctx.broadcast_signal("stop", [1])
        told = await ctx.send_event(OrderPaid(7))
        return [sent.delivered, sent.started, sent.kept, thrown.delivered, thrown.started, told.delivered, told.kept]

    play = Play(story)
    play.tell(envelopes.PublicationAnswered(number=1, kept=True))
    play.tell(envelopes.PublicationAnswered(number=2, delivered=3, started=2))
    play.tell(envelopes.PublicationAnswered(number=3, delivered=1))

    assert play.result == [False, False, True, 3, 2, 1, False]
    published, sent = play.events[1], play.events[5]
    assert isinstance(published, events.MessagePublished)
    assert (published.ttl_us, published.message_id) == (60 * SECOND, "m-1")
    assert isinstance(sent, events.EventSent)
    assert play.replay() is None


def test_refused_publication_raises_where_it_is_awaited() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        try:
            await ctx.send_message("paid", "o-1")
        except PublicationFailed as error:
            return [error.type, error.name]
        return []

    play = Play(story)
    play.tell(envelopes.PublicationAnswered(number=1, failure=Failure(type="MessageRefused", message="nobody waits")))

    assert play.result == ["MessageRefused", "message 'paid' with key 'o-1'"]
    assert play.replay() is None


def test_event_to_one_workflow_names_it_and_carries_its_fields() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        _ignored = ctx.send_event_to("w-2", OrderPaid(7))
        await ctx.wait_for_signal("end")

    play = Play(story)
    sent = play.events[1]

    assert isinstance(sent, events.EventSent)
    assert sent.workflow_id == "w-2"
    program = type(play.program)(story, "default", play.execution.execution_id)
    step = program.advance(play.events[0], play.now)  # type: ignore[arg-type]
    [command] = step.commands
    assert isinstance(command, commands.SendEvent)
    assert command.fields == {"order": "7", "by": '"ann"'}
    program.close()


def test_B2_workflow_catches_the_signal_that_it_throws_itself() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        caught = ctx.wait_for_broadcast("stop")
        other = asyncio.create_task(waits(ctx))
        await ctx.sleep(1)
        thrown = ctx.broadcast_signal("stop", "all")
        return [await caught, await other, (await thrown).delivered]

    async def waits(ctx: Context) -> Any:
        return await ctx.wait_for_broadcast("stop")

    play = Play(story)
    play.fire()
    assert play.kinds[-2:] == ["SubscriptionTriggered", "SubscriptionTriggered"]
    play.tell(envelopes.PublicationAnswered(number=4, delivered=5))

    assert play.result == ["all", "all", 7]
    assert play.replay() is None


# --- compatibility ---


def test_history_from_before_fits_code_that_waits_for_nothing_new() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        winner = await ctx.wait_any(ctx.signal("a"), ctx.timer(60))
        return [winner.index, winner.value]

    play = Play(story)
    play.fire()
    begun = play.history[0].events[0]
    assert isinstance(begun, events.WorkflowStarted)
    old = tuple(one for one in begun.behaviours if one != "timer-instants")
    before = [
        msgspec.structs.replace(
            play.history[0], events=(msgspec.structs.replace(begun, behaviours=old), *play.history[0].events[1:])
        )
    ]
    program = type(play.program)(story, "default", play.execution.execution_id)
    assert program.apply(before) is None

    step = program.advance(events.TimerFired(number=1), play.now)

    [command] = step.commands
    assert isinstance(command, commands.Complete)
    assert msgspec.json.decode(command.result.data) == [1, None]
    assert replay(story, play.history) is None


def test_E1_event_that_another_winner_declined_is_not_taken_for_seen() -> None:
    """It came for a wait that had lost: the code never got it, so the next wait may."""

    @workflow
    async def story(ctx: Context) -> Any:
        winner = await ctx.wait_any(ctx.signal("go"), ctx.event(News))
        return [winner.index, (await ctx.wait_for_event(News)).text]

    play = Play(story)
    held = hold(play.execution, play.program, [make_signal("go")], play.now)
    play.history.append(type(play.history[0])(play.execution.sequence + 1, held.now, tuple(held.events)))
    play.execution.sequence += len(held.events)
    news = sent_event("news", {"text": "hi"}, event=EventOptions(consume_on_read=False))
    news = msgspec.structs.replace(news, expires_at=play.now + 3600 * SECOND)
    [number] = play.execution.subscriptions

    turn = play.tell(envelopes.Triggered(number=number, publication=news))

    assert "PublicationDeclined" in play.kinds
    assert [one.seen for one in turn.subscribed] == [()]
    play.publish(news)
    assert play.result == [0, "hi"]
    assert play.replay() is None
