from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import StoreUnavailable
from holdfast.store.contract import UnroutedWrite
from holdfast.store.sqlite import SqliteStore
from tests.store.builders import commit, id_of, make_row, make_signal, make_start, make_turn, read_inbox, read_row
from tests.store.sqlite.processes import run


def limit_pages(store: SqliteStore, *, more: int) -> None:
    """Let the database grow by so many pages; then SQLite says that the disk is full."""
    writer = store._connections.writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages + more}")


async def test_a_full_disk_loses_the_batch_and_nothing_else(store: SqliteStore) -> None:
    rows = [make_row(number) for number in range(300)]
    await commit(store, *[make_start(row) for row in rows])
    limit_pages(store, more=3)

    with pytest.raises(StoreUnavailable, match=r"is full\. Nothing was written\. Make room on the disk"):
        await commit(store, *[make_turn(row, outgoing=[make_signal("on")]) for row in rows])

    assert [(await read_row(store, number)).state_version for number in range(300)] == [1] * 300
    assert await read_inbox(store) == []
    assert await store.check() == []


async def test_after_room_was_made_the_same_turns_are_taken(store: SqliteStore) -> None:
    rows = [make_row(number) for number in range(300)]
    await commit(store, *[make_start(row) for row in rows])
    limit_pages(store, more=1)
    turns = [make_turn(row, events=5) for row in rows]
    with pytest.raises(StoreUnavailable):
        await commit(store, *turns)

    limit_pages(store, more=10_000)
    lost = await commit(store, *turns)

    assert lost == set()
    assert [turn.first for turn in await store.load_history(id_of(299))] == [1, 2]
    assert await store.check() == []


async def test_a_transaction_that_met_a_full_disk_has_ended(store: SqliteStore) -> None:
    limit_pages(store, more=0)
    transaction = await store.begin()
    with pytest.raises(StoreUnavailable):
        await transaction.write([make_start(make_row(number)) for number in range(300)], UnroutedWrite())

    await transaction.rollback()

    assert not await store.was_committed(transaction)
    assert await commit(store) == set()


IN_A_SMALL_QUOTA = """
import resource
store = SqliteStore(path)
await store.open()
rows = [make_row(number) for number in range(100)]
await commit(store, *[make_start(row) for row in rows])
turns = [make_turn(row, outgoing=[make_signal("on")]) for row in rows]
log = path.with_name(path.name + "-wal")
resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 10_000, resource.RLIM_INFINITY))
transaction = await store.begin()
await transaction.write(turns, UnroutedWrite())
try:
    await transaction.commit()
except OutcomeUnknown as error:
    say(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


async def test_an_io_error_in_a_commit_leaves_nothing_half_written(path: Path) -> None:
    [message, was_committed, versions, inbox, lost, problems] = run(
        IN_A_SMALL_QUOTA
        + """
say(await store.was_committed(transaction))
say({(await read_row(store, number)).state_version for number in range(100)})
say((await store.count()).inbox)
say(await commit(store, *turns))
say(await store.check())
await store.close()
""",
        path,
    )

    assert "disk I/O error. Look at the disk" in message
    assert (was_committed, versions, inbox, lost, problems) == ("False", "{1}", "0", "set()", "[]")


async def test_after_an_io_error_one_can_begin_anew_without_asking(path: Path) -> None:
    [_, lost, problems] = run(
        IN_A_SMALL_QUOTA + "say(await commit(store, *turns))\nsay(await store.check())\nawait store.close()", path
    )

    assert (lost, problems) == ("set()", "[]")
