"""How waits that begin find what is kept, and who has messages: the decisions, as pure functions that all stores share.

See `holdfast.store.matching`, the other side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from holdfast.core.codec import decode_publication, encode
from holdfast.core.envelopes import SubscriptionRefused
from holdfast.core.instants import Instant
from holdfast.core.publications import DeliveryMode, Publication, SubscriptionKind
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.contract import TurnWrite
from holdfast.store.matching import EVER, LockKey, NumberKey, Pair, find_options, is_consumed, make_triggered
from holdfast.store.publications import PendingRow, SubscriptionRow
from holdfast.store.rows import ExecutionRow, InboxRow

WIDER: Final = 8
"""How many times as much is looked at if something of what was found cannot be read."""


def read_kept(row: PendingRow) -> Publication | None:
    """What is kept; None if it cannot be read here: it is left aside for a node that can, or until it expires."""
    if row.damage:
        return None
    try:
        return decode_publication(row.body)
    except (CorruptStore, NewerFormat):
        return None


def select_readable(rows: Iterable[PendingRow], wait: Wait) -> list[PendingRow]:
    """What a wait may get of what was found for it: what cannot be read is left aside, and takes nobody's place."""
    return [row for row in rows if read_kept(row) is not None][: wait.limit]


def may_begin_under(now: Instant, kept: PendingRow, subscription: SubscriptionRow, targets: Collection[str]) -> bool:
    """Whether what is kept is for a wait that begins now, as far as can be told without `subscription.seen`.

    What was sent to one execution is for it whenever it was sent: a run that continues another gets what that was sent.
    """
    return (
        kept.expires_at > now
        and kept.target in targets
        and subscription.where.items() <= kept.fields.items()
        and (publication := read_kept(kept)) is not None
        and (
            find_options(publication).delivery_mode is not DeliveryMode.AFTER_CREATE
            or bool(kept.target)
            or kept.sent_at >= subscription.created_at
        )
    )


def has_subscriptions(turn: TurnWrite) -> bool:
    """Whether a turn begins or ends subscriptions."""
    return bool(turn.subscriptions or turn.ended_subscriptions)


def list_turn_locks(turn: TurnWrite) -> dict[LockKey, bool]:
    """What a turn must lock, and whether alone."""
    rows = (*turn.subscriptions, *turn.ended_subscriptions)
    return {
        LockKey(row.org, row.kind, row.name, row.key): row.kind == SubscriptionKind.MESSAGE
        for row in rows
        if row.kind != SubscriptionKind.BROADCAST
    }


def lose_chains(turns: Sequence[TurnWrite], lost: set[str]) -> None:
    """Add those to the lost turns that close a run whose next run is lost in the same write: its chain would end there."""
    written = {turn.row.execution_id for turn in turns}
    for turn in reversed(turns):
        if turn.expected_version is None and turn.row.execution_id in lost and turn.takes_over in written:
            lost.add(turn.takes_over)


class Wait(NamedTuple):
    """A subscription that begins, and for whom kept publications may be that it gets."""

    row: SubscriptionRow
    targets: tuple[str, ...]
    """Its execution, and the run that this continues."""
    limit: int


def list_waits(turns: Sequence[TurnWrite]) -> list[Wait]:
    """The subscriptions that are matched with what is kept."""
    rows = [(turn, row) for turn in turns if turn.row.closed_at is None for row in turn.subscriptions]
    kept = [(turn, row) for turn, row in rows if row.kind != SubscriptionKind.BROADCAST]
    counts = Counter(LockKey(row.org, row.kind, row.name, row.key) for _, row in kept)
    return [
        Wait(
            row,
            (row.execution_id, turn.takes_over) if turn.takes_over else (row.execution_id,),
            EVER if row.standing else counts[LockKey(row.org, row.kind, row.name, row.key)],
        )
        for turn, row in kept
    ]


def widen(wait: Wait) -> Wait:
    """A wait that looks further: of what it looked at, something cannot be read, and hides what is behind it."""
    return wait._replace(limit=min(EVER, WIDER * wait.limit))


class SubscribingFacts(msgspec.Struct):
    """What a store knows about those that begin to wait."""

    kept: dict[NumberKey, list[PendingRow]] = msgspec.field(default_factory=dict)
    """What each subscription may get: for its own execution first, then for everybody; by place and age."""
    holders: dict[tuple[str, str, str], list[NumberKey]] = msgspec.field(default_factory=dict)
    """The subscriptions of open executions for a message, by (org, name, key)."""
    limits: Mapping[str, int] = {}
    """How many subscriptions orgs may have, where that is limited."""
    room: dict[str, int] = msgspec.field(default_factory=dict)
    """How many more of them may begin, by org: counted when those that end have ended."""


