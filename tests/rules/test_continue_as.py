"""C5 and the last sentence of S7: the next run opens as the one before ends, and takes along what was not handled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Engine, Status, WorkflowCancelled, WorkflowFailed, WorkflowTerminated, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec, events
from holdfast.errors import ExecutionClosed, InvalidArguments
from holdfast.store.memory.faults import FaultAction, Point
from tests.eventually import eventually
from tests.rules.steps import GATES, gate, note, pass_gate
from tests.rules.world import Nodes, World, once


@workflow
async def countdown(ctx: Context, left: int) -> str:
    if left > 0:
        await ctx.run(note, left)
        ctx.continue_as(left - 1)
    return f"done by {ctx.info.workflow_id}"


@workflow
async def on_go(ctx: Context, run: int) -> list[Any]:
    """Continues when told, and ends when told, with what is in its queues."""
    if await ctx.wait_for_signal("next") != "end":
        ctx.continue_as(run + 1)
    return [run, ctx.drain_signals("x"), ctx.drain_signals("y")]


@workflow
async def other(ctx: Context, text: str) -> str:
    return f"{ctx.info.workflow} got {text} from {ctx.info.continued_from is not None}"


@workflow
async def changes(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    ctx.continue_as("a word", workflow=other)


ALL: list[Workflow[..., Any]] = [countdown, on_go, other, changes]


async def runs_of(engine: Engine, workflow_id: str) -> list[Any]:
    """Its runs, the oldest first."""
    runs = {info.continued_from: info for info in await engine.list(workflow_id=workflow_id)}
    ordered, before = [], None
    while before in runs:
        ordered.append(runs[before])
        before = runs[before].execution_id
    assert len(ordered) == len(runs)
    return ordered


# --- C5 -------------------------------------------------------------------------------------------------------------------


async def test_C5_the_next_run_has_the_same_workflow_id_and_a_history_of_its_own(world: World) -> None:
    engine = await world.open(ALL, [note])

    handle = await engine.start(countdown, 2, workflow_id="c")

    assert await handle.result() == "done by c"
    first, second, third = await runs_of(engine, "c")
    assert [run.status for run in (first, second, third)] == [Status.CONTINUED, Status.CONTINUED, Status.COMPLETED]
    assert (await engine.history(first.execution_id)).kinds == [
        "WorkflowStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "ContinuedAs",
    ]
    assert (await engine.history(third.execution_id)).kinds == ["WorkflowStarted", "WorkflowCompleted"]


async def test_C5_the_last_event_names_the_next_run(world: World) -> None:
    engine = await world.open(ALL, [note])
    handle = await engine.start(countdown, 1, workflow_id="c")
    await handle.result()

    first, second = await runs_of(engine, "c")
    continued = (await engine.history(first.execution_id)).events[-1].event
    started = (await engine.history(second.execution_id)).events[0].event

    assert isinstance(continued, events.ContinuedAs)
    assert isinstance(started, events.WorkflowStarted)
    assert (continued.execution_id, continued.workflow) == (second.execution_id, "countdown")
    assert (started.continued_from, bytes(started.input.data)) == (first.execution_id, b"[0]")


async def test_C5_the_end_and_the_next_run_are_one_transaction(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL)
    await engine.start(on_go, 1, workflow_id="w")

    await engine.signal_workflow("w", "next", "go")

    end, following = nodes.commits[-1].turns
    assert (end.row.status, following.row.status) == (Status.CONTINUED, Status.SUSPENDED)
    assert following.expected_version is None
    assert following.history is not None
    kinds = [type(event).__name__ for event in codec.decode_events(following.history.body, following.history.schema)]
    assert kinds == ["WorkflowStarted"]


@pytest.mark.parametrize(
    "point",
    [Point.WRITE_ESCALATE, Point.WRITE_VERSIONS, Point.WRITE_INSERTS, Point.WRITE_ROWS, Point.COMMIT, Point.COMMITTED],
)
async def test_C5_a_crash_leaves_both_or_neither(nodes: Nodes, point: Point) -> None:
    engine = await nodes.open("one", ALL, exclusive=True)
    await engine.start(on_go, 1, workflow_id="w")
    nodes.faults["one"] = once(point, FaultAction.CRASH)
    calling = asyncio.ensure_future(engine.signal_workflow("w", "next", "go"))
    await nodes.died("one")
    calling.cancel()
    await nodes.kill("one")

    second = await nodes.open("two", ALL, exclusive=True)
    runs = await runs_of(second, "w")

    expected = [Status.CONTINUED, Status.SUSPENDED] if point is Point.COMMITTED else [Status.SUSPENDED]
    assert [run.status for run in runs] == expected


async def test_C5_there_is_always_exactly_one_open_run(nodes: Nodes) -> None:
    engine, onlooker = await nodes.open("one", ALL, [note]), await nodes.open_onlooker()
    handle = await engine.start(countdown, 20, workflow_id="c")
    opened: list[int] = []

    async def watch() -> bool:
        opened.append(sum((await onlooker.count()).executions.values()))
        return (await engine.query_status("c")).status is Status.COMPLETED

    await eventually(watch)

    assert await handle.result() == "done by c"
    assert max(opened) == 1
    assert opened == sorted(opened, reverse=True)
    await onlooker.close()


async def test_C5_results_follow_from_run_to_run(world: World) -> None:
    engine = await world.open(ALL, [note])
    handle = await engine.start(countdown, 3, workflow_id="c")

    by_first_run = await handle.result()
    by_workflow_id = await engine.handle("c", workflow=countdown).result()
    by_query = await engine.query_result(str(handle.execution_id))

    assert by_first_run == by_workflow_id == by_query == "done by c"
    await engine.restart()
    assert await handle.result() == "done by c"


async def test_C5_a_workflow_id_names_the_newest_run(world: World) -> None:
    engine = await world.open(ALL, [note])
    handle = await engine.start(countdown, 5, workflow_id="c")
    await handle.result()

    newest = await engine.query_status("c")

    assert newest.status is Status.COMPLETED
    assert newest.execution_id == (await runs_of(engine, "c"))[-1].execution_id


async def test_C5_policies_for_closed_ids_look_at_the_last_run(world: World) -> None:
    engine = await world.open([fails_last])
    for number in range(5):
        handle = await engine.start(fails_last, 3, workflow_id=f"f-{number}")
        with pytest.raises(Exception, match="the last run"):
            await handle.result()

        again = await engine.start(fails_last, 3, workflow_id=f"f-{number}", on_closed="allow_if_failed")

        assert again.created


@workflow
async def fails_last(ctx: Context, left: int) -> None:
    if left == 0:
        raise ValueError("the last run fails")
    ctx.continue_as(left - 1)


async def test_C5_the_next_run_can_be_of_another_workflow(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(changes, workflow_id="c")

    await handle.signal("go")

    assert await handle.result() == "other got a word from True"
    assert [run.workflow for run in await runs_of(engine, "c")] == ["changes", "other"]


async def test_C5_the_next_run_keeps_org_queue_and_metadata(world: World) -> None:
    engine = await world.open(ALL, queues=["slow"])
    handle = await engine.start(on_go, 1, workflow_id="w", org="ours", queue="slow", metadata={"by": "ann"})

    await handle.signal("next", "go")

    (run,) = await engine.list(org="ours", status="suspended")
    assert (run.workflow_id, run.queue, run.metadata) == ("w", "slow", {"by": "ann"})
    assert run.continued_from == handle.execution_id


async def test_C5_arguments_that_do_not_fit_fail_the_run_and_open_no_other(world: World) -> None:
    engine = await world.open([misfit])

    handle = await engine.start(misfit, 1, workflow_id="m")

    with pytest.raises(Exception, match="left") as failed:
        await handle.result()
    assert failed.value.type == InvalidArguments.__name__  # type: ignore[attr-defined]
    assert len(await engine.list()) == 1


@workflow
async def misfit(ctx: Context, left: int) -> None:
    ctx.continue_as("many")


async def test_C5_a_run_that_continued_is_closed(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_go, 1, workflow_id="w")
    await handle.signal("next", "go")

    with pytest.raises(ExecutionClosed, match=r"it continued as a next run\. Use engine\.handle\('w'\)"):
        await handle.signal("x", 1)
    with pytest.raises(ExecutionClosed, match=r"it continued as a next run\. Use engine\.handle\('w'\)"):
        await handle.update("x", 1)
    cancelled, terminated = await handle.cancel(), await handle.terminate()

    assert (cancelled, terminated) == (False, False)
    assert (await engine.query_status("w")).status is Status.SUSPENDED


async def test_C5_timers_activities_and_waits_of_the_old_run_end_with_it(world: World) -> None:
    engine = await world.open([busy], [pass_gate], auto_advance=False, patience=0)
    await engine.start(busy, 1, workflow_id="b")
    await eventually(lambda: "gate-1" in GATES)

    await engine.signal_workflow("b", "go")
    await eventually(lambda: "gate-2" in GATES)
    gate("gate-1").set()
    await engine.clock.advance(seconds=90)

    first, second = await runs_of(engine, "b")
    assert (first.status, second.status) == (Status.CONTINUED, Status.RUNNING)
    assert (await engine.history(second.execution_id)).kinds == ["WorkflowStarted", "ActivityScheduled", "TimerStarted"]
    assert (await engine.store.count()).timers == 1


@workflow
async def busy(ctx: Context, run: int) -> None:
    working = ctx.run(pass_gate, f"gate-{run}")
    sleeping = ctx.sleep(60 if run == 1 else 600)
    await ctx.wait_for_signal("go")
    assert not working.done()
    assert not sleeping.done()
    ctx.continue_as(run + 1)


async def test_C5_a_result_for_the_old_run_is_not_taken_for_one_of_the_next(world: World) -> None:
    engine = await world.open([racer], [pass_gate], auto_advance=False)
    await engine.start(racer, 1, workflow_id="r")
    await eventually(lambda: {"fast-1", "slow-1"} <= GATES.keys())

    gate("fast-1").set()
    gate("slow-1").set()
    await eventually(lambda: {"fast-2", "slow-2"} <= GATES.keys())
    gate("slow-2").set()

    assert await engine.handle("r").result() == "slow-2"


@workflow
async def racer(ctx: Context, run: int) -> str:
    fast, slow = ctx.run(pass_gate, f"fast-{run}"), ctx.run(pass_gate, f"slow-{run}")
    if run == 1:
        await fast
        ctx.continue_as(run + 1)
    return await slow


async def test_C5_a_workflow_that_continues_without_end_fails_and_holds_up_nobody(world: World) -> None:
    engine = await world.open([restless, *ALL], max_signals=10)

    handle, other = await asyncio.gather(engine.start(restless, 0, workflow_id="r"), engine.start(on_go, 1))
    await other.signal("next", "end")

    assert await other.result() == [1, [], []]
    with pytest.raises(WorkflowFailed, match="without waiting") as failed:
        await handle.result()
    assert failed.value.type == "TurnTooLong"
    assert (await engine.query_status("r")).status is Status.FAILED


@workflow
async def restless(ctx: Context, run: int) -> None:
    ctx.continue_as(run + 1)


async def test_C5_as_many_runs_as_signals_are_carried_may_pass_in_one_turn(world: World) -> None:
    engine = await world.open([one_each])
    await engine.start(one_each, 0, workflow_id="w")
    await asyncio.gather(*(engine.signal_workflow("w", "x", number) for number in range(50)))

    await engine.signal_workflow("w", "go")

    assert await engine.handle("w").result() == 50


@workflow
async def one_each(ctx: Context, taken: int) -> int:
    """Takes one signal in each run, the first only when told."""
    if taken == 0:
        await ctx.wait_for_signal("go")
    if ctx.has_signal("x"):
        await ctx.wait_for_signal("x")
        ctx.continue_as(taken + 1)
    return taken


async def test_C5_it_survives_a_crash_between_the_runs(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_go, 1, workflow_id="w")

    for word in ("go", "go", "end"):
        await engine.signal_workflow("w", "next", word)
        await engine.restart()

    assert await handle.result() == [3, [], []]


# --- S7: what the next run takes along ------------------------------------------------------------------------------------


async def test_S7_continue_as_carries_over_signals_that_were_not_taken(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_go, 1, workflow_id="w")
    for name, value in (("x", 1), ("y", "a"), ("x", 2), ("y", "b")):
        await engine.signal_workflow("w", name, value)

    await engine.signal_workflow("w", "next", "go")
    await engine.signal_workflow("w", "next", "go")
    await engine.restart()
    await engine.signal_workflow("w", "x", 3)
    await engine.signal_workflow("w", "next", "end")

    assert await handle.result() == [3, [1, 2, 3], ["a", "b"]]


async def test_S7_continue_as_carries_over_signals_of_the_same_batch(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_go, 1, workflow_id="w")

    sent = await asyncio.gather(
        engine.signal_workflow("w", "next", "go"),
        *(engine.signal_workflow("w", "x", number) for number in range(5)),
    )
    await engine.signal_workflow("w", "next", "end")

    assert await handle.result() == [2, [0, 1, 2, 3, 4], []]
    second = (await runs_of(engine, "w"))[1].execution_id
    assert {answer.workflow_execution_id for answer in sent[1:]} == {second}
    assert [answer.signal_event_sequence for answer in sent[1:]] == [2, 3, 4, 5, 6]


async def test_S7_a_signal_with_start_that_meets_continue_as_goes_to_the_next_run(world: World) -> None:
    engine = await world.open(ALL)
    await engine.start(on_go, 1, workflow_id="w")

    _, answer = await asyncio.gather(
        engine.signal_workflow("w", "next", "go"),
        engine.signal_with_start_workflow("w", on_go, 100, signal_name="x", signal_value=7),
    )
    await engine.signal_workflow("w", "next", "end")

    assert not answer.workflow_created
    assert await engine.handle("w").result() == [2, [7], []]


async def test_S7_continue_as_carries_over_a_cancel_of_the_same_batch(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_go, 1, workflow_id="w")

    _, cancelled = await asyncio.gather(engine.signal_workflow("w", "next", "go"), engine.cancel("w"))

    assert cancelled
    with pytest.raises(WorkflowCancelled):
        await handle.result()
    assert [run.status for run in await runs_of(engine, "w")] == [Status.CONTINUED, Status.CANCELLED]


async def test_S7_continue_as_carries_over_a_termination_of_the_same_batch(world: World) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_go, 1, workflow_id="w")

    _, terminated = await asyncio.gather(engine.signal_workflow("w", "next", "go"), engine.terminate("w"))

    assert terminated
    with pytest.raises(WorkflowTerminated):
        await handle.result()
    assert [run.status for run in await runs_of(engine, "w")] == [Status.CONTINUED, Status.TERMINATED]


@pytest.mark.parametrize("together", [True, False])
async def test_S7_continue_as_carries_over_request_ids(world: World, together: bool) -> None:
    engine = await world.open(ALL)
    handle = await engine.start(on_go, 1, workflow_id="w")

    if together:
        await asyncio.gather(
            engine.signal_workflow("w", "next", "go", request_id="n"),
            engine.signal_workflow("w", "x", 1, request_id="r"),
        )
    else:
        await engine.signal_workflow("w", "x", 1, request_id="r")
        await engine.signal_workflow("w", "next", "go", request_id="n")
    await engine.signal_workflow("w", "x", 1, request_id="r")
    await engine.signal_workflow("w", "next", "go", request_id="n")
    await engine.signal_workflow("w", "next", "end")

    assert await handle.result() == [2, [1], []]


async def test_S7_a_signal_in_the_inbox_while_the_run_continues_is_not_lost(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    await one.start(on_go, 1, workflow_id="w")
    nodes.pause("one")
    continuing = asyncio.ensure_future(one.signal_workflow("w", "next", "go"))
    await nodes.paused("one")

    await two.signal_workflow("w", "x", 7, request_id="r")
    nodes.resume("one")
    await continuing
    await two.signal_workflow("w", "x", 7, request_id="r")
    await two.signal_workflow("w", "next", "end")
    await nodes.clock.settle()

    assert await two.query_result("w") == [2, [7], []]


async def test_S7_requests_that_go_along_are_handled_once_though_the_end_is_lost(nodes: Nodes) -> None:
    one, two = await nodes.open("one", ALL), await nodes.open("two", ALL)
    await one.start(on_go, 1, workflow_id="w")
    nodes.pause("one")
    continuing = asyncio.ensure_future(
        asyncio.gather(one.signal_workflow("w", "next", "go"), one.signal_workflow("w", "x", 1))
    )
    await nodes.paused("one")
    await two.signal_workflow("w", "y", 2)

    nodes.resume("one")
    await continuing
    await one.signal_workflow("w", "next", "end")
    await nodes.clock.settle()

    assert await one.query_result("w") == [2, [1], [2]]


@pytest.mark.parametrize("number", [1, 50])
async def test_S7_signals_of_two_nodes_reach_one_run_or_another_and_none_is_lost(nodes: Nodes, number: int) -> None:
    engines = [await nodes.open("one", ALL), await nodes.open("two", ALL)]
    await engines[0].start(on_go, 1, workflow_id="w")

    await asyncio.gather(
        *(engines[n % 2].signal_workflow("w", "x", n) for n in range(number)),
        *(engines[n % 2].signal_workflow("w", "next", "go") for n in range(5)),
    )
    await nodes.clock.settle()
    await engines[0].signal_workflow("w", "next", "end")
    await nodes.clock.settle()

    run, taken, _ = await engines[0].query_result("w")
    assert run == 6
    assert sorted(taken) == list(range(number))
