"""Times as other engines write them, in the words of this one: cron lines of Quartz, endless cycles, named zones."""

from __future__ import annotations

import re
from typing import Final

from holdfast.bpmn.model import TimerKind

_QUOTED: Final = re.compile(r"""(["'])([^"']+)\1""")
"""As engines write a time whose timers are expressions of their own language: `"PT10M"`."""
_ENDLESS: Final = re.compile(r"R-1/")
_ZONED: Final = re.compile(r"(.*(?:Z|[+-]\d\d:?\d\d))\[[\w/+-]+\]")
_QUARTZ_DAYS: Final = re.compile(r"[1-7](?:[-,][1-7])*")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def normalize_time(kind: TimerKind, text: str, *, is_quartz: bool) -> str:
    """The same time as `core.times` reads it; the text itself where there is nothing to change.

    `is_quartz`: the file is for an engine whose cron lines count the days of the week from Sunday as 1.
    """
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        text = quoted.group(2)
    if kind is TimerKind.DATE:
        found = _ZONED.fullmatch(text)
        return found.group(1) if found else text
    if kind is not TimerKind.CYCLE:
        return text
    if _ENDLESS.match(text):
        return f"R/{text[4:]}"
    fields = text.split()
    if len(fields) not in (6, 7):
        return text
    if len(fields) == 7 and fields[6] == "*":
        fields.pop()
    if is_quartz and _QUARTZ_DAYS.fullmatch(fields[5]):
        fields[5] = re.sub(r"\d", lambda day: _DAYS[int(day.group()) - 1], fields[5])
    # "No specific value": Quartz wants it in one of the two fields for days.
    changed = ["*" if field == "?" else field for field in fields]
    return text if changed == text.split() else " ".join(changed)
