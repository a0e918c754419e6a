"""What bounds and repeats the runs of one workflow id: timeouts and a retry policy, handed from run to run.

A chain is what `continue_as` and retries make of an execution: several runs, one after the other. A run without any of these
options has no `Chain`, and pays nothing for it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from holdfast.core.instants import Instant, Micros
from holdfast.core.retry import RetryPolicy

START_NUMBER: Final = 0
"""The number of the timer that ends the delay of a start. Programs count their own timers from 1."""
RUN_DEADLINE_NUMBER: Final = -1
EXECUTION_DEADLINE_NUMBER: Final = -2
"""The numbers of the timers of deadlines. They are stored as timers like others, since nodes of older versions must be able
to read them; such nodes leave their executions alone, whose details they cannot read."""


class TimeoutScope(StrEnum):
    """What a timeout of a workflow bounds."""

    RUN = "run"
    """One run: from its beginning to its end."""
    EXECUTION = "execution"
    """All runs of a chain together, with the pauses between them."""


class Chain(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """The timeouts and the retry policy of an execution, and how far its chain has come."""

    run_timeout_us: Micros | None = None
    execution_timeout_us: Micros | None = None
    retry: RetryPolicy | None = None
    attempt: int = 1
    """How often the same work was begun: a retry counts on, and a run that continues another begins at 1."""
    run_deadline: Instant | None = None
    """When the run times out, once it is registered."""
    deadline: Instant | None = None
    """When the whole chain does, once its first run is registered."""

    def begin(self, at: Instant) -> Chain:
        """The chain of a run that begins at this time."""
        run, whole = self.run_timeout_us, self.execution_timeout_us
        if run is None and (whole is None or self.deadline is not None):
            return self
        return msgspec.structs.replace(
            self,
            run_deadline=None if run is None else at + run,
            deadline=self.deadline if self.deadline is not None or whole is None else at + whole,
        )

    def follow(self, attempt: int = 1) -> Chain:
        """The chain of the next run."""
        return msgspec.structs.replace(self, attempt=attempt, run_deadline=None)

    @property
    def times_out_at(self) -> Instant | None:
        """When the run ends at the latest: the earlier one of its deadlines."""
        found = [one for one in (self.run_deadline, self.deadline) if one is not None]
        return min(found, default=None)
