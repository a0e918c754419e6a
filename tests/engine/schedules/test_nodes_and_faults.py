"""Schedules under what goes wrong: several nodes, crashes between any two writes, outages, and clocks that are set."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast import Context, Engine, workflow
from holdfast.core.instants import SECOND
from holdfast.engine import clock as clock_module
from holdfast.engine.clock import Clock, StoreClock
from holdfast.store.contract import Store
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import MAY_HAPPEN, FaultAction, Faults, Point
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.transaction import MemoryTransaction
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import ExecutionRow
from holdfast.testing import TestEngine
from holdfast.testing.clock import VirtualClock
from tests.engine.support.cluster import Cluster
from tests.engine.test_set_clocks import HOUR, MachineClock, WallClock
from tests.eventually import eventually

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@workflow
async def note(ctx: Context) -> None:
    return


@workflow
async def wait(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


async def test_T4_three_nodes_in_real_time_start_one_execution_per_fire(cluster: Cluster) -> None:
    engines = [await cluster.open(name, note) for name in ("a", "b", "c")]
    for number in range(20):
        await engines[number % 3].create_schedule(f"s{number:02}", "R4/PT0.2S", note, overlap="allow")

    async def have_ended() -> bool:
        return all(info.state == "ended" for info in await engines[0].schedules())

    await eventually(have_ended)
    await eventually(lambda: count_closed(engines[1], 80))
    infos = await engines[2].schedules()
    assert [(info.fired, info.remaining, info.missed, info.refused) for info in infos] == [(4, 0, 0, 0)] * 20
    found = Counter(one.workflow_id for one in await engines[0].list(limit=200))
    assert (len(found), set(found.values())) == (80, {1})
    assert await engines[0].dead_letters() == []


async def count_closed(engine: Engine, expected: int) -> bool:
    return (await engine.count(status="completed")).total == expected


async def test_T4_another_node_goes_on_when_the_one_that_fires_dies(cluster: Cluster) -> None:
    first, second = await cluster.open("a", note), await cluster.open("b", note)
    await first.create_schedule("s", "R6/PT0.3S", note, overlap="allow")
    await eventually(lambda: has_fired(second, "s", 1))

    await cluster.kill("a")

    await eventually(lambda: count_closed(second, 6))
    info = await second.describe_schedule("s")
    assert (info.state, info.fired) == ("ended", 6)


async def has_fired(engine: Engine, schedule_id: str, times: int) -> bool:
    return (await engine.describe_schedule(schedule_id)).fired >= times


async def test_T5_a_fire_waits_for_an_execution_that_ends_on_another_node(cluster: Cluster) -> None:
    first = await cluster.open("a", wait)
    await first.create_schedule("w", "R2/PT0.2S", wait, overlap="queue")

    async def waits() -> bool:
        return (await first.describe_schedule("w")).waiting == 1

    await eventually(waits)
    run = (await first.describe_schedule("w")).recent_runs[0]
    second = await cluster.open("b", wait)
    await second.signal_workflow(run.workflow_id, "go")

    async def both_started() -> bool:
        return len(await second.list()) == 2

    await eventually(both_started)


class OneFault:
    """Lets a node fail once, when it comes to a point for the so-many-th time. If it crashes, it stays away."""

    def __init__(self, point: Point, action: FaultAction, skipped: int) -> None:
        self._point, self._action, self._left = point, action, skipped
        self.is_armed = False
        self.has_happened = False

    @property
    def has_crashed(self) -> bool:
        return self.has_happened and self._action is FaultAction.CRASH

    def decide(self, point: str, _node: str) -> FaultAction:
        if self.has_crashed:
            return FaultAction.CRASH if FaultAction.CRASH in MAY_HAPPEN[Point(point)] else FaultAction.NONE
        if not self.is_armed or self.has_happened or point != self._point:
            return FaultAction.NONE
        self._left -= 1
        self.has_happened = self._left < 0
        return self._action if self.has_happened else FaultAction.NONE


async def advance_until(clock: VirtualClock, fault: OneFault) -> None:
    """Let three seconds pass, unless the node crashes before."""
    advancing = asyncio.ensure_future(clock.advance(seconds=3))
    await eventually(lambda: advancing.done() or fault.has_crashed)
    advancing.cancel()
    await asyncio.gather(advancing, return_exceptions=True)


async def fire_with(fault: OneFault) -> tuple[list[str], int]:
    """What was started by a schedule of three fires, and how many there were, on a node that fails once."""
    database, clock = MemoryDatabase(), VirtualClock(START)

    def make_engine(node: str, faults: Faults | None = None) -> TestEngine:
        store = MemoryStore(database, node=node, faults=faults)
        return TestEngine(store=store, workflows=[note], clock=clock, auto_advance=False, patience=0.0)

    faulty = make_engine("faulty", Faults(fault.decide))
    await faulty.open()
    await faulty.create_schedule("s", "R3/PT10S", note, overlap="allow")
    fault.is_armed = True
    for _ in range(12):
        if fault.has_crashed:
            break
        await advance_until(clock, fault)
    await faulty.crash()
    async with make_engine("healthy") as healthy:
        await clock.advance(seconds=40)
        info = await healthy.describe_schedule("s")
        assert await healthy.store.check() == []
        return sorted(one.workflow_id for one in await healthy.list()), info.fired


FIRES = [f"s-2026-03-01T12:00:{second}Z" for second in (10, 20, 30)]
POINTS = (Point.BEGIN, Point.READ, Point.CLAIM_LOCK, Point.WRITE_INSERTS, Point.WRITE_ROWS, Point.COMMIT, Point.COMMITTED)


@pytest.mark.parametrize("point", POINTS)
async def test_T4_a_fault_between_any_two_steps_neither_loses_nor_repeats_a_fire(point: Point) -> None:
    happened = 0
    for action in sorted(MAY_HAPPEN[point] - {FaultAction.NONE, FaultAction.LATE_UNKNOWN}):
        for skipped in range(4):
            fault = OneFault(point, action, skipped)
            assert await fire_with(fault) == (FIRES, 3), (point, action, skipped)
            happened += fault.has_happened
    assert happened


async def test_T5_a_fire_waits_for_an_end_also_if_the_node_is_not_told_that_this_was_stored() -> None:
    fault = OneFault(Point.COMMIT, FaultAction.APPLIED_UNKNOWN, 0)
    store = MemoryStore(MemoryDatabase(), node="a", faults=Faults(fault.decide))
    engine = TestEngine(store=store, workflows=[wait], start=START, auto_advance=False, patience=0.0)
    async with engine:
        await engine.create_schedule("w", "R2/PT10S", wait, overlap="queue")
        await engine.clock.advance(seconds=10)
        fault.is_armed = True
        await engine.clock.advance(seconds=10)
        info = await engine.describe_schedule("w")
        assert (fault.has_happened, info.waiting) == (True, 1)

        await engine.signal_workflow(info.recent_runs[0].workflow_id, "go")

        await engine.clock.advance(seconds=60)
        assert len(await engine.list()) == 2


async def test_T5_an_end_is_noticed_also_while_what_waits_for_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(MemoryDatabase(), node="a")
    async with TestEngine(store=store, workflows=[wait], start=START, auto_advance=False) as engine:
        await engine.create_schedule("w", "R2/PT10S", wait, overlap="queue")
        await engine.clock.advance(seconds=10)
        (first,) = await engine.list()
        looks: list[Collection[str]] = []
        read_rows = MemoryTransaction.read_rows

        async def end_after_reading(
            transaction: MemoryTransaction, execution_ids: Collection[str]
        ) -> dict[str, ExecutionRow]:
            found = await read_rows(transaction, execution_ids)
            if set(execution_ids) == {first.execution_id}:
                looks.append([row.status for row in found.values()])
                if len(looks) == 2:  # the first one fires, and the second looks at the fire that waits
                    await engine.signal_workflow(first.workflow_id, "go")
                    await engine.handle(first.workflow_id).result()
            return found

        monkeypatch.setattr(MemoryTransaction, "read_rows", end_after_reading)
        await engine.clock.advance(seconds=10)

        assert looks[:2] == [["suspended"]] * 2
        assert [one.status for one in await engine.list()] == ["suspended", "completed"]


async def test_T4_a_fire_is_made_up_for_after_an_outage_of_the_database() -> None:
    is_out = False
    database, clock = MemoryDatabase(), VirtualClock(START)

    def decide(point: str, _node: str) -> FaultAction:
        may_fail = FaultAction.FAIL in MAY_HAPPEN[Point(point)]
        return FaultAction.FAIL if is_out and may_fail else FaultAction.NONE

    store = MemoryStore(database, node="a", faults=Faults(decide))
    async with TestEngine(store=store, workflows=[note], clock=clock, auto_advance=False, lease=3600.0) as engine:
        await engine.create_schedule("s", "R3/PT10S", note, overlap="allow")
        is_out = True
        await clock.advance(seconds=15)
        is_out = False
        await clock.advance(seconds=20)

        assert sorted(one.workflow_id for one in await engine.list()) == FIRES
        assert (await engine.describe_schedule("s")).missed == 0


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
    async with Engine(store, workflows=[note], clock=clock, heartbeat=0.1) as engine:
        yield engine


async def test_T6_a_clock_that_is_set_forward_makes_fires_due_and_one_set_back_repeats_none(
    engine: Engine, wall: WallClock
) -> None:
    info = await engine.create_schedule("s", "R/PT30M", note, overlap="allow")
    due = info.next_fires

    wall.ahead = HOUR + HOUR // 4
    await eventually(lambda: has_fired(engine, "s", 2))
    wall.ahead = 0
    await eventually(lambda: abs(engine.clock.now() - wall.now()) < HOUR // 4)
    await engine.update_schedule("s", notes="it looks again")
    wall.ahead = HOUR + HOUR // 2 + HOUR // 4
    await eventually(lambda: has_fired(engine, "s", 3))

    after = await engine.describe_schedule("s")
    assert [run.at for run in reversed(after.recent_runs)] == due[:3]
    assert (after.fired, after.next_fires[0]) == (3, due[3])


async def test_T5_after_a_downtime_fires_are_caught_up_in_the_window_and_counted_beyond(url: str) -> None:
    clock = VirtualClock(START)
    engine = TestEngine(store=url, workflows=[note], clock=clock, auto_advance=False, patience=0.0)
    await engine.open()
    try:
        await engine.create_schedule("s", "*/10 * * * *", note, overlap="allow", catch_up=timedelta(minutes=25))
        await engine.create_schedule("one", "*/10 * * * *", note)
        await engine.crash()
        await clock.advance(hours=3, minutes=5)
        await engine.restart()
        await engine.settle()

        many, one = await engine.describe_schedule("s"), await engine.describe_schedule("one")
        assert [run.at for run in reversed(many.recent_runs)] == [
            START + timedelta(hours=2, minutes=40),
            START + timedelta(hours=2, minutes=50),
            START + timedelta(hours=3),
        ]
        assert (many.fired, many.missed) == (3, 15)
        assert (one.fired, one.skipped + len(one.recent_runs)) == (18, 18)
    finally:
        await engine.shutdown()
