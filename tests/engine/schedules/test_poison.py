"""One schedule that cannot be read, computed or committed never stops the others, of its org or of others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import Calendar, Context, EncodedPayload, workflow
from holdfast.core import codec
from holdfast.core.instants import SECOND
from holdfast.core.times.specs import Cron, OnCalendar
from holdfast.engine.encoded_store import find_bare_store
from holdfast.engine.schedules.firing import TIME_ASIDE
from holdfast.engine.schedules.rows import change_row
from holdfast.errors import InvalidSchedule, NewerFormat
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.store import MemoryStore
from holdfast.store.schedules import ScheduleChange, ScheduleOutlook
from holdfast.testing import TestEngine
from tests.engine.conftest import OpenEngine

START = datetime(2030, 3, 30, 20, tzinfo=UTC)
ASIDE = TIME_ASIDE / SECOND
UNKNOWN_ZONE = OnCalendar(zone="Nowhere/Atlantis", calendar=Calendar(times=["09:00"]))


@workflow
async def note(ctx: Context, text: str = "") -> None:
    return


@workflow
async def wait(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


async def rewrite(engine: TestEngine, schedule_id: str, org: str, **changes: object) -> None:
    """Store a schedule as another machine or version may have written it."""
    store = find_bare_store(engine.store)
    row = await engine.store.find_schedule(org, schedule_id)
    assert row is not None
    details = replace(codec.decode_schedule(row.details), **changes)
    new = change_row(row, details, row.updated_at)
    await store.change_schedule(ScheduleChange(org, schedule_id, row.version, new))


async def test_D2_a_schedule_whose_zone_a_node_does_not_know_stops_no_other(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("bad", "* * * * *", note, org="a")
    await engine.create_schedule("good", "* * * * *", note, org="a", overlap="allow")
    await engine.create_schedule("good", "* * * * *", note, org="b", overlap="allow")
    await rewrite(engine, "bad", "a", spec=Cron(text="* * * * *", zone="Nowhere/Atlantis"))

    with caplog.at_level(logging.WARNING, "holdfast.engine"):
        await engine.clock.advance(minutes=5)

    assert [(await engine.describe_schedule("good", org=org)).fired for org in ("a", "b")] == [5, 5]
    bad, good = await engine.schedules(org="a")
    assert (bad.schedule_id, bad.fired, bad.next_fires) == ("bad", 0, [])
    assert bad.problem.startswith("Expected to compute times in time zone 'Nowhere/Atlantis'")
    assert (good.schedule_id, good.problem) == ("good", "")
    found = [one for one in caplog.records if getattr(one, "event", None) == "schedules_failed"]
    assert found
    assert all("'bad' of org 'a' cannot be fired" in one.getMessage() for one in found)
    assert len(found) <= 5 * 60 / ASIDE

    assert await engine.pause_schedule("bad", org="a")
    mended = await engine.update_schedule("bad", time_zone="UTC", org="a")
    assert await engine.resume_schedule("bad", org="a")
    await engine.clock.advance(minutes=2)
    assert (mended.problem, (await engine.describe_schedule("bad", org="a")).fired > 0) == ("", True)


async def test_D2_a_schedule_that_is_mended_elsewhere_fires_again_by_itself(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("bad", "R/PT20S", note, overlap="allow")
    before = await engine.store.find_schedule("default", "bad")
    assert before is not None
    spec = codec.decode_schedule(before.details).spec
    await rewrite(engine, "bad", "default", spec=UNKNOWN_ZONE)
    await engine.clock.advance(seconds=25)
    assert (await engine.describe_schedule("bad")).fired == 0

    await rewrite(engine, "bad", "default", spec=spec)
    await engine.clock.advance(seconds=ASIDE + 20)

    info = await engine.describe_schedule("bad")
    assert (info.fired >= 3, info.missed) == (True, 0)


async def test_D2_a_fire_that_waits_begins_also_if_those_behind_it_cannot_be_computed(open_engine: OpenEngine) -> None:
    engine = await open_engine(wait, start=START)
    for name in ("bad", "good"):
        await engine.create_schedule(name, "R/PT20S", wait, overlap="queue")
    await engine.clock.advance(seconds=45)
    await rewrite(engine, "bad", "default", spec=UNKNOWN_ZONE)

    for info in await engine.list():
        await engine.signal_workflow(info.workflow_id, "go")
    await engine.clock.advance(seconds=20)

    bad, good = await engine.schedules()
    assert [(one.fired, len(one.recent_runs), one.waiting) for one in (bad, good)] == [(2, 2, 0), (3, 2, 1)]


async def test_D2_a_row_that_cannot_be_read_is_listed_with_the_reason(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("a", "* * * * *", note)
    await engine.create_schedule("b", "* * * * *", note)
    row = await engine.store.find_schedule("default", "a")
    assert row is not None
    newer = replace(row, details=row.details[:-1] + b',"from_later":1}', version=row.version + 1)
    await engine.store.change_schedule(ScheduleChange("default", "a", row.version, newer))
    await engine.clock.advance(minutes=1)

    unreadable, readable = await engine.schedules()

    assert (unreadable.schedule_id, unreadable.workflow, unreadable.version) == ("a", "", row.version + 1)
    assert "from_later" in unreadable.problem
    assert (readable.schedule_id, readable.fired) == ("b", 1)
    assert await engine.describe_schedule("a") == unreadable
    with pytest.raises(NewerFormat):
        await engine.pause_schedule("a")
    assert await engine.delete_schedule("a")


async def test_D2_a_state_that_only_a_newer_version_knows_stops_no_other(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("a", "* * * * *", note)
    await engine.create_schedule("b", "* * * * *", note)
    row = await engine.store.find_schedule("default", "a")
    assert row is not None
    newer = replace(row, state="draining", version=row.version + 1)
    await engine.store.change_schedule(ScheduleChange("default", "a", row.version, newer))
    await engine.clock.advance(minutes=2)

    unreadable, readable = await engine.schedules()

    assert "'draining': a newer Holdfast wrote it" in unreadable.problem
    assert (readable.schedule_id, readable.fired) == ("b", 2)
    with pytest.raises(NewerFormat):
        await engine.pause_schedule("a")


async def test_D2_a_row_that_says_another_due_time_than_its_details_is_put_right(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("s", "@hourly", note)
    row = await engine.store.find_schedule("default", "s")
    assert row is not None
    wrong = replace(row, due=row.created_at + SECOND, version=row.version + 1)
    await engine.store.change_schedule(ScheduleChange("default", "s", row.version, wrong))

    await engine.clock.advance(hours=1)

    assert (await engine.describe_schedule("s")).fired == 1


async def test_D2_a_paused_row_that_says_it_is_due_is_put_right(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    await engine.create_schedule("s", "@hourly", note)
    assert await engine.pause_schedule("s")
    row = await engine.store.find_schedule("default", "s")
    assert row is not None
    wrong = replace(row, due=row.created_at + SECOND, version=row.version + 1)
    await engine.store.change_schedule(ScheduleChange("default", "s", row.version, wrong))
    await engine.update_schedule("s", notes="look again")

    await engine.clock.advance(hours=2)

    mended = await engine.store.find_schedule("default", "s")
    assert mended is not None
    assert mended.due is None
    assert (await engine.describe_schedule("s")).fired == 0


class OneOrgCodec:
    """Cannot encode values of one org; its service refuses them."""

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        if org == "a":
            raise ConnectionError("no key for this org")
        return [EncodedPayload(one.data[::-1], "reversed") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        return [EncodedPayload(one.data[::-1]) for one in payloads]


async def test_D2_a_schedule_whose_start_cannot_be_committed_stops_no_other(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START, codec=OneOrgCodec())
    for name in ("x", "y", "z"):
        await engine.create_schedule(name, "R/PT20S", note, "text", org="b", overlap="allow")
    row: Any = await engine.store.find_schedule("b", "x")  # with plain values, as from a time without a codec
    plain = replace(row, org="a", schedule_id="bad", version=1)
    await find_bare_store(engine.store).change_schedule(ScheduleChange("a", "bad", None, plain))

    await engine.clock.advance(minutes=2)

    assert [info.fired for info in await engine.schedules(org="b")] == [6, 6, 6]
    assert (await engine.describe_schedule("bad", org="a")).fired == 0


async def test_D2_a_look_that_fails_for_an_unknown_reason_is_repeated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    look_at_schedules, left = MemoryStore.look_at_schedules, 3

    async def fail_first(store: MemoryStore, *arguments: Any) -> ScheduleOutlook:
        nonlocal left
        left -= 1
        if left >= 0:
            raise RuntimeError("nobody thought of this")
        return await look_at_schedules(store, *arguments)

    store = MemoryStore(MemoryDatabase(), node="a")
    async with TestEngine(store=store, workflows=[note], start=START, auto_advance=False, patience=0.0) as engine:
        await engine.create_schedule("s", "R3/PT20S", note, overlap="allow")
        monkeypatch.setattr(MemoryStore, "look_at_schedules", fail_first)
        with caplog.at_level(logging.WARNING, "holdfast.engine"):
            await engine.clock.advance(minutes=2)

        assert (await engine.describe_schedule("s")).fired == 3
    assert left < 0
    assert "could not fire schedules" in caplog.text


async def test_T4_a_schedule_whose_times_cannot_be_computed_is_not_stored(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    calendar = Calendar(times=["23:00"], dates=["2030-03-30", "9999-12-31"])

    with pytest.raises(InvalidSchedule, match="between 1970 and 2270"):
        await engine.create_schedule("bad", calendar, note, time_zone="America/New_York")
    await engine.create_schedule("good", "@daily", note)
    with pytest.raises(InvalidSchedule, match="between 1970 and 2270"):
        await engine.update_schedule("good", calendar, time_zone="America/New_York")

    assert [(info.schedule_id, info.spec) for info in await engine.schedules()] == [("good", "@daily")]
