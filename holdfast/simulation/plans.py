"""Plans: workflows as data, which the simulated program carries out step by step, and the calls that clients make.

The outcome of a plan does not depend on the order of independent arrivals. What may differ between two runs of a plan is
said by `Comparison`; nothing else may.

Plans are the inputs of simulated workflows: tags and stored names stay as they are, so that a seed gives the same bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.core.options import OnOpen, ParentClose
from holdfast.simulation.derived_plans import AnyDerivedCall, AnyDerivedStep
from holdfast.simulation.plan_roots import ClientCall, PlannedStep, SignalToken
from holdfast.simulation.reach_plans import AnyReachCall, AnyReachStep

SAFETY_MILLIS: Final = 3_600_000
"""The timeout of waits that must not time out. Whether such a timer is started depends on what arrives first."""
FOREVER_MILLIS: Final = 1_000_000_000
"""The length of sleeps and activities that only a cancellation ends."""


class Comparison(StrEnum):
    """What must be equal in two runs of one plan."""

    EXACT = "exact"
    """Status, result, and decisions in their order."""
    UNORDERED = "unordered"
    """Status, result, and decisions in any order: the program has concurrent branches."""
    STATUS = "status"
    """The status alone: the program may be ended from outside at any of its steps."""
    RESULT = "result"
    """Status and result: how often the program began to wait depends on what arrives when."""
    SHARED_SIGNALS = "bank"
    """The signals that were taken: none lost or doubled, by however many executions."""
    DERIVED = "derived"
    """Nothing: what must hold follows from the calls of clients, whatever the number of executions."""


class ActivityKind(StrEnum):
    """How the attempts of a simulated activity end."""

    GIVES = "gives"
    """It returns."""
    FLAKY = "flaky"
    """It raises a few times, then returns."""
    BEATS = "beats"
    """It reports heartbeats, raises once, then returns."""
    FAILS = "fails"
    """It raises in every attempt it is allowed."""
    REFUSES = "refuses"
    """It raises what must not be tried again."""
    HANGS = "hangs"
    """It outlasts its timeout in every attempt."""


class EndlessWait(StrEnum):
    """For what a program waits until it is ended from outside."""

    SIGNAL = "signal"
    SLEEP = "sleep"
    ACTIVITY = "activity"
    CHILD = "child"
    ALL = "all"
    SHIELD = "shield"


class PoisonKind(StrEnum):
    """What a poison turn does each time it is taken, until it is cured."""

    ENDS_PROCESS = "ends process"
    """Its code ends the process."""
    ENDS_IN_REPLAY = "ends in replay"
    """Its code ends the process, and from then on any replay of what came before it does."""
    NEVER_ENDS = "never ends"
    """Its code is interrupted by the turn limit."""
    TOO_LARGE = "too large"
    """It writes more than a turn may."""
    REFUSED = "refused"
    """The store refuses what it writes."""
    TIMED_OUT = "timed out"
    """The store gives up what it writes, after some seconds."""
    CUT = "cut"
    """What it writes breaks the connection, before the commit or during it."""
    SHORTAGE = "shortage"
    """There is no room in the store for what it writes."""


class RunActivity(PlannedStep, frozen=True, kw_only=True, tag="act"):
    """Run an activity; its failure is caught and logged unless `is_fatal`. One that is not awaited may be cut short."""

    kind: ActivityKind = ActivityKind.GIVES
    millis: int = 0
    times: int = 0
    is_fatal: bool = False
    is_awaited: bool = True


class RunActivities(PlannedStep, frozen=True, kw_only=True, tag="together"):
    """Run several activities at once, and wait for all of them; failures are logged."""

    acts: tuple[RunActivity, ...]


class RunUntilFirst(PlannedStep, frozen=True, kw_only=True, tag="haste"):
    """Run several activities at once and wait for the first one only: the others still run when the step ends."""

    acts: tuple[RunActivity, ...]


class RunBranches(PlannedStep, frozen=True, kw_only=True, tag="branches"):
    """Run several lists of steps at once, by `gather`, a task group or `as_completed`."""

    branches: tuple[tuple[AnyStep, ...], ...]
    way: str = "gather"


class SleepStep(PlannedStep, frozen=True, kw_only=True, tag="sleep"):
    """Sleep in the workflow: a timer of so many milliseconds."""

    millis: int


class TakeSignals(PlannedStep, frozen=True, kw_only=True, tag="take"):
    """Wait for so many signals of a name; with a timeout that must not pass if `is_timed`."""

    name: str
    count: int = 1
    is_timed: bool = False


class MissSignal(PlannedStep, frozen=True, kw_only=True, tag="miss"):
    """Wait for a signal that never comes, until it times out."""

    millis: int
    way: str = "timeout"


class DrainSignals(PlannedStep, frozen=True, kw_only=True, tag="drain"):
    """Wait for `gate`, then take all of `name`, all of which were accepted before the gate was sent."""

    name: str
    gate: str


class RunChild(PlannedStep, frozen=True, kw_only=True, tag="child"):
    """Start a child; send it the signal `told` if one is named; wait for its end if `is_awaited`."""

    plan: Plan
    policy: ParentClose = ParentClose.ABANDON
    workflow_id: str | None = None
    told: str | None = None
    is_awaited: bool = True


class SignalWorkflow(PlannedStep, frozen=True, kw_only=True, tag="tell"):
    """Signal another workflow and wait for the answer."""

    target: str
    name: str


class RecordSideEffect(PlannedStep, frozen=True, kw_only=True, tag="note"):
    """Record a side effect with a unique value, and check that an activity receives that value."""


class AskForPatch(PlannedStep, frozen=True, kw_only=True, tag="patch"):
    """Ask for a patch named after the step."""


class WaitForever(PlannedStep, frozen=True, kw_only=True, tag="hold"):
    """Put a marker into the history, signal the workflow `tell` if one is named, and wait until ended from outside."""

    ending: EndlessWait = EndlessWait.SIGNAL
    tell: str | None = None


class CleanUpWhenCancelled(PlannedStep, frozen=True, kw_only=True, tag="guarded"):
    """Carry out steps; if cancelled meanwhile, clean up, and pass the cancellation on unless `is_swallowed`."""

    steps: tuple[AnyStep, ...]
    cleanup: tuple[AnyStep, ...] = ()
    is_shielded: bool = False
    is_swallowed: bool = False


class RaiseFailure(PlannedStep, frozen=True, kw_only=True, tag="fail"):
    """Raise an application failure, which fails the workflow."""


class ContinueAsNew(PlannedStep, frozen=True, kw_only=True, tag="again"):
    """Continue as a new run with these steps."""

    steps: tuple[AnyStep, ...]


class CollectSignals(PlannedStep, frozen=True, kw_only=True, tag="collect"):
    """Take a signal, run an activity, take the signals that came meanwhile, and so on until none came."""

    name: str
    millis: int = 0


class RelaySignals(PlannedStep, frozen=True, kw_only=True, tag="relay"):
    """Take one signal, run an activity, and continue as a new run, until `left` signals are taken."""

    name: str
    left: int
    millis: int = 0


class TakePoison(PlannedStep, frozen=True, kw_only=True, tag="poison"):
    """Do what makes this turn poison, unless it is cured, and record a marker; `is_early`: before the poison turn itself."""

    kind: PoisonKind
    is_early: bool = False


AnyStep: TypeAlias = (
    RunActivity
    | RunActivities
    | RunUntilFirst
    | RunBranches
    | SleepStep
    | TakeSignals
    | MissSignal
    | DrainSignals
    | RunChild
    | SignalWorkflow
    | RecordSideEffect
    | AskForPatch
    | WaitForever
    | CleanUpWhenCancelled
    | RaiseFailure
    | ContinueAsNew
    | CollectSignals
    | RelaySignals
    | TakePoison
    | AnyReachStep
    | AnyDerivedStep
)


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one program does. `run` counts its continuations, `carried` is the log of its earlier runs."""

    label: str
    steps: tuple[AnyStep, ...]
    comparison: Comparison = msgspec.field(default=Comparison.EXACT, name="judged")
    run: int = 0
    carried: tuple[Any, ...] = ()


