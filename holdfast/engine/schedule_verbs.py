"""The verbs of schedules, on the engine's own use cases."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from holdfast.code.bound_workflows import BoundWorkflow
from holdfast.code.definitions import Workflow
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.times.calendars import Calendar
from holdfast.engine.use_cases.schedule_checks import choose_args
from holdfast.engine.use_cases.schedule_views import ScheduleInfo, ScheduleOptions, ScheduleRun
from holdfast.engine.use_cases.schedules import Schedules


class EngineScheduleVerbs:
    """What can be asked of schedules while an engine is open."""

    _schedules: Schedules

    def _check_open(self) -> None:
        """Raises EngineClosed or WrongEventLoop if the engine cannot take calls now."""
        raise NotImplementedError

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
        self._check_open()
        what = (spec, workflow, choose_args(inputs, args))
        return await self._schedules.create(org, schedule_id, what, options, request_id=request_id)

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
        self._check_open()
        return await self._schedules.update(org, schedule_id, (spec, workflow, args), options, request_id)

    async def pause_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a schedule fire no more until it is resumed. Returns False if it does not fire now.

        Raises ScheduleNotFound.
        """
        self._check_open()
        return await self._schedules.pause(org, schedule_id, request_id)

    async def resume_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Let a paused schedule fire again; what fell into the pause is left out. Returns False if it is not paused.

        Raises ScheduleNotFound.
        """
        self._check_open()
        return await self._schedules.resume(org, schedule_id, request_id)

    async def run_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> ScheduleRun:
        """Start an execution of a schedule now, whatever is open, also while it is paused. Raises ScheduleNotFound."""
        self._check_open()
        return await self._schedules.run(org, schedule_id, request_id)

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
        self._check_open()
        return await self._schedules.backfill(org, schedule_id, first, last, overlap, request_id)

    async def delete_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None) -> bool:
        """Delete a schedule. Returns False if there is none. Executions that it started continue."""
        self._check_open()
        return await self._schedules.delete(org, schedule_id, request_id)

    async def describe_schedule(self, schedule_id: str, *, org: str = DEFAULT_ORG) -> ScheduleInfo:
        """Describe a schedule, with its next five fire times and its recent runs. Raises ScheduleNotFound."""
        self._check_open()
        return await self._schedules.describe(org, schedule_id)

    async def schedules(self, *, org: str = DEFAULT_ORG, limit: int = 100, after: str = "") -> builtins.list[ScheduleInfo]:
        """List the schedules of an org behind the id `after`, in the order of their ids; up to 1,000 at once."""
        self._check_open()
        return await self._schedules.list(org, limit, after)
