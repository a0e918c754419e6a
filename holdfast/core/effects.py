"""What a turn gathers: events for the history, and effects that happen with its commit or after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from holdfast.core.behaviours import WORK_KEYS
from holdfast.core.commands import UntakenSignal
from holdfast.core.envelopes import AnyEnvelope, Start
from holdfast.core.events import ActivityScheduled, AnyEvent
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant, Micros
from holdfast.core.payloads import Payload
from holdfast.core.troubles import Trouble
from holdfast.core.work_keys import make_idempotency_key
from holdfast.errors import HoldfastError


class TimerKind(StrEnum):
    """What a timer is for: the program itself, or an attempt of one of its activities."""

    TIMER = "timer"
    """A timer of the program's own."""
    RETRY = "retry"
    """The next attempt of an activity begins."""
    OFFER = "offer"
    """An offered activity has waited long enough for a node to take it."""


class TimerSet(msgspec.Struct, frozen=True, gc=False):
    """A timer that a turn sets: of the program, or of one of its activities."""

    number: int
    due: Instant
    kind: TimerKind = TimerKind.TIMER
    attempt: int = 0
    """Of an activity's timer, the attempt that begins or waits; 0 for the program's own."""
    is_for_anybody: bool = False
    """Whether any node takes it, also one that lacks the code of the execution."""


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
    is_rejected: bool = False
    """Whether it is a signal that was delivered, and whose value does not fit what the workflow waits for."""


class ActivityTask(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
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
    work: str = ""
    """A digest of what is asked, which its outcome repeats; empty where the execution began without (`core.work_keys`)."""
    is_lost: bool = False
    """Whether its function may have been called before, and must not be again: the attempt is not run, but reported lost."""
    is_cancelled: bool = False
    """Whether the program has cancelled it and waits for its end: the attempt is not run, but reported as cancelled."""
    metadata: dict[str, str] = {}
    headers: dict[str, str] = {}

    @property
    def idempotency_key(self) -> str:
        """The key of the activity: the same for all its attempts, and another one for every other work."""
        return make_idempotency_key(self.execution_id, self.event.number, self.work)


class SignalRecorded(msgspec.Struct, frozen=True, gc=False):
    """The answer to a signal: it is an event of the history."""

    sequence: int
    """The sequence number of the event."""


class Acknowledged(msgspec.Struct, frozen=True, gc=False):
    """The answer to a cancel request, a termination or the beginning of a suspect activity: whether it had an effect."""

    is_done: bool


class Refused(msgspec.Struct, frozen=True, gc=False):
    """The answer to an envelope that the execution could not take."""

    error: HoldfastError


class CarriedOver(msgspec.Struct, frozen=True, gc=False):
    """The answer to an envelope that goes to the next run of an execution that continued: that run answers."""


TurnAnswer: TypeAlias = SignalRecorded | Acknowledged | Refused | CarriedOver
"""What whoever sent an envelope is told about it."""

DONE: Final = Acknowledged(True)
NOT_DONE: Final = Acknowledged(False)
CARRIED_OVER: Final = CarriedOver()


class Turn(msgspec.Struct, eq=False, gc=False):
    """One step of one execution while it is taken: envelopes in, events and effects out, one atomic write."""

    execution: Execution
    now: Instant
    """The time of its events: never before that of an earlier turn, also if the clock was set back since."""
    limits: Limits
    lead: Micros = 0
    """By how much that is ahead of what the clock shows, because the clock was set back."""
    events: list[AnyEvent] = []
    changed: bool = False
    """Whether the row changes though no event was recorded."""
    dispatched: list[int] = []
    """Activities that begin an attempt once this is committed."""
    offered: list[int] = []
    """Activities that begin an attempt on whichever node takes them."""
    had_offers: Sequence[tuple[int, int]] = ()
    """What was offered before the turn, as (number, attempt)."""
    withdrawn: list[int] = []
    """Activities that are offered no longer."""
    stopped: list[int] = []
    """Activities whose function is told to stop, and whose outcome counts no longer."""
    cancelled: list[int] = []
    """Activities whose function is told to stop, and whose end the program waits for."""
    started_timers: list[TimerSet] = []
    ended_timers: list[int] = []
    outgoing: list[Outgoing] = []
    dead_letters: list[DeadLetter] = []
    handled: int | None = None
    """How many envelopes were handled, if the turn ended before all were; the others are for the next turn."""
    position: int = 0
    """The place of the envelope that is being handled, among those that the turn takes."""
    answers: dict[int, TurnAnswer] = {}
    """By position of the envelope: what its sender is told; none where that is only that it was taken."""
    find_untaken: Callable[[], Sequence[UntakenSignal] | None] | None = None
    """Tells which of the received signals the program has not taken; None, and None as its answer: that cannot be told."""
    is_forced: bool = False
    """Whether the execution was ended without its program having a say."""
    successor: Start | None = None
    successor_envelopes: list[AnyEnvelope] = []
    blocked: Failure | None = None
    troubles: list[Trouble] = []
    """What people are told in the log, once the turn is committed."""
    unseen_signals: bool = False
    """The program ended before it was given all accepted signals: the turn must be taken again, holding them."""
    waits_forever: bool = False
    """Whether the execution waits from this turn on for something that nothing can bring."""

    def __post_init__(self) -> None:
        if self.execution.details.attempts:
            self.had_offers = find_offers(self.execution)

    @property
    def clock(self) -> Instant:
        """What the clock shows: whatever has to wait, waits from here on. Due times and deadlines are the clock's."""
        return self.now - self.lead

    def send(self, execution_id: str, envelope: AnyEnvelope, workflow_id: str = "") -> None:
        """Queue an envelope for another execution; it goes out with the commit."""
        self.outgoing.append(Outgoing(execution_id, workflow_id, envelope))

    def answer(self, answer: TurnAnswer) -> None:
        """Set what the sender of the present envelope is told once the turn is committed."""
        self.answers[self.position] = answer

    @property
    def writes(self) -> bool:
        """Whether the turn has anything to commit."""
        return bool(self.events) or self.changed or bool(self.dead_letters) or bool(self.outgoing)


class Limits(msgspec.Struct, frozen=True, gc=False):
    """Bounds that a turn enforces, and rounding that it applies."""

    max_signals: int = 10_000
    """The most signals that one run may receive."""
    timer_resolution: Micros = 0
    """Due times of timers are rounded up to a multiple of this; 0: not at all."""


def find_offers(execution: Execution) -> Sequence[tuple[int, int]]:
    """The activities that are offered, as (number, attempt)."""
    return [(number, one.attempt) for number, one in execution.details.attempts.items() if one.offered]


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
        attempt.offered,
        activity.work if WORK_KEYS in execution.behaviours else "",
        attempt.may_not_repeat,
        activity.is_cancelling,
        execution.details.metadata,
        execution.headers,
    )
