"""Executions that fail alone: each rests apart, longer each time, and is then tried alone again while all others go on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.core.instants import SECOND
from holdfast.engine.clock import call_after
from holdfast.engine.turns.batch_failures import find_orders
from holdfast.errors import StoreFault, StoreUnavailable

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.requests import AnyRequest
    from holdfast.engine.turns.trials import Trial

SHORTEST_REST: Final = SECOND // 2
"""How long an execution rests whose turn failed alone for the first time, before it is tried again."""
LONGEST_REST: Final = 30 * SECOND
FAILURES_IN_OUTAGE: Final = 4
"""By how many failures rests grow at most while the store takes nothing at all, or the codec is away: to four seconds."""
CUTS_OF_A_TRY: Final = 3
"""How many broken connections in a row count as one failed try: connections also break by chance."""


class FailedAlone(msgspec.Struct):
    """How often in a row an execution failed alone, and what rests with it."""

    failures: int = 0
    cuts: int = 0
    """How many of them were broken connections."""
    resting: Trial | None = None
    """Its next trial, with the requests for it, while it rests."""
    error: Exception | None = None
    """What it failed with at last."""


class Resting:
    """Keeps executions that failed alone until their next trial. `on_end` is given that trial when a rest is over."""

    def __init__(self, clock: Clock, on_end: Callable[[Trial], None]) -> None:
        self._clock = clock
        self._on_end = on_end
        self._all: dict[str, FailedAlone] = {}

    def count(self, execution_id: str, error: Exception) -> bool:
        """Count a failure of an execution that was tried alone; whether it is a try that counts against `max_lost`.

        A shortage never is one, nor an outage of the codec: when that is over the turn can be committed. Of broken
        connections every third is.
        """
        one = self._all.setdefault(execution_id, FailedAlone())
        one.failures += 1
        one.error = error
        if not isinstance(error, StoreUnavailable) or error.fault is StoreFault.TIMED_OUT:
            return True
        if error.fault is StoreFault.CODEC:
            one.failures = min(one.failures, FAILURES_IN_OUTAGE)
            return False
        if error.fault is StoreFault.SHORTAGE:
            return False
        one.cuts += 1
        return one.cuts % CUTS_OF_A_TRY == 0

    def pardon(self, execution_id: str) -> None:
        """Take back what was counted: not even the failure could be noted, so this is an outage, and short rests do."""
        one = self._all[execution_id]
        one.cuts = 0
        one.failures = min(one.failures, FAILURES_IN_OUTAGE)

    def begin(self, trial: Trial) -> int:
        """Let an execution that failed alone rest until `trial`; for how long, in microseconds."""
        (execution_id,) = trial.execution_ids
        one = self._all[execution_id]
        one.resting = trial
        length = min(SHORTEST_REST << min(one.failures - 1, 16), LONGEST_REST)
        call_after(self._clock, length, functools.partial(self._end, execution_id, trial))
        return length

    def add(self, execution_id: str, requests: Sequence[AnyRequest]) -> bool:
        """Let requests be part of the next trial of an execution; False if it does not rest."""
        one = self._all.get(execution_id)
        if one is None or one.resting is None:
            return False
        one.resting.add(execution_id, requests)
        if one.error is not None and find_orders(requests, one.error):
            self._end(execution_id, one.resting)  # they need not wait: without the codec they can be done as well
        return True

    def forget(self, execution_ids: Iterable[str]) -> None:
        """These executions took their turns, or are blocked: whatever happens next to them is the first time."""
        if self._all:
            for execution_id in execution_ids:
                self._all.pop(execution_id, None)

    def abandon(self) -> list[tuple[AnyRequest, Exception]]:
        """Forget all: the requests that rested, and what each of them failed with."""
        abandoned = [
            (request, one.error)
            for one in self._all.values()
            if one.resting is not None and one.error is not None
            for request in one.resting.requests
        ]
        self._all.clear()
        return abandoned

    def _end(self, execution_id: str, trial: Trial) -> None:
        one = self._all.get(execution_id)
        if one is not None and one.resting is trial:
            one.resting = None
            self._on_end(trial)
