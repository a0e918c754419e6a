"""Whatever is done to them, the stores show the same: the one in memory is the model for the others."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.store.contract import (
    Claim,
    DeadLetterRow,
    ExecutionRow,
    Filter,
    InboxRow,
    LooseWrite,
    NodeRow,
    Store,
    TurnWrite,
    Wanted,
)
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    id_of,
    look,
    make_letter,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
)
from tests.store.conftest import BACKENDS, Backend

NUMBERS = range(1, 6)
NODES = ("a", "b")
WORKFLOW_IDS = ("order", "bill")
TIMERS = (1, 2, 3)
OTHERS = [name for name in BACKENDS if name != "memory"]

# --- what can be done ---


@dataclass(frozen=True)
class Turn:
    """One turn of a batch. Whether it is a start, stale or lost depends on what is stored."""

    number: int
    status: Status
    node: str | None
    events: int
    is_start: bool
    is_stale: bool
    takes: int
    timers: tuple[tuple[int, int], ...]
    ended: tuple[int, ...]
    sends: tuple[int, ...]
    letters: int
    key: str | None


@dataclass(frozen=True)
class Batch:
    """Turns in one transaction, and what goes beside them."""

    turns: tuple[Turn, ...]
    sends: tuple[tuple[str, int | None, str], ...]
    takes: int
    fails: int
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
    leaves: bool


Action: TypeAlias = Batch | Deliver | Letters | Change | Beat

numbers = st.sampled_from(NUMBERS)
orgs = st.sampled_from([ORG, OTHER])
open_statuses = st.sampled_from([status for status in Status if not status.is_closed])
turns = st.builds(
    Turn,
    number=numbers,
    status=st.sampled_from(Status),
    node=st.sampled_from([None, *NODES]),
    events=st.integers(0, 3),
    is_start=st.booleans(),
    is_stale=st.sampled_from([False, False, False, True]),
    takes=st.integers(0, 3),
    timers=st.lists(st.tuples(st.sampled_from(TIMERS), st.integers(1, 50)), max_size=2).map(tuple),
    ended=st.lists(st.sampled_from(TIMERS), max_size=2).map(tuple),
    sends=st.lists(numbers, max_size=2).map(tuple),
    letters=st.integers(0, 1),
    key=st.sampled_from([None, "x", "y"]),
)
batches = st.builds(
    Batch,
    turns=st.lists(turns, max_size=4, unique_by=lambda turn: turn.number).map(tuple),
    sends=st.lists(st.tuples(orgs, st.one_of(st.none(), numbers), st.sampled_from(WORKFLOW_IDS)), max_size=2).map(tuple),
    takes=st.integers(0, 1),
    fails=st.integers(0, 2),
    is_committed=st.sampled_from([True, True, True, False]),
)
actions = st.one_of(
    batches,
    batches,
    batches,
    st.builds(Deliver, st.lists(st.tuples(orgs, numbers), max_size=3).map(tuple)),
    st.builds(Letters, orgs, st.integers(0, 2), st.booleans()),
    st.builds(Change, numbers, open_statuses, st.booleans()),
    st.builds(Beat, st.sampled_from(NODES), st.integers(0, 5), st.booleans()),
)


# --- doing it ---


def org_of(number: int) -> str:
    return OTHER if number == max(NUMBERS) else ORG


def first_row(number: int) -> ExecutionRow:
    return make_row(number, org=org_of(number), workflow_id=WORKFLOW_IDS[number % 2])


async def act(store: Store, action: Action) -> object:
    """Do it to one store; what it answered."""
    match action:
        case Batch():
            return await run_batch(store, action)
        case Deliver(targets):
            return await store.deliver([make_signal("delivered", number, org=org) for org, number in targets])
        case Letters(org, count, requeues):
            ids = [row.id for row in await store.list_dead_letters(org, limit=count)]
            return await (store.requeue_dead_letters if requeues else store.discard_dead_letters)(org, ids)
        case Change(number, status, is_stale):
            row = await store.find_execution(org_of(number), id_of(number)) or first_row(number)
            if row.closed_at is not None:
                return None
            changed = make_turn(row, status, events=0).row
            return await store.set_status(row.org, row.execution_id, row.state_version - is_stale, changed)
        case Beat(node, at, leaves):
            await (store.leave(node) if leaves else store.beat(NodeRow(node, NOW + at, NOW)))
            return None


async def run_batch(store: Store, batch: Batch) -> object:
    transaction = await store.begin()
    wanted = [Wanted(org_of(turn.number), id_of(turn.number)) for turn in batch.turns]
    claimed = await transaction.claim(Claim(wanted=wanted, limit=100, due_before=NOW * 2))
    writes = []
    for turn in batch.turns:
        row = claimed.rows.get(id_of(turn.number))
        mine = [one.id for one in claimed.inbox if one.execution_id == id_of(turn.number)]
        writes.append(make_write(turn, row, mine[: turn.takes]))
    nobodys = [one.id for one in claimed.inbox if one.execution_id not in claimed.held]
    loose = LooseWrite(
        consumed=nobodys[: batch.takes],
        failed=[one.id for one in claimed.inbox][: batch.fails],
        outgoing=[
            make_signal("sent", number, org=org, workflow_id=workflow_id if number is None else "")
            for org, number, workflow_id in batch.sends
        ],
    )
    lost = await transaction.write(writes, loose)
    await (transaction.commit() if batch.is_committed else transaction.rollback())
    return sorted(claimed.held), sorted(lost), await store.was_committed(transaction)


def make_write(turn: Turn, row: ExecutionRow | None, taken: Sequence[int]) -> TurnWrite:
    writes: dict[str, Any] = {
        "timers": [make_timer(number, due, of=turn.number, org=org_of(turn.number)) for number, due in turn.timers],
        "ended_timers": TIMERS if turn.status.is_closed else turn.ended,
        "outgoing": [make_signal("outgoing", number, org=org_of(number)) for number in turn.sends],
        "dead_letters": [make_letter("dead", turn.number, org=org_of(turn.number))] * turn.letters,
        "requests": [make_request(turn.key, expires=1000 + turn.number)] if turn.key else [],
        "consumed": taken,
    }
    if row is None or turn.is_start:
        closed_at = NOW if turn.status.is_closed else None
        start = msgspec.structs.replace(first_row(turn.number), node=turn.node, status=turn.status, closed_at=closed_at)
        return make_start(start, **writes)
    write = make_turn(row, turn.status, events=turn.events, **writes)
    write.row = msgspec.structs.replace(write.row, node=turn.node)
    if turn.is_stale:
        write.expected_version = row.state_version - 1
    return write


# --- what it shows ---


async def see(store: Store) -> dict[str, object]:
    """Everything that a store shows. Ids of sequences are left out: they may have gaps."""
    pairs = [(org, workflow_id) for org in (ORG, OTHER) for workflow_id in WORKFLOW_IDS]
    everything = await look(store, Claim(workflow_ids=pairs, limit=1000, due_before=NOW * 2))
    transaction = await store.begin()
    requests = [await transaction.read_request(ORG, "start", key, NOW + 1003 * SECOND) for key in "xy"]
    latest = [await transaction.read_latest(*pair) for pair in pairs]
    await transaction.rollback()
    skip = [id_of(1), id_of(2)]
    return {
        "executions": [await store.list_executions(Filter(org)) for org in (ORG, OTHER)],
        "histories": [await store.load_history(id_of(number)) for number in NUMBERS],
        "last turns": [await store.load_last_turn(id_of(number)) for number in NUMBERS],
        "held": everything.held,
        "open ids": everything.open_ids,
        "inbox": without_ids(everything.inbox),
        "due": everything.due,
        "next due": [await store.find_next_due(()), await store.find_next_due(skip)],
        "dead letters": [without_ids(await store.list_dead_letters(org)) for org in (ORG, OTHER)],
        "requests": requests,
        "latest": [latest, [await store.find_latest(*pair) for pair in pairs]],
        "orphans": await store.list_orphans(["a"], limit=3),
        "blocked": await store.list_blocked(limit=3),
        "counts": await store.count(),
        "nodes": await store.list_nodes(),
        "problems": await store.check(),
    }


def without_ids(rows: Sequence[InboxRow | DeadLetterRow]) -> list[InboxRow | DeadLetterRow]:
    assert [row.id for row in rows] == sorted({row.id for row in rows})
    return [msgspec.structs.replace(row, id=0) for row in rows]


async def compare(name: str, todo: Sequence[Action], folder: Path) -> None:
    backends: list[Backend] = [BACKENDS["memory"](folder), BACKENDS[name](folder)]
    model, store = [await backend.connect() for backend in backends]
    try:
        for action in todo:
            assert await act(store, action) == await act(model, action)
            shown = await see(store)
            assert shown == await see(model)
            assert shown["problems"] == []
    finally:
        for backend in backends:
            await backend.close()


@pytest.mark.parametrize("name", OTHERS)
@given(todo=st.lists(actions, max_size=12))
@settings(deadline=None, max_examples=60)
def test_the_same_actions_lead_to_the_same_state(name: str, todo: list[Action]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(name, todo, Path(folder)))


@given(todo=st.lists(actions, max_size=12))
@settings(deadline=None)
def test_no_actions_lead_to_a_contradiction(todo: list[Action]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare("memory", todo, Path(folder)))
