"""What starts processes beside calls: messages and broadcast signals as start subscriptions, timers as schedules.

All of them belong to one version of a process, the newest that is not undeployed, and only while that is active. A schedule
of a timer counts from when it is made. It is a schedule like any other but for its owner, and goes with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from holdfast.core import payloads
from holdfast.core.envelopes import Start
from holdfast.core.ids import DEFAULT_QUEUE, derive_entropy, make_execution_id
from holdfast.core.options import OnOpen
from holdfast.core.routes import PROCESS_ROUTE_NAME, make_route
from holdfast.core.schedules import DEFAULT_CATCH_UP, Overlap, ScheduleDetails, arm
from holdfast.core.times.specs import AfterDuration, AtDate, make_spec
from holdfast.engine.processes.known_definitions import TimerMark, read_details
from holdfast.engine.schedules.rows import make_row
from holdfast.errors import InvalidSchedule
from holdfast.store.definitions import DefinitionState
from holdfast.store.publications import StartSubscriptionRow

if TYPE_CHECKING:
    from holdfast.core.instants import Instant
    from holdfast.core.times.specs import AnySpec
    from holdfast.store.definitions import DefinitionRow
    from holdfast.store.schedules import ScheduleRow

FOREVER: Final = 2**60
"""A catch-up window without end: what a timer with an end missed while no node was there, it makes good."""
LONGEST_NAME: Final = 180
"""How many bytes the id of a schedule may have, so that workflow ids with a time behind it are identifiers."""
TIMER_KINDS: Final = {"timeDate": "date", "timeDuration": "duration", "timeCycle": "cycle"}


def find_starter(rows: Iterable[DefinitionRow]) -> DefinitionRow | None:
    """Of the versions of a process, the one that messages, signals and timers start; None if there is none."""
    candidates = (row for row in rows if row.state != DefinitionState.UNDEPLOYED)
    newest = max(candidates, key=lambda row: row.version, default=None)
    return None if newest is None or newest.state != DefinitionState.ACTIVE else newest


def make_starts(row: DefinitionRow) -> list[StartSubscriptionRow]:
    """The start subscriptions of a version of a process."""
    route = make_route(DEFAULT_QUEUE, PROCESS_ROUTE_NAME)
    found = {
        (one.kind, one.name): StartSubscriptionRow(
            one.kind, one.name, row.definition_id, DEFAULT_QUEUE, route, str(row.version), org=row.org
        )
        for one in read_details(row).starts
    }
    return list(found.values())


def name_schedule(process: str, element: str) -> str:
    """The id of the schedule that a timer start event is."""
    name = f"bpmn:{process}:{element}"
    return name if len(name.encode()) <= LONGEST_NAME else f"bpmn:{hashlib.sha256(name.encode()).hexdigest()}"


def list_schedule_ids(rows: Iterable[DefinitionRow]) -> set[str]:
    """The ids of the schedules that the timers of these versions of a process are, or were."""
    return {name_schedule(row.definition_id, one.element) for row in rows for one in read_details(row).timers}


def make_schedules(row: DefinitionRow, now: Instant, *, is_deployed: bool) -> list[ScheduleRow]:
    """The schedules of the timers of a version of a process, which count from now on.

    `is_deployed`: whether it is deployed now. One that comes back, since another was undeployed or it was enabled, does not
    fire dates that have passed. Raises InvalidSchedule.
    """
    found: list[ScheduleRow] = []
    for one in read_details(row).timers:
        spec = make_timer_spec(one)
        if not is_deployed and isinstance(spec, AtDate) and spec.at <= now:
            continue
        details = arm(_make_details(row, one, spec, now), now)
        schedule_id = name_schedule(row.definition_id, one.element)
        found.append(make_row(row.org, schedule_id, details, now, owner=row.definition_id))
    return found


def make_timer_spec(timer: TimerMark) -> AnySpec:
    """When a timer start event is due. Raises InvalidSchedule."""
    spec = make_spec(timer.text)
    kind = "date" if isinstance(spec, AtDate) else "duration" if isinstance(spec, AfterDuration) else "cycle"
    wanted = TIMER_KINDS.get(timer.kind, kind)
    if kind != wanted:
        raise InvalidSchedule(f"Expected the {wanted} of a timer, but '{timer.text}' is a {kind}. Write it as what it is.")
    return spec


def _make_details(row: DefinitionRow, timer: TimerMark, spec: AnySpec, now: Instant) -> ScheduleDetails:
    has_end = spec.count_fires(now) is not None
    schedule_id = name_schedule(row.definition_id, timer.element)
    start = Start(
        execution_id="",
        workflow_id=f"{schedule_id}:{row.version}-{{time}}",
        workflow=row.definition_id,
        input=payloads.encode({}, f"the variables of process '{row.definition_id}'"),
        code_version=str(row.version),
        pinned=True,
        route_name=PROCESS_ROUTE_NAME,
        element=timer.element,
        on_open=OnOpen.FAIL,
    )
    return ScheduleDetails(
        uid=make_execution_id(now, derive_entropy(row.org, schedule_id, row.version, row.deployment) % 2**62),
        spec=spec,
        start=start,
        armed_at=now,
        overlap=Overlap.ALLOW,
        catch_up_us=FOREVER if has_end else DEFAULT_CATCH_UP,
    )


def find_taken_messages(starters: Mapping[str, DefinitionRow]) -> dict[str, list[str]]:
    """By message: the processes that it starts, where these are more than one."""
    found: dict[str, list[str]] = {}
    for process, row in sorted(starters.items()):
        for name in list_messages(row):
            found.setdefault(name, []).append(process)
    return {name: processes for name, processes in found.items() if len(processes) > 1}


def list_messages(row: DefinitionRow) -> Collection[str]:
    """The messages that start a version of a process."""
    return {one.name for one in read_details(row).starts if one.kind == "message"}
