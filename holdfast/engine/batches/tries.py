"""Turns that are begun with care: what is written about them before they are taken."""

from __future__ import annotations

from holdfast.core.effects import Limits, Turn
from holdfast.core.envelopes import ActivityStopped
from holdfast.core.instants import Instant
from holdfast.engine.batches.care import blame
from holdfast.engine.batches.leaving import keep_requests
from holdfast.engine.batches.programs import Live
from holdfast.engine.batches.requests import Request
from holdfast.engine.batches.routing import Router
from holdfast.engine.batches.settling import Taken
from holdfast.engine.batches.stand_ins import NoProgram
from holdfast.engine.batches.work import Work
from holdfast.engine.rows import from_row, to_row
from holdfast.store.contract import ExecutionRow, TurnWrite


def note_try(work: Work, row: ExecutionRow, now: Instant, limits: Limits, node: str) -> Taken:
    """Note that an execution is about to take a turn. What arrived for it waits until that is durable."""
    execution = from_row(row)
    execution.details.tries += 1
    execution.details.trying = node
    work.clear()
    return _make_taken(work, Turn(execution, now, limits), row)


def put_off(work: Work, router: Router) -> None:
    """What arrived for an execution is for the next batch."""
    router.again.extend(source for source in work.sources if isinstance(source, Request))
    work.clear()


def find_next(work: Work, workflow_id: str) -> list[Request]:
    """What lets an execution take its turn next, once it is noted: its own requests, or else the end of nothing.

    By workflow id: so it also gets what the inbox holds for that.
    """
    own = [source for source in work.sources if isinstance(source, Request)] if work.new is None else []
    return own or [Request(work.org, ActivityStopped(number=0, attempt=0), workflow_id=workflow_id)]


def give_up(work: Work, router: Router, row: ExecutionRow, now: Instant, limits: Limits, version: str) -> Taken:
    """Block an execution that ended its process too often; what it was to take goes to the dead letters."""
    execution = from_row(row)
    failure = blame(execution, execution.details.tries)
    execution.block(failure, version)
    router.loose.bury_rows(work.consumed, failure.message)
    keep_requests(work, router, row.route)
    return _make_taken(work, Turn(execution, now, limits), row)


def clear_tries(work: Work, row: ExecutionRow, now: Instant, limits: Limits) -> Taken:
    """The turn failed and the process is still there: it is not the turn that ends processes."""
    execution = from_row(row)
    execution.details.tries, execution.details.trying = 0, ""
    return _make_taken(work, Turn(execution, now, limits), row)


def _make_taken(work: Work, turn: Turn, row: ExecutionRow) -> Taken:
    execution = turn.execution
    execution.state_version += 1
    write = TurnWrite(row=to_row(execution), expected_version=row.state_version)
    return Taken(work, Live(execution, NoProgram(), row, 0), turn, write)
