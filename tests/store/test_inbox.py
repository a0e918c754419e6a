"""The inbox: envelopes arrive in order, are seen when they are durable, and go when exactly they are taken."""

from __future__ import annotations

import msgspec

from holdfast.store.contract import Claim, Store, UnroutedWrite
from holdfast.store.rows import InboxRow
from tests.store.builders import (
    ORG,
    begin_with,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    want,
)


async def test_envelopes_are_read_in_the_order_in_which_they_were_written(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, outgoing=[make_signal("first", 1), make_signal("second", 1)]))
    await commit_unrouted(store, make_signal("third", 1))
    await store.deliver([make_signal("fourth", 1)])

    claimed = await look(store, want(1))

    assert names_of(claimed.inbox) == ["first", "second", "third", "fourth"]
    ids = [one.id for one in claimed.inbox]
    assert ids == sorted(set(ids))


async def test_an_envelope_is_stored_as_it_was_sent(store: Store) -> None:
    body = bytes(range(256))
    sent = InboxRow(ORG, id_of(1), "order", body)
    await commit(store, make_start(make_row(1)))

    await commit_unrouted(store, sent)

    [found] = (await look(store, want(1))).inbox
    assert (found.org, found.execution_id, found.workflow_id, found.body, found.attempts) == (
        ORG,
        id_of(1),
        "order",
        body,
        0,
    )


async def test_outgoing_envelopes_are_seen_only_after_the_commit(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    transaction = await store.begin()
    await transaction.write([make_turn(row, outgoing=[make_signal("hello", 1)])], UnroutedWrite())

    before = (await store.count()).inbox
    await transaction.commit()

    assert (before, (await store.count()).inbox) == (0, 1)


async def test_a_rollback_leaves_the_envelope_and_the_state_as_before(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("hello", 1))
    transaction, claimed = await begin_with(store, want(1))
    taken = [one.id for one in claimed.inbox]
    await transaction.write([make_turn(row, consumed=taken, outgoing=[make_signal("never", 1)])], UnroutedWrite())

    await transaction.rollback()

    again = await look(store, want(1))
    assert again.inbox == claimed.inbox
    assert again.rows == {id_of(1): row}
    assert len(await store.load_history(id_of(1))) == 1


async def test_consuming_removes_exactly_the_rows_that_are_named(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row), make_start(make_row(2)))
    names = ["a", "b", "c", "d"]
    await commit_unrouted(store, *[make_signal(name, 1) for name in names], make_signal("e", 2))
    inbox = {names_of([one])[0]: one.id for one in await read_inbox(store)}

    await commit(store, make_turn(row, consumed=[inbox["a"], inbox["c"]]), loose=UnroutedWrite(consumed=[inbox["e"]]))

    assert names_of(await read_inbox(store)) == ["b", "d"]


async def test_a_row_that_is_gone_can_be_named_again_without_harm(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit_unrouted(store, make_signal("a", 1), make_signal("b", 1))
    first, second = await read_inbox(store)
    turn = make_turn(row, consumed=[first.id])
    await commit(store, turn)

    lost = await commit(store, make_turn(turn.row, consumed=[first.id]), loose=UnroutedWrite(consumed=[first.id]))

    assert lost == set()
    assert await read_inbox(store) == [second]


async def test_ids_are_never_given_twice(store: Store) -> None:
    await commit_unrouted(store, make_signal("a", 1))
    [first] = await read_inbox(store)
    await commit_unrouted(store, consumed=[first.id])

    await commit_unrouted(store, make_signal("b", 1))

    [second] = await read_inbox(store)
    assert second.id > first.id


async def test_failed_handling_is_counted_in_the_row(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    await commit_unrouted(store, make_signal("poison", 1), make_signal("fine", 1))
    poison, fine = await read_inbox(store)

    await commit_unrouted(store, failed=[poison.id])
    await commit_unrouted(store, failed=[poison.id])

    assert [(one.id, one.attempts) for one in await read_inbox(store)] == [(poison.id, 2), (fine.id, 0)]


async def test_an_envelope_addressed_by_workflow_id_is_claimed_with_what_the_id_stands_for(store: Store) -> None:
    await commit(store, make_start(make_row(1, workflow_id="open")))
    await commit_unrouted(
        store, make_signal("one", None, workflow_id="open"), make_signal("two", None, workflow_id="unknown")
    )

    claimed = await look(store, Claim(workflow_ids=[(ORG, "open"), (ORG, "unknown")]))

    assert names_of(claimed.inbox) == ["one", "two"]
    assert claimed.open_ids == {(ORG, "open"): id_of(1), (ORG, "unknown"): None}


async def test_an_envelope_addressed_by_workflow_id_is_found_without_asking_for_it(store: Store) -> None:
    await commit_unrouted(store, make_signal("hello", None, workflow_id="order"))

    claimed = await look(store, Claim(limit=10))

    assert names_of(claimed.inbox) == ["hello"]
    assert claimed.held == set()


async def test_an_envelope_for_nobody_is_found_so_that_it_can_be_answered(store: Store) -> None:
    await commit_unrouted(store, make_signal("hello", 1))

    claimed = await look(store, Claim(limit=10))

    assert names_of(claimed.inbox) == ["hello"]
    assert claimed.held == set()
    assert claimed.rows == {}


async def test_what_waits_for_an_execution_before_it_exists_is_given_to_it(store: Store) -> None:
    await commit_unrouted(store, make_signal("early", 1))

    await commit(store, make_start(make_row(1)))

    assert names_of((await look(store, want(1))).inbox) == ["early"]


async def test_the_inbox_of_a_closed_execution_is_emptied_beside_the_turns(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    await commit(store, make_closing(row))
    await commit_unrouted(store, make_signal("late", 1))
    [late] = await read_inbox(store)

    await commit_unrouted(store, make_signal("answer", 2), consumed=[late.id])

    assert names_of(await read_inbox(store)) == ["answer"]


async def test_what_waits_for_an_execution_is_listed_by_either_id_the_oldest_first(store: Store) -> None:
    row, other = make_row(1), make_row(2)
    await commit(store, make_start(row), make_start(other))
    await commit_unrouted(store, make_signal("by execution", 1))
    await commit_unrouted(store, make_signal("for another", 2))
    await commit_unrouted(
        store, msgspec.structs.replace(make_signal("by name", 1), execution_id="", workflow_id=row.workflow_id)
    )

    found = await store.list_inbox(ORG, row.execution_id, row.workflow_id)

    assert names_of(found) == ["by execution", "by name"]
    assert names_of(await store.list_inbox(ORG, row.execution_id, row.workflow_id, limit=1)) == ["by execution"]
    assert await store.list_inbox("another", row.execution_id, row.workflow_id) == []
    assert names_of((await look(store, want(1))).inbox)[0] == "by execution"


async def test_S4_what_waits_is_counted_up_to_a_limit(store: Store) -> None:
    await commit(store, make_start(make_row(1)), make_start(make_row(2)))
    await commit_unrouted(store, *(make_signal("word", 1) for _ in range(5)), make_signal("word", 2))
    transaction = await store.begin()

    counted = await transaction.count_waiting([id_of(1), id_of(2), id_of(3)], 3)
    await transaction.rollback()

    assert {key: number for key, number in counted.items() if number} == {id_of(1): 3, id_of(2): 1}
