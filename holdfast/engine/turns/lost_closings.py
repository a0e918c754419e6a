"""Executions whose end was not written, since something arrived for them meanwhile: how they come to their end all the same.

A turn that closes an execution is lost if its inbox holds what the turn did not take. Nothing of it is kept, so the next one
has to take all of that again, and what came in between: under a flood of signals from other nodes it would take longer each
time, and be lost each time. So after a lost closing

- the batch that takes the execution next excludes those who deliver, from its claim on if nobody is at it (`Claim.closing`);
- it first commits the signals that wait, but for the last, as held events: without running the program. The turn after it
  runs the program and closes, and has little to take. The last one stays in the inbox until then: so whatever happens to
  this node, there is something that makes the program run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_KEPT: Final = 1_000
"""How many executions are remembered: other nodes may have closed some of them."""


class LostClosings:
    """What a node knows about ends that it could not write."""

    def __init__(self) -> None:
        self.all: dict[str, bool] = {}
        """Executions whose last closing was lost; with each, whether its signals are to be held before the next."""

    def note(self, execution_ids: Iterable[str]) -> None:
        """The closings of these executions were lost."""
        for execution_id in execution_ids:
            self.all.pop(execution_id, None)
            self.all[execution_id] = True
            if len(self.all) > MOST_KEPT:
                del self.all[next(iter(self.all))]

    def take_hold(self, execution_id: str) -> bool:
        """Whether an execution's signals are to be held before it closes: so after each closing that was lost, once."""
        if not self.all.get(execution_id, False):
            return False
        self.all[execution_id] = False
        return True

    def forget(self, execution_ids: Iterable[str]) -> None:
        """Forget executions that have closed after all, here or elsewhere."""
        for execution_id in execution_ids:
            self.all.pop(execution_id, None)
