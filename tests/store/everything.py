"""A store with something of every kind in it, and all that a store holds."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.transfer import FROM_THE_START, AnyRow, Cursor, PersistentStore, RowKind, Transferable
from tests.store.builders import (
    ORG,
    OTHER,
    commit,
    commit_unrouted,
    id_of,
    make_closing,
    make_letter,
    make_offer,
    make_offer_timer,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
)

SEVERAL = 5
"""How many there are of most kinds."""


async def fill(store: Store, first: int = 1) -> None:
    """Executions in an order of arrival that is not that of their ids, with histories that were written in turns."""
    rows = {number: make_row(number, route=f"route-{number % 2}") for number in range(first, first + SEVERAL)}
    for number in reversed(rows):
        await commit(store, make_start(rows[number], timers=[make_timer(1, number, of=number, route="route-0")]))
    for round_ in range(3):
        for number in sorted(rows, key=lambda one: one * 7 % SEVERAL):
            turn = make_turn(
                rows[number],
                events=1 + round_,
                timers=[make_offer_timer(2 + round_, 9, round_, of=number) if round_ else make_timer(2, 9, of=number)],
            )
            await commit(store, turn)
            rows[number] = turn.row
    await commit(store, make_closing(rows[first]))
    again = make_row(first + SEVERAL, workflow_id=rows[first].workflow_id, nodes=("a", "b"), parent_id=id_of(first))
    offers = [make_offer(number, f"offer-{number}", of=first + SEVERAL) for number in (3, 1, 2)]
    await commit(store, make_start(again, offered=offers, requests=[make_request("b"), make_request("a", org=OTHER)]))
    await commit(store, make_start(make_row(first + SEVERAL + 1, org=OTHER, workflow_id=again.workflow_id)))
    await store.take_offers("a", ["offer-1"], 1)
    await commit_unrouted(store, *(make_signal(name, first + 1, route="route-1") for name in "xyz"))
    await commit_unrouted(store, make_signal("by name", None, workflow_id=rows[first + 1].workflow_id))
    letters = [replace(make_letter(f"bad {number}"), reason=f"it is {number}: ünlesbar") for number in range(SEVERAL)]
    await commit(store, loose=UnroutedWrite(dead_letters=letters))
    await store.discard_dead_letters(ORG, [(await store.list_dead_letters(ORG))[0].id])


def open_movable(store: Store) -> Transferable:
    """What takes everything out of an open store."""
    assert isinstance(store, PersistentStore)
    return store.make_transferable()


async def read_all(movable: Transferable, kind: RowKind, limit: int = 1000) -> list[AnyRow]:
    """Every row of a kind, in pages."""
    rows: list[AnyRow] = []
    cursor: Cursor = FROM_THE_START
    while True:
        page = await movable.read_page(kind, cursor, limit)
        if page.cursor is None:
            assert not page.rows
            return rows
        assert 0 < len(page.rows) <= limit
        rows.extend(page.rows)
        cursor = page.cursor


async def read_everything(movable: Transferable) -> dict[RowKind, list[AnyRow]]:
    """Every row of every kind, in an order that does not depend on the store where there is none by arrival."""
    found = {kind: await read_all(movable, kind) for kind in RowKind}
    found[RowKind.HISTORIES].sort(key=lambda row: (row.execution_id, getattr(row, "first", 0)))
    return found
