"""What a turn gathers: events for the history, and effects that happen with its commit or after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core.envelopes import AnyEnvelope, Start
from holdfast.core.events import ActivityScheduled, AnyEvent
from holdfast.core.execution import OFFERED, Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant
from holdfast.core.payloads import Payload


class TimerSet(msgspec.Struct, frozen=True, gc=False):
    """An envelope with a due time: a timer of the program, or the next attempt of an activity."""

    number: int
    due: Instant
    attempt: int = 0
    """0 for the program's own timers, else the activity attempt that begins then."""


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """An envelope for another execution, addressed by execution id or, where that is empty, by workflow id.

    With both, it is for that execution, whose start may still be on its way under the workflow id.
    """

    execution_id: str
    workflow_id: str
    envelope: AnyEnvelope


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """An envelope that could not be handled, whole, with the reason."""

    envelope: AnyEnvelope
    reason: str


class ActivityTask(msgspec.Struct, frozen=True, gc=False):
    """One attempt of an activity, ready to run."""

    org: str
    execution_id: str
    workflow_id: str
    workflow: str
    event: ActivityScheduled
    scheduled_at: Instant
    attempt: int
    heartbeat: Payload | None
    sequence: int = 0
    """How long the history was when the attempt was given out: it was wanted then."""
    lost: int = 0
    """How often in a row an attempt ended with its process."""
    route: str = ""
    """Who takes the turns of its execution."""
    is_offered: bool = False
    """Whether it is a row of the store, which whoever can takes."""


class Turn:
    """One step of one execution while it is taken: envelopes in, events and effects out, one atomic write."""

    __slots__ = (
        "answers",
        "blocked",
        "changed",
        "dead_letters",
        "dispatched",
        "ended_timers",
        "events",
        "execution",
        "had_offers",
        "limits",
        "now",
        "offered",
        "outgoing",
        "position",
        "started_timers",
        "stopped",
        "successor",
        "successor_envelopes",
        "unseen_signals",
        "withdrawn",
    )

    def __init__(self, execution: Execution, now: Instant, limits: Limits) -> None:
        self.execution = execution
        self.now = now
        self.limits = limits
        self.events: list[AnyEvent] = []
        self.changed = False
        """Whether the row changes though no event was recorded."""
        self.dispatched: list[int] = []
        """Activities that begin an attempt once this is committed."""
        self.offered: list[int] = []
        """Activities that begin an attempt on whichever node takes them."""
        self.had_offers: Sequence[tuple[int, int]] = find_offers(execution) if execution.details.attempts else ()
        """What was offered before the turn, as (number, attempt)."""
        self.withdrawn: list[int] = []
        """Activities that are offered no longer."""
        self.stopped: list[int] = []
        """Activities whose function is told to stop."""
        self.started_timers: list[TimerSet] = []
        self.ended_timers: list[int] = []
        self.outgoing: list[Outgoing] = []
        self.dead_letters: list[DeadLetter] = []
        self.position = 0
        """Which envelope is being handled."""
        self.answers: dict[int, Any] = {}
        """By position of the envelope: what to answer whoever sent it. An exception is a refusal."""
        self.successor: Start | None = None
        self.successor_envelopes: list[AnyEnvelope] = []
        self.blocked: Failure | None = None
        self.unseen_signals = False
        """The program ended before it was given all accepted signals: the turn must be taken again, holding them."""

    def send(self, execution_id: str, envelope: AnyEnvelope, workflow_id: str = "") -> None:
        """Queue an envelope for another execution; it goes out with the commit."""
        self.outgoing.append(Outgoing(execution_id, workflow_id, envelope))

    def answer(self, value: Any) -> None:
        """Say what whoever sent the present envelope is told."""
        self.answers[self.position] = value

    @property
    def writes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.events) or self.changed or bool(self.dead_letters) or bool(self.outgoing)


class Limits(msgspec.Struct, frozen=True, gc=False):
    """Bounds that a turn enforces."""

    max_signals: int = 10_000


def find_offers(execution: Execution) -> Sequence[tuple[int, int]]:
    """The activities that are offered, as (number, attempt)."""
    return [(number, one.attempt) for number, one in execution.details.attempts.items() if one.node == OFFERED]


def make_task(execution: Execution, number: int, route: str = "") -> ActivityTask:
    """The present attempt of an open activity, as the runner takes it."""
    activity = execution.activities[number]
    attempt = execution.attempt_of(number)
    return ActivityTask(
        execution.org,
        execution.execution_id,
        execution.workflow_id,
        execution.workflow,
        activity.event,
        activity.scheduled_at,
        attempt.attempt,
        attempt.heartbeat,
        execution.sequence,
        attempt.lost,
        route,
        attempt.node == OFFERED,
    )
