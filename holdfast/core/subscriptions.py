"""Subscriptions: waits of an execution for what is published without naming it.

Theory of operation
-------------------
A subscription is open from `Subscribed` on, until it is triggered, refused or ended by the program; a standing one stays
when it is triggered. The number is the token: a `Triggered` whose number is not open came too late. A message then goes to
the oldest other wait of the execution for the same name and key, so that messages stay in order. If there is none, it is
published again, as is an event that one consumer gets, since its sender was told that somebody has it; anything else is
dropped, since everybody else who waited got it too.

What the store has to do follows in the commit. It has taken the one-shot subscription of a message, or of an event that one
consumer gets, along when it delivered that. All others end here. A subscription that begins and ends within one turn is no
row at any time.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core import commands, envelopes, events
from holdfast.core.effects import DeadLetter, OutboxItem, Turn
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.org_limits import tell_no_subscription
from holdfast.core.publications import DEFAULT_EVENT, Publication, SubscriptionKind, canonical_fields
from holdfast.core.unused import add, put

KEY_TAKEN = "MessageKeyTaken"
"""The type of the failure of a wait for a message that another execution waits for."""
LIMIT_REACHED = "LimitReached"
"""The type of the failure of a wait that is one more than the org may have."""


def record_subscribe(turn: Turn, command: commands.Subscribe) -> events.Subscribed:
    """Begin to wait: the store matches it with what is kept when the turn is committed."""
    turn.has_rare = True
    turn.subscribed = add(turn.subscribed, (command,))
    return events.Subscribed(
        number=command.number,
        kind=command.kind,
        name=command.name,
        key=command.key,
        where=command.where,
        standing=command.standing,
        label=command.label,
    )


def record_unsubscribe(turn: Turn, command: commands.Unsubscribe) -> events.Unsubscribed | None:
    """Stop waiting, if the subscription is open."""
    subscription = turn.execution.subscriptions.get(command.number)
    if subscription is None:
        return None
    end_subscriptions(turn, (subscription,))
    return events.Unsubscribed(number=command.number)


def decide_triggered(turn: Turn, envelope: envelopes.Triggered) -> events.SubscriptionTriggered | None:
    """What a subscription waits for arrived; if that is not open any more, another wait or somebody else may get it."""
    publication = envelope.publication
    subscription = turn.execution.subscriptions.get(envelope.number)
    if subscription is None:
        subscription = _find_other(turn.execution, publication)
        if subscription is None:
            put_back(turn, publication)
            return None
        if not subscription.standing:
            end_subscriptions(turn, (subscription,))  # the store took another one along
    return trigger(turn, subscription, publication)


def _find_other(execution: Execution, publication: Publication) -> events.Subscribed | None:
    """The oldest open wait for a message that came for a wait which has ended."""
    if publication.kind is not SubscriptionKind.MESSAGE:
        return None
    wanted = (publication.kind, publication.name, publication.key)
    return next((one for one in execution.subscriptions.values() if (one.kind, one.name, one.key) == wanted), None)


def trigger(turn: Turn, subscription: events.Subscribed, publication: Publication) -> events.SubscriptionTriggered:
    """The event that gives the program what it waits for. A subscription that is used up ends, if the store has it still."""
    turn.triggered = put(turn.triggered, subscription.number, publication)
    is_taken = is_taken_by_one(publication)
    if not subscription.standing and not is_taken:
        end_subscriptions(turn, (subscription,))
    is_kept = publication.kind is SubscriptionKind.EVENT and not is_taken
    return events.SubscriptionTriggered(
        number=subscription.number,
        value=publication.value,
        id=publication.id,
        sent_at=publication.sent_at,
        headers=publication.headers,
        stays_until=publication.expires_at if is_kept else None,
    )


def decide_refused(turn: Turn, envelope: envelopes.SubscriptionRefused) -> events.SubscriptionFailed | None:
    """The store did not make a subscription: another open execution waits for the message, or the org has too many."""
    subscription = turn.execution.subscriptions.get(envelope.number)
    if subscription is None:
        return None
    if envelope.limit:
        text = tell_no_subscription(turn.execution.org, envelope.limit)
        return events.SubscriptionFailed(number=envelope.number, failure=Failure(type=LIMIT_REACHED, message=text))
    message = (
        f"Expected execution {turn.execution.execution_id} to be the only one that waits for message '{subscription.name}' "
        f"with key '{subscription.key}', but execution {envelope.holder} waits for it. Use another key, or end that wait."
    )
    return events.SubscriptionFailed(number=envelope.number, failure=Failure(type=KEY_TAKEN, message=message))


def record_declined(turn: Turn, command: commands.DeclinePublication) -> events.PublicationDeclined:
    """The program did not take what it was given: a value that does not fit goes to the dead letters, all else goes back."""
    publication = turn.triggered.get(command.number)
    if publication is not None and command.reason:
        envelope = envelopes.Triggered(number=command.number, publication=publication)
        turn.dead_letters = add(turn.dead_letters, (DeadLetter(envelope, command.reason, is_rejected=True),))
    elif publication is not None:
        put_back(turn, publication)
    return events.PublicationDeclined(number=command.number, reason=command.reason)


def put_back(turn: Turn, publication: Publication) -> None:
    """Publish again what came too late, if one receiver was to get it; else the others have it."""
    if not is_taken_by_one(publication):
        return
    is_event = publication.kind is SubscriptionKind.EVENT
    fields = canonical_fields(bytes(publication.value.data)) if is_event else {}
    turn.has_rare = True
    turn.publications = add(turn.publications, (OutboxItem(publication, fields, is_returned=True),))


def is_taken_by_one(publication: Publication) -> bool:
    """Whether one receiver gets it: a message, or an event that is consumed when it is read."""
    if publication.kind is SubscriptionKind.EVENT:
        return (publication.event or DEFAULT_EVENT).consume_on_read
    return publication.kind is SubscriptionKind.MESSAGE


def end_subscriptions(turn: Turn, ended: Iterable[events.Subscribed]) -> None:
    """Let the store end subscriptions with the commit. Those that this very turn began do not reach it at all."""
    for subscription in ended:
        number = subscription.number
        begun = next((one for one in turn.subscribed if one.number == number), None) if turn.subscribed else None
        if begun is not None:
            turn.subscribed.remove(begun)
        else:
            turn.has_rare = True
            turn.ended_subscriptions = add(turn.ended_subscriptions, (subscription,))


def evolve_subscribed(execution: Execution, event: events.Subscribed, _now: Instant) -> None:
    """The subscription is open from now on."""
    execution.subscriptions = put(execution.subscriptions, event.number, event)


def evolve_triggered(execution: Execution, event: events.SubscriptionTriggered, _now: Instant) -> None:
    """The subscription is used up, unless it is a standing one."""
    subscription = execution.subscriptions.get(event.number)
    if subscription is not None and not subscription.standing:
        del execution.subscriptions[event.number]


def evolve_ended(execution: Execution, event: events.Unsubscribed | events.SubscriptionFailed, _now: Instant) -> None:
    """The subscription is open no longer."""
    execution.subscriptions.pop(event.number, None)
