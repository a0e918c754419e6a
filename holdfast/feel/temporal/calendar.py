"""The Gregorian calendar beyond Python's years: days are counted as `date.toordinal` does, forwards and backwards."""

from __future__ import annotations

from datetime import date
from typing import Final

CYCLE_YEARS: Final = 400
CYCLE_DAYS: Final = 146_097
"""After 400 years the calendar is the same again, down to the day of the week."""
LAST_YEAR: Final = 999_999_999
"""Years go from the negative of this to this. XML Schema leaves the bound to those who implement it."""
_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def to_ordinal(year: int, month: int, day: int) -> int:
    """The number of a day, 1 for the first of the year 1. Raises ValueError if there is no such day."""
    cycles, rest = divmod(year - 1, CYCLE_YEARS)
    return date(rest + 1, month, day).toordinal() + cycles * CYCLE_DAYS


def from_ordinal(ordinal: int) -> tuple[int, int, int]:
    """Year, month and day of a numbered day."""
    cycles, rest = divmod(ordinal - 1, CYCLE_DAYS)
    found = date.fromordinal(rest + 1)
    return found.year + cycles * CYCLE_YEARS, found.month, found.day


def count_days(year: int, month: int) -> int:
    """How many days a month has in that year, 28 to 31."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else _LENGTHS[month - 1]


def add_months(year: int, month: int, day: int, months: int) -> tuple[int, int, int]:
    """The same day so many months later; the last one of the month if it does not have that day."""
    years, rest = divmod(month - 1 + months, 12)
    year, month = year + years, rest + 1
    return year, month, min(day, count_days(year, month))


def find_twin(year: int, month: int, day: int) -> date:
    """A date that Python has, with the same day of the week and the same week of the year."""
    return date(2000 + year % CYCLE_YEARS, month, day)
