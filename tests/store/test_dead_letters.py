"""Dead letters: kept whole, listed in order, discarded or put back."""

from __future__ import annotations

import msgspec

from holdfast.store.contract import Store, UnroutedWrite
from tests.store.builders import (
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    make_letter,
    make_row,
    make_signal,
    make_start,
    make_turn,
    names_of,
    read_inbox,
)


async def test_a_dead_letter_is_kept_as_it_came(store: Store) -> None:
    letter = msgspec.structs.replace(make_letter("bad", attempts=4), body=b"\x00 not JSON \xff")

    await commit(store, make_start(make_row(1), dead_letters=[letter]))

    [kept] = await store.list_dead_letters(ORG)
    assert kept.id > 0
    assert msgspec.structs.replace(kept, id=0) == letter


async def test_an_envelope_becomes_a_dead_letter_in_one_step(store: Store) -> None:
    await commit_unrouted(store, make_signal("poison", 1))
    [poison] = await read_inbox(store)

    await commit_unrouted(store, consumed=[poison.id], dead_letters=[make_letter("poison")])

    assert await read_inbox(store) == []
    assert names_of(await store.list_dead_letters(ORG)) == ["poison"]


async def test_dead_letters_are_listed_page_by_page_in_the_order_of_their_ids(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter(f"{n}") for n in range(5)])

    first = await store.list_dead_letters(ORG, limit=2)
    second = await store.list_dead_letters(ORG, limit=2, after=first[-1].id)
    third = await store.list_dead_letters(ORG, limit=2, after=second[-1].id)
    fourth = await store.list_dead_letters(ORG, limit=2, after=third[-1].id)

    assert [names_of(page) for page in (first, second, third, fourth)] == [["0", "1"], ["2", "3"], ["4"], []]


async def test_discarding_removes_the_letters_named_and_counts_them(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter(name) for name in "abc"])
    a, _, c = await store.list_dead_letters(ORG)

    discarded = await store.discard_dead_letters(ORG, [a.id, c.id, 10**9])
    again = await store.discard_dead_letters(ORG, [a.id])

    assert (discarded, again) == (2, 0)
    assert names_of(await store.list_dead_letters(ORG)) == ["b"]
    assert await read_inbox(store) == []


async def test_requeueing_moves_the_letters_back_into_the_inbox(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    await commit_unrouted(store, dead_letters=[make_letter(name, attempts=9) for name in "abc"])
    a, b, c = await store.list_dead_letters(ORG)

    requeued = await store.requeue_dead_letters(ORG, {c.id, a.id, 10**9})
    again = await store.requeue_dead_letters(ORG, [a.id])

    assert (requeued, again) == (2, 0)
    assert await store.list_dead_letters(ORG) == [b]
    inbox = await read_inbox(store)
    assert names_of(inbox) == ["a", "c"]
    assert {(row.org, row.execution_id, row.workflow_id, row.attempts) for row in inbox} == {(ORG, id_of(1), "order-1", 0)}


async def test_a_requeued_letter_comes_after_what_waits_already(store: Store) -> None:
    await commit_unrouted(store, make_signal("waiting", 1), dead_letters=[make_letter("requeued")])
    [letter] = await store.list_dead_letters(ORG)

    await store.requeue_dead_letters(ORG, [letter.id])

    assert names_of(await read_inbox(store)) == ["waiting", "requeued"]


async def test_a_letter_addressed_by_workflow_id_is_requeued_to_it(store: Store) -> None:
    letter = msgspec.structs.replace(make_letter("bad"), execution_id="", workflow_id="order")
    await commit_unrouted(store, dead_letters=[letter])
    [kept] = await store.list_dead_letters(ORG)

    await store.requeue_dead_letters(ORG, [kept.id])

    [row] = await read_inbox(store)
    assert (row.execution_id, row.workflow_id) == ("", "order")


async def test_dead_letters_of_another_org_are_out_of_reach(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter("theirs", org=OTHER), make_letter("ours")])
    [theirs] = await store.list_dead_letters(OTHER)

    listed = names_of(await store.list_dead_letters(ORG))
    discarded = await store.discard_dead_letters(ORG, [theirs.id])
    requeued = await store.requeue_dead_letters(ORG, [theirs.id])

    assert listed == ["ours"]
    assert (discarded, requeued) == (0, 0)
    assert await store.list_dead_letters(OTHER) == [theirs]


async def test_ids_of_discarded_letters_are_not_given_again(store: Store) -> None:
    await commit_unrouted(store, dead_letters=[make_letter("old")])
    [old] = await store.list_dead_letters(ORG)
    await store.discard_dead_letters(ORG, [old.id])

    await commit_unrouted(store, dead_letters=[make_letter("new")])

    [new] = await store.list_dead_letters(ORG)
    assert new.id > old.id


async def test_dead_letters_of_a_rolled_back_transaction_never_were(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row))
    transaction = await store.begin()
    await transaction.write(
        [make_turn(row, dead_letters=[make_letter("a")])], UnroutedWrite(dead_letters=[make_letter("b")])
    )

    await transaction.rollback()

    assert await store.list_dead_letters(ORG) == []
