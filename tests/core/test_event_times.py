"""The times that are shown for events: those of arrivals, as far as they are known, and never going back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import codec
from holdfast.core.event_times import TOLERANCE, list_times, place_arrival
from holdfast.core.events import ActivityScheduled, AnyEvent, HistoryTurn, SignalReceived, TimerFired, WorkflowTerminated
from holdfast.core.instants import SECOND, Instant
from holdfast.core.payloads import NULL

LATE = SECOND
"""Well beyond the tolerance."""


def make_turn(at: Instant, *arrived: Instant | None) -> HistoryTurn:
    """A turn of signals, each followed by an event of the workflow; None stands for an arrival that tells no time."""
    made: list[AnyEvent] = []
    for one in arrived:
        made += [SignalReceived(name="s", value=NULL, arrived_at=one), ActivityScheduled(number=1, name="a", input=NULL)]
    return HistoryTurn(1, at, tuple(made))


@given(
    st.lists(
        st.tuples(st.integers(0, 3 * LATE), st.lists(st.integers(0, 10 * LATE), min_size=1, max_size=4)),
        min_size=1,
        max_size=6,
    )
)
def test_shown_times_never_go_back_and_each_arrival_is_right_or_as_late_as_what_came_before(
    planned: list[tuple[int, list[int]]],
) -> None:
    """Turns by how much later they are, with the times of what arrived for them: 0 if unknown, or in the future."""
    now, before, latest = 0, 0, 0
    for pause, arrivals in planned:
        now += pause
        earliest, told = before, list[Instant | None]()
        for arrived in arrivals:
            earliest = place_arrival(arrived, earliest, now)
            told.append(earliest if earliest < now else None)
        shown = list(list_times(make_turn(now, *told)))

        assert all(one <= two for one, two in pairwise([latest, *shown]))
        assert shown[::2] == shown[1::2], "what follows from an arrival has its time"
        for arrived, at in zip(arrivals, shown[::2], strict=True):
            is_right = arrived <= at <= arrived + TOLERANCE
            is_unknown = (not arrived or arrived > now) and at == now
            is_pushed = at - max(latest, before) <= TOLERANCE  # nothing may be shown before these
            assert is_right or is_unknown or is_pushed
            latest = at
        before = now


def test_an_arrival_within_the_tolerance_has_the_time_of_its_turn() -> None:
    now = 100 * SECOND

    assert place_arrival(now - TOLERANCE, 0, now) == now
    assert place_arrival(now - TOLERANCE - 1, 0, now) == now - TOLERANCE - 1
    assert place_arrival(now + LATE, 0, now) == now, "clocks differ, or were set"
    assert place_arrival(0, 0, now) == now, "an older node put it"
    assert place_arrival(now - 2 * LATE, now - LATE, now) == now - LATE


def test_the_next_arrival_that_tells_no_time_has_that_of_the_turn() -> None:
    turn = make_turn(10 * SECOND, SECOND, None)
    ended = HistoryTurn(1, 10 * SECOND, (*make_turn(10 * SECOND, SECOND).events, WorkflowTerminated(reason="")))

    assert list(list_times(turn)) == [SECOND, SECOND, 10 * SECOND, 10 * SECOND]
    assert list(list_times(ended)) == [SECOND, SECOND, 10 * SECOND]


def test_the_time_of_an_arrival_is_written_only_where_it_is_told() -> None:
    assert b"arrived_at" not in codec.encode(TimerFired(number=1))
    body = codec.encode([TimerFired(number=1, arrived_at=SECOND)])

    assert codec.decode_events(body, codec.SCHEMA) == (TimerFired(number=1, arrived_at=SECOND),)
