"""The first of several waits, of all kinds: one wins, the others end, and nothing is left of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from holdfast import Context, InvalidArguments, MessageKeyTaken, activity, event, workflow
from holdfast.core import envelopes
from holdfast.core.instants import SECOND, to_datetime
from tests.code.playing import BEGIN, Play, broadcast, make_signal, message, sent_event


@event
@dataclass
class Paid:
    order: int


@event
@dataclass
class Shipped:
    order: int


@activity
async def work() -> str:
    return "worked"


@workflow
async def child(_ctx: Context) -> str:
    return "child"


SIDES = ["signal", "message", "paid", "shipped", "broadcast", "timer", "child", "activity", "future"]


@workflow
async def racing(ctx: Context, kinds: list[str]) -> list[Any]:
    made: dict[str, Callable[[], Any]] = {
        "signal": lambda: ctx.signal("go", int),
        "message": lambda: ctx.message("m", "k", int),
        "paid": lambda: ctx.event(Paid, {"order": 7}),
        "shipped": lambda: ctx.event(Shipped),
        "broadcast": lambda: ctx.broadcast("stop", int),
        "timer": lambda: ctx.timer(60),
        "child": lambda: ctx.start_child(child),
        "activity": lambda: ctx.run(work),
        "future": lambda: asyncio.ensure_future(ctx.wait_for_signal("later", int)),
    }
    winner = await ctx.wait_any(*(made[kind]() for kind in kinds))
    await ctx.wait_for_signal("end")
    value = winner.value
    shown = value.isoformat() if isinstance(value, datetime) else getattr(value, "order", value)
    return [kinds[winner.index], shown]


def let_win(play: Play, kind: str) -> None:
    match kind:
        case "signal":
            play.signal("go", 1)
        case "message":
            play.publish(message("m", "k", 2))
        case "paid":
            play.publish(sent_event("Paid", Paid(7)))
        case "shipped":
            play.publish(sent_event("Shipped", Shipped(8)))
        case "broadcast":
            play.publish(broadcast("stop", 3))
        case "timer":
            play.now = BEGIN + 61 * SECOND
            play.tell(envelopes.TimerDue(number=min(play.execution.timers)))
        case "child":
            play.finish_child(min(play.execution.children), "child")
        case "activity":
            play.complete(min(play.execution.activities), "worked")
        case "future":
            play.signal("later", 4)


VALUES: dict[str, Any] = {
    "signal": 1,
    "message": 2,
    "paid": 7,
    "shipped": 8,
    "broadcast": 3,
    "timer": to_datetime(BEGIN + 61 * SECOND).isoformat(),
    "child": "child",
    "activity": "worked",
    "future": 4,
}


@pytest.mark.parametrize("winner", SIDES)
@pytest.mark.parametrize("shift", range(0, len(SIDES), 2))
def test_E3_any_of_all_kinds_may_win_and_the_others_leave_nothing_behind(winner: str, shift: int) -> None:
    kinds = SIDES[shift:] + SIDES[:shift]
    play = Play(racing, kinds)
    assert len(play.execution.subscriptions) == 4
    let_win(play, winner)

    assert (play.execution.subscriptions, play.execution.timers) == ({}, {})
    assert set(play.program.waiting_signals()) <= {"end", "later"}
    play.signal("end")
    assert play.result == [winner, VALUES[winner]]
    assert play.replay() is None


@pytest.mark.parametrize(("winner", "late"), list(itertools.permutations(["message", "paid", "broadcast", "timer"], 2)))
def test_E3_what_comes_for_a_wait_that_lost_goes_back_or_is_dropped(winner: str, late: str) -> None:
    play = Play(racing, ["message", "paid", "broadcast", "timer"])
    numbers = {one.kind.value: one.number for one in play.execution.subscriptions.values()}
    timer = min(play.execution.timers)
    let_win(play, winner)

    if late == "timer":
        turn = play.tell(envelopes.TimerDue(number=timer))
    elif late == "message":
        turn = play.publish(message("m", "k", 2), numbers["message"])
    elif late == "paid":
        turn = play.publish(sent_event("Paid", Paid(7)), numbers["event"])
    else:
        turn = play.publish(broadcast("stop", 3), numbers["broadcast"])

    assert turn.events == []
    assert [item.publication.kind.value for item in turn.publications] == {"message": ["message"], "paid": ["event"]}.get(
        late, []
    )
    play.signal("end")
    assert play.result == [winner, VALUES[winner]]
    assert play.replay() is None


def test_what_is_there_already_wins_and_no_subscription_is_made() -> None:
    play = Play(racing, ["message", "signal"])
    assert len(play.execution.subscriptions) == 1

    @workflow
    async def story(ctx: Context) -> int:
        await ctx.wait_for_signal("begin")
        winner = await ctx.wait_any(ctx.message("m", "k"), ctx.event(Paid), ctx.timer(5), ctx.signal("go"))
        return winner.index

    other = Play(story)
    other.signal("go", 1)
    other.signal("begin")

    assert other.result == 3
    assert "Subscribed" not in other.kinds
    assert other.replay() is None


def test_value_that_does_not_fit_does_not_end_the_race() -> None:
    play = Play(racing, ["message", "broadcast", "timer"])
    play.publish(message("m", "k", "no number"))
    assert len(play.execution.subscriptions) == 2
    assert len(play.dead_letters) == 1
    play.publish(message("m", "k", 2))
    play.signal("end")

    assert play.result == ["message", 2]
    assert play.replay() is None


def test_M1_key_that_another_has_ends_the_race_with_the_exception() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            await ctx.wait_any(ctx.message("m", "k"), ctx.broadcast("stop"), ctx.timer(60))
        except MessageKeyTaken as error:
            await ctx.wait_for_signal("end")
            return error.type
        return ""

    play = Play(story)
    play.tell(envelopes.SubscriptionRefused(number=1, holder="other"))
    assert (play.execution.subscriptions, play.execution.timers) == ({}, {})
    play.signal("end")

    assert play.result == "MessageKeyTaken"
    assert play.replay() is None


def test_cancelled_race_ends_all_its_waits() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        try:
            await ctx.wait_any(ctx.message("m", "k"), ctx.event(Paid), ctx.broadcast("stop"), ctx.timer(60))
        finally:
            await ctx.wait_for_signal("cleaned")

    play = Play(story)
    play.cancel()

    assert (play.execution.subscriptions, play.execution.timers) == ({}, {})
    play.signal("cleaned")
    assert play.kinds[-1] == "WorkflowCancelled"
    assert play.replay() is None


def test_two_that_come_in_one_turn_are_given_in_order_and_the_second_goes_back() -> None:
    play = Play(racing, ["message", "paid"])
    numbers = {one.kind.value: one.number for one in play.execution.subscriptions.values()}

    turn = play.tell(
        envelopes.Triggered(number=numbers["event"], publication=sent_event("Paid", Paid(7))),
        envelopes.Triggered(number=numbers["message"], publication=message("m", "k", 2)),
        make_signal("end"),
    )

    assert play.result == ["paid", 7]
    assert [item.publication.kind.value for item in turn.publications] == ["message"]
    assert play.replay() is None


def test_race_again_and_again_leaves_one_subscription_at_a_time() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        won: list[int] = []
        while len(won) < 20:
            winner = await ctx.wait_any(ctx.message("m", "k", int), ctx.signal("go", int), ctx.timer(60))
            won.append(winner.index)
        return won

    play = Play(story)
    for round_ in range(20):
        assert len(play.execution.subscriptions) == len(play.execution.timers) == 1
        if round_ % 3 == 0:
            play.publish(message("m", "k", 1))
        elif round_ % 3 == 1:
            play.signal("go", 1)
        else:
            play.fire()

    assert play.result == [round_ % 3 for round_ in range(20)]
    assert play.replay() is None


def test_timer_that_is_due_at_once_gives_the_time_of_the_moment() -> None:
    @workflow
    async def story(ctx: Context) -> bool:
        winner = await ctx.wait_any(ctx.timer(0), ctx.message("m", "k"))
        return winner.value == ctx.now()

    play = Play(story)

    assert play.result is True
    assert play.execution.subscriptions == {}
    assert play.replay() is None


@workflow
async def awaiting_alone(ctx: Context, kind: str) -> str:
    made: dict[str, Any] = {
        "signal": ctx.signal("go", int),
        "message": ctx.message("m", "k", int),
        "event": ctx.event(Paid),
        "broadcast": ctx.broadcast("stop"),
        "timer": ctx.timer(5),
    }
    try:
        await made[kind]
    except InvalidArguments as error:
        return error.message
    return "awaited"


@pytest.mark.parametrize(
    ("kind", "call", "remedy"),
    [
        ("signal", "ctx.signal('go', …)", "await ctx.wait_for_signal('go', …)"),
        ("message", "ctx.message('m', …)", "await ctx.wait_for_message('m', …)"),
        ("event", "ctx.event(Paid, …)", "await ctx.wait_for_event(Paid, …)"),
        ("broadcast", "ctx.broadcast('stop', …)", "await ctx.wait_for_broadcast('stop', …)"),
        ("timer", "ctx.timer(…)", "await ctx.sleep(…)"),
    ],
)
def test_side_of_a_race_that_is_awaited_alone_says_what_to_write(kind: str, call: str, remedy: str) -> None:
    told = str(Play(awaiting_alone, kind).result)

    assert told.startswith(f"Expected {call} to be given to ctx.wait_any, but it is awaited by itself. ")
    assert f"await ctx.wait_any({call})" in told
    assert f"{remedy} to wait for it alone" in told
