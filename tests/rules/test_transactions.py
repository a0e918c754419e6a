"""X1 to X3: a turn is written whole or not at all, is taken again if it was not, and counts its versions."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, Status, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import codec
from holdfast.core.envelopes import Signal
from holdfast.core.payloads import NULL
from holdfast.errors import OutcomeUnknown, StoreUnavailable, status_code
from holdfast.store.contract import TurnWrite, UnroutedWrite
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.rows import HistoryRow, InboxRow, TimerRow
from tests.engine import hooks
from tests.eventually import eventually
from tests.rules.steps import CALLS, call
from tests.rules.world import Nodes, World, once


@workflow
async def quiet(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


@workflow
async def does_everything(ctx: Context) -> list[str]:
    """Asks for one of each thing in its first turn, and again in the turn that its signal brings."""
    done = []
    for step in ("first", "second"):
        ctx.set_state({"step": step})
        running = ctx.run(call, step)
        napping = ctx.sleep(60)
        child = ctx.start_child(quiet, workflow_id=f"child of {step}")
        sending = ctx.signal_external_workflow("receiver", "hello", step)
        await ctx.wait_for_signal("go", int)
        done.append(f"{step}: {running.done()} {napping.done()} {child.result().done()} {sending.done()}")
    return done


@workflow
async def counts(ctx: Context, wanted: int) -> list[int]:
    return [await ctx.wait_for_signal("x", int) for _ in range(wanted)]


@workflow
async def sleeper(ctx: Context) -> str:
    await ctx.sleep(60)
    await ctx.wait_for_signal("end")
    return "woken"


@workflow
async def worker(ctx: Context) -> str:
    done = await ctx.run(call, "work")
    await ctx.wait_for_signal("end")
    return done


ALL: list[Workflow[..., Any]] = [quiet, does_everything, counts, sleeper, worker]


def kinds_of(turn: TurnWrite) -> list[str]:
    assert turn.history is not None
    return [type(event).__name__ for event in codec.decode_events(turn.history.body, turn.history.schema)]


# --- X1 -------------------------------------------------------------------------------------------------------------------


async def test_X1_a_start_commits_everything_once_and_together(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(quiet, workflow_id="receiver")
    nodes.commits.clear()

    handle = await engine.start(does_everything, workflow_id="w", idempotency_key="key")

    (turn,) = nodes.commits[0].turns
    assert (turn.row.execution_id, turn.expected_version, turn.row.state_version) == (handle.execution_id, None, 1)
    assert kinds_of(turn) == [
        "WorkflowStarted",
        "ActivityScheduled",
        "TimerStarted",
        "ChildStarted",
        "ExternalSignalInitiated",
    ]
    assert len(turn.timers) == 1
    assert sorted(type(codec.decode_envelope(row.body)).__name__ for row in turn.outgoing) == ["Signal", "Start"]
    assert [row.key for row in turn.requests] == ["key"]
    assert codec.decode_details(turn.row.details).state is not None


async def test_X1_a_resume_commits_everything_and_takes_its_envelope_once_and_together(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(quiet, workflow_id="receiver")
    handle = await engine.start(does_everything, workflow_id="w")
    await engine.settle()
    nodes.commits.clear()

    await nodes.put_into_inbox(
        str(handle.execution_id), Signal(name="go", value=msgspec.structs.replace(NULL, data=msgspec.Raw(b"1")))
    )
    await engine.settle()

    turn = nodes.commits[0].turns[0]
    assert len(turn.consumed) == 1
    assert kinds_of(turn) == [
        "SignalReceived",
        "ActivityScheduled",
        "TimerStarted",
        "ChildStarted",
        "ExternalSignalInitiated",
    ]
    assert (len(turn.timers), len(turn.outgoing)) == (1, 2)
    assert (turn.expected_version or 0) + 1 == turn.row.state_version
    assert (await engine.store.count()).inbox == 0


async def test_X1_a_completion_commits_the_result_and_what_follows_from_it_together(nodes: Nodes) -> None:
    engine = await nodes.open("one", [chained], [call])

    await (await engine.start(chained)).result()

    assert [kinds_of(turn) for commit in nodes.commits for turn in commit.turns] == [
        ["WorkflowStarted", "ActivityScheduled"],
        ["ActivityCompleted", "ActivityScheduled", "TimerStarted"],
        ["ActivityCompleted", "TimerCancelled", "WorkflowCompleted"],
    ]
    first, second, third = (commit.turns[0] for commit in nodes.commits)
    assert (len(first.timers), len(second.timers), len(third.timers)) == (0, 1, 0)
    assert list(third.ended_timers) == [timer.number for timer in second.timers]


@workflow
async def chained(ctx: Context) -> None:
    await ctx.run(call, "first")
    running, napping = ctx.run(call, "second"), ctx.sleep(60)
    await running
    napping.cancel()


async def test_X1_a_dead_letter_is_committed_with_the_turn_that_makes_it(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])
    await engine.start(counts, 1, workflow_id="w")
    nodes.commits.clear()

    await engine.signal_workflow("w", "x", "no number")

    (turn,) = nodes.commits[0].turns
    assert kinds_of(turn) == ["SignalReceived", "SignalRejected"]
    assert len(turn.dead_letters) == 1


STOPS = [
    Point.CLAIM_READ,
    Point.WRITE_VERSIONS,
    Point.WRITE_INSERTS,
    Point.WRITE_ROWS,
    Point.COMMIT,
    Point.COMMITTED,
]


async def prepare(nodes: Nodes, engine: Engine, cause: str) -> asyncio.Future[Any]:
    """Begin what causes one turn that writes all that there is to write."""
    if cause == "start":
        return asyncio.ensure_future(engine.start(does_everything, workflow_id="w", idempotency_key="key"))
    if cause == "signal":
        return asyncio.ensure_future(engine.signal_workflow("w", "go", 1, request_id="r"))
    if cause == "inbox":
        one = msgspec.structs.replace(NULL, data=msgspec.Raw(b"1"))
        found = await engine.query_status("w")
        await nodes.put_into_inbox(found.execution_id, Signal(name="go", value=one))
        return asyncio.get_running_loop().create_future()
    return asyncio.ensure_future(nodes.clock.advance(seconds=60))


@pytest.mark.parametrize("cause", ["start", "signal", "inbox", "timer"])
@pytest.mark.parametrize("point", STOPS)
async def test_X1_a_crash_at_any_point_leaves_all_or_nothing(nodes: Nodes, point: Point, cause: str) -> None:
    engine = await nodes.open("one", ALL, [call], exclusive=True)
    await engine.start(quiet, workflow_id="receiver")
    if cause != "start":
        await engine.start(does_everything, workflow_id="w")
    await engine.settle()
    before = await nodes.snapshot()
    nodes.faults["one"] = once(point, FaultAction.CRASH)

    causing = await prepare(nodes, engine, cause)
    await nodes.died("one")
    causing.cancel()
    await nodes.kill("one")
    after = await nodes.snapshot()

    if point is not Point.COMMITTED:
        if cause == "inbox":
            (waiting,) = [row for row in after["inbox"] if row not in before["inbox"]]
            after["inbox"].remove(waiting)
        assert after == before
        return
    (execution,) = [row for row in after["executions"] if row.workflow_id == "w"]
    kinds = [kind for first, kind in after["events"] if first == execution.execution_id]
    expected = {"start": "WorkflowStarted", "timer": "TimerFired"}.get(cause, "SignalReceived")
    assert expected in kinds
    if cause == "timer":
        assert len(after["timers"]) == len(before["timers"]) - 1
    else:
        assert len(after["timers"]) == len(before["timers"]) + 1
        assert len(after["inbox"]) == len(before["inbox"]) + 2
        assert len(after["requests"]) == len(before["requests"]) + (cause != "inbox")


async def test_X1_what_was_answered_is_in_the_file(on_file: World) -> None:
    engine = await on_file.open(ALL, [call])
    await engine.start(quiet, workflow_id="receiver")

    handle = await engine.start(does_everything, workflow_id="w", idempotency_key="key")
    image = on_file.copy_file("image")

    reader = sqlite3.connect(image.removeprefix("sqlite:///"))
    try:
        row = reader.execute("SELECT status, state_version FROM executions WHERE execution_id = ?", [handle.execution_id])
        assert row.fetchone() == (Status.RUNNING, 1)
        counted = [reader.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("timers", "requests")]
        assert counted == [1, 1]
    finally:
        reader.close()


async def test_X1_an_image_of_the_file_at_each_answer_goes_on_from_there(on_file: World) -> None:
    engine = await on_file.open(ALL, [call])
    handle = await engine.start(counts, 4, workflow_id="w")
    for number in range(3):
        await handle.signal("x", number)

        image = on_file.copy_file(f"image-{number}")
        copy = await on_file.open(ALL, [call], url=image)
        for further in range(number + 1, 4):
            await copy.signal_workflow("w", "x", further)

        assert await copy.handle("w").result() == [0, 1, 2, 3]


# --- X2 -------------------------------------------------------------------------------------------------------------------


FAILURES = [
    (point, FaultAction.FAIL)
    for point in (Point.CLAIM_READ, Point.WRITE_VERSIONS, Point.WRITE_INSERTS, Point.WRITE_ROWS, Point.COMMIT)
] + [(Point.COMMIT, FaultAction.LOST_UNKNOWN)]


@pytest.mark.parametrize(("point", "action"), FAILURES)
async def test_X2_a_failed_commit_leaves_the_envelope_visible_and_the_turn_is_taken_again(
    nodes: Nodes, point: Point, action: FaultAction
) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(counts, 2, workflow_id="w")
    nodes.faults["one"] = once(point, action)
    one = msgspec.structs.replace(NULL, data=msgspec.Raw(b"1"))
    await nodes.put_into_inbox(str(handle.execution_id), Signal(name="x", value=one))
    before = await nodes.snapshot()
    await eventually(lambda: hooks.is_backing_off(engine))
    failed = await nodes.snapshot()

    await nodes.clock.advance(seconds=1)

    assert failed == before
    assert len(failed["inbox"]) == 1
    assert (await handle.history()).kinds == ["WorkflowStarted", "SignalReceived"]
    assert (await handle.status()).state_version == 2
    assert (await engine.store.count()).inbox == 0


@pytest.mark.parametrize(("point", "action"), FAILURES)
async def test_X2_a_caller_whose_commit_failed_is_told_and_nothing_has_changed(
    nodes: Nodes, point: Point, action: FaultAction
) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(counts, 2, workflow_id="w")
    before = await nodes.snapshot()
    nodes.faults["one"] = once(point, action)

    with pytest.raises(StoreUnavailable) as refused:
        await handle.signal("x", 1)

    assert not isinstance(refused.value, OutcomeUnknown)
    assert status_code(refused.value) == 503
    assert await nodes.snapshot() == before
    await nodes.clock.advance(seconds=1)
    for number in (2, 3):
        await handle.signal("x", number)
    assert await handle.result() == [2, 3]


@pytest.mark.parametrize(("point", "action"), FAILURES)
async def test_X2_a_timer_whose_turn_failed_fires_again(nodes: Nodes, point: Point, action: FaultAction) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(sleeper, workflow_id="w")
    await nodes.clock.advance(seconds=59)
    nodes.faults["one"] = once(point, action)

    await nodes.clock.advance(seconds=30)
    await handle.signal("end")

    assert await handle.result() == "woken"
    assert (await handle.history()).kinds.count("TimerFired") == 1


@pytest.mark.parametrize(("point", "action"), FAILURES)
async def test_X2_a_result_whose_turn_failed_is_handed_in_again(nodes: Nodes, point: Point, action: FaultAction) -> None:
    engine = await nodes.open("one", [works_late], [call])
    handle = await engine.start(works_late, workflow_id="w")
    plan = [FaultAction.NONE, action]  # the turn that asks for the work, then the one that takes its result
    nodes.faults["one"] = lambda at, _node: plan.pop(0) if at == point and plan else FaultAction.NONE

    await handle.signal("go")
    await nodes.clock.advance(seconds=30)

    assert await handle.result() == "work"
    assert CALLS == ["work"]
    assert (await handle.history()).kinds.count("ActivityCompleted") == 1


@workflow
async def works_late(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    return await ctx.run(call, "work")


async def test_X2_commits_that_fail_for_long_are_tried_until_they_succeed(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(sleeper, workflow_id="w")
    nodes.faults["one"] = lambda point, _node: FaultAction.FAIL if point == Point.COMMIT else FaultAction.NONE
    await nodes.clock.advance(minutes=10)
    before = await handle.history()

    nodes.faults.clear()
    await nodes.clock.advance(minutes=1)
    await handle.signal("end")

    assert before.kinds == ["WorkflowStarted", "TimerStarted"]
    assert await handle.result() == "woken"


# --- X3 -------------------------------------------------------------------------------------------------------------------


async def test_X3_the_version_grows_by_one_per_committed_turn(nodes: Nodes) -> None:
    engine = await nodes.open("one", ALL, [call])
    handle = await engine.start(counts, 20, workflow_id="w")

    await asyncio.gather(*(handle.signal("x", number) for number in range(10)))
    for number in range(10, 20):
        await handle.signal("x", number)

    turns = [turn for commit in nodes.commits for turn in commit.turns]
    assert [turn.row.state_version for turn in turns] == list(range(1, len(turns) + 1))
    assert [turn.expected_version for turn in turns] == [None, *range(1, len(turns))]
    assert (await handle.status()).state_version == len(turns)


async def test_X3_the_version_goes_on_after_a_crash(world: World) -> None:
    engine = await world.open(ALL, [call])
    handle = await engine.start(counts, 20)

    versions = [(await handle.status()).state_version]
    for number in range(5):
        await handle.signal("x", number)
        versions.append((await handle.status()).state_version)
        await engine.restart()
        await engine.clock.advance(minutes=2)  # crashes in a row would make it take care, which takes turns of its own

    assert versions == [1, 2, 3, 4, 5, 6]


async def test_X3_a_turn_that_changes_nothing_leaves_the_version(world: World) -> None:
    engine = await world.open([swallows])
    handle = await engine.start(swallows)
    await handle.cancel()
    before = await handle.status()

    await handle.cancel()

    assert (await handle.status()).state_version == before.state_version


@workflow
async def swallows(ctx: Context) -> None:
    try:
        await ctx.wait_for_signal("never")
    except asyncio.CancelledError:
        await ctx.wait_for_signal("never")


async def test_X3_two_nodes_in_turn_leave_no_gap_and_no_double(nodes: Nodes) -> None:
    engines = [await nodes.open("one", ALL, [call]), await nodes.open("two", ALL, [call])]
    handle = await engines[0].start(counts, 20, workflow_id="w")

    for number in range(20):
        await engines[number % 2].signal_workflow("w", "x", number)

    turns = [turn for commit in nodes.commits for turn in commit.turns]
    assert [turn.row.state_version for turn in turns] == list(range(1, 22))
    assert await handle.result() == list(range(20))


@pytest.mark.parametrize("version", [0, 1, 3, 99, None])
async def test_X3_a_write_with_another_version_changes_nothing(world: World, version: int | None) -> None:
    engine = await world.open(ALL, [call])
    handle = await engine.start(counts, 9, workflow_id="w")
    await handle.signal("x", 1)
    store, execution_id = engine.store, str(handle.execution_id)
    row = await store.find_execution("default", execution_id)
    before = (await handle.history(), await store.count())
    assert row is not None
    assert row.state_version == 2

    transaction = await store.begin()
    lost = await transaction.write(
        [
            TurnWrite(
                row=msgspec.structs.replace(row, status=Status.FAILED, closed_at=1, state_version=7),
                expected_version=version,
                history=HistoryRow(execution_id, row.sequence + 1, 1, 1, codec.SCHEMA, b"[]"),
                timers=[TimerRow("default", execution_id, 1, 1)],
                outgoing=[InboxRow("default", execution_id, "", codec.encode(Signal(name="x", value=NULL)))],
            )
        ],
        UnroutedWrite(),
    )
    await transaction.commit()

    assert lost == {execution_id}
    assert await store.find_execution("default", execution_id) == row
    assert (await handle.history(), await store.count()) == before
