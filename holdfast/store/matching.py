"""How publications and subscriptions find each other: the decisions, as pure functions that all stores share.

A store locks, reads facts, asks for a plan, and writes what the plan says, one statement per table. Decisions are made in
the order of what is given, each with regard to those before it: what one publication takes, the next one does not find.

`holdfast.store.wait_matching` has what is about turns that begin and end waits.

How a store publishes: locks (`list_publish_locks`), in a new statement the waiters (`Probe`), targets, workflow ids of
starts and counts; then `plan_publishing`. How it writes turns with subscriptions: locks (`list_turn_locks`), in a new
statement what is kept and who holds messages; then the turns, and for those that are not lost `plan_subscribing`. Nothing
that was read can change meanwhile: whoever would change it needs the lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from holdfast.core.codec import decode_publication, encode
from holdfast.core.instants import Instant
from holdfast.core.publications import (
    DEFAULT_EVENT,
    DeliveryMode,
    EventOptions,
    Publication,
    SubscriptionKind,
)
from holdfast.store.publications import (
    SPREAD_BYTES,
    SPREAD_FROM,
    PendingRow,
    PublicationRow,
    Publishable,
    Published,
    Refusal,
    SubscriptionRow,
)
from holdfast.store.rows import ExecutionRow, InboxRow, Route

EVER: Final = 2**62
"""Later than every instant."""
_LONGEST_LOOKUP: Final = 500
"""Longer texts are looked up by their digests: an index has no room for them."""
_START: Final = b'{"type":"start"'
"""How the envelope of a start begins."""
MOST_OLDER: Final = 50
"""So many kept messages of one name and key are looked at before a newer one."""
_STAYS: Final = Published(kept=True)
"""What is answered of a kept message that is matched again, and stays as it is."""

NumberKey: TypeAlias = tuple[str, int]
"""(execution id, number) of a subscription."""
Pair: TypeAlias = tuple[str, str]
"""(org, execution id) or (org, workflow id)."""


class LockKey(NamedTuple):
    """What is locked against those who wait for, or publish, the same thing."""

    org: str
    kind: str
    name: str
    key: str


# --- what is looked up --------------------------------------------------------------------------------------------------


def shorten(text: str) -> str:
    """A text as it is looked up by an index."""
    return text if len(text) * 4 <= _LONGEST_LOOKUP or len(text.encode()) <= _LONGEST_LOOKUP else _digest(text)


def _digest(text: str) -> str:
    return "\x01" + sha256(text.encode()).hexdigest()


def name_fields(where: Mapping[str, str]) -> str:
    """The names of the fields that a wait selects by, as one text; empty if it selects by none."""
    return encode(sorted(where)).decode() if where else ""


def make_lookup(row: SubscriptionRow) -> str:
    """By what a subscription is found under its kind, its name and its fields."""
    if row.where:
        return shorten(encode([row.where[name] for name in sorted(row.where)]).decode())
    return shorten(row.key)


def find_lookup(fields: str, values: Mapping[str, str]) -> str | None:
    """The lookup of waits that select by these fields, for an event with these values; None if it lacks one of them."""
    if not fields:
        return ""
    try:
        names = msgspec.json.decode(fields, type=list[str])
    except msgspec.MsgspecError:
        return None  # damaged: only that wait is not found
    if any(name not in values for name in names):
        return None
    return shorten(encode([values[name] for name in names]).decode())


def make_triggered(number: int, body: bytes) -> bytes:
    """An encoded `Triggered` envelope with an encoded publication in it."""
    return b'{"type":"triggered","number":%d,"publication":%b}' % (number, body)


def list_spread_rows(spreads: Iterable[PublicationRow], executions: Iterable[ExecutionRow]) -> dict[str, list[InboxRow]]:
    """What has yet to reach executions, by their ids, as the inbox rows that it will be."""
    asked = {row.execution_id: row for row in executions}
    found: dict[str, list[InboxRow]] = {}
    for spread in spreads:
        for execution_id, number in spread.subscribers:
            if (row := asked.get(execution_id)) is not None and row.closed_at is None:
                inbox_row = InboxRow(row.org, execution_id, "", make_triggered(number, spread.body), route=row.route)
                found.setdefault(execution_id, []).append(inbox_row)
    return found


def cut_spread(row: PublicationRow, most: int) -> tuple[Sequence[NumberKey], Sequence[NumberKey]]:
    """The subscribers of a row that are reached now, at least one, and those that are left."""
    most = min(most, max(1, SPREAD_BYTES // len(row.body)))
    return row.subscribers[:most], row.subscribers[most:]


def is_start(body: bytes) -> bool:
    """Whether an envelope in an inbox is a start."""
    return body.startswith(_START)


def find_options(publication: Publication) -> EventOptions:
    """The options of an event: those of its type, or the default ones."""
    return publication.event or DEFAULT_EVENT


def is_consumed(publication: Publication) -> bool:
    """Whether one receiver gets it, and nobody else."""
    if publication.kind is SubscriptionKind.EVENT:
        return find_options(publication).consume_on_read
    return publication.kind is SubscriptionKind.MESSAGE


def find_mode(publication: Publication) -> DeliveryMode:
    """Which events a wait gets, by the options of this one."""
    return find_options(publication).delivery_mode


# --- publishing ---------------------------------------------------------------------------------------------------------


class Parsed(NamedTuple):
    """A publication with what the store reads of it."""

    item: Publishable
    publication: Publication

    @property
    def lock(self) -> LockKey:
        """What others of its kind, name and key share with it."""
        publication = self.publication
        return LockKey(self.item.row.org, publication.kind.value, publication.name, publication.key)

    @property
    def target(self) -> Pair:
        """The execution to which it was sent alone."""
        return self.item.row.org, self.publication.target


class Waiter(NamedTuple):
    """A subscription of an open execution."""

    id: int
    """Its age among all of them: the oldest has the smallest."""
    org: str
    execution_id: str
    number: int
    standing: bool
    route: Route


class Probe(NamedTuple):
    """One look for waiters, by an index: at most `limit` of them, the oldest first."""

    place: int
    """The place of its publication among those that are published."""
    org: str
    kind: str
    name: str
    fields: str
    lookup: str
    origin: str
    """An execution that is left out; empty: none."""
    since: Instant
    """Waits that began later are left out."""
    created: Instant
    """Waits of executions that were created later are left out."""
    limit: int


class Presence(Enum):
    """What is found under an id."""

    FREE = auto()
    """Nothing: no execution is open, and none is about to start."""
    OPEN = auto()
    CLOSED = auto()
    BUSY = auto()
    """Another transaction is at it."""


class PublishingFacts(msgspec.Struct):
    """What a store knows about those that are to be published."""

    busy: Collection[LockKey] = ()
    waiters: dict[int, list[Waiter]] = msgspec.field(default_factory=dict)
    """By the place of the publication, the oldest first."""
    everybody: dict[int, list[Waiter]] = msgspec.field(default_factory=dict)
    """All waiters of those that have more than SPREAD_FROM."""
    targets: Mapping[Pair, Presence] = {}
    """By (org, execution id). One that is missing is FREE."""
    workflow_ids: Mapping[Pair, Presence] = {}
    kept: Mapping[tuple[str, str, str], int] = {}
    """How many are kept, by (org, kind, name)."""
    kept_in_org: Mapping[str, int] = {}
    """How many are kept of all kinds and names, by org, where that is limited."""
    kept_ids: Collection[tuple[str, str, str, str]] = ()
    """Messages that are kept, as (org, name, key, id)."""
    unstarted: Mapping[tuple[str, str, str], Sequence[tuple[int, int]]] = {}
    """(place, id) of those among the first `MOST_OLDER` kept messages that wait for no start, by (org, name, key)."""
    still_kept: Collection[int] = ()
    """Ids of the rows of those that are kept and matched again, where they are still there."""


class PublishingPlan(msgspec.Struct):
    """What to write, and what to answer."""

    answers: list[Published] = msgspec.field(default_factory=list)
    inbox: list[InboxRow] = msgspec.field(default_factory=list)
    ended: list[NumberKey] = msgspec.field(default_factory=list)
    kept: list[PendingRow] = msgspec.field(default_factory=list)
    spreads: list[PublicationRow] = msgspec.field(default_factory=list)
    done: list[int] = msgspec.field(default_factory=list)
    """Ids of those that leave the outbox."""
    taken: list[int] = msgspec.field(default_factory=list)
    """Ids of kept publications that are kept no longer."""
    starts: list[tuple[int, InboxRow]] = msgspec.field(default_factory=list)
    """Ids of kept messages, and what each starts from now on when its workflow id is free: they stay in their place."""


def parse(items: Iterable[Publishable]) -> list[Parsed]:
    """Publications with what is read of them. Raises CorruptStore or NewerFormat."""
    return [Parsed(item, decode_publication(item.row.body)) for item in items]


def list_publish_locks(parsed: Iterable[Parsed]) -> list[LockKey]:
    """What is to be locked alone, in the order in which everybody locks."""
    return sorted({one.lock for one in parsed if one.publication.kind is not SubscriptionKind.BROADCAST})


def list_event_names(parsed: Iterable[Parsed]) -> list[Pair]:
    """The (org, name) pairs of events for everybody: the fields by which waits select them are to be found."""
    events = (one for one in parsed if one.publication.kind is SubscriptionKind.EVENT and not one.publication.target)
    return list(dict.fromkeys((one.item.row.org, one.publication.name) for one in events))


def list_probes(parsed: Sequence[Parsed], busy: Collection[LockKey], shapes: Mapping[Pair, Sequence[str]]) -> list[Probe]:
    """Where to look for waiters. `shapes`: by which fields waits select events, by (org, name)."""
    counts = Counter(one.lock for one in parsed)
    probes: list[Probe] = []
    for place, one in enumerate(parsed):
        publication, row = one.publication, one.item.row
        if one.lock in busy or publication.target:
            continue
        limit = counts[one.lock] if is_consumed(publication) else SPREAD_FROM + 1
        late = publication.sent_at if row.is_returned and publication.kind is SubscriptionKind.EVENT else EVER
        mode = find_options(publication).delivery_mode
        since = late if mode is DeliveryMode.AFTER_WAIT else EVER
        created = late if mode is not DeliveryMode.ALL else EVER
        is_broadcast = publication.kind is SubscriptionKind.BROADCAST
        origin = row.origin if is_broadcast else ""
        if publication.kind is SubscriptionKind.EVENT:
            lookups = [(fields, find_lookup(fields, row.fields)) for fields in shapes.get((row.org, publication.name), ())]
        else:
            lookups = [("", "" if is_broadcast else shorten(publication.key))]
        probes += [
            Probe(place, row.org, one.lock.kind, publication.name, fields, lookup, origin, since, created, limit)
            for fields, lookup in lookups
            if lookup is not None
        ]
    return probes


def list_targets(parsed: Iterable[Parsed], busy: Collection[LockKey]) -> list[Pair]:
    """Executions to which events were sent, as (org, execution id): they are to be shared against closings."""
    return sorted({one.target for one in parsed if one.publication.target and one.lock not in busy})


def list_start_ids(parsed: Sequence[Parsed], facts: PublishingFacts) -> list[Pair]:
    """(org, workflow id) pairs that messages may start: they are to be locked against other starts."""
    counts = Counter(one.lock for one in parsed)
    found: set[Pair] = set()
    for place, one in enumerate(parsed):
        waiters = facts.waiters.get(place, ())
        is_message = one.publication.kind is SubscriptionKind.MESSAGE and one.lock not in facts.busy
        is_served = len(waiters) >= counts[one.lock] or any(waiter.standing for waiter in waiters)
        if is_message and one.item.starts and not is_served:
            found.add((one.item.row.org, one.item.starts[0].workflow_id))
    return sorted(found)


def list_counted(parsed: Iterable[Parsed], now: Instant) -> list[tuple[str, str, str, int]]:
    """(org, kind, name, limit) of those that may have to be kept: how many of them are kept, up to the limit, counts."""
    most: dict[tuple[str, str, str], int] = {}
    for one in parsed:
        if _may_keep(one, now) and not one.item.row.is_returned:
            name = (one.item.row.org, one.lock.kind, one.publication.name)
            most[name] = max(most.get(name, 0), one.item.most_kept)
    return [(*name, limit) for name, limit in most.items()]


def list_counted_orgs(parsed: Iterable[Parsed], now: Instant) -> list[tuple[str, int]]:
    """(org, limit) of the orgs that may keep only so much, and of which something may have to be kept."""
    most: dict[str, int] = {}
    for one in parsed:
        limit = one.item.most_kept_in_org
        if limit is not None and not one.item.row.is_returned and _may_keep(one, now):
            most[one.item.row.org] = limit
    return list(most.items())


def list_message_ids(parsed: Iterable[Parsed]) -> list[tuple[str, str, str, str]]:
    """(org, name, key, id) of messages: whether one with that id is kept, and which older ones wait for no start, counts."""
    messages = (one for one in parsed if one.publication.kind is SubscriptionKind.MESSAGE)
    return [(one.item.row.org, one.publication.name, one.publication.key, one.publication.id) for one in messages]


def list_kept_again(parsed: Iterable[Parsed]) -> list[int]:
    """Ids of the rows of messages that are kept and matched again: they may be gone by now."""
    return [one.item.kept.id for one in parsed if one.item.kept is not None]


def _may_keep(one: Parsed, now: Instant) -> bool:
    publication = one.publication
    if publication.kind is SubscriptionKind.BROADCAST or publication.expires_at is None or publication.expires_at <= now:
        return False
    return publication.kind is SubscriptionKind.MESSAGE or find_mode(publication) is not DeliveryMode.AFTER_WAIT


def _find_place(one: Parsed) -> int:
    """Its place among what is kept: what comes back was taken before all that is kept was."""
    return one.publication.sent_at - EVER if one.item.row.is_returned else 0


def plan_publishing(parsed: Sequence[Parsed], facts: PublishingFacts, now: Instant) -> PublishingPlan:
    """What becomes of each publication, in the order given."""
    return _Publisher(facts, now).publish(parsed)


class _Publisher:
    """Decides about publications, one after the other."""

    def __init__(self, facts: PublishingFacts, now: Instant) -> None:
        self._facts = facts
        self._now = now
        self._plan = PublishingPlan()
        self._taken: set[NumberKey] = set()
        self._started: set[Pair] = set()
        self._kept = dict(facts.kept)
        self._kept_in_org = dict(facts.kept_in_org)
        self._kept_ids = set(facts.kept_ids)
        self._bytes = 0
        """Of envelopes to several receivers."""
        self._put_off: set[tuple[LockKey, str]] = set()
        """What later publications must not overtake, by lock and target: one before them is busy."""

    def publish(self, parsed: Sequence[Parsed]) -> PublishingPlan:
        for place, one in enumerate(parsed):
            answer = self._publish(place, one)
            self._plan.answers.append(answer)
            if answer.is_busy or answer.behind:
                self._put_off.add((one.lock, one.publication.target))
                continue
            if one.item.row.id:
                self._plan.done.append(one.item.row.id)
            if one.item.kept is not None and one.item.kept.id in self._facts.still_kept and answer is not _STAYS:
                self._plan.taken.append(one.item.kept.id)
        return self._plan

    def _publish(self, place: int, one: Parsed) -> Published:
        if one.lock in self._facts.busy or (one.lock, one.publication.target) in self._put_off:
            return Published(is_busy=True)
        if one.item.kept is not None and one.item.kept.id not in self._facts.still_kept:
            return Published()
        if self._is_crowded(place, one):
            return Published(is_busy=True)
        match one.publication.kind:
            case SubscriptionKind.MESSAGE:
                return self._publish_message(place, one)
            case SubscriptionKind.EVENT:
                return self._publish_event(place, one)
            case SubscriptionKind.BROADCAST:
                self._plan.inbox += one.item.starts
                return self._deliver_to_all(place, one, Published(started=len(one.item.starts)))

    def _publish_message(self, place: int, one: Parsed) -> Published:
        publication, row = one.publication, one.item.row
        if not row.is_returned and (row.org, publication.name, publication.key, publication.id) in self._kept_ids:
            return Published(refusal=Refusal.DUPLICATE)
        if self._deliver_to_one(place, one):
            return Published(1)
        start = one.item.starts[0] if one.item.starts else None
        if start is not None:
            workflow_id = (row.org, start.workflow_id)
            presence = self._facts.workflow_ids.get(workflow_id, Presence.FREE)
            if presence is Presence.BUSY:
                return Published(is_busy=True)
            may_start = presence is not Presence.OPEN and workflow_id not in self._started
            if (may_start or _may_keep(one, self._now)) and (older := self._list_older(one)):
                return Published(behind=older)
            if may_start:
                self._started.add(workflow_id)
                self._plan.inbox.append(start)
                return Published(started=1)
        if not _may_keep(one, self._now):
            return Published(refusal=Refusal.NOBODY)
        if one.item.kept is None:
            return self._keep(one, start)
        if start is not None:
            self._plan.starts.append((one.item.kept.id, start))
        return _STAYS

    def _list_older(self, one: Parsed) -> list[int]:
        """Ids of the rows of kept messages of its name and key that come before it and wait for no start."""
        publication, row, kept = one.publication, one.item.row, one.item.kept
        found = self._facts.unstarted.get((row.org, publication.name, publication.key), ())
        if kept is not None:
            own = (kept.place, kept.id)
        else:
            own = (_find_place(one), 0) if row.is_returned else (1, 0)  # behind all that is kept
        passed = (*self._plan.taken, *one.item.may_pass)
        return [key[1] for key in found if key < own and key[1] not in passed]

    def _publish_event(self, place: int, one: Parsed) -> Published:
        if one.publication.target:
            match self._facts.targets.get(one.target, Presence.FREE):
                case Presence.FREE:
                    return Published(refusal=Refusal.NO_TARGET)
                case Presence.CLOSED:
                    return Published(refusal=Refusal.CLOSED_TARGET)
                case Presence.BUSY:
                    return Published(is_busy=True)
                case Presence.OPEN:
                    pass
        keeps = _may_keep(one, self._now)
        if find_options(one.publication).consume_on_read:
            if self._deliver_to_one(place, one):
                return Published(1)
            return self._keep(one) if keeps else Published()
        answer = self._keep(one) if keeps else Published()
        if answer.refusal is not None and self._facts.waiters.get(place):
            answer = Published()  # those who wait get it, though there is no room to keep it for others
        return answer if answer.refusal else self._deliver_to_all(place, one, answer)

    def _deliver_to_one(self, place: int, one: Parsed) -> bool:
        """Deliver to the oldest waiter, and take its subscription along unless it stays."""
        for waiter in self._facts.waiters.get(place, ()):
            key = (waiter.execution_id, waiter.number)
            if key not in self._taken:
                self._put(waiter, one)
                if not waiter.standing:
                    self._taken.add(key)
                    self._plan.ended.append(key)
                return True
        return False

    def _deliver_to_all(self, place: int, one: Parsed, answer: Published) -> Published:
        """Deliver to everybody who waits: at once, or in batches if that is much."""
        waiters = self._facts.everybody.get(place, self._facts.waiters.get(place, []))
        row = replace(one.item.row, id=0)
        size = len(waiters) * len(row.body)
        is_spread = place in self._facts.everybody or self._bytes + size > SPREAD_BYTES
        later: list[NumberKey] = []
        for waiter in waiters:
            if is_spread and waiter.execution_id not in one.item.ancestors:
                later.append((waiter.execution_id, waiter.number))
                continue
            self._bytes += len(row.body)
            self._put(waiter, one)
        most = min(SPREAD_FROM, max(1, SPREAD_BYTES // len(row.body)))
        self._plan.spreads += [replace(row, subscribers=later[first : first + most]) for first in range(0, len(later), most)]
        return replace(answer, delivered=len(waiters), is_spread=bool(later))

    def _is_crowded(self, place: int, one: Parsed) -> bool:
        """Whether those who get something at once have no room beside what others get: then it is published behind that."""
        if not (one.item.ancestors and self._bytes):
            return False
        waiters = self._facts.everybody.get(place, self._facts.waiters.get(place, []))
        count = sum(waiter.execution_id in one.item.ancestors for waiter in waiters)
        return count > 0 and self._bytes + count * len(one.item.row.body) > SPREAD_BYTES

    def _put(self, waiter: Waiter, one: Parsed) -> None:
        body = make_triggered(waiter.number, one.item.row.body)
        self._plan.inbox.append(InboxRow(waiter.org, waiter.execution_id, "", body, route=waiter.route, at=self._now))

    def _keep(self, one: Parsed, start: InboxRow | None = None) -> Published:
        publication, row = one.publication, one.item.row
        name = (row.org, publication.kind.value, publication.name)
        if not row.is_returned and self._kept.get(name, 0) >= one.item.most_kept:
            return Published(refusal=Refusal.FULL)
        most = one.item.most_kept_in_org
        if most is not None and not row.is_returned and self._kept_in_org.get(row.org, 0) >= most:
            return Published(refusal=Refusal.ORG_FULL)
        self._kept[name] = self._kept.get(name, 0) + 1
        self._kept_in_org[row.org] = self._kept_in_org.get(row.org, 0) + 1
        if publication.kind is SubscriptionKind.MESSAGE:
            self._kept_ids.add((row.org, publication.name, publication.key, publication.id))
        self._plan.kept.append(
            PendingRow(
                *name,
                publication.key,
                row.body,
                publication.id,
                publication.sent_at,
                publication.expires_at or 0,
                publication.target,
                row.fields,
                start,
                place=_find_place(one),
            )
        )
        return Published(kept=True)


def select_waiters(
    parsed: Sequence[Parsed], found: Iterable[tuple[Waiter, str, Mapping[str, str], Instant]]
) -> dict[int, list[Waiter]]:
    """Who waits for events that were sent to one execution, of all its waits, the oldest first.

    Each wait comes with the name of its event, the fields that it selects by, and when it began. When its execution was
    created does not matter: a run that continues another gets what that was sent.
    """
    waits = list(found)
    selected: dict[int, list[Waiter]] = {}
    for place, one in enumerate(parsed):
        publication, row = one.publication, one.item.row
        if not publication.target:
            continue
        mode = find_options(publication).delivery_mode
        late = publication.sent_at if row.is_returned else EVER
        selected[place] = [
            waiter
            for waiter, name, where, since in waits
            if (waiter.org, waiter.execution_id, name) == (*one.target, publication.name)
            and where.items() <= row.fields.items()
            and (mode is not DeliveryMode.AFTER_WAIT or since <= late)
        ]
    return selected
