"""Signals inside a program: queues that never lose one, waits that end cleanly, and races with one winner."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import ChildHandle, Context, activity, workflow
from holdfast.code.signals import DrainedSignals, SignalFuture
from holdfast.core import envelopes
from holdfast.core.instants import SECOND, to_datetime
from tests.code.playing import BEGIN, Play, make_signal


@dataclass
class Message:
    text: str
    last: bool = False


@activity
async def work(name: str) -> str:
    return name


def test_S2_signal_before_the_wait_is_kept() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        await ctx.run(work, "first")
        return await ctx.wait_for_signal("go", str)

    play = Play(story)
    play.signal("go", "early")
    play.complete(1, "first")

    assert play.result == "early"
    assert play.replay() is None


def test_S1_signals_of_one_name_are_taken_in_order_and_names_do_not_mix() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        return [await ctx.wait_for_signal(name, int) for name in ("a", "b", "a")]

    play = Play(story)
    for name, value in (("b", 1), ("a", 2), ("c", 3), ("a", 4)):
        play.signal(name, value)

    assert play.result == [2, 1, 4]


def test_several_waits_for_one_name_are_served_in_the_order_of_waiting() -> None:
    @workflow
    async def story(ctx: Context) -> list[int]:
        return await asyncio.gather(*(ctx.wait_for_signal("a", int) for _ in range(3)))

    play = Play(story)
    for value in (1, 2, 3):
        play.signal("a", value)

    assert play.result == [1, 2, 3]


def test_S6_wait_that_times_out_raises_and_leaves_nothing() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        try:
            await ctx.wait_for_signal("go", timeout=5)
        except TimeoutError as error:
            return [str(error), await ctx.wait_for_signal("go", str)]
        return []

    play = Play(story)
    play.fire()
    assert (play.execution.timers, play.program.waiting_signals()) == ({}, ("go",))
    play.signal("go", "late")

    assert play.result == ["no signal 'go' came in time", "late"]
    assert play.replay() is None


def test_S6_wait_that_is_served_leaves_no_timer() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        value = await ctx.wait_for_signal("go", str, timeout=5)
        await ctx.wait_for_signal("more")
        return value

    play = Play(story)
    play.signal("go", "in time")

    assert play.kinds == ["WorkflowStarted", "TimerStarted", "SignalReceived", "TimerCancelled"]
    assert play.execution.timers == {}


def test_timeout_of_nothing_looks_once() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        found: list[Any] = []
        for _ in range(2):
            try:
                found.append(await ctx.wait_for_signal("go", timeout=0))
            except TimeoutError:
                found.append(None)
        return found

    play = Play(story)

    assert play.result == [None, None]
    assert "TimerStarted" not in play.kinds


def test_S3_what_is_pending_is_the_same_on_replay() -> None:
    seen: list[list[Any]] = []

    @workflow
    async def story(ctx: Context) -> list[Any]:
        look: list[Any] = [ctx.has_signal("a"), ctx.pending_signal_count("a")]
        await ctx.run(work, "one")
        look += [ctx.has_signal("a"), ctx.pending_signal_count("a"), ctx.has_signal("b")]
        await ctx.run(work, "two")
        look += ctx.drain_signals("a", int)
        look += [ctx.has_signal("a"), ctx.drain_signals("a")]
        seen.append(look)
        return look

    play = Play(story)
    play.signal("a", 1)
    play.signal("a", 2)
    play.complete(1, "one")
    play.signal("a", 3)
    play.complete(2, "two")

    assert play.result == [False, 0, True, 2, False, 1, 2, 3, False, []]
    assert play.replay() is None
    assert seen[0] == seen[1]


def test_S4_value_that_does_not_fit_goes_to_the_dead_letters_and_the_wait_goes_on() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        message = await ctx.wait_for_signal("message", Message, timeout=60)
        return message.text

    play = Play(story)
    play.signal("message", {"words": 5})
    play.signal("message", {"text": "hello"})

    assert play.result == "hello"
    (reason,) = play.dead_letters
    assert reason.startswith(
        "Expected the value of signal 'message' to be Message, but object missing required field `text` in "
    )
    assert "SignalRejected" in play.kinds
    assert play.replay() is None


def test_S4_value_that_was_kept_and_does_not_fit_is_passed_over() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        await ctx.run(work, "first")
        return [await ctx.wait_for_signal("a", int), ctx.drain_signals("a", int)]

    play = Play(story)
    for value in ("one", 2, "three", 4):
        play.signal("a", value)
    play.complete(1, "first")

    assert play.result == [2, [4]]
    assert len(play.dead_letters) == 2
    assert play.replay() is None


# --- wait_any ---


def test_wait_any_gives_the_first_and_ends_the_other_waits() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        winner = await ctx.wait_any(ctx.signal("a", int), ctx.signal("b", str), ctx.timer(60))
        await ctx.wait_for_signal("more")
        return [winner.index, winner.value, ctx.pending_signal_count("a")]

    play = Play(story)
    play.signal("b", "won")
    assert (play.execution.timers, play.program.waiting_signals()) == ({}, ("more",))
    play.signal("a", 1)
    play.signal("more")

    assert play.result == [1, "won", 1]
    assert play.replay() is None


def test_wait_any_ends_by_its_timer() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        winner = await ctx.wait_any(ctx.signal("a"), ctx.timer(60))
        return [winner.index, winner.value]

    play = Play(story)
    play.fire()

    assert play.result == [1, to_datetime(BEGIN + 60 * SECOND).isoformat().replace("+00:00", "Z")]


def test_wait_any_takes_what_is_there_in_the_order_given_and_nothing_else() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        await ctx.run(work, "first")
        winner = await ctx.wait_any(ctx.signal("b"), ctx.signal("a"), ctx.timer(60))
        return [winner.index, winner.value, ctx.drain_signals("a"), ctx.drain_signals("b")]

    play = Play(story)
    for name, value in (("a", 1), ("b", 2), ("b", 3)):
        play.signal(name, value)
    play.complete(1, "first")

    assert play.result == [0, 2, [1], [3]]
    assert "TimerStarted" not in play.kinds


def test_wait_any_leaves_activities_children_and_tasks_going() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        run = ctx.run(work, "slow")
        child: ChildHandle[str] = ctx.start_child("kid")
        task = asyncio.create_task(asyncio.sleep(99, "slept"))
        winner = await ctx.wait_any(run, child, task, ctx.signal("go"))
        return [winner.index, await run, await child, await task]

    play = Play(story)
    play.signal("go")
    play.complete(1, "done")
    play.finish_child(2, "grown")
    play.fire()

    assert play.result == [3, "done", "grown", "slept"]
    assert play.replay() is None


def test_wait_any_raises_what_the_winner_raises() -> None:
    @workflow
    async def story(ctx: Context) -> str:
        try:
            await ctx.wait_any(ctx.run(work, "bad"), ctx.timer(60))
        except Exception as error:
            return type(error).__name__
        return "fine"

    play = Play(story)
    play.fail(1, ValueError("bad"))

    assert play.result == "ActivityFailed"
    assert play.execution.timers == {}


def test_wait_any_can_be_cancelled_and_leaves_no_wait() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        try:
            async with asyncio.timeout(5):
                await ctx.wait_any(ctx.signal("a"), ctx.timer(60))
        except TimeoutError:
            pass
        await ctx.wait_for_signal("more")
        return ctx.drain_signals("a")

    play = Play(story)
    play.fire()
    assert (play.execution.timers, play.program.waiting_signals()) == ({}, ("more",))
    play.signal("a", "kept")
    play.signal("more")

    assert play.result == ["kept"]
    assert play.replay() is None


def test_S7_signals_that_are_held_back_together_are_taken_by_one_wait_each() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        winner = await ctx.wait_any(ctx.signal("a"), ctx.signal("b"))
        return [winner.index, winner.value, ctx.drain_signals("a"), ctx.drain_signals("b")]

    play = Play(story)
    play.tell(make_signal("a", 1), make_signal("b", 2), make_signal("a", 3), hold_signals=True)

    assert play.result == [0, 1, [3], [2]]
    assert play.replay() is None


def test_S7_cancel_is_not_lost_between_signals_that_are_held_back() -> None:
    @workflow
    async def story(ctx: Context) -> list[Any]:
        first = await ctx.wait_for_signal("a")
        try:
            await ctx.sleep(60)
        except asyncio.CancelledError:
            return ["cancelled", first, ctx.drain_signals("a")]
        return []

    play = Play(story)
    play.tell(make_signal("a", 1), envelopes.Cancel(), make_signal("a", 2), hold_signals=True)

    assert play.result == ["cancelled", 1, [2]]
    assert play.replay() is None


# --- what is kept ---


@pytest.mark.parametrize("how", ["timeout", "race", "cancel"])
def test_waits_that_have_ended_are_not_kept(how: str) -> None:
    @workflow
    async def story(ctx: Context) -> str:
        for _ in range(100):
            if how == "timeout":
                with contextlib.suppress(TimeoutError):
                    await ctx.wait_for_signal("go", str, timeout=1)
            elif how == "race":
                await ctx.wait_any(ctx.signal("go", str), ctx.timer(1))
            else:
                wait = ctx.wait_for_signal("go", str)
                await ctx.sleep(1)
                wait.cancel()
        return await ctx.wait_for_signal("go", str)

    play = Play(story)
    for _ in range(100):
        play.fire()
    gc.collect()
    kept = [one for one in gc.get_objects() if type(one) is SignalFuture and one.get_loop() is play.program.loop]

    assert len([one for one in kept if not one.done()]) == 1
    assert len(kept) <= 2, "only the one who waits, and one in a variable of the code"
    assert play.program.waiting_signals() == ("go",)
    play.signal("go", "done")
    assert play.result == "done"
    assert play.program.waiting_signals() == ()
    assert play.replay() is None


def test_S1_signals_go_to_the_waits_that_are_left_in_their_order() -> None:
    @workflow
    async def story(ctx: Context) -> list[str]:
        waits = [ctx.wait_for_signal("go", str, timeout=5 if number == 1 else None) for number in range(4)]
        waits[2].cancel()
        await ctx.sleep(10)
        return [await waits[0], await waits[3]]

    play = Play(story)
    play.fire()
    play.signal("go", "first")
    play.signal("go", "second")
    play.fire()

    assert play.result == ["first", "second"]
    assert play.replay() is None


@pytest.mark.parametrize("is_awaited", [True, False])
def test_drained_signals_may_be_awaited(is_awaited: bool) -> None:
    @workflow
    async def order(ctx: Context) -> list[list[int]]:
        await ctx.wait_for_signal("go")
        if is_awaited:
            return [await ctx.drain_signals("a", int), await ctx.drain_signals("a", int)]
        return [ctx.drain_signals("a", int), ctx.drain_signals("a", int)]

    play = Play(order)
    play.signal("a", 1)
    play.signal("a", 2)
    play.signal("go")

    assert play.result == [[1, 2], []]
    assert play.replay(order) is None


def test_drained_signals_are_a_list() -> None:
    drained = DrainedSignals([1, 2])

    assert isinstance(drained, list)
    assert drained == [1, 2]
    assert repr(drained) == "[1, 2]"
    assert [*drained, 3] == [1, 2, 3]
