"""The facts of an execution's history, all of them. Past tense, never changed, never reinterpreted.

An event is either *given* to the program (something arrived) or *recorded* for it (the program asked for something).
`number` identifies what a command asked for: the program counts its commands, so the same one has the same number on every
replay. To change a stored shape, raise `codec.SCHEMA` and add an upcaster.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from holdfast.core.chains import TimeoutScope
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant, Micros
from holdfast.core.options import ActivityOptions, ParentClose, TimeoutKind
from holdfast.core.parents import Parent
from holdfast.core.payloads import NULL, Payload
from holdfast.core.publications import DEFAULT_EVENT, EventOptions, SubscriptionKind
from holdfast.core.references import BusinessReference
from holdfast.core.request_keys import RequestKey


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", gc=False):
    """The root of all events. They hold no cycles, so the collector need not look at them."""

    arrived_at: Instant | None = None
    """When what it tells of arrived, if that was well before its turn: see `core.event_times`. For people alone."""


# --- given to the program: the beginning and what arrives ---------------------------------------------------------------


class WorkflowStarted(Event, frozen=True, kw_only=True, tag="workflow_started"):
    """The execution began.

    If it was `cancelled` before its first turn, none of its code runs. If `held`, its code begins with the next event, as
    for held signals.
    """

    workflow: str
    workflow_id: str
    input: Payload
    code_version: str = ""
    parent: Parent | None = None
    continued_from: str | None = None
    cancelled: bool = False
    held: bool = False
    queue: str | None = None
    """Its queue, if that is not the default one."""
    attempt: int = 1
    """Which attempt of its work the run is, by the retry policy of the workflow."""
    start_at: Instant | None = None
    """If it was started with a delay: when that ends. Until then its code does not run, whatever arrives."""
    metadata: dict[str, str] | None = None
    """Texts that it was started with; None: none, or its row has them (histories of older versions)."""
    headers: dict[str, str] = {}
    """Trace context and the like, which it hands on."""
    reference: BusinessReference | None = None
    """Its business reference (`behaviours.BUSINESS_REFERENCE`)."""
    element: str = ""
    """Of a process: the id of the start event at which it begins. Empty: at the one without a trigger."""
    behaviours: tuple[str, ...] = ()
    """What the events of this history mean, where that has changed since: see `core.behaviours`."""


class SignalReceived(Event, frozen=True, kw_only=True, tag="signal_received"):
    """A signal was accepted; it waits in its queue until the workflow takes it.

    `held` ones are put into the queue without running the program: the next event runs it. They occur only where the
    program would otherwise have ended before it saw signals that were already accepted.
    """

    name: str
    value: Payload
    headers: dict[str, str] = {}
    held: bool = False


class UpdateAccepted(Event, frozen=True, kw_only=True, tag="update_accepted"):
    """An update passed its validator: its handler runs, or will once the code begins. `held` as in SignalReceived."""

    update: int
    """Which one: its own place in the history."""
    name: str
    value: Payload
    headers: dict[str, str] = {}
    request: RequestKey
    """Under which key its answer is kept, wherever the caller is."""
    held: bool = False


class DelayEnded(Event, frozen=True, kw_only=True, tag="delay_ended"):
    """The delay of the start was over: the code began to run."""


class CancelRequested(Event, frozen=True, kw_only=True, tag="cancel_requested"):
    """Somebody asked for the execution to be cancelled."""

    reason: str = ""


class ActivityCompleted(Event, frozen=True, kw_only=True, tag="activity_completed"):
    """An attempt of the activity returned; the workflow receives its result."""

    number: int
    result: Payload
    attempt: int = 1


class ActivityFailed(Event, frozen=True, kw_only=True, tag="activity_failed"):
    """The last allowed attempt of the activity raised an exception."""

    number: int
    failure: Failure
    attempt: int = 1


class ActivityTimedOut(Event, frozen=True, kw_only=True, tag="activity_timed_out"):
    """A timeout passed and no attempt is left."""

    number: int
    timeout: TimeoutKind
    attempt: int = 1


class ActivityCancelled(Event, frozen=True, kw_only=True, tag="activity_cancelled"):
    """The activity ended as cancelled: the workflow asked for it and waits for the end, or the activity did so by itself."""

    number: int
    attempt: int = 1


class ActivityLost(Event, frozen=True, kw_only=True, tag="activity_lost"):
    """An attempt that must not be repeated began, and it is not known what became of it."""

    number: int
    attempt: int = 1


class TimerFired(Event, frozen=True, kw_only=True, tag="timer_fired"):
    """The timer came due, and has fired."""

    number: int


class ChildCompleted(Event, frozen=True, kw_only=True, tag="child_completed"):
    """The child execution returned a result."""

    number: int
    result: Payload


class ChildFailed(Event, frozen=True, kw_only=True, tag="child_failed"):
    """The child failed, or could not be started."""

    number: int
    failure: Failure


class ChildCancelled(Event, frozen=True, kw_only=True, tag="child_cancelled"):
    """The child execution closed as cancelled."""

    number: int


class ChildTerminated(Event, frozen=True, kw_only=True, tag="child_terminated"):
    """The child execution was ended from outside, without its code having a say."""

    number: int
    reason: str = ""


class ChildEscalated(Event, frozen=True, kw_only=True, tag="child_escalated"):
    """The child told of an escalation, and went on."""

    number: int
    code: str
    value: Payload = NULL


class ExternalSignalCompleted(Event, frozen=True, kw_only=True, tag="external_signal_completed"):
    """The other execution has accepted the signal."""

    number: int


class ExternalSignalFailed(Event, frozen=True, kw_only=True, tag="external_signal_failed"):
    """The other execution could not take the signal."""

    number: int
    failure: Failure


class SubscriptionTriggered(Event, frozen=True, kw_only=True, tag="subscription_triggered"):
    """What a subscription waits for arrived: a message, an event or a broadcast signal."""

    number: int
    value: Payload = NULL
    id: str = ""
    """The id of the message or event."""
    sent_at: Instant | None = None
    headers: dict[str, str] = {}
    stays_until: Instant | None = None
    """Of an event that stays kept for others: until when. This execution does not get it again."""


class SubscriptionFailed(Event, frozen=True, kw_only=True, tag="subscription_failed"):
    """The workflow could not subscribe: another execution waits for the message, or a limit is reached."""

    number: int
    failure: Failure


class PublicationCompleted(Event, frozen=True, kw_only=True, tag="publication_completed"):
    """What the workflow published was delivered, started something, or is kept; or nobody waited for its broadcast."""

    number: int
    delivered: int = 0
    started: int = 0
    kept: bool = False


class PublicationFailed(Event, frozen=True, kw_only=True, tag="publication_failed"):
    """What the workflow published was refused."""

    number: int
    failure: Failure


class TaskCompleted(Event, frozen=True, kw_only=True, tag="task_completed"):
    """A person completed the task: the workflow receives the form."""

    number: int
    result: Payload
    by: str = ""


class TaskCancelled(Event, frozen=True, kw_only=True, tag="task_cancelled"):
    """A person cancelled the task: the workflow catches HumanTaskCancelled."""

    number: int
    by: str = ""
    reason: str = ""


class TaskRescheduled(Event, frozen=True, kw_only=True, tag="task_rescheduled"):
    """A person changed when the task is due, or that it is. The code goes on waiting."""

    number: int
    due: Instant | None
    by: str = ""


class TaskReminded(Event, frozen=True, kw_only=True, tag="task_reminded"):
    """Dates of an open task passed: of its follow-up, its due date, or its escalation. The code goes on waiting."""

    number: int
    follow_up: bool = False
    overdue: bool = False
    escalated: bool = False


# --- recorded for the program: what it asked for -------------------------------------------------------------------------


class ActivityScheduled(Event, frozen=True, kw_only=True, tag="activity_scheduled"):
    """The workflow asked for an activity, with this input and these options."""

    number: int
    name: str
    input: Payload
    options: ActivityOptions = ActivityOptions()
    label: str = ""
    """What people call this one; likewise below. For people alone."""


class ActivityCancelRequested(Event, frozen=True, kw_only=True, tag="activity_cancel_requested"):
    """The workflow no longer wants the activity's result; if it `waits`, the activity is open until its function ended."""

    number: int
    waits: bool = False


