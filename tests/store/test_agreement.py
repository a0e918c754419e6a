"""Whatever is done to them, the stores show the same: the one in memory is the model for the others."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.instants import SECOND
from holdfast.store.contract import Claim, ExecutionFilter, Store, TurnWrite, UnroutedWrite, Wanted
from holdfast.store.rows import DeadLetterRow, ExecutionRow, InboxRow, NodeRow
from tests.store.actions import (
    NUMBERS,
    ROUTES,
    TIMERS,
    WORKFLOW_IDS,
    Action,
    Batch,
    Beat,
    Change,
    Deliver,
    Letters,
    Lock,
    Look,
    Purge,
    PurgeLetters,
    Take,
    Turn,
    actions,
)
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    id_of,
    look,
    make_letter,
    make_offer,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    read_request,
)
from tests.store.conftest import BACKENDS, Backend, Place

FindServer: TypeAlias = Callable[[], str]

IN_PROCESS = ("memory-exclusive", "sqlite")

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
        case Look(routes, due):
            claimed = await look(store, Claim(limit=1000, due_until=NOW + due * SECOND, routes=routes))
            due_next = [await store.find_next_due(skip, routes) for skip in ((), [id_of(1)])]
            return claimed.held, claimed.open_ids, without_ids(claimed.inbox), claimed.due, due_next
        case Purge(before, limit):
            return await store.purge(NOW + before * 10**9, limit)
        case PurgeLetters(before, limit):
            return await store.purge_dead_letters(NOW + before * SECOND, limit)
        case Take(node, routes, limit):
            return await take_offers(store, node, routes, limit)
        case Beat() | Lock():
            return await act_as_node(store, action)


async def act_as_node(store: Store, action: Beat | Lock) -> object:
    match action:
        case Beat(node, at, "beat", routes):
            pulse = await store.beat(NodeRow(node, NOW + at, NOW), routes, routes[:1])
            return pulse.next_due, pulse.has_inbox, pulse.has_offers, timeless(pulse.nodes)
        case Beat(node, _, does, _):
            await (store.leave(node) if does == "leave" else store.remove_nodes([node]))
            return None
        case Lock(node, _, 0):
            await store.release_lock("lock", node)
            return None
        case Lock(node, now, until):
            return await store.take_lock("lock", node, NOW + now, NOW + until)


async def take_offers(store: Store, node: str, routes: Sequence[str], limit: int) -> object:
    taken = await store.take_offers(node, routes, limit)
    possible = [(id_of(number), key, attempt) for number in NUMBERS for key in TIMERS for attempt in range(4)]
    return taken, await store.find_withdrawn(node, possible)


async def run_batch(store: Store, batch: Batch) -> object:
    transaction = await store.begin()
    wanted = [Wanted(org_of(turn.number), id_of(turn.number)) for turn in batch.turns]
    claimed = await transaction.claim(Claim(wanted=wanted, limit=100, due_until=NOW * 2))
    writes = []
    for turn in batch.turns:
        row = claimed.rows.get(id_of(turn.number))
        mine = [one.id for one in claimed.inbox if one.execution_id == id_of(turn.number)]
        writes.append(make_write(turn, row, mine[: turn.takes]))
    nobodys = [one.id for one in claimed.inbox if one.execution_id not in claimed.held]
    loose = UnroutedWrite(
        consumed=nobodys[: batch.takes],
        failed=[one.id for one in claimed.inbox][: batch.fails],
        rerouted=[(one.id, ROUTES[0]) for one in claimed.inbox[: batch.reroutes]],
        outgoing=[
            make_signal("sent", number, org=org, workflow_id=workflow_id if number is None else "")
            for org, number, workflow_id in batch.sends
        ],
    )
    lost = await transaction.write(writes, loose)
    await (transaction.commit() if batch.is_committed else transaction.rollback())
    return sorted(claimed.held), sorted(lost), await store.was_committed(transaction)


def make_write(turn: Turn, row: ExecutionRow | None, taken: Sequence[int]) -> TurnWrite:
    place = NUMBERS.index(turn.number)  # no two close at the same time: which of them is purged first would be open
    writes: dict[str, Any] = {
        "timers": [
            msgspec.structs.replace(
                make_timer(number, due, of=turn.number, org=org_of(turn.number), route=turn.route),
                kind=kind,
                attempt=attempt,
            )
            for number, due, kind, attempt in turn.timers
        ],
        "ended_timers": TIMERS if turn.status.is_closed else turn.ended,
        "outgoing": [make_signal("outgoing", number, org=org_of(number), route=turn.route) for number in turn.sends],
        "dead_letters": [make_letter("dead", turn.number, org=org_of(turn.number), at=turn.number)] * turn.letters,
        "requests": [make_request(turn.key, expires=1000 + turn.number)] if turn.key else [],
        "consumed": taken,
        "offered": [
            make_offer(number, route, of=turn.number, attempt=attempt, org=org_of(turn.number))
            for number, attempt, route in {one[0]: one for one in turn.offers}.values()
        ],
        "withdrawn": turn.withdrawn,
    }
    if row is None or turn.is_start:
        closed_at = NOW - place if turn.status.is_closed else None
        start = msgspec.structs.replace(
            first_row(turn.number), nodes=turn.nodes, status=turn.status, closed_at=closed_at, route=turn.route
        )
        return make_start(start, **writes)
    write = make_turn(row, turn.status, events=turn.events, **writes)
    closed_at = None if write.row.closed_at is None else write.row.closed_at - place
    write.row = msgspec.structs.replace(write.row, nodes=turn.nodes, route=turn.route, closed_at=closed_at)
    if turn.is_stale:
        write.expected_version = row.state_version - 1
    return write


# --- what it shows ---


async def see(store: Store) -> dict[str, object]:
    """Everything that a store shows. Ids of sequences are left out: they may have gaps."""
    pairs = [(org, workflow_id) for org in (ORG, OTHER) for workflow_id in WORKFLOW_IDS]
    everything = await look(store, Claim(workflow_ids=pairs, limit=1000, due_until=NOW * 2))
    transaction = await store.begin()
    requests = [await read_request(transaction, ORG, "start", key, NOW + 1003 * SECOND) for key in "xy"]
    latest = [await transaction.read_latest(*pair) for pair in pairs]
    await transaction.rollback()
    skip = [id_of(1), id_of(2)]
    return {
        "executions": [await store.list_executions(ExecutionFilter(org)) for org in (ORG, OTHER)],
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
        "nodes": timeless(await store.list_nodes()),
        "offers": [await store.list_offers(id_of(number)) for number in NUMBERS],
        "lost offers": [await store.list_lost_offers(alive, limit=5) for alive in ((), ["a"])],
        "closed": await store.find_settled([id_of(number) for number in NUMBERS]),
        "oldest closed": await store.find_oldest_closed(),
        "oldest dead letter": await store.find_oldest_dead_letter(),
        "problems": await store.check(),
    }


def without_ids(rows: Sequence[InboxRow | DeadLetterRow]) -> list[InboxRow | DeadLetterRow]:
    assert [row.id for row in rows] == sorted({row.id for row in rows})
    return [msgspec.structs.replace(row, id=0) for row in rows]


def timeless(rows: Sequence[NodeRow]) -> list[NodeRow]:
    return [msgspec.structs.replace(row, seen_at=0) for row in rows]


async def compare(name: str, todo: Sequence[Action], place: Place) -> None:
    backends: list[Backend] = [BACKENDS["memory"](place), BACKENDS[name](place)]
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


@pytest.mark.parametrize("name", IN_PROCESS)
@given(todo=st.lists(actions, max_size=12))
@settings(deadline=None, max_examples=60)
def test_the_same_actions_lead_to_the_same_state(find_server: FindServer, name: str, todo: list[Action]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(name, todo, Place(Path(folder), find_server)))


@given(todo=st.lists(actions, max_size=12))
@settings(deadline=None, max_examples=20)
def test_the_same_actions_lead_to_the_same_state_on_a_server(find_server: FindServer, todo: list[Action]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare("postgres", todo, Place(Path(folder), find_server)))


@given(todo=st.lists(actions, max_size=12))
@settings(deadline=None)
def test_no_actions_lead_to_a_contradiction(find_server: FindServer, todo: list[Action]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare("memory", todo, Place(Path(folder), find_server)))
