"""Sums, differences, products and quotients of temporal values. DMN 10.3.2.13, a table for each at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from holdfast.feel.running import Fail
from holdfast.feel.temporal.building import (
    check_year,
    count_clock,
    count_day,
    count_instant,
    count_local,
    make_date,
    make_date_time,
    make_date_time_at,
    make_days_time,
    make_time,
    make_years_months,
    settle_date_time,
    start_day,
)
from holdfast.feel.temporal.calendar import add_months, from_ordinal, to_ordinal
from holdfast.feel.temporal.texts import DAY
from holdfast.feel.temporal.values import (
    DateTimeValue,
    DateValue,
    DaysTimeDuration,
    Duration,
    TimeValue,
    YearsMonthsDuration,
    name_type,
)
from holdfast.feel.temporal.zones import find_standard_offset
from holdfast.feel.values import NUMBERS

Operation = Callable[[Any, Any], Any]


def add(left: Any, right: Any) -> Any:
    """`left + right`. Raises Fail if there is no such sum."""
    return _operate(_ADDITIONS, "+", left, right)


def subtract(left: Any, right: Any) -> Any:
    """`left - right`. Raises Fail if there is no such difference."""
    return _operate(_SUBTRACTIONS, "-", left, right)


def multiply(left: Any, right: Any) -> Any:
    """`left * right`. Raises Fail if there is no such product."""
    return _operate(_MULTIPLICATIONS, "*", left, right)


def divide(left: Any, right: Any) -> Any:
    """`left / right`. Raises Fail if there is no such quotient."""
    return _operate(_DIVISIONS, "/", left, right)


def negate(value: Any) -> Any:
    """`-value`. Raises Fail if it is not a duration."""
    match value:
        case DaysTimeDuration():
            return DaysTimeDuration(-value.nanoseconds)
        case YearsMonthsDuration():
            return YearsMonthsDuration(-value.months)
    raise Fail(f"-{_name(value)} has no meaning: only numbers and durations have a negative")


def count_months_between(start: DateValue | DateTimeValue, end: DateValue | DateTimeValue) -> YearsMonthsDuration:
    """The whole months from one day to the other, whatever the time of day. DMN 10.3.4.1: years and months duration."""
    months = (end.year - start.year) * 12 + end.month - start.month
    if months > 0 and end.day < start.day:
        months -= 1
    elif months < 0 and end.day > start.day:
        months += 1
    return make_years_months(months)


def _operate(table: Mapping[tuple[str, str], Operation], sign: str, left: Any, right: Any) -> Any:
    kinds = (_name(left), _name(right))
    operation = table.get(kinds)
    if operation is None:
        raise Fail(f"{kinds[0]} {sign} {kinds[1]} has no meaning")
    return operation(left, right)


def _name(value: Any) -> str:
    return name_type(value) or ("number" if type(value) is Decimal else _OTHER_NAMES.get(type(value), "such a value"))


def _move_date(value: DateValue, duration: DaysTimeDuration) -> DateValue:
    return _check_date(from_ordinal(count_day(value) + duration.nanoseconds // DAY))


def _move_date_by_months(value: DateValue, duration: YearsMonthsDuration) -> DateValue:
    return _check_date(add_months(value.year, value.month, value.day, duration.months))


def _check_date(parts: tuple[int, int, int]) -> DateValue:
    check_year(parts[0])
    moved = make_date(*parts)
    assert moved is not None, parts  # noqa: S101  (the calendar gives days that there are)
    return moved


def _move_time(value: TimeValue, duration: DaysTimeDuration) -> TimeValue:
    return make_time((count_clock(value) + duration.nanoseconds) % DAY, value.tzinfo)


def _move_date_time(value: DateTimeValue, duration: DaysTimeDuration) -> DateTimeValue:
    """By instants where clocks may be set forward or back in between, else on its own clock."""
    zone, size = value.tzinfo, duration.nanoseconds
    if isinstance(zone, ZoneInfo):
        return make_date_time_at(count_instant(value) + size, zone)
    if type(value) is datetime and size % 1000 == 0:
        try:
            return value + timedelta(microseconds=size // 1000)
        except OverflowError:
            pass
    return make_date_time(count_local(value) + size, zone)


def _move_date_time_by_months(value: DateTimeValue, duration: YearsMonthsDuration) -> DateTimeValue:
    year, month, day = add_months(value.year, value.month, value.day, duration.months)
    check_year(year)
    return settle_date_time(to_ordinal(year, month, day) * DAY + count_clock(value), value.tzinfo, value.fold)


def _add_days_time(left: DaysTimeDuration, right: DaysTimeDuration) -> DaysTimeDuration:
    return make_days_time(left.nanoseconds + right.nanoseconds)


def _add_years_months(left: YearsMonthsDuration, right: YearsMonthsDuration) -> YearsMonthsDuration:
    return make_years_months(left.months + right.months)


def _subtract_dates(left: DateValue, right: DateValue) -> DaysTimeDuration:
    return make_days_time((count_day(left) - count_day(right)) * DAY)


def _subtract_times(left: TimeValue, right: TimeValue) -> DaysTimeDuration:
    clocks = count_clock(left) - count_clock(right)
    if left.tzinfo is None and right.tzinfo is None:
        return DaysTimeDuration(clocks)
    if left.tzinfo is None or right.tzinfo is None:
        raise Fail(_MIXED)
    return DaysTimeDuration(clocks - find_standard_offset(left.tzinfo) + find_standard_offset(right.tzinfo))


def _subtract_date_times(left: DateTimeValue, right: DateTimeValue) -> DaysTimeDuration:
    if left.tzinfo is None and right.tzinfo is None:
        return make_days_time(count_local(left) - count_local(right))
    if left.tzinfo is None or right.tzinfo is None:
        raise Fail(_MIXED)
    return make_days_time(count_instant(left) - count_instant(right))


def _subtract_date_time(left: DateValue, right: DateTimeValue) -> DaysTimeDuration:
    return _subtract_date_times(start_day(left), right)


def _subtract_date(left: DateTimeValue, right: DateValue) -> DaysTimeDuration:
    return _subtract_date_times(left, start_day(right))


def _multiply_days_time(left: DaysTimeDuration, right: Decimal) -> DaysTimeDuration:
    return make_days_time(_cut(_WIDE.multiply(Decimal(left.nanoseconds), right)))


def _multiply_years_months(left: YearsMonthsDuration, right: Decimal) -> YearsMonthsDuration:
    return make_years_months(_cut(_WIDE.multiply(Decimal(left.months), right)))


def _divide_days_time(left: DaysTimeDuration, right: Decimal) -> DaysTimeDuration:
    return make_days_time(_cut(_divide(_WIDE, Decimal(left.nanoseconds), right)))


def _divide_years_months(left: YearsMonthsDuration, right: Decimal) -> YearsMonthsDuration:
    return make_years_months(_cut(_divide(_WIDE, Decimal(left.months), right)))


def _divide_by_days_time(left: DaysTimeDuration, right: DaysTimeDuration) -> Decimal:
    return _divide(NUMBERS, Decimal(left.nanoseconds), Decimal(right.nanoseconds))


def _divide_by_years_months(left: YearsMonthsDuration, right: YearsMonthsDuration) -> Decimal:
    return _divide(NUMBERS, Decimal(left.months), Decimal(right.months))


def _divide(context: Context, left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise Fail("nothing can be divided by zero")
    return context.divide(left, right)


def _cut(number: Decimal) -> int:
    """Without what is behind the point: a duration has no part of a month, nor of a nanosecond."""
    if number and (not number.is_finite() or number.adjusted() > 30):
        raise Fail("the duration is longer than from the first date to the last")
    return int(number)


def _swap(operation: Operation) -> Operation:
    def swapped(left: Any, right: Any) -> Any:
        return operation(right, left)

    return swapped


def _move_back(operation: Operation) -> Operation:
    def moved(left: Any, right: Duration) -> Any:
        return operation(left, negate(right))

    return moved


_MIXED: Final = "one of them has a zone and the other has none: give both a zone, or none"
_WIDE: Final = Context(prec=100, traps=[])
_OTHER_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    list: "list",
    dict: "context",
    type(None): "null",
}
_DATE, _TIME, _DATE_TIME, _NUMBER = "date", "time", "date and time", "number"
_DAYS, _MONTHS = "days and time duration", "years and months duration"

_ADDITIONS: Final[Mapping[tuple[str, str], Operation]] = {
    (_DATE, _DAYS): _move_date,
    (_DATE, _MONTHS): _move_date_by_months,
    (_TIME, _DAYS): _move_time,
    (_DATE_TIME, _DAYS): _move_date_time,
    (_DATE_TIME, _MONTHS): _move_date_time_by_months,
    (_DAYS, _DATE): _swap(_move_date),
    (_MONTHS, _DATE): _swap(_move_date_by_months),
    (_DAYS, _TIME): _swap(_move_time),
    (_DAYS, _DATE_TIME): _swap(_move_date_time),
    (_MONTHS, _DATE_TIME): _swap(_move_date_time_by_months),
    (_DAYS, _DAYS): _add_days_time,
    (_MONTHS, _MONTHS): _add_years_months,
}
_SUBTRACTIONS: Final[Mapping[tuple[str, str], Operation]] = {
    (_DATE, _DAYS): _move_back(_move_date),
    (_DATE, _MONTHS): _move_back(_move_date_by_months),
    (_TIME, _DAYS): _move_back(_move_time),
    (_DATE_TIME, _DAYS): _move_back(_move_date_time),
    (_DATE_TIME, _MONTHS): _move_back(_move_date_time_by_months),
    (_DATE, _DATE): _subtract_dates,
    (_DATE, _DATE_TIME): _subtract_date_time,
    (_DATE_TIME, _DATE): _subtract_date,
    (_DATE_TIME, _DATE_TIME): _subtract_date_times,
    (_TIME, _TIME): _subtract_times,
    (_DAYS, _DAYS): _move_back(_add_days_time),
    (_MONTHS, _MONTHS): _move_back(_add_years_months),
}
_MULTIPLICATIONS: Final[Mapping[tuple[str, str], Operation]] = {
    (_DAYS, _NUMBER): _multiply_days_time,
    (_MONTHS, _NUMBER): _multiply_years_months,
    (_NUMBER, _DAYS): _swap(_multiply_days_time),
    (_NUMBER, _MONTHS): _swap(_multiply_years_months),
}
_DIVISIONS: Final[Mapping[tuple[str, str], Operation]] = {
    (_DAYS, _NUMBER): _divide_days_time,
    (_MONTHS, _NUMBER): _divide_years_months,
    (_DAYS, _DAYS): _divide_by_days_time,
    (_MONTHS, _MONTHS): _divide_by_years_months,
}
