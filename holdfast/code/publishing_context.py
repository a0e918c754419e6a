"""What workflow code can do about messages, events and broadcast signals: that part of the context."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.code import published_waits
from holdfast.code.event_types import encode_event, find_event_type, make_where
from holdfast.code.wait_values import PublicationWait
from holdfast.core.ids import check_identifier, check_topic
from holdfast.core.instants import Duration, to_micros
from holdfast.core.publications import SubscriptionKind

if TYPE_CHECKING:
    from holdfast.code.command_issuer import CommandIssuer
    from holdfast.core.publications import Broadcast, EventOutcome, MessageOutcome

T = TypeVar("T")


class PublishingContext:
    """The part of a context that is about what is published without naming a receiver."""

    _issuer: CommandIssuer

    # --- waits ---

    def wait_for_event(
        self, event: type[T], where: Mapping[str, Any] | None = None, *, timeout: Duration | None = None
    ) -> asyncio.Future[T]:
        """Wait for an event of a class decorated with @event. Raises TimeoutError if none comes within `timeout`.

        `where` selects by fields of the event: `where={"order": 7}`. Which events count, also of those sent before, is what
        the sender's class declares.
        """
        return self._subscribe(self.event(event, where), timeout, "wait_for_event")

    @overload
    def wait_for_message(
        self, name: str, key: str, type: type[T], *, timeout: Duration | None = None
    ) -> asyncio.Future[T]: ...
    @overload
    def wait_for_message(
        self, name: str, key: str, type: Any = Any, *, timeout: Duration | None = None
    ) -> asyncio.Future[Any]: ...
    def wait_for_message(
        self, name: str, key: str, type: Any = Any, *, timeout: Duration | None = None
    ) -> asyncio.Future[Any]:
        """Wait for a message with a name and a correlation key, decoded as `type`. One that is kept is taken at once.

        Raises TimeoutError if none comes within `timeout`, and MessageKeyTaken if another open execution waits for the same.
        """
        return self._subscribe(self.message(name, key, type), timeout, "wait_for_message")

    @overload
    def wait_for_broadcast(self, name: str, type: type[T], *, timeout: Duration | None = None) -> asyncio.Future[T]: ...
    @overload
    def wait_for_broadcast(self, name: str, type: Any = Any, *, timeout: Duration | None = None) -> asyncio.Future[Any]: ...
    def wait_for_broadcast(self, name: str, type: Any = Any, *, timeout: Duration | None = None) -> asyncio.Future[Any]:
        """Wait for the next broadcast signal of a name; gives its variables, decoded as `type`.

        Broadcast signals are not kept: one that is sent while nobody waits reaches nobody. Raises TimeoutError if none comes
        within `timeout`.
        """
        return self._subscribe(self.broadcast(name, type), timeout, "wait_for_broadcast")

    def event(self, event: type[T], where: Mapping[str, Any] | None = None) -> PublicationWait[T]:
        """For `wait_any`: an event of a class decorated with @event, with fields as in `wait_for_event`."""
        found = find_event_type(event)
        return PublicationWait(SubscriptionKind.EVENT, found.name, event, where=make_where(found, where))

    @overload
    def message(self, name: str, key: str, type: type[T]) -> PublicationWait[T]: ...
    @overload
    def message(self, name: str, key: str, type: Any = Any) -> PublicationWait[Any]: ...
    def message(self, name: str, key: str, type: Any = Any) -> PublicationWait[Any]:
        """For `wait_any`: a message with a name and a correlation key."""
        check_topic(name, "the name of a message")
        check_identifier(key, "the correlation key of a message")
        return PublicationWait(SubscriptionKind.MESSAGE, name, type, key)

    @overload
    def broadcast(self, name: str, type: type[T]) -> PublicationWait[T]: ...
    @overload
    def broadcast(self, name: str, type: Any = Any) -> PublicationWait[Any]: ...
    def broadcast(self, name: str, type: Any = Any) -> PublicationWait[Any]:
        """For `wait_any`: the next broadcast signal of a name."""
        check_topic(name, "the name of a broadcast signal")
        return PublicationWait(SubscriptionKind.BROADCAST, name, type)

    def _subscribe(self, wait: PublicationWait[Any], timeout: Duration | None, verb: str) -> asyncio.Future[Any]:
        limit = None if timeout is None else to_micros(timeout, f"the timeout of {verb}")
        return published_waits.subscribe(self._issuer, wait, limit)

    # --- headers ---

    def last_message_headers(self, name: str) -> Mapping[str, str]:
        """The headers of the message of that name which this workflow took last; empty if it had none, or none was taken.

        Where several tasks wait for messages of one name, that may be the message of another task. Of the message that
        started the workflow, `ctx.info.headers` are the headers.
        """
        return self._find_headers(SubscriptionKind.MESSAGE, name)

    def last_event_headers(self, event: type) -> Mapping[str, str]:
        """The headers of the event of that class which this workflow took last, as `last_message_headers`."""
        return self._find_headers(SubscriptionKind.EVENT, find_event_type(event).name)

    def last_broadcast_headers(self, name: str) -> Mapping[str, str]:
        """The headers of the broadcast signal of that name which this workflow took last, as `last_message_headers`."""
        return self._find_headers(SubscriptionKind.BROADCAST, name)

    def last_update_headers(self, name: str) -> Mapping[str, str]:
        """The headers of the update of that name whose handler began last: for the handler, before it awaits anything."""
        return self._find_headers("update", name)

    def _find_headers(self, kind: str, name: str) -> Mapping[str, str]:
        return dict(self._issuer.values.last_headers.get((kind, name), {}))

    # --- publishing ---

    def send_event(self, event: Any) -> asyncio.Future[EventOutcome]:
        """Send an event, an instance of a class decorated with @event, to whoever waits for it, as its class declares.

        Awaiting the future tells what became of it; that raises PublicationFailed if too many of its type are kept.
        """
        return published_waits.send_event(self._issuer, encode_event(event, self._issuer.values.encode))

    def send_event_to(self, workflow_id: str, event: Any) -> asyncio.Future[EventOutcome]:
        """Send an event to one open workflow: it waits for that one alone. Raises PublicationFailed if there is none."""
        check_identifier(workflow_id, "the workflow id of a receiver")
        return published_waits.send_event(self._issuer, encode_event(event, self._issuer.values.encode), workflow_id)

    def send_message(
        self, name: str, key: str, value: Any = None, *, ttl: Duration | None = None, message_id: str | None = None
    ) -> asyncio.Future[MessageOutcome]:
        """Send a message to the workflow that waits for its name and key; else it starts one, or is kept for `ttl`.

        Without `ttl` it is kept for the engine's `message_ttl`. Awaiting the future raises PublicationFailed if nobody
        waits, nothing is started and there is neither; or if a message with that id is kept already.
        """
        check_topic(name, "the name of a message")
        check_identifier(key, "the correlation key of a message")
        if message_id is not None:
            check_topic(message_id, "the id of a message")
        length = None if ttl is None else to_micros(ttl, "the time-to-live of a message")
        encoded = self._issuer.values.encode(value, f"the value of message '{name}'")
        return published_waits.send_message(self._issuer, name, key, encoded, length, message_id or "")

    def broadcast_signal(self, name: str, variables: Any = None) -> asyncio.Future[Broadcast]:
        """Throw a broadcast signal: every subscriber of that moment gets it, waits of this workflow too.

        Awaiting the future tells how many subscriptions were found, and how many workflows were started.
        """
        check_topic(name, "the name of a broadcast signal")
        encoded = self._issuer.values.encode(variables, f"the variables of broadcast signal '{name}'")
        return published_waits.broadcast(self._issuer, name, encoded)
