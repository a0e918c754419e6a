"""Subscriptions and publications to test with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core.codec import encode
from holdfast.core.instants import SECOND, Instant
from holdfast.core.payloads import Payload
from holdfast.core.publications import EventOptions, Publication, SubscriptionKind
from holdfast.store.contract import Store
from holdfast.store.publications import PublicationRow, Publishable, Published, SubscriptionRow
from holdfast.store.rows import ExecutionRow, InboxRow
from tests.store.builders import NOW, ORG, commit, id_of, make_row, make_start

LATER: Instant = NOW + 3600 * SECOND
"""When most of what is kept expires."""


def make_wait(number: int, kind: str, name: str, *, of: int = 1, org: str = ORG, **columns: Any) -> SubscriptionRow:
    """Wait `number` of execution `of`."""
    return SubscriptionRow(org, kind, name, id_of(of), number, since=NOW, created_at=NOW, **columns)


def make_publication(kind: str, name: str, item: str, **fields: Any) -> Publication:
    return Publication(
        kind=SubscriptionKind(kind),
        name=name,
        id=item,
        **{"value": Payload(msgspec.Raw(encode(item))), "sent_at": NOW, "expires_at": LATER, **fields},
    )


def publishable(
    publication: Publication, *, org: str = ORG, most_kept: int = 100, starts: Any = (), **row: Any
) -> Publishable:
    return Publishable(PublicationRow(org, encode(publication), **row), starts, most_kept)


def message(item: str, key: str = "k", *, name: str = "paid", ttl: bool = True, **more: Any) -> Publishable:
    expires_at = LATER if ttl else None
    return publishable(make_publication("message", name, item, key=key, expires_at=expires_at), **more)


def event(
    item: str, fields: dict[str, str] | None = None, options: EventOptions | None = None, *, target: int = 0, **more: Any
) -> Publishable:
    """An event for everybody, or for one execution."""
    sent_at = more.pop("sent_at", NOW)
    published = make_publication(
        "event", "shipped", item, event=options, target=id_of(target) if target else "", sent_at=sent_at
    )
    return publishable(published, fields=fields or {}, **more)


def broadcast(item: str, name: str = "alarm", **more: Any) -> Publishable:
    return publishable(make_publication("broadcast", name, item, expires_at=None), **more)


async def publish(store: Store, *items: Publishable, now: Instant = NOW) -> list[Published]:
    """Publish in a transaction of its own."""
    transaction = await store.begin()
    answers = await transaction.publish(items, now)
    await transaction.commit()
    return answers


async def start(store: Store, *waits: SubscriptionRow, number: int = 1, **columns: Any) -> ExecutionRow:
    """An open execution with these subscriptions."""
    row = make_row(number, **columns)
    assert await commit(store, make_start(row, subscriptions=waits)) == set()
    return row


async def read_given(store: Store, number: int = 1, *, org: str = ORG) -> list[tuple[int, str]]:
    """(number, id of the publication) of all that waits for an execution, in order."""
    rows = await store.list_inbox(org, id_of(number), "")
    return [read_triggered(row) for row in rows]


def read_triggered(row: InboxRow) -> tuple[int, str]:
    plain = msgspec.json.decode(row.body)
    assert plain["type"] == "triggered", plain
    return plain["number"], plain["publication"]["id"]


async def read_kept(store: Store, kind: str = "event", name: str = "shipped", *, org: str = ORG) -> list[str]:
    """The ids of what is kept under a name."""
    return [row.item for row in await store.list_pending(org, kind, name, NOW)]


async def read_waits(store: Store, number: int = 1) -> Sequence[int]:
    """The numbers of the subscriptions of an execution."""
    return [row.number for row in await store.list_subscriptions(ORG, id_of(number))]
