"""R1 to R4: after a crash everything goes on as if there had been none, and the report says what there was."""

from __future__ import annotations

import asyncio
import json
import traceback
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    ActivityError,
    ActivityFailed,
    ApplicationFailure,
    ChildWorkflowFailed,
    Context,
    Engine,
    ExternalSignalFailed,
    Retry,
    Status,
    WorkflowFailed,
    activity,
    workflow,
)
from holdfast.code.definitions import Workflow
from holdfast.core import codec
from holdfast.engine.views import RecoveryReport
from holdfast.testing import TestEngine
from tests.code.playing import replay
from tests.engine.conftest import OpenEngine
from tests.engine.support.held_activities import Door
from tests.eventually import eventually

ONCE = Retry(max_attempts=1)
RUNS: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    RUNS.clear()


@activity(retry=ONCE)
async def work(name: str) -> str:
    RUNS.append(name)
    if name.startswith("bad"):
        raise ApplicationFailure("it is bad", type="Bad", details={"name": name})
    return name


def take_effect() -> int:
    RUNS.append("effect")
    return 7


@workflow
async def helper(ctx: Context, name: str) -> str:
    return await ctx.run(work, name)


@workflow
async def story(ctx: Context) -> list[str]:
    """A bit of everything."""
    log = list(await asyncio.gather(*(ctx.run(work, name) for name in ("a", "b", "c"))))
    log.append(str(ctx.side_effect(take_effect)))
    log.append(await ctx.run_child(helper, "child"))
    await ctx.sleep(60)
    log.append(await ctx.wait_for_signal("go", str, timeout=600))
    winner = await ctx.wait_any(ctx.signal("more", str), ctx.timer(60))
    log.append(f"{winner.index} {ctx.random.random()} {ctx.uuid4()}")
    try:
        await ctx.run(work, "bad")
    except ActivityFailed as error:
        log.append(error.type)
    return log


async def tell_story(engine: TestEngine, *, crash: bool) -> list[Any]:
    """Run the story to its end; with a crash after each step if asked."""

    async def step() -> None:
        await engine.settle()
        if crash:
            await engine.restart()
            await engine.settle()

    await engine.start(story, workflow_id="story")
    await eventually(lambda: is_waiting_for(engine, "timer"))
    await step()
    await engine.clock.advance(60)
    await step()
    await engine.signal_workflow("story", "go", "went")
    await step()
    await engine.clock.advance(30)
    await step()
    await engine.signal_workflow("story", "more", "more")
    result: list[Any] = await engine.handle("story").result()
    return result


async def is_waiting_for(engine: TestEngine, kind: str) -> bool:
    waiting = (await engine.query_status("story")).waiting_for
    return waiting is not None and waiting.startswith(kind)


# --- R1 ---


async def test_R1_history_replays_in_other_hands_and_nothing_runs_again(open_engine: OpenEngine) -> None:
    engine = await open_engine(story, helper, work)
    await tell_story(engine, crash=False)
    exported = json.loads(json.dumps((await engine.history("story")).to_json()))
    ran = list(RUNS)

    execution_id = (await engine.query_status("story")).execution_id
    assert replay(story, codec.import_history(exported), execution_id) is None
    assert ran == RUNS


# --- R2 ---


async def test_R2_crash_at_every_rest_changes_nothing_that_was_decided(open_engine: OpenEngine) -> None:
    engine = await open_engine(story, helper, work, shutdown_grace=0.01)

    found = await tell_story(engine, crash=True)

    assert found[:6] == ["a", "b", "c", "7", "child", "went"]
    assert found[6].startswith("0 ")
    assert found[7:] == ["Bad"]
    assert sorted(RUNS) == ["a", "b", "bad", "c", "child", "effect"], "nothing that ended ran again"
    assert await engine.store.check() == []


