"""What stores promise about subscriptions, and about what is published without naming a receiver.

Theory of operation
-------------------
*Subscriptions* are rows that only their execution's turns insert, and end. *Kept* publications are those that found nobody
and have time left. Two things must exclude each other for kinds that are kept (messages and events): "anyone waiting, else
keep" and "anything kept, else wait". They do so by a lock on (org, kind, name) of an event, or (org, kind, name, key) of a
message, which is tried and never waited for:

- A turn that begins or ends a subscription shares it; where a subscription is matched with something that one consumer gets,
  and for messages always, it has it alone. A turn that does not get the lock is lost, and taken again.
- Whoever publishes has it alone. A publication that does not get the lock is busy, and tried again; those behind it that
  share its lock are busy with it.

So whoever waits sees everything that was kept before, and whoever publishes sees everybody who waited before. A broadcast
signal is never kept: one statement finds its subscribers, without a lock.

What is matched becomes a `Triggered` envelope in the inbox of the execution, in the same transaction. A message, and an
event that one consumer gets, takes a one-shot subscription along: two quick messages never meet one wait. All else leaves
subscriptions to the turns of their executions: a second envelope for the same number is stale there.

What has more subscribers than `SPREAD_FROM`, or would take more than `SPREAD_BYTES`, reaches them in batches. The first
commit fixes who gets it, as lists of their subscriptions, a row for each batch; inbox rows follow by `Publishing.spread`,
whichever nodes do it, a batch in a transaction of its own. Ancestors of the execution that published it have it at once.

An event for one execution, and a message that would start a workflow, also exclude closings: they share the execution's row
(KEY SHARE), and a message holds the workflow id against other starts. Where that is not to be had, they are busy. So does
a wait that may get such a message, which is lost then: if it is rolled back, nobody has closed meanwhile. A closing turn
settles what is kept for its execution in its own commit: events that were sent to it are removed, or become dead letters,
unless its next run takes them over; the oldest kept message that would start a workflow under its workflow id does so, if
nobody is open there then.

What a message starts is fixed when it is kept. One that is kept while nobody offers a workflow that it starts is matched
again when somebody does (`read_unstarted`, then `publish` with `Publishable.kept`): under the lock of whoever publishes,
so each is taken once, whichever nodes come at the same time. A newer one that would start a workflow, or wait for that, is
`behind` it until then.

The decisions are in `holdfast.store.matching`, for all stores.

Nodes of the version before settle nothing when they close an execution. On PostgreSQL a trigger at the end of the commit
puts what nobody has settled into the outbox, as something that came too late: so it is published again. Matching counts
only subscriptions of open executions: an older node may leave some behind.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Final, Protocol

import msgspec

from holdfast.core.instants import Instant
from holdfast.store.rows import InboxRow, Route

SPREAD_FROM: Final = 1_000
"""What has more subscribers reaches them in batches of so many."""
SPREAD_BYTES: Final = 16 * 1024 * 1024
"""So many bytes of envelopes one transaction puts at most of what several receive; what takes more is spread as well."""


class SubscriptionRow(msgspec.Struct, frozen=True, gc=False):
    """A wait of an execution, under the number of the command that asked for it. Never changes."""

    org: str
    kind: str
    name: str
    execution_id: str
    number: int
    key: str = ""
    """The correlation key of a message."""
    where: Mapping[str, str] = {}
    """Fields that an event must have, with their values as canonical JSON text."""
    standing: bool = False
    """Whether it stays after it was triggered."""
    since: Instant = 0
    """When the wait began."""
    created_at: Instant = 0
    """When its execution was created."""
    seen: Sequence[str] = ()
    """Ids of kept events that it does not get, since its execution was given them before. Not stored."""


class PublicationRow(msgspec.Struct, frozen=True, gc=False):
    """Something to be published. In the outbox, what a turn asked for or could not take."""

    org: str
    body: bytes
    """An encoded `Publication`: the store reads all of it but the value."""
    fields: Mapping[str, str] = {}
    """Of an event: the fields by which waits select it, as canonical JSON text."""
    origin: str = ""
    """The execution that published it. A broadcast signal does not reach it by the store: it has had it. Of what came too
    late: the execution for which it did."""
    number: int = 0
    """The number of its command, if it is to be told what became of it; else 0."""
    is_returned: bool = False
    """Whether it was delivered before and came too late: it keeps its place among what is kept, and no limit stops it."""
    id: int = 0
    """Given by the store, in the order of arrival, to what waits in the outbox."""
    subscribers: Sequence[tuple[str, int]] = ()
    """Of what reaches its subscribers in batches, and only within stores: those that it has yet to reach, by this row, as
    (execution id, number). Whoever has ended the subscription by then is not reached."""
    damage: str = ""
    """Why a row of the outbox cannot be read whole; empty if it can."""


class Publishable(msgspec.Struct, frozen=True, gc=False):
    """A publication, and what it starts: for a message if nobody waits for it, for a broadcast signal in any case."""

    row: PublicationRow
    starts: Sequence[InboxRow] = ()
    """Starts by workflow id, each with the publication in it. A message has at most one; it is put only if no execution is
    open under its workflow id and no other start waits there."""
    most_kept: int = 10_000
    """How many of its type may be kept."""
    most_kept_in_org: int | None = None
    """How many items of all types its org may keep; None: as many as it likes."""
    kept: PendingRow | None = None
    """Of a message that is kept and matched again: the row that it is kept as, which goes once it is matched. If it is not
    there any more, somebody has it, and nothing is done. It stays as it is where it finds nobody and starts nothing."""
    ancestors: Collection[str] = ()
    """Of what an execution published: its parent, the parent of that, and so on. They get it with the commit that fixes who
    gets it, however many others there are: the end of the execution may follow right behind."""
    may_pass: Collection[int] = ()
    """Of a message: ids of the rows of older ones that were tried before it, see `Published.behind`."""


class SpreadHead(msgspec.Struct, frozen=True, gc=False):
    """A publication that is spread, without its subscribers."""

    id: int
    org: str
    origin: str
    body: bytes


class Refusal(Enum):
    """Why a publication was refused, without any effect."""

    NOBODY = auto()
    """Nobody waits for the message, nothing starts by it, and it may not be kept."""
    DUPLICATE = auto()
    """A message with its id is kept already."""
    FULL = auto()
    """As many as may be kept of its type are."""
    ORG_FULL = auto()
    """As many as its org may keep are."""
    NO_TARGET = auto()
    """There is no execution to which the event was sent."""
    CLOSED_TARGET = auto()
    """The execution to which the event was sent has ended."""


class Published(msgspec.Struct, frozen=True, gc=False):
    """What became of one publication: the answer of the store."""

    delivered: int = 0
    """How many subscriptions were found."""
    started: int = 0
    kept: bool = False
    refusal: Refusal | None = None
    is_busy: bool = False
    """Whether another transaction has the lock: nothing was done, and it is to be tried again."""
    is_spread: bool = False
    """Whether it reaches its subscribers in batches, by `Publishing.spread`."""
    behind: Sequence[int] = ()
    """Ids of the rows of older messages of the same name and key that are kept and wait for no start, where this one would
    start a workflow or wait for that: nothing was done, and those are to be matched first."""


class PendingRow(msgspec.Struct, frozen=True, gc=False):
    """A publication that is kept until somebody takes it or it expires. Never changes."""

    org: str
    kind: str
    name: str
    key: str
    body: bytes
    """The encoded `Publication`."""
    item: str
    """The id of the publication."""
    sent_at: Instant
    expires_at: Instant
    target: str = ""
    """The execution for which alone it is kept; empty: for everybody."""
    fields: Mapping[str, str] = {}
    start: InboxRow | None = None
    """Of a message: what it starts when the execution that is open under that workflow id closes."""
    id: int = 0
    """Given by the store, in the order of publishing."""
    place: int = 0
    """What is smaller comes first: what was delivered and came back, the oldest first, then all else by `id`."""
    damage: str = ""
    """What is wrong with its columns, where a store could not read them; never stored. Nobody gets such a row."""


class StartSubscriptionRow(msgspec.Struct, frozen=True, gc=False):
    """A workflow that is started by what is published under a name."""

    kind: str
    name: str
    workflow: str
    queue: str
    route: Route
    version: str = ""
    org: str = ""
    """The org in which it holds; empty: in every one."""
    node: str = ""
    """The node that offers it: it counts while that node lives. Empty: it is the org's own, by a deployment."""


