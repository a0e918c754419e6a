"""Assertions about histories; the message of one that fails shows the history."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, Final, TypeAlias

from holdfast.core.events import CLOSING, GIVEN, RECORDED, Event, WorkflowStarted
from holdfast.engine.views import RecordedEvent
from holdfast.errors import InvalidArguments
from holdfast.testing.histories import HistorySource, format_history, list_fields, load_history, read_fields

EventKind: TypeAlias = str | type[Event]
"""The kind of an event: its class, or its name, such as "TimerFired" or, as in files, "timer_fired"."""

_KINDS: Final = {name: one for one in GIVEN | RECORDED for name in (one.__name__, str(one.__struct_config__.tag))}
_POSITION_FIELDS: Final = ("sequence", "at")


class EventMatcher:
    """Matches events of a kind by some of their fields; made by `event(…)`."""

    def __init__(self, kind: EventKind | None, fields: Mapping[str, Any]) -> None:
        self._kind = None if kind is None else _find_kind(kind)
        self.fields = fields
        if self._kind is not None:
            _check_fields(self._kind, fields)

    def matches(self, recorded: RecordedEvent) -> bool:
        """Whether an event of a history is of that kind and has those fields."""
        if self._kind is not None and type(recorded.event) is not self._kind:
            return False
        found = read_fields(recorded.event) | {"sequence": recorded.sequence, "at": recorded.at}
        return all(name in found and _fits(found[name], wanted) for name, wanted in self.fields.items())

    def __str__(self) -> str:
        name = "an event" if self._kind is None else self._kind.__name__
        return f"{name}({', '.join(f'{key}={value!r}' for key, value in self.fields.items())})" if self.fields else name


Expected: TypeAlias = EventKind | EventMatcher | EllipsisType


def event(kind: EventKind, **fields: Any) -> EventMatcher:
    """For `assert_history`: an event of that kind with these fields, for instance `event("ActivityScheduled", name="pay")`.

    Payloads (`input`, `result`, `value`) are compared as plain JSON values, `due` and `at` as date-times; of a dict, such
    as `failure={"type": "ValueError"}`, only the keys that are given.
    """
    return EventMatcher(kind, fields)


def find_events(history: HistorySource, kind: EventKind | None = None, **fields: Any) -> list[RecordedEvent]:
    """The events of a kind with these fields, in order."""
    matcher = EventMatcher(kind, fields)
    return [recorded for recorded in load_history(history).events if matcher.matches(recorded)]


def count_events(history: HistorySource, kind: EventKind | None = None, **fields: Any) -> int:
    """How many events of a kind with these fields there are."""
    return len(find_events(history, kind, **fields))


def assert_history(history: HistorySource, expected: Sequence[Expected]) -> None:
    """The history is exactly this: names of events, `event(…)` with fields, and `...` for any number of events.

    assert_history(history, ["WorkflowStarted", ..., event("ActivityCompleted", result=3), "WorkflowCompleted"])
    """
    loaded = load_history(history)
    problem = _find_problem(_split(expected), loaded.events)
    if problem is not None:
        mark, message = problem
        raise AssertionError(f"{message}\n\n{format_history(loaded, mark)}")


def assert_no_gaps(history: HistorySource) -> None:
    """The history is whole: it begins with its start, counts up by one, time never goes back, nothing follows its end."""
    loaded = load_history(history)
    events = loaded.events
    for expected, recorded in enumerate(events, start=1):
        problem = None
        if recorded.sequence != expected:
            problem = f"Expected event {expected} next, but it is {recorded.sequence}."
        elif (expected == 1) != isinstance(recorded.event, WorkflowStarted):
            problem = f"Expected WorkflowStarted to be event 1 and no other, but event {expected} is {recorded.kind}."
        elif expected > 1 and recorded.at < events[expected - 2].at:
            problem = f"Expected time to go on, but event {expected} is earlier than the one before."
        elif type(recorded.event) in CLOSING and expected < len(events):
            problem = f"Expected {recorded.kind} to be the last event, but {len(events) - expected} follow."
        if problem is not None:
            raise AssertionError(f"{problem}\n\n{format_history(loaded, recorded.sequence)}")


# --- matching ---


def _split(expected: Sequence[Expected]) -> list[list[EventMatcher]]:
    """Split what is expected at each `...` into runs of consecutive events."""
    runs: list[list[EventMatcher]] = [[]]
    for one in expected:
        if isinstance(one, EllipsisType):
            runs.append([])
        else:
            runs[-1].append(one if isinstance(one, EventMatcher) else EventMatcher(one, {}))
    return runs


def _find_problem(runs: list[list[EventMatcher]], events: list[RecordedEvent]) -> tuple[int | None, str] | None:
    """The first difference between a history and what is expected: its sequence, and a message."""
    first, *others = runs
    problem = _compare(first, events, 0)
    if problem is not None or not others:
        return problem or _find_surplus(events, len(first))
    place = len(first)
    for run in others[:-1]:
        found = next((at for at in range(place, len(events)) if _compare(run, events, at) is None), None)
        if found is None:
            return _after(place), f"Expected {_list(run)} after event {place}, but it is not there."
        place = found + len(run)
    last = others[-1]
    at = len(events) - len(last)
    if at < place:
        return _after(place), f"Expected {_list(last)} at the end, after event {place}, but too few events follow."
    return _compare(last, events, at)


def _compare(run: list[EventMatcher], events: list[RecordedEvent], at: int) -> tuple[int | None, str] | None:
    for offset, matcher in enumerate(run):
        place = at + offset
        if place >= len(events):
            return None, f"Expected event {place + 1} to be {matcher}, but the history ends before it."
        if not matcher.matches(events[place]):
            found = events[place]
            return found.sequence, f"Expected event {found.sequence} to be {matcher}, but it is {_describe(found, matcher)}."
    return None


def _describe(found: RecordedEvent, matcher: EventMatcher) -> str:
    fields = read_fields(found.event) | {"sequence": found.sequence, "at": found.at}
    shown = ", ".join(f"{name}={fields[name]!r}" for name in matcher.fields if name in fields)
    return f"{found.kind}({shown})" if shown else found.kind


def _find_surplus(events: list[RecordedEvent], length: int) -> tuple[int, str] | None:
    if len(events) == length:
        return None
    more = events[length]
    return more.sequence, f"Expected the history to end after event {length}, but it goes on with {more.kind}."


def _after(place: int) -> int | None:
    return place or None


def _list(run: list[EventMatcher]) -> str:
    return ", ".join(str(matcher) for matcher in run) or "nothing"


def _fits(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(key in found and _fits(found[key], value) for key, value in wanted.items())
    return bool(found == wanted)


# --- checking what is asked for ---


def _find_kind(kind: EventKind) -> type[Event]:
    if not isinstance(kind, str):
        return kind
    found = _KINDS.get(kind)
    if found is None:
        near = difflib.get_close_matches(kind, _KINDS, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"The events are: {', '.join(sorted(_KINDS))}."
        raise InvalidArguments(f"Expected the name of an event, but '{kind}' is none. {hint}")
    return found


def _check_fields(kind: type[Event], fields: Mapping[str, Any]) -> None:
    known = (*list_fields(kind), *_POSITION_FIELDS)
    for name in fields:
        if name not in known:
            raise InvalidArguments(f"Expected a field of {kind.__name__}, but '{name}' is none. It has: {', '.join(known)}.")