@pytest.mark.parametrize("crashes", [1, 3])
async def test_R2_activity_that_was_running_runs_again_and_counts_once(open_engine: OpenEngine, crashes: int) -> None:
    door = Door()

    @activity(retry=ONCE)
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def order(ctx: Context) -> str:
        return await ctx.run(slow)

    engine = await open_engine(order, slow)
    await engine.start(order, workflow_id="order")
    for crash in range(1, crashes + 1):
        await eventually(lambda crash=crash: len(door.came) == crash)  # type: ignore[misc]
        await engine.restart()
    await eventually(lambda: len(door.came) == crashes + 1)
    door.open()

    assert await engine.handle("order").result() == "done"
    assert (await engine.history("order")).kinds == [
        "WorkflowStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "WorkflowCompleted",
    ]


async def test_R2_result_is_known_after_a_restart(open_engine: OpenEngine) -> None:
    engine = await open_engine(helper, work)
    handle = await engine.start(helper, "a", workflow_id="h")
    await handle.result()
    await engine.restart()

    assert await engine.handle("h").result() == "a"
    assert RUNS == ["a"]


# --- R3 ---


@workflow
async def failing_child(ctx: Context) -> None:
    raise ApplicationFailure("no", type="ChildBroke", details=[1])


async def fail_by_activity(ctx: Context) -> None:
    await ctx.run(work, "bad")


async def fail_by_child(ctx: Context) -> None:
    await ctx.run_child(failing_child)


async def fail_by_signal(ctx: Context) -> None:
    await ctx.signal_external_workflow("nobody", "go")


async def fail_by_timeout(ctx: Context) -> None:
    await ctx.wait_for_signal("never", timeout=1)


FAILURES: dict[str, tuple[Any, type[Exception], str | None, Any]] = {
    "activity": (fail_by_activity, ActivityFailed, "Bad", {"name": "bad"}),
    "child": (fail_by_child, ChildWorkflowFailed, "ChildBroke", [1]),
    "signal": (fail_by_signal, ExternalSignalFailed, "ExecutionNotFound", None),
    "timeout": (fail_by_timeout, TimeoutError, None, None),
}


@pytest.mark.parametrize("how", FAILURES)
async def test_R3_failure_is_raised_again_on_replay_with_the_same_class(open_engine: OpenEngine, how: str) -> None:
    act, kind, name, details = FAILURES[how]
    caught: list[Any] = []

    @workflow
    async def order(ctx: Context) -> str:
        try:
            await act(ctx)
        except kind as error:
            caught.append(error)
        await ctx.wait_for_signal("go")
        return "caught"

    engine = await open_engine(order, failing_child, work)
    await engine.start(order, workflow_id="order")
    await engine.clock.advance(1)
    await eventually(lambda: caught)
    await engine.settle()
    await engine.restart()
    await engine.signal_workflow("order", "go")

    assert await engine.handle("order").result() == "caught"
    assert [type(one) for one in caught] == [kind, kind]
    assert str(caught[0]) == str(caught[1])
    assert [getattr(one, "type", None) for one in caught] == [name, name]
    assert [getattr(one, "details", None) for one in caught] == [details, details]


async def test_R3_failure_is_recognised_by_its_parent_class_too(open_engine: OpenEngine) -> None:
    seen: list[str] = []

    @workflow
    async def order(ctx: Context) -> None:
        try:
            await ctx.run(work, "bad")
        except ActivityError as error:
            seen.append(type(error).__name__)
        await ctx.wait_for_signal("go")

    engine = await open_engine(order, work)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: seen)
    await engine.settle()
    await engine.restart()
    await engine.signal_workflow("order", "go")
    await engine.handle("order").result()

    assert seen == ["ActivityFailed"] * 2