class TimerStarted(Event, frozen=True, kw_only=True, tag="timer_started"):
    """The workflow began to wait for a point in time."""

    number: int
    due: Instant
    label: str = ""


class TimerCancelled(Event, frozen=True, kw_only=True, tag="timer_cancelled"):
    """The workflow stopped waiting for it; a late fire is ignored."""

    number: int


class ChildStarted(Event, frozen=True, kw_only=True, tag="child_started"):
    """The workflow asked for a child execution, whose start went out with the turn."""

    number: int
    workflow: str
    workflow_id: str
    execution_id: str
    input: Payload
    policy: ParentClose = ParentClose.ABANDON
    label: str = ""
    failure_as_value: bool = False
    """Whether awaiting it gives the exception of a child without a result as a value (`behaviours.CHILD_VALUES`)."""
    version: str = ""
    """Of a process: the version that the child is bound to, as the catalog had it then; empty if that is not known."""


class ChildCancelRequested(Event, frozen=True, kw_only=True, tag="child_cancel_requested"):
    """The workflow asked for its child to be cancelled."""

    number: int


class EscalationSent(Event, frozen=True, kw_only=True, tag="escalation_sent"):
    """The workflow told its parent of an escalation."""

    code: str
    value: Payload = NULL


class ExternalSignalInitiated(Event, frozen=True, kw_only=True, tag="external_signal_initiated"):
    """The workflow sent a signal to another execution."""

    number: int
    workflow_id: str
    name: str
    value: Payload


