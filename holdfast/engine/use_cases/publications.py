"""From calls to publications: messages, events and broadcast signals, checked, encoded and handed to the publisher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.code.event_types import EventType, encode_event, find_event_type, is_event
from holdfast.core import codec, payloads
from holdfast.core.ids import check_identifier, check_topic, make_execution_id
from holdfast.core.instants import SECOND, Duration, Instant, to_datetime, to_micros
from holdfast.core.payloads import Payload
from holdfast.core.publications import (
    DEFAULT_EVENT,
    Broadcast,
    DeliveryMode,
    EventOptions,
    EventOutcome,
    MessageOutcome,
    Publication,
    SubscriptionKind,
    canonical_fields,
)
from holdfast.core.shown_values import ShownValue
from holdfast.core.start_checks import check_texts
from holdfast.engine.encoded_store import show_encoded
from holdfast.engine.nodes.event_announcements import AnnouncedEvents, EventLike
from holdfast.engine.publishing.publish_requests import PublishRequest
from holdfast.errors import CorruptStore, DecodingError, InvalidArguments, NewerFormat
from holdfast.store.once import KeyedCall
from holdfast.store.publications import PublicationRow, Published
from holdfast.store.rows import RequestRow

if TYPE_CHECKING:
    from holdfast.core.request_keys import RequestKey
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.store.contract import Store
    from holdfast.store.publications import PendingRow

MOST_LISTED: Final = 1_000


class PendingEvent(ShownValue, frozen=True, kw_only=True):
    """An event that is kept until somebody takes it, or it expires."""

    id: str
    """By which `remove_pending_event` removes it."""
    name: str
    value: Any
    """An instance of its class where that is given or known, else plain JSON values."""
    timestamp: datetime
    """When it was sent."""
    expires_at: datetime
    target: str | None = None
    """The execution id of the only one that gets it; None: everybody may."""
    position: int = 0
    """Its place in the order of sending: the `after` of the page that follows it."""
    damage: str | None = None
    """Why it cannot be read, if it is damaged, or a newer Holdfast wrote it: then nobody gets it here. It can be removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationCallsDeps:
    """What calls that publish stand on."""

    store: Store
    clock: Clock
    config: Config
    events: AnnouncedEvents
    entropy: Callable[[int], int]
    submit: Callable[[PublishRequest], None]
    make_key: Callable[[str, str | None, str], RequestKey | None]
    """What makes a repeated call safe, by its kind, its request id and its scope."""


