"""What callers may say about schedules at the worst: refused with the reason, and nothing stored."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from holdfast import Calendar, Context, EncodedPayload, workflow
from holdfast.core.ids import LONGEST_ID
from holdfast.engine.encoded_store import find_bare_store
from holdfast.errors import InvalidRequest, InvalidSchedule
from holdfast.store.schedules import ScheduleChange
from holdfast.testing import TestEngine
from tests.engine.conftest import OpenEngine

START = datetime(2030, 3, 29, 12, tzinfo=UTC)
BEGINNINGS = (
    datetime.min.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
)
TIME = "2030-03-29T12:00:00.000000Z"


@workflow
async def note(ctx: Context, text: str = "") -> str:
    return text


@pytest.mark.parametrize(
    ("spec", "zone"),
    [
        ("0 6 * * *", "America/New_York"),
        ("0 6 * * *", "Asia/Tokyo"),
        (Calendar(times=["09:00"]), "America/New_York"),
        ("R/1970-01-01T00:00:00Z/P1D", "Asia/Tokyo"),
    ],
)
async def test_T5_a_backfill_begins_in_years_that_count(spec: Any, zone: str) -> None:
    async with TestEngine(workflows=[note], start=START, auto_advance=False) as engine:
        await engine.create_schedule("s", spec, note, time_zone=zone)

        for first in BEGINNINGS:
            with pytest.raises(InvalidRequest, match=r"since 1970|years 1 to 9999"):
                await engine.backfill_schedule("s", first, START)

        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        assert await engine.backfill_schedule("s", epoch, epoch + timedelta(days=2)) in (2, 3)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        (datetime.max.replace(tzinfo=UTC), {}),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))), {}),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), {}),
        (datetime(1969, 12, 31, tzinfo=UTC), {}),
        (datetime(2271, 1, 1, tzinfo=UTC), {}),
        ("@daily", {"notes": "\ud800"}),
        ("@daily", {"workflow_id": "{time}" * 12}),
        ("@daily", {"workflow_id": "{schedule}{schedule}{time}" + 100 * "x"}),
    ],
)
async def test_a_schedule_that_cannot_be_kept_is_refused(
    open_engine: OpenEngine, spec: Any, options: dict[str, Any]
) -> None:
    engine = await open_engine(note, start=START)

    with pytest.raises(InvalidRequest, match="Expected"):
        await engine.create_schedule("s" + "{time}" * 3, spec, note, **options)

    assert await engine.schedules() == []


async def test_I1_workflow_ids_of_a_schedule_are_as_long_as_ids_may_be(open_engine: OpenEngine) -> None:
    engine = await open_engine(note, start=START)
    ending = len("-backfill-1000000000")
    template = "{time}{time}{schedule}"
    schedule_id = "{time}" + "x" * (LONGEST_ID - 3 * len(TIME) - ending)

    await engine.create_schedule(schedule_id, "@hourly", note, workflow_id=template)
    await engine.clock.advance(seconds=0.000001)
    run = await engine.run_schedule(schedule_id)
    with pytest.raises(InvalidSchedule, match=f"may have {LONGEST_ID + 1}"):
        await engine.create_schedule(schedule_id + "x", "@hourly", note, workflow_id=template)

    assert len(run.workflow_id) == LONGEST_ID - ending + len("-manual")
    assert await engine.handle(run.workflow_id).result() == ""


# --- codecs ---


class KeyedCodec:
    """Writes with a key, and reads only what was written with the same."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> list[EncodedPayload]:
        return [EncodedPayload(self._key + b64encode(one.data), "keyed") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> list[EncodedPayload]:
        if not all(one.data.startswith(self._key) for one in payloads):
            raise ValueError("wrong key")
        return [EncodedPayload(b64decode(one.data.removeprefix(self._key))) for one in payloads]


@pytest.mark.parametrize("codec", [None, KeyedCodec(b"other")])
async def test_schedules_are_listed_and_changed_without_the_codec_of_their_arguments(
    open_engine: OpenEngine, codec: KeyedCodec | None
) -> None:
    async with TestEngine(workflows=[note], start=START, codec=KeyedCodec(b"mine"), auto_advance=False) as owner:
        await owner.create_schedule("s", "@hourly", note, "secret")
        stored = await find_bare_store(owner.store).find_schedule("default", "s")
    engine = await open_engine(note, start=START, codec=codec)
    await find_bare_store(engine.store).change_schedule(ScheduleChange("default", "s", None, stored))

    assert [one.input for one in await engine.schedules()] == ["<encoded as 'keyed'>"]
    assert await engine.pause_schedule("s")
    assert await engine.resume_schedule("s")
    info = await engine.update_schedule("s", "@daily", notes="later", metadata={"a": "b"})

    assert (info.spec, info.notes, info.metadata, info.input) == ("@daily", "later", {"a": "b"}, "<encoded as 'keyed'>")
    assert info == await engine.describe_schedule("s")
    changed = await engine.update_schedule("s", args=["open"])
    assert changed.input == ["open"]
