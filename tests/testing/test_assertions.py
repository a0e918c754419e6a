"""Facts about histories, and how they read when they do not hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.core.events import TimerFired
from holdfast.engine.views import History
from holdfast.errors import InvalidArguments
from holdfast.testing import assert_history, assert_no_gaps, count_events, event, find_events, format_history, load_history
from tests.testing.golden import FOLDER

SHIP = load_history(FOLDER / "ship.json")
SHIPPED = [
    "WorkflowStarted",
    "ActivityScheduled",
    "ActivityCompleted",
    "TimerStarted",
    "TimerFired",
    "WorkflowCompleted",
]
DAY_TWO = datetime(2030, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "expected",
    [
        SHIPPED,
        [*SHIPPED[:2], ..., *SHIPPED[4:]],
        [...],
        [..., ...],
        [..., "WorkflowCompleted"],
        ["WorkflowStarted", ...],
        [..., "TimerStarted", "TimerFired", ...],
        [..., "ActivityScheduled", ..., "TimerFired", ..., "WorkflowCompleted", ...],
        ["workflow_started", ..., TimerFired, "workflow_completed"],
        [event("WorkflowStarted", workflow="ship", input=["pen"]), ...],
        [..., event("ActivityCompleted", number=1, result="pen reserved", sequence=3), ...],
        [
            ...,
            event("TimerStarted", due=DAY_TWO),
            event("TimerFired", at=DAY_TWO),
            event("WorkflowCompleted", result="shipped"),
        ],
    ],
)
def test_a_history_that_is_as_expected_passes(expected: Sequence[Any]) -> None:
    assert_history(SHIP, expected)


@pytest.mark.parametrize(
    ("expected", "message", "marked"),
    [
        (SHIPPED[:4], "to end after event 4, but it goes on with TimerFired", 5),
        ([*SHIPPED, "TimerFired"], "Expected event 7 to be TimerFired, but the history ends before it", None),
        (["WorkflowStarted", "TimerStarted", ...], "Expected event 2 to be TimerStarted, but it is ActivityScheduled", 2),
        ([..., "SignalReceived", ...], "Expected SignalReceived after event 0, but it is not there", None),
        ([..., "TimerFired", ..., "TimerStarted", ...], "Expected TimerStarted after event 5, but it is not there", 5),
        ([..., "TimerFired"], "Expected event 6 to be TimerFired, but it is WorkflowCompleted", 6),
        ([..., "WorkflowCompleted", ..., "WorkflowCompleted"], "at the end, after event 6, but too few events follow", 6),
        (
            ["WorkflowStarted", event("ActivityScheduled", name="charge"), ...],
            r"Expected event 2 to be ActivityScheduled\(name='charge'\), but it is ActivityScheduled\(name='reserve'\)",
            2,
        ),
    ],
)
def test_a_history_that_is_not_as_expected_is_shown(expected: Sequence[Any], message: str, marked: int | None) -> None:
    with pytest.raises(AssertionError, match=message) as caught:
        assert_history(SHIP, expected)

    table = str(caught.value).splitlines()[2:]
    assert len(table) == 1 + len(SHIPPED)
    assert [row.split()[1] for row in table if row.startswith(">")] == ([] if marked is None else [str(marked)])


def test_of_a_dict_only_the_given_keys_count() -> None:
    path = FOLDER / "order.json"

    assert count_events(path, "ActivityFailed", failure={"type": "ConnectionError"}) == 1
    assert count_events(path, "ActivityFailed", failure={"type": "ValueError"}) == 0
    assert count_events(path, "ActivityScheduled", options={"retry": {"max_attempts": 2}}) == 1


def test_events_are_found_by_kind_and_fields() -> None:
    found = find_events(FOLDER / "order.json", "ActivityScheduled", name="reserve", input=["ink"])

    assert [(one.sequence, one.kind) for one in found] == [(3, "ActivityScheduled")]
    assert count_events(FOLDER / "order.json", "ActivityCompleted") == 8


def test_events_are_found_by_fields_alone() -> None:
    assert [one.kind for one in find_events(SHIP, number=2)] == ["TimerStarted", "TimerFired"]
    assert count_events(SHIP) == 6


def test_a_kind_that_does_not_exist_is_refused_instead_of_counted_as_none() -> None:
    with pytest.raises(InvalidArguments, match="Did you mean 'ActivityCompleted'"):
        count_events(SHIP, "ActivityComplete")
    with pytest.raises(InvalidArguments, match=r"The events are: .*TimerFired"):
        assert_history(SHIP, ["Zzz"])


def test_a_field_that_does_not_exist_is_refused_instead_of_never_matching() -> None:
    with pytest.raises(InvalidArguments, match=r"'nmae' is none\. It has: number, name"):
        event("ActivityScheduled", nmae="reserve")


def test_a_whole_history_has_no_gaps() -> None:
    assert_no_gaps(SHIP)


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([0, 2], "Expected event 3 next, but it is 5"),
        ([0, 1, 1, 2], "Expected event 5 next, but it is 3"),
        ([1, 2], "Expected event 1 next, but it is 3"),
    ],
)
def test_a_gap_is_shown(turns: list[int], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_no_gaps(History([SHIP.turns[index] for index in turns]))


def test_time_that_goes_back_is_shown() -> None:
    items = SHIP.to_json()
    items[4]["at"] = items[5]["at"] = "2029-12-31T00:00:00+00:00"

    with pytest.raises(AssertionError, match="event 5 is earlier than the one before"):
        assert_no_gaps(items)


def test_what_follows_the_end_is_shown() -> None:
    items = SHIP.to_json()
    items.append(items[4] | {"sequence": 7, "turn": 7, "at": items[5]["at"]})

    with pytest.raises(AssertionError, match="WorkflowCompleted to be the last event, but 1 follow"):
        assert_no_gaps(items)


def test_a_second_start_is_shown() -> None:
    items = SHIP.to_json()
    items[2] = items[0] | {"sequence": 3, "turn": 3}

    with pytest.raises(AssertionError, match="event 3 is WorkflowStarted"):
        assert_no_gaps(items)


def test_a_history_reads_as_a_table() -> None:
    lines = format_history(SHIP, mark=4).splitlines()

    assert lines[0].split() == ["#", "at", "event"]
    assert lines[2] == "  2  2030-01-01 00:00:00  ActivityScheduled  number=1 name='reserve' input=['pen'] options={}"
    assert lines[4] == "> 4  2030-01-01 00:00:00  TimerStarted       number=2 due=2030-01-02 00:00:00+00:00"
    assert lines[6] == "  6  2030-01-02 00:00:00  WorkflowCompleted  result='shipped'"


def test_long_values_are_cut_in_the_table() -> None:
    items = SHIP.to_json()
    items[5]["result"] = {"data": "x" * 1000}

    assert max(len(line) for line in format_history(items).splitlines()) < 200
