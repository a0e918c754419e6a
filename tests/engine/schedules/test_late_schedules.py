"""After a downtime: what is late is gone through in small transactions, and does not hold up what is due now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast import Calendar, Context, workflow
from holdfast.core import codec
from holdfast.core.schedules import MOST_TIMES
from holdfast.engine.schedules.decisions import MOST_TIMES_TOGETHER
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.transaction import MemoryTransaction
from holdfast.store.schedules import ScheduleRow
from holdfast.store.sqlite.transaction import SqliteTransaction
from holdfast.store.sqlite.writer import Writer
from holdfast.testing import TestEngine
from holdfast.testing.clock import VirtualClock

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATE = 8


@workflow
async def note(ctx: Context) -> None:
    return


async def test_D2_schedules_that_are_days_late_take_turns_and_let_others_between(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[dict[str, int]] = []  # of each transaction: how many times each of its schedules has gone through
    write_schedules = MemoryTransaction.write_schedules

    async def record(transaction: MemoryTransaction, rows: Sequence[ScheduleRow]) -> None:
        details = {row.schedule_id: codec.decode_schedule(row.details) for row in rows}
        written.append({name: one.missed + one.fired for name, one in details.items()})
        await write_schedules(transaction, rows)

    clock = VirtualClock(START)
    store = MemoryStore(MemoryDatabase(), node="a")
    engine = TestEngine(store=store, workflows=[note], clock=clock, auto_advance=False, patience=0.0)
    await engine.open()
    try:
        for number in range(LATE):
            await engine.create_schedule(f"late-{number}", "* * * * *", note, catch_up=timedelta(hours=1))
        await engine.create_schedule("once", START + timedelta(days=4), note)
        await engine.crash()
        await clock.advance(days=4)
        monkeypatch.setattr(MemoryTransaction, "write_schedules", record)
        await engine.restart()
        await engine.settle()

        infos = await engine.schedules()
    finally:
        await engine.shutdown()

    minutes = 4 * 24 * 60
    assert [info.fired + info.missed for info in infos] == [minutes] * LATE + [1]
    assert [info.fired for info in infos] == [61] * LATE + [1]
    reached = dict[str, int]()
    for one in written:
        assert sum(times - reached.get(name, 0) for name, times in one.items()) < MOST_TIMES_TOGETHER + MOST_TIMES
        reached |= one
    first = next(place for place, one in enumerate(written) if "once" in one)
    assert first <= LATE
    assert max(times for one in written[: first + 1] for times in one.values()) <= MOST_TIMES


async def test_D2_others_of_the_loop_come_between_two_transactions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ticks, seen = 0, list[int]()
    write_schedules = SqliteTransaction.write_schedules

    async def record(transaction: SqliteTransaction, rows: Sequence[ScheduleRow]) -> None:
        seen.append(ticks)
        await write_schedules(transaction, rows)

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    clock = VirtualClock(START)
    url = f"sqlite:///{tmp_path / 'late.db'}"
    engine = TestEngine(store=url, workflows=[note], clock=clock, auto_advance=False, patience=0.0)
    await engine.open()
    try:
        for number in range(LATE):
            await engine.create_schedule(f"late-{number}", "* * * * *", note, catch_up=timedelta(minutes=1))
        await engine.crash()
        await clock.advance(days=2)
        monkeypatch.setattr(SqliteTransaction, "write_schedules", record)
        monkeypatch.setattr(Writer, "is_quick", True)  # as on a quick disk: no commit waits for a thread
        ticking = asyncio.ensure_future(tick())
        await engine.restart()
        await engine.clock.advance(minutes=1)
        ticking.cancel()
    finally:
        await engine.shutdown()

    assert len(seen) > LATE
    assert len(set(seen)) == len(seen)


async def test_T5_calendars_are_caught_up_like_everything_else() -> None:
    clock = VirtualClock(START)
    engine = TestEngine(workflows=[note], clock=clock, auto_advance=False, patience=0.0)
    await engine.open()
    try:
        times = [f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(0, 60, 2)]
        await engine.create_schedule(
            "c", Calendar(times=times), note, catch_up=timedelta(hours=1), time_zone="Europe/Berlin"
        )
        await engine.crash()
        await clock.advance(days=30)
        await engine.restart()
        await engine.settle()

        info = await engine.describe_schedule("c")
    finally:
        await engine.shutdown()

    assert (info.fired, info.missed) == (31, 30 * len(times) - 31)  # clocks skip an hour, and so does the calendar
