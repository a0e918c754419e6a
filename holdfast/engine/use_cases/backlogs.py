"""What waits to be done, by org and queue: for people and for whoever adds nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from holdfast.core.instants import SECOND, Instant
from holdfast.core.routes import find_queue
from holdfast.core.shown_values import ShownValue
from holdfast.store.rows import BacklogRow, Waiting

if TYPE_CHECKING:
    from holdfast.store.contract import Store

MOST_COUNTED: Final = 10_000


class QueueBacklog(ShownValue, frozen=True, kw_only=True):
    """What waits in one queue of an org. Of each kind of thing, the first 10,000 of all queues are counted.

    What waits for blocked and paused executions is left out, for no node can take it: `open` says how many there are.
    """

    org: str
    queue: str
    """Empty for what is addressed to a workflow id, as long as nobody has looked whose it is."""
    open: Mapping[str, int] = {}
    """Open executions by status."""
    inbox: int = 0
    """Envelopes (signals, starts, results and the like) that wait for a turn."""
    due: int = 0
    """Timers that are due and have not fired."""
    offered: int = 0
    """Activities that no node has taken: no node that has them has a place free, or there is none."""
    oldest: float | None = None
    """For how many seconds the oldest envelope or due timer has been waiting; None if none is, or that is not known."""
    is_exact: bool = True
    """Whether everything was counted: else there were more than 10,000 of a kind, and the numbers are lower bounds."""


async def read_backlog(store: Store, now: Instant) -> list[QueueBacklog]:
    """What waits, sorted by org and queue; of what is committed, without a lock."""
    rows = await store.read_backlog(now, MOST_COUNTED)
    totals = {what: sum(row.count for row in rows if row.what is what) for what in Waiting}
    is_exact = max(totals.values()) < MOST_COUNTED
    groups: dict[tuple[str, str], list[BacklogRow]] = {}
    for row in rows:
        if row.what is not Waiting.OPEN and row.status:
            continue
        queue = find_queue(row.route) if row.queue is None else row.queue
        groups.setdefault((row.org, queue), []).append(row)
    return [_sum_up(org, queue, groups[org, queue], now, is_exact=is_exact) for org, queue in sorted(groups)]


def _sum_up(org: str, queue: str, rows: list[BacklogRow], now: Instant, *, is_exact: bool) -> QueueBacklog:
    opened: dict[str, int] = {}
    for row in rows:
        if row.what is Waiting.OPEN:
            opened[row.status] = opened.get(row.status, 0) + row.count
    since = [row.oldest for row in rows if row.what is not Waiting.OPEN and row.oldest is not None]
    return QueueBacklog(
        org=org,
        queue=queue,
        open=opened,
        inbox=_count(rows, Waiting.INBOX),
        due=_count(rows, Waiting.DUE),
        offered=_count(rows, Waiting.OFFERED),
        oldest=max(0.0, (now - min(since)) / SECOND) if since else None,
        is_exact=is_exact,
    )


def _count(rows: list[BacklogRow], what: Waiting) -> int:
    return sum(row.count for row in rows if row.what is what)
