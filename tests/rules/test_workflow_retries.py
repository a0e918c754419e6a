"""T8: a run that fails is followed by another with the same input, as the workflow's retry policy says."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import (
    ApplicationFailure,
    ChildWorkflowFailed,
    Context,
    ExecutionClosed,
    ExecutionTimedOut,
    Retry,
    Status,
    WorkflowCancelled,
    WorkflowFailed,
    workflow,
)
from holdfast.errors import InvalidConfiguration
from holdfast.store.contract import ExecutionFilter
from holdfast.testing import TestEngine, replay
from tests.rules.world import Nodes, World

POLICY = Retry(max_attempts=3, initial=10, factor=2, jitter=0)


@workflow
async def fails(ctx: Context, who: str, until: int) -> list[Any]:
    if ctx.info.attempt < until:
        raise ValueError(f"attempt {ctx.info.attempt}")
    return [who, ctx.info.attempt, ctx.info.metadata, ctx.info.headers]


@workflow(retry=Retry(max_attempts=2, initial=1, jitter=0))
async def declared(ctx: Context, until: int) -> int:
    if ctx.info.attempt < until:
        raise ValueError("no")
    return ctx.info.attempt


@workflow
async def takes_one(ctx: Context) -> list[Any]:
    taken = await ctx.wait_for_signal("next")
    if taken != "last":
        raise ValueError(taken)
    return [ctx.info.attempt, ctx.pending_signal_count("next")]


@workflow
async def stays(ctx: Context) -> list[Any]:
    if ctx.info.attempt < 3:
        await ctx.wait_for_signal("never")
    return [ctx.info.attempt, ctx.pending_signal_count("kept")]


@workflow
async def parent(ctx: Context, until: int) -> list[Any]:
    try:
        return [await ctx.run_child(fails.bind("child", until=until), workflow_id="child", retry=POLICY)]
    except ChildWorkflowFailed as error:
        return [error.type, str(error)]


@workflow
async def refuses(ctx: Context) -> None:
    raise ApplicationFailure("no", type="Broke", non_retryable=True)


@workflow
async def cleans_up_badly(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("never")
    finally:
        raise ValueError("while cleaning up")


async def open_one(world: World, *workflows: Any, **options: Any) -> TestEngine:
    return await world.open(workflows, auto_advance=False, patience=0, **options)


async def test_T8_a_failed_run_is_followed_by_another_after_the_pause(world: World) -> None:
    engine = await open_one(world, fails)
    handle = await engine.start(fails, "ann", 3, workflow_id="w", retry=POLICY, metadata={"m": "1"}, headers={"h": "2"})
    await engine.settle()
    first = await engine.query_status(handle.execution_id or "")
    second = await engine.query_status("w")
    assert (first.status, first.retried_as, first.attempt) == (Status.FAILED, second.execution_id, 1)
    assert (second.status, second.waiting_for, second.attempt) == (Status.SUSPENDED, "start", 2)
    assert second.continued_from == first.execution_id
    with pytest.raises(ExecutionClosed, match=rf"next run \({second.execution_id}\)\. Use engine\.handle\('w'\)"):
        await handle.signal("x", 1)
    await engine.restart()
    await engine.clock.advance(seconds=10)
    assert (await engine.query_status("w")).attempt == 3
    await engine.clock.advance(seconds=19)
    assert (await engine.query_status("w")).status is Status.SUSPENDED
    await engine.clock.advance(seconds=1)

    assert await handle.result() == ["ann", 3, {"m": "1"}, {"h": "2"}]
    assert await engine.query_result(handle.execution_id or "") == ["ann", 3, {"m": "1"}, {"h": "2"}]
    for info in await engine.list(workflow_id="w"):
        replay(await engine.history(info.execution_id), [fails])


async def test_T8_the_last_failure_is_that_of_the_execution(world: World) -> None:
    engine = await open_one(world, fails)
    handle = await engine.start(fails, "ann", 9, workflow_id="w", retry=POLICY)
    await engine.clock.advance(minutes=5)

    with pytest.raises(WorkflowFailed, match="attempt 3"):
        await handle.result()
    assert len(await engine.list(workflow_id="w")) == 3
    assert (await engine.store.count()).timers == 0


@pytest.mark.parametrize(("until", "by_name"), [(2, False), (2, True), (3, False)])
async def test_T8_the_policy_of_the_definition_counts_where_a_start_gives_none(
    world: World, until: int, by_name: bool
) -> None:
    engine = await open_one(world, declared)
    handle = await engine.start("declared" if by_name else declared, until)
    await engine.clock.advance(minutes=1)

    if until == 2:
        assert await handle.result() == 2
    else:
        with pytest.raises(WorkflowFailed):
            await handle.result()


async def test_T8_the_policy_of_a_start_comes_first(world: World) -> None:
    engine = await open_one(world, declared)
    handle = await engine.start(declared, 2, retry=Retry(max_attempts=1))

    with pytest.raises(WorkflowFailed):
        await handle.result()


async def test_T8_signals_that_were_not_taken_are_carried_over_in_order(world: World) -> None:
    engine = await open_one(world, takes_one)
    handle = await engine.start(takes_one, workflow_id="w", retry=Retry(initial=10, jitter=0), delay=5)
    for value in ("a", "b"):
        await engine.signal_workflow("w", "next", value)
    await engine.clock.advance(seconds=5)
    await engine.signal_workflow("w", "next", "last")
    await engine.signal_workflow("w", "next", "too much")
    await engine.restart()
    await engine.clock.advance(minutes=5)

    assert await handle.result() == [3, 1]


@pytest.mark.parametrize(("until", "result"), [(3, ["child", 3, {}, {}]), (4, None)])
async def test_T8_the_parent_is_told_at_the_end_of_the_chain(world: World, until: int, result: Any) -> None:
    engine = await open_one(world, parent, fails)
    handle = await engine.start(parent, until)
    await engine.settle()
    assert (await handle.status()).waiting_for == "child"
    await engine.clock.advance(minutes=5)

    found = await handle.result()
    assert found == [result] if result else found[0] == "ValueError"
    assert len(await engine.list(workflow_id="child")) == 3


async def test_T8_what_is_cancelled_between_two_runs_runs_no_more(world: World) -> None:
    engine = await open_one(world, parent, fails)
    handle = await engine.start(parent, 9)
    await engine.settle()

    await handle.cancel()

    with pytest.raises(WorkflowCancelled):
        await handle.result()
    await engine.clock.advance(minutes=5)
    assert (await engine.query_status("child")).status is Status.CANCELLED
    assert len(await engine.list(workflow_id="child")) == 2


@pytest.mark.parametrize(
    ("one", "policy"), [(refuses, POLICY), (fails, Retry(non_retryable=[ValueError])), (fails, Retry(max_attempts=1))]
)
async def test_T8_what_is_not_to_be_retried_is_not(world: World, one: Any, policy: Any) -> None:
    engine = await open_one(world, one)
    handle = await engine.start(one, *(() if one is refuses else ("ann", 2)), workflow_id="w", retry=policy)

    with pytest.raises(WorkflowFailed):
        await handle.result()
    assert len(await engine.list(workflow_id="w")) == 1


async def test_T8_what_fails_after_it_was_cancelled_is_not_retried(world: World) -> None:
    engine = await open_one(world, cleans_up_badly)
    handle = await engine.start(cleans_up_badly, workflow_id="w", retry=POLICY)
    await handle.cancel()

    with pytest.raises(WorkflowFailed, match="cleaning up"):
        await handle.result()
    assert len(await engine.list(workflow_id="w")) == 1


async def test_T8_a_run_timeout_leads_to_a_retry_with_the_signals(world: World) -> None:
    engine = await open_one(world, stays)
    handle = await engine.start(stays, workflow_id="w", retry=POLICY, run_timeout=60)
    await handle.signal("kept", 1)
    await engine.clock.advance(seconds=60)
    first = await engine.query_status(handle.execution_id or "")
    assert (first.status, first.retried_as) == (Status.FAILED, (await engine.query_status("w")).execution_id)
    await engine.signal_workflow("w", "kept", 2)
    await engine.restart()
    await engine.clock.advance(minutes=5)

    assert await handle.result() == [3, 2]


async def test_T8_the_execution_timeout_bounds_all_runs(world: World) -> None:
    engine = await open_one(world, stays)
    handle = await engine.start(stays, retry=POLICY, run_timeout=60, execution_timeout=100)
    await engine.clock.advance(minutes=5)

    with pytest.raises(ExecutionTimedOut) as caught:
        await handle.result()
    assert caught.value.timeout == "execution"


async def test_T8_no_run_is_planned_beyond_the_execution_timeout(world: World) -> None:
    engine = await open_one(world, fails)
    handle = await engine.start(fails, "ann", 9, retry=Retry(initial=40, jitter=0), execution_timeout=100)
    await engine.clock.advance(seconds=41)

    with pytest.raises(WorkflowFailed, match="attempt 2"):
        await handle.result()


async def test_T8_retries_without_a_pause_come_to_an_end(alone: World) -> None:
    engine = await open_one(alone, fails, max_signals=10)
    handle = await engine.start(fails, "ann", 10_000_000, retry=Retry(initial=0, jitter=0))

    with pytest.raises(WorkflowFailed, match="come to rest"):
        await handle.result()


async def test_T8_another_node_takes_the_next_run(nodes: Nodes) -> None:
    first = await nodes.open("a", [fails])
    handle = await first.start(fails, "ann", 2, workflow_id="w", retry=POLICY)
    await first.settle()
    second = await nodes.open("b", [fails])
    await nodes.kill("a")

    await nodes.clock.advance(seconds=60)

    assert (await second.handle(handle.execution_id or "").result())[1] == 2


@pytest.mark.parametrize("policy", [3, "often", {"max_attempts": 3}])
async def test_T8_what_is_no_policy_is_refused(alone: World, policy: Any) -> None:
    engine = await open_one(alone, fails)
    with pytest.raises(InvalidConfiguration, match="retry"):
        await engine.start(fails, "ann", 1, retry=policy)
    with pytest.raises(InvalidConfiguration, match="retry"):
        workflow(retry=policy)


@pytest.mark.parametrize(
    ("only", "attempts"),
    [
        ([OSError], 3),
        (["ConnectionError"], 3),
        ([ConnectionResetError], 3),
        ([ValueError, "Busy"], 1),
        (["ActivityFailed"], 1),
    ],
)
async def test_A9_only_the_named_failures_of_a_run_and_their_subclasses_are_retried(only: list[Any], attempts: int) -> None:
    runs: list[int] = []

    @workflow(retry=Retry(only=only, max_attempts=3, initial=1))
    async def connect(ctx: Context) -> None:
        runs.append(ctx.info.attempt)
        raise ConnectionResetError("gone")

    async with TestEngine(workflows=[connect]) as engine:
        handle = await engine.start(connect)
        with pytest.raises(WorkflowFailed, match="gone"):
            await handle.result()

    assert runs == list(range(1, attempts + 1))


async def test_T8_run_that_was_in_flight_when_a_process_ended_is_retried_after_its_timeout() -> None:
    async with TestEngine(workflows=[stays], auto_advance=False) as engine:
        await engine.start(stays, workflow_id="w", run_timeout=60, retry=POLICY)
        await engine.restart()  # its program is in no memory
        row = (await engine.store.list_executions(ExecutionFilter(org="default")))[0]
        transaction = await engine.store.begin()
        await transaction.mark_in_flight("a process that was killed", 0, {row.execution_id: row.state_version})
        await transaction.rollback()

        for seconds in (61, 15, 61, 30):
            await engine.clock.advance(seconds)

        assert await engine.handle("w").result() == [3, 0]
