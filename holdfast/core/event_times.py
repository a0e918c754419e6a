"""When what an event tells of arrived. A turn has one time, by which the program lives; its events may have come before it.

What waited, because its node was down, another one held the execution, or the execution was blocked, has arrived before its
turn was taken. The event that records it then says so (`Event.arrived_at`), for people: programs, replay and timers go by
the time of the turn. What follows from an event in the same turn is shown with its time. Shown times never go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.core.events import GIVEN, Event, HistoryTurn, WorkflowTerminated
from holdfast.core.instants import SECOND, Instant, Micros

TOLERANCE: Final[Micros] = SECOND // 20
"""By how much the time of a turn may differ from that of an arrival without being told: the usual way takes less."""

_ARRIVING: Final[frozenset[type[Event]]] = GIVEN | {WorkflowTerminated}
"""Events that follow from no other: something arrived."""


def place_arrival(arrived: Instant, earliest: Instant, now: Instant) -> Instant:
    """The time to show for what arrived at `arrived` (0: unknown) and is taken at `now`; never before `earliest`.

    It is `now` where that is right within the tolerance, and where the arrival is later: then clocks differ, or were set.
    """
    if not arrived:
        return now
    placed = max(arrived, earliest)
    return placed if now - placed > TOLERANCE else now


def list_times(turn: HistoryTurn) -> Iterator[Instant]:
    """The time to show for each event of a turn, in order."""
    shown, latest = turn.at, 0
    for event in turn.events:
        if type(event) in _ARRIVING:
            shown = turn.at if event.arrived_at is None else event.arrived_at
        latest = max(latest, shown)
        yield latest