def list_start_ids(facts: SubscribingFacts) -> dict[NumberKey, list[Pair]]:
    """(org, workflow id) pairs that kept messages would start, by the wait that may get these.

    They are to be held until the end: the message must still start there when who is open closes, unless the wait gets it.
    """
    return {
        key: [(row.org, row.start.workflow_id) for row in rows if row.start is not None]
        for key, rows in facts.kept.items()
        if any(row.start is not None for row in rows)
    }


class SubscribingPlan(msgspec.Struct):
    """What to write for subscriptions that begin."""

    begun: list[SubscriptionRow] = msgspec.field(default_factory=list)
    inbox: list[InboxRow] = msgspec.field(default_factory=list)
    taken: list[int] = msgspec.field(default_factory=list)
    """Ids of kept publications that are kept no longer."""


def list_limited(turns: Iterable[TurnWrite], limits: Mapping[str, int]) -> list[str]:
    """The orgs whose subscriptions have to be counted: some begin, and there may be only so many."""
    if not limits:
        return []
    return sorted({turn.row.org for turn in turns if turn.subscriptions and turn.row.org in limits})


def list_consumed(waits: Iterable[Wait], facts: SubscribingFacts) -> set[LockKey]:
    """What must be locked alone, since something that one consumer gets may be taken."""
    return {
        LockKey(wait.row.org, wait.row.kind, wait.row.name, wait.row.key)
        for wait in waits
        for kept in facts.kept.get((wait.row.execution_id, wait.row.number), ())
        if (publication := read_kept(kept)) is not None and is_consumed(publication)
    }


def plan_subscribing(turns: Sequence[TurnWrite], facts: SubscribingFacts) -> SubscribingPlan:
    """What becomes of the subscriptions of turns that are written."""
    plan = SubscribingPlan()
    ended = {(row.execution_id, row.number) for turn in turns for row in turn.ended_subscriptions}
    closed = {turn.row.execution_id for turn in turns if turn.row.closed_at is not None}
    holding = {
        message: {key[0] for key in keys if key not in ended and key[0] not in closed}
        for message, keys in facts.holders.items()
    }
    taken: set[int] = set()
    for turn in turns:
        for row in turn.subscriptions if turn.row.closed_at is None else ():
            if row.kind == SubscriptionKind.MESSAGE:
                holders = holding.setdefault((row.org, row.name, row.key), set())
                holder = min((one for one in holders if one != row.execution_id), default=None)
                if holder is not None:
                    refused = encode(SubscriptionRefused(number=row.number, holder=holder))
                    plan.inbox.append(_address(turn.row, row, refused))
                    continue
                if _match(turn.row, row, facts, plan, taken):
                    holders.add(row.execution_id)
            else:
                _match(turn.row, row, facts, plan, taken)
    plan.taken = sorted(taken)
    return plan


def _match(
    execution: ExecutionRow, row: SubscriptionRow, facts: SubscribingFacts, plan: SubscribingPlan, taken: set[int]
) -> bool:
    """Give a subscription what is kept for it: the first, or all of it if it stays. Whether it waits from now on."""
    if row.standing and _refuse_beyond(execution, row, facts, plan):
        return False
    for kept in facts.kept.get((row.execution_id, row.number), ()):
        publication = read_kept(kept)
        if kept.id in taken or publication is None:
            continue
        if is_consumed(publication):
            taken.add(kept.id)
        plan.inbox.append(_address(execution, row, make_triggered(row.number, kept.body)))
        if not row.standing:
            return False
    if not row.standing and _refuse_beyond(execution, row, facts, plan):
        return False
    plan.begun.append(row)
    return True


def _refuse_beyond(execution: ExecutionRow, row: SubscriptionRow, facts: SubscribingFacts, plan: SubscribingPlan) -> bool:
    """Whether the org has no room for one more subscription: then its execution is told. Else it takes the room."""
    limit = facts.limits.get(row.org)
    if limit is None:
        return False
    facts.room[row.org] = facts.room.get(row.org, limit) - 1
    if facts.room[row.org] >= 0:
        return False
    refused = encode(SubscriptionRefused(number=row.number, holder="", limit=limit))
    plan.inbox.append(_address(execution, row, refused))
    return True


def _address(execution: ExecutionRow, row: SubscriptionRow, body: bytes) -> InboxRow:
    return InboxRow(row.org, row.execution_id, "", body, route=execution.route, at=execution.updated_at)
