"""Dates, times and durations from their texts.

DMN 10.3.4.1: the lexical forms of XML Schema, a local time or a date and time also with an `@` and the IANA id of its zone.
Camunda leaves seconds out, and writes an offset with the id of its zone in brackets behind it.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from holdfast.feel.temporal.building import (
    LONGEST_MONTHS,
    LONGEST_NANOSECONDS,
    count_day,
    count_local,
    make_date,
    make_date_time,
    make_time,
    settle_date_time,
)
from holdfast.feel.temporal.calendar import LAST_YEAR
from holdfast.feel.temporal.texts import DAY, HOUR, MINUTE, SECOND
from holdfast.feel.temporal.values import (
    DateTimeValue,
    DateValue,
    DaysTimeDuration,
    Duration,
    ExactDate,
    TimeValue,
    YearsMonthsDuration,
)
from holdfast.feel.temporal.zones import find_offset, find_zone, read_offset

LONGEST_TEXT: Final = 128
"""Characters: no value needs as many, and none is made of more."""

# Four digits, or more without a zero in front.
_DATE_FORM: Final = r"(-?)([1-9][0-9]{3,8}|0[0-9]{3})-([0-9]{2})-([0-9]{2})"
_TIME_FORM: Final = r"([0-9]{2}):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]+))?)?([Zz+\-@].*)?"

_DATE: Final = re.compile(_DATE_FORM)
_TIME: Final = re.compile("T?" + _TIME_FORM)
_DATE_TIME: Final = re.compile(f"{_DATE_FORM}T{_TIME_FORM}")
_YEARS_MONTHS: Final = re.compile(r"(-?)P(?=[0-9])(?:([0-9]+)Y)?(?:([0-9]+)M)?")
_DAYS_TIME: Final = re.compile(
    r"(-?)P(?=[0-9T])(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]*))?S)?)?"
)


def parse_temporal(text: str) -> Any:
    """What an `@"…"` literal stands for: a date, a time, a date and time or a duration; None if it is none of them."""
    if text.startswith(("P", "-P")):
        return parse_duration(text)
    if text[2:3] == ":":
        return parse_time(text)
    return parse_date(text) or parse_date_time(text)


def parse_date(text: str) -> DateValue | None:
    """`2017-12-31`, `-2017-12-31` or `99999-12-31`; None if it is no date."""
    found = _DATE.fullmatch(text)
    return None if found is None else _read_date(*found.groups())


def parse_time(text: str) -> TimeValue | None:
    """`23:59:00`, with a fraction and a zone if need be; a `T` before it, as Camunda writes it, is welcome."""
    found = _TIME.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if found is None:
        return None
    hour, minute, second, fraction, zone_text = found.groups("")
    zone = _read_zone(zone_text)
    clock = _read_clock(hour, minute, second, fraction)
    if clock is None or (zone is None and zone_text):
        return None
    return make_time(clock % DAY, zone)


def parse_date_time(text: str) -> DateTimeValue | None:
    """A date, a `T` and a time; a date alone is its midnight. None if it is neither."""
    if text.endswith("]"):
        return _parse_bracketed(text)
    found = _DATE_TIME.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if found is None:
        day = parse_date(text)
        return None if day is None else make_date_time(count_day(day) * DAY, None)
    day = _read_date(*found.groups()[:4])
    hour, minute, second, fraction, zone_text = found.groups("")[4:]
    zone = _read_zone(zone_text)
    clock = _read_clock(hour, minute, second, fraction)
    if day is None or clock is None or (zone is None and zone_text):
        return None
    if type(day) is date and clock < DAY and not clock % 1000 and type(zone) is not ZoneInfo:
        micros = clock % SECOND // 1000
        return datetime.combine(day, time(int(hour), int(minute), int(second or 0), micros, zone))
    local = count_day(day) * DAY + clock
    if local >= DAY * (_LAST_DAY + 1):
        return None
    return settle_date_time(local, zone)


def _parse_bracketed(text: str) -> DateTimeValue | None:
    """`2018-04-29T09:30:00+02:00[Europe/Berlin]`: in that zone, if it has that offset then; else None."""
    plain, _, name = text[:-1].partition("[")
    moment, zone = parse_date_time(plain), find_zone(name)
    if moment is None or zone is None or type(moment.tzinfo) is not timezone:
        return None
    local = count_local(moment)
    offset = find_offset(moment.tzinfo, local)
    folds = (fold for fold in (0, 1) if find_offset(zone, local, fold) == offset)
    return next((settle_date_time(local, zone, fold) for fold in folds), None)


def parse_duration(text: str) -> Duration | None:
    """`P1DT2H` or `P1Y2M`, negative ones with a minus before the P; None if it is no duration, or one of both kinds."""
    if len(text) > LONGEST_TEXT:
        return None
    found = _DAYS_TIME.fullmatch(text)
    if found is not None:
        sign, days, hours, minutes, seconds, fraction = found.groups()
        size = int(days or 0) * DAY + int(hours or 0) * HOUR + int(minutes or 0) * MINUTE
        size += int(seconds or 0) * SECOND + _read_fraction(fraction)
        return DaysTimeDuration(-size if sign else size) if size <= LONGEST_NANOSECONDS else None
    found = _YEARS_MONTHS.fullmatch(text)
    if found is not None:
        sign, years, months = found.groups()
        size = int(years or 0) * 12 + int(months or 0)
        return YearsMonthsDuration(-size if sign else size) if size <= LONGEST_MONTHS else None
    return None


def _read_date(sign: str, year: str, month: str, day: str) -> DateValue | None:
    if sign:
        return None if year == "0000" else make_date(-int(year), int(month), int(day))
    return make_date(int(year), int(month), int(day))


def _read_clock(hour: str, minute: str, second: str, fraction: str) -> int | None:
    """Nanoseconds since midnight. XML Schema: 24:00:00 is the midnight at the end of the day."""
    size = (int(hour) * 3600 + int(minute) * 60 + int(second or 0)) * SECOND + _read_fraction(fraction)
    return size if size <= DAY else None


def _read_fraction(digits: str | None) -> int:
    """Nanoseconds; what is smaller is cut off."""
    return int(digits[:9].ljust(9, "0")) if digits else 0


def _read_zone(text: str) -> tzinfo | None:
    if not text:
        return None
    return find_zone(text[1:]) if text[0] == "@" else read_offset(text)


_LAST_DAY: Final = count_day(ExactDate(LAST_YEAR, 12, 31))
