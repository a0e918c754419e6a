"""One transaction that publishes: what callers of this node asked for, and what turns left in the outbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.core import codec
from holdfast.core.envelopes import PublicationAnswered, Triggered
from holdfast.core.failures import describe_exception
from holdfast.core.ids import derive_entropy, make_execution_id
from holdfast.core.instants import Instant
from holdfast.core.publications import (
    DEFAULT_EVENT,
    OnTargetTerminated,
    Publication,
    SubscriptionKind,
)
from holdfast.core.request_keys import RequestKey
from holdfast.engine.publishing.publish_requests import PublishRequest, RememberedAnswer
from holdfast.engine.publishing.refusals import make_refusal, tell_org_full
from holdfast.engine.publishing.start_subscriptions import StartCause, StartFinder
from holdfast.engine.rows import find_following
from holdfast.errors import CorruptStore, HoldfastError, NewerFormat, OutcomeUnknown, StoreUnavailable
from holdfast.store.contract import Claim, UnroutedWrite
from holdfast.store.matching import is_consumed
from holdfast.store.publications import PendingRow, PublicationRow, Publishable, Published, Refusal
from holdfast.store.rows import DeadLetterRow, ExecutionRow, InboxRow, RequestKeyId, RequestRow
from holdfast.store.wait_matching import read_kept

if TYPE_CHECKING:
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.store.contract import Store, Transaction

OUTBOX_LIMIT: Final = 200
"""How many rows of the outbox one transaction publishes."""
MOST_OLDER_BATCHES: Final = 10
"""So often older kept messages are matched before newer ones in one transaction; then those are tried again."""
MOST_ANCESTORS: Final = 200
"""So many parents, one of the other, are looked for above an execution that published something."""
MOST_RUNS: Final = 1_000
"""So many runs further an event is sent that names an earlier run of its receiver by its execution id."""
_REMEMBERED: Final = msgspec.json.Decoder(RememberedAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishBatchDeps:
    """What a publishing transaction works with."""

    store: Store
    clock: Clock
    config: Config
    node: str
    starts: StartFinder


@dataclass(frozen=True, slots=True)
class OutboxOrder:
    """What a publishing transaction takes from the outbox."""

    limit: int = OUTBOX_LIMIT
    """At most so many rows; 0: none."""
    skip: Collection[int] = ()
    """Ids of rows that are left where they are."""
    given_up: Mapping[int, HoldfastError] = field(default_factory=dict)
    """Why rows cannot be published, by their ids: they become dead letters."""


NO_OUTBOX: Final = OutboxOrder(0)


@dataclass(frozen=True, slots=True)
class KeptOrder:
    """Which kept messages a publishing transaction matches again: those that wait for no start."""

    names: Collection[str]
    after: int = 0
    """The id of the row behind which it begins."""
    limit: int = OUTBOX_LIMIT


@dataclass(slots=True)
class PublishOutcome:
    """What follows from a committed publishing transaction."""

    answers: list[tuple[PublishRequest, Published | HoldfastError]] = field(default_factory=list)
    busy: list[PublishRequest] = field(default_factory=list)
    """Requests to be tried again: another transaction has the lock."""
    has_sent: bool = False
    """Whether rows were put into inboxes."""
    has_spreads: bool = False
    """Whether something reaches its subscribers in batches."""
    has_more: bool = False
    """Whether the outbox may hold more that can be published at once."""
    busy_rows: list[int] = field(default_factory=list)
    """Ids of rows of the outbox that have to be tried again soon."""
    is_full: bool = False
    """Whether as many rows of the outbox were taken as one transaction takes: others may be behind them."""
    busy_kept: list[int] = field(default_factory=list)
    """Ids of rows of kept messages that have to be matched again soon."""
    unstarted: set[str] = field(default_factory=set)
    """Names of messages that are kept and wait for no start."""
    newer: list[int] = field(default_factory=list)
    """Ids of rows of the outbox that a newer Holdfast wrote."""
    has_dead_letters: bool = False
    kept_until: Instant | None = None
    """When the first of what is kept expires, if anything is."""

    @property
    def is_busy(self) -> bool:
        """Whether rows of the outbox have to be tried again soon."""
        return bool(self.busy_rows)


class _Item:
    """Something to be published in this transaction: a request of a caller, a row of the outbox, or a kept message."""

    __slots__ = ("ancestors", "answer", "bad_start", "kept", "publication", "request", "row", "starts")

    def __init__(
        self,
        row: PublicationRow,
        publication: Publication,
        request: PublishRequest | None = None,
        kept: PendingRow | None = None,
    ) -> None:
        self.row = row
        self.publication = publication
        self.request = request
        self.kept = kept
        self.ancestors: set[str] = set()
        """Of the execution that published it, where others may get it, too."""
        self.starts: Sequence[InboxRow] = ()
        self.bad_start: HoldfastError | None = None
        """Why its value is no input for a workflow that it would start."""
        self.answer: Published | HoldfastError | None = None

    @property
    def has_sender(self) -> bool:
        """Whether an execution is to be told what became of it."""
        return self.row.number > 0

    @property
    def is_for_one(self) -> bool:
        """Whether it has one receiver at most."""
        return bool(self.publication.target) or is_consumed(self.publication)

    def change(self, publication: Publication) -> None:
        """Publish something else in its place."""
        self.publication = publication
        self.row = msgspec.structs.replace(self.row, body=codec.encode(publication))


class PublishBatch:
    """Publishes requests and rows of the outbox in one transaction. Made anew for each."""

    def __init__(
        self,
        deps: PublishBatchDeps,
        requests: Sequence[PublishRequest],
        outbox: OutboxOrder = NO_OUTBOX,
        kept: KeptOrder | None = None,
    ) -> None:
        self._deps = deps
        self._requests = requests
        self._outbox = outbox
        self._kept = kept
        self.taken: list[int] = []
        """Ids of the rows of the outbox that it took."""
        self.taken_kept: list[int] = []
        """Ids of the rows of kept messages that it matched again."""
        self._now: Instant = deps.clock.now()
        self._write = UnroutedWrite()
        self._outcome = PublishOutcome()
        self._unwanted: list[tuple[_Item, HoldfastError]] = []

    async def run(self) -> PublishOutcome:
        """Publish, and commit. Raises StoreUnavailable if nothing was stored, OutcomeUnknown if that cannot be told."""
        transaction = await self._deps.store.begin()
        try:
            # What was delivered before and came back goes first: it is older than what callers send now.
            older = [*await self._take_outbox(transaction), *await self._take_kept(transaction)]
            items = [*older, *await self._take_requests(transaction)]
            if items:
                await self._resolve_targets(transaction, items)
                await self._find_ancestors(transaction, items)
                await self._find_starts(transaction, items)
                await self._publish(transaction, items)
            if items or self._write != UnroutedWrite():
                await transaction.write([], self._write)
                await self._commit(transaction)
            else:
                await transaction.rollback()
        except BaseException:
            await transaction.rollback()
            raise
        return self._outcome

    # --- what is to be published ---

    async def _take_requests(self, transaction: Transaction) -> list[_Item]:
        """The requests that were not answered before. One whose key another transaction holds is busy."""
        keys = {_key_id(one.row.org, one.key): one for one in reversed(self._requests) if one.key is not None}
        held = set(keys)
        if keys and not self._deps.store.exclusive:
            held = (await transaction.claim(Claim(request_keys=list(keys)))).held_keys
        known = await transaction.read_requests(list(keys), self._now) if keys else {}
        items: list[_Item] = []
        for request in self._requests:
            key = None if request.key is None else _key_id(request.row.org, request.key)
            if key is None:
                items.append(_Item(request.row, request.publication, request))
            elif (remembered := known.get(key)) is not None:
                self._outcome.answers.append((request, _read_remembered(remembered)))
            elif key in held and keys[key] is request:
                items.append(_Item(request.row, request.publication, request))
            else:
                self._outcome.busy.append(request)
        return items

    async def _take_outbox(self, transaction: Transaction) -> list[_Item]:
        order = self._outbox
        if not order.limit:
            return []
        rows = await transaction.read_outbox(order.limit, order.skip)
        self._outcome.has_more = bool(rows)
        self._outcome.is_full = len(rows) >= order.limit
        self.taken = [row.id for row in rows]
        items: list[_Item] = []
        dropped: list[int] = []
        for row in rows:
            try:
                if row.damage:
                    raise CorruptStore(row.damage)
                publication = codec.decode_publication(row.body)
            except NewerFormat:
                self._outcome.newer.append(row.id)  # it waits for a node that can read it
                continue
            except CorruptStore as error:
                dropped.append(row.id)
                self._give_up_row(row, row.body, error)
                continue
            reason = order.given_up.get(row.id)
            if reason is None:
                items.append(_Item(row, publication))
            else:
                dropped.append(row.id)
                self._give_up_row(row, codec.encode(Triggered(number=0, publication=publication)), reason)
        if dropped:
            await transaction.drop_publications(dropped)
        return items

    async def _take_kept(self, transaction: Transaction) -> list[_Item]:
        order = self._kept
        if order is None or not await self._deps.starts.is_offered(transaction, order.names):
            return []
        rows = await transaction.read_unstarted(order.names, self._now, order.limit, order.after)
        self.taken_kept = [row.id for row in rows]
        return _make_kept_items(rows)

    def _give_up_row(self, row: PublicationRow, body: bytes, error: HoldfastError) -> None:
        """Make a dead letter of a row of the outbox that cannot be published, and tell the execution that published it."""
        self._bury(row, row.origin, body, error)
        if row.number:
            self._tell_sender(row, error)

    async def _resolve_targets(self, transaction: Transaction, items: Sequence[_Item]) -> None:
        """Find the executions for which events are that name one: by its id, or by its workflow id."""
        named = [item for item in items if item.publication.target]
        rows = await transaction.read_rows({item.publication.target for item in named}) if named else {}
        for item in named:
            org, target = item.row.org, item.publication.target
            row: ExecutionRow | None = rows.get(target)
            if row is None or row.org != org:
                row = await transaction.read_latest(org, target)
            if row is not None:
                row = await _find_last_run(transaction, row)
            if row is not None and row.execution_id != target:
                item.change(msgspec.structs.replace(item.publication, target=row.execution_id))

    async def _find_ancestors(self, transaction: Transaction, items: Sequence[_Item]) -> None:
        """Find the ancestors of executions that published something which may have many receivers."""
        unread = {item.row.origin for item in items if item.has_sender and not item.is_for_one}
        parents: dict[str, str] = {}
        for _ in range(MOST_ANCESTORS):
            if not unread:
                break
            rows = await transaction.read_rows(unread)
            found = {row.execution_id: row.parent_id for row in rows.values() if row.parent_id is not None}
            parents.update(found)
            unread = set(found.values()) - parents.keys()
        for item in items:
            ancestor = parents.get(item.row.origin) if item.has_sender else None
            while ancestor is not None and ancestor not in item.ancestors:
                item.ancestors.add(ancestor)
                ancestor = parents.get(ancestor)

    async def _find_starts(self, transaction: Transaction, items: Sequence[_Item]) -> None:
        for org in dict.fromkeys(item.row.org for item in items):
            own = [item for item in items if item.row.org == org]
            causes = [StartCause(item.publication, may_fail=item.request is None) for item in own]
            found = await self._deps.starts.find(transaction, org, causes)
            for item, starts in zip(own, found, strict=True):
                if not isinstance(starts, HoldfastError):
                    item.starts = starts
                    continue
                item.bad_start = starts
                if item.publication.kind is SubscriptionKind.MESSAGE:
                    # Who waits for the message gets it, whatever it is. If nobody does, it is neither kept nor a start.
                    item.change(msgspec.structs.replace(item.publication, expires_at=None))

    # --- publishing ---

    async def _publish(self, transaction: Transaction, items: Sequence[_Item]) -> None:
        most_kept = self._deps.config.max_pending_events
        refused = [one for one in items if one.bad_start is not None and one.publication.kind is SubscriptionKind.BROADCAST]
        for item in refused:
            item.answer = item.bad_start
        await self._match(transaction, [item for item in items if item.answer is None])
        for item in [*items, *await self._match_older(transaction, items)]:
            self._settle(item, most_kept)
        if self._unwanted:
            await self._give_up(transaction)

    async def _match(self, transaction: Transaction, items: Sequence[_Item], tried: Collection[int] = ()) -> None:
        """Let the store answer items. `tried`: ids of the rows of kept messages that nothing waits behind any more."""
        most_kept = self._deps.config.max_pending_events
        publishables = [
            Publishable(
                item.row, item.starts, most_kept, self._find_most_kept(item.row.org), item.kept, item.ancestors, tried
            )
            for item in items
        ]
        for item, published in zip(items, await transaction.publish(publishables, self._now), strict=True):
            item.answer = published

    async def _match_older(self, transaction: Transaction, items: Sequence[_Item]) -> list[_Item]:
        """Match kept messages before newer ones of their name and key, and then those; the kept ones.

        They were kept while no living node had the workflow that they start.
        """
        found: list[_Item] = []
        tried: set[int] = set()
        for _ in range(MOST_OLDER_BATCHES):
            behind = {item: _list_behind(item) for item in items if _list_behind(item)}
            if not behind:
                return found
            own = {item.kept.id for item in behind if item.kept is not None}
            ids = {one for listed in behind.values() for one in listed} - own
            older = _make_kept_items(await transaction.read_kept_messages(sorted(ids)))
            await self._find_starts(transaction, older)
            again = [*older, *behind]
            again.sort(key=_find_age)
            await self._match(transaction, again, tried)
            found += older
            tried |= ids
        for item in items:
            if _list_behind(item):
                item.answer = Published(is_busy=True)
        return found

    def _find_most_kept(self, org: str) -> int | None:
        limits = self._deps.config.limits_of(org)
        return None if limits is None else limits.kept_items

    def _settle(self, item: _Item, most_kept: int) -> None:
        answer, outcome = item.answer, self._outcome
        if isinstance(answer, Published):
            if answer.is_busy:
                if item.request is not None:
                    outcome.busy.append(item.request)
                elif item.kept is not None:
                    outcome.busy_kept.append(item.kept.id)
                else:
                    outcome.busy_rows.append(item.row.id)
                return
            if answer.refusal is not None:
                is_bad = item.bad_start is not None and answer.refusal is Refusal.NOBODY
                if answer.refusal is Refusal.ORG_FULL:
                    answer = tell_org_full(item.publication, item.row.org, self._find_most_kept(item.row.org) or 0)
                else:
                    answer = item.bad_start if is_bad else make_refusal(item.publication, answer.refusal, most_kept)
            else:
                outcome.has_sent |= bool(answer.delivered or answer.started)
                outcome.has_spreads |= answer.is_spread
                if answer.kept and (expires_at := item.publication.expires_at) is not None:
                    outcome.kept_until = min(expires_at, outcome.kept_until or expires_at)
                    if item.kept is None and item.publication.kind is SubscriptionKind.MESSAGE and not item.starts:
                        outcome.unstarted.add(item.publication.name)
        assert answer is not None  # noqa: S101 - each item was published or refused
        if item.request is not None:
            outcome.answers.append((item.request, answer))
            if item.request.key is not None and isinstance(answer, Published):
                self._write.requests.append(_remember(item.row.org, item.request.key, answer))
        elif item.has_sender:
            self._tell_sender(item.row, answer)
        elif isinstance(answer, HoldfastError):
            self._unwanted.append((item, answer))

    def _tell_sender(self, row: PublicationRow, answer: Published | HoldfastError) -> None:
        """Tell the execution that published it what became of it."""
        if isinstance(answer, HoldfastError):
            envelope = PublicationAnswered(number=row.number, failure=describe_exception(answer))
        else:
            envelope = PublicationAnswered(
                number=row.number, delivered=answer.delivered, started=answer.started, kept=answer.kept
            )
        self._write.outgoing.append(InboxRow(row.org, row.origin, "", codec.encode(envelope), at=self._now))
        self._outcome.has_sent = True

    async def _give_up(self, transaction: Transaction) -> None:
        """What came too late for whom it was delivered to, and nobody else takes: a next run gets it, or nobody ever."""
        for item, error in self._unwanted:
            publication, row = item.publication, item.row
            body = codec.encode(Triggered(number=0, publication=publication))
            if publication.kind is SubscriptionKind.EVENT:
                options = publication.event or DEFAULT_EVENT
                if options.on_target_terminated is OnTargetTerminated.DISCARD:
                    continue
            elif row.origin and (following := await self._find_beginner(transaction, row.origin)):
                self._write.outgoing.append(InboxRow(row.org, following, "", body, at=self._now))
                self._outcome.has_sent = True
                continue
            self._bury(row, publication.target, body, error)

    async def _find_beginner(self, transaction: Transaction, receiver: str) -> str | None:
        """The next run of an execution, if its code has not begun: it may wait for what the run before was given.

        There it is stale, and published again right behind the first turn.
        """
        closed = (await transaction.read_rows({receiver})).get(receiver)
        following = None if closed is None else find_following(closed)
        if following is None:
            return None
        row = (await transaction.read_rows({following})).get(following)
        return following if row is not None and row.closed_at is None and row.sequence == 0 else None

    def _bury(self, row: PublicationRow, receiver: str, body: bytes, error: HoldfastError) -> None:
        """Put something into the dead letters, under the execution that it is of, or one that never was."""
        if self._deps.config.dead_letter_policy == "keep":
            receiver = receiver or make_execution_id(self._now, derive_entropy(f"publication {row.id or row.body!r}"))
            letter = DeadLetterRow(row.org, receiver, "", body, error.message, self._deps.node, self._now)
            self._write.dead_letters.append(letter)
            self._outcome.has_dead_letters = True

    async def _commit(self, transaction: Transaction) -> None:
        try:
            await transaction.commit()
        except OutcomeUnknown as error:
            if not await self._deps.store.was_committed(transaction):
                raise StoreUnavailable(
                    "Expected to publish, but the connection broke and nothing was stored. Try again.", fault=error.fault
                ) from error


def _list_behind(item: _Item) -> Sequence[int]:
    """Ids of the rows of kept messages that are to be matched before it."""
    return item.answer.behind if isinstance(item.answer, Published) else ()


def _find_age(item: _Item) -> tuple[bool, int, int]:
    """What is kept by its place and its age, then all else in its order."""
    return (True, 0, 0) if item.kept is None else (False, item.kept.place, item.kept.id)


def _make_kept_items(rows: Iterable[PendingRow]) -> list[_Item]:
    """Kept messages to be matched again, in their order; those that cannot be read here are left."""
    return [
        _Item(PublicationRow(row.org, row.body, row.fields, is_returned=True), publication, kept=row)
        for row in sorted(rows, key=lambda row: (row.place, row.id))
        if (publication := read_kept(row)) is not None
    ]


async def _find_last_run(transaction: Transaction, row: ExecutionRow) -> ExecutionRow:
    """The last run of the chain of an execution, from one of its runs on, as far as there are rows of them."""
    for _ in range(MOST_RUNS):
        following = find_following(row)
        found = None if following is None else (await transaction.read_rows({following})).get(following)
        if found is None:
            break
        row = found
    return row


def _key_id(org: str, key: RequestKey) -> RequestKeyId:
    return org, key.kind, key.key


def _remember(org: str, key: RequestKey, answer: Published) -> RequestRow:
    remembered = RememberedAnswer(answer.delivered, answer.started, answer.kept)
    return RequestRow(org, key.kind, key.key, "", None, key.expires_at, msgspec.json.encode(remembered))


def _read_remembered(row: RequestRow) -> Published:
    try:
        found = _REMEMBERED.decode(row.answer or b"{}")
    except msgspec.MsgspecError:
        found = RememberedAnswer()
    return Published(delivered=found.delivered, started=found.started, kept=found.kept)
