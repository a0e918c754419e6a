"""Turns: written if the version is the expected one, else not even in part, and without harm to the others of the batch."""

from __future__ import annotations

import msgspec

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Store, UnroutedWrite
from tests.store.builders import (
    NOW,
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_history,
    make_letter,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_inbox,
    read_request,
    read_row,
)


async def test_a_turn_replaces_the_row_and_appends_to_the_history(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    turn = make_turn(row, Status.SUSPENDED, events=3)
    lost = await commit(store, turn)

    assert lost == set()
    assert await read_row(store) == turn.row
    assert await store.load_history(id_of(1)) == [make_history(id_of(1)), make_history(id_of(1), 2, 3)]


async def test_a_turn_changes_what_is_not_an_executions_identity(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    turn = make_turn(row, Status.BLOCKED)
    turn.row = msgspec.structs.replace(turn.row, code_version="2", nodes=("b",), details=b"{}")
    await commit(store, turn)

    assert await read_row(store) == turn.row


async def test_a_turn_without_events_leaves_the_history_as_it_was(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    await commit(store, make_turn(row, events=0))

    assert (await read_row(store)).state_version == 2
    assert await store.load_history(id_of(1)) == [make_history(id_of(1))]


async def test_a_turn_at_another_version_changes_nothing_and_the_rest_of_the_batch_is_written(store: Store) -> None:
    row, other = make_row(1), make_row(2)
    await commit(store, make_start(row, timers=[make_timer(1, due=5)]), make_start(other))
    await commit_unrouted(store, make_signal("kept", 1))
    [arrived] = await read_inbox(store)
    newer = make_turn(row)
    await commit(store, newer)

    stale = make_turn(
        row,
        Status.RUNNING,
        timers=[make_timer(2, due=1)],
        ended_timers=[1],
        consumed=[arrived.id],
        outgoing=[make_signal("never", 2)],
        dead_letters=[make_letter("never")],
        requests=[make_request("never")],
    )
    following = make_turn(other, Status.RUNNING)
    lost = await commit(store, stale, following)

    assert lost == {id_of(1)}
    assert await read_row(store, 1) == newer.row
    assert await read_row(store, 2) == following.row
    assert [history.first for history in await store.load_history(id_of(1))] == [1, 2]
    claimed = await look(store, Claim(limit=10, due_until=NOW * 2))
    assert claimed.inbox == [arrived]
    assert claimed.due == [make_timer(1, due=5)]
    assert await store.list_dead_letters(ORG) == []
    transaction = await store.begin()
    assert await read_request(transaction, ORG, "start", "never", NOW) is None
    await transaction.rollback()


async def test_a_turn_of_an_unknown_execution_is_lost(store: Store) -> None:
    lost = await commit(store, make_turn(make_row(1), outgoing=[make_signal("never", 2)]))

    assert lost == {id_of(1)}
    assert await store.find_execution(ORG, id_of(1)) is None
    assert not (await store.count()).inbox


async def test_a_turn_in_another_org_is_lost(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))

    lost = await commit(store, make_turn(msgspec.structs.replace(row, org=OTHER)))

    assert lost == {id_of(1)}
    assert await read_row(store) == row


async def test_a_turn_can_follow_a_closing_only_by_its_version(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    closing = make_closing(row)
    await commit(store, closing)

    lost = await commit(store, make_turn(row, Status.RUNNING))

    assert lost == {id_of(1)}
    assert await read_row(store) == closing.row


async def test_an_empty_batch_loses_nothing(store: Store) -> None:
    lost = await commit(store)

    assert lost == set()


async def test_several_hundred_turns_are_one_batch(store: Store) -> None:
    rows = [make_row(number) for number in range(1, 401)]
    await commit(store, *[make_start(row) for row in rows])
    stale = {rows[index].execution_id for index in range(0, 400, 7)}
    await commit(store, *[make_turn(row) for row in rows if row.execution_id in stale])

    lost = await commit(store, *[make_turn(row, outgoing=[make_signal(row.workflow_id, 1)]) for row in rows])

    assert lost == stale
    assert len(await read_inbox(store)) == 400 - len(stale)
    assert await store.check() == []


async def test_writes_of_one_transaction_follow_each_other(store: Store) -> None:
    row = make_row(1)
    transaction = await store.begin()

    first = await transaction.write([make_start(row)], UnroutedWrite())
    second = await transaction.write([make_turn(row, outgoing=[make_signal("hello", 1)])], UnroutedWrite())
    third = await transaction.write([make_turn(row)], UnroutedWrite())
    await transaction.commit()

    assert (first, second, third) == (set(), set(), {id_of(1)})
    assert (await read_row(store)).state_version == 2
    assert names_of(await read_inbox(store)) == ["hello"]
