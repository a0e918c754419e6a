"""Code that no longer fits its history: every kind of difference is found, shown with its line, and blocks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, activity, event, workflow
from holdfast.code.definitions import Workflow
from holdfast.code.matching import PAIRS
from holdfast.core import commands, events, payloads
from holdfast.core.envelopes import Update
from holdfast.core.request_keys import RequestKey
from tests.code.playing import Play, message

Body = Callable[[Context], Any]


@activity
async def charge(amount: int) -> int:
    return amount


@activity
async def ship(order: str) -> str:
    return order


def define(body: Body) -> Workflow[..., Any]:
    """A workflow 'order' with that body; another body is another version of the code."""

    @workflow(name="order")
    async def order(ctx: Context) -> Any:
        return await body(ctx)

    return order


# --- bodies: what the old code did, or the new code does ---


async def runs_charge(ctx: Context) -> None:
    await ctx.run(charge, 1)


async def runs_ship(ctx: Context) -> None:
    await ctx.run(ship, "a")


async def sleeps(ctx: Context) -> None:
    await ctx.sleep(60)


async def starts_a_child(ctx: Context) -> None:
    await ctx.run_child("invoice")


async def starts_another_child(ctx: Context) -> None:
    await ctx.run_child("reminder")


async def signals_another(ctx: Context) -> None:
    await ctx.signal_external_workflow("other", "go")


async def signals_another_name(ctx: Context) -> None:
    await ctx.signal_external_workflow("other", "stop")


async def takes_a_side_effect(ctx: Context) -> None:
    ctx.side_effect(lambda: 1)
    await ctx.sleep(60)


async def is_patched(ctx: Context) -> None:
    ctx.patched("new-path")
    await ctx.sleep(60)


async def waits(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


async def returns(_ctx: Context) -> int:
    return 1


async def fails(_ctx: Context) -> None:
    raise ValueError("no")


async def continues(ctx: Context) -> None:
    ctx.continue_as()


async def withdraws_an_activity(ctx: Context) -> None:
    future = ctx.run(charge, 1)
    await ctx.wait_for_signal("go")
    future.cancel()
    await ctx.wait_for_signal("never")


async def keeps_the_activity(ctx: Context) -> None:
    future = ctx.run(charge, 1)
    await ctx.wait_for_signal("go")
    await future


async def withdraws_a_timer(ctx: Context) -> None:
    future = ctx.sleep(60)
    await ctx.wait_for_signal("go")
    future.cancel()
    await ctx.wait_for_signal("never")


async def keeps_the_timer(ctx: Context) -> None:
    future = ctx.sleep(60)
    await ctx.wait_for_signal("go")
    await future


async def asks_a_person(ctx: Context) -> None:
    await ctx.human_task("approve")


async def withdraws_a_task(ctx: Context) -> None:
    future = ctx.human_task("approve")
    await ctx.wait_for_signal("go")
    future.cancel()
    await ctx.wait_for_signal("never")


async def keeps_the_task(ctx: Context) -> None:
    future = ctx.human_task("approve")
    await ctx.wait_for_signal("go")
    await future


async def withdraws_a_child(ctx: Context) -> None:
    child: Any = ctx.start_child("invoice")
    await ctx.wait_for_signal("go")
    child.cancel()
    await ctx.wait_for_signal("never")


async def keeps_the_child(ctx: Context) -> None:
    child: Any = ctx.start_child("invoice")
    await ctx.wait_for_signal("go")
    await child


async def wants_numbers(ctx: Context) -> None:
    await ctx.wait_for_signal("go", int)


async def wants_anything(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    await ctx.sleep(60)


async def waits_for_a_message(ctx: Context) -> None:
    await ctx.wait_for_message("paid", "o-1")


async def waits_for_a_broadcast(ctx: Context) -> None:
    await ctx.wait_for_broadcast("paid")


async def ends_the_wait(ctx: Context) -> None:
    future = ctx.wait_for_broadcast("paid")
    await ctx.wait_for_signal("go")
    future.cancel()
    await ctx.wait_for_signal("never")


async def keeps_the_wait(ctx: Context) -> None:
    future = ctx.wait_for_broadcast("paid")
    await ctx.wait_for_signal("go")
    await future


async def wants_a_number(ctx: Context) -> None:
    await ctx.wait_for_message("paid", "o-1", int)


async def wants_any_message(ctx: Context) -> None:
    await ctx.wait_for_message("paid", "o-1")
    await ctx.sleep(60)


async def sends_a_message(ctx: Context) -> None:
    await ctx.send_message("paid", "o-1")


async def sends_another_message(ctx: Context) -> None:
    await ctx.send_message("shipped", "o-1")


@event
@dataclass
class Paid:
    order: int


async def sends_an_event(ctx: Context) -> None:
    await ctx.send_event(Paid(7))


async def throws_a_signal(ctx: Context) -> None:
    await ctx.broadcast_signal("stop")


async def handles_an_update(ctx: Context) -> None:
    ctx.on_update("add", lambda: 1)
    await ctx.wait_for_signal("never")


async def fails_an_update(ctx: Context) -> None:
    def add() -> None:
        raise ValueError("no")

    ctx.on_update("add", add)
    await ctx.wait_for_signal("never")


async def ends_by_signal(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


async def fails_by_signal(ctx: Context) -> None:
    raise ValueError(await ctx.wait_for_signal("go"))


async def lets_cancel_through(ctx: Context) -> None:
    await ctx.sleep(60)


async def swallows_cancel(ctx: Context) -> str:
    future = ctx.sleep(60)
    try:
        await future
    except BaseException:
        return "swallowed"
    return ""


START_TIMER = "start a timer (ctx.sleep, or a timeout)"
STARTED_TIMER = "started a timer (ctx.sleep, or a timeout)"
DIFFERENCES: list[tuple[Body, Body, type[events.Event], str, str]] = [
    (runs_charge, runs_ship, events.ActivityScheduled, "call ctx.run('charge')", "called ctx.run('ship')"),
    (runs_charge, sleeps, events.ActivityScheduled, "call ctx.run('charge')", STARTED_TIMER),
    (sleeps, runs_charge, events.TimerStarted, START_TIMER, "called ctx.run('charge')"),
    (
        starts_a_child,
        starts_another_child,
        events.ChildStarted,
        "start the child workflow 'invoice'",
        "started the child workflow 'reminder'",
    ),
    (
        signals_another,
        signals_another_name,
        events.ExternalSignalInitiated,
        "call ctx.signal_external_workflow('other', 'go')",
        "called ctx.signal_external_workflow('other', 'stop')",
    ),
    (
        signals_another,
        sleeps,
        events.ExternalSignalInitiated,
        "call ctx.signal_external_workflow('other', 'go')",
        STARTED_TIMER,
    ),
    (takes_a_side_effect, sleeps, events.SideEffectRecorded, "call ctx.side_effect(…)", STARTED_TIMER),
    (is_patched, sleeps, events.PatchRecorded, "call ctx.patched('new-path')", STARTED_TIMER),
    (is_patched, waits, events.PatchRecorded, "call ctx.patched('new-path')", "did nothing there"),
    (sleeps, takes_a_side_effect, events.TimerStarted, START_TIMER, "called ctx.side_effect(…)"),
    (runs_charge, waits, events.ActivityScheduled, "call ctx.run('charge')", "did nothing there"),
    (sleeps, waits, events.TimerStarted, START_TIMER, "did nothing there"),
    (sleeps, returns, events.TimerStarted, START_TIMER, "returned"),
    (sleeps, fails, events.TimerStarted, START_TIMER, "raised ValueError"),
    (sleeps, continues, events.TimerStarted, START_TIMER, "called ctx.continue_as(…) for workflow 'order'"),
    (
        withdraws_an_activity,
        keeps_the_activity,
        events.ActivityCancelRequested,
        "cancel the activity number 1",
        "did nothing there",
    ),
    (withdraws_a_timer, keeps_the_timer, events.TimerCancelled, "cancel the timer number 1", "did nothing there"),
    (withdraws_a_child, keeps_the_child, events.ChildCancelRequested, "cancel the child number 1", "did nothing there"),
    (asks_a_person, waits, events.TaskCreated, "call ctx.human_task('approve')", "did nothing there"),
    (withdraws_a_task, keeps_the_task, events.TaskEnded, "cancel the human task number 1", "did nothing there"),
    (wants_numbers, wants_anything, events.SignalRejected, "refuse the value of signal 'go'", STARTED_TIMER),
    (
        waits_for_a_message,
        waits_for_a_broadcast,
        events.Subscribed,
        "call ctx.wait_for_message('paid')",
        "called ctx.wait_for_broadcast('paid')",
    ),
    (ends_the_wait, keeps_the_wait, events.Unsubscribed, "end the wait number 1", "did nothing there"),
    (
        wants_a_number,
        wants_any_message,
        events.PublicationDeclined,
        "refuse what came for the wait number 1",
        STARTED_TIMER,
    ),
    (
        sends_a_message,
        sends_another_message,
        events.MessagePublished,
        "call ctx.send_message('paid', 'o-1')",
        "called ctx.send_message('shipped', 'o-1')",
    ),
    (
        sends_an_event,
        throws_a_signal,
        events.EventSent,
        "call ctx.send_event('Paid')",
        "called ctx.broadcast_signal('stop')",
    ),
    (
        throws_a_signal,
        sends_an_event,
        events.SignalBroadcast,
        "call ctx.broadcast_signal('stop')",
        "called ctx.send_event('Paid')",
    ),
    (
        handles_an_update,
        fails_an_update,
        events.UpdateCompleted,
        "answer the update that is event 2",
        "refused the update that is event 2",
    ),
    (
        fails_an_update,
        handles_an_update,
        events.UpdateFailed,
        "refuse the update that is event 2",
        "answered the update that is event 2",
    ),
    (ends_by_signal, fails_by_signal, events.WorkflowCompleted, "return", "raised ValueError"),
    (fails_by_signal, ends_by_signal, events.WorkflowFailed, "raise ValueError", "returned"),
    (lets_cancel_through, swallows_cancel, events.WorkflowCancelled, "end as cancelled", "returned"),
    (swallows_cancel, lets_cancel_through, events.WorkflowCompleted, "return", "ended as cancelled"),
    (continues, returns, events.ContinuedAs, "call ctx.continue_as(…) for workflow 'order'", "returned"),
]


def record(body: Body) -> Play:
    """The old code up to where something came for it."""
    play = Play(define(body))
    if play.program.waiting_signals() == ("go",):
        play.signal("go", "text")
    elif body is wants_a_number:
        play.publish(message("paid", "o-1", "text"))
    elif body in (handles_an_update, fails_an_update):
        play.tell(Update(name="add", value=payloads.NULL, request=RequestKey("update", "r", 0)))
    elif body in (lets_cancel_through, swallows_cancel):
        play.cancel()
    assert play.replay() is None, "the old code must fit its own history"
    return play


@pytest.mark.parametrize(
    ("old", "new", "kind", "recorded", "issued"), DIFFERENCES, ids=lambda one: one.__name__ if callable(one) else ""
)
def test_difference_is_shown_with_what_was_recorded_what_was_asked_for_and_where(
    old: Body, new: Body, kind: type[events.Event], recorded: str, issued: str
) -> None:
    play = record(old)

    error = play.replay(define(new))

    assert error is not None
    assert error.type == "NonDeterminismError"
    assert re.match(
        rf"Expected workflow 'order' \('play', execution {play.execution.execution_id}\) to {re.escape(recorded)} again, "
        rf"which is event \d+ of its history, but it {re.escape(issued)}",
        error.message,
    ), error.message
    remedy = "Bring the old code path back, or guard the change with ctx.patched(), then retry the execution."
    if kind is events.PatchRecorded:
        remedy = "Put ctx.patched('new-path') or ctx.deprecate_patch('new-path') back until no open history holds its record"
    assert remedy in error.message
    assert_shows_line(error.message, new)
    assert_shows_line(error.trace, new)
    assert len(error.trace.splitlines()) == 1


def assert_shows_line(message: str, body: Body) -> None:
    """The message names a line of the new code, or of the workflow around it."""
    found = re.search(rf"{re.escape(__file__)}:(\d+)", message)
    assert found, message
    lines, first = inspect.getsourcelines(body)
    around = inspect.getsourcelines(define)
    places = [*range(first, first + len(lines)), *range(around[1], around[1] + len(around[0]))]
    assert int(found[1]) in places, message


def test_every_command_that_leaves_an_event_is_among_the_differences() -> None:
    assert set(PAIRS.values()) == {line[2] for line in DIFFERENCES}


def test_pairs_hold_every_command_and_every_recorded_event() -> None:
    assert set(PAIRS) == set(commands.AnyCommand.__args__) - {commands.SetState, commands.Block} - commands.OF_PROCESSES
    assert set(PAIRS.values()) == events.RECORDED - events.UNASKED - events.OF_PROCESSES


def test_more_than_history_holds_is_a_difference() -> None:
    async def sleeps_and_runs(ctx: Context) -> None:
        future = ctx.sleep(60)
        await ctx.run(charge, 1)
        await future

    error = record(sleeps).replay(define(sleeps_and_runs))

    assert error is not None
    assert re.match(
        r"Expected workflow 'order' .* to be at rest after event 2 of its history, but it "
        r"called ctx\.run\('charge'\) at .*test_matching\.py:\d+, which history does not hold\. ",
        error.message,
    )


def test_line_is_that_of_the_innermost_user_code() -> None:
    async def helper(ctx: Context) -> str:
        return await ctx.run(ship, "a")

    async def calls_helper(ctx: Context) -> None:
        await helper(ctx)

    error = record(runs_charge).replay(define(calls_helper))

    assert error is not None
    assert_shows_line(error.message, helper)


def test_arguments_and_due_times_may_be_mended() -> None:
    async def runs_charge_differently(ctx: Context) -> None:
        await ctx.run(charge.with_options(start_to_close=5), 999)

    async def sleeps_longer(ctx: Context) -> None:
        await ctx.sleep(3600)

    assert record(runs_charge).replay(define(runs_charge_differently)) is None
    assert record(sleeps).replay(define(sleeps_longer)) is None


def test_termination_is_no_difference() -> None:
    from holdfast.core.envelopes import Terminate

    play = record(sleeps)
    play.tell(Terminate())

    assert play.kinds[-1] == "WorkflowTerminated"
    assert play.replay() is None


# --- patched ---


async def before(ctx: Context) -> str:
    await ctx.run(charge, 1)
    await ctx.wait_for_signal("go")
    return "old path"


async def after(ctx: Context) -> str:
    if ctx.patched("ship-first"):
        await ctx.run(ship, "a")
    await ctx.run(charge, 1)
    await ctx.wait_for_signal("go")
    return "new path" if ctx.patched("ship-first") else "old path"


def test_patched_keeps_old_executions_on_the_old_path() -> None:
    play = Play(define(before))
    play.complete(1, 1)

    play.program = _loaded(play, define(after))
    play.signal("go")

    assert play.result == "old path"
    assert "PatchRecorded" not in play.kinds
    assert play.replay(define(after)) is None


def test_patched_takes_new_executions_on_the_new_path() -> None:
    play = Play(define(after))
    play.complete(1, "a")
    play.complete(2, 1)
    play.signal("go")

    assert play.result == "new path"
    assert play.kinds.count("PatchRecorded") == 1
    assert play.replay() is None


def test_patched_is_decided_where_the_code_first_comes_by() -> None:
    async def late(ctx: Context) -> str:
        await ctx.run(charge, 1)
        await ctx.wait_for_signal("go")
        if ctx.patched("say-new"):
            return "new path"
        return "old path"

    play = Play(define(before))
    play.complete(1, 1)

    play.program = _loaded(play, define(late))
    play.signal("go")

    assert play.result == "new path"
    assert play.replay(define(late)) is None


def test_patched_asked_twice_in_one_place_is_recorded_once() -> None:
    async def twice(ctx: Context) -> list[bool]:
        return [ctx.patched("a"), ctx.patched("a"), ctx.patched("b")]

    play = Play(define(twice))

    assert play.result == [True, True, True]
    assert play.kinds == ["WorkflowStarted", "PatchRecorded", "PatchRecorded", "WorkflowCompleted"]
    assert play.replay() is None


def _loaded(play: Play, definition: Workflow[..., Any]) -> Any:
    """A fresh program of that code at the end of the history."""
    from holdfast.code.program import CodeProgram

    program = CodeProgram(definition, "default", play.execution.execution_id)
    assert program.apply(play.history) is None
    return program