class Publishing(Protocol):
    """What a transaction can do about publications, beside writing turns."""

    async def read_starts(self, names: Collection[tuple[str, str]], org: str) -> list[StartSubscriptionRow]:
        """The workflows that are started in an org by these (kind, name) pairs; those of nodes that are gone included."""
        ...

    async def read_outbox(self, limit: int, skip: Collection[int] = ()) -> list[PublicationRow]:
        """Publications that wait to be published and nobody else is at, the oldest first; held until the end.

        Of several for the same name and key (or the same target of an event) only those before which no other is waiting.
        `skip`: ids of rows that are left, and with them what has their name and key: however many these are, others come.
        """
        ...

    async def drop_publications(self, ids: Sequence[int]) -> None:
        """Remove rows from the outbox that nobody can publish."""
        ...

    async def publish(self, items: Sequence[Publishable], now: Instant) -> list[Published]:
        """Match each with the subscriptions that exist, in the order given. Those with ids leave the outbox unless busy."""
        ...

    async def read_kept_messages(self, ids: Collection[int]) -> list[PendingRow]:
        """Messages that are kept, by the ids of their rows."""
        ...

    async def read_unstarted(self, names: Collection[str], now: Instant, limit: int, after: int = 0) -> list[PendingRow]:
        """Kept messages of these names, in all orgs, that no closing execution would start, behind the id `after`, by id."""
        ...

    async def find_spread(self, skip: Collection[int] = ()) -> SpreadHead | None:
        """What `spread` takes next, held until the end; without reading whom it has yet to reach."""
        ...

    async def spread(self, limit: int, now: Instant, skip: Collection[int] = ()) -> int:
        """Put the next inbox rows, up to `limit` and `SPREAD_BYTES`, as of now, of one publication that is spread; how many.

        0: nothing is left to do that others are not at. `skip`: ids of rows that are left.
        """
        ...


class Publications(Protocol):
    """What can be asked and done about publications outside of batches."""

    async def list_pending(
        self, org: str, kind: str, name: str, now: Instant, limit: int = 100, after: int = 0
    ) -> list[PendingRow]:
        """What is kept under a name and has not expired, behind the id `after`, in the order of publishing.

        A row that cannot be read is listed with its `damage`.
        """
        ...

    async def remove_pending(self, org: str, kind: str, name: str, item: str) -> bool:
        """Remove one that is kept, by the id of the publication; whether it was there. Waits for nobody's batch for long."""
        ...

    async def list_subscriptions(self, org: str, execution_id: str) -> list[SubscriptionRow]:
        """The subscriptions of an execution, by number."""
        ...

    async def purge_pending(self, before: Instant, limit: int) -> int:
        """Remove up to `limit` kept publications that expired before then; how many."""
        ...

    async def put_starts(self, node: str, rows: Sequence[StartSubscriptionRow]) -> None:
        """Replace what a node offers to start. It goes when the node leaves or is removed."""
        ...
