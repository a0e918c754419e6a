"""Zones by their ids and offsets, and what they are ahead of UTC at a time."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from holdfast.feel.temporal.calendar import CYCLE_DAYS
from holdfast.feel.temporal.texts import DAY, SECOND

LARGEST_OFFSET: Final = 14 * 3600
"""Seconds. DMN 10.3.2.13, as XML Schema: a time offset is in [-PT14H..PT14H]."""

_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_OFFSET: Final = re.compile(r"([+-])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?")
# Files beside the zones: they say what this machine is set to, or count leap seconds.
_NO_ZONES: Final = ("localtime", "posixrules", "Factory", "posix/", "right/")
_FIRST_DAY: Final = date(2, 1, 1).toordinal()
_LAST_DAY: Final = date(9998, 12, 31).toordinal()
_WINTER_AND_SUMMER: Final = (date(2024, 1, 1), date(2024, 7, 1))


@lru_cache(maxsize=1024)
def find_zone(name: str) -> ZoneInfo | None:
    """The zone with an IANA id; None if there is none."""
    if len(name) > 64 or not _ID.fullmatch(name) or name.startswith(_NO_ZONES):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


@lru_cache(maxsize=1024)
def make_offset(seconds: int) -> timezone | None:
    """An offset as a zone; None if it is larger than an offset may be."""
    if abs(seconds) > LARGEST_OFFSET:
        return None
    return timezone(timedelta(seconds=seconds)) if seconds else UTC


def read_offset(text: str) -> timezone | None:
    """`Z`, `+02:00` or `+02:45:55` as a zone; None if it is none of them."""
    if text in {"Z", "z"}:
        return UTC
    found = _OFFSET.fullmatch(text)
    if found is None:
        return None
    sign, hours, minutes, seconds = found.groups("0")
    if int(minutes) > 59 or int(seconds) > 59:
        return None
    size = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return make_offset(-size if sign == "-" else size)


def find_offset(zone: tzinfo, local: int, fold: int = 0) -> int:
    """Nanoseconds that a zone is ahead of UTC when its clocks show this; `fold` tells the first time from the second."""
    if type(zone) is timezone:
        return _count(zone.utcoffset(None))
    ordinal, rest = divmod(local, DAY)
    seconds = rest // SECOND
    clock = time(seconds // 3600, seconds // 60 % 60, seconds % 60, fold=fold)
    return _count(zone.utcoffset(datetime.combine(date.fromordinal(ordinal - _find_shift(ordinal)), clock, zone)))


@lru_cache(maxsize=1024)
def find_standard_offset(zone: tzinfo) -> int:
    """Nanoseconds that a zone is ahead of UTC when it saves no daylight: for a time, which has no date to look it up by."""
    if type(zone) is timezone:
        return _count(zone.utcoffset(None))
    return min(_count(zone.utcoffset(datetime.combine(day, time(12), zone))) for day in _WINTER_AND_SUMMER)


def find_local(instant: int, zone: tzinfo) -> tuple[int, int]:
    """What the clocks of a zone show at an instant, as nanoseconds since day 0, and the fold."""
    if type(zone) is timezone:
        return instant + _count(zone.utcoffset(None)), 0
    ordinal, clock = divmod(instant, DAY)
    midnight = datetime.combine(date.fromordinal(ordinal - _find_shift(ordinal)), time(), zone)
    local = zone.fromutc(midnight + timedelta(seconds=clock // SECOND))
    return instant + _count(local.utcoffset()), local.fold


def _find_shift(ordinal: int) -> int:
    """How far a day is from one like it that Python has: 400 years are whole weeks, so the rules of a zone fall alike."""
    if _FIRST_DAY <= ordinal <= _LAST_DAY:
        return 0
    nearest = _FIRST_DAY if ordinal < _FIRST_DAY else _LAST_DAY - CYCLE_DAYS
    return (ordinal - nearest) // CYCLE_DAYS * CYCLE_DAYS


def _count(offset: timedelta | None) -> int:
    return 0 if offset is None else (offset.days * 86_400 + offset.seconds) * SECOND + offset.microseconds * 1000
