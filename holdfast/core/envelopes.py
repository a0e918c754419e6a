"""What can arrive for an execution, all of it. Envelopes carry ids and values, never snapshots of state."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from holdfast.core.chains import Chain, TimeoutScope
from holdfast.core.failures import Failure
from holdfast.core.ids import DEFAULT_QUEUE
from holdfast.core.instants import Instant, Micros
from holdfast.core.options import OnClosed, OnOpen, TimeoutKind
from holdfast.core.parents import Parent
from holdfast.core.payloads import Payload
from holdfast.core.publications import Publication
from holdfast.core.references import BusinessReference
from holdfast.core.request_keys import RequestKey


class Envelope(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", gc=False, forbid_unknown_fields=True
):
    """The root of all envelopes: what can arrive for an execution."""


class Start(Envelope, frozen=True, kw_only=True, tag="start"):
    """Open an execution. `execution_id` is the one to use if a new one is made."""

    execution_id: str
    workflow_id: str
    workflow: str
    input: Payload
    queue: str = DEFAULT_QUEUE
    code_version: str = ""
    """The version of the workflow that whoever starts it has as the newest, or asked for."""
    pinned: bool = False
    """Whether that version was asked for: only nodes that have it take the execution's turns."""
    route_name: str = ""
    """What stands for its workflow in its route, for a process: whoever can interpret it takes it. Empty: its name."""
    element: str = ""
    """Of a process: the id of the start event at which it begins. Empty: at the one without a trigger."""
    on_open: OnOpen = OnOpen.USE_EXISTING
    on_closed: OnClosed = OnClosed.ALLOW
    metadata: dict[str, str] = {}
    headers: dict[str, str] = {}
    """Trace context and the like, which the execution hands on."""
    reference: BusinessReference | None = None
    start_at: Instant | None = None
    """When its code begins to run, if not at once: the execution exists before."""
    chain: Chain | None = None
    """Its timeouts and its retry policy, if it has any."""
    parent: Parent | None = None
    continued_from: str | None = None
    publication: Publication | None = None
    """The message or the broadcast signal that started it, if one did. If a start by a message finds its workflow id open,
    the message is published again."""
    signal: Signal | Update | None = None
    """In an inbox: for the execution that is open under the workflow id, or for the one that is made."""
    request: RequestKey | None = None
    """In an inbox: the key of the request that brought it, if that has one and there is no signal that carries it."""


class InternalContinue(Envelope, frozen=True, kw_only=True, tag="internal_continue"):
    """The first turn of a run that continues another, where that was too much for one transaction.

    The run is open already, under its workflow id, and has no history yet.
    """

    start: Start
    runs: int
    """How many runs before it began and ended without coming to rest, and without taking a signal."""
    signals: tuple[Signal | Update, ...] = ()
    """What the run before had been given and did not take: it comes before all that waits in the inbox."""


class Sender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The execution that sent a signal, and as which of its commands; it is told how that went."""

    execution_id: str
    number: int


class Signal(Envelope, frozen=True, kw_only=True, tag="signal"):
    """A signal for the execution. In an inbox it carries the key of the request that brought it, if that has one."""

    name: str
    value: Payload
    headers: dict[str, str] = {}
    sender: Sender | None = None
    request: RequestKey | None = None
    carried: bool = False
    """In an inbox: whether the run before had it already, so that it comes before all that was sent to this one."""


class Update(Envelope, frozen=True, kw_only=True, tag="update"):
    """A call of one of the execution's update handlers. Its sender waits for the answer, which is kept under the key."""

    name: str
    value: Payload
    headers: dict[str, str] = {}
    request: RequestKey
    carried: bool = False
    """As in Signal."""


class Cancel(Envelope, frozen=True, kw_only=True, tag="cancel"):
    """A request to cancel: the program is told, and may clean up."""

    reason: str = ""
    carried: bool = False
    """As in Signal."""
    request: RequestKey | None = None
    """As in Signal."""


class Terminate(Envelope, frozen=True, kw_only=True, tag="terminate"):
    """An order to end an execution at once, without its program having a say."""

    reason: str = ""
    request: RequestKey | None = None
    """As in Signal."""


class StartDue(Envelope, frozen=True, kw_only=True, tag="start_due"):
    """The delay of a start is over: the code of the execution begins."""


