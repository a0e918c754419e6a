"""Functions that make dates, times and durations, and that tell something of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from typing import Any, Final

from holdfast.feel.functions.signatures import Form, form
from holdfast.feel.running import Fail, Run
from holdfast.feel.temporal import arithmetic, parsing
from holdfast.feel.temporal.building import (
    count_clock,
    count_day,
    count_instant,
    count_local,
    make_date,
    make_date_time_at,
    make_time,
    settle_date_time,
    start_day,
)
from holdfast.feel.temporal.calendar import count_days, find_twin
from holdfast.feel.temporal.formatting import to_text
from holdfast.feel.temporal.properties import find_weekday
from holdfast.feel.temporal.texts import DAY, HOUR, MINUTE, SECOND
from holdfast.feel.temporal.values import (
    DateTimeValue,
    DateValue,
    DaysTimeDuration,
    Duration,
    ExactDate,
    ExactDateTime,
    ExactTime,
    TimeValue,
    YearsMonthsDuration,
    from_python,
    name_type,
)
from holdfast.feel.temporal.zones import find_zone, make_offset, read_offset
from holdfast.feel.values import NUMBERS

_STEPS: Final = 8
"""Of what reads a text, or looks at a calendar or a zone."""
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _parse_date(run: Run, text: str) -> DateValue:
    run.spend(_STEPS)
    made = parsing.parse_date(text)
    if made is None:
        raise _refuse(text, "a date like 2017-12-31")
    return made


def _take_date(_run: Run, value: Any) -> DateValue:
    return _make_date(*_get_day(value))


def _build_date(_run: Run, year: Decimal, month: Decimal, day: Decimal) -> DateValue:
    return _make_date(_to_whole(year), _to_whole(month), _to_whole(day))


def _parse_time(run: Run, text: str) -> TimeValue:
    run.spend(_STEPS)
    made = parsing.parse_time(text)
    if made is None:
        raise _refuse(text, "a time like 23:59:00, 23:59:00+02:00 or 23:59:00@Europe/Paris")
    return made


def _take_time(_run: Run, value: Any) -> TimeValue:
    if isinstance(value, time | ExactTime):
        return value
    if isinstance(value, datetime | ExactDateTime):
        return make_time(count_clock(value), value.tzinfo)
    return make_time(0, UTC)


def _build_time(
    run: Run, hour: Decimal, minute: Decimal, second: Decimal, offset: DaysTimeDuration | None = None
) -> TimeValue:
    run.spend(_STEPS)
    return make_time(_count_clock(hour, minute, second), None if offset is None else _read_offset(offset))


def _parse_date_time(run: Run, text: str) -> DateTimeValue:
    run.spend(_STEPS)
    made = parsing.parse_date_time(text)
    if made is None:
        raise _refuse(text, "a date and time like 2017-12-31T23:59:00")
    return made


def _take_date_time(run: Run, value: Any) -> DateTimeValue:
    run.spend(_STEPS)
    if isinstance(value, datetime | ExactDateTime):
        return value
    if isinstance(value, date | ExactDate):
        return start_day(value)
    raise Fail("a time has no date: give it one by date and time(date, time)")


def _join(_run: Run, day: Any, clock: TimeValue) -> DateTimeValue:
    return settle_date_time(count_day(_make_date(*_get_day(day))) * DAY + count_clock(clock), clock.tzinfo)


def _join_in_zone(run: Run, day: Any, clock: TimeValue, zone: str) -> DateTimeValue:
    run.spend(_STEPS)
    if clock.tzinfo is not None:
        raise Fail("the time has a zone already: leave one of the two out")
    return settle_date_time(count_day(_make_date(*_get_day(day))) * DAY + count_clock(clock), _read_zone(zone))


def _move_to_zone(run: Run, value: Any, zone_name: str) -> DateTimeValue:
    """Camunda: the same instant in another zone; one without a zone is taken to be in that zone."""
    run.spend(_STEPS)
    moment, zone = _take_date_time(run, value), _read_zone(zone_name)
    if moment.tzinfo is None or name_type(value) == "date":
        return settle_date_time(count_local(moment), zone)
    return make_date_time_at(count_instant(moment), zone)


def _build_date_time(  # noqa: PLR0917 - the parameters of FEEL's own `date and time`
    run: Run, year: Decimal, month: Decimal, day: Decimal, hour: Decimal, minute: Decimal, second: Decimal, zone: Any = None
) -> DateTimeValue:
    run.spend(_STEPS)
    local = count_day(_make_date(_to_whole(year), _to_whole(month), _to_whole(day))) * DAY
    local += _count_clock(hour, minute, second)
    match zone:
        case DaysTimeDuration():
            return settle_date_time(local, _read_offset(zone))
        case Decimal():
            return settle_date_time(local, _read_offset(arithmetic.multiply(DaysTimeDuration(HOUR), zone)))
        case str():
            return settle_date_time(local, _read_zone(zone))
    return settle_date_time(local, None)


def _parse_duration(run: Run, text: str) -> Duration:
    run.spend(_STEPS)
    made = parsing.parse_duration(text)
    if made is None:
        raise _refuse(text, "a duration like P1DT2H or P1Y2M")
    return made


def _take_duration(_run: Run, value: Duration) -> Duration:
    return value


def _write_cycle(run: Run, repetitions: Decimal | None, interval: Duration) -> str:
    """`cycle` (Camunda): the text of a repeating interval of ISO 8601; without a count it repeats without an end."""
    run.spend(_STEPS)
    if repetitions is not None and (repetitions != repetitions.to_integral_value() or not 0 < repetitions < 10**9):
        raise Fail(f"expected a whole number of repetitions above zero, but it is {repetitions:.20}")
    count = "" if repetitions is None else str(int(repetitions))
    return f"R{count}/{to_text(interval)}"


def _write_endless_cycle(run: Run, interval: Duration) -> str:
    return _write_cycle(run, None, interval)


def _count_months_between(run: Run, start: Any, end: Any) -> YearsMonthsDuration:
    run.spend(_STEPS)
    _get_day(start), _get_day(end)
    return arithmetic.count_months_between(start, end)


def _tell_now(run: Run) -> DateTimeValue:
    now: DateTimeValue = from_python(run.now())
    return now


def _tell_today(run: Run) -> DateValue:
    return run.now().date()


def _tell_day_of_year(run: Run, value: Any) -> Decimal:
    run.spend(_STEPS)
    return Decimal(find_twin(*_get_day(value)).timetuple().tm_yday)


def _tell_day_of_week(_run: Run, value: Any) -> str:
    _get_day(value)
    return _WEEKDAYS[find_weekday(value) - 1]


def _tell_month_of_year(_run: Run, value: Any) -> str:
    return _MONTHS[_get_day(value)[1] - 1]


def _tell_week_of_year(run: Run, value: Any) -> Decimal:
    run.spend(_STEPS)
    return Decimal(find_twin(*_get_day(value)).isocalendar().week)


def _tell_last_day_of_month(run: Run, value: Any) -> DateValue:
    run.spend(_STEPS)
    year, month, _day = _get_day(value)
    return _make_date(year, month, count_days(year, month))


def _get_size(_run: Run, value: Duration) -> Duration:
    size = value.nanoseconds if isinstance(value, DaysTimeDuration) else value.months
    return arithmetic.negate(value) if size < 0 else value


def _refuse(text: str, what: str) -> Fail:
    return Fail(f"expected {what}, but '{text[:50]}' is none")


def _get_day(value: Any) -> tuple[int, int, int]:
    if name_type(value) == "time":
        raise Fail("expected a date or a date and time, but a time has no date")
    return value.year, value.month, value.day


def _make_date(year: int, month: int, day: int) -> DateValue:
    made = make_date(year, month, day)
    if made is None:
        raise Fail(f"there is no day {day} in month {month} of the year {year}")
    return made


def _to_whole(number: Decimal) -> int:
    if (number and number.adjusted() > 12) or number != number.to_integral_value():
        raise Fail(f"expected a whole number that a calendar or a clock shows, but it is {number}")
    return int(number)


def _count_clock(hour: Decimal, minute: Decimal, second: Decimal) -> int:
    hours, minutes = _to_whole(hour), _to_whole(minute)
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= second < 60):
        raise Fail(f"there is no time {hours}:{minutes}:{second}")
    return hours * HOUR + minutes * MINUTE + int(NUMBERS.multiply(second, Decimal(SECOND)))


def _read_offset(offset: DaysTimeDuration) -> tzinfo:
    zone = make_offset(offset.nanoseconds // SECOND) if offset.nanoseconds % SECOND == 0 else None
    if zone is None:
        raise Fail(f"expected an offset of at most 14 hours in whole seconds, but it is {offset}")
    return zone


def _read_zone(name: str) -> tzinfo:
    zone = read_offset(name) or find_zone(name)
    if zone is None:
        raise Fail(f"expected a zone like Europe/Paris, +02:00 or Z, but there is no '{name[:50]}'")
    return zone


_PARTS: Final = (
    ("year", "number"),
    ("month", "number"),
    ("day", "number"),
    ("hour", "number"),
    ("minute", "number"),
    ("second", "number"),
)

TEMPORAL: Final[Mapping[str, tuple[Form, ...]]] = {
    "date": (
        form(_parse_date, ("from", "string")),
        form(_take_date, ("from", "temporal")),
        form(_build_date, ("year", "number"), ("month", "number"), ("day", "number")),
    ),
    "time": (
        form(_parse_time, ("from", "string")),
        form(_take_time, ("from", "temporal")),
        form(
            _build_time,
            ("hour", "number"),
            ("minute", "number"),
            ("second", "number"),
            ("offset", "days and time duration?"),
            required=3,
        ),
    ),
    "date and time": (
        form(_parse_date_time, ("from", "string")),
        form(_take_date_time, ("from", "temporal")),
        form(_join, ("date", "temporal"), ("time", "time")),
        form(_join_in_zone, ("date", "temporal"), ("time", "time"), ("timezone", "string")),
        form(_move_to_zone, ("date", "temporal"), ("timezone", "string")),
        form(_build_date_time, *_PARTS, ("offset", "days and time duration?"), required=6),
        form(_build_date_time, *_PARTS, ("hour offset", "number?")),
        form(_build_date_time, *_PARTS, ("timezone", "string?")),
    ),
    "duration": (form(_parse_duration, ("from", "string")), form(_take_duration, ("from", "duration"))),
    "cycle": (
        form(_write_endless_cycle, ("interval", "duration")),
        form(_write_cycle, ("repetitions", "number?"), ("interval", "duration")),
    ),
    "years and months duration": (form(_count_months_between, ("from", "temporal"), ("to", "temporal")),),
    "now": (form(_tell_now),),
    "today": (form(_tell_today),),
    "day of year": (form(_tell_day_of_year, ("date", "temporal")),),
    "day of week": (form(_tell_day_of_week, ("date", "temporal")),),
    "month of year": (form(_tell_month_of_year, ("date", "temporal")),),
    "week of year": (form(_tell_week_of_year, ("date", "temporal")),),
    "last day of month": (form(_tell_last_day_of_month, ("date", "temporal")),),
    "abs": (form(_get_size, ("n", "duration")),),
}
"""DMN 10.3.4.1, 10.3.4.8 and 10.3.4.11; `last day of month` and `date and time(date, timezone)` are Camunda's."""
