"""When schedules and timers are due: one value for each way to say it, all with the same questions.

A spec is *armed* at an instant, from which durations and cycles count. Its fires are a growing sequence of instants that
depends on the spec and on that instant alone: what comes after one fire derives from when that was due, not from the clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.core.instants import SECOND, Instant, from_datetime, to_datetime
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.times import calendars, cron_lines
from holdfast.core.times.calendars import Calendar, check_calendar
from holdfast.core.times.dates import check_date, parse_date
from holdfast.core.times.durations import Span, parse_duration
from holdfast.core.times.zones import UTC, check_zone
from holdfast.errors import InvalidSchedule

SHORTEST_INTERVAL: Final = SECOND // 1_000
_CYCLE: Final = re.compile(r"R(-?\d{1,9}|)(/.*)", re.ASCII)
_LOOKS_LIKE_DATE: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}")


class Spec(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, forbid_unknown_fields=True):
    """The root of all specs: when something is due."""

    text: str = ""
    """As it was written."""
    zone: str = UTC

    def first(self, armed_at: Instant) -> Instant | None:
        """The first fire of a spec that is armed at an instant; None: it never fires."""
        return self.next_after(armed_at, armed_at)

    def list_after(self, armed_at: Instant, after: Instant) -> Iterator[Instant]:
        """The fires later than `after`, in order, without end where there is none; cheaper than to ask for one at a time."""
        found = self.next_after(armed_at, after)
        while found is not None:
            yield found
            found = self.next_after(armed_at, found)

    def next_after(self, armed_at: Instant, after: Instant) -> Instant | None:
        """The first fire later than `after` of a spec that was armed at `armed_at`; None: there is none."""
        raise NotImplementedError

    def count_fires(self, armed_at: Instant) -> int | None:
        """How many fires there are in all; None: no end is said."""
        del armed_at
        return None

    def find_last(self, armed_at: Instant) -> Instant | None:
        """The last fire that the spec itself names; None: it names no end."""
        del armed_at
        return None


class Cron(Spec, frozen=True, kw_only=True, tag="cron"):
    """The local times that a cron line names."""

    def next_after(self, armed_at: Instant, after: Instant) -> Instant | None:
        """The next local time of the line that comes later than `after`."""
        return next(self.list_after(armed_at, after), None)

    def list_after(self, armed_at: Instant, after: Instant) -> Iterator[Instant]:
        """The local times of the line that come later than `after`."""
        del armed_at
        return cron_lines.list_times(self.text, self.zone, after)


class OnCalendar(Spec, frozen=True, kw_only=True, tag="calendar"):
    """The local times that a calendar names."""

    calendar: Calendar

    def next_after(self, armed_at: Instant, after: Instant) -> Instant | None:
        """The next local time of the calendar that comes later than `after`."""
        return next(self.list_after(armed_at, after), None)

    def list_after(self, armed_at: Instant, after: Instant) -> Iterator[Instant]:
        """The local times of the calendar that come later than `after`."""
        del armed_at
        return calendars.list_times(self.calendar, self.zone, after)


class AtDate(Spec, frozen=True, kw_only=True, tag="date"):
    """Once, at an instant; if that is past, at once."""

    at: Instant

    def first(self, armed_at: Instant) -> Instant | None:
        """The date, also if it is past: then it is due now."""
        del armed_at
        return self.at

    def next_after(self, armed_at: Instant, after: Instant) -> Instant | None:
        """The date, if that comes later than `after`."""
        del armed_at
        return self.at if self.at > after else None

    def count_fires(self, armed_at: Instant) -> int | None:
        """One: a date is due once."""
        del armed_at
        return 1


class AfterDuration(Spec, frozen=True, kw_only=True, tag="duration"):
    """Once, a duration after it was armed."""

    span: Span

    def first(self, armed_at: Instant) -> Instant | None:
        """The instant one duration after the arming."""
        return self.span.add_to(armed_at, 1, self.zone)

    def next_after(self, armed_at: Instant, after: Instant) -> Instant | None:
        """One duration after the arming, if that comes later than `after`."""
        due = self.span.add_to(armed_at, 1, self.zone)
        return due if due > after else None

    def count_fires(self, armed_at: Instant) -> int | None:
        """One: a duration is over once."""
        del armed_at
        return 1


class Cycle(Spec, frozen=True, kw_only=True, tag="cycle"):
    """Again and again, an interval apart: from `start` on, or from one interval after the arming."""

    span: Span
    repeats: int | None = None
    start: Instant | None = None

    def next_after(self, armed_at: Instant, after: Instant) -> Instant | None:
        """The first point of the grid later than `after`.

        `repeats` ends a cycle that has a start, whose times are fixed. Of others the one who fires counts: what is left out
        in a pause does not count, and comes later instead.
        """
        self._check_span()
        base, number = self._base(armed_at)
        number = max(number, (after - base) // self.span.about - 2)
        try:
            while (due := self.span.add_to(base, number, self.zone)) <= after:
                number += 1
        except (ValueError, OverflowError):
            return None
        return None if self.start is not None and self.repeats is not None and number >= self.repeats else due

    def find_last(self, armed_at: Instant) -> Instant | None:
        """The point of the grid whose number is that of the repeats; None: without end, or beyond the calendar."""
        if self.repeats is None:
            return None
        base, number = self._base(armed_at)
        try:
            return self.span.add_to(base, number + self.repeats - 1, self.zone)
        except (ValueError, OverflowError):
            return None

    def _base(self, armed_at: Instant) -> tuple[Instant, int]:
        """From where the grid is counted, and the number of its first point."""
        return (armed_at, 1) if self.start is None else (self.start, 0)

    def _check_span(self) -> None:
        """Raises InvalidSchedule where a stored interval is none: the grid would have no end."""
        if self.span.about <= 0:
            raise InvalidSchedule(f"Expected the interval of '{self.text}' to be longer than nothing, but it is not.")

    def count_fires(self, armed_at: Instant) -> int | None:
        """The repeats; of a cycle that began before it was armed, those that are left."""
        if self.repeats is None or self.start is None or self.start > armed_at:
            return self.repeats
        self._check_span()
        past = max(0, (armed_at - self.start) // self.span.about - 2)
        while past < self.repeats and self.span.add_to(self.start, past, self.zone) <= armed_at:
            past += 1
        return max(0, self.repeats - past)


AnySpec: TypeAlias = Cron | OnCalendar | AtDate | AfterDuration | Cycle


def make_spec(given: Any, zone: object = UTC) -> AnySpec:
    """The spec that a user wrote: a text, a datetime or a calendar. Raises InvalidSchedule, which says what is allowed."""
    known = check_zone(zone)
    if isinstance(given, datetime):
        at = check_date(from_datetime(given, "the date of a schedule"), given.isoformat())
        return AtDate(text=to_datetime(at).isoformat(), zone=known, at=at)
    if isinstance(given, Calendar | Mapping):
        calendar = check_calendar(given)
        return OnCalendar(text=_show_calendar(calendar), zone=known, calendar=calendar)
    if not isinstance(given, str) or not given.strip():
        raise InvalidSchedule(
            f"Expected a schedule to say when it fires, but it is {show(given, repr, LONGEST_SHOWN)}. Write a cron line "
            "('30 9 * * *'), a cycle ('R3/PT10M'), a date ('2030-01-31T09:00:00Z'), a duration ('PT5M') or a Calendar(…)."
        )
    text = given.strip()
    if text.startswith("R"):
        return parse_cycle(text, known)
    if text.startswith("P"):
        return AfterDuration(text=text, zone=known, span=parse_duration(text))
    if _LOOKS_LIKE_DATE.match(text):
        return AtDate(text=text, zone=known, at=parse_date(text, known))
    return Cron(text=cron_lines.check_line(text), zone=known)


def parse_cycle(text: str, zone: str = UTC) -> Cycle:
    """A repeating interval of ISO 8601: `R3/PT10M`, `R/PT1H`, `R/start/P1D`, `R5/start/end`. Raises InvalidSchedule."""
    found = _CYCLE.fullmatch(text.strip())
    if found is None:
        raise _refuse_cycle(text, "it has another form")
    parts = found[2][1:].split("/")
    repeats = int(found[1]) if found[1] else None
    if repeats is not None and repeats < 1:
        raise _refuse_cycle(text, "it never fires")
    if len(parts) == 1:
        return Cycle(text=text, zone=zone, span=_check_interval(text, parse_duration(parts[0])), repeats=repeats)
    if len(parts) != 2 or parts[0].startswith("P"):
        raise _refuse_cycle(text, "it has another form")
    start = parse_date(parts[0], zone)
    span = parse_duration(parts[1]) if parts[1].startswith("P") else Span(micros=parse_date(parts[1], zone) - start)
    return Cycle(text=text, zone=zone, span=_check_interval(text, span), repeats=repeats, start=start)


def list_fires(spec: AnySpec, armed_at: Instant, after: Instant) -> Iterator[Instant]:
    """The fires later than `after`, in order, without end where there is none."""
    return spec.list_after(armed_at, after)


def _check_interval(text: str, span: Span) -> Span:
    if span.about < SHORTEST_INTERVAL:
        raise _refuse_cycle(text, "its interval is shorter than a millisecond")
    return span


def _refuse_cycle(text: str, why: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"Expected a cycle of ISO 8601, but {show(text, repr, LONGEST_SHOWN)} is not allowed: {why}. Write 'R3/PT10M', "
        "'R/PT1H', 'R/2030-01-01T00:00:00Z/P1D' or 'R5/2030-01-01T00:00:00Z/2030-01-02T00:00:00Z'."
    )


def _show_calendar(calendar: Calendar) -> str:
    return msgspec.json.encode(calendar).decode()
