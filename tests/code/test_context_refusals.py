"""What a context refuses: at once, where it is asked, with a remedy, and without a trace in history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from holdfast import Context, activity, workflow
from tests.code.playing import Play


@activity
async def add(left: int, right: int = 1) -> int:
    return left + right


@workflow
async def child(ctx: Context, name: str) -> str:
    return name


any_create_task: Any = asyncio.create_task


@activity
async def pay(cents: int, *, currency: str) -> str:
    return f"{cents} {currency}"


@workflow
async def remind(ctx: Context, name: str = "", *, retry: list[str] = []) -> str:  # noqa: B006 - only read
    return name


def surrogate(name: str) -> None: ...


REFUSALS: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda ctx: ctx.run(print, 1),
        "InvalidArguments: Expected ctx.run to get a function decorated with @activity, but got ",
    ),
    (
        lambda ctx: ctx.run(child, "a"),
        (
            "InvalidArguments: Expected ctx.run to get a function decorated with @activity, but got <workflow 'child'>. "
            "Write `await ctx.run_child(child, …)`."
        ),
    ),
    (
        lambda ctx: ctx.run(add, asyncio.get_running_loop().create_future()),
        (
            "EncodingError: Expected parameter 'left' of activity 'add' (a WorkflowFuture) to arrive as it was sent, but "
            "a value was not awaited. Write `await` before the call that gives it."
        ),
    ),
    (
        lambda ctx: any_create_task(asyncio.get_running_loop().create_future()),
        "TypeError: Expected create_task to get a coroutine, but it got a future, as ctx.run and its like give it. ",
    ),
    (
        lambda ctx: ctx.run(add),
        "InvalidArguments: Expected activity 'add' to be called with (left: int, right: int = 1), but 'left' is missing.",
    ),
    (
        lambda ctx: ctx.run(add, object()),
        "EncodingError: Expected parameter 'left' of activity 'add' (a object) to be a value",
    ),
    (lambda ctx: ctx.run(add, "x" * 3_000_000), "PayloadTooLarge: Expected activity 'add' to be at most 2097152 bytes"),
    (
        lambda ctx: ctx.run(pay, 5, "EUR"),
        "InvalidArguments: Expected activity 'pay' to be called with (cents: int, *, currency: str), but 'currency' is",
    ),
    (
        lambda ctx: ctx.run_child(remind, "a", ("b",)),
        "InvalidArguments: Expected workflow 'remind' to be called with (name: str = '', *, retry: list[str] = []), but 're",
    ),
    (
        lambda ctx: ctx.run_child(remind, name="a"),
        "InvalidArguments: Expected name=… to be an argument of workflow 'remind' or an option of the call, but it may be",
    ),
    (
        lambda ctx: ctx.start_child(remind, "a", retry=None),
        "InvalidArguments: Expected retry=… to be an argument of workflow ",
    ),
    (
        lambda ctx: ctx.continue_as(child, "a"),
        "InvalidArguments: Expected ctx.continue_as to get the arguments of the next run, but the first is the function 'c",
    ),
    (
        lambda ctx: ctx.continue_as(surrogate, "a"),
        "InvalidArguments: Expected ctx.continue_as to get the arguments of the next run, but the first is the function 's",
    ),
    (
        lambda ctx: ctx.continue_as(workflow=child),
        "InvalidArguments: Expected workflow 'child' to be called with (name: str), but 'name' is missing. Pass it.",
    ),
    (lambda ctx: ctx.run(""), "InvalidIdentifier: Expected the name of an activity to be text"),
    (
        lambda ctx: ctx.run_child(print),
        "InvalidArguments: Expected a function decorated with @workflow, or its name, but got ",
    ),
    (lambda ctx: ctx.run_child(child, 5), "InvalidArguments: Expected parameter 'name' of workflow 'child' to be str, but "),
    (lambda ctx: ctx.run_child(child, "a", workflow_id=""), "InvalidIdentifier: Expected the workflow id of a child to be"),
    (
        lambda ctx: ctx.start_child(child, "a", parent_close="x"),
        "InvalidConfiguration: Expected parent_close to be 'abandon', ",
    ),
    (lambda ctx: ctx.sleep(-1), "InvalidDuration: Expected the length of a sleep to be a timedelta or a number of seconds"),
    (lambda ctx: ctx.sleep(float("nan")), "InvalidDuration: Expected the length of a sleep to be"),
    (lambda ctx: ctx.sleep_until(datetime(2030, 1, 1)), "InvalidTime: Expected the end of a sleep to have a time zone"),  # noqa: DTZ001
    (lambda ctx: ctx.wait_for_signal(""), "InvalidIdentifier: Expected the name of a signal to be text"),
    (lambda ctx: ctx.wait_for_signal("a", timeout=-1), "InvalidDuration: Expected the timeout of wait_for_signal to be"),
    (lambda ctx: ctx.signal_external_workflow("", "a"), "InvalidIdentifier: Expected the workflow id of a receiver to be"),
    (lambda ctx: ctx.signal_external_workflow("a", "b", object()), "EncodingError: Expected the value of signal 'b' to be"),
    (lambda ctx: ctx.wait_any(), "InvalidArguments: Expected wait_any to get something to wait for, but it got nothing"),
    (
        lambda ctx: ctx.wait_any("go"),
        "InvalidArguments: Expected wait_any to get signals, messages, events, broadcast signals, timers",
    ),
    (lambda ctx: ctx.timer(-1), "InvalidDuration: Expected the length of a timer to be"),
    (lambda ctx: ctx.signal("\n"), "InvalidIdentifier: Expected the name of a signal to be"),
    (lambda ctx: ctx.patched(""), "InvalidIdentifier: Expected the id of a patch to be text"),
    (
        lambda ctx: ctx.continue_as(1, 2, 3),
        "InvalidArguments: Expected workflow 'story' to be called with (number: int), but got 3 arguments by position, 2",
    ),
    (lambda ctx: ctx.set_state(object()), "EncodingError: Expected the state of the workflow to be a value that JSON"),
]


@pytest.mark.parametrize("number", range(len(REFUSALS)), ids=lambda one: REFUSALS[one][1].partition(" to ")[0])
def test_what_cannot_be_right_is_refused_where_it_is_asked(number: int) -> None:
    @workflow
    async def story(ctx: Context, number: int) -> str:
        try:
            REFUSALS[number][0](ctx)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "accepted"

    play = Play(story, number)

    assert play.result.startswith(REFUSALS[number][1])
    assert play.kinds == ["WorkflowStarted", "WorkflowCompleted"]
    assert play.replay() is None
