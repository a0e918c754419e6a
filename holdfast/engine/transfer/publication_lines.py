"""What an execution waits for and has published, as parts of its exported line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta, Raw

from holdfast.core import codec
from holdfast.core.instants import from_datetime, to_datetime
from holdfast.core.publications import SubscriptionKind
from holdfast.engine.transfer.line_types import Name, Number, StrictStruct, Text, Time, read_body, write_body
from holdfast.store.publications import PendingRow, PublicationRow, SubscriptionRow

Fields: TypeAlias = Mapping[Name, Annotated[str, Meta(pattern=r"^[^\x00]*$")]]


class SubscriptionFields(StrictStruct, frozen=True, kw_only=True):
    """Something that the execution waits for."""

    number: Number
    kind: SubscriptionKind
    name: Name
    key: Text
    where: Fields
    standing: bool
    since: Time


class KeptFields(StrictStruct, frozen=True, kw_only=True):
    """An event that is kept for the execution alone."""

    name: Name
    item: Name
    sent_at: Time
    expires_at: Time
    fields: Fields
    place: Number
    body: Raw


class OutboxFields(StrictStruct, frozen=True, kw_only=True):
    """Something that the execution has published, and that has reached nobody yet."""

    number: Number
    fields: Fields
    is_returned: bool
    body: Raw


# --- writing --------------------------------------------------------------------------------------------------------------


def write_subscriptions(rows: Sequence[SubscriptionRow]) -> list[SubscriptionFields]:
    return [
        SubscriptionFields(
            number=one.number,
            kind=SubscriptionKind(one.kind),
            name=one.name,
            key=one.key,
            where=one.where,
            standing=one.standing,
            since=to_datetime(one.since),
        )
        for one in rows
    ]


def write_kept(rows: Sequence[PendingRow]) -> list[KeptFields]:
    return [
        KeptFields(
            name=one.name,
            item=one.item,
            sent_at=to_datetime(one.sent_at),
            expires_at=to_datetime(one.expires_at),
            fields=one.fields,
            place=one.place,
            body=write_body(one.body, codec.decode_publication),
        )
        for one in rows
    ]


def write_outbox(rows: Sequence[PublicationRow]) -> list[OutboxFields]:
    return [
        OutboxFields(
            number=one.number,
            fields=one.fields,
            is_returned=one.is_returned,
            body=write_body(one.body, codec.decode_publication),
        )
        for one in rows
    ]


# --- reading --------------------------------------------------------------------------------------------------------------


def read_subscriptions(
    org: str, execution_id: str, created_at: int, fields: Sequence[SubscriptionFields]
) -> tuple[SubscriptionRow, ...]:
    return tuple(
        SubscriptionRow(
            org,
            one.kind.value,
            one.name,
            execution_id,
            one.number,
            one.key,
            dict(one.where),
            one.standing,
            from_datetime(one.since),
            created_at,
        )
        for one in fields
    )


def read_kept(org: str, execution_id: str, fields: Sequence[KeptFields]) -> tuple[PendingRow, ...]:
    return tuple(
        PendingRow(
            org,
            SubscriptionKind.EVENT.value,
            one.name,
            "",
            read_body(one.body),
            one.item,
            from_datetime(one.sent_at),
            from_datetime(one.expires_at),
            execution_id,
            dict(one.fields),
            place=one.place,
        )
        for one in fields
    )


def read_outbox(org: str, execution_id: str, fields: Sequence[OutboxFields]) -> tuple[PublicationRow, ...]:
    return tuple(
        PublicationRow(org, read_body(one.body), dict(one.fields), execution_id, one.number, one.is_returned)
        for one in fields
    )
