"""Schedules that cannot be read, found or created."""

from __future__ import annotations

from holdfast.errors.roots import Conflict, InvalidRequest, NotFound


class InvalidSchedule(InvalidRequest):
    """A cron line, cycle, date, calendar or time zone cannot be read, or the schedule would never fire."""


class ScheduleNotFound(NotFound):
    """No schedule has that id in this org."""


class ScheduleExists(Conflict):
    """A schedule has that id in this org already."""
