"""The text of a temporal value, as `string()` gives it."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

from holdfast.feel.temporal.texts import write_date, write_time


def to_text(value: Any) -> str:
    """The canonical text of a date, a time, a date and time or a duration."""
    kind = type(value)
    if kind is date:
        return write_date(value.year, value.month, value.day)
    if kind is datetime:
        return f"{write_date(value.year, value.month, value.day)}T{_write_clock(value)}"
    if kind is time:
        return _write_clock(value)
    return str(value)


def _write_clock(value: time | datetime) -> str:
    return write_time(value.hour, value.minute, value.second, value.microsecond * 1000, value.tzinfo)
