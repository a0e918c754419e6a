"""Stale work as stores find it: open executions and human tasks that nobody has touched for a long time.

Theory of operation
-------------------
An execution is touched when its row changes, and while it, its workflow or its queue is paused: the end of a pause is kept
for that. What goes on by itself is never stale, however long ago it was touched: an execution that has a timer (also a
deadline, a retry or a delayed start), an activity that runs or is offered, an open child, or an envelope in its inbox. Nor
is one with an open human task: that may be stale itself, and its workflow goes on when it is cancelled. Nor one that is
blocked: somebody has to decide about that.

A task is touched by every task event. It is not stale while a date of it is to come, or while its execution is blocked or
paused.

Executions are walked by their ids, which begin with the time at which they were made: those that are younger than the limit
need not be looked at. A page looks at a bounded number of rows, whether they are stale or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec

from holdfast.core.ids import make_execution_id
from holdfast.core.instants import Instant

LAST_ORG: Final = "\U0010ffff"
"""Behind every org, as stores sort them."""


class StaleQuery(msgspec.Struct, frozen=True, gc=False):
    """Which stale work to look for, behind which place, and how many rows to look at."""

    before: Instant
    """What was touched at this instant or later is not stale."""
    now: Instant
    org: str | None = None
    """None: of all orgs."""
    after: str = ""
    """The id of the last execution or task that was looked at before."""
    after_org: str = ""
    """The org of the last task that was looked at before, where all orgs are asked for."""
    scan: int = 200

    @property
    def end(self) -> str:
        """The first execution id that is too young to be stale."""
        return make_execution_id(max(self.before, 0), 0)

    @property
    def task_bounds(self) -> tuple[str, str, str]:
        """Behind which org and task id to look, and the last org to look at."""
        return (self.after_org, self.after, LAST_ORG) if self.org is None else (self.org, self.after, self.org)


class StaleExecution(msgspec.Struct, frozen=True, gc=False):
    """An open execution that nobody has touched, at the version at which that was found."""

    org: str
    execution_id: str
    workflow_id: str
    workflow: str
    queue: str
    status: str
    state_version: int
    touched_at: Instant


class StaleTask(msgspec.Struct, frozen=True, gc=False):
    """An open human task that nobody has touched, at the version at which that was found."""

    org: str
    task_id: str
    execution_id: str
    number: int
    workflow: str
    workflow_id: str
    queue: str
    name: str
    state: str
    version: int
    touched_at: Instant


class StaleExecutions(msgspec.Struct, frozen=True, gc=False):
    """What a look at a page of open executions found."""

    found: Sequence[StaleExecution]
    last: str | None
    """The execution that was looked at last; None if there are no more."""


class StaleTasks(msgspec.Struct, frozen=True, gc=False):
    """What a look at a page of open human tasks found."""

    found: Sequence[StaleTask]
    last: tuple[str, str] | None
    """The org and the id of the task that was looked at last; None if there are no more."""


class StaleWork(Protocol):
    """Finds open work that nobody has touched for a long time."""

    async def find_stale_executions(self, query: StaleQuery) -> StaleExecutions:
        """The stale ones among the next `scan` open executions, by their ids. What it costs is bounded by `scan`."""
        ...

    async def find_stale_tasks(self, query: StaleQuery) -> StaleTasks:
        """The stale ones among the next `scan` open human tasks, by org and id. What it costs is bounded by `scan`."""
        ...


def to_stale_executions(rows: Iterable[Sequence[Any]], query: StaleQuery) -> StaleExecutions:
    """A page from the columns of its rows: those of `StaleExecution`, then whether it is stale and the size of the page.

    The last row of the page comes in any case.
    """
    found: list[StaleExecution] = []
    last, size = "", 0
    for *columns, is_stale, size in rows:  # noqa: B007 - all rows have the same size
        last = columns[1]
        if is_stale:
            found.append(StaleExecution(*columns))
    return StaleExecutions(found, last if size == query.scan else None)


def to_stale_tasks(rows: Iterable[Sequence[Any]], query: StaleQuery) -> StaleTasks:
    """A page from the columns of its rows: those of `StaleTask`, then whether it is stale and the size of the page."""
    found: list[StaleTask] = []
    last, size = ("", ""), 0
    for *columns, is_stale, size in rows:  # noqa: B007 - all rows have the same size
        last = (columns[0], columns[1])
        if is_stale:
            found.append(StaleTask(*columns))
    return StaleTasks(found, last if size == query.scan else None)