class DeadlineDue(Envelope, frozen=True, kw_only=True, tag="deadline_due"):
    """A timeout of the execution has passed: it ends at once, without its program having a say."""

    scope: TimeoutScope


class TimerDue(Envelope, frozen=True, kw_only=True, tag="timer_due"):
    """A timer of the execution came due; its number is the token."""

    number: int
    due: Instant | None = None
    """When it was due. A human task has all its timers under one number: one from before a change of its dates is stale."""


class RetryDue(Envelope, frozen=True, kw_only=True, tag="retry_due"):
    """The time for an activity's next attempt has come; stale unless `attempt` is still the one that waits."""

    number: int
    attempt: int


class ActivityReturned(Envelope, frozen=True, kw_only=True, tag="activity_returned"):
    """An attempt of an activity returned; stale unless it is the present attempt."""

    number: int
    attempt: int
    work: str = ""
    """The digest of what the attempt was asked to do; empty where the execution began without (`core.work_keys`). Likewise
    in all envelopes about attempts: one about other work under the same number is stale."""
    result: Payload
    committed: bool = False
    """Whether what the function did was committed with this envelope: then it counts whichever attempt is the present one,
    since no other can have done it too."""


class ActivityRaised(Envelope, frozen=True, kw_only=True, tag="activity_raised"):
    """An attempt of an activity raised an exception; it may be tried again."""

    number: int
    attempt: int
    work: str = ""
    failure: Failure
    heartbeat: Payload | None = None
    kinds: tuple[str, ...] = ()
    """The names of the exception's base classes, where the retry policy asks for them."""
    retry_after_us: Micros | None = None
    """How long the function wants the next attempt to wait, whatever the policy says."""
    is_lost: bool = False
    """Whether what the attempt did is not known, since the process that ran it ended: then it must not be repeated."""


class ActivityExpired(Envelope, frozen=True, kw_only=True, tag="activity_expired"):
    """A timeout of an activity, or of one of its attempts, has passed."""

    number: int
    attempt: int
    work: str = ""
    timeout: TimeoutKind
    heartbeat: Payload | None = None


class ActivityStopped(Envelope, frozen=True, kw_only=True, tag="activity_stopped"):
    """An attempt of an activity ended as cancelled."""

    number: int
    attempt: int
    work: str = ""


class ActivityBeat(Envelope, frozen=True, kw_only=True, tag="activity_beat"):
    """A running attempt reported details that the next attempt will get."""

    number: int
    attempt: int
    work: str = ""
    details: Payload


class ActivityBegan(Envelope, frozen=True, kw_only=True, tag="activity_began"):
    """An attempt begins whose beginning has to be known.

    Its predecessors were lost with their processes, so that it is to blame if it is lost too; or it must not be repeated.
    """

    number: int
    attempt: int
    work: str = ""


class OfferDue(Envelope, frozen=True, kw_only=True, tag="offer_due"):
    """An offered activity has waited for as long as it may; stale if it has been taken, or offered anew."""

    number: int
    attempt: int


class Redispatch(Envelope, frozen=True, kw_only=True, tag="redispatch"):
    """The node that ran the execution's activities is gone, or hands them back: each open one gets a new attempt."""

    node: str
    has_left: bool = False
    """Whether the node left cleanly, or hands the activities back: then no attempt counts as lost with its process."""
    number: int | None = None
    """Only this activity, which the node took as an offer, or cannot run; None: all that it runs of the execution."""
    attempt: int = 0
    """With `number`: ignored unless this is the present attempt of the activity."""
    may_have_begun: bool = False
    """Whether the function may have been called though the row does not say so, since the database went back."""


class ChildClosed(Envelope, frozen=True, kw_only=True, tag="child_closed"):
    """A child ended: with a result, a failure, by cancellation or by termination."""

    number: int
    execution_id: str
    result: Payload | None = None
    failure: Failure | None = None
    cancelled: bool = False
    terminated: bool = False
    reason: str = ""


class ChildEscalated(Envelope, frozen=True, kw_only=True, tag="child_escalated"):
    """A child that goes on told of an escalation; stale unless the child is open."""

    number: int
    execution_id: str
    code: str
    value: Payload


