"""What has arrived for executions that take no turns here: it joins what waits in their inboxes, which are not read."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.core.envelopes import ENDING, Signal
from holdfast.core.signals import limit_error
from holdfast.engine.rows import from_row
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.claims import Claims, Lookups
from holdfast.engine.turns.handoff import keep_requests, keep_rows, leave_to_others
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.plan import AnswerRequest
from holdfast.engine.turns.unrouted import UnroutedWrites
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.contract import Withheld
from holdfast.store.rows import ExecutionRow


class WithheldInboxes:
    """Leaves what has arrived for the withheld executions of one batch where it cannot be overtaken."""

    def __init__(self, claims: Claims, lookups: Lookups, unrouted: UnroutedWrites, *, exclusive: bool) -> None:
        self._claims = claims
        self._lookups = lookups
        self._unrouted = unrouted
        self._exclusive = exclusive
        self.kept = 0
        """How many requests became rows for executions that no node can take."""

    def leave(self, arrivals: dict[str, list[Arrival]], starts: Collection[str], max_signals: int) -> list[AnswerRequest]:
        """Take what is for withheld executions out of `arrivals`, and leave it in their inboxes; what callers are told.

        For those that are to be terminated, or time out, it stays, and their whole inbox is looked up: nothing is closed
        over. Where nobody takes what waits, signals are refused once that and what was received are `max_signals`.
        """
        answers: list[AnswerRequest] = []
        for execution_id, why in self._claims.withheld.items():
            if execution_id not in arrivals or execution_id in starts:
                continue
            if any(type(arrival.envelope) in ENDING for arrival in arrivals[execution_id]):
                self._lookups.inboxes[execution_id] = None
                continue
            row = self._claims.rows[execution_id]
            turn = PendingTurn(row.org, execution_id, None, arrivals.pop(execution_id))
            if why is Withheld.OFF_ROUTE:
                answers += leave_to_others(turn, row.route, self._unrouted)
                continue
            answers += self._refuse_excess(turn, row, max_signals)
            keep_rows(turn, row.route, self._unrouted)
            answers += keep_requests(turn, row.route, self._unrouted)
            if why in (Withheld.BLOCKED, Withheld.PAUSED) or self._exclusive:
                self.kept += len(turn.requests)
        return answers

    def _refuse_excess(self, turn: PendingTurn, row: ExecutionRow, max_signals: int) -> list[AnswerRequest]:
        """Take the signals of callers out of what has arrived for which an execution has no room; what they are told."""
        signals = [one for one in turn.arrivals if one.request is not None and type(one.envelope) is Signal]
        if not signals:
            return []
        waiting = self._claims.waiting.get(turn.execution_id)
        if waiting is None:
            self._lookups.waiting[turn.execution_id] = None
            return []
        try:
            execution = from_row(row)
        except (CorruptStore, NewerFormat):
            return []  # how many it has received cannot be told
        room = max(0, max_signals - execution.details.signals - waiting)
        error = limit_error(execution, waiting)
        refused = signals[room:]
        turn.arrivals = [one for one in turn.arrivals if one not in refused]
        return [AnswerRequest(one.request, error) for one in refused if one.request is not None]
