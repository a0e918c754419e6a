"""The verbs about stale work over a connection to the process that owns a database file; see `socket_verbs`."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, TypeVar

from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.engine.serving.messages import StalePage
from holdfast.engine.stale_views import StaleList

T = TypeVar("T")


class SocketStaleVerbs:
    """Takes calls about stale work to the owner of a database."""

    async def _call(
        self,
        verb: str,
        kind: type[T],
        positional: builtins.list[Any],
        named: Mapping[str, Any],
        inputs: Any = None,
        *,
        is_bound: bool = False,
    ) -> T:
        """Call a verb of the owner, and read its answer as `kind`."""
        raise NotImplementedError

    async def stale(
        self, older_than: Duration, *, org: str = DEFAULT_ORG, limit: int = 100, cursor: str | None = None
    ) -> StaleList:
        """List the human tasks, then the executions, that nobody has touched for `older_than`; nothing is changed."""
        named = {"older_than": older_than, "org": org, "limit": limit, "cursor": cursor}
        return _to_list(await self._call("stale", StalePage, [], named))

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
        """Cancel the tasks and terminate the executions that `stale` lists; those that were ended are returned."""
        named = {"older_than": older_than, "reason": reason, "by": by, "org": org, "limit": limit, "cursor": cursor}
        return _to_list(await self._call("end_stale", StalePage, [], named))


def _to_list(page: StalePage) -> StaleList:
    found = StaleList(page.stale)
    found.cursor = page.cursor
    return found