class SignalAnswered(Envelope, frozen=True, kw_only=True, tag="signal_answered"):
    """The receiver of a signal that this execution sent took it, or could not."""

    number: int
    failure: Failure | None = None


class Triggered(Envelope, frozen=True, kw_only=True, tag="triggered"):
    """What a subscription waits for was published. Stale unless the subscription is open.

    A stale message, and a stale event that one consumer gets, is published again: somebody else may wait for it. Written by
    stores too: `number` comes first and `publication` last, see `store.publications`.
    """

    number: int
    publication: Publication


class SubscriptionRefused(Envelope, frozen=True, kw_only=True, tag="subscription_refused"):
    """A subscription was not made: another open execution waits for the same message, or the org has too many."""

    number: int
    holder: str
    """The execution id of that other one; empty if the limit is the reason."""
    limit: int = 0
    """How many subscriptions the org may have, if that is the reason."""


class PublicationAnswered(Envelope, frozen=True, kw_only=True, tag="publication_answered"):
    """What became of something that this execution published."""

    number: int
    delivered: int = 0
    """How many subscriptions were found."""
    started: int = 0
    kept: bool = False
    failure: Failure | None = None


class TaskCompleted(Envelope, frozen=True, kw_only=True, tag="task_completed"):
    """A person wants to complete a task, which the turn allows or refuses. Its sender waits for the answer."""

    number: int
    task_id: str
    value: Payload
    by: str
    groups: tuple[str, ...] = ()
    """The groups of whoever does it, as they were told."""
    request: RequestKey


class TaskCancelled(Envelope, frozen=True, kw_only=True, tag="task_cancelled"):
    """A person wants to cancel a task, as in TaskCompleted; or it is cancelled since nobody has touched it."""

    number: int
    task_id: str
    by: str
    """Empty where the engine does it."""
    groups: tuple[str, ...] = ()
    reason: str = ""
    request: RequestKey
    version: int | None = None
    """Only if the task is at this version: somebody found that nobody had touched it. None: in any case."""
    until: Instant | None = None
    """It counts until then: what was found may no longer hold if it waits, for the end of a pause for instance."""


class TaskRescheduled(Envelope, frozen=True, kw_only=True, tag="task_rescheduled"):
    """A person wants to change when a task is due, as in TaskCompleted. Its due date is a timer of the execution."""

    number: int
    task_id: str
    due: Instant | None
    by: str
    groups: tuple[str, ...] = ()
    request: RequestKey


AnyTaskStep: TypeAlias = TaskCompleted | TaskCancelled | TaskRescheduled
AnyAnswered: TypeAlias = Update | AnyTaskStep


AnyEnvelope: TypeAlias = (
    Start
    | InternalContinue
    | Signal
    | Update
    | Cancel
    | Terminate
    | StartDue
    | DeadlineDue
    | TimerDue
    | RetryDue
    | ActivityReturned
    | ActivityRaised
    | ActivityExpired
    | ActivityStopped
    | ActivityBeat
    | ActivityBegan
    | OfferDue
    | Redispatch
    | ChildClosed
    | ChildEscalated
    | SignalAnswered
    | Triggered
    | SubscriptionRefused
    | PublicationAnswered
    | TaskCompleted
    | TaskCancelled
    | TaskRescheduled
)

ENDING: Final[frozenset[Any]] = frozenset[Any]((Terminate, DeadlineDue))
"""What ends an execution at once: no program is needed for it, so any node can do it."""
KEYED: Final = (Signal, Start, Cancel, Terminate)
"""What carries the key of its request in an inbox, and is done with once it is taken."""
TASK_STEPS: Final = (TaskCompleted, TaskCancelled, TaskRescheduled)
"""What people do to a human task in a turn of its execution. It is answered, also where it comes too late."""
ANSWERED: Final = (Update, *TASK_STEPS)
"""Whose sender waits, wherever it is, for what comes of it. Each has a `request`, under which the answer is kept."""
MUST_BE_GIVEN: Final[frozenset[Any]] = frozenset[Any]((Signal, Update))
"""What was accepted and must be given to the program before the execution closes."""
CARRIED: Final = (Signal, Update, Cancel, Terminate)
"""What the next run of an execution that continued takes along. All else answers what the old run asked for."""
