"""Steps and calls about messages, events, broadcast signals, updates, human tasks and pauses.

As in `plans`, tags and stored names stay as they are, so that a seed gives the same bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeAlias

from holdfast.event import event
from holdfast.simulation.plan_roots import ClientCall, PlannedStep, SignalToken

MESSAGE: Final = "note"
"""The name of all messages that programs wait for; each program has a key of its own."""
STARTING_MESSAGE: Final = "begin"
"""The name of the messages that start programs."""
KEPT_SECONDS: Final = 86_400
"""For how long messages and events are kept: longer than any run, however the clock is set."""


@event(name="simulated-order", expire_after=KEPT_SECONDS)
class Order(SignalToken, frozen=True, kw_only=True):
    """An event that one consumer gets."""

    order: str


@event(name="simulated-news", consume_on_read=False, expire_after=KEPT_SECONDS)
class News(SignalToken, frozen=True, kw_only=True):
    """An event that every waiter gets, each program once."""

    topic: str


# --- steps ---------------------------------------------------------------------------------------------------------------


class TakeMessages(PlannedStep, frozen=True, kw_only=True, tag="messages"):
    """Take so many messages with a key, one after the other.

    `way`: without a timeout ("wait"), with one that must not pass ("timed"), or against short timers, so that messages come
    too late for a wait and are put back ("race").
    """

    key: str
    count: int
    way: str = "wait"


class SendMessages(PlannedStep, frozen=True, kw_only=True, tag="send_messages"):
    """Send so many messages with a key, each after the one before was answered."""

    key: str
    count: int


class CatchBroadcast(PlannedStep, frozen=True, kw_only=True, tag="catch"):
    """Wait for a broadcast signal, with a marker in the history from the moment at which it waits."""

    name: str


class ThrowBroadcast(PlannedStep, frozen=True, kw_only=True, tag="throw"):
    """Wait for the signal `gate`, then throw a broadcast signal, which the program catches itself if `is_caught`."""

    name: str
    gate: str
    is_caught: bool = False


class TakeOrders(PlannedStep, frozen=True, kw_only=True, tag="orders"):
    """Take so many events of a kind that one consumer gets, selected by a field."""

    order: str
    count: int


class ReadNews(PlannedStep, frozen=True, kw_only=True, tag="news"):
    """Take so many different events of a kind that every waiter gets, selected by a field."""

    topic: str
    count: int


class SendOrder(PlannedStep, frozen=True, kw_only=True, tag="send_order"):
    """Send an event that one consumer gets."""

    order: str


class TakeUpdates(PlannedStep, frozen=True, kw_only=True, tag="updates"):
    """Handle so many updates of a name; the first step of its plan, since updates are refused before."""

    name: str
    count: int
    millis: int = 0
    """How long the handler sleeps before it has an effect."""


class AskPerson(PlannedStep, frozen=True, kw_only=True, tag="ask"):
    """Wait for a person to complete a task; the result is the form. The task is named after the step."""

    has_marker: bool = False
    """Whether a marker is in the history from the moment at which it waits: nobody completes it, the program is ended."""


AnyReachStep: TypeAlias = (
    TakeMessages
    | SendMessages
    | CatchBroadcast
    | ThrowBroadcast
    | TakeOrders
    | ReadNews
    | SendOrder
    | TakeUpdates
    | AskPerson
)


# --- calls of clients ----------------------------------------------------------------------------------------------------


class SendMessageCall(ClientCall, frozen=True, kw_only=True):
    """Send a message with the target as its key; it is kept until somebody waits for it."""

    token: SignalToken
    is_repeated: bool = False
    is_doubled: bool = False


class AwaitMarkersCall(ClientCall, frozen=True, kw_only=True):
    """Wait until each of these programs has its marker in its history, as (workflow id, marker)."""

    markers: tuple[tuple[str, str], ...]


class BroadcastCall(ClientCall, frozen=True, kw_only=True):
    """Throw a broadcast signal with the target as its name; `receivers` subscriptions exist, no more and no less."""

    token: SignalToken
    receivers: int
    is_doubled: bool = False


class SendEventCall(ClientCall, frozen=True, kw_only=True):
    """Send an event with the target as its field: one that every waiter gets if `is_news`, else one for one consumer."""

    token: SignalToken
    is_news: bool = False
    is_addressed: bool = False
    """Whether to the program with the target as its workflow id, which is open."""
    is_doubled: bool = False


class UpdateCall(ClientCall, frozen=True, kw_only=True):
    """Update a program, and note the answer."""

    name: str
    token: SignalToken
    is_repeated: bool = False
    is_doubled: bool = False


class CompleteTaskCall(ClientCall, frozen=True, kw_only=True):
    """Wait for a task of a program, named after its step; claim it and complete it. One of several clients succeeds."""

    task: str


class PauseKind(StrEnum):
    """What a client pauses: one program, or all that have something in common."""

    EXECUTION = "execution"
    WORKFLOW = "workflow"
    QUEUE = "queue"


class PauseCall(ClientCall, frozen=True, kw_only=True):
    """Pause a program, all programs of its workflow, or all of its queue; resume after a while."""

    kind: PauseKind
    millis: int


AnyReachCall: TypeAlias = (
    SendMessageCall | AwaitMarkersCall | BroadcastCall | SendEventCall | UpdateCall | CompleteTaskCall | PauseCall
)
