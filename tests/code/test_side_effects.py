"""R1: a side effect is called once, whatever comes of it; and replaying many costs as much for each as replaying few."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast import Context, SideEffectFailed, workflow
from holdfast.core import events
from holdfast.errors import EncodingError
from tests.code.playing import Play, replay


def raise_it(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (object, "EncodingError"),
        (lambda: float("nan"), "EncodingError"),
        (lambda: "x" * 3_000_000, "PayloadTooLarge"),
        (lambda: raise_it(SystemExit(3)), "SystemExit"),
        (lambda: raise_it(KeyboardInterrupt()), "KeyboardInterrupt"),
        (lambda: raise_it(asyncio.CancelledError()), "CancelledError"),
        (lambda: raise_it(GeneratorExit()), "GeneratorExit"),
        (lambda: raise_it(StopIteration()), "StopIteration"),
    ],
    ids=["object", "nan", "too large", "exit", "interrupt", "cancelled", "generator exit", "stop"],
)
def test_R3_side_effect_that_cannot_be_recorded_fails_and_is_not_called_again(
    function: Callable[[], Any], expected: str
) -> None:
    calls: list[int] = []

    def count() -> Any:
        calls.append(1)
        return function() if len(calls) == 1 else "another value"

    @workflow
    async def story(ctx: Context) -> list[str]:
        found: list[str] = []
        try:
            ctx.side_effect(count)
        except SideEffectFailed as error:
            found = [error.type, error.message]
        await ctx.sleep(1)
        return found

    play = Play(story)
    play.fire()

    assert play.kinds[:2] == ["WorkflowStarted", "SideEffectRecorded"]
    assert play.result[0] == expected
    assert play.replay() is None
    assert calls == [1]


def test_R1_history_without_a_record_of_what_could_not_be_encoded_is_replayed_as_it_was() -> None:
    @workflow
    async def story(ctx: Context) -> None:
        try:
            ctx.side_effect(object)
        except (EncodingError, SideEffectFailed):
            await ctx.sleep(1)

    play = Play(story)
    first = play.history[0]
    older = [event for event in first.events if not isinstance(event, events.SideEffectRecorded)]
    history = [msgspec.structs.replace(first, events=older)]

    assert len(older) == len(first.events) - 1
    assert replay(story, history) is None


def measure(story: Any) -> float:
    play = Play(story)
    began = time.process_time()
    assert play.replay() is None
    return time.process_time() - began


@pytest.mark.parametrize("kind", ["side effects", "patches", "timers taken back"])
def test_R1_replay_of_many_in_one_turn_takes_linear_time(kind: str) -> None:
    def make(count: int) -> Any:
        @workflow
        async def story(ctx: Context) -> None:
            if kind == "timers taken back":
                for timer in reversed([ctx.sleep(10) for _ in range(count)]):
                    timer.cancel()
                return
            for number in range(count):
                if kind == "patches":
                    ctx.patched(f"patch-{number}")
                else:
                    ctx.side_effect(lambda: 1)

        return story

    few, many = make(500), make(8_000)
    ratio = min(measure(many) / measure(few) for _ in range(3))

    assert ratio < 64, "16 times as many; it would be 256 times the work if each looked at all"
