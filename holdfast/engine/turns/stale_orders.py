"""Orders to terminate what was found to be stale: in the commit that would end it, nobody may have touched it since.

Such an order is a request of this node, never an inbox row (`requests.Judged`), so it is looked at with the execution locked
and loaded, right before its turn. Whatever somebody did since the look has changed what the order was given for: a turn
raises the version of the row, and a pause the settings number, by which the write is lost if it is outdated. What arrived in
the meantime is there beside the order. Then the order is dropped, and all else is taken as if there had been none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from holdfast.engine.requests import Handled, Judged
from holdfast.engine.turns.null_programs import NoProgram
from holdfast.engine.turns.plan import AnswerRequest

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.engine.turns.arrivals import Arrival
    from holdfast.engine.turns.batch_effects import BatchEffects
    from holdfast.engine.turns.pauses import PauseView
    from holdfast.engine.turns.pending_turns import PendingTurn
    from holdfast.engine.turns.program_cache import ProgramCache


class StaleOrders:
    """Drops the orders of one batch whose executions somebody has touched."""

    def __init__(self, effects: BatchEffects, pauses: PauseView, cache: ProgramCache) -> None:
        self._effects = effects
        self._pauses = pauses
        self._cache = cache

    def drop_touched(self, turns: Sequence[PendingTurn], ordered: Collection[str]) -> None:
        """Look at the executions that are to be terminated only if they are stale."""
        for pending in turns:
            if pending.execution_id not in ordered or pending.live is None:
                continue
            execution = pending.live.execution
            is_alone = all(_find_judged(one) is not None for one in pending.arrivals)
            for arrival in list(pending.arrivals):
                judged = _find_judged(arrival)
                if judged is not None and not (is_alone and self._is_untouched(execution, judged)):
                    self._drop(pending, arrival)

    def _is_untouched(self, execution: Execution, judged: Judged) -> bool:
        waits = execution.activities or execution.timers or execution.children or execution.tasks
        return execution.state_version == judged.state_version and self._pauses.number == judged.settings and not waits

    def _drop(self, pending: PendingTurn, order: Arrival) -> None:
        if order.request is not None:
            self._effects.answers.append(AnswerRequest(order.request, Handled(is_done=False)))
        pending.arrivals.remove(order)
        live = pending.live
        if pending.arrivals or live is None:
            return
        if type(live.program) is not NoProgram and live.row is not None:
            self._cache.put(live)  # it is where its row is: nothing has moved it
            pending.live = None
        pending.unload()


def _find_judged(arrival: Arrival) -> Judged | None:
    return None if arrival.request is None else arrival.request.judged
