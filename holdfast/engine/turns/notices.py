"""Warnings about committed turns: code that waits for what nothing can bring, and histories that grow long."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from holdfast.log_events import LogEvent, tag_execution

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.engine.turns.taken_turns import TakenTurn

log = logging.getLogger("holdfast.engine")


class HistoryWarnings(msgspec.Struct, frozen=True):
    """From which size on a history is warned of, and again each time that it has doubled; and by which node."""

    events: int
    bytes: int
    node: str
    """The node that warns."""


def warn(taken: TakenTurn, limits: HistoryWarnings) -> None:
    """Warn of what a turn that is committed shows, if it shows it for the first time."""
    execution, write = taken.live.execution, taken.write
    if taken.turn.waits_forever:
        _warn_of_waiting(execution, limits.node)
    if write is None or write.history is None or execution.closed_at is not None:
        return
    if taken.live.program.snapshot_schema:
        return  # a replay goes through little more than the snapshot
    size, events = taken.live.history_bytes, execution.sequence
    before, events_before = size - len(write.history.body), events - write.history.count
    if _crosses(events_before, events, limits.events) or _crosses(before, size, limits.bytes):
        _warn_of_length(execution, size, limits.node)


def _warn_of_waiting(execution: Execution, node: str) -> None:
    """An execution waits for what only its own code could bring, none of which runs."""
    waiting = execution.details.waiting
    place = waiting.token if waiting is not None else ""
    log.warning(
        "workflow '%s' (%s, execution %s) waits for what can never come%s: no activity, timer, child or signal is awaited "
        "that could wake its code. Let another task of it set the event or future, or cancel or terminate the execution.",
        execution.workflow,
        execution.workflow_id,
        execution.execution_id,
        f", at {place}" if place else "",
        extra=tag_execution(LogEvent.WAITS_FOREVER, execution, node=node),
    )


def _warn_of_length(execution: Execution, size: int, node: str) -> None:
    """A history has reached one of the sizes: a limit, or a limit doubled so many times."""
    log.warning(
        "the history of workflow '%s' (%s, execution %s) has %d events and %d bytes, all of which each replay goes through. "
        "Let the workflow go on in a new run, by ctx.continue_as, before it grows further.",
        execution.workflow,
        execution.workflow_id,
        execution.execution_id,
        execution.sequence,
        size,
        extra=tag_execution(
            LogEvent.LONG_HISTORY, execution, node=node, history_length=execution.sequence, history_bytes=size
        ),
    )


def _crosses(before: int, now: int, limit: int) -> bool:
    """Whether a size reached the limit, or a doubling of it: that is one more bit of how often the limit is in it."""
    return (now // limit).bit_length() > (before // limit).bit_length()
