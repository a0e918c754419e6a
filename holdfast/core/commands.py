"""What a program can ask for, all of it. Imperative; carried out only after the turn that holds it is committed."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import msgspec

from holdfast.core.chains import Chain
from holdfast.core.failures import Failure
from holdfast.core.instants import Instant, Micros
from holdfast.core.options import DEFAULT_OPTIONS, ActivityOptions, ParentClose
from holdfast.core.payloads import NULL, Payload
from holdfast.core.publications import DEFAULT_EVENT, EventOptions, SubscriptionKind
from holdfast.core.references import BusinessReference
from holdfast.core.request_keys import RequestKey


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The root of all commands: what a program asks for."""


class RunActivity(Command, frozen=True, kw_only=True):
    """Run a user function with side effects and give its result back."""

    number: int
    name: str
    input: Payload
    options: ActivityOptions = DEFAULT_OPTIONS
    label: str = ""
    """What people call this one; likewise below. It is shown, and never compared with history."""


class CancelActivity(Command, frozen=True, kw_only=True):
    """Cancel an activity: its function is told. Its result no longer counts, or only as its end, as its options say."""

    number: int


class StartTimer(Command, frozen=True, kw_only=True):
    """Start a timer: the program gets a TimerFired when `due` has come, by the time of its events."""

    number: int
    due: Instant
    is_date: bool = False
    """Whether it is to fire at a time of day, whatever becomes of the clock, and not after a length of time."""
    label: str = ""


class CancelTimer(Command, frozen=True, kw_only=True):
    """Cancel a timer that has not fired; without effect on one that has."""

    number: int


class StartChild(Command, frozen=True, kw_only=True):
    """Start another execution and give its end back. Without a `workflow_id` the child gets its execution id."""

    number: int
    workflow: str
    input: Payload
    workflow_id: str | None = None
    policy: ParentClose = ParentClose.ABANDON
    label: str = ""
    failure_as_value: bool = False
    """Whether awaiting a child that ends without a result gives the exception as a value instead of raising it."""
    metadata: dict[str, str] = {}
    headers: dict[str, str] | None = None
    """What the child hands on; None: what its parent does."""
    reference: BusinessReference | None = None
    """Its business reference; None: that of its parent."""
    chain: Chain | None = None
    """Its timeouts and its retry policy, if it has any."""
    version: str = ""
    """The version of the workflow that it is bound to; empty: what `version_tag` or `deployment` says, else the newest."""
    version_tag: str = ""
    """Of a process: bound to the newest version that has this tag."""
    deployment: str = ""
    """Of a process: bound to the version that this deployment made or found."""
    catches: tuple[str, ...] = ()
    """The codes of the errors that its ancestors catch, '' for all: any other is an incident where it is thrown."""
    catches_escalations: tuple[str, ...] = ()
    """The codes of the escalations that its ancestors catch, '' for all: it need not send others."""
    interrupting_escalations: tuple[str, ...] = ()
    """Those of them by which an ancestor ends it; '' for all that are caught and not named."""


class CancelChild(Command, frozen=True, kw_only=True):
    """Ask a child execution to cancel; it may clean up, and its end still arrives."""

    number: int


class Escalate(Command, frozen=True, kw_only=True):
    """Tell the parent execution of an escalation, and go on; without effect where there is no parent."""

    code: str
    value: Payload = NULL


class SignalExternal(Command, frozen=True, kw_only=True):
    """Send a signal to the open execution that has a workflow id."""

    number: int
    workflow_id: str
    name: str
    value: Payload


class Subscribe(Command, frozen=True, kw_only=True):
    """Wait for something that is published without naming this execution; matched in the commit of the turn."""

    number: int
    kind: SubscriptionKind
    name: str
    key: str = ""
    """The correlation key of a message."""
    where: dict[str, str] = {}
    """Fields that an event must have, each with its value as canonical JSON text."""
    seen: tuple[str, ...] = ()
    """The ids of events that the execution was given and that stay kept for others: it does not get them again."""
    standing: bool = False
    """Whether it stays after it was triggered, under its number."""
    label: str = ""


class Unsubscribe(Command, frozen=True, kw_only=True):
    """Stop waiting; without effect on a subscription that has ended."""

    number: int


class DeclinePublication(Command, frozen=True, kw_only=True):
    """Give back what a subscription was triggered by: to the dead letters for a reason, else to whoever waits for it."""

    number: int
    reason: str = ""
    """Why its value does not fit; empty: it came too late for the code that waited."""


class PublishMessage(Command, frozen=True, kw_only=True):
    """Send a message to the execution that waits for its name and key, wherever that is."""

    number: int
    name: str
    key: str
    value: Payload = NULL
    ttl_us: Micros | None = None
    """For how long it is kept if nobody takes it; None: for as long as the engine keeps messages."""
    message_id: str = ""


class SendEvent(Command, frozen=True, kw_only=True):
    """Send a typed event: to whoever waits for it, or to the open execution of a workflow id."""

    number: int
    name: str
    value: Payload = NULL
    fields: dict[str, str] = {}
    """Those fields of the value by which waits can select it, each as canonical JSON text."""
    options: EventOptions = DEFAULT_EVENT
    workflow_id: str = ""


