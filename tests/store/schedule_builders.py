"""Schedules for tests of stores."""

from __future__ import annotations

from typing import Any

from holdfast.core import codec, payloads
from holdfast.core.envelopes import Start
from holdfast.core.schedules import ScheduleDetails
from holdfast.core.times.specs import Cron
from holdfast.errors import Conflict
from holdfast.store.contract import Store
from holdfast.store.rows import InboxRow
from holdfast.store.schedules import ScheduleChange, ScheduleRow
from tests.store.builders import ORG

DETAILS = codec.encode(
    ScheduleDetails(
        uid="u",
        spec=Cron(text="@daily"),
        start=Start(execution_id="", workflow_id="{schedule}-{time}", workflow="w", input=payloads.encode(1, "the input")),
        armed_at=1,
        next_at=10,
    )
)


def make_schedule(schedule_id: str, *, org: str = ORG, due: int | None = 10, version: int = 1, **fields: Any) -> ScheduleRow:
    values: dict[str, Any] = {
        "owner": "",
        "state": "active",
        "is_waiting": False,
        "route": "q\tw",
        "details": DETAILS,
    } | fields
    return ScheduleRow(org, schedule_id, due=due, version=version, created_at=1, updated_at=version, **values)


async def put_schedule(store: Store, row: ScheduleRow, *starts: InboxRow) -> int:
    expected = row.version - 1 or None
    try:
        return await store.change_schedule(ScheduleChange(row.org, row.schedule_id, expected, row, starts))
    except Conflict:
        return 0
