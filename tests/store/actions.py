"""What can be done to a store, and how it is drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from holdfast.core.effects import TimerKind
from holdfast.core.lifecycle import Status
from tests.store.builders import ORG, OTHER

NUMBERS = range(1, 6)
NODES = ("a", "b")
WORKFLOW_IDS = ("order", "bill")
TIMERS = (1, 2, 3)
ROUTES = ("orders", "bills")


@dataclass(frozen=True)
class Turn:
    """One turn of a batch. Whether it is a start, stale or lost depends on what is stored."""

    number: int
    status: Status
    nodes: tuple[str, ...]
    events: int
    is_start: bool
    is_stale: bool
    takes: int
    timers: tuple[tuple[int, int, TimerKind, int], ...]
    ended: tuple[int, ...]
    sends: tuple[int, ...]
    letters: int
    key: str | None
    route: str
    offers: tuple[tuple[int, int, str], ...]
    withdrawn: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Turns in one transaction, and what goes beside them."""

    turns: tuple[Turn, ...]
    sends: tuple[tuple[str, int | None, str], ...]
    takes: int
    fails: int
    reroutes: int
    is_committed: bool


@dataclass(frozen=True)
class Deliver:
    """Envelopes from outside."""

    targets: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Letters:
    """The first dead letters of an org are discarded or requeued."""

    org: str
    count: int
    requeues: bool


@dataclass(frozen=True)
class Change:
    """A status set outside of batches."""

    number: int
    status: Status
    is_stale: bool


@dataclass(frozen=True)
class Beat:
    """A heartbeat, or a goodbye."""

    node: str
    at: int
    does: str
    routes: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """A claim of what goes by some routes, given up again."""

    routes: tuple[str, ...]
    due_until: int


@dataclass(frozen=True)
class Take:
    """Offers taken by a node, which then asks what it still has."""

    node: str
    routes: tuple[str, ...]
    limit: int


@dataclass(frozen=True)
class Lock:
    """A lock taken or given back."""

    node: str
    now: int
    until: int


@dataclass(frozen=True)
class Purge:
    """Old executions removed."""

    before: int
    limit: int


@dataclass(frozen=True)
class PurgeLetters:
    """Old dead letters removed."""

    before: int
    limit: int


Action: TypeAlias = Batch | Deliver | Letters | Change | Beat | Look | Take | Lock | Purge | PurgeLetters

numbers = st.sampled_from(NUMBERS)
orgs = st.sampled_from([ORG, OTHER])
open_statuses = st.sampled_from([status for status in Status if not status.is_closed])
a_route = st.sampled_from(["", *ROUTES])
some_routes = st.lists(st.sampled_from(ROUTES), max_size=2).map(tuple)
turns = st.builds(
    Turn,
    number=numbers,
    status=st.sampled_from(Status),
    nodes=st.lists(st.sampled_from(NODES), unique=True, max_size=2).map(tuple),
    events=st.integers(0, 3),
    is_start=st.booleans(),
    is_stale=st.sampled_from([False, False, False, True]),
    takes=st.integers(0, 3),
    timers=st.lists(
        st.tuples(st.sampled_from(TIMERS), st.integers(1, 50), st.sampled_from(TimerKind), st.integers(0, 2)), max_size=2
    ).map(tuple),
    ended=st.lists(st.sampled_from(TIMERS), max_size=2).map(tuple),
    sends=st.lists(numbers, max_size=2).map(tuple),
    letters=st.integers(0, 1),
    key=st.sampled_from([None, "x", "y"]),
    route=a_route,
    offers=st.lists(st.tuples(st.sampled_from(TIMERS), st.integers(1, 3), a_route), max_size=2).map(tuple),
    withdrawn=st.lists(st.sampled_from(TIMERS), max_size=2).map(tuple),
)
batches = st.builds(
    Batch,
    turns=st.lists(turns, max_size=4, unique_by=lambda turn: turn.number).map(tuple),
    sends=st.lists(st.tuples(orgs, st.one_of(st.none(), numbers), st.sampled_from(WORKFLOW_IDS)), max_size=2).map(tuple),
    takes=st.integers(0, 1),
    fails=st.integers(0, 2),
    reroutes=st.integers(0, 2),
    is_committed=st.sampled_from([True, True, True, False]),
)
actions = st.one_of(
    batches,
    batches,
    batches,
    st.builds(Deliver, st.lists(st.tuples(orgs, numbers), max_size=3).map(tuple)),
    st.builds(Letters, orgs, st.integers(0, 2), st.booleans()),
    st.builds(Change, numbers, open_statuses, st.booleans()),
    st.builds(Beat, st.sampled_from(NODES), st.integers(0, 5), st.sampled_from(["beat", "leave", "remove"]), some_routes),
    st.builds(Look, some_routes, st.integers(0, 50)),
    st.builds(Take, st.sampled_from(NODES), some_routes, st.integers(0, 3)),
    st.builds(Lock, st.sampled_from(NODES), st.integers(0, 5), st.integers(0, 5)),
    st.builds(Purge, st.integers(-1, 1), st.integers(0, 3)),
    st.builds(PurgeLetters, st.integers(0, 6), st.integers(0, 3)),
)