class Broadcast(Command, frozen=True, kw_only=True):
    """Throw a broadcast signal: its own waits get it within the turn, all others by the store."""

    number: int
    name: str
    value: Payload = NULL
    served: int | None = None
    """To how many waits of its own the program has given it itself; None: the turn gives it to them."""


class CreateTask(Command, frozen=True, kw_only=True):
    """Let a person do something, and give back the form that the person fills in."""

    number: int
    name: str
    payload: Payload = NULL
    """What the person is shown."""
    form: str = ""
    """The type of the form in words."""
    schema: bytes = b"{}"
    """The JSON Schema of the form, for people."""
    check: bytes = b"{}"
    """The JSON Schema that what completes the task must fit: see `check_schemas`."""
    description: str = ""
    assignee: str = ""
    users: tuple[str, ...] = ()
    """The users that may claim it, beside the assignee and the members of `groups`."""
    groups: tuple[str, ...] = ()
    priority: int = 0
    queue: str = ""
    due: Instant | None = None
    follow_up: Instant | None = None
    escalate_at: Instant | None = None
    escalate_to: tuple[str, ...] = ()
    """The groups that may claim it, too, from then on."""


class EndTask(Command, frozen=True, kw_only=True):
    """Stop waiting for a person; without effect on a task that has ended."""

    number: int


class RaiseIncident(Command, frozen=True, kw_only=True):
    """Let people know that something went wrong at one place, which goes no further until somebody corrects it."""

    number: int
    element: str
    """The id of the BPMN element at which it went wrong."""
    element_name: str = ""
    kind: str
    """What went wrong, in one word for lists: `expression`, `job` and so on."""
    message: str


class ResolveIncident(Command, frozen=True, kw_only=True):
    """End an incident: what went wrong was tried again, or its place was left. Without effect on one that has ended."""

    number: int


class CompleteUpdate(Command, frozen=True, kw_only=True):
    """Answer the caller of an update with what its handler returned."""

    update: int
    result: Payload


class FailUpdate(Command, frozen=True, kw_only=True):
    """Answer the caller of an update with what its handler raised, or why none ran."""

    update: int
    failure: Failure
    is_rejected: bool = False


class RejectSignal(Command, frozen=True, kw_only=True):
    """Put a signal whose value does not fit into the dead letters."""

    name: str
    value: Payload
    reason: str
    headers: dict[str, str] = {}


class RecordSideEffect(Command, frozen=True, kw_only=True):
    """Keep a value that the code took once, or how taking it failed."""

    number: int
    value: Payload = NULL
    failure: Failure | None = None


class RecordPatch(Command, frozen=True, kw_only=True):
    """Remember that this execution takes the new path of a patch."""

    patch: str


class SetState(Command, frozen=True, kw_only=True):
    """Set what `query_status` and `holdfast show` tell of the execution; leaves no event."""

    value: Payload


class UntakenSignal(NamedTuple):
    """A signal that a run received and did not take: its next run gets it."""

    name: str
    value: Payload
    headers: dict[str, str]


class UntakenUpdate(NamedTuple):
    """An update that a run accepted and whose handler did not begin: its next run gets it."""

    update: int
    name: str
    value: Payload
    headers: dict[str, str]
    request: RequestKey


Untaken: TypeAlias = UntakenSignal | UntakenUpdate
"""What a run was given and did not take."""


class Complete(Command, frozen=True, kw_only=True):
    """End the execution with a result."""

    result: Payload


class Fail(Command, frozen=True, kw_only=True):
    """End the execution with a failure; a next run takes the signals that were not taken, if the retry policy allows one."""

    failure: Failure
    signals: tuple[Untaken, ...] = ()
    kinds: tuple[str, ...] = ()
    """The names of the exception's type and of its base types, for the retry policy."""
    is_final: bool = False
    """Whether no other run is tried, whatever the retry policy says: the code cannot even begin."""


class EndCancelled(Command, frozen=True, kw_only=True):
    """End the execution as cancelled, after it was asked to cancel."""


class ContinueAs(Command, frozen=True, kw_only=True):
    """End this run and begin the next under the same workflow id, with the signals that were not taken."""

    workflow: str
    input: Payload
    signals: tuple[Untaken, ...] = ()


class Block(Command, frozen=True, kw_only=True):
    """The program cannot go on until its code is fixed: nothing of this turn is kept."""

    error: Failure


OF_PROCESSES: Final[frozenset[type[Command]]] = frozenset({Escalate, RaiseIncident, ResolveIncident})
"""What only processes ask for: code cannot."""
AnyCommand: TypeAlias = (
    RunActivity
    | CancelActivity
    | StartTimer
    | CancelTimer
    | StartChild
    | CancelChild
    | Escalate
    | SignalExternal
    | Subscribe
    | Unsubscribe
    | DeclinePublication
    | PublishMessage
    | SendEvent
    | Broadcast
    | CreateTask
    | EndTask
    | RaiseIncident
    | ResolveIncident
    | CompleteUpdate
    | FailUpdate
    | RejectSignal
    | RecordSideEffect
    | RecordPatch
    | SetState
    | Complete
    | Fail
    | EndCancelled
    | ContinueAs
    | Block
)