class PublicationCalls:
    """Takes calls about messages, events and broadcast signals. Each raises before anything is stored, or after a commit."""

    def __init__(self, deps: PublicationCallsDeps) -> None:
        self._deps = deps
        self._shown = show_encoded(deps.store)

    # --- sending ---

    async def send_message(
        self,
        org: str,
        message: tuple[str, str, Any],
        ttl: Duration | None,
        message_id: str | None,
        request_id: str | None,
        headers: Mapping[str, str] | None,
    ) -> MessageOutcome:
        """Send a message, given as (name, correlation key, value)."""
        name, key, value = message
        check_identifier(org, "the org")
        check_topic(name, "the name of a message")
        check_identifier(key, "the correlation key of a message")
        if message_id is not None:
            check_topic(message_id, "the id of a message")
        length = self._choose_ttl(ttl)
        now = self._deps.clock.now()
        publication = Publication(
            kind=SubscriptionKind.MESSAGE,
            name=name,
            key=key,
            value=payloads.encode(value, f"the value of message '{name}'", self._deps.config.payload_limit),
            headers=self._check_headers(headers),
            id=self._make_id(now) if message_id is None else message_id,
            sent_at=now,
            expires_at=now + length if length else None,
        )
        key_of_request = self._deps.make_key("send_message", request_id, f"{name}\n{key}")
        published = await self._publish(org, publication, key_of_request)
        return MessageOutcome(bool(published.delivered), bool(published.started), published.kept)

    def _choose_ttl(self, ttl: Duration | None) -> int:
        if ttl is not None:
            return to_micros(ttl, "the time-to-live of a message")
        default = self._deps.config.message_ttl
        return 0 if default is None else round(default * SECOND)

    async def broadcast(
        self, org: str, name: str, variables: Any, request_id: str | None, headers: Mapping[str, str] | None
    ) -> Broadcast:
        """Send a broadcast signal to everybody who waits for it now."""
        check_identifier(org, "the org")
        check_topic(name, "the name of a broadcast signal")
        now = self._deps.clock.now()
        publication = Publication(
            kind=SubscriptionKind.BROADCAST,
            name=name,
            value=payloads.encode(variables, f"the variables of signal '{name}'", self._deps.config.payload_limit),
            headers=self._check_headers(headers),
            id=self._make_id(now),
            sent_at=now,
        )
        published = await self._publish(org, publication, self._deps.make_key("broadcast_signal", request_id, name))
        return Broadcast(published.delivered, published.started)

    async def send_event(
        self,
        org: str,
        event: tuple[Any, Any],
        target: str | None,
        request_id: str | None,
        headers: Mapping[str, str] | None,
    ) -> EventOutcome:
        """Send an event, given as an instance of its class and None, or as (name, value); to everybody, or to one."""
        return await self.send_encoded(org, await self._encode_event(*event), target, request_id, headers)

    async def send_encoded(
        self,
        org: str,
        event: tuple[str, EventOptions, Payload],
        target: str | None,
        request_id: str | None,
        headers: Mapping[str, str] | None,
    ) -> EventOutcome:
        """Send an event whose value is encoded, given as (name, options of its type, value)."""
        name, options, value = event
        check_identifier(org, "the org")
        check_topic(name, "the name of an event")
        if target is not None:
            check_identifier(target, "the id of an execution")
        now = self._deps.clock.now()
        publication = Publication(
            kind=SubscriptionKind.EVENT,
            name=name,
            value=value,
            headers=self._check_headers(headers),
            id=self._make_id(now),
            sent_at=now,
            expires_at=self._find_expiry(options, now),
            event=None if options == DEFAULT_EVENT else options,
            target=target or "",
        )
        kind, scope = ("send_event", name) if target is None else ("send_event_to", f"{target}\n{name}")
        key = self._deps.make_key(kind, request_id, scope)
        published = await self._publish(org, publication, key, canonical_fields(bytes(value.data)))
        return EventOutcome(published.delivered, published.kept)

    def _find_expiry(self, options: EventOptions, now: Instant) -> Instant | None:
        if options.delivery_mode is DeliveryMode.AFTER_WAIT:
            return None
        kept = options.expire_after_us
        return now + (round(self._deps.config.event_retention * SECOND) if kept is None else kept)

    async def _encode_event(self, event: Any, value: Any) -> tuple[str, EventOptions, Payload]:
        limit = self._deps.config.payload_limit
        if not isinstance(event, str):
            if value is not None:
                raise InvalidArguments(
                    "Expected an event alone, or the name of its type with its value, but got an object and a value. "
                    "Pass an instance of the class, or a name and a value."
                )
            encoded = encode_event(event, lambda one, what, check: payloads.encode(one, what, limit, check))
            return encoded.type.name, encoded.type.options, encoded.value
        if is_event(value):
            value = msgspec.json.decode(payloads.encode(value, f"event '{event}'", limit).data)
        found = await self._find_type(event)
        if isinstance(found, EventType):
            return found.name, found.options, _encode_as(found, value, limit)
        return found.name, found.options, found.encode(value, limit)

    async def _publish(
        self, org: str, publication: Publication, key: RequestKey | None, fields: Mapping[str, str] | None = None
    ) -> Published:
        row = PublicationRow(org, codec.encode(publication), fields or {})
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._deps.submit(PublishRequest(row, publication, future, key))
        published: Published = await future
        return published

    def _check_headers(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        return check_texts(headers, "headers", self._deps.config.payload_limit)

    def _make_id(self, now: Instant) -> str:
        return make_execution_id(now, self._deps.entropy(62))

    # --- what is kept ---

    async def list_pending(self, org: str, event: Any, limit: int, after: int) -> list[PendingEvent]:
        """The events of a type that are kept, in the order of sending."""
        check_identifier(org, "the org")
        if type(limit) is not int or not 0 < limit <= MOST_LISTED or type(after) is not int or after < 0:
            raise InvalidArguments(
                f"Expected limit=… to be from 1 to {MOST_LISTED} and after=… to be a position, but they are {limit!r} and "
                f"{after!r}. Pass the position of the last event to get those behind it."
            )
        found = await self._find_type(event)
        rows = await self._shown.list_pending(
            org, SubscriptionKind.EVENT, found.name, self._deps.clock.now(), limit=limit, after=after
        )
        return [_show(row, found) for row in rows]

    async def remove_pending(self, org: str, event: Any, item: str, request_id: str | None) -> bool:
        """Remove an event that is kept; whether it was there."""
        check_identifier(org, "the org")
        check_identifier(item, "the id of an event")
        found = await self._find_type(event)
        key = self._deps.make_key("remove_pending_event", request_id, f"{found.name}\n{item}")
        known = None if key is None else await self._recall(org, key)
        if known is not None:
            return known
        removed = await self._deps.store.remove_pending(org, SubscriptionKind.EVENT, found.name, item)
        if key is not None and removed:
            await self._remember(org, key)
        return removed

    async def _find_type(self, event: Any) -> EventLike:
        """The type of events that a class, or a name, stands for. Raises InvalidArguments or UnknownEvent."""
        if not isinstance(event, str):
            return find_event_type(event)
        return await self._deps.events.find(check_topic(event, "the name of an event"))

    async def _recall(self, org: str, key: RequestKey) -> bool | None:
        transaction = await self._deps.store.begin()
        try:
            found = await transaction.read_requests([(org, key.kind, key.key)], self._deps.clock.now())
        finally:
            await transaction.rollback()
        return True if found else None

    async def _remember(self, org: str, key: RequestKey) -> None:
        row = RequestRow(org, key.kind, key.key, "", None, key.expires_at)
        await self._deps.store.remember(KeyedCall(row, self._deps.clock.now()), 1)


def _encode_as(kind: EventType, value: Any, limit: int) -> Payload:
    """A plain value as an event of a type has it."""
    what = f"event '{kind.name}'"
    try:
        read = payloads.decode(payloads.encode(value, what, limit), kind.cls, what)
    except DecodingError as error:
        raise InvalidArguments(error.message) from error
    return payloads.encode(read, what, limit)


def _show(row: PendingRow, kind: EventLike) -> PendingEvent:
    value, damage = None, row.damage
    try:
        value = _show_value(codec.decode_publication(row.body), kind)
    except (CorruptStore, NewerFormat) as error:  # it must not hide the others
        damage = damage or error.message
    return PendingEvent(
        id=row.item,
        name=row.name,
        value=value,
        timestamp=to_datetime(row.sent_at),
        expires_at=to_datetime(row.expires_at),
        target=row.target or None,
        position=row.id,
        damage=damage or None,
    )


def _show_value(publication: Publication, kind: EventLike) -> Any:
    if isinstance(kind, EventType) and publication.value.encoding == "json":
        try:
            return payloads.decode(publication.value, kind.cls, f"event '{kind.name}'")
        except DecodingError:
            pass  # sent by another version of the class: it is shown as it is
    return payloads.show_value(publication.value)


def read_pending(rows: Sequence[PendingEvent], event: Any) -> list[PendingEvent]:
    """Events that came as plain values from elsewhere, with instances of the class if it was named by that."""
    if isinstance(event, str):
        return list(rows)
    cls, what = find_event_type(event).cls, "a kept event"
    return [
        row
        if row.value is None and row.damage is not None
        else msgspec.structs.replace(row, value=payloads.decode(payloads.encode(row.value, what), cls, what))
        for row in rows
    ]
