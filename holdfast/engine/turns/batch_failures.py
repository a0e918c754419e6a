"""What the failure of a batch says about its executions and its callers: pure decisions, carried out by the batch runner."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.core.envelopes import Cancel, Terminate
from holdfast.engine.requests import Request
from holdfast.engine.turns.turn_taking import as_answer
from holdfast.errors import OutcomeUnknown, StoreFault, StoreUnavailable

if TYPE_CHECKING:
    from holdfast.engine.requests import AnyRequest
    from holdfast.engine.turns.commit_outcome import CommitOutcome

MOST_REMEMBERED: Final = 4_096
"""How many executions of batches that failed are remembered at most."""


def may_be_outage(error: Exception) -> bool:
    """Whether an error may concern all that is written now, rather than the work that met it."""
    return isinstance(error, StoreUnavailable) and error.fault is not StoreFault.TIMED_OUT


def is_cut(error: Exception) -> bool:
    """Whether the store was out of reach, as when a connection breaks, which happens by chance too."""
    return isinstance(error, StoreUnavailable) and error.fault is StoreFault.OUT_OF_REACH


def find_orders(requests: Sequence[AnyRequest], error: Exception) -> list[AnyRequest]:
    """Of requests whose batch failed in an outage of the codec, those that need no value: to cancel, and to terminate."""
    if not isinstance(error, StoreUnavailable) or error.fault is not StoreFault.CODEC:
        return []
    return [one for one in requests if isinstance(one, Request) and isinstance(one.envelope, Cancel | Terminate)]


def keep_or_refuse(requests: Sequence[AnyRequest], error: Exception, max_attempts: int | None) -> list[AnyRequest]:
    """Of requests whose batch failed, those that are tried again: the engine's own, and callers' up to `max_attempts` times.

    The other callers are told. What may have been committed is not tried again for a caller.
    """
    kept: list[AnyRequest] = []
    may_repeat = isinstance(error, StoreUnavailable) and not isinstance(error, OutcomeUnknown)
    for request in requests:
        request.attempts += 1
        if request.future is None or (may_repeat and (max_attempts is None or request.attempts < max_attempts)):
            kept.append(request)
        else:
            request.resolve(as_answer(error))
    return kept


class FailedOnce:
    """Remembers the executions of batches that failed as in an outage, until they take a turn or fail a second time."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        """The executions of batches that failed once."""

    def acquit(self, outcome: CommitOutcome) -> None:
        """Forget who took a turn in a batch that is committed. That somebody was put off, or noted, shows nothing."""
        for one in outcome.taken:
            if one.write is not None and one.write.history is not None and one.pending.execution_id not in outcome.lost:
                self.ids.discard(one.pending.execution_id)

    def is_repeated(self, execution_ids: Collection[str]) -> bool:
        """Whether one of the executions of a batch that failed was in another that did. If not, they are remembered.

        It is asked about batches whose claim the store answered: it was there a moment before each of the two failures.
        """
        if not self.ids.isdisjoint(execution_ids):
            self.ids.difference_update(execution_ids)
            return True
        if len(self.ids) + len(execution_ids) > MOST_REMEMBERED:
            self.ids.clear()
        self.ids.update(execution_ids)
        return False
