"""How the simulated workflow carries out steps about messages, events, broadcast signals, updates and human tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.code.context import Context
from holdfast.simulation import reach_plans
from holdfast.simulation.derived_plans import MODES, ReceiveEvents
from holdfast.simulation.plan_roots import PlannedStep, SignalToken
from holdfast.simulation.reach_plans import KEPT_SECONDS, MESSAGE, News, Order

SAFETY_SECONDS: Final = 3_600
"""The timeout of waits that must not time out."""
SHORTEST_RACE: Final = 0.01
LONGEST_RACE: Final = 4.0
"""Seconds that a message has to win a race; each loss doubles them."""


class Form(msgspec.Struct, frozen=True):
    """What a person fills in. It does not say who: any of several clients may be the one that completes the task."""

    task: str


def group_by_sender(tokens: Sequence[SignalToken]) -> list[Any]:
    """Group tokens by sender: the order is certain within those of one sender only, who waits for each answer."""
    senders: dict[str, list[int]] = {}
    for token in tokens:
        senders.setdefault(token.sender, []).append(token.number)
    return [[sender, senders[sender]] for sender in sorted(senders)]


# --- messages ---


async def take_messages(ctx: Context, step: reach_plans.TakeMessages) -> Any:
    if step.way == "race":
        return await _race_for_messages(ctx, step)
    timeout = SAFETY_SECONDS if step.way == "timed" else None
    return group_by_sender(
        [await ctx.wait_for_message(MESSAGE, step.key, SignalToken, timeout=timeout) for _ in range(step.count)]
    )


async def _race_for_messages(ctx: Context, step: reach_plans.TakeMessages) -> Any:
    """Take messages against timers. What is put back may be overtaken by what came after it, so the order is open."""
    tokens: list[SignalToken] = []
    seconds = SHORTEST_RACE
    while len(tokens) < step.count:
        winner = await ctx.wait_any(ctx.message(MESSAGE, step.key, SignalToken), ctx.timer(seconds))
        if winner.index == 0:
            tokens.append(msgspec.convert(winner.value, SignalToken))
            seconds = SHORTEST_RACE
        else:
            seconds = min(2 * seconds, LONGEST_RACE)
    return group_by_sender(sorted(tokens, key=lambda token: token.number))


async def send_messages(ctx: Context, step: reach_plans.SendMessages) -> str:
    for number in range(step.count):
        await ctx.send_message(MESSAGE, step.key, SignalToken(step.label, number), ttl=KEPT_SECONDS)
    return "sent"


# --- broadcast signals ---


async def catch_broadcast(ctx: Context, step: reach_plans.CatchBroadcast) -> Any:
    waiting = ctx.wait_for_broadcast(step.name, SignalToken)
    ctx.side_effect(lambda: {"marker": step.label})
    return group_by_sender([await waiting])


async def throw_broadcast(ctx: Context, step: reach_plans.ThrowBroadcast) -> Any:
    await ctx.wait_for_signal(step.gate, SignalToken)
    waiting = ctx.wait_for_broadcast(step.name, SignalToken) if step.is_caught else None
    thrown = await ctx.broadcast_signal(step.name, SignalToken(step.label))
    caught = None if waiting is None else group_by_sender([await waiting])
    return [thrown.delivered, caught]


# --- events ---


async def take_orders(ctx: Context, step: reach_plans.TakeOrders) -> Any:
    return group_by_sender([await ctx.wait_for_event(Order, where={"order": step.order}) for _ in range(step.count)])


async def read_news(ctx: Context, step: reach_plans.ReadNews) -> Any:
    return group_by_sender([await ctx.wait_for_event(News, where={"topic": step.topic}) for _ in range(step.count)])


async def send_order(ctx: Context, step: reach_plans.SendOrder) -> str:
    await ctx.send_event(Order(sender=step.label, order=step.order))
    return "sent"


async def receive_events(ctx: Context, step: ReceiveEvents) -> Any:
    if step.gate is not None:
        ctx.side_effect(lambda: {"marker": step.gate})
        await ctx.wait_for_signal(step.gate, SignalToken)
    tokens = []
    for number in range(step.count):
        waiting = ctx.wait_for_event(MODES[step.kind], where={"topic": step.topic})
        marker = f"{step.label}/{number}"
        ctx.side_effect(lambda marker=marker: {"marker": marker})  # type: ignore[misc]
        tokens.append(await waiting)
    return group_by_sender(tokens)


# --- updates and people ---


async def take_updates(ctx: Context, step: reach_plans.TakeUpdates) -> Any:
    tokens: list[SignalToken] = []
    is_complete = asyncio.Event()

    async def handle(token: SignalToken) -> list[Any]:
        if step.millis:
            await ctx.sleep(step.millis / 1000)
        tokens.append(token)
        if len(tokens) == step.count:
            is_complete.set()
        return [token.sender, token.number, len(tokens)]

    ctx.on_update(step.name, handle)
    await is_complete.wait()
    return group_by_sender(tokens)


async def ask_person(ctx: Context, step: reach_plans.AskPerson) -> str:
    asked = ctx.human_task(step.label, Form, candidates=["people"])
    if step.has_marker:
        ctx.side_effect(lambda: {"marker": step.label})
    return (await asked).task


PERFORM_REACHING: Final[Mapping[type[PlannedStep], Callable[[Context, Any], Coroutine[Any, Any, Any]]]] = {
    reach_plans.TakeMessages: take_messages,
    reach_plans.SendMessages: send_messages,
    reach_plans.CatchBroadcast: catch_broadcast,
    reach_plans.ThrowBroadcast: throw_broadcast,
    reach_plans.TakeOrders: take_orders,
    reach_plans.ReadNews: read_news,
    reach_plans.SendOrder: send_order,
    reach_plans.TakeUpdates: take_updates,
    reach_plans.AskPerson: ask_person,
    ReceiveEvents: receive_events,
}
