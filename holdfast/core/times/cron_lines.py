"""Cron lines: five fields, or six with seconds first; or a name such as `@daily`.

A line is a set of local times, each of which fires once: in the hour that a clock shows twice, the first time; in one that a
clock skips, right behind the gap, together with whatever else falls there.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from datetime import datetime
from functools import lru_cache
from typing import Final

from cronsim import CronSim, CronSimError
from whenever import PlainDateTime

from holdfast.core.instants import Instant
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.times.zones import to_instant, to_local
from holdfast.errors import InvalidSchedule

NAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
LONGEST_LINE: Final = 1_000
ALLOWED: Final = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, L or LW",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT",
}
"""What each field may say, beside `*`, ranges, lists and steps."""
_LAST_YEAR: Final = 2200


def check_line(line: str) -> str:
    """A cron line that can be read and fires at some time. Raises InvalidSchedule, which says what is allowed."""
    text = line.strip()
    if text.startswith("@") and text not in NAMES:
        raise _refused(line, f"of names only {', '.join(NAMES)} are known")
    if len(text) > LONGEST_LINE:
        raise _refused(text[:20], f"it has more than {LONGEST_LINE} characters")
    try:
        next(CronSim(NAMES.get(text, text), datetime.fromisoformat("2000-01-01")))
    except CronSimError as error:
        raise _refused(line, _explain(NAMES.get(text, text).split(), str(error))) from None
    except StopIteration:
        raise _refused(line, "it never fires") from None
    except (AssertionError, ValueError, TypeError):
        raise _refused(line, "a field cannot be read") from None
    return text


def _explain(fields: list[str], error: str) -> str:
    """Which field is wrong and why, of a line that was refused with an error that names the field alone."""
    if len(fields) not in (5, 6):
        return f"it has the wrong number of fields, {len(fields)} instead of 5 or 6"
    name = error.removeprefix("Bad ")
    named = dict(zip(list(ALLOWED)[-len(fields) :], fields, strict=True))
    if name not in named:
        return error
    if name == "day-of-month" and _can_be_read([*fields[:-2], "*", fields[-1]]):
        return f"no such day exists, since no month of '{named['month']}' has a day '{named[name]}'"
    return f"its {name} is {show(named[name], repr, LONGEST_SHOWN)}, and allowed are {ALLOWED[name]}"


def _can_be_read(fields: list[str]) -> bool:
    try:
        CronSim(" ".join(fields), datetime.fromisoformat("2000-01-01"))
    except CronSimError:
        return False
    return True


def _refused(line: str, why: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"Expected a cron line that fires at some time, but {show(line, repr, LONGEST_SHOWN)} is not allowed: {why}. Write "
        "'minute hour day-of-month month day-of-week', for instance '30 9 * * MON-FRI'."
    )


def list_times(line: str, zone: str, after: Instant) -> Iterator[Instant]:
    """When the line fires, later than `after`, in order; ends if it never does again."""
    times = copy(_parse(line))
    times.dt = to_local(after, zone).to_stdlib().replace(microsecond=0)
    try:
        for found in times:
            if found.year > _LAST_YEAR:
                return
            instant = to_instant(PlainDateTime(found), zone)
            if instant > after:
                yield instant
                after = instant
    except (ValueError, OverflowError):  # beyond the calendar
        return


@lru_cache(maxsize=1024)
def _parse(line: str) -> CronSim:
    """A line that was checked, at some local time: to be copied, and given another."""
    return CronSim(NAMES.get(line, line), datetime.fromisoformat("2000-01-01"))
