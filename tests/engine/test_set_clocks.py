"""T6: engines whose clock is set, forward or back, or goes on while the machine sleeps, in real time on every store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast import Context, Engine, Retry, activity, activity_info, workflow
from holdfast.core.instants import SECOND
from holdfast.engine import clock as clock_module
from holdfast.engine.clock import Clock, StoreClock, SystemClock
from holdfast.errors import ActivityTimedOut
from holdfast.store.contract import Store
from holdfast.store.memory.store import MemoryStore
from holdfast.store.postgres.store import PostgresStore
from tests.eventually import eventually

HOUR = 3600 * SECOND


class WallClock:
    """A clock that people set: that of the machine, or that of the server which nodes share."""

    def __init__(self) -> None:
        self.ahead = 0

    def now(self) -> int:
        return time.time_ns() // 1000 + self.ahead


class MachineClock(SystemClock):
    def __init__(self, wall: WallClock) -> None:
        self._wall = wall

    def now(self) -> int:
        return self._wall.now()


@workflow
async def nap(ctx: Context, seconds: float) -> float:
    before = ctx.now()
    await ctx.sleep(seconds)
    return (ctx.now() - before).total_seconds()


@workflow
async def sleeper(ctx: Context) -> list[float]:
    """Sleeps as often as it is told to, each time for as long as it is told to."""
    lengths: list[float] = []
    while seconds := await ctx.wait_for_signal("sleep", float):
        before = ctx.now()
        await ctx.sleep(seconds)
        lengths.append((ctx.now() - before).total_seconds())
    return lengths


@activity(retry=Retry(max_attempts=3, initial=0.2, jitter=0.0))
async def flaky() -> int:
    if activity_info().attempt < 3:
        raise ValueError("not yet")
    return activity_info().attempt


@activity(start_to_close=0.2, retry=Retry(max_attempts=1))
async def hanging() -> None:
    await asyncio.sleep(60)


@workflow
async def working(ctx: Context) -> str:
    await ctx.wait_for_signal("go")
    attempts = await ctx.run(flaky)
    try:
        await ctx.run(hanging)
    except ActivityTimedOut:
        return f"timed out after {attempts} attempts"
    return "not at all"


@pytest.fixture
def wall() -> WallClock:
    return WallClock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def engine(
    request: pytest.FixtureRequest, tmp_path: Path, wall: WallClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    """An engine that looks at its clock ten times a second, instead of every ten seconds."""
    monkeypatch.setattr(clock_module, "RECHECK", SECOND // 10)
    store: Store | str = f"sqlite:///{tmp_path}/app.db"
    clock: Clock = MachineClock(wall)
    if request.param == "memory":
        store = MemoryStore()
    elif request.param == "postgres":
        store, clock = PostgresStore.from_url(request.getfixturevalue("postgres_url"), clock=wall.now), StoreClock()
    engine = Engine(store, workflows=[nap, sleeper, working], activities=[flaky, hanging], clock=clock, heartbeat=0.1)
    async with engine:
        yield engine


@asynccontextmanager
async def soon() -> AsyncIterator[None]:
    """Within the time of a test, which is much less than the clock is set by."""
    async with asyncio.timeout(60):
        yield


async def follow(engine: Engine, wall: WallClock, ahead: int) -> None:
    """Set the clock, and wait until the engine knows."""
    wall.ahead = ahead
    await eventually(lambda: abs(engine.clock.now() - wall.now()) < HOUR // 2)


async def test_T6_timer_armed_before_the_clock_was_set_back_and_corrected_fires(engine: Engine, wall: WallClock) -> None:
    handle = await engine.start(nap, 0.3)
    await follow(engine, wall, -HOUR)
    await asyncio.sleep(0.5)  # the loop's own timer has rung meanwhile
    assert (await handle.status()).closed_at is None
    await follow(engine, wall, 0)
    late = await engine.start(nap, 0.1)

    async with soon():
        assert await late.result() >= 0.1
        assert await handle.result() >= 0.3


async def test_T6_timer_armed_before_the_clock_was_set_forward_fires(engine: Engine, wall: WallClock) -> None:
    handle = await engine.start(nap, 3600.0)
    await follow(engine, wall, HOUR)

    async with soon():
        assert await handle.result() >= 3600


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
async def test_T6_timer_armed_after_the_clock_was_set_fires(engine: Engine, wall: WallClock, ahead: int) -> None:
    handle = await engine.start(sleeper, workflow_id="sleeper")
    for now in (ahead, 0, ahead):
        await follow(engine, wall, now)
        await handle.signal("sleep", 0.1)
        fresh = await engine.start(nap, 0.1)
        async with soon():
            assert await fresh.result() >= 0.1
            await eventually(lambda: has_slept(engine))
    await handle.signal("sleep", 0.0)

    async with soon():
        assert min(await handle.result()) >= 0.1, "nor does the time of the execution stand still"
    times = [one.at for one in (await engine.history("sleeper")).events]
    assert times == sorted(times)


async def has_slept(engine: Engine) -> bool:
    """Whether the sleeper waits for a signal, and none is left."""
    info = await engine.handle("sleeper").status()
    return info.waiting_for is not None and "sleep" in info.waiting_for


async def test_T6_retries_and_timeouts_pass_after_the_clock_was_set_back(engine: Engine, wall: WallClock) -> None:
    handle = await engine.start(working)
    await follow(engine, wall, -HOUR)
    await handle.signal("go")

    async with soon():
        assert await handle.result() == "timed out after 3 attempts"


async def test_T6_what_closes_after_the_clock_was_set_back_is_kept_no_longer(
    tmp_path: Path, wall: WallClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_module, "RECHECK", SECOND // 10)
    url = f"sqlite:///{tmp_path}/app.db"
    async with Engine(url, workflows=[nap], clock=MachineClock(wall), retention=0.5) as engine:
        await (await engine.start(nap, 0.0, workflow_id="before")).result()
        wall.ahead = -HOUR
        await (await engine.start(nap, 0.0, workflow_id="after")).result()

        async def is_only_the_first_kept() -> bool:
            return [found.workflow_id for found in await engine.list()] == ["before"]

        await eventually(is_only_the_first_kept)
