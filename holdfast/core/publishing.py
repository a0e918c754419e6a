"""What an execution publishes: messages, events and broadcast signals. They leave with the commit, by the outbox.

The store's answer comes back as an envelope. A broadcast signal reaches the execution's own waits within the turn: those
that were open when it was thrown, after everything that the program asked for in the same step.
"""

from __future__ import annotations

from typing import Final

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import OutboxItem, OwnTrigger, Turn
from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.publications import DEFAULT_EVENT, DeliveryMode, EventOptions, Publication, SubscriptionKind
from holdfast.core.unused import add, put

MOST_OWN: Final = 1_000
"""So many of its own broadcast signals an execution gets within one turn; the others come by its inbox. So code that answers
its own signals for ever does not hold up its batch."""


def record_message(turn: Turn, command: commands.PublishMessage) -> events.MessagePublished:
    """Send a message with the commit."""
    ttl = turn.limits.message_ttl if command.ttl_us is None else command.ttl_us
    publication = Publication(
        kind=SubscriptionKind.MESSAGE,
        name=command.name,
        key=command.key,
        value=command.value,
        headers=turn.execution.headers,
        id=command.message_id or _make_id(turn, command.number),
        sent_at=turn.clock,
        expires_at=turn.clock + ttl if ttl else None,
    )
    turn.has_rare = True
    turn.publications = add(turn.publications, (OutboxItem(publication, number=command.number),))
    return events.MessagePublished(
        number=command.number,
        name=command.name,
        key=command.key,
        value=command.value,
        ttl_us=command.ttl_us,
        message_id=command.message_id,
    )


def record_event(turn: Turn, command: commands.SendEvent) -> events.EventSent:
    """Send an event with the commit. The target is named by its workflow id: whoever publishes it finds the execution."""
    options = command.options
    publication = Publication(
        kind=SubscriptionKind.EVENT,
        name=command.name,
        value=command.value,
        headers=turn.execution.headers,
        id=_make_id(turn, command.number),
        sent_at=turn.clock,
        expires_at=find_expiry(turn, options),
        event=None if options == DEFAULT_EVENT else options,
        target=command.workflow_id,
    )
    turn.has_rare = True
    turn.publications = add(turn.publications, (OutboxItem(publication, command.fields, command.number),))
    return events.EventSent(
        number=command.number,
        name=command.name,
        value=command.value,
        options=options,
        workflow_id=command.workflow_id,
    )


def find_expiry(turn: Turn, options: EventOptions) -> Instant | None:
    """Until when an event that is sent now is kept; None if it is not."""
    if options.delivery_mode is DeliveryMode.AFTER_WAIT:
        return None
    length = options.expire_after_us
    return turn.clock + (turn.limits.event_retention if length is None else length)


def record_broadcast(turn: Turn, command: commands.Broadcast) -> events.SignalBroadcast:
    """Throw a broadcast signal: the execution's own waits get it after this step, all others by the store."""
    publication = Publication(
        kind=SubscriptionKind.BROADCAST,
        name=command.name,
        value=command.value,
        headers=turn.execution.headers,
        id=_make_id(turn, command.number),
        sent_at=turn.clock,
    )
    is_served = command.served is not None
    own = [] if is_served else [one.number for one in turn.execution.subscriptions.values() if _catches(one, command.name)]
    turn.own_triggers = add(turn.own_triggers, [OwnTrigger(number, publication) for number in own])
    turn.has_rare = True
    turn.publications = add(turn.publications, (OutboxItem(publication, number=command.number),))
    return events.SignalBroadcast(
        number=command.number, name=command.name, value=command.value, caught=command.served or len(own)
    )


def decide_answered(
    turn: Turn, envelope: envelopes.PublicationAnswered
) -> events.PublicationCompleted | events.PublicationFailed | None:
    """What became of a publication of this execution: it counts once."""
    sent = turn.execution.publications.get(envelope.number)
    if sent is None:
        return None
    if envelope.failure is not None:
        return events.PublicationFailed(number=envelope.number, failure=envelope.failure)
    caught = sent.caught if isinstance(sent, events.SignalBroadcast) else 0
    return events.PublicationCompleted(
        number=envelope.number, delivered=envelope.delivered + caught, started=envelope.started, kept=envelope.kept
    )


def evolve_published(
    execution: Execution, event: events.MessagePublished | events.EventSent | events.SignalBroadcast, _now: Instant
) -> None:
    """The store's answer to a publication is awaited."""
    execution.publications = put(execution.publications, event.number, event)


def evolve_answered(
    execution: Execution, event: events.PublicationCompleted | events.PublicationFailed, _now: Instant
) -> None:
    """The store's answer to a publication is awaited no longer."""
    execution.publications.pop(event.number, None)


def _catches(subscription: events.Subscribed, name: str) -> bool:
    return subscription.kind is SubscriptionKind.BROADCAST and subscription.name == name


def _make_id(turn: Turn, number: int) -> str:
    """The id of something that an execution publishes: the same however often its turn is taken."""
    return f"{turn.execution.execution_id}:{number}"
