"""What a turn gathers: events for the history, and effects that happen with its commit or after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from holdfast.core.behaviours import WORK_KEYS
from holdfast.core.commands import RaiseIncident, StartChild, Subscribe, Untaken
from holdfast.core.envelopes import AnyEnvelope, Start, Update
from holdfast.core.events import ActivityScheduled, AnyEvent, Subscribed, TaskCreated
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure
from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.core.payloads import Payload
from holdfast.core.publications import Publication
from holdfast.core.request_keys import RequestKey
from holdfast.core.task_standings import TaskStanding
from holdfast.core.troubles import Trouble
from holdfast.core.unused import NO_ENTRIES, NO_ITEMS, add, put
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


class OutboxItem(msgspec.Struct, frozen=True, gc=False):
    """Something to be published once the turn is committed."""

    publication: Publication
    fields: Mapping[str, str] = {}
    """Of an event: the fields by which waits select it, as canonical JSON text."""
    number: int = 0
    """The number of the command that is told what became of it; 0 for what came too late and goes back."""
    is_returned: bool = False


class OwnTrigger(NamedTuple):
    """A broadcast signal that an execution threw and one of its own subscriptions waits for."""

    number: int
    publication: Publication


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """An envelope that could not be handled, whole, with the reason."""

    envelope: AnyEnvelope
    reason: str
    is_rejected: bool = False
    """Whether it was delivered, and its value does not fit what the workflow waits for."""


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


class CreatedTask(msgspec.Struct, frozen=True, gc=False):
    """A human task that a turn creates."""

    event: TaskCreated
    schema: bytes
    """The JSON Schema of its form, for people."""
    check: bytes
    """The JSON Schema that what completes it must fit."""


class TaskChange(msgspec.Struct, frozen=True, gc=False):
    """What a turn does to the row of an open human task, for its program or for a person."""

    number: int
    kind: str
    """The kind of its task event."""
    groups: tuple[str, ...] = ()
    """Groups that may claim it, too, from now on."""
    reason: str = ""
    ends: bool = False
    by: str = ""
    """Who did it; empty where the engine does."""
    actor_groups: tuple[str, ...] = ()
    """The groups of whoever did it."""
    result: Payload | None = None
    """The form, if it is completed by it."""
    before: dict[str, Any] = {}
    """What a person changed, as it was."""
    after: dict[str, Any] = {}


class SignalRecorded(msgspec.Struct, frozen=True, gc=False):
    """The answer to a signal: it is an event of the history."""

    sequence: int
    """The sequence number of the event."""


class Acknowledged(msgspec.Struct, frozen=True, gc=False):
    """The answer to a cancel request, a termination or the beginning of a suspect activity: whether it had an effect."""

    is_done: bool


class Replied(msgspec.Struct, frozen=True, gc=False):
    """The answer to an envelope whose sender waits for what comes of it: a value."""

    result: Payload


class ReplyFollows(msgspec.Struct, frozen=True, gc=False):
    """The answer to an update that was accepted: its handler has not ended yet, and a later turn replies under its key.

    Also to one that is repeated in the very turn in which the handler ends: that turn replies, under the same key.
    """

    update: int | None
    """The update that was accepted, or that is joined; None if an earlier turn accepted it and this one replies to it."""


class Refused(msgspec.Struct, frozen=True, gc=False):
    """The answer to an envelope that the execution could not take, or that it took without success."""

    error: HoldfastError
    is_final: bool = False
    """Whether it took it: then whoever repeats the request gets the same answer. Else the request can be repeated."""


class CarriedOver(msgspec.Struct, frozen=True, gc=False):
    """The answer to an envelope that goes to the next run of an execution that continued: that run answers."""


TurnAnswer: TypeAlias = SignalRecorded | Acknowledged | Replied | ReplyFollows | Refused | CarriedOver
"""What whoever sent an envelope is told about it."""

DONE: Final = Acknowledged(True)
NOT_DONE: Final = Acknowledged(False)
CARRIED_OVER: Final = CarriedOver()


class Checked(msgspec.Struct, frozen=True, gc=False):
    """What a program says about an update, or the form of a human task, before anything of it is recorded."""

    refusal: HoldfastError | None = None
    """Why it is not accepted."""
    blocked: Failure | None = None
    """Why the program cannot go on: a validator did not end, or broke the rules."""


ACCEPTED: Final = Checked()


class ChildBinding(msgspec.Struct, frozen=True, gc=False):
    """Which version of which process a child is bound to, as the catalog of its organisation has it now."""

    version: str = ""
    route_name: str = ""
    """As in `Start`."""
    failure: Failure | None = None
    """Why there is nothing that it can be bound to: the child fails with it."""


BindChild: TypeAlias = Callable[[str, StartChild], ChildBinding | None]
"""Says what the child that an organisation's execution asks for is bound to; None if its name is no process's."""


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
    dispatched: list[int] = NO_ITEMS
    """Activities that begin an attempt once this is committed."""
    offered: list[int] = NO_ITEMS
    """Activities that begin an attempt on whichever node takes them."""
    had_offers: Sequence[tuple[int, int]] = ()
    """What was offered before the turn, as (number, attempt)."""
    withdrawn: list[int] = NO_ITEMS
    """Activities that are offered no longer."""
    stopped: list[int] = NO_ITEMS
    """Activities whose function is told to stop, and whose outcome counts no longer."""
    cancelled: list[int] = NO_ITEMS
    """Activities whose function is told to stop, and whose end the program waits for."""
    started_timers: list[TimerSet] = NO_ITEMS
    ended_timers: list[int] = NO_ITEMS
    outgoing: list[Outgoing] = NO_ITEMS
    has_rare: bool = False
    """Whether one of those may hold something that most turns have none of: subscriptions, publications, human tasks,
    incidents, a changed searchable state, replies. Who adds to them sets it: other turns need not be asked for each."""
    subscribed: list[Subscribe] = NO_ITEMS
    """Subscriptions that begin."""
    ended_subscriptions: list[Subscribed] = NO_ITEMS
    """Subscriptions of earlier turns that end; not those that the store ended when it delivered something."""
    publications: list[OutboxItem] = NO_ITEMS
    triggered: dict[int, Publication] = NO_ENTRIES
    """What subscriptions were triggered by, by their numbers: the program may decline it in the same step."""
    own_triggers: list[OwnTrigger] = NO_ITEMS
    """Broadcast signals of its own that the program has not been given yet, in order."""
    own_triggered: int = 0
    """How many of those it was given."""
    dead_letters: list[DeadLetter] = NO_ITEMS
    created_tasks: list[CreatedTask] = NO_ITEMS
    task_standings: Mapping[int, TaskStanding] | None = None
    """By number, the rows of the human tasks about which people want something in this turn: nobody else changes them."""
    task_changes: list[TaskChange] = NO_ITEMS
    """What becomes of human tasks that are open, also of those that this turn created."""
    incidents: list[RaiseIncident] = NO_ITEMS
    """Incidents that begin, and have not ended in this very turn."""
    ended_incidents: list[int] = NO_ITEMS
    """Incidents of earlier turns that end, by their numbers; they do so before those begin."""
    recorded_bytes: int = 0
    """How large the records are that the program made by itself: in a process they may be far larger than what arrived."""
    handled: int | None = None
    """How many envelopes were handled, if the turn ended before all were; the others are for the next turn."""
    position: int = 0
    """The place of the envelope that is being handled, among those that the turn takes."""
    answers: dict[int, TurnAnswer] = NO_ENTRIES
    """By position of the envelope: what its sender is told; none where that is only that it was taken."""
    replies: list[tuple[RequestKey, Replied | Refused]] = NO_ITEMS
    """What the senders of envelopes are told that earlier turns took."""
    check_update: Callable[[Update], Checked] | None = None
    """Asks the program whether an update may be accepted; set where there is one to be asked about."""
    check_form: Callable[[int, Payload], Checked] | None = None
    """Asks the program whether it can read the form of the human task with a number; set where people want something."""
    find_untaken: Callable[[], Sequence[Untaken] | None] | None = None
    """Tells which of the received signals the program has not taken; None, and None as its answer: that cannot be told."""
    bind_child: BindChild | None = None
    """Looks up what a child is bound to; None: all names are those of code."""
    is_forced: bool = False
    """Whether the execution was ended without its program having a say."""
    successor: Start | None = None
    successor_envelopes: list[AnyEnvelope] = NO_ITEMS
    blocked: Failure | None = None
    searchable_before: dict[str, str] | None = None
    """What lists found of the state before the turn; None if that has not changed."""
    troubles: list[Trouble] = NO_ITEMS
    """What people are told in the log, once the turn is committed."""
    has_unseen: bool = False
    """The program ended before it was given all that must be given (`envelopes.MUST_BE_GIVEN`): the turn must be taken
    again, holding that."""
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
        self.outgoing = add(self.outgoing, (Outgoing(execution_id, workflow_id, envelope),))

    def end_timers(self, numbers: Iterable[int]) -> None:
        """Let timers end, also such as this turn sets."""
        self.ended_timers = add(self.ended_timers, numbers)

    def answer(self, answer: TurnAnswer) -> None:
        """Set what the sender of the present envelope is told once the turn is committed."""
        self.answers = put(self.answers, self.position, answer)

    @property
    def writes(self) -> bool:
        """Whether the turn has anything to commit."""
        return bool(self.events or self.changed or self.dead_letters or self.outgoing or self.publications)


class Limits(msgspec.Struct, frozen=True, gc=False):
    """Bounds that a turn enforces, and rounding that it applies."""

    max_signals: int = 10_000
    """The most signals that one run may receive."""
    timer_resolution: Micros = 0
    """Due times of timers are rounded up to a multiple of this; 0: not at all."""
    event_retention: Micros = 7 * 24 * 3600 * SECOND
    """For how long events are kept whose type does not say."""
    message_ttl: Micros = 0
    """For how long messages are kept that name no time-to-live; 0: not at all."""
    searchable_state: frozenset[str] | None = None
    """The keys of states that lists can search; None: all."""


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
