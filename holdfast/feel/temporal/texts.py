"""How the parts of dates, times and durations are written: as XML Schema does, with an `@` before the id of a zone."""

from __future__ import annotations

from datetime import timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

SECOND: Final = 1_000_000_000
"""All sums are done in whole nanoseconds."""
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


def write_date(year: int, month: int, day: int) -> str:
    """At least four digits for the year, with a minus before it where it is negative."""
    sign, digits = ("-", -year) if year < 0 else ("", year)
    return f"{sign}{digits:04}-{month:02}-{day:02}"


def write_time(hour: int, minute: int, second: int, nanosecond: int, zone: tzinfo | None) -> str:
    """With as many digits of the second as it has, and the zone behind it."""
    text = f"{hour:02}:{minute:02}:{second:02}"
    if nanosecond:
        text += f".{nanosecond:09}".rstrip("0")
    return text if zone is None else text + write_zone(zone)


def write_zone(zone: tzinfo) -> str:
    """A zone as it stands behind a time: `@Europe/Paris`, `Z`, `+02:00` or `+02:45:55`."""
    if isinstance(zone, ZoneInfo):
        return f"@{zone.key}"
    offset = zone.utcoffset(None) or timedelta()
    if not offset:
        return "Z"
    sign, offset = ("-", -offset) if offset < timedelta() else ("+", offset)
    minutes, seconds = divmod(offset.seconds, 60)
    text = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def write_days_time(nanoseconds: int) -> str:
    """The parts that are not zero; `PT0S` if all are."""
    if not nanoseconds:
        return "PT0S"
    sign, rest = ("-P", -nanoseconds) if nanoseconds < 0 else ("P", nanoseconds)
    days, rest = divmod(rest, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds, fraction = divmod(rest, SECOND)
    parts = [f"{hours}H"] if hours else []
    if minutes:
        parts.append(f"{minutes}M")
    if fraction:
        parts.append(f"{seconds}." + f"{fraction:09}".rstrip("0") + "S")
    elif seconds:
        parts.append(f"{seconds}S")
    return sign + (f"{days}D" if days else "") + ("T" + "".join(parts) if parts else "")


def write_years_months(months: int) -> str:
    """The parts that are not zero; `P0M` if both are."""
    if not months:
        return "P0M"
    sign, rest = ("-P", -months) if months < 0 else ("P", months)
    years, rest = divmod(rest, 12)
    return sign + (f"{years}Y" if years else "") + (f"{rest}M" if rest else "")
