"""A5 and A4: functions that do not end hold up neither the engine that closes, nor its process, nor other activities."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from holdfast import ActivityTimedOut, Context, Retry, activity, activity_info, workflow
from holdfast.engine.activities import limits, runner
from holdfast.engine.activities.limits import MOST_ABANDONED
from tests.engine import hooks
from tests.engine.activities.process_activities import Job, compute, sleep_in_process
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually, eventually_blocking

ROOT: Final = Path(__file__).parents[3]
ONCE: Final = Retry(max_attempts=1)


class Swallower:
    """An activity whose first attempt swallows every cancellation, until it is told to return."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.cancelled = 0
        self.returned: list[int] = []
        self.is_told = False

    async def run(self) -> int:
        attempt = activity_info().attempt
        self.came.append(attempt)
        while attempt == 1 and not self.is_told:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                self.cancelled += 1
        self.returned.append(attempt)
        return attempt


@pytest.fixture
def swallower() -> Any:
    swallower = Swallower()
    yield swallower
    swallower.is_told = True


# --- shutting down ---


async def test_A5_node_leaves_before_it_waits_for_what_swallows_its_cancellation(
    cluster: Cluster, swallower: Swallower
) -> None:
    @activity(retry=ONCE)
    async def stubborn() -> int:
        return await swallower.run()

    @workflow
    async def order(ctx: Context) -> int:
        return await ctx.run(stubborn)

    first = await cluster.open("a", order, stubborn)
    handle = await first.start(order, workflow_id="w")
    await eventually(lambda: swallower.came)
    second = await cluster.open("b", order, stubborn)
    await eventually(lambda: "b" in hooks.peers_of(first))
    closing = asyncio.create_task(cluster.shut_down("a"))

    assert await asyncio.wait_for(second.handle(handle.workflow_id).result(), 25) == 2
    was_open = not closing.done()
    await asyncio.wait_for(closing, 25)
    swallower.is_told = True
    await eventually(lambda: swallower.returned == [2, 1])

    assert was_open, "the other node was done while this one still waited"
    assert swallower.cancelled == 1
    assert (await second.history("w")).kinds.count("ActivityCompleted") == 1


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A5_activity_that_returns_a_value_when_it_is_cancelled_is_run_again(open_engine: OpenEngine) -> None:
    came: list[int] = []

    @activity(retry=ONCE)
    async def defiant() -> str:
        came.append(1)
        try:
            await asyncio.sleep(0 if len(came) > 1 else 3600)
        except asyncio.CancelledError:
            return "too late"
        return "in time"

    @workflow
    async def order(ctx: Context) -> str:
        return await ctx.run(defiant)

    engine = await open_engine(order, defiant, shutdown_grace=0.01)
    await engine.start(order, workflow_id="w")
    await eventually(lambda: came)
    await engine.shutdown()
    await engine.restart()

    assert await engine.handle("w").result() == "in time"


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A5_shutdown_does_not_wait_for_what_nobody_waits_for(open_engine: OpenEngine) -> None:
    end = threading.Event()
    came: list[int] = []

    @activity(retry=ONCE)
    def hang() -> None:
        came.append(1)
        end.wait()

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.run(hang)

    engine = await open_engine(order, hang, shutdown_grace=3600.0)
    handle = await engine.start(order)
    await eventually(lambda: came)
    await handle.terminate()

    await asyncio.wait_for(engine.shutdown(), 25)
    end.set()


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A5_shutdown_goes_on_if_the_wait_for_it_is_cancelled(open_engine: OpenEngine, swallower: Swallower) -> None:
    @activity(retry=ONCE)
    async def stubborn() -> int:
        return await swallower.run()

    @workflow
    async def order(ctx: Context) -> int:
        return await ctx.run(stubborn)

    engine = await open_engine(order, stubborn, shutdown_grace=0.01)
    await engine.start(order, workflow_id="w")
    await eventually(lambda: swallower.came)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(engine.shutdown(), 0.001)
    await asyncio.wait_for(engine.shutdown(), 25)
    report = await engine.restart()

    assert (report.resumed, report.taken_over) == (1, 0), "it has left cleanly"
    assert await engine.handle("w").result() == 2


def test_A5_process_ends_though_its_activities_do_not(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    command = [sys.executable, "-m", "tests.engine.support.hung_process", f"sqlite:///{tmp_path / 'app.db'}", str(marker)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}

    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout) == (0, "closed\n"), ended.stderr
    assert not psutil.pid_exists(int(marker.read_text())), "the process of an activity ended too"


def test_A5_process_ends_though_its_activities_swallow_everything(tmp_path: Path) -> None:
    module, url = "tests.engine.support.hung_process", f"sqlite:///{tmp_path / 'app.db'}"
    command = [sys.executable, "-m", module, url, "", "swallow"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}

    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout) == (0, "closed\n"), ended.stderr


