"""N3: what ends its process is found, kept apart from the others, and given up after some tries."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import ActivityFailed, Context, Engine, Retry, Status, activity, activity_info, workflow
from holdfast.engine.rows import from_row
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import MORTAL, Cluster
from tests.engine.support.held_activities import Door
from tests.engine.turns import process_killers
from tests.eventually import eventually

ROOT = Path(__file__).parents[3]
MOST_PROCESSES = 12
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def lasting_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each kind of database that outlives a process."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'app.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


def run_until_it_lives(url: str, path: Path, how: str) -> tuple[int, str]:
    """Start the process again and again, as a supervisor does; how often it died, and what it said at last."""
    path.touch()
    for deaths in range(MOST_PROCESSES):
        ended = subprocess.run(
            [sys.executable, "-m", "tests.engine.turns.process_killers", url, str(path), how],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if ended.returncode == 0:
            return deaths, ended.stdout
        assert ended.returncode == 9, ended.stderr
    pytest.fail(f"it died {MOST_PROCESSES} times")


# --- turns ---


async def test_N3_turn_that_ends_its_process_is_found_and_its_execution_blocked(lasting_url: str, tmp_path: Path) -> None:
    path = tmp_path / "notes"

    deaths, _ = await asyncio.to_thread(run_until_it_lives, lasting_url, path, "turn")

    assert deaths <= 6, "one by which it becomes suspect, then five that are counted"
    assert path.read_text(encoding="utf-8").count("deadly turn") == deaths
    async with Engine(lasting_url, workflows=process_killers.WORKFLOWS, activities=process_killers.ACTIVITIES) as engine:
        info = await engine.query_status("doomed")
        assert info.status is Status.BLOCKED, "the same code is not tried again"
        assert info.last_error is not None
        assert "to take its turn, but 5 times in a row the process that tried ended." in str(info.last_error)
        assert await engine.dead_letters() == []
        assert (await engine.store.count()).inbox == 1, "what it was to take stays in its inbox"
        assert [await engine.handle(f"w{number}").result() for number in range(3)] == [
            [f"w{number}-1", f"w{number}-2"] for number in range(3)
        ]
        assert await engine.store.check() == []


async def test_N3_call_whose_turn_ends_each_process_that_it_is_repeated_in_is_found(
    lasting_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "notes"

    deaths, _ = await asyncio.to_thread(run_until_it_lives, lasting_url, path, "call")

    assert deaths <= 7, "on PostgreSQL one that leaves no trace; one by which it becomes suspect, then five that are counted"
    async with Engine(lasting_url, workflows=process_killers.WORKFLOWS, activities=process_killers.ACTIVITIES) as engine:
        info = await engine.query_status("doomed")
        assert info.status is Status.BLOCKED
        assert "to take its turn, but 5 times in a row the process that tried ended." in str(info.last_error)
        assert (await engine.store.count()).inbox == 1, "the call that was accepted when it was blocked waits there"


@pytest.mark.parametrize(
    ("length", "waits_for"),
    [(1, "timer"), (300, "timer"), (1, "activity")],
    ids=["under the lock", "ahead of its turn", "for a take-over"],
)
async def test_N3_replay_that_ends_its_process_is_found_and_its_execution_blocked(
    lasting_url: str, tmp_path: Path, length: int, waits_for: str
) -> None:
    path = tmp_path / "notes"
    workflows, activities = process_killers.WORKFLOWS, process_killers.ACTIVITIES
    # Time stands still here, so that the timer is due for the next process and not for this one.
    options: dict[str, Any] = {"start": LONG_AGO, "auto_advance": False, "patience": 0.0, "shutdown_grace": 0.05}
    async with TestEngine(lasting_url, workflows=workflows, activities=activities, **options) as engine:
        await engine.start(process_killers.dies_by_replay, str(path), length, waits_for, workflow_id="doomed")

    deaths, _ = await asyncio.to_thread(run_until_it_lives, lasting_url, path, "replay")

    assert 0 < deaths <= 7
    async with Engine(lasting_url, workflows=workflows, activities=activities) as auditor:
        info = await auditor.query_status("doomed")
        assert info.status is Status.BLOCKED
        assert info.last_error is not None
        assert "to take its turn, but 5 times in a row the process that tried ended." in str(info.last_error)
        assert [len(await auditor.handle(f"w{number}").result()) for number in range(3)] == [2, 2, 2], "others go on"
        assert await auditor.store.check() == []


# --- activities ---


async def test_N3_activity_that_ends_its_process_fails_after_some_tries(lasting_url: str, tmp_path: Path) -> None:
    path = tmp_path / "notes"

    deaths, said = await asyncio.to_thread(run_until_it_lives, lasting_url, path, "activity")

    assert deaths == 5
    assert said.startswith("ProcessLost: ")
    assert "Expected activity 'deadly' to end, but 5 times in a row the process that ran it ended first." in said
    notes = Counter(path.read_text(encoding="utf-8").splitlines())
    assert sum(count for note, count in notes.items() if note.startswith("deadly")) == 5
    async with Engine(lasting_url, workflows=process_killers.WORKFLOWS, activities=process_killers.ACTIVITIES) as engine:
        assert [await engine.handle(f"w{number}").result() for number in range(3)] == [
            [f"w{number}-1", f"w{number}-2"] for number in range(3)
        ]
        assert await engine.store.check() == []


async def lose(engine: TestEngine, door: Door) -> None:
    """Let the process end without a goodbye, and the next one begin what was lost."""
    before = len(door.came)
    await engine.restart()
    await eventually(lambda: len(door.came) > before)
    await engine.settle()


async def test_activities_that_were_lost_twice_run_one_at_a_time_and_others_beside_them(open_engine: OpenEngine) -> None:
    door, beside = Door(), Door()

    @activity(name="suspect", retry=Retry(max_attempts=1))
    async def suspect(name: str) -> str:
        await door.wait(name)
        return name

    @activity(name="other", retry=Retry(max_attempts=1))
    async def other() -> None:
        await beside.wait()

    @workflow
    async def three(ctx: Context) -> list[str]:
        return list(await asyncio.gather(*(ctx.run(suspect, name) for name in "abc")))

    @workflow
    async def one(ctx: Context) -> None:
        await ctx.run(other)

    engine = await open_engine(three, one, suspect, other)
    await engine.start(three, workflow_id="t")
    await eventually(lambda: door.inside == 3)
    for _ in range(2):
        await lose(engine, door)

    assert door.inside == 1, "lost twice: one at a time"
    await engine.start(one)
    await eventually(lambda: beside.inside == 1)
    assert door.inside == 1
    row = await hooks.find_row(engine, "t")
    begun = [attempt.begun for attempt in from_row(row).details.attempts.values()]
    assert sorted(begun) == [False, False, True], "it is noted which has begun"
    assert {attempt.lost for attempt in from_row(row).details.attempts.values()} == {2}

    beside.open()
    await eventually(lambda: beside.left)
    await lose(engine, door)
    attempts = from_row(await hooks.find_row(engine, "t")).details.attempts
    assert sorted(attempt.lost for attempt in attempts.values()) == [2, 2, 3], "only that one is to blame"
    door.open()
    assert await engine.handle("t").result() == ["a", "b", "c"]


async def test_attempt_that_raises_or_times_out_has_not_ended_its_process(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(retry=Retry(max_attempts=2, initial=60))
    async def fails_late() -> str:
        await door.wait()
        if activity_info().attempt < 4:
            raise ValueError("only that")
        return "done"

    @workflow
    async def tries(ctx: Context) -> str:
        return await ctx.run(fails_late)

    engine = await open_engine(tries, fails_late)
    await engine.start(tries, workflow_id="t")
    await eventually(lambda: door.inside)
    for _ in range(2):
        await lose(engine, door)
    row = await hooks.find_row(engine, "t")
    assert from_row(row).attempt_of(1).lost == 2
    door.open()
    await eventually(lambda: door.left)
    await engine.settle()

    row = await hooks.find_row(engine, "t")
    assert from_row(row).attempt_of(1).lost == 0
    await engine.clock.advance(60)
    assert await engine.handle("t").result() == "done"


async def test_A5_activity_that_is_handed_back_in_good_order_is_never_to_blame(url: str) -> None:
    door = Door()

    @activity(name="slow", retry=Retry(max_attempts=1))
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def waits(ctx: Context) -> str:
        return await ctx.run(slow)

    store: Any = url
    for number in range(8):
        engine = Engine(store, workflows=[waits], activities=[slow], shutdown_grace=0.01)
        store = engine.store if url == "memory://" else url
        await engine.open()
        await engine.start(waits, workflow_id="w")
        await eventually(partial(has_come, door, number + 1))
        await engine.shutdown()
    door.open()
    async with Engine(store, workflows=[waits], activities=[slow]) as engine:
        assert await engine.handle("w").result() == "done"


async def test_N3_limit_of_losses_can_be_set_and_says_so(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(name="slow", retry=Retry(max_attempts=1))
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def waits(ctx: Context) -> str:
        try:
            return await ctx.run(slow)
        except ActivityFailed as error:
            return error.type

    engine = await open_engine(waits, slow, max_lost=1)
    await engine.start(waits, workflow_id="w")
    await eventually(lambda: door.inside)
    await engine.restart()

    assert await engine.handle("w").result() == "ProcessLost"


def has_come(door: Door, count: int) -> bool:
    return len(door.came) == count


async def stands_at(cluster: Cluster, *, lost: int, begun: bool) -> bool:
    attempt = from_row(await cluster.find_row("w")).attempt_of(1)
    return (attempt.lost, attempt.begun) == (lost, begun)


async def test_N3_suspect_that_was_taken_as_an_offer_is_noted_before_it_begins(cluster: Cluster) -> None:
    door = Door()

    @activity(name="slow", retry=Retry(max_attempts=1))
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def waits(ctx: Context) -> Any:
        return await ctx.run("slow")

    await cluster.open("one", waits, **MORTAL)
    handle = await cluster.engines["one"].start(waits, workflow_id="w")
    for number in range(3):
        await cluster.open(f"taker-{number}", slow, **MORTAL)
        await eventually(partial(has_come, door, number + 1))
        await eventually(partial(stands_at, cluster, lost=number, begun=number == 2))
        if number < 2:
            await cluster.kill(f"taker-{number}")
    door.open()
    assert await handle.result() == "done"