class Subscribed(Event, frozen=True, kw_only=True, tag="subscribed"):
    """The workflow began to wait for something that is published without naming it."""

    number: int
    kind: SubscriptionKind
    name: str
    key: str = ""
    where: dict[str, str] = {}
    standing: bool = False
    label: str = ""


class Unsubscribed(Event, frozen=True, kw_only=True, tag="unsubscribed"):
    """The workflow stopped waiting; what comes late is published again, or ignored."""

    number: int


class PublicationDeclined(Event, frozen=True, kw_only=True, tag="publication_declined"):
    """The workflow did not take what came: its value does not fit, and it went to the dead letters; or it came too late."""

    number: int
    reason: str = ""
    """Why its value does not fit; empty: it came too late, and was published again."""


class MessagePublished(Event, frozen=True, kw_only=True, tag="message_published"):
    """The workflow sent a message to whoever waits for its name and key."""

    number: int
    name: str
    key: str
    value: Payload = NULL
    ttl_us: Micros | None = None
    message_id: str = ""


class EventSent(Event, frozen=True, kw_only=True, tag="event_sent"):
    """The workflow sent a typed event."""

    number: int
    name: str
    value: Payload = NULL
    options: EventOptions = DEFAULT_EVENT
    workflow_id: str = ""


class SignalBroadcast(Event, frozen=True, kw_only=True, tag="signal_broadcast"):
    """The workflow threw a broadcast signal."""

    number: int
    name: str
    value: Payload = NULL
    caught: int = 0
    """How many waits of its own get it, within the same turn."""


class TaskCreated(Event, frozen=True, kw_only=True, tag="task_created"):
    """The workflow asked for a person to do something."""

    number: int
    task_id: str
    name: str
    payload: Payload = NULL
    form: str = ""
    description: str = ""
    assignee: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    priority: int = 0
    queue: str = ""
    due: Instant | None = None
    follow_up: Instant | None = None
    escalate_at: Instant | None = None
    escalate_to: tuple[str, ...] = ()


class TaskEnded(Event, frozen=True, kw_only=True, tag="task_ended"):
    """The workflow waits for the task no longer; what a person does about it comes too late."""

    number: int


class IncidentRaised(Event, frozen=True, kw_only=True, tag="incident_raised"):
    """Something went wrong at one place of the process, which waits until somebody corrects it."""

    number: int
    element: str
    element_name: str = ""
    kind: str
    message: str


class IncidentResolved(Event, frozen=True, kw_only=True, tag="incident_resolved"):
    """What went wrong was tried again, or its place was left: the incident is over."""

    number: int


class ProcessAdvanced(Event, frozen=True, kw_only=True, tag="process_advanced"):
    """What a process did with the event before it: `holdfast.bpmn.records` in order, one JSON array that a codec finds."""

    records: Payload


class UpdateCompleted(Event, frozen=True, kw_only=True, tag="update_completed"):
    """The handler of an update returned: the caller is answered with the result."""

    update: int
    result: Payload


class UpdateFailed(Event, frozen=True, kw_only=True, tag="update_failed"):
    """The handler of an update raised, or there is none after all: the caller gets the failure, the workflow goes on."""

    update: int
    failure: Failure
    is_rejected: bool = False
    """Whether no handler ran: the update came before the code had begun, and its name or value was refused then."""


