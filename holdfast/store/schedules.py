"""What stores promise about schedules.

A schedule is one row. Whoever fires it holds the row, and writes it back in the transaction that puts the starts into the
inbox: so each fire starts something exactly once, however many nodes look. Whoever changes it names the version that it
saw. Both raise the version by one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

import msgspec

from holdfast.core.instants import Instant
from holdfast.errors import Conflict
from holdfast.store.once import KeyedCall
from holdfast.store.rows import InboxRow, Route

ScheduleKey: TypeAlias = tuple[str, str]
"""(org, schedule id): two orgs may use the same id."""


class ScheduleRow(msgspec.Struct, frozen=True, gc=False):
    """One schedule. Org, id, owner and time of creation never change."""

    org: str
    schedule_id: str
    owner: str
    """The definition that it belongs to, with which it ends; empty: none."""
    state: str
    due: Instant | None
    """When it fires next; None: it does not, being paused or at its end."""
    is_waiting: bool
    """Whether fires wait until executions that it started have ended, and may begin then."""
    route: Route
    """The route of what it starts: nodes fire only what they can run."""
    version: int
    created_at: Instant
    updated_at: Instant
    details: bytes
    """JSON of which the store reads nothing."""

    @property
    def key(self) -> ScheduleKey:
        """The org and the id, under which it is found."""
        return self.org, self.schedule_id


class ScheduleOutlook(msgspec.Struct, frozen=True, gc=False):
    """What a node is to do about schedules."""

    due: Instant | None = None
    """When the next one is due; None: none is."""
    has_waiting: bool = False
    """Whether fires wait until executions have ended, of schedules on whatever route."""


class ScheduleChange(msgspec.Struct, frozen=True, gc=False):
    """A schedule as it is to become, provided that it is as expected."""

    org: str
    schedule_id: str
    expected: int | None
    """The version that it must have; None: there must be none yet."""
    row: ScheduleRow | None
    """None: it is removed."""
    starts: Sequence[InboxRow] = ()
    """What is put into the inbox in the same transaction."""
    answer: int = 1
    """What the change returns, and remembers for its key, if it was made."""


def refuse_change(change: ScheduleChange) -> Conflict:
    """The schedule is not as a change expects it."""
    return Conflict(
        f"Expected schedule '{change.schedule_id}' to be as it was read, but somebody changed it meanwhile. Read it again."
    )


class Scheduling(Protocol):
    """What a transaction can do about schedules."""

    async def claim_schedules(
        self, due_until: Instant, routes: Collection[Route] | None, skip: Collection[ScheduleKey], limit: int
    ) -> list[ScheduleRow]:
        """Schedules on these routes that are due and nobody else is at, the earliest first; held until the end.

        Waits for nobody. Those of `skip` are left out.
        """
        ...

    async def claim_waiting_schedules(
        self, routes: Collection[Route] | None, after: ScheduleKey, limit: int
    ) -> list[ScheduleRow]:
        """Schedules behind a key whose fires wait, in the order of their keys, as `claim_schedules` gives them."""
        ...

    async def find_open_ids(self, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of these (org, workflow id) pairs under which an execution is open, or something waits to be taken."""
        ...

    async def write_schedules(self, rows: Sequence[ScheduleRow]) -> None:
        """Replace schedules that this transaction holds; each has the version behind the stored one."""
        ...


class Schedules(Protocol):
    """What can be asked and done about schedules outside of batches."""

    async def find_schedule(self, org: str, schedule_id: str) -> ScheduleRow | None:
        """The schedule with this id; None if the org has none."""
        ...

    async def list_schedules(
        self, org: str, limit: int = 100, after: str = "", owner: str | None = None
    ) -> list[ScheduleRow]:
        """The schedules of an org behind an id, in the order of their ids; with `owner`, those that belong to it."""
        ...

    async def look_at_schedules(self, routes: Collection[Route] | None, skip: Collection[ScheduleKey]) -> ScheduleOutlook:
        """When the earliest schedule on these routes is due, those of `skip` aside, and whether fires of any wait."""
        ...

    async def change_schedule(self, change: ScheduleChange, call: KeyedCall | None = None) -> int:
        """Insert, replace or remove a schedule. Raises Conflict if it is not as expected: then nothing was changed.

        May raise OutcomeUnknown; the stored version tells what became of it.
        """
        ...
