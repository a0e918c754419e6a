"""What a batch does besides the turns that its plan asks for: collected by the batch, carried out after its commit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.engine.requests import AnyRequest, Request
from holdfast.engine.turns.claims import ClaimTarget
from holdfast.engine.turns.handoff import keep_requests, keep_rows
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.plan import AnswerRequest
from holdfast.engine.turns.taken_turns import TakenTurn
from holdfast.engine.turns.unrouted import UnroutedWrites
from holdfast.store.rows import Route


class Noted(msgspec.Struct, frozen=True):
    """A suspect that takes its turn in a trial, once its note is committed; `requests` are to be part of that."""

    target: ClaimTarget
    tries: int
    requests: Sequence[Request]


class Prefetch(msgspec.Struct, frozen=True):
    """An execution with a long history that is to be replayed without its lock; `requests` wait for that."""

    org: str
    execution_id: str
    requests: Sequence[Request]


class BatchEffects(msgspec.Struct):
    """Collects what becomes of executions that take no turn in the batch, and of turns that fail in it."""

    unrouted: UnroutedWrites
    taken: list[TakenTurn] = []
    """Every turn that was taken, and every row that is written in place of one."""
    answers: list[AnswerRequest] = []
    retries: list[AnyRequest] = []
    prefetches: list[Prefetch] = []
    parked: list[str] = []
    """Executions that can take no turns here: blocked, damaged, tried elsewhere, or of an unknown workflow."""
    newer: dict[str, str] = {}
    """Those of the parked that only a newer Holdfast can read, and why."""
    noted: list[Noted] = []
    postponed: list[str] = []
    """Suspects that wait until others have been tried."""
    unfinished: list[AnyRequest] = []
    """Requests for executions that took a turn, which had no time or no room for them: behind those that took none."""
    has_put_off: bool = False
    """Whether something that was to be taken waits for the next batch, since this one has computed for long."""
    overtaken: list[str] = []
    """Executions that were put off, and whose kind got no turn: see `turn_order`."""
    awaiting_trial: list[tuple[str, Sequence[Request]]] = []
    """Requests for executions whose trial is another batch of this node."""

    def park(self, turn: PendingTurn, route: Route) -> None:
        """Keep what has arrived for an execution that cannot take it now: rows stay, requests become rows."""
        self.parked.append(turn.execution_id)
        keep_rows(turn, route, self.unrouted)
        self.answers += keep_requests(turn, route, self.unrouted)
        turn.clear()

    def put_off(self, turn: PendingTurn) -> None:
        """Let what has arrived for an execution wait for the next batch."""
        self.has_put_off = True
        self.retries += turn.requests
        turn.unload()
        turn.clear()

    def close_programs(self) -> None:
        """Close every program that was moved by a turn: nothing of the batch was committed."""
        for one in self.taken:
            one.live.program.close()
