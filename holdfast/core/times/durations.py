"""Durations of ISO 8601: `PT10M`, `P1DT12H`, `P1M`. Years, months, weeks and days follow the calendar of a time zone."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import msgspec

from holdfast.core.instants import LONGEST, SECOND, Instant, Micros
from holdfast.core.safe_texts import LONGEST_SHOWN, show
from holdfast.core.times.zones import to_instant, to_local
from holdfast.errors import InvalidSchedule

_DAY: Final = 86_400 * SECOND
_MONTH: Final = 2_629_746 * SECOND
"""The mean length of a month: that of 400 years, by 4,800."""
_NUMBER: Final = r"(\d{1,9}(?:[.,]\d{1,9})?)"
_WHOLE: Final = r"(\d{1,9})"
_PATTERN: Final = re.compile(
    rf"P(?:{_WHOLE}Y)?(?:{_WHOLE}M)?(?:{_WHOLE}W)?(?:{_WHOLE}D)?(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII,
)


class Span(msgspec.Struct, frozen=True, gc=False):
    """A length of time: months and days of a calendar, and behind them microseconds."""

    months: int = 0
    days: int = 0
    micros: Micros = 0

    @property
    def about(self) -> Micros:
        """How long it is on average."""
        return self.months * _MONTH + self.days * _DAY + self.micros

    def add_to(self, base: Instant, times: int, zone: str) -> Instant:
        """The instant that lies so many spans behind `base`. Raises ValueError beyond the calendar."""
        if self.months or self.days:
            local = to_local(base, zone).add(months=self.months * times, days=self.days * times)
            base = to_instant(local, zone)
        return base + self.micros * times


def parse_duration(text: str) -> Span:
    """A duration of ISO 8601, above zero and of a hundred years at most. Raises InvalidSchedule."""
    found = _PATTERN.fullmatch(text.strip())
    if found is None or text.strip().endswith(("P", "T")):
        raise _refused(text, "it is none")
    years, months, weeks, days, *rest = found.groups()
    hours, minutes, seconds = (Decimal((one or "0").replace(",", ".")) for one in rest)
    micros = int((hours * 3600 + minutes * 60 + seconds) * SECOND)
    span = Span(12 * int(years or 0) + int(months or 0), 7 * int(weeks or 0) + int(days or 0), micros)
    if not 0 <= span.about <= LONGEST:
        raise _refused(text, "it is longer than a hundred years")
    return span


def _refused(text: str, why: str) -> InvalidSchedule:
    return InvalidSchedule(
        f"Expected a duration of ISO 8601, but {show(text, repr, LONGEST_SHOWN)} is not allowed: {why}. "
        "Write for instance 'PT10M', 'P1D' or 'P1M'."
    )
