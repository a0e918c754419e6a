"""Open incidents as stores keep them: a row each, for lists.

What is open is in the history of its execution; the rows repeat it. The turn that raises or resolves an incident writes its
row in its own commit, and the closing of the execution removes all that are left. Lists show only those of executions that
are open: a node of the version before, which knows of no incidents, may have closed one.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from holdfast.core.instants import Instant

IncidentKey: TypeAlias = tuple[str, int]
"""The execution of an incident, and its number."""


class IncidentRow(msgspec.Struct, frozen=True, gc=False):
    """Something that went wrong at an element of an execution, and waits for somebody to correct it. Never changes."""

    org: str
    execution_id: str
    number: int
    workflow: str
    workflow_id: str
    element: str
    element_name: str
    kind: str
    message: str
    at: Instant

    @property
    def key(self) -> IncidentKey:
        """The execution and the number, under which it is found."""
        return self.execution_id, self.number


class IncidentFilter(msgspec.Struct, frozen=True, gc=False):
    """Which open incidents of an org to list, the oldest executions first."""

    org: str
    workflow: str | None = None
    execution_id: str | None = None
    workflow_id: str | None = None
    element: str | None = None
    kind: str | None = None
    after: IncidentKey | None = None
    """The last of the page before."""
    limit: int = 100


class Incidents(Protocol):
    """What can be asked about open incidents, outside of batches."""

    async def search(self, query: IncidentFilter) -> list[IncidentRow]:
        """The open incidents that a filter selects, by execution id and number. Executions' ids grow with time."""
        ...

    async def count(self, query: IncidentFilter) -> int:
        """How many open incidents a filter selects; no more are counted than its limit. `after` does not matter."""
        ...


def count_found(statement: str) -> str:
    """The statement that counts what a statement finds."""
    return f"SELECT count(*) FROM ({statement}) AS found"  # noqa: S608 - ours


def matches(row: IncidentRow, query: IncidentFilter) -> bool:
    """Whether a filter selects an incident, whatever the page."""
    return (
        row.org == query.org
        and query.workflow in (None, row.workflow)
        and query.execution_id in (None, row.execution_id)
        and query.workflow_id in (None, row.workflow_id)
        and query.element in (None, row.element)
        and query.kind in (None, row.kind)
    )
