"""Workflows as data: what a simulated program does, step by step, and what the world does to it from outside.

Plans are made so that their outcome does not depend on the order of independent arrivals: what may differ between two runs
of the same plan is said by `Judged`, and nothing else may.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.core.options import OnOpen, ParentClose

SAFETY_MILLIS: Final = 3_600_000
"""The timeout of waits that must not time out. Whether such a timer is started at all depends on what came first."""
FOREVER_MILLIS: Final = 1_000_000_000
"""For sleeps and activities that only a cancellation ends."""


class Judged(StrEnum):
    """How two runs of one plan are compared."""

    EXACT = "exact"
    """Status, result and decisions, in order."""
    UNORDERED = "unordered"
    """Status, result and decisions; the branches of a program may come in any order."""
    STATUS = "status"
    """Status alone: how far it came before it was ended from outside is open."""
    BANK = "bank"
    """How many executions shared the signals is open; that none was lost or doubled is not."""


class Kind(StrEnum):
    """What an activity does."""

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


class Ending(StrEnum):
    """How a wait without end waits."""

    SIGNAL = "signal"
    SLEEP = "sleep"
    ACTIVITY = "activity"
    CHILD = "child"
    ALL = "all"
    SHIELD = "shield"


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="do"):
    """The root of all steps. `label` is unique in a scenario."""

    label: str


class Act(Step, frozen=True, kw_only=True, tag="act"):
    """Run an activity; what it raises is caught and logged unless `is_fatal`. One that is not awaited may be cut short."""

    kind: Kind = Kind.GIVES
    millis: int = 0
    times: int = 0
    is_fatal: bool = False
    is_awaited: bool = True


class Together(Step, frozen=True, kw_only=True, tag="together"):
    """Run several activities at once."""

    acts: tuple[Act, ...]


class Haste(Step, frozen=True, kw_only=True, tag="haste"):
    """Run several activities at once and wait for the first alone: the others are still on their way when this is over."""

    acts: tuple[Act, ...]


class Branches(Step, frozen=True, kw_only=True, tag="branches"):
    """Run several lists of steps at once, by `gather`, a task group or `as_completed`."""

    branches: tuple[tuple[AnyStep, ...], ...]
    way: str = "gather"


class Sleep(Step, frozen=True, kw_only=True, tag="sleep"):
    """Wait for a timer."""

    millis: int


class Take(Step, frozen=True, kw_only=True, tag="take"):
    """Wait for so many signals of a name; with a safety timeout if `is_timed`."""

    name: str
    count: int = 1
    is_timed: bool = False


class Miss(Step, frozen=True, kw_only=True, tag="miss"):
    """Wait for a signal that never comes, until it times out."""

    millis: int
    way: str = "timeout"


class Drain(Step, frozen=True, kw_only=True, tag="drain"):
    """Wait for `gate`, then take all of `name`, all of which were accepted before the gate was sent."""

    name: str
    gate: str


class Child(Step, frozen=True, kw_only=True, tag="child"):
    """Start a child; signal it if it has to be `told`; wait for its end if that is wanted."""

    plan: Plan
    policy: ParentClose = ParentClose.ABANDON
    workflow_id: str | None = None
    told: str | None = None
    is_awaited: bool = True


class Tell(Step, frozen=True, kw_only=True, tag="tell"):
    """Signal another workflow and wait for the answer."""

    target: str
    name: str


class Note(Step, frozen=True, kw_only=True, tag="note"):
    """Take a value that no replay could guess, and see that it stays."""


class Patch(Step, frozen=True, kw_only=True, tag="patch"):
    """Ask for a patch."""


class Hold(Step, frozen=True, kw_only=True, tag="hold"):
    """Put a marker into the history, tell somebody if asked to, and wait until ended from outside."""

    ending: Ending = Ending.SIGNAL
    tell: str | None = None


class Guarded(Step, frozen=True, kw_only=True, tag="guarded"):
    """Do the steps; if cancelled meanwhile, clean up, and let the cancellation through unless `is_swallowed`."""

    steps: tuple[AnyStep, ...]
    cleanup: tuple[AnyStep, ...] = ()
    is_shielded: bool = False
    is_swallowed: bool = False


class Fail(Step, frozen=True, kw_only=True, tag="fail"):
    """Raise."""


class Again(Step, frozen=True, kw_only=True, tag="again"):
    """Continue as a new run with these steps."""

    steps: tuple[AnyStep, ...]


class Collect(Step, frozen=True, kw_only=True, tag="collect"):
    """Take at least one signal, work, and take what came meanwhile, until there is none."""

    name: str
    millis: int = 0


class Relay(Step, frozen=True, kw_only=True, tag="relay"):
    """Take one signal, work, and continue as a new run, until none is left to take."""

    name: str
    left: int
    millis: int = 0


AnyStep: TypeAlias = (
    Act
    | Together
    | Haste
    | Branches
    | Sleep
    | Take
    | Miss
    | Drain
    | Child
    | Tell
    | Note
    | Patch
    | Hold
    | Guarded
    | Fail
    | Again
    | Collect
    | Relay
)


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One program. `run` counts its continuations, `carried` is what earlier runs logged."""

    label: str
    steps: tuple[AnyStep, ...]
    judged: Judged = Judged.EXACT
    run: int = 0
    carried: tuple[Any, ...] = ()


class Token(msgspec.Struct, frozen=True):
    """The value of a signal: who sent it, and as which of its own. Unique in a scenario."""

    sender: str
    number: int = 0


# --- from outside --------------------------------------------------------------------------------------------------------


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """The root of all calls. A client makes one after the other, each after a pause."""

    target: str
    pause_millis: int = 0


class Open(Call, frozen=True, kw_only=True):
    """Start a program; a closed one of the same id is left in peace."""

    plan: Plan
    is_doubled: bool = False


class Send(Call, frozen=True, kw_only=True):
    """Signal a program, with a request id. Junk may come too late, all else must be taken."""

    name: str
    token: Token
    is_junk: bool = False
    is_repeated: bool = False
    """Whether the client sends the same request again, though it was answered."""
    is_doubled: bool = False
    """Whether the client sends the same request twice at once, and takes the first answer."""


class SendOrOpen(Call, frozen=True, kw_only=True):
    """Signal a program, or start it with the signal."""

    plan: Plan
    name: str
    token: Token
    is_doubled: bool = False


class Cancel(Call, frozen=True, kw_only=True):
    """Cancel a program once its history holds a marker."""

    marker: str


class Terminate(Call, frozen=True, kw_only=True):
    """Terminate a program once its history holds a marker."""

    marker: str


class Replace(Call, frozen=True, kw_only=True):
    """Once a program's history holds a marker, start another in its place; `FAIL` must be refused."""

    marker: str
    plan: Plan
    on_open: OnOpen


class AwaitEnd(Call, frozen=True, kw_only=True):
    """Wait for a program's result."""


AnyCall: TypeAlias = Open | Send | SendOrOpen | Cancel | Terminate | Replace | AwaitEnd


class Scenario(msgspec.Struct, frozen=True):
    """Everything that a seed decides about the programs and their clients."""

    seed: int
    clients: tuple[tuple[AnyCall, ...], ...]
