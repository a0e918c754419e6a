"""Executions whose end was not written, since something arrived for them meanwhile: how they come to their end all the same.

A turn that closes an execution is lost if its inbox holds what the turn did not take. Nothing of it is kept, so the next one
has to take all of that again, and what came in between: under a flood of signals from other nodes it would take longer each
time, and be lost each time. So after a lost closing

- the batch that takes the execution next commits the signals that wait, but for the last, as held events, which do not run
  the program. The turn after it runs the program and closes, and has little to take. The last one stays in the inbox until
  then: so whatever happens to this node, there is something that makes the program run.
- If it is lost several times in a row even so, the batch excludes those who deliver from its claim on, where nobody is at it
  just then (`Claim.closing`). Not before: whoever delivers would wait for the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_KEPT: Final = 1_000
"""How many executions are remembered: other nodes may have closed some of them."""


MOST_LOSSES: Final = 3
"""How often in a row a closing may be lost before deliveries have to wait for it."""


class LostClosings:
    """What a node knows about ends that it could not write."""

    def __init__(self) -> None:
        self.losses: dict[str, int] = {}
        """Executions whose last closing was lost; with each, how often in a row."""
        self._to_hold: set[str] = set()
        """Those whose signals are to be held before the next try."""

    @property
    def repeated(self) -> list[str]:
        """Executions whose closing was lost so often that deliveries have to wait for it."""
        return [execution_id for execution_id, count in self.losses.items() if count >= MOST_LOSSES]

    def note(self, execution_ids: Iterable[str]) -> None:
        """Count closings of these executions as lost."""
        for execution_id in execution_ids:
            self.losses[execution_id] = self.losses.pop(execution_id, 0) + 1
            self._to_hold.add(execution_id)
            if len(self.losses) > MOST_KEPT:
                self.forget([next(iter(self.losses))])

    def take_hold(self, execution_id: str) -> bool:
        """Whether an execution's signals are to be held before it closes: so after each closing that was lost, once."""
        if execution_id not in self._to_hold:
            return False
        self._to_hold.discard(execution_id)
        return True

    def forget(self, execution_ids: Iterable[str]) -> None:
        """Forget executions that have closed after all, here or elsewhere."""
        for execution_id in execution_ids:
            self.losses.pop(execution_id, None)
            self._to_hold.discard(execution_id)
