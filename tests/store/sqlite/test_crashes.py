from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.store.contract import Claim, ExecutionFilter
from holdfast.store.sqlite import SqliteStore
from tests.store.builders import (
    NOW,
    ORG,
    commit,
    id_of,
    look,
    make_row,
    make_start,
    make_turn,
    names_of,
    read_inbox,
    read_row,
)
from tests.store.sqlite.processes import Process, run

START = """
store = SqliteStore(path)
await store.open()
row = make_row(1)
await commit(store, make_start(row))
transaction = await store.begin()
turn = make_turn(row, timers=[make_timer(1, due=-1)], outgoing=[make_signal("one"), make_signal("two")])
await transaction.write([turn, make_start(make_row(2))], UnroutedWrite(dead_letters=[make_letter("poison")]))
"""


async def test_what_was_written_and_not_committed_is_gone_after_a_crash(path: Path) -> None:
    run(START + "die()", path)

    store = SqliteStore(path)
    await store.open()
    assert await read_row(store) == make_row(1)
    assert [turn.first for turn in await store.load_history(id_of(1))] == [1]
    assert len(await store.list_executions(ExecutionFilter(ORG))) == 1
    assert (await look(store, Claim(limit=10, due_until=NOW))).due == []
    assert await read_inbox(store) == []
    assert await store.list_dead_letters(ORG) == []
    assert await commit(store, make_turn(make_row(1))) == set()
    assert await store.check() == []
    await store.close()


async def test_what_was_committed_is_all_there_after_a_crash(path: Path) -> None:
    run(START + "await transaction.commit()\ndie()", path)

    store = SqliteStore(path)
    await store.open()
    assert (await read_row(store)).state_version == 2
    assert [turn.first for turn in await store.load_history(id_of(1))] == [1, 2]
    assert (await read_row(store, 2)).state_version == 1
    claimed = await look(store, Claim(limit=10, due_until=NOW))
    assert [timer.number for timer in claimed.due] == [1]
    assert names_of(claimed.inbox) == ["one", "two"]
    assert names_of(await store.list_dead_letters(ORG)) == ["poison"]
    assert await store.check() == []
    await store.close()


async def test_a_crash_of_the_first_process_to_open_it_leaves_a_database(path: Path) -> None:
    run("store = SqliteStore(path)\nawait store.open()\ndie()", path)

    store = SqliteStore(path)
    await store.open()
    assert await commit(store, make_start(make_row(1))) == set()
    assert await store.check() == []
    await store.close()


@pytest.mark.parametrize("enough", [1, 40, 300])
async def test_killed_at_any_moment_it_has_kept_every_turn_it_told_of(path: Path, enough: int) -> None:
    """Batches of 8 turns, one after the other, each told of when committed; killed in the midst of them."""
    body = """
    store = SqliteStore(path)
    await store.open()
    rows = [make_row(number) for number in range(8)]
    await commit(store, *[make_start(row) for row in rows])
    while True:
        turns = [make_turn(row, outgoing=[make_signal("on")]) for row in rows]
        assert not await commit(store, *turns)
        rows = [turn.row for turn in turns]
        say(rows[0].state_version)
    """
    with Process("\n".join(line[4:] for line in body.splitlines()), path) as process:
        told = [int(process.hear()) for _ in range(enough)]
        told += [int(line) for line in process.kill() if line]

    store = SqliteStore(path)
    await store.open()
    versions = {(await read_row(store, number)).state_version for number in range(8)}
    assert len(versions) == 1
    assert told[-1] <= versions.pop() <= told[-1] + 1
    assert await store.check() == []
    await store.close()


async def test_turns_go_on_where_the_crashed_process_stopped(path: Path) -> None:
    run(START + "await transaction.commit()\ndie()", path)

    store = SqliteStore(path)
    await store.open()
    stored = await read_row(store)
    assert await commit(store, make_turn(stored), make_start(make_row(3))) == set()

    assert [turn.first for turn in await store.load_history(id_of(1))] == [1, 2, 3]
    assert await store.check() == []
    await store.close()
