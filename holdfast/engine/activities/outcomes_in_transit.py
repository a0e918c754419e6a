"""The outcomes of activities that are on their way to their executions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import ref

if TYPE_CHECKING:
    from holdfast.engine.activities.stale_attempts import AttemptKey
    from holdfast.engine.requests import Request

FIRST_PURGE: Final = 1_024
"""How many are kept at least before those that have arrived are removed."""


class OutcomesInTransit:
    """Knows which attempts have an outcome in a queue or a batch of this process.

    An outcome has arrived when nobody holds its request any more. That is looked up when somebody asks: outcomes are sent
    all the time, and seldom asked for.
    """

    def __init__(self) -> None:
        self._sent: dict[AttemptKey, ref[Request]] = {}
        self._purge_at = FIRST_PURGE

    def add(self, key: AttemptKey, request: Request) -> None:
        """Note that the outcome of an attempt is sent."""
        self._sent[key] = ref(request)
        if len(self._sent) >= self._purge_at:
            self._purge_at = max(FIRST_PURGE, 2 * len(self.keys()))

    def keys(self) -> set[AttemptKey]:
        """The attempts whose outcomes have not arrived yet."""
        self._sent = {key: request for key, request in self._sent.items() if request() is not None}
        return set(self._sent)
