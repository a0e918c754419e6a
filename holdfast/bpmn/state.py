"""The state of a process: instances of elements, what they wait for, and variables. Ids only, never the model.

Only `evolve` changes it. A scope owns its children and the tokens at its joins; there are no counters of tokens.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from holdfast.bpmn.records import Ending, Raws, Wait
from holdfast.bpmn.values import Variable, to_raws
from holdfast.core.payloads import Payload

ROOT: Final = 1
"""The key of the process itself."""
ENTERING: Final = "entering"
WORKING: Final = "working"
LEAVING: Final = "leaving"
SCHEMA: Final = 2
"""The version in which snapshots of this state are written."""
_WEIGHT: Final = 2_000
_WEIGHT_OF_INSTANCE: Final = 600

Token = tuple[int, str, str]
"""(scope, what, id): a token on a flow, at an element, or another iteration to begin."""
FLOW: Final = "flow"
ELEMENT: Final = "element"
ITERATION: Final = "iteration"
SIGNAL: Final = "signal"
"""A buffered signal is to be given to the wait with a number, which is the id."""


class OpenIncident(msgspec.Struct, frozen=True, array_like=True):
    """What went wrong with an instance."""

    kind: str
    catcher: str
    phase: str


class Loop(msgspec.Struct):
    """How far the body of a multi-instance activity is."""

    total: int
    items: tuple[msgspec.Raw, ...] | None
    collection: str = ""
    """Under this name iterations see the results so far."""
    slots: dict[int, msgspec.Raw] = msgspec.field(default_factory=dict)
    begun: int = 0
    """How many iterations have begun; those of a parallel one begin one after the other, too."""


class Instance:
    """An active instance of an element. Containers have children; scopes of variables have variables."""

    __slots__ = (
        "children",
        "element",
        "incidents",
        "index",
        "is_interrupted",
        "joins",
        "key",
        "loop",
        "phase",
        "result",
        "scope",
        "variables",
        "waits",
    )

    def __init__(self, key: int, element: str, scope: int, phase: str, index: int = -1) -> None:
        self.key = key
        self.element = element
        self.scope = scope
        """The key of the container; 0 for the process itself."""
        self.phase = phase
        self.index = index
        self.variables: dict[str, Variable] | None = None
        self.children: dict[int, None] = {}
        """The keys of the instances inside, in the order in which they began."""
        self.joins: dict[str, dict[str, int]] = {}
        """By gateway and incoming flow: how many tokens wait there."""
        self.waits: dict[int, None] = {}
        self.incidents: dict[int, OpenIncident] = {}
        self.is_interrupted = False
        self.loop: Loop | None = None
        self.result: dict[str, Variable] | None = None
        """What it got, kept while leaving it fails."""


class State:
    """What a process is at: see the module."""

    __slots__ = (
        "active",
        "advances",
        "bytes",
        "cancel_requested",
        "catches",
        "catches_escalations",
        "ending",
        "final",
        "held",
        "incidents",
        "interrupting_escalations",
        "is_begun",
        "is_child",
        "kept",
        "last_key",
        "last_number",
        "named",
        "never_runs",
        "signals",
        "start",
        "unanswered",
        "waits",
        "workflow_id",
        "yielding",
    )

    def __init__(self) -> None:
        self.active: dict[int, Instance] = {}
        self.waits: dict[int, tuple[int, Wait]] = {}
        """By number: the key of the instance that waits, and for what."""
        self.named: dict[str, dict[int, None]] = {}
        """By name: the numbers of the waits for messages and broadcast signals, the oldest first."""
        self.incidents: dict[int, int] = {}
        """By number: the key of the instance that an open incident is about."""
        self.advances = 0
        """How many times records were made: what is drawn by chance in each differs."""
        self.kept: tuple[Token, ...] = ()
        """Tokens on flows; there are some only where a turn had done enough."""
        self.yielding = 0
        """The number of the timer that wakes the process then."""
        self.last_key = 0
        self.last_number = 0
        self.signals: dict[str, deque[Payload]] = {}
        """Signals that no element has taken, by name."""
        self.held: list[HeldEvent] = []
        self.workflow_id = ""
        self.start: StartPoint | None = None
        """Where it begins, while it has not begun."""
        self.is_begun = False
        self.never_runs = False
        self.cancel_requested = False
        self.catches: tuple[str, ...] = ()
        """The codes of the errors that the callers of this process catch, '' for all."""
        self.catches_escalations: tuple[str, ...] = ()
        self.interrupting_escalations: tuple[str, ...] = ()
        """Those of them by which a caller ends this process; '' for all that it catches and does not name."""
        self.is_child = False
        self.unanswered: dict[int, None] = {}
        """The numbers of what a child has published: it closes after the store has fixed who gets that."""
        self.ending: Ending | None = None
        """What it threw out of itself, and ends by."""
        self.final: dict[str, Variable] = {}
        """The variables of the process when it ended."""
        self.bytes = 0
        """About how many bytes its variables, results and buffered signals have."""

    @property
    def weight(self) -> int:
        """About how many bytes of memory the state takes."""
        return _WEIGHT + _WEIGHT_OF_INSTANCE * len(self.active) + 2 * self.bytes

    @property
    def root(self) -> Instance | None:
        """The instance of the process itself; None before it has begun and after it has ended."""
        return self.active.get(ROOT)

    def add_wait(self, key: int, wait: Wait) -> None:
        """Note that an instance waits for something."""
        self.active[key].waits[wait.number] = None
        self.waits[wait.number] = key, wait
        if wait.name:
            self.named.setdefault(wait.name, {})[wait.number] = None

    def remove_wait(self, number: int) -> tuple[int, Wait] | None:
        """A wait is over: whose it was, and for what; None if there is none with that number."""
        found = self.waits.pop(number, None)
        if found is None:
            return None
        key, wait = found
        self.active[key].waits.pop(number, None)
        if wait.name:
            numbers = self.named[wait.name]
            del numbers[number]
            if not numbers:
                del self.named[wait.name]
        return found

    def find_named(self, name: str, kind: str = "") -> list[int]:
        """The numbers of the waits for messages and broadcast signals of a name, the oldest first; or of one kind."""
        numbers = self.named.get(name, ())
        return [number for number in numbers if not kind or self.waits[number][1].kind == kind]


class StartPoint(msgspec.Struct, frozen=True):
    """What a process begins with, and at which start event."""

    input: Payload
    element: str


class HeldEvent(msgspec.Struct, frozen=True):
    """A signal or update that was given while the program was not to run: the next event lets it."""

    name: str
    value: Payload
    update: int = 0
    """The number of an update; 0: it is a signal."""


class _InstanceSnapshot(msgspec.Struct, omit_defaults=True):
    key: int
    element: str
    scope: int
    phase: str
    index: int = -1
    variables: Raws | None = None
    joins: dict[str, dict[str, int]] = {}
    incidents: dict[int, OpenIncident] = {}
    is_interrupted: bool = False
    loop: Loop | None = None
    result: Raws | None = None


class _Snapshot(msgspec.Struct, omit_defaults=True):
    active: list[_InstanceSnapshot]
    waits: list[tuple[int, Wait]]
    last_key: int
    last_number: int
    workflow_id: str
    advances: int = 0
    kept: tuple[Token, ...] = ()
    yielding: int = 0
    signals: dict[str, list[Payload]] = {}
    held: list[HeldEvent] = []
    start: StartPoint | None = None
    is_begun: bool = False
    never_runs: bool = False
    cancel_requested: bool = False
    catches: tuple[str, ...] = ()
    catches_escalations: tuple[str, ...] = ()
    interrupting_escalations: tuple[str, ...] = ()
    is_child: bool = False
    unanswered: list[int] = []
    ending: Ending | None = None


_SNAPSHOT: Final = msgspec.json.Decoder(_Snapshot)
_PLAIN: Final = (
    "last_key",
    "last_number",
    "workflow_id",
    "advances",
    "kept",
    "yielding",
    "held",
    "start",
    "is_begun",
    "never_runs",
    "cancel_requested",
    "catches",
    "catches_escalations",
    "interrupting_escalations",
    "is_child",
    "ending",
)
"""What is in a snapshot as it is in the state."""


def encode_state(state: State) -> bytes:
    """The state as a snapshot keeps it."""
    return msgspec.json.encode(
        _Snapshot(
            active=[_pack(one) for one in state.active.values()],
            waits=list(state.waits.values()),
            signals={name: list(values) for name, values in state.signals.items()},
            unanswered=list(state.unanswered),
            **{name: getattr(state, name) for name in _PLAIN},
        )
    )


def _pack(one: Instance) -> _InstanceSnapshot:
    return _InstanceSnapshot(
        key=one.key,
        element=one.element,
        scope=one.scope,
        phase=one.phase,
        index=one.index,
        variables=None if one.variables is None else to_raws(one.variables),
        joins=one.joins,
        incidents=one.incidents,
        is_interrupted=one.is_interrupted,
        loop=one.loop,
        result=None if one.result is None else to_raws(one.result),
    )


def decode_state(body: bytes) -> State:
    """The state that a snapshot kept. Raises msgspec.MsgspecError for what is none."""
    found = _SNAPSHOT.decode(body)
    state = State()
    for name in _PLAIN:
        setattr(state, name, getattr(found, name))
    state.signals = {name: deque(values) for name, values in found.signals.items()}
    state.unanswered = dict.fromkeys(found.unanswered)
    for packed in found.active:
        one = Instance(packed.key, packed.element, packed.scope, packed.phase, packed.index)
        one.variables = _unpack(packed.variables)
        one.result = _unpack(packed.result)
        one.joins, one.incidents, one.loop = packed.joins, packed.incidents, packed.loop
        one.is_interrupted = packed.is_interrupted
        state.active[one.key] = one
        state.bytes += weigh(one)
        for number in one.incidents:
            state.incidents[number] = one.key
    for one in state.active.values():
        if one.scope in state.active:
            state.active[one.scope].children[one.key] = None
    for key, wait in found.waits:
        state.add_wait(key, wait)
    state.bytes += sum(len(value.data) for values in state.signals.values() for value in values)
    return state


def weigh(one: Instance) -> int:
    """About how many bytes the values of an instance have."""
    size = 0
    if one.variables:
        size += sum(len(value.raw) for value in one.variables.values())
    if one.result:
        size += sum(len(value.raw) for value in one.result.values())
    if one.loop is not None:
        size += sum(len(bytes(item)) for item in one.loop.items or ())
        size += sum(len(bytes(value)) for value in one.loop.slots.values())
    return size


def _unpack(raws: Raws | None) -> dict[str, Variable] | None:
    return None if raws is None else {name: Variable(bytes(value)) for name, value in raws.items()}
