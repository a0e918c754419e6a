"""The verbs about work that nobody has touched for a long time."""

from __future__ import annotations

from typing import Protocol

from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.engine.stale_views import StaleList


class StaleWorkVerbs(Protocol):
    """Lists and ends executions and human tasks that nobody has touched for a long time."""

    async def stale(
        self, older_than: Duration, *, org: str = DEFAULT_ORG, limit: int = 100, cursor: str | None = None
    ) -> StaleList:
        """List the human tasks, then the executions, that nobody has touched for `older_than`; nothing is changed.

        What waits for something that comes by itself is not stale: a timer, an activity, a child, a due date. Nor is what is
        paused or blocked. `cursor` of the list leads to the next page. Raises InvalidArguments.
        """
        ...

    async def end_stale(
        self,
        older_than: Duration,
        *,
        reason: str = "",
        by: str = "",
        org: str = DEFAULT_ORG,
        limit: int = 100,
        cursor: str | None = None,
    ) -> StaleList:
        """Cancel the tasks and terminate the executions that `stale` lists; those that were ended are returned.

        Whatever somebody touches in the meantime is left alone. `reason` is kept in the histories, and `by` with the tasks.
        `cursor` of the list leads on. To call it again does no harm. Raises InvalidArguments.
        """
        ...
