"""The temporal values: Python's own where they can hold the value, else types of our own with the same attributes.

Python's `date` begins with the year 1 and ends with 9999, and its seconds end with microseconds. FEEL goes to the year
999,999,999 in both directions, and to nanoseconds. A zone is a `ZoneInfo` if it has an id, and a `timezone` if it is an
offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import total_ordering
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from holdfast.errors import FeelError
from holdfast.feel.temporal.texts import DAY, SECOND, write_date, write_days_time, write_time, write_years_months
from holdfast.feel.temporal.zones import find_zone, make_offset


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class DaysTimeDuration:
    """So many days, hours, minutes and seconds, in all as nanoseconds; `str()` is its ISO text.

    It equals a `timedelta` of the same length, has the same hash, and comes before longer ones.
    """

    nanoseconds: int

    def __str__(self) -> str:
        return write_days_time(self.nanoseconds)

    def to_timedelta(self) -> timedelta:
        """The same as Python has it, without parts of microseconds. Raises FeelError if it is too long for Python."""
        size = abs(self.nanoseconds) // 1000
        try:
            return timedelta(microseconds=-size if self.nanoseconds < 0 else size)
        except OverflowError:
            raise FeelError(
                f"Expected a duration of less than 1,000,000,000 days for a timedelta, but it is {self}. Keep it as it is."
            ) from None

    def __eq__(self, other: object) -> bool:
        if type(other) is DaysTimeDuration:
            return self.nanoseconds == other.nanoseconds
        return self.nanoseconds == _count(other) if isinstance(other, timedelta) else NotImplemented

    def __lt__(self, other: object) -> bool:
        if type(other) is DaysTimeDuration:
            return self.nanoseconds < other.nanoseconds
        return self.nanoseconds < _count(other) if isinstance(other, timedelta) else NotImplemented

    def __hash__(self) -> int:
        try:
            python = self.to_timedelta()
        except FeelError:
            return hash(self.nanoseconds)
        return hash(python) if _count(python) == self.nanoseconds else hash(self.nanoseconds)


def _count(duration: timedelta) -> int:
    """How many nanoseconds a duration of Python takes."""
    return duration.days * DAY + duration.seconds * SECOND + duration.microseconds * 1000


@dataclass(frozen=True, slots=True, order=True)
class YearsMonthsDuration:
    """So many years and months, in all as months; `str()` is its ISO text."""

    months: int

    def __str__(self) -> str:
        return write_years_months(self.months)


@dataclass(frozen=True, slots=True)
class ExactDate:
    """A date in a year that Python's `date` does not have. There is a year 0, and it is a leap year."""

    year: int
    month: int
    day: int

    def __str__(self) -> str:
        return write_date(self.year, self.month, self.day)


@dataclass(frozen=True, slots=True)
class ExactTime:
    """A time of day to the nanosecond."""

    hour: int
    minute: int
    second: int
    nanosecond: int = 0
    tzinfo: tzinfo | None = None

    def __str__(self) -> str:
        return write_time(self.hour, self.minute, self.second, self.nanosecond, self.tzinfo)


@dataclass(frozen=True, slots=True)
class ExactDateTime:
    """A date and time that Python's `datetime` cannot hold, for its year or for its nanoseconds."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    nanosecond: int = 0
    tzinfo: tzinfo | None = None
    fold: int = 0
    """1 for the second of the two times that a clock shows when it is set back."""

    def __str__(self) -> str:
        day = write_date(self.year, self.month, self.day)
        return f"{day}T{write_time(self.hour, self.minute, self.second, self.nanosecond, self.tzinfo)}"


DateValue: TypeAlias = date | ExactDate
TimeValue: TypeAlias = time | ExactTime
DateTimeValue: TypeAlias = datetime | ExactDateTime
Duration: TypeAlias = DaysTimeDuration | YearsMonthsDuration

TYPE_NAMES: Final[Mapping[type, str]] = {
    date: "date",
    ExactDate: "date",
    time: "time",
    ExactTime: "time",
    datetime: "date and time",
    ExactDateTime: "date and time",
    DaysTimeDuration: "days and time duration",
    YearsMonthsDuration: "years and months duration",
}


def name_type(value: Any) -> str | None:
    """FEEL's name for the type of a temporal value or duration; None for anything else."""
    return TYPE_NAMES.get(type(value))


def from_python(value: Any) -> Any:
    """A value from outside in the form that this package works with; what it does not know is given back.

    A `timedelta` becomes a duration, a subclass of `date`, `time` or `datetime` the class itself. A zone of another library
    becomes the zone with its id, or else its offset at that time; an offset that no text can have becomes UTC.
    """
    match value:
        case timedelta():
            return DaysTimeDuration(_count(value))
        case datetime():
            return _from_date_time(value)
        case date():
            return value if type(value) is date else date(value.year, value.month, value.day)
        case time():
            zone = _translate_zone(value.tzinfo, value.utcoffset())
            if zone is value.tzinfo and type(value) is time:
                return value
            if zone is None and value.utcoffset() is not None:
                value = datetime.combine(date(2000, 1, 1), value).astimezone(UTC)
                zone = UTC
            return time(value.hour, value.minute, value.second, value.microsecond, zone, fold=value.fold)
    return value


def _from_date_time(value: datetime) -> datetime:
    zone = _translate_zone(value.tzinfo, value.utcoffset())
    if zone is value.tzinfo and type(value) is datetime:
        return value
    if zone is None and value.tzinfo is not None:
        zone = UTC
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            # Within a day of Python's first or last: no other clock there can show it.
            value = value.replace(tzinfo=UTC)
    clock = time(value.hour, value.minute, value.second, value.microsecond, zone, fold=value.fold)
    return datetime.combine(date(value.year, value.month, value.day), clock)


def _translate_zone(zone: tzinfo | None, offset: timedelta | None) -> tzinfo | None:
    """The zone of ours that stands for it; None if it is none, or there is none."""
    if zone is None:
        return None
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    known = find_zone(name) if isinstance(name, str) else None
    if known is not None:
        return zone if type(zone) is ZoneInfo else known
    if offset is None or offset.microseconds:
        return None
    ours = make_offset(offset.days * 86_400 + offset.seconds)
    return zone if ours is not None and type(zone) is timezone else ours
