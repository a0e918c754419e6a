"""Which of two temporal values is the greater, and whether they are equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timezone, tzinfo
from typing import Any, Final

from holdfast.feel.temporal.building import count_clock, count_day, count_instant, count_local
from holdfast.feel.temporal.texts import DAY, SECOND
from holdfast.feel.temporal.values import (
    DateTimeValue,
    DateValue,
    DaysTimeDuration,
    TimeValue,
    YearsMonthsDuration,
    name_type,
)
from holdfast.feel.temporal.zones import find_standard_offset

Position = tuple[bool, int]
"""Whether it has a zone, and where it stands among those that have one, or those that have none."""


def compare(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None if they are not of the same type, or only one of them has a zone.

    DMN 10.3.2.13. Exact to the nanosecond.
    """
    if _has_own_order(left, right):
        return int(left > right) - int(left < right)
    places = _place_both(left, right)
    if places is None or places[0][0] != places[1][0]:
        return None
    here, there = places[0][1], places[1][1]
    return int(here > there) - int(here < there)


def equal(left: Any, right: Any) -> bool | None:
    """Whether they are the same; None if they are not of the same type.

    DMN 10.3.2.13: date and times are equal if they are the same instant. The `second` that is compared is whole.
    One with a zone and one without are never the same.
    """
    if _has_own_order(left, right) and (left == right or not _has_fraction(left, right)):
        return bool(left == right)
    places = _place_both(left, right)
    if places is None:
        return None
    (has_zone, here), (has_zone_there, there) = places
    return has_zone == has_zone_there and here // SECOND == there // SECOND


def is_identical(left: Any, right: Any) -> bool:
    """Whether they are the same in all that can be seen of them. DMN 10.3.4.6: the zone counts, and a part of a second."""
    kind = name_type(left)
    if kind is None or kind != name_type(right):
        return False
    if _POSITIONS[kind](left) != _POSITIONS[kind](right):
        return False
    if kind not in {"time", "date and time"}:
        return True
    return count_clock(left) == count_clock(right) and _name_zone(left.tzinfo) == _name_zone(right.tzinfo)


def _has_own_order(left: Any, right: Any) -> bool:
    """Whether Python compares the two as we do: it does not where clocks are set forward and back."""
    kind = type(left)
    if kind is not type(right):
        return False
    if kind in _ORDERED:
        return True
    if kind is not datetime and kind is not time:
        return False
    here, there = left.tzinfo, right.tzinfo
    return here is there is None or (type(here) is timezone and type(there) is timezone)


def _has_fraction(left: Any, right: Any) -> bool:
    return type(left) not in _ORDERED and bool(left.microsecond or right.microsecond)


def _place_both(left: Any, right: Any) -> tuple[Position, Position] | None:
    kind = name_type(left)
    if kind is None or kind != name_type(right):
        return None
    place = _POSITIONS[kind]
    return place(left), place(right)


def _place_date(value: DateValue) -> Position:
    return False, count_day(value) * DAY


def _place_time(value: TimeValue) -> Position:
    if value.tzinfo is None:
        return False, count_clock(value)
    return True, count_clock(value) - find_standard_offset(value.tzinfo)


def _place_date_time(value: DateTimeValue) -> Position:
    if value.tzinfo is None:
        return False, count_local(value)
    return True, count_instant(value)


def _place_days_time(value: DaysTimeDuration) -> Position:
    return False, value.nanoseconds


def _place_years_months(value: YearsMonthsDuration) -> Position:
    return False, value.months


def _name_zone(zone: tzinfo | None) -> object:
    return zone.utcoffset(None) if type(zone) is timezone else getattr(zone, "key", None)


_ORDERED: Final = frozenset({date, DaysTimeDuration, YearsMonthsDuration})
"""Types whose own order is ours, whatever the values."""

_POSITIONS: Final[Mapping[str, Callable[[Any], Position]]] = {
    "date": _place_date,
    "time": _place_time,
    "date and time": _place_date_time,
    "days and time duration": _place_days_time,
    "years and months duration": _place_years_months,
}
