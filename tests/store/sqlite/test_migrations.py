"""Databases that an older Holdfast wrote go on where it left them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.core.execution import AttemptState
from holdfast.core.instants import SECOND
from holdfast.core.lifecycle import Status
from holdfast.engine.rows import from_row
from holdfast.store.contract import Claim, ExecutionFilter
from holdfast.store.rows import NodeRow
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.opening import list_migrations
from tests.store.builders import (
    DETAILS,
    NOW,
    ORG,
    commit,
    id_of,
    look,
    make_closing,
    make_history,
    make_offer,
    make_offer_timer,
    make_retry,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_row,
)

CLOSED_AT = NOW + 2 * SECOND
OLD_DETAILS = (
    b'{"metadata":{"said":"\\u0000 \\"node\\":\\",offered\\""},'
    b'"attempts":{"4":{"node":",offered"},"5":{"attempt":2,"node":",offered","lost":1},"6":{"node":"two"}}}'
)
"""As they were when an offered activity named a node that cannot be."""
NEW_ATTEMPTS = {
    4: AttemptState(offered=True),
    5: AttemptState(attempt=2, lost=1, offered=True),
    6: AttemptState(node="two"),
}


def write_version_1(path: Path) -> None:
    """Execution 1 is open, with two turns, a timer and an envelope; execution 2 is closed. A node has been there."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(list_migrations()[0][1])
        database.execute("PRAGMA journal_mode = WAL")
        for number, status, closed_at, sequence, last_turn in (
            (1, "suspended", None, 2, 3),
            (2, "completed", CLOSED_AT, 1, 2),
        ):
            at = NOW + number * SECOND
            row: tuple[object, ...] = (number, ORG, id_of(number), f"order-{number}", "order", "1", "default", status)
            row += (sequence, sequence, None, None, at, at, closed_at, DETAILS, last_turn)
            database.execute(f"INSERT INTO executions VALUES ({', '.join('?' * len(row))})", row)
        for turn_id, execution, previous, first in ((1, 1, 0, 1), (2, 2, 0, 1), (3, 1, 1, 2)):
            turn = make_history(id_of(execution), first)
            values = (turn_id, execution, previous, turn.first, turn.count, turn.at, turn.schema, turn.body)
            database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        database.execute("INSERT INTO timers VALUES (?, 7, ?, ?, 0)", (id_of(1), ORG, NOW + 5 * SECOND))
        signal = (ORG, id_of(1), make_signal("on").body)
        database.execute("INSERT INTO inbox VALUES (4, ?, ?, '', ?, 1)", signal)
        database.execute("INSERT INTO nodes VALUES ('old', ?, ?)", (NOW, NOW - 1))
        database.execute("INSERT INTO requests VALUES (?, 'start', 'k', ?, 1, ?)", (ORG, id_of(2), NOW + SECOND))
        database.commit()


def write_version_2(path: Path) -> None:
    """Execution 1 has a timer of each kind, activities that are offered, and others on two nodes; execution 2 names one."""
    with closing(sqlite3.connect(path)) as database:
        for _, script in list_migrations()[:2]:
            database.executescript(script)
        database.execute("PRAGMA journal_mode = WAL")
        for number, node, details in ((1, "one,two", OLD_DETAILS), (2, 'th"ree', b"{}"), (3, None, b"{}")):
            row: tuple[object, ...] = (number, ORG, id_of(number), f"order-{number}", "order", "1", "default", "running")
            row += (1, 1, node, None, NOW, NOW, None, details, number, "some")
            database.execute(f"INSERT INTO executions VALUES ({', '.join('?' * len(row))})", row)
            turn = make_history(id_of(number))
            values = (number, number, 0, turn.first, turn.count, turn.at, turn.schema, turn.body)
            database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        for number, attempt in ((1, 0), (2, 3), (3, -2)):
            timer = (id_of(1), number, ORG, NOW + number * SECOND, attempt)
            database.execute("INSERT INTO timers VALUES (?, ?, ?, ?, ?, '')", timer)
        database.commit()


async def test_kinds_of_timers_and_lists_of_nodes_come_out_of_their_disguise(tmp_path: Path) -> None:
    path = tmp_path / "older.db"
    write_version_2(path)
    store = SqliteStore(path)
    await store.open()

    claimed = await look(store, Claim(limit=10, due_until=NOW + 5 * SECOND))

    assert claimed.due == [make_timer(1, due=1), make_retry(2, due=2, attempt=3), make_offer_timer(3, due=3, attempt=2)]
    assert [(await read_row(store, number)).nodes for number in (1, 2, 3)] == [("one", "two"), ('th"ree',), ()]
    assert await store.list_orphans(["one", "two"], 10) == [await read_row(store, 2)]
    assert from_row(await read_row(store, 1)).details.attempts == NEW_ATTEMPTS
    assert await store.check() == []
    await store.close()


@pytest.fixture
def path(path: Path) -> Path:
    write_version_1(path)
    return path


async def test_executions_of_earlier_versions_are_found_by_their_metadata(store: SqliteStore) -> None:
    found = await store.list_executions(ExecutionFilter(ORG, metadata={"by": "ann"}))

    assert [row.execution_id for row in found] == [id_of(2), id_of(1)]


async def test_everything_is_there_for_anybody(store: SqliteStore) -> None:
    claimed = await look(store, Claim(limit=10, due_until=NOW + 5 * SECOND, routes=["some"]))

    assert claimed.held == {id_of(1)}
    assert claimed.rows[id_of(1)].route == ""
    assert [(row.id, row.attempts, row.route) for row in claimed.inbox] == [(4, 1, "")]
    assert names_of(claimed.inbox) == ["on"]
    assert claimed.due == [make_timer(7, due=5)]
    assert await store.list_nodes() == [NodeRow("old", NOW, NOW - 1)]
    assert await store.find_oldest_closed() == CLOSED_AT
    assert await store.check() == []


async def test_an_open_execution_goes_on_to_its_end(store: SqliteStore) -> None:
    turn = make_turn(await read_row(store), Status.RUNNING, ended_timers=[7], consumed=[4], offered=[make_offer(8, "gpu")])

    assert await commit(store, turn) == set()
    assert len(await store.take_offers("a", ["gpu"], 10)) == 1
    assert await commit(store, make_closing(turn.row)) == set()

    assert [row.first for row in await store.load_history(id_of(1))] == [1, 2, 3, 4]
    counts = await store.count()
    assert (counts.executions, counts.timers, counts.inbox) == ({}, 0, 0)
    assert await store.check() == []


async def test_a_closed_execution_can_be_purged(store: SqliteStore) -> None:
    assert await store.purge(CLOSED_AT + 1, 10) == 1

    assert await store.find_execution(ORG, id_of(2)) is None
    assert len(await store.load_history(id_of(1))) == 2
    assert await store.check() == []


async def test_a_migrated_database_is_not_migrated_again(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await commit(store, make_start(make_row(3, route="some")))
    await store.close()

    await store.open()

    assert (await read_row(store, 3)).route == "some"
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(list_migrations()),)
    await store.close()