# --- calls of clients ----------------------------------------------------------------------------------------------------


class StartCall(ClientCall, frozen=True, kw_only=True):
    """Start a program, unless one with its workflow id is closed already."""

    plan: Plan
    is_doubled: bool = False
    """Whether the client makes the call twice at once, and takes the first answer."""


class SignalCall(ClientCall, frozen=True, kw_only=True):
    """Signal a program, with a request id. Junk may be refused by a closed program; all else must be accepted."""

    name: str
    token: SignalToken
    is_junk: bool = False
    is_repeated: bool = False
    """Whether the client repeats the call after it was answered."""
    is_doubled: bool = False
    """Whether the client makes the call twice at once, and takes the first answer."""


class OrderedSignalCall(ClientCall, frozen=True, kw_only=True):
    """Signal a program that stays open, with a request id, by one of its addresses."""

    name: str
    token: SignalToken
    by_execution_id: bool = False
    """Whether by the execution id of the client's last answer, where it has one; else by workflow id."""
    in_transaction: bool = False
    """Whether by a user's transaction, where the nodes share a database: the commit is the answer."""


class SignalWithStartCall(ClientCall, frozen=True, kw_only=True):
    """Signal a program; start it with the signal if it is not open."""

    plan: Plan
    name: str
    token: SignalToken
    is_doubled: bool = False