class Declined(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")


@activity(retry=ONCE)
async def decline() -> None:
    try:
        raise TimeoutError("no answer")
    except TimeoutError as error:
        raise Declined(5) from error


@workflow
async def declining(ctx: Context) -> None:
    await ctx.run(decline)


async def test_R3_own_class_is_caught_at_first_and_after_a_restart(open_engine: OpenEngine) -> None:
    caught: list[BaseException] = []

    @workflow
    async def order(ctx: Context) -> str:
        for step in (ctx.run(decline), ctx.run_child(declining)):
            try:
                await step
            except Declined as error:
                caught.append(error)
        await ctx.wait_for_signal("go")
        return "caught"

    engine = await open_engine(order, declining, decline)
    await engine.start(order, workflow_id="order")
    await eventually(lambda: len(caught) == 2)
    await engine.settle()
    await engine.restart()
    await engine.signal_workflow("order", "go")

    assert await engine.handle("order").result() == "caught"
    assert [type(one) for one in caught[:2]] == [type(one) for one in caught[2:]]
    assert [str(one) for one in caught[:2]] == [str(one) for one in caught[2:]]
    assert [isinstance(one, ActivityFailed) for one in caught] == [True, False, True, False]
    assert [isinstance(one, ChildWorkflowFailed) for one in caught] == [False, True, False, True]


async def test_R3_caller_gets_the_chain_down_to_the_original(open_engine: OpenEngine) -> None:
    engine = await open_engine(declining, decline)
    await engine.start(declining, workflow_id="order")

    for is_first in (True, False):
        if not is_first:
            await engine.restart()
        with pytest.raises(WorkflowFailed) as failed:
            await engine.handle("order").result()
        error = failed.value
        assert (error.type, error.message) == (
            "ActivityFailed",
            "Expected activity 'decline' to succeed, but it raised Declined: code 5",
        )
        assert "in declining" in error.trace
        assert isinstance(error, Declined)
        chain: list[str] = []
        cause = error.__cause__
        while cause is not None:
            chain.append(f"{type(cause).__name__}: {cause}")
            cause = cause.__cause__
        assert chain[1:] == ["Declined: code 5", "TimeoutError: no answer"]
        assert chain[0].startswith("ActivityFailed: Expected activity 'decline'")
        shown = "".join(traceback.format_exception(error))
        assert "in decline" in shown


async def test_R3_callers_own_timeout_is_not_the_workflows(open_engine: OpenEngine) -> None:
    @workflow
    async def slow(ctx: Context) -> None:
        raise TimeoutError("inside")

    engine = await open_engine(slow)
    with pytest.raises(WorkflowFailed) as failed:
        await (await engine.start(slow)).result()

    assert not isinstance(failed.value, TimeoutError)
    assert isinstance(failed.value.__cause__, TimeoutError)


# --- R4 ---


@workflow
async def waiting(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow
async def sleeping(ctx: Context) -> None:
    await ctx.sleep(3600)


async def test_R4_report_counts_what_was_found(open_engine: OpenEngine) -> None:
    door = Door()

    @activity
    async def slow() -> None:
        await door.wait()

    @activity(retry=Retry(initial=3600, maximum=3600))
    async def fail() -> None:
        raise ValueError("no")

    @workflow
    async def running(ctx: Context) -> None:
        await ctx.run(slow)

    @workflow
    async def retrying(ctx: Context) -> None:
        await ctx.run(fail)

    engine = await open_engine(waiting, sleeping, running, retrying, slow, fail)
    assert engine.recovery_report == RecoveryReport(resumed=0, waiting=0, timers=0, taken_over=0, blocked=0, inbox=0)
    for definition, count in ((waiting, 5), (sleeping, 4), (running, 3), (retrying, 2)):
        for _ in range(count):
            await engine.start(definition)
    await eventually(lambda: len(door.came) == 3)
    await engine.settle()
    done = await engine.start(waiting)
    await done.terminate()

    report = await engine.restart()

    assert report == RecoveryReport(resumed=3, waiting=11, timers=6, taken_over=3, blocked=0, inbox=0)
    assert engine.recovery_report is report
    await eventually(lambda: len(door.came) == 6)
    assert await engine.recover() == RecoveryReport(resumed=0, waiting=11, timers=6, taken_over=0, blocked=0, inbox=0)


async def test_R4_work_of_an_engine_that_shut_down_is_resumed_and_not_taken_over(tmp_path: Path) -> None:
    door = Door()

    @activity
    async def slow() -> None:
        await door.wait()

    @workflow
    async def running(ctx: Context) -> None:
        await ctx.run(slow)

    def make_engine() -> Engine:
        return Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[running], activities=[slow], shutdown_grace=0.01)

    async with make_engine() as first:
        await first.start(running)
        await eventually(lambda: len(door.came) == 1)

    async with make_engine() as second:
        await eventually(lambda: len(door.came) == 2)

        assert second.recovery_report == RecoveryReport(resumed=1, waiting=0, timers=0, taken_over=0, blocked=0, inbox=0)


async def test_R4_recovery_loads_what_is_due_and_nothing_else(open_engine: OpenEngine) -> None:
    loaded: list[int] = []

    @workflow
    async def order(ctx: Context, number: int) -> None:
        loaded.append(number)
        await (ctx.sleep(10) if number < 3 else ctx.wait_for_signal("go"))

    engine = await open_engine(order)
    for number in range(50):
        await engine.start(order, number)
    await engine.crash()
    await engine.clock.advance(20)
    loaded.clear()
    await engine.restart()
    await engine.settle()

    assert sorted(loaded) == [0, 1, 2]


@workflow(name="order", version="1")
async def order_as_it_was(ctx: Context) -> str:
    await ctx.sleep(10)
    return "old"


@workflow(name="order", version="2")
async def order_broken(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    return "broken"


async def test_R4_blocked_executions_are_counted_and_tried_again_on_open(open_engine: OpenEngine) -> None:
    engine = await open_engine(order_as_it_was)
    for number in range(3):
        await engine.start(order_as_it_was, workflow_id=f"order-{number}")
    report = await engine.restart(workflows=[order_broken])
    assert report.blocked == 0
    await engine.clock.advance(10)
    for number in range(3):
        assert (await engine.query_status(f"order-{number}")).status is Status.BLOCKED

    still_broken = await engine.restart(workflows=[order_broken])
    await engine.settle()
    assert still_broken.blocked == 3
    assert (await engine.query_status("order-0")).status is Status.BLOCKED

    mended = await engine.restart(workflows=[order_as_it_was])
    assert mended.blocked == 3
    assert [await engine.handle(f"order-{number}").result() for number in range(3)] == ["old"] * 3


async def test_R4_activity_of_a_blocked_execution_is_resumed_once(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(name="slow")
    async def slow() -> str:
        await door.wait()
        return "slow"

    def define(*, broken: bool) -> Workflow[..., Any]:
        @workflow(name="order")
        async def order(ctx: Context) -> list[str]:
            future = ctx.run(slow)
            value = await ctx.wait_for_signal("go", str)
            if broken:
                await asyncio.get_running_loop().getaddrinfo("localhost", 1)
            return [await future, value]

        return order

    engine = await open_engine(define(broken=True), slow)
    await engine.start("order", workflow_id="order")
    await eventually(lambda: door.came)
    await engine.signal_workflow("order", "go", "went")
    assert (await engine.query_status("order")).status is Status.BLOCKED
    await engine.restart(workflows=[define(broken=False)])
    await eventually(lambda: len(door.came) >= 2)
    await engine.settle()

    assert len(door.came) == 2
    door.open()
    assert await engine.handle("order").result() == ["slow", "went"]


async def test_R4_unknown_workflow_is_left_alone_until_its_code_is_there(open_engine: OpenEngine, tmp_path: Path) -> None:
    engine = await open_engine(waiting, helper, work)
    await engine.start(waiting, workflow_id="w")
    await engine.restart(workflows=[helper])
    await engine.signal_workflow("w", "go")
    handle = await engine.start(helper, "a")
    assert await handle.result() == "a"
    assert (await engine.query_status("w")).status is Status.SUSPENDED
    await engine.restart(workflows=[waiting])

    assert await engine.handle("w").result() is None
