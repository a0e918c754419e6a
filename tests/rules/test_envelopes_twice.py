"""X5: envelopes carry ids, never snapshots; one that is handled twice has one effect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest

from holdfast import Context, Engine, Retry, Status, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec, envelopes, events
from holdfast.core.failures import Failure
from holdfast.core.options import OnClosed, OnOpen, TimeoutKind
from holdfast.core.payloads import NULL, Payload
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.steps import CALLS, call
from tests.rules.world import Nodes, once


@activity(retry=Retry(initial=60, jitter=0, max_attempts=3))
async def fails_once(name: str) -> str:
    CALLS.append(name)
    if len(CALLS) == 1:
        raise ValueError("the first time")
    return name


@workflow
async def child(ctx: Context) -> str:
    return "grown"


@workflow
async def waits(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


@workflow
async def swallows(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("never")
    except asyncio.CancelledError:
        await ctx.wait_for_signal("never")


@workflow
async def everything(ctx: Context, size: int) -> list[str]:
    """One of each: activity, timer, child, signal out; then it waits."""
    ctx.set_state("x" * size)
    done = [await ctx.run(call, "work")]
    await ctx.sleep(60)
    done.append(await ctx.run_child(child, workflow_id=f"{ctx.info.workflow_id}-child"))  # whose start is sent
    await ctx.signal_external_workflow("receiver", "hello", "short")
    await ctx.wait_for_signal("end")
    return done


@workflow
async def retries(ctx: Context) -> str:
    done = await ctx.run(fails_once, "work")
    await ctx.wait_for_signal("end")
    return done


ALL: list[Workflow[..., Any]] = [child, waits, swallows, everything, retries]
ACTIVITIES = [call, fails_once]


# --- ids, not snapshots ---------------------------------------------------------------------------------------------------

VALUES = (str, int, float, bool, type(None), Payload, Failure, TimeoutKind, OnOpen, OnClosed)
"""What an envelope may hold beside small structs of the same: ids, numbers, and values on their way."""


def flatten(kind: Any) -> list[Any]:
    """The types inside a type, structs of ours opened up."""
    if get_args(kind):
        return [inner for part in get_args(kind) if part is not ... for inner in flatten(part)]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in VALUES:
        return [inner for field in msgspec.structs.fields(kind) for inner in flatten(field.type)]
    return [kind]


@pytest.mark.parametrize("kind", get_args(envelopes.AnyEnvelope), ids=lambda kind: kind.__name__)
def test_X5_an_envelope_holds_ids_and_values_and_no_state(kind: type[envelopes.Envelope]) -> None:
    held = {inner for field in msgspec.structs.fields(kind) for inner in flatten(field.type)}

    strangers = [one for one in held if one not in VALUES and not (isinstance(one, type) and issubclass(one, str))]

    assert strangers == []


async def test_X5_the_size_of_an_envelope_does_not_grow_with_the_execution(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, ACTIVITIES)
    await engine.start(waits, workflow_id="receiver")

    for size in (10, 1_000_000):
        handle = await engine.start(everything, size, workflow_id=f"w-{size}")
        await nodes.clock.advance(seconds=120)
        await handle.signal("end")
        await handle.result()

    sent = [row for commit in nodes.commits for turn in commit.turns for row in turn.outgoing]
    assert len(sent) >= 8
    assert max(len(row.body) for row in sent) < 1_000


# --- handled twice --------------------------------------------------------------------------------------------------------

Make = Callable[[list[Any]], envelopes.AnyEnvelope]


def number_of(history: list[Any], kind: type[Any]) -> int:
    found = next(one.event for one in history if isinstance(one.event, kind))
    return int(found.number)


AGAIN: dict[str, Make] = {
    "result": lambda history: envelopes.ActivityReturned(
        number=number_of(history, events.ActivityScheduled), attempt=1, result=NULL
    ),
    "failure": lambda history: envelopes.ActivityRaised(
        number=number_of(history, events.ActivityScheduled), attempt=1, failure=Failure("ValueError", "late")
    ),
    "timeout": lambda history: envelopes.ActivityExpired(
        number=number_of(history, events.ActivityScheduled), attempt=1, timeout=TimeoutKind.START_TO_CLOSE
    ),
    "stop": lambda history: envelopes.ActivityStopped(number=number_of(history, events.ActivityScheduled), attempt=1),
    "retry": lambda history: envelopes.RetryDue(number=number_of(history, events.ActivityScheduled), attempt=2),
    "timer": lambda history: envelopes.TimerDue(number=number_of(history, events.TimerStarted)),
    "child": lambda history: envelopes.ChildClosed(
        number=number_of(history, events.ChildStarted), execution_id="", result=NULL
    ),
    "answer": lambda history: envelopes.SignalAnswered(number=number_of(history, events.ExternalSignalInitiated)),
}


@pytest.mark.parametrize("what", AGAIN)
async def test_X5_an_envelope_that_comes_again_changes_nothing(nodes: Nodes, what: str) -> None:
    engine = await nodes.open("one", ALL, ACTIVITIES)
    await engine.start(waits, workflow_id="receiver")
    handle = await engine.start(everything, 1, workflow_id="w")
    await nodes.clock.advance(seconds=120)
    before = await handle.history()

    for _ in range(2):
        await nodes.put_into_inbox(str(handle.execution_id), AGAIN[what](before.events))
        await engine.settle()

    assert await handle.history() == before
    assert CALLS == ["work"]
    assert (await engine.store.count()).inbox == 0
    await handle.signal("end")
    assert await handle.result() == ["work", "grown"]


async def test_X5_a_retry_that_is_due_twice_runs_once(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, ACTIVITIES)
    handle = await engine.start(retries)
    await nodes.clock.advance(seconds=10)

    due = envelopes.RetryDue(number=1, attempt=2)
    for _ in range(3):
        await nodes.put_into_inbox(str(handle.execution_id), due)
    await nodes.clock.advance(seconds=120)

    assert CALLS == ["work", "work"]
    assert (await handle.history()).kinds == ["WorkflowStarted", "ActivityScheduled", "ActivityCompleted"]


async def test_X5_a_cancel_that_comes_again_changes_nothing(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, ACTIVITIES)
    handle = await engine.start(swallows)

    for _ in range(3):
        await nodes.put_into_inbox(str(handle.execution_id), envelopes.Cancel())
        await engine.settle()

    assert (await handle.history()).kinds == ["WorkflowStarted", "CancelRequested"]


async def test_X5_a_termination_that_comes_again_changes_nothing(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, ACTIVITIES)
    handle = await engine.start(waits)

    for _ in range(3):
        await nodes.put_into_inbox(str(handle.execution_id), envelopes.Terminate())
        await engine.settle()

    assert (await handle.history()).kinds == ["WorkflowStarted", "WorkflowTerminated"]
    assert (await engine.store.count()).inbox == 0


@pytest.mark.parametrize("workflow_name", ["waits", "child"])
async def test_X5_a_start_that_comes_again_changes_nothing(nodes: Nodes, workflow_name: str) -> None:
    engine = await nodes.open("one", [*ALL, parent], ACTIVITIES)
    handle = await engine.start(parent, workflow_name, workflow_id="p")
    await engine.settle()
    (start,) = [
        row
        for commit in nodes.commits
        for turn in commit.turns
        for row in turn.outgoing
        if isinstance(codec.decode_envelope(row.body), envelopes.Start)
    ]
    before = await nodes.snapshot()

    await nodes.put_row(start)
    await engine.settle()

    assert await nodes.snapshot() == before
    assert (await handle.status()).status is Status.SUSPENDED


@workflow
async def parent(ctx: Context, workflow_name: str) -> str:
    handle: Any = ctx.start_child(workflow_name, workflow_id="child")  # whose start is sent
    await ctx.wait_for_signal("end")
    return str(handle.result().done())


# --- the outcome of the commit was unknown --------------------------------------------------------------------------------

UNKNOWN = [FaultAction.APPLIED_UNKNOWN, FaultAction.LOST_UNKNOWN, FaultAction.LATE_UNKNOWN]


async def run_everything(nodes: Nodes, engine: Engine) -> tuple[list[str], list[str]]:
    """Its whole life; callers that are told of a failure ask again, as callers do."""
    await ask(nodes, lambda: engine.start(waits, workflow_id="receiver", idempotency_key="receiver"))
    await ask(nodes, lambda: engine.start(everything, 1, workflow_id="w", idempotency_key="w"))
    await nodes.clock.advance(seconds=300)
    await ask(nodes, lambda: engine.signal_workflow("w", "end", request_id="end"))
    await nodes.clock.advance(seconds=60)
    return (await engine.history("w")).kinds, (await engine.history("receiver")).kinds


async def ask(nodes: Nodes, verb: Callable[[], Any]) -> None:
    while True:
        asking = asyncio.ensure_future(verb())
        await nodes.clock.advance(seconds=10)
        await asyncio.wait([asking])
        error = asking.exception()
        if error is None:
            return
        assert "Try again" in str(error)


WHOLE_LIFE = [
    "WorkflowStarted",
    "ActivityScheduled",
    "ActivityCompleted",
    "TimerStarted",
    "TimerFired",
    "ChildStarted",
    "ChildCompleted",
    "ExternalSignalInitiated",
    "ExternalSignalCompleted",
    "SignalReceived",
    "WorkflowCompleted",
]


@pytest.mark.parametrize("nth", range(12))
@pytest.mark.parametrize("action", UNKNOWN)
async def test_X5_any_commit_of_unknown_outcome_has_one_effect(nodes: Nodes, action: FaultAction, nth: int) -> None:
    engine = await nodes.open("one", ALL, ACTIVITIES)
    plan = [FaultAction.NONE] * nth + [action]
    nodes.faults["one"] = lambda point, _node: plan.pop(0) if point == Point.COMMIT and plan else FaultAction.NONE

    sender, receiver = await run_everything(nodes, engine)

    assert sender == WHOLE_LIFE
    assert receiver == ["WorkflowStarted", "SignalReceived"]
    assert CALLS == ["work"]
    assert len(await engine.list(workflow=child)) == 1


@pytest.mark.parametrize("action", UNKNOWN)
async def test_X5_every_second_commit_of_unknown_outcome_has_one_effect(nodes: Nodes, action: FaultAction) -> None:
    engine = await nodes.open("one", ALL, ACTIVITIES)
    count = [0]

    def decide(point: str, _node: str) -> FaultAction:
        count[0] += point == Point.COMMIT
        return action if point == Point.COMMIT and count[0] % 2 else FaultAction.NONE

    nodes.faults["one"] = decide

    sender, receiver = await run_everything(nodes, engine)

    assert sender == WHOLE_LIFE
    assert receiver == ["WorkflowStarted", "SignalReceived"]
    assert CALLS == ["work"]


@pytest.mark.parametrize("action", [FaultAction.APPLIED_UNKNOWN, FaultAction.LOST_UNKNOWN])
async def test_X5_a_delivery_of_unknown_outcome_with_a_request_id_can_be_repeated(nodes: Nodes, action: FaultAction) -> None:
    one, two = await nodes.open("one", ALL, ACTIVITIES), await nodes.open("two", ALL, ACTIVITIES)
    await one.start(waits, workflow_id="w")
    nodes.pause("one")
    holding = asyncio.ensure_future(one.signal_workflow("w", "y"))
    await nodes.paused("one")
    nodes.faults["two"] = once(Point.DELIVER_COMMIT, action)

    with pytest.raises(Exception, match=r"was_committed|connection broke"):
        await two.signal_workflow("w", "x", request_id="r")
    await two.signal_workflow("w", "x", request_id="r")
    nodes.resume("one")
    await holding
    await nodes.clock.settle()

    history = (await one.history("w")).events
    assert [one.event.name for one in history if isinstance(one.event, events.SignalReceived)] == ["y", "x"]