class CancelCall(ClientCall, frozen=True, kw_only=True):
    """Cancel a program once its history holds a marker."""

    marker: str


class TerminateCall(ClientCall, frozen=True, kw_only=True):
    """Terminate a program once its history holds a marker."""

    marker: str


class ReplaceCall(ClientCall, frozen=True, kw_only=True):
    """Once a program's history holds a marker, start another one with its workflow id; `FAIL` must be refused."""

    marker: str
    plan: Plan
    on_open: OnOpen


class AwaitResultCall(ClientCall, frozen=True, kw_only=True):
    """Wait until a program has ended, and note how, to be compared with the store."""


class StartByMessageCall(ClientCall, frozen=True, kw_only=True):
    """Send a message that starts a program, with the target as its key; while one is open there, the message is kept."""

    plan: Plan


class SummonCall(ClientCall, frozen=True, kw_only=True):
    """Throw a broadcast signal that starts a program, exactly one."""

    plan: Plan
    is_doubled: bool = False


class UpdateWithStartCall(ClientCall, frozen=True, kw_only=True):
    """Update a program, and note the answer; start it with the update if it is not open."""

    plan: Plan
    name: str
    token: SignalToken
    is_repeated: bool = False
    is_doubled: bool = False


class ScheduleCall(ClientCall, frozen=True, kw_only=True):
    """Create a schedule that starts a program `count` times, wait until it has ended, and delete it."""

    plan: Plan
    count: int
    every_seconds: int


AnyCall: TypeAlias = (
    StartCall
    | SignalCall
    | OrderedSignalCall
    | SignalWithStartCall
    | CancelCall
    | TerminateCall
    | ReplaceCall
    | AwaitResultCall
    | StartByMessageCall
    | ScheduleCall
    | SummonCall
    | UpdateWithStartCall
    | AnyReachCall
    | AnyDerivedCall
)


class Scenario(msgspec.Struct, frozen=True):
    """All programs and clients of a seed."""

    seed: int
    clients: tuple[tuple[AnyCall, ...], ...]