class SignalRejected(Event, frozen=True, kw_only=True, tag="signal_rejected"):
    """A signal's value did not fit the awaited type: it went to the dead letters."""

    name: str
    reason: str


class SideEffectRecorded(Event, frozen=True, kw_only=True, tag="side_effect_recorded"):
    """The value of a side effect, taken once; or how it failed."""

    number: int
    value: Payload = NULL
    failure: Failure | None = None


class PatchRecorded(Event, frozen=True, kw_only=True, tag="patch_recorded"):
    """The code took the new path of a patch for the first time."""

    patch: str


# --- recorded: the end --------------------------------------------------------------------------------------------------


class WorkflowCompleted(Event, frozen=True, kw_only=True, tag="workflow_completed"):
    """The workflow returned: the execution closed with its result."""

    result: Payload


class WorkflowFailed(Event, frozen=True, kw_only=True, tag="workflow_failed"):
    """The workflow raised: the execution closed with the failure."""

    failure: Failure
    retried_as: str | None = None
    """The execution id of the run that follows it, if the workflow's retry policy allowed one."""


class WorkflowTimedOut(Event, frozen=True, kw_only=True, tag="workflow_timed_out"):
    """A timeout of the workflow passed: the execution closed as failed, and its code had no say."""

    timeout: TimeoutScope
    failure: Failure
    retried_as: str | None = None
    """As in WorkflowFailed."""


class WorkflowCancelled(Event, frozen=True, kw_only=True, tag="workflow_cancelled"):
    """The workflow let its cancellation through, or was cancelled before it ran."""

    reason: str = ""


class WorkflowTerminated(Event, frozen=True, kw_only=True, tag="workflow_terminated"):
    """The execution was ended from outside; its code had no say."""

    reason: str = ""


class ContinuedAs(Event, frozen=True, kw_only=True, tag="continued_as"):
    """The workflow ended this run and began the next one under the same workflow id."""

    execution_id: str
    workflow: str
    input: Payload


Given: TypeAlias = (
    WorkflowStarted
    | SignalReceived
    | UpdateAccepted
    | DelayEnded
    | CancelRequested
    | ActivityCompleted
    | ActivityFailed
    | ActivityTimedOut
    | ActivityCancelled
    | ActivityLost
    | TimerFired
    | ChildCompleted
    | ChildFailed
    | ChildCancelled
    | ChildTerminated
    | ChildEscalated
    | ExternalSignalCompleted
    | ExternalSignalFailed
    | SubscriptionTriggered
    | SubscriptionFailed
    | PublicationCompleted
    | PublicationFailed
    | TaskCompleted
    | TaskCancelled
    | TaskRescheduled
    | TaskReminded
)
Closing: TypeAlias = (
    WorkflowCompleted | WorkflowFailed | WorkflowTimedOut | WorkflowCancelled | WorkflowTerminated | ContinuedAs
)
Recorded: TypeAlias = (
    ActivityScheduled
    | ActivityCancelRequested
    | TimerStarted
    | TimerCancelled
    | ChildStarted
    | ChildCancelRequested
    | EscalationSent
    | ExternalSignalInitiated
    | Subscribed
    | Unsubscribed
    | PublicationDeclined
    | MessagePublished
    | EventSent
    | SignalBroadcast
    | TaskCreated
    | TaskEnded
    | IncidentRaised
    | IncidentResolved
    | ProcessAdvanced
    | UpdateCompleted
    | UpdateFailed
    | SignalRejected
    | SideEffectRecorded
    | PatchRecorded
    | Closing
)
AnyEvent: TypeAlias = Given | Recorded

UNASKED: frozenset[type[Event]] = frozenset({WorkflowTerminated, WorkflowTimedOut})
"""Ends that came from outside: no program asked for them."""
OF_PROCESSES: frozenset[type[Event]] = frozenset({EscalationSent, IncidentRaised, IncidentResolved, ProcessAdvanced})
"""What only the programs of processes ask for."""
GIVEN: frozenset[type[Event]] = frozenset(Given.__args__)
CLOSING: frozenset[type[Event]] = frozenset(Closing.__args__)
RECORDED: frozenset[type[Event]] = frozenset(Recorded.__args__)


class HistoryTurn(msgspec.Struct, frozen=True):
    """The events of one turn: one row of history. Programs take all of them at `at`; the first is number `first`."""

    first: int
    at: Instant
    events: tuple[AnyEvent, ...]
