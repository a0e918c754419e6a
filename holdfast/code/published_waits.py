"""Waits of workflow code for what is published without naming it, and what it publishes itself: their futures.

A wait is a subscription under a number of its own. A value that does not fit the awaited type goes to the dead letters, and
the wait goes on under a new number: the first was used up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from holdfast.code.command_issuer import CommandIssuer, StepFuture
from holdfast.core import commands, events, payloads
from holdfast.core.publications import Broadcast, EventOutcome, MessageOutcome, SubscriptionKind
from holdfast.core.unused import put
from holdfast.errors import DecodingError

if TYPE_CHECKING:
    from holdfast.code.event_types import EncodedEvent
    from holdfast.code.signals import Race
    from holdfast.code.wait_values import PublicationWait
    from holdfast.core.instants import Micros
    from holdfast.core.payloads import Payload


class SubscriptionFuture(StepFuture):
    """A wait for a message, an event or a broadcast signal. Once it has ended, nothing is left of it."""

    def __init__(self, issuer: CommandIssuer, wait: PublicationWait[Any], race: Race | None) -> None:
        super().__init__(issuer, 0, f"a wait for {wait.describe()}", wait.type, commands.Unsubscribe)
        self.wait = wait
        self.race = race

    def begin(self) -> None:
        """Ask for the subscription, under the next number."""
        issuer, wait = self.issuer, self.wait
        self.number = issuer.next_number()
        issuer.steps[self.number] = self
        seen = issuer.seen_events.get(wait.name) if wait.kind is SubscriptionKind.EVENT and issuer.seen_events else None
        issuer.issue(
            commands.Subscribe(
                number=self.number,
                kind=wait.kind,
                name=wait.name,
                key=wait.key,
                where=dict(wait.where),
                seen=tuple(one for one, until in seen.items() if until > issuer.loop.now) if seen else (),
            )
        )

    def expire(self) -> None:
        """End the wait with TimeoutError: nothing came in time."""
        if not self.done():
            self.issuer.withdraw(self)
            self.set_exception(TimeoutError(f"no {self.wait.describe()} came in time"))


def subscribe(
    issuer: CommandIssuer, wait: PublicationWait[Any], timeout: Micros | None = None, race: Race | None = None
) -> SubscriptionFuture:
    """Begin a wait. With a timeout it raises TimeoutError; `race`: what it is one side of."""
    issuer.values.check_hint(wait.type, wait.kind, wait.name)
    future = SubscriptionFuture(issuer, wait, race)
    future.begin()
    if timeout is not None:
        handle = issuer.loop.call_at((issuer.loop.now + timeout) / 1_000_000, future.expire)
        future.add_done_callback(lambda _: handle.cancel())
        future.is_awaited = False  # not by the code
    return future


def send_message(
    issuer: CommandIssuer, name: str, key: str, value: Payload, ttl: Micros | None, message_id: str
) -> StepFuture:
    """Ask for a message to be sent; the future is done when the store has delivered, kept or refused it."""
    number = issuer.next_number(value)
    issuer.issue(commands.PublishMessage(number=number, name=name, key=key, value=value, ttl_us=ttl, message_id=message_id))
    return _answered(issuer, number, f"message '{name}' with key '{key}'", _read_message)


def send_event(issuer: CommandIssuer, event: EncodedEvent, workflow_id: str = "") -> StepFuture:
    """Ask for an event to be sent, to one workflow or to whoever waits; the future is done when the store has answered."""
    number, name = issuer.next_number(event.value), event.type.name
    issuer.issue(
        commands.SendEvent(
            number=number,
            name=name,
            value=event.value,
            fields=event.fields,
            options=event.type.options,
            workflow_id=workflow_id,
        )
    )
    target = f" to '{workflow_id}'" if workflow_id else ""
    return _answered(issuer, number, f"event '{name}'{target}", _read_event)


def broadcast(issuer: CommandIssuer, name: str, value: Payload) -> StepFuture:
    """Ask for a broadcast signal; the future is done when the store has found its subscribers."""
    number = issuer.next_number(value)
    issuer.issue(commands.Broadcast(number=number, name=name, value=value))
    return _answered(issuer, number, f"broadcast signal '{name}'", _read_broadcast)


def list_open(issuer: CommandIssuer) -> list[SubscriptionFuture]:
    """The waits that are not over, in the order in which they began."""
    return [one for one in issuer.steps.values() if isinstance(one, SubscriptionFuture) and not one.done()]


# --- what the events bring ---


def _trigger(issuer: CommandIssuer, event: events.SubscriptionTriggered) -> None:
    """Something came: the wait gets it if it fits, and if nothing else has ended the wait."""
    future: Any = issuer.steps.pop(event.number, None)
    if not isinstance(future, SubscriptionFuture):
        issuer.issue(commands.DeclinePublication(number=event.number))
        return
    wait, race = future.wait, future.race
    if future.done() or (race is not None and race.winner.done()):
        future.withdraw = None  # it has ended
        issuer.issue(commands.DeclinePublication(number=event.number))
        return
    if event.stays_until is not None:
        _remember(issuer, wait.name, event.id, event.stays_until)  # also one that does not fit: it would come again
    try:
        decoded = payloads.decode(event.value, future.hint, f"the value of {wait.describe()}")
    except DecodingError as error:
        issuer.values.note_undecodable(error, is_replaying=issuer.is_replaying)
        issuer.issue(commands.DeclinePublication(number=event.number, reason=error.message))
        future.begin()
        return
    issuer.values.note_headers(wait.kind, wait.name, event.headers)
    future.set_result(decoded)
    if race is not None:
        race.settle(future)  # at once: the next event may come before any callback runs


def _remember(issuer: CommandIssuer, name: str, item: str, until: int) -> None:
    """Note an event that stays kept for others: this execution does not get it again. Those that expired are forgotten."""
    seen = issuer.seen_events.get(name)
    if seen is None:
        seen = {}
        issuer.seen_events = put(issuer.seen_events, name, seen)
    for expired in [one for one, end in seen.items() if end <= issuer.loop.now]:
        del seen[expired]
    seen[item] = until


def _complete(issuer: CommandIssuer, event: events.PublicationCompleted) -> None:
    """The store has taken what the code published."""
    future = issuer.steps.pop(event.number, None)
    if future is not None and not future.done():
        future.set_result(future.hint(event))


def _answered(
    issuer: CommandIssuer, number: int, label: str, read: Callable[[events.PublicationCompleted], Any]
) -> StepFuture:
    future = issuer.steps[number] = StepFuture(issuer, number, label, read, None)
    future.may_be_ignored = True
    return future


def _read_message(event: events.PublicationCompleted) -> MessageOutcome:
    return MessageOutcome(delivered=event.delivered > 0, started=event.started > 0, kept=event.kept)


def _read_event(event: events.PublicationCompleted) -> EventOutcome:
    return EventOutcome(delivered=event.delivered, kept=event.kept)


def _read_broadcast(event: events.PublicationCompleted) -> Broadcast:
    return Broadcast(delivered=event.delivered, started=event.started)


RESOLVE_PUBLISHED: Final[dict[type[events.Event], Callable[[CommandIssuer, Any], None]]] = {
    events.SubscriptionTriggered: _trigger,
    events.SubscriptionFailed: CommandIssuer.reject,
    events.PublicationCompleted: _complete,
    events.PublicationFailed: CommandIssuer.reject,
}
"""What an event does to the future of a wait, or of something that was published."""
