"""How subscriptions and publications become values of a database, and back: mappings and lists are JSON text there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast.core.codec import decode_publication, decode_with, encode
from holdfast.core.publications import DeliveryMode
from holdfast.errors import CorruptStore, NewerFormat
from holdfast.store.matching import find_mode, make_lookup, name_fields, shorten
from holdfast.store.publications import PendingRow, PublicationRow, SpreadHead, StartSubscriptionRow, SubscriptionRow
from holdfast.store.rows import InboxRow

_MAPPING: Final = msgspec.json.Decoder(dict[str, str])
_SUBSCRIBERS: Final = msgspec.json.Decoder(list[tuple[str, int]])
_INBOX_ROW: Final = msgspec.json.Decoder(InboxRow)


class _Topic(msgspec.Struct):
    """What every version says about what is published."""

    kind: str = ""
    name: str = ""
    key: str = ""
    target: str = ""


_TOPIC: Final = msgspec.json.Decoder(_Topic)


def write_mapping(mapping: Mapping[str, str]) -> str:
    """A mapping as JSON text, its names in order."""
    return encode(dict(sorted(mapping.items()))).decode() if mapping else "{}"


def read_mapping(text: str) -> dict[str, str]:
    """A mapping from its JSON text. Raises CorruptStore."""
    return {} if text == "{}" else decode_with(_MAPPING, text, "fields with their values")


def find_conditions(text: str) -> dict[str, str] | None:
    """The fields that a wait selects by, from their JSON text; None if they cannot be read: nothing is sent to it then."""
    try:
        return read_mapping(text)
    except (CorruptStore, NewerFormat):
        return None


def from_subscription_row(row: SubscriptionRow) -> tuple[Any, ...]:
    """The columns of a subscription, and behind them those by which it is found: its fields and its lookup."""
    return (
        row.org,
        str(row.kind),
        row.name,
        row.execution_id,
        row.number,
        row.key,
        write_mapping(row.where),
        row.standing,
        row.since,
        row.created_at,
        name_fields(row.where),
        make_lookup(row),
    )


def to_subscription_row(values: Iterable[Any]) -> SubscriptionRow:
    """A subscription from its columns, those by which it is found left out. Raises CorruptStore."""
    org, kind, name, execution_id, number, key, conditions, standing, since, created_at = values
    where = read_mapping(conditions)
    return SubscriptionRow(org, kind, name, execution_id, number, key, where, bool(standing), since, created_at)


def from_pending_row(row: PendingRow) -> tuple[Any, ...]:
    """The columns of what is kept without its id, and behind them those by which it is found."""
    return (
        row.org,
        str(row.kind),
        row.name,
        row.key,
        row.body,
        row.item,
        row.sent_at,
        row.expires_at,
        row.target,
        write_mapping(row.fields),
        None if row.start is None else write_start(row.start),
        row.place,
        shorten(row.key),
        "" if row.start is None else row.start.workflow_id,
        _find_mode(row.body),
    )


def _find_mode(body: bytes) -> str:
    """Of what cannot be read here: that of most events."""
    try:
        return find_mode(decode_publication(body)).value
    except (CorruptStore, NewerFormat):
        return DeliveryMode.ALL.value


def to_pending_row(values: Iterable[Any]) -> PendingRow:
    """What is kept from its columns: those of the row, its place and its id last. Raises CorruptStore."""
    row = read_pending_row(values)
    if row.damage:
        raise CorruptStore(row.damage)
    return row


def read_pending_row(values: Iterable[Any]) -> PendingRow:
    """As `to_pending_row`; if columns cannot be read, the row without them, and with its damage."""
    org, kind, name, key, body, item, sent_at, expires_at, target, fields, start, place, row_id = values
    where, inbox_row, damage = dict[str, str](), None, ""
    try:
        where = read_mapping(fields)
        inbox_row = read_start(start)
    except (CorruptStore, NewerFormat) as error:
        damage = error.message
    return PendingRow(org, kind, name, key, body, item, sent_at, expires_at, target, where, inbox_row, row_id, place, damage)


def write_start(start: InboxRow) -> bytes:
    """What a kept message starts, as JSON."""
    return encode(start)


def read_start(start: bytes | None) -> InboxRow | None:
    """What a kept message starts, from its JSON; None if it starts nothing. Raises CorruptStore."""
    return None if start is None else decode_with(_INBOX_ROW, start, "what a message starts")


def read_subscribers(text: str) -> list[tuple[str, int]]:
    """Whom a publication has yet to reach, from its JSON. Raises CorruptStore."""
    return decode_with(_SUBSCRIBERS, text, "the subscribers of a publication")


def list_pending_fields(row: PendingRow, row_id: int) -> list[tuple[str, str, str, str, int]]:
    """By what waits select a kept event, a row each."""
    return [(row.org, row.name, field, value, row_id) for field, value in row.fields.items()]


def from_publication_row(row: PublicationRow) -> tuple[Any, ...]:
    """The columns of what is to be published, without its id."""
    subscribers = encode(list(row.subscribers)).decode() if row.subscribers else None
    return row.org, row.body, write_mapping(row.fields), row.origin, row.number, row.is_returned, subscribers


def list_topic(row: PublicationRow) -> tuple[str, str, str]:
    """What others that are to be published in order with it share: kind, name, and the lookup of the key.

    Of an event for one execution, the target stands for the key: if that is busy, events for others go on. Nothing of what
    cannot be read at all.
    """
    try:
        topic = _TOPIC.decode(row.body)
    except msgspec.MsgspecError:
        topic = _Topic()
    return topic.kind, topic.name, shorten(topic.key or topic.target)


def to_publication_row(values: Iterable[Any]) -> PublicationRow:
    """What is to be published from its columns, its id last. Raises CorruptStore."""
    org, body, fields, origin, number, is_returned, subscribers, row_id = values
    listed = () if subscribers is None else read_subscribers(subscribers)
    return PublicationRow(org, body, read_mapping(fields), origin, number, bool(is_returned), row_id, listed)


def read_publication_row(values: Iterable[Any]) -> PublicationRow:
    """As `to_publication_row`, for rows of the outbox; if fields cannot be read, the row without them, and its damage."""
    org, body, fields, origin, number, is_returned, _, row_id = values
    where, damage = dict[str, str](), ""
    try:
        where = read_mapping(fields)
    except (CorruptStore, NewerFormat) as error:
        damage = error.message
    return PublicationRow(org, body, where, origin, number, bool(is_returned), row_id, damage=damage)


def to_spread_head(values: Iterable[Any]) -> SpreadHead:
    """What is spread, from its columns, without reading its lists."""
    org, body, _, origin, _, _, _, row_id = values
    return SpreadHead(row_id, org, origin, body)


def from_start_row(row: StartSubscriptionRow) -> tuple[Any, ...]:
    """The columns of a start subscription."""
    return str(row.kind), row.name, row.workflow, row.queue, row.route, row.version, row.org, row.node
