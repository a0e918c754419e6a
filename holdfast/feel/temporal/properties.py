"""The properties of temporal values: `value.year`, `value.time offset`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from holdfast.feel.running import Fail
from holdfast.feel.temporal.building import count_local
from holdfast.feel.temporal.calendar import find_twin
from holdfast.feel.temporal.texts import DAY, HOUR, MINUTE, SECOND
from holdfast.feel.temporal.values import (
    DateTimeValue,
    DateValue,
    DaysTimeDuration,
    TimeValue,
    YearsMonthsDuration,
    name_type,
)
from holdfast.feel.temporal.zones import find_offset, find_standard_offset


def get_property(value: Any, name: str) -> Any:
    """A property of a temporal value or duration, None where it has nothing to tell. Raises Fail if it has no such one."""
    kind = name_type(value)
    getters = _PROPERTIES.get(kind or "", {})
    if name not in getters:
        known = ", ".join(getters)
        raise Fail(f"a {kind or type(value).__name__} has no property '{name}'" + (f": it has {known}" if known else ""))
    return getters[name](value)


def find_weekday(value: DateValue | DateTimeValue) -> int:
    """1 for Monday to 7 for Sunday."""
    return find_twin(value.year, value.month, value.day).isoweekday()


def _get_part(name: str) -> Callable[[Any], Decimal]:
    def get(value: Any) -> Decimal:
        return Decimal(getattr(value, name))

    return get


def _get_weekday(value: DateValue | DateTimeValue) -> Decimal:
    return Decimal(find_weekday(value))


def _get_time_offset(value: TimeValue) -> DaysTimeDuration | None:
    return None if value.tzinfo is None else DaysTimeDuration(find_standard_offset(value.tzinfo))


def _get_date_time_offset(value: DateTimeValue) -> DaysTimeDuration | None:
    if value.tzinfo is None:
        return None
    return DaysTimeDuration(find_offset(value.tzinfo, count_local(value), value.fold))


def _get_timezone(value: TimeValue | DateTimeValue) -> str | None:
    """The id of its zone: an offset has none."""
    return value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None


def _get_days_time_part(unit: int, whole: int | None) -> Callable[[DaysTimeDuration], Decimal]:
    """How many of a unit there are within the next larger one; negative in a negative duration."""

    def get(value: DaysTimeDuration) -> Decimal:
        size = abs(value.nanoseconds) if whole is None else abs(value.nanoseconds) % whole
        return Decimal(-(size // unit) if value.nanoseconds < 0 else size // unit)

    return get


def _get_years(value: YearsMonthsDuration) -> Decimal:
    years = abs(value.months) // 12
    return Decimal(-years if value.months < 0 else years)


def _get_months(value: YearsMonthsDuration) -> Decimal:
    months = abs(value.months) % 12
    return Decimal(-months if value.months < 0 else months)


_DATE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "year": _get_part("year"),
    "month": _get_part("month"),
    "day": _get_part("day"),
    "weekday": _get_weekday,
}
_TIME: Final[Mapping[str, Callable[[Any], Any]]] = {
    "hour": _get_part("hour"),
    "minute": _get_part("minute"),
    "second": _get_part("second"),
    "time offset": _get_time_offset,
    "timezone": _get_timezone,
}
# DMN 10.3.2.13: the second is a whole number, and so are the seconds of a duration.
_PROPERTIES: Final[Mapping[str, Mapping[str, Callable[[Any], Any]]]] = {
    "date": _DATE,
    "time": _TIME,
    "date and time": {**_DATE, **_TIME, "time offset": _get_date_time_offset},
    "days and time duration": {
        "days": _get_days_time_part(DAY, None),
        "hours": _get_days_time_part(HOUR, DAY),
        "minutes": _get_days_time_part(MINUTE, HOUR),
        "seconds": _get_days_time_part(SECOND, MINUTE),
    },
    "years and months duration": {"years": _get_years, "months": _get_months},
}
