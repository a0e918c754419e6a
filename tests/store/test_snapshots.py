"""Snapshots are a cache with one row per execution: replaced in place, and gone with it."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.snapshots import SnapshotRow
from tests.store.builders import NOW, commit, id_of, make_closing, make_row, make_start, make_turn
from tests.store.definition_builders import make_snapshot


async def read(store: Store, *numbers: int) -> dict[str, SnapshotRow]:
    transaction = await store.begin()
    found = await transaction.read_snapshots([id_of(number) for number in numbers])
    await transaction.rollback()
    return found


async def test_snapshot_takes_the_place_of_the_one_before(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, snapshot=make_snapshot(1)), make_start(make_row(2)))
    first = await read(store, 1, 2, 3)
    turn = make_turn(row, events=4, snapshot=make_snapshot(5, program=b"{" + b" " * 100_000 + b"}"))
    await commit(store, turn)
    await commit(store, make_turn(turn.row))

    assert first == {id_of(1): make_snapshot(1)}
    assert await read(store, 1) == {id_of(1): turn.snapshot}
    assert await store.load_snapshot(id_of(1)) == turn.snapshot
    assert await store.load_snapshot(id_of(2)) is None
    assert await store.check() == []


async def test_own_snapshot_is_read_within_its_transaction(store: Store) -> None:
    transaction = await store.begin()
    await transaction.write([make_start(make_row(1), snapshot=make_snapshot(1))], UnroutedWrite())

    found = await transaction.read_snapshots([id_of(1)])
    await transaction.rollback()

    assert found == {id_of(1): make_snapshot(1)}
    assert await read(store, 1) == {}


async def test_snapshot_goes_when_its_execution_closes(store: Store) -> None:
    rows = [make_row(1), make_row(2)]
    await commit(store, *(make_start(row, snapshot=make_snapshot(1, of=of)) for of, row in enumerate(rows, 1)))

    await commit(store, make_closing(rows[0], snapshot=make_snapshot(2)))

    assert await read(store, 1, 2) == {id_of(2): make_snapshot(1, of=2)}
    assert await store.check() == []


async def test_X2_lost_turn_leaves_the_snapshot_as_it_is(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, snapshot=make_snapshot(1)))
    await commit(store, make_turn(row))

    lost = await commit(store, make_turn(row, snapshot=make_snapshot(2)))

    assert lost == {id_of(1)}
    assert await read(store, 1) == {id_of(1): make_snapshot(1)}


async def test_D3_snapshots_go_with_executions_that_are_purged(store: Store) -> None:
    row = make_row(1)
    await commit(store, make_start(row, snapshot=make_snapshot(1)))
    closing = make_closing(row)
    closing.has_rare = False  # as a node of the version before would close it
    await commit(store, closing)

    assert len(await store.check()) == 1
    assert await store.purge(NOW + 10**10, 10) == 1

    assert await read(store, 1) == {}
    assert await store.check() == []


async def test_damaged_snapshots_are_found(store: Store) -> None:
    bodies = {1: b"?", 2: make_snapshot(9).body}
    for number, body in bodies.items():
        broken = replace(make_snapshot(1, of=number), body=body)
        await commit(store, make_start(make_row(number), snapshot=broken))
    await commit(store, make_start(make_row(3), snapshot=make_snapshot(4, of=3)))
    unknown = replace(make_snapshot(1, of=4), schema=99, body=b"?")
    await commit(store, make_start(make_row(4), snapshot=unknown))

    problems = sorted(await store.check())

    assert len(problems) == 3
    assert f"snapshot of execution {id_of(1)}: Expected to decode a snapshot" in problems[0]
    assert problems[1:] == [
        f"snapshot of execution {id_of(2)}: it tells of 9 events, its row says 1",
        f"snapshot of execution {id_of(3)}: it tells of 4 events, and the history has 1",
    ]
