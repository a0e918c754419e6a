"""The first of several waits: signals, timers, and whatever was already asked for."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.code.context import ChildHandle, SignalWait, TimerWait, Wait, Winner
from holdfast.code.loop import WorkflowFuture
from holdfast.code.signals import Race
from holdfast.core.instants import to_micros

if TYPE_CHECKING:
    from holdfast.code.command_issuer import CommandIssuer
    from holdfast.code.signals import SignalQueues

Sides: TypeAlias = Sequence[Wait[Any]]
"""What a race is between."""


class RaceFuture(WorkflowFuture[Winner[Any]]):
    """The future of a race: what it waits for is what its sides wait for."""


def start_race(issuer: CommandIssuer, signals: SignalQueues, waits: Sides) -> asyncio.Future[Winner[Any]]:
    """The first of several waits; those that were begun for this and lose are withdrawn."""
    winner = RaceFuture(issuer.loop)
    if _settle_at_once(signals, waits, winner):
        return winner
    begun: list[asyncio.Future[Any]] = []
    for index, wait in enumerate(waits):
        settle = functools.partial(_settle, winner, index)
        future: asyncio.Future[Any]
        if isinstance(wait, SignalWait):
            future = signals.wait(wait.name, wait.type, None, Race(winner, settle))
            begun.append(future)
        elif isinstance(wait, TimerWait):
            future = issuer.start_sleep(issuer.loop.now + to_micros(wait.duration), label=wait.name)
            begun.append(future)
        else:
            future = _future_of(wait)
        future.add_done_callback(settle)
    winner.add_done_callback(lambda _: [one.cancel() for one in begun])
    return winner


def _settle_at_once(signals: SignalQueues, waits: Sides, winner: asyncio.Future[Winner[Any]]) -> bool:
    """What is there already wins, in the order given, and nothing else is taken."""
    for index, wait in enumerate(waits):
        if isinstance(wait, SignalWait):
            value = signals.take(wait.name, wait.type)
            if not signals.is_missing(value):
                winner.set_result(Winner(index, value))
                return True
        elif not isinstance(wait, TimerWait):
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
