"""A7: an activity that runs at most once is never called twice, whatever ends the process that called it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    ActivityError,
    ActivityFailed,
    ActivityTimedOut,
    Context,
    Retry,
    RetryAfter,
    activity,
    transaction,
    workflow,
)
from holdfast.activities.definitions import Activity
from holdfast.core import codec, envelopes, events
from holdfast.engine.requests import Request
from holdfast.engine.rows import from_row
from holdfast.errors import InvalidConfiguration
from holdfast.testing import replay
from tests.engine import hooks
from tests.engine.activities import process_activities
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import MORTAL, Cluster
from tests.engine.support.held_activities import Door
from tests.engine.support.histories import find_events
from tests.eventually import eventually

ROOT = Path(__file__).parents[3]


def make_charge(door: Door, **options: Any) -> Activity[..., Any]:
    """An activity that waits at a door, and must not be repeated."""

    @activity(name="charge", at_most_once=True, **options)
    async def charge(order: int = 0) -> str:
        await door.wait(order)
        return "charged"

    return charge


def make_orders(charge: Activity[..., Any]) -> Any:
    """A workflow that charges several orders at once, and says how each ended."""

    @workflow(name="orders")
    async def charging(ctx: Context, count: int = 1) -> list[str]:
        async def one(order: int) -> str:
            try:
                return str(await ctx.run(charge, order))
            except ActivityError as error:
                return type(error).__name__

        return list(await asyncio.gather(*(one(order) for order in range(count))))

    return charging


async def test_A7_what_has_begun_is_lost_with_its_process_and_not_run_again(open_engine: OpenEngine) -> None:
    door = Door()
    charge = make_charge(door)
    flow = make_orders(charge)
    engine = await open_engine(flow, charge)
    handle = await engine.start(flow, 3, workflow_id="a")
    await eventually(lambda: len(door.came) == 3)

    await engine.restart()
    result = await engine.wait_for_result("a")

    assert result == ["ActivityLost"] * 3
    assert door.came == [0, 1, 2]
    assert [one.attempt for one in await find_events(engine, handle.workflow_id, events.ActivityLost)] == [2, 2, 2]
    assert replay((await engine.history("a")).to_json(), [flow]).events > 0


async def test_O1_lost_activity_is_logged_once_as_failed_and_not_as_begun_anew(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    door = Door()
    charge = make_charge(door)
    flow = make_orders(charge)
    engine = await open_engine(flow, charge)
    await engine.start(flow, workflow_id="a")
    await eventually(lambda: door.came)

    await engine.restart()
    await engine.wait_for_result("a")

    records = [one for one in caplog.records if getattr(one, "activity", None) == "charge"]
    assert [vars(one)["event"] for one in records] == ["activity_failed"]
    assert (
        records[0]
        .getMessage()
        .endswith("is lost: it may run at most once, had begun, and its process ended before it reported (ActivityLost)")
    )


async def test_A7_what_has_not_begun_runs_after_its_process_ended(open_engine: OpenEngine) -> None:
    door = Door()
    charge = make_charge(door, max_concurrent=1)
    flow = make_orders(charge)
    engine = await open_engine(flow, charge)
    await engine.start(flow, 2, workflow_id="a")
    await eventually(lambda: door.came)

    await engine.restart()
    door.open()
    result = await engine.wait_for_result("a")

    assert result == ["ActivityLost", "charged"]
    assert door.came == [0, 1]


async def test_A7_beginning_is_committed_before_the_function_is_called(open_engine: OpenEngine) -> None:
    seen: list[bool] = []

    @activity(at_most_once=True)
    async def charge() -> None:
        row = await engine.store.find_execution("default", str(handle.execution_id))
        assert row is not None
        seen.append(codec.decode_details(row.details).attempts[1].may_not_repeat)

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.wait_for_signal("go")
        await ctx.run(charge)

    engine = await open_engine(order, charge)
    handle = await engine.start(order)
    await handle.signal("go")
    await handle.result()

    assert seen == [True]


@pytest.mark.parametrize(
    ("error", "kind"), [(ValueError("no"), ActivityFailed), (RetryAfter(1), ActivityFailed), (None, ActivityTimedOut)]
)
async def test_A7_failure_and_timeout_are_reports_and_not_retried(
    open_engine: OpenEngine, error: Exception | None, kind: type[ActivityError]
) -> None:
    calls: list[int] = []

    @activity(at_most_once=True, start_to_close=5)
    async def charge() -> None:
        calls.append(1)
        if error is not None:
            raise error
        await asyncio.sleep(3600)

    @workflow
    async def order(ctx: Context) -> str:
        try:
            await ctx.run(charge)
        except ActivityError as caught:
            return type(caught).__name__
        return "?"

    engine = await open_engine(order, charge)
    handle = await engine.start(order)
    await eventually(lambda: calls)
    await engine.clock.advance(60)

    assert await handle.result() == kind.__name__
    assert calls == [1]


@pytest.mark.parametrize("ends", [True, False])
async def test_A7_shutdown_loses_only_what_does_not_end_within_the_grace(open_engine: OpenEngine, ends: bool) -> None:
    door = Door()
    charge = make_charge(door)
    flow = make_orders(charge)
    engine = await open_engine(flow, charge, shutdown_grace=60.0 if ends else 0.01)
    await engine.start(flow, workflow_id="a")
    await eventually(lambda: door.came)
    if ends:
        asyncio.get_running_loop().call_later(0.05, door.open)

    await engine.shutdown()
    await engine.restart()
    result = await engine.wait_for_result("a")

    assert result == (["charged"] if ends else ["ActivityLost"])
    assert door.came == [0]


async def test_A7_worker_process_that_dies_loses_its_activity(open_engine: OpenEngine) -> None:
    die = process_activities.die_at_most_once
    flow = make_orders(die)
    engine = await open_engine(flow, die)

    handle = await engine.start(flow)

    assert await handle.result() == ["ActivityLost"]


async def test_A7_killed_process_does_not_call_it_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.engine.activities.once_main", str(tmp_path / "app.db"), str(tmp_path)]
    first = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert first.stdout.readline() == "called\n"
    first.send_signal(signal.SIGKILL)
    first.communicate()

    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)

    assert second.stdout == "ActivityLost in attempt 2\n"
    assert (tmp_path / "calls").read_text() == "called\n"


# --- several nodes ---


@pytest.mark.parametrize("is_offered", [False, True])
async def test_A7_other_node_reports_what_was_lost_with_a_killed_one(cluster: Cluster, is_offered: bool) -> None:
    door = Door()
    charge = make_charge(door)
    flow = make_orders(charge)
    await cluster.open("a", flow, *([] if is_offered else [charge]), **MORTAL)
    handle = await cluster.engines["a"].start(flow, workflow_id="a")
    if is_offered:
        await cluster.open("b", charge, **MORTAL)  # it has no code for the workflow
    else:
        await eventually(lambda: door.came)
        await cluster.open("b", flow, charge, **MORTAL)
    await eventually(lambda: door.came)

    await cluster.kill("b" if is_offered else "a")
    survivor = next(iter(cluster.engines.values()))
    result = await survivor.wait_for_result(handle.workflow_id)

    assert result == ["ActivityLost"]
    assert door.came == [0]


async def test_A7_offered_activity_runs_once_and_its_result_counts(cluster: Cluster) -> None:
    door = Door()
    door.open()
    charge = make_charge(door)
    flow = make_orders(charge)
    a = await cluster.open("a", flow)
    await cluster.open("b", charge)

    handle = await a.start(flow, 20)

    assert await handle.result() == ["charged"] * 20
    assert sorted(door.came) == list(range(20))


async def test_A7_late_result_of_a_node_that_was_taken_for_dead_is_refused(open_engine: OpenEngine) -> None:
    door = Door()
    charge = make_charge(door)
    flow = make_orders(charge)
    engine = await open_engine(flow, charge)
    handle = await engine.start(flow)
    await eventually(lambda: door.came)

    gone = envelopes.Redispatch(node=engine.node)
    engine._submit(Request("default", gone, execution_id=str(handle.execution_id)))
    result = await handle.result()
    door.open()

    assert result == ["ActivityLost"]
    assert door.came == [0]


async def test_A7_attempt_that_a_restored_database_may_have_forgotten_is_lost(open_engine: OpenEngine) -> None:
    door = Door()
    charge = make_charge(door, max_concurrent=1)
    flow = make_orders(charge)
    engine = await open_engine(flow, charge)
    handle = await engine.start(flow, 2)
    await eventually(lambda: door.came)
    row = await hooks.find_row(engine, handle.workflow_id)
    assert not from_row(row).attempt_of(2).may_not_repeat

    forgotten = envelopes.Redispatch(node=engine.node, has_left=True, number=2, attempt=1, may_have_begun=True)
    engine._submit(Request("default", forgotten, execution_id=str(handle.execution_id)))
    await eventually(lambda: find_events(engine, handle.workflow_id, events.ActivityLost))
    door.open()

    assert await handle.result() == ["charged", "ActivityLost"]
    assert door.came == [0]


# --- what is refused ---


def test_retry_that_contradicts_at_most_once_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="to have one attempt, but its retry allows 3"):
        activity(at_most_once=True, retry=Retry(max_attempts=3))
    once = activity(at_most_once=True, retry=Retry(max_attempts=1), name="once")(int.bit_length)
    with pytest.raises(InvalidConfiguration, match="to have one attempt, but its retry allows any number"):
        once.with_options(retry=Retry(initial=5))
    with pytest.raises(InvalidConfiguration, match="to have one attempt, but its retry allows"):
        once.with_options(retry=Retry())
    with pytest.raises(InvalidConfiguration, match="to have one attempt, but its retry allows"):
        activity(at_most_once=True, retry=Retry())
    assert activity(name="often")(int.bit_length).with_options(at_most_once=True).options.retry.max_attempts == 1
    with pytest.raises(InvalidConfiguration, match="at_most_once=… to be True or False"):
        activity(at_most_once="yes")  # type: ignore[call-overload]


def test_transaction_takes_neither_at_most_once_nor_a_wait_for_its_end() -> None:
    @transaction
    def book(connection: Any) -> None:
        """Books nothing."""

    for options in ({"at_most_once": True}, {"cancellation": "wait"}):
        with pytest.raises(InvalidConfiguration, match="Expected transaction 'book' to have neither"):
            book.with_options(**options)
