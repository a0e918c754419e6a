"""The verbs that name no receiver: events, messages and broadcast signals, and the events that are kept."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, Protocol

from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import Duration
from holdfast.core.publications import Broadcast, EventOutcome, MessageOutcome
from holdfast.engine.use_cases.publications import PendingEvent


class PublicationVerbs(Protocol):
    """Sends events, messages and broadcast signals, and shows the events that are kept."""

    async def send_event(
        self,
        event: Any,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> EventOutcome:
        """Send an event to whoever waits for it: an instance of a class that `@event` decorates, or a name and a value.

        If nobody waits, it is kept as its type says. By name, the type is one of the engine's `events`, or one that a living
        node announces. Raises UnknownEvent, or TooManyKept.
        """
        ...

    async def send_event_to(
        self,
        target: str,
        event: Any,
        value: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> EventOutcome:
        """Send an event to one open execution, by workflow id or execution id; it is kept until that waits for it.

        If the execution ends first, `on_target_terminated` of the type says what becomes of it. Raises ExecutionNotFound or
        ExecutionClosed, and what `send_event` raises.
        """
        ...

    async def send_message(
        self,
        name: str,
        key: str,
        value: Any = None,
        *,
        ttl: Duration | None = None,
        message_id: str | None = None,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> MessageOutcome:
        """Send a message to the execution that waits for its name and correlation key; else it starts a workflow.

        If neither is there, it is kept for `ttl`, or for the engine's `message_ttl`; without one, MessageRefused is raised.
        While a message is kept, another with its `message_id` is refused with DuplicateMessage. `request_id` makes a
        repeated call safe instead: it gets the first answer.
        """
        ...

    async def broadcast_signal(
        self,
        name: str,
        variables: Any = None,
        *,
        org: str = DEFAULT_ORG,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Broadcast:
        """Send a signal to everybody who waits for it at this moment, and start the workflows that start by it.

        Nothing is kept. `delivered` of the answer counts the subscriptions that were found: one that ends in the same moment
        is counted.
        """
        ...

    async def pending_events(
        self, event: Any, *, org: str = DEFAULT_ORG, limit: int = 100, after: int = 0
    ) -> builtins.list[PendingEvent]:
        """The events of a type, given by class or name, that are kept, in the order of sending; `after` is a position."""
        ...

    async def remove_pending_event(
        self, event: Any, event_id: str, *, org: str = DEFAULT_ORG, request_id: str | None = None
    ) -> bool:
        """Remove a kept event of a type, given by class or name, by its id. Returns False if it is not there."""
        ...
