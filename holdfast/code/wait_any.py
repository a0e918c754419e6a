"""The first of several waits: signals, what is published, timers, and whatever was already asked for."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.code.context import ChildHandle, Wait
from holdfast.code.loop import WorkflowFuture
from holdfast.code.published_waits import subscribe
from holdfast.code.signals import Race
from holdfast.code.wait_values import PublicationWait, SignalWait, TimerWait, Winner
from holdfast.core.instants import to_datetime, to_micros

if TYPE_CHECKING:
    from holdfast.code.command_issuer import CommandIssuer
    from holdfast.code.signals import SignalQueues

Sides: TypeAlias = Sequence[Wait[Any]]
"""What a race is between."""
Settle: TypeAlias = Callable[[asyncio.Future[Any]], None]
"""What ends a race by one of its sides, which is done."""
Begun: TypeAlias = list[tuple[asyncio.Future[Any], Settle]]
"""The sides that were begun for a race."""

_BEGINNING: Final = (TimerWait, PublicationWait)
"""What is never over before it has begun. A tuple: a union of types is made anew each time."""


class RaceFuture(WorkflowFuture[Winner[Any]]):
    """The future of a race: what it waits for is what its sides wait for."""


def start_race(issuer: CommandIssuer, signals: SignalQueues, waits: Sides) -> asyncio.Future[Winner[Any]]:
    """The first of several waits; those that were begun for this and lose are withdrawn."""
    for wait in waits:
        if isinstance(wait, SignalWait):
            issuer.values.check_hint(wait.type, "signal", wait.name)
        elif isinstance(wait, PublicationWait):
            issuer.values.check_hint(wait.type, wait.kind, wait.name)
    winner = RaceFuture(issuer.loop)
    if _settle_at_once(signals, waits, winner):
        return winner
    begun: Begun = []
    for index, wait in enumerate(waits):
        settle: Settle = functools.partial(_settle, winner, index)
        future: asyncio.Future[Any]
        if isinstance(wait, SignalWait):
            future = signals.wait(wait.name, wait.type, None, Race(winner, settle))
            begun.append((future, settle))
        elif isinstance(wait, PublicationWait):
            future = subscribe(issuer, wait, None, Race(winner, settle))
            begun.append((future, settle))
        elif isinstance(wait, TimerWait):
            future = issuer.start_sleep(issuer.loop.now + to_micros(wait.duration), label=wait.name)
            if issuer.has_timer_instants:
                settle = functools.partial(_settle_timer, winner, index, issuer)
            begun.append((future, settle))
        else:
            future = _future_of(wait)
        future.add_done_callback(settle)
    winner.add_done_callback(functools.partial(_end_waits, begun))
    return winner


def _end_waits(begun: Begun, _winner: asyncio.Future[Winner[Any]]) -> None:
    """The race is over: withdraw what was begun for it and is not done. Nothing is left that it could settle."""
    for future, settle in begun:
        if not future.done():
            future.remove_done_callback(settle)
            future.cancel()


def _settle_at_once(signals: SignalQueues, waits: Sides, winner: asyncio.Future[Winner[Any]]) -> bool:
    """What is there already wins, in the order given, and nothing else is taken."""
    for index, wait in enumerate(waits):
        if isinstance(wait, SignalWait):
            value = signals.take(wait.name, wait.type)
            if not signals.is_missing(value):
                winner.set_result(Winner(index, value))
                return True
        elif not isinstance(wait, _BEGINNING):
            future = _future_of(wait)
            if future.done():
                _settle(winner, index, future)
                return True
    return False


def _future_of(wait: Any) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = wait.result() if isinstance(wait, ChildHandle) else wait
    return future


def _settle(winner: asyncio.Future[Winner[Any]], index: int, done: asyncio.Future[Any]) -> None:
    if winner.done():
        return
    if done.cancelled():
        winner.cancel()
    elif (error := done.exception()) is not None:
        winner.set_exception(error)
    else:
        winner.set_result(Winner(index, done.result()))


def _settle_timer(winner: asyncio.Future[Winner[Any]], index: int, issuer: CommandIssuer, done: asyncio.Future[Any]) -> None:
    """A timer is over: its value is when it fired, which is the time of the event that is being handled."""
    if winner.done() or done.cancelled():
        _settle(winner, index, done)
    else:
        winner.set_result(Winner(index, to_datetime(issuer.loop.now)))
