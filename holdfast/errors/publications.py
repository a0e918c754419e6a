"""Messages, events and broadcast signals that were refused, and waits for them."""

from __future__ import annotations

from holdfast.errors.roots import Conflict, NotFound, StepError


class SubscriptionFailed(StepError):
    """A wait for a message, an event or a broadcast signal could not begin."""


class MessageKeyTaken(SubscriptionFailed):
    """Another open execution waits for a message with the same name and key."""


class PublicationFailed(StepError):
    """A message, an event or a broadcast signal that the workflow sent was refused; `type` says why."""


class MessageRefused(NotFound):
    """Nobody waits for the message, no workflow starts by it, and it has no time-to-live; nothing was stored."""


class DuplicateMessage(Conflict):
    """A message with the same name, correlation key and id is kept already; nothing was stored."""


class TooManyKept(Conflict):
    """As many messages or events of that name are kept as may be (`max_pending_events`); nothing was stored."""
