"""Inbox rows keep when they were accepted, by whichever way they came and wherever they go from there."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.store.contract import Claim, Store, UnroutedWrite
from holdfast.store.rows import InboxRow
from tests.store.builders import (
    NOW,
    ORG,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_letter,
    make_row,
    make_signal,
    make_start,
    read_inbox,
)


def times_of(rows: list[InboxRow]) -> list[int]:
    return [row.at for row in rows]


async def test_rows_are_read_with_the_time_at_which_they_were_accepted(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    await commit_unrouted(store, replace(make_signal("a"), at=NOW))
    assert await store.deliver([replace(make_signal("b"), at=NOW + 1)]) == [True]
    await commit_unrouted(store, replace(make_signal("c", None, workflow_id="order-1"), at=NOW + 2), make_signal("d"))

    claimed = await look(store, Claim(workflow_ids=[(ORG, "order-1")]))
    assert times_of(claimed.inbox) == [NOW, NOW + 1, NOW + 2, 0]
    assert times_of(await store.list_inbox(ORG, id_of(1), "order-1")) == [NOW, NOW + 1, NOW + 2, 0]


async def test_rows_keep_their_time_when_they_are_rerouted_or_readdressed(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    await commit_unrouted(store, *(replace(make_signal(name), at=NOW + place) for place, name in enumerate("ab")))
    first, second = await read_inbox(store)

    await commit(
        store, loose=UnroutedWrite(rerouted=[(first.id, "elsewhere")], readdressed=[replace(second, route="there")])
    )

    assert times_of(await store.list_inbox(ORG, id_of(1), "order-1")) == [NOW, NOW + 1]


async def test_withheld_rows_are_read_with_their_time(store: Store) -> None:
    await commit(store, make_start(replace(make_row(1), route="theirs")))
    await commit_unrouted(store, replace(make_signal("a"), route="mine", at=NOW))

    claimed = await look(store, Claim(limit=10, routes=["mine"]))
    assert list(claimed.withheld) == [id_of(1)]
    assert times_of(claimed.inbox) == [NOW]


async def test_a_requeued_dead_letter_is_accepted_anew(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    await commit_unrouted(store, dead_letters=[make_letter("a")])
    (letter,) = await store.list_dead_letters(ORG)

    await store.requeue_dead_letters(ORG, [letter.id], NOW)

    assert times_of(await read_inbox(store)) == [NOW]
