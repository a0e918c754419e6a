"""The life of an execution: one table, and no way around it."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.core.lifecycle import CLOSED, CLOSING, TRANSITIONS, Operation, Status, next_status
from holdfast.errors import CorruptStore

EVERY_PAIR = [(status, operation) for status in (None, *Status) for operation in Operation]

DIAGRAM = """
-          register   running
running    suspend    suspended
running    resume     running
running    block      blocked
running    pause      paused
running    complete   completed
running    fail       failed
running    cancel     cancelled
running    continue   continued
running    time_out   failed
running    terminate  terminated
suspended  suspend    suspended
suspended  resume     running
suspended  block      blocked
suspended  pause      paused
suspended  complete   completed
suspended  fail       failed
suspended  cancel     cancelled
suspended  continue   continued
suspended  time_out   failed
suspended  terminate  terminated
blocked    block      blocked
blocked    unblock    running
blocked    time_out   failed
blocked    terminate  terminated
paused     unpause    running
paused     time_out   failed
paused     terminate  terminated
"""


def test_table_is_the_diagram() -> None:
    drawn = [line.split() for line in DIAGRAM.strip().splitlines()]

    assert {(None if a == "-" else Status(a), Operation(b)): Status(c) for a, b, c in drawn} == dict(TRANSITIONS)
    assert len(drawn) == len(TRANSITIONS) == 28


@pytest.mark.parametrize(("status", "operation"), EVERY_PAIR)
def test_transition_is_the_tables_or_refused(status: Status | None, operation: Operation) -> None:
    if (status, operation) in TRANSITIONS:
        assert next_status(status, operation) is TRANSITIONS[status, operation]
    else:
        with pytest.raises(CorruptStore, match=f"^Expected to {operation} an execution, but it is {status}, "):
            next_status(status, operation)


def test_nothing_happens_to_what_is_closed() -> None:
    assert [pair for pair in TRANSITIONS if pair[0] in CLOSED] == []
    assert {status for status in Status if status.is_closed} == CLOSED


def test_closing_operations_are_those_that_lead_to_a_closed_status() -> None:
    assert {operation for (_, operation), status in TRANSITIONS.items() if status in CLOSED} == CLOSING


def test_every_closed_status_has_its_own_operation() -> None:
    ends = {(operation, status) for (_, operation), status in TRANSITIONS.items() if status in CLOSED}

    assert Counter(status for _, status in ends) == Counter([*CLOSED, Status.FAILED])  # by its code, or by a timeout
    assert Counter(operation for operation, _ in ends) == Counter(CLOSING)


@pytest.mark.parametrize("status", [status for status in Status if not status.is_closed])
def test_whatever_is_open_can_be_terminated(status: Status) -> None:
    assert next_status(status, Operation.TERMINATE) is Status.TERMINATED


def test_every_status_can_be_reached() -> None:
    assert set(TRANSITIONS.values()) == set(Status)


def test_every_operation_is_used() -> None:
    assert {operation for _, operation in TRANSITIONS} == set(Operation)