def test_A5_processes_of_activities_end_with_an_engine_that_is_killed(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    module, url = "tests.engine.support.hung_process", f"sqlite:///{tmp_path / 'app.db'}"
    command = [sys.executable, "-m", module, url, str(marker), "stay"]
    engine = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        eventually_blocking(lambda: marker.exists() and marker.read_text(), "the activity to run in its process", 60)
    finally:
        engine.kill()
        engine.wait()

    eventually_blocking(lambda: has_ended(int(marker.read_text())), "the process of the activity to end", 25)


def has_ended(pid: int) -> bool:
    """Whether a process has ended, also if nobody has asked for its exit code."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


# --- others go on ---


@pytest.mark.parametrize("ending", ["timeout", "terminate"])
@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A4_hung_threads_do_not_keep_others_from_running(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture, ending: str
) -> None:
    end = threading.Event()
    came: list[int] = []

    @activity(retry=Retry(initial=0.01, maximum=0.01), start_to_close=0.02 if ending == "timeout" else None)
    def hang() -> None:
        came.append(activity_info().attempt)
        end.wait()

    @activity
    def work() -> str:
        return "done"

    @workflow
    async def hung(ctx: Context) -> None:
        await ctx.run(hang)

    @workflow
    async def order(ctx: Context) -> str:
        return await ctx.run(work)

    engine = await open_engine(hung, order, hang, work, max_threads=2)
    caplog.set_level(logging.WARNING, "holdfast.activities")
    for number in range(MOST_ABANDONED + 2):
        handle = await engine.start(hung, workflow_id=f"hung-{number}")
        if ending == "timeout":
            break
        if number < MOST_ABANDONED:
            await eventually(lambda: len(came) == number + 1)  # noqa: B023 - it is awaited in this round
        await handle.terminate()
    if ending == "timeout":
        for _ in range(20 * MOST_ABANDONED):
            await engine.clock.advance(0.01)
            await asyncio.sleep(0)
        await eventually(lambda: len(came) == MOST_ABANDONED)
        info = await engine.query_status("hung-0")
        assert len(info.unheard) == MOST_ABANDONED
        assert info.unheard[0] == (
            f"attempt 1 of activity 'hang' (number 1) is over, but its function still runs on node {engine.node}"
        )

    assert await asyncio.wait_for((await engine.start(order)).result(), 25) == "done"
    assert len(came) == MOST_ABANDONED, "no more of its attempts start here"
    assert "activity 'hang' of 'hung-" in caplog.text
    assert "so no more attempts of it start here" in caplog.text
    end.set()
    if ending == "timeout":

        async def has_come() -> bool:
            await engine.clock.advance(0.01)
            return len(came) > MOST_ABANDONED

        await eventually(has_come)


async def test_A4_other_nodes_are_offered_what_hangs_too_often_on_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_ABANDONED", 1)
    end = threading.Event()

    @activity(name="fetch", retry=Retry(initial=0.01), start_to_close=0.05)
    def hang() -> str:
        end.wait()
        return "a"

    @activity(name="fetch")
    def fetch() -> str:
        return "b"

    @workflow
    async def order(ctx: Context) -> str:
        return await ctx.run(hang)

    first = await cluster.open("a", order, hang)
    await cluster.open("b", fetch)
    await eventually(lambda: "b" in hooks.peers_of(first))

    assert await asyncio.wait_for((await first.start(order)).result(), 25) == "b"
    end.set()


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A4_async_function_that_swallows_its_cancellation_loses_its_place(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, swallower: Swallower
) -> None:
    monkeypatch.setattr(runner, "UNWINDING_SECONDS", 0.05)

    @activity(retry=ONCE, start_to_close=1)
    async def stubborn() -> int:
        return await swallower.run()

    @workflow
    async def order(ctx: Context) -> str:
        try:
            await ctx.run(stubborn)
        except ActivityTimedOut:
            return "timed out"
        return "returned"

    engine = await open_engine(order, stubborn, max_activities=1)
    for number in range(2):
        handle = await engine.start(order)
        await eventually(lambda: len(swallower.came) == number + 1)  # noqa: B023 - it is awaited in this round
        await engine.clock.advance(2)
        assert await handle.result() == "timed out"

    assert "it swallows CancelledError" in caplog.text


@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A4_process_of_an_activity_that_timed_out_is_ended(open_engine: OpenEngine, tmp_path: Path) -> None:
    marker = tmp_path / "marker"

    @workflow
    async def order(ctx: Context) -> list[int]:
        try:
            await ctx.run(sleep_in_process.with_options(start_to_close=60), str(marker))
        except ActivityTimedOut:
            return await ctx.run(compute, Job(4))
        return []

    engine = await open_engine(order, sleep_in_process, compute, max_processes=1)
    handle = await engine.start(order)
    await eventually(lambda: marker.exists() and marker.read_text())
    await engine.clock.advance(61)

    assert (await asyncio.wait_for(handle.result(), 25))[1] == 8
    await eventually(lambda: has_ended(int(marker.read_text())))


# --- what waits for a place ---


@pytest.mark.parametrize("ending", ["cancel", "start"])
@pytest.mark.parametrize("url", ["memory"], indirect=True)
async def test_A4_attempt_that_waited_for_a_place_leaves_no_alarm(open_engine: OpenEngine, ending: str) -> None:
    is_told = False

    @activity(retry=ONCE, max_concurrent=1, schedule_to_close=3600, schedule_to_start=1800)
    async def work() -> None:
        await eventually(lambda: is_told)

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.run(work)

    engine = await open_engine(order, work)
    await engine.clock.advance(seconds=2)  # past the first looks of retention
    idle = len(engine.clock.alarms)
    first = await engine.start(order)
    others = [await engine.start(order) for _ in range(20)]
    await engine.settle()
    assert len(engine.clock.alarms) == idle + 41
    if ending == "cancel":
        for handle in others:
            await handle.terminate()
    else:
        is_told = True
        for handle in [first, *others]:
            await handle.result()

    assert len(engine.clock.alarms) == idle + (1 if ending == "cancel" else 0)
    is_told = True
