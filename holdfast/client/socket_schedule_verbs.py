"""The verbs about schedules over a connection to the process that owns a database file; see `socket_verbs`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

import msgspec

from holdfast.client.encoded_starts import LARGEST, encode_start
from holdfast.client.socket_calls import SocketCalls
from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.core import payloads
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import from_datetime
from holdfast.core.times.calendars import Calendar
from holdfast.engine.use_cases.schedule_checks import SCHEDULE_OPTIONS, check_order, choose_args
from holdfast.engine.use_cases.schedule_views import ScheduleInfo, ScheduleOptions, ScheduleRun


class SocketScheduleVerbs(SocketCalls):
    """Takes calls about schedules to the owner of a database."""

    async def create_schedule(
        self,
        schedule_id: str,
        spec: str | datetime | Calendar,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str,
        *inputs: Any,
        args: Sequence[Any] | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleInfo:
        """Create a schedule that starts a workflow at the times that `spec` says, from now on.

        `spec` is a cron line, a cycle (`R3/PT10M`), a date, a duration or a `Calendar`. Arguments of the workflow follow it,
        as for `start`, or are the list `args`. Raises InvalidSchedule, ScheduleExists, or what a start with these arguments
        raises.
        """
        check_order(spec)
        given, keywords = choose_args(inputs, args), {**options, "org": org}
        name, _, encoded, named = encode_start(workflow, (*given,), keywords, SCHEDULE_OPTIONS)
        named["request_id"] = request_id
        positional = [schedule_id, to_plain_spec(spec), name]
        is_bound = isinstance(workflow, BoundWorkflow)
        return await self._call("create_schedule", ScheduleInfo, positional, named, encoded, is_bound=is_bound)

    async def update_schedule(
        self,
        schedule_id: str,
        spec: str | datetime | Calendar | None = None,
        *,
        workflow: Workflow[..., Any] | BoundWorkflow[Any] | str | None = None,
        args: Sequence[Any] | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleInfo:
        """Change what is given of a schedule. If when it fires changes, it counts from now on; else its count stays.

        Raises ScheduleNotFound, and as `create_schedule`.
        """
        named: dict[str, Any] = {**options, "org": org, "request_id": request_id}
        if workflow is not None:
            name, _, encoded, _ = encode_start(workflow, (*(args or ()),), {"org": org}, frozenset())
            named |= {"workflow": name, "args": encoded}
        elif args is not None:
            named["args"] = payloads.encode([*args], "the arguments of a schedule", LARGEST).data
        return await self._call("update_schedule", ScheduleInfo, [schedule_id, to_plain_spec(spec)], named)

    async def pause_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a schedule fire no more until it is resumed. Returns False if it does not fire now.

        Raises ScheduleNotFound.
        """
        return await self._call("pause_schedule", bool, [schedule_id], {"org": org, "request_id": request_id})

    async def resume_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused schedule fire again; what fell into the pause is left out. Returns False if it is not paused.

        Raises ScheduleNotFound.
        """
        return await self._call("resume_schedule", bool, [schedule_id], {"org": org, "request_id": request_id})

    async def run_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> ScheduleRun:
        """Start an execution of a schedule now, whatever is open, also while it is paused. Raises ScheduleNotFound."""
        return await self._call("run_schedule", ScheduleRun, [schedule_id], {"org": org, "request_id": request_id})

    async def backfill_schedule(
        self,
        schedule_id: str,
        first: datetime,
        last: datetime,
        *,
        overlap: str = "allow",
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
    ) -> int:
        """Start executions for the times from `first` to `last`, which have passed. Returns how many.

        All at once, or with overlap="queue" one after the other. Raises ScheduleNotFound or InvalidArguments.
        """
        named = {"first": first, "last": last, "overlap": overlap, "org": org, "request_id": request_id}
        return await self._call("backfill_schedule", int, [schedule_id], named)

    async def delete_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Delete a schedule. Returns False if there is none. Executions that it started continue."""
        return await self._call("delete_schedule", bool, [schedule_id], {"org": org, "request_id": request_id})

    async def describe_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG) -> ScheduleInfo:
        """Describe a schedule, with its next five fire times and its recent runs. Raises ScheduleNotFound."""
        return await self._call("describe_schedule", ScheduleInfo, [schedule_id], {"org": org})

    async def schedules(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: str = "") -> builtins.list[ScheduleInfo]:
        """List the schedules of an org behind the id `after`, in the order of their ids; up to 1,000 at once."""
        named = {"org": org, "limit": limit, "after": after}
        return await self._call("schedules", builtins.list[ScheduleInfo], [], named)


def to_plain_spec(spec: str | datetime | Calendar | None) -> Any:
    """When a schedule fires, as JSON can hold it. Raises InvalidTime for a moment without a time zone."""
    if isinstance(spec, datetime):
        from_datetime(spec, "the date of a schedule")
        return spec.isoformat()
    return msgspec.to_builtins(spec) if isinstance(spec, Calendar) else spec
