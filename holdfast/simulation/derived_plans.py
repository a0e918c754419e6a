"""Steps and calls whose outcome follows from the inputs alone: clients and the checker derive it without another run.

As in `plans`, tags and stored names stay as they are, so that a seed gives the same bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeAlias

from holdfast.core.org_limits import OrgLimits
from holdfast.core.schedules import Overlap
from holdfast.event import event
from holdfast.simulation.plan_roots import ClientCall, PlannedStep, SignalToken

SUMMONS: Final = "summons"
"""The name of the broadcast signals that start programs."""
KEPT_SECONDS: Final = 86_400
"""For how long messages and events are kept: longer than any run, however the clock is set."""
SMALL_ORG: Final = "small"
"""The org that has limits."""
LIMITS: Final = OrgLimits(open_executions=3, kept_items=2)


@event(name="simulated-notice", consume_on_read=False, delivery_mode="after_wait")
class Notice(SignalToken, frozen=True, kw_only=True):
    """An event for those alone who wait when it is sent."""

    topic: str


@event(name="simulated-memo", consume_on_read=False, delivery_mode="after_create", expire_after=KEPT_SECONDS)
class Memo(SignalToken, frozen=True, kw_only=True):
    """An event for those alone who exist when it is sent."""

    topic: str


@event(name="simulated-parcel", on_target_terminated="dead_letter", expire_after=KEPT_SECONDS)
class Parcel(SignalToken, frozen=True, kw_only=True):
    """An event for one program, which becomes a dead letter if that ends without having taken it."""

    topic: str


@event(name="simulated-leaflet", expire_after=KEPT_SECONDS)
class Leaflet(SignalToken, frozen=True, kw_only=True):
    """An event for one program, which is thrown away if that ends without having taken it."""

    topic: str


class ModeKind(StrEnum):
    """Which of the types of events that differ in their modes."""

    NOTICE = "notice"
    MEMO = "memo"
    PARCEL = "parcel"
    LEAFLET = "leaflet"


MODES: Final[dict[ModeKind, type[Notice | Memo | Parcel | Leaflet]]] = {
    ModeKind.NOTICE: Notice,
    ModeKind.MEMO: Memo,
    ModeKind.PARCEL: Parcel,
    ModeKind.LEAFLET: Leaflet,
}


# --- steps ---------------------------------------------------------------------------------------------------------------


class ReceiveEvents(PlannedStep, frozen=True, kw_only=True, tag="receive"):
    """Take so many events of a kind, each with a marker from the moment at which it is awaited.

    With a `gate`, a signal of that name comes before, with a marker of its own.
    """

    kind: ModeKind
    topic: str
    count: int = 1
    gate: str | None = None


AnyDerivedStep: TypeAlias = ReceiveEvents


# --- calls of clients ----------------------------------------------------------------------------------------------------


class SendModeCall(ClientCall, frozen=True, kw_only=True):
    """Send an event with the target as its topic, and to it if `is_addressed`."""

    kind: ModeKind
    token: SignalToken
    is_addressed: bool = False
    is_doubled: bool = False
    is_left: bool = False
    """Whether nobody takes it: its program ends before."""


class ExpectTokensCall(ClientCall, frozen=True, kw_only=True):
    """Wait for the end of a program, whose result must be these tokens: sender, and the numbers of its events in order.

    Not where the clock was set: whether an execution existed when an event was sent is told by their times.
    """

    expected: tuple[tuple[str, tuple[int, ...]], ...]


class TaskAct(StrEnum):
    """What a client does with a task."""

    CLAIM = "claimed"
    COMMENT = "commented"
    RELEASE = "released"
    ASSIGN = "assigned"
    REASSIGN = "reassigned"
    COMPLETE = "completed"


class TaskActsCall(ClientCall, frozen=True, kw_only=True):
    """Do one thing after the other with a task, each as (what, by whom): its events must be these, each once, in order."""

    task: str
    acts: tuple[tuple[TaskAct, str], ...]
    is_doubled: bool = False


class OverlapCall(ClientCall, frozen=True, kw_only=True):
    """Create a schedule with an overlap policy, pause and resume it perhaps, and wait until it has ended."""

    label: str
    millis: int
    """How long each of its programs takes."""
    count: int
    every_seconds: int
    overlap: Overlap
    catch_up: int
    paused_millis: int = 0
    """For how long it is paused in between; 0: not at all."""


class LimitsCall(ClientCall, frozen=True, kw_only=True):
    """Fill an org up to its limits, be refused, make room, and be accepted; end what was started."""


AnyDerivedCall: TypeAlias = SendModeCall | ExpectTokensCall | TaskActsCall | OverlapCall | LimitsCall
