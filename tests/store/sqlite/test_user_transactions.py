"""Users' own work may do to the database what is theirs to do, and nothing else. Whatever it tries, the store goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidArguments, OutcomeUnknown, StoreUnavailable
from holdfast.store.contract import UserFunction
from holdfast.store.rows import InboxRow
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.connections import Connections
from holdfast.store.sqlite.user_transactions import OUR_TABLES
from tests.store.builders import commit, make_row, make_signal, make_start, make_turn, names_of, read_inbox, read_row
from tests.store.sqlite.test_unknown_outcomes import TroubledConnection

Put = Callable[[InboxRow], None]


@pytest.fixture
async def store(store: SqliteStore) -> SqliteStore:
    """With a user's own table in it, and an execution."""

    def work(connection: sqlite3.Connection, _put: Put) -> None:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE)")
        connection.execute("INSERT INTO orders (name) VALUES ('first')")

    await store.transact(work)
    await commit(store, make_start(make_row(1)))
    return store


def list_orders(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return [name for (name,) in database.execute("SELECT name FROM orders ORDER BY id")]


def execute(*statements: str) -> Callable[[sqlite3.Connection, Put], None]:
    def work(connection: sqlite3.Connection, _put: Put) -> None:
        for statement in statements:
            connection.execute(statement)

    return work


# --- what is theirs -------------------------------------------------------------------------------------------------------


async def test_a_users_own_tables_are_none_of_the_stores_business(store: SqliteStore, path: Path) -> None:
    await store.close()
    await store.open()

    assert await store.check() == []
    assert list_orders(path) == ["first"]


async def test_a_user_may_read_everything_and_shape_their_own_tables(store: SqliteStore, path: Path) -> None:
    work = execute(
        "SELECT * FROM executions JOIN inbox USING (execution_id)",
        "PRAGMA table_info(orders)",
        "SAVEPOINT here",
        "INSERT INTO orders (name) VALUES ('never')",
        "ROLLBACK TO here",
        "RELEASE here",
        "ALTER TABLE orders ADD COLUMN paid INTEGER",
        "CREATE INDEX orders_by_name ON orders (name)",
        "CREATE TABLE numbers (id INTEGER PRIMARY KEY AUTOINCREMENT)",
        "ALTER TABLE numbers RENAME TO digits",
        "DROP TABLE digits",
        "CREATE VIEW open AS SELECT execution_id FROM executions WHERE closed_at IS NULL",
        "INSERT INTO orders (name) VALUES ('second')",
    )

    await store.transact(work)

    assert list_orders(path) == ["first", "second"]
    assert await commit(store, make_turn(await read_row(store))) == set()
    assert await store.check() == []


async def test_an_error_of_a_users_own_statement_arrives_as_it_is(store: SqliteStore, path: Path) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=r"orders\.name"):
        await store.transact(execute("INSERT INTO orders (name) VALUES ('x')", "INSERT INTO orders (name) VALUES ('first')"))

    assert list_orders(path) == ["first"]


# --- what is not ----------------------------------------------------------------------------------------------------------

REFUSED = {
    "COMMIT": "it says COMMIT",
    "ROLLBACK": "it says ROLLBACK",
    "BEGIN": "it says BEGIN",
    "END": "it says COMMIT",
    "ATTACH ':memory:' AS other": "it says ATTACH",
    "DETACH other": "it says DETACH",
    "ANALYZE": "it says ANALYZE",
    "PRAGMA user_version = 7": "it says PRAGMA user_version",
    "PRAGMA journal_mode = DELETE": "it says PRAGMA journal_mode",
    "PRAGMA wal_checkpoint(TRUNCATE)": "it says PRAGMA wal_checkpoint",
    "PRAGMA writable_schema = ON": "it says PRAGMA writable_schema",
    "INSERT INTO inbox (org, execution_id, workflow_id, body, attempts) VALUES ('', '', '', x'', 0)": "'inbox' is one of",
    "UPDATE executions SET status = 'completed'": "'executions' is one of",
    "DELETE FROM events": "'events' is one of",
    "DROP TABLE nodes": "'nodes' is one of",
    "ALTER TABLE timers ADD COLUMN x": "'timers' is one of",
    "ALTER TABLE LOCKS RENAME TO bolts": "'locks' is one of",
    "CREATE INDEX mine ON executions (status)": "'executions' is one of",
    "DROP INDEX executions_open": "'executions' is one of",
    "CREATE TRIGGER mine AFTER INSERT ON events BEGIN SELECT 1; END": "'events' is one of",
    "CREATE TEMP TRIGGER mine AFTER INSERT ON inbox BEGIN SELECT 1; END": "'inbox' is one of",
    "CREATE TEMP TABLE Inbox (x)": "'inbox' is one of",
    "CREATE TEMP VIEW requests AS SELECT 1": "'requests' is one of",
}


@pytest.mark.parametrize("statement", REFUSED)
async def test_what_is_not_the_users_is_refused_and_undoes_the_work(store: SqliteStore, path: Path, statement: str) -> None:
    def work(connection: sqlite3.Connection, put: Put) -> None:
        connection.execute("INSERT INTO orders (name) VALUES ('never')")
        put(make_signal("never"))
        connection.execute(statement)

    with pytest.raises(InvalidArguments, match=r"^Expected the work to .+, but .+\. .+\.$") as caught:
        await store.transact(work)

    assert REFUSED[statement] in str(caught.value)
    assert list_orders(path) == ["first"]
    assert await read_inbox(store) == []
    assert await commit(store, make_turn(await read_row(store))) == set()
    assert await store.check() == []


async def test_every_table_of_ours_is_guarded(store: SqliteStore) -> None:
    connection = store._connections.reader
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    assert tables - {"orders", "sqlite_sequence"} == OUR_TABLES


async def test_a_trigger_of_a_users_own_table_cannot_reach_ours(store: SqliteStore) -> None:
    await store.transact(execute("CREATE TRIGGER sly AFTER DELETE ON orders BEGIN DELETE FROM executions; END"))

    with pytest.raises(InvalidArguments, match="'executions' is one of"):
        await store.transact(execute("DELETE FROM orders"))

    assert (await read_row(store)).state_version == 1


WAYS_OF_THE_DRIVER: dict[str, Callable[[sqlite3.Connection], object]] = {
    "commit": lambda connection: connection.commit(),
    "rollback": lambda connection: connection.rollback(),
    "executescript": lambda connection: connection.executescript("SELECT 1"),
    "with": lambda connection: connection.__exit__(None, None, None),
    "autocommit": lambda connection: setattr(connection, "isolation_level", None),
}


@pytest.mark.parametrize("way", WAYS_OF_THE_DRIVER)
async def test_the_drivers_own_ways_to_end_a_transaction_are_refused(store: SqliteStore, path: Path, way: str) -> None:
    def work(connection: sqlite3.Connection, _put: Put) -> None:
        connection.execute("INSERT INTO orders (name) VALUES ('never')")
        WAYS_OF_THE_DRIVER[way](connection)

    with pytest.raises(InvalidArguments, match="Return to commit, raise to roll back"):
        await store.transact(work)

    assert list_orders(path) == ["first"]


async def test_who_ignores_a_refusal_has_not_done_what_was_refused(store: SqliteStore, path: Path) -> None:
    def work(connection: sqlite3.Connection, put: Put) -> None:
        for statement in ("DELETE FROM executions", "COMMIT"):
            with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                connection.execute(statement)
        connection.execute("INSERT INTO orders (name) VALUES ('second')")
        put(make_signal("on"))

    await store.transact(work)

    assert list_orders(path) == ["first", "second"]
    assert names_of(await read_inbox(store)) == ["on"]
    assert (await read_row(store)).state_version == 1


async def test_a_statement_that_rolls_back_by_itself_undoes_all_of_the_work(store: SqliteStore, path: Path) -> None:
    def work(connection: sqlite3.Connection, _put: Put) -> None:
        connection.execute("INSERT INTO orders (name) VALUES ('second')")
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("INSERT OR ROLLBACK INTO orders (name) VALUES ('first')")
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            connection.execute("INSERT INTO orders (name) VALUES ('third')")

    with pytest.raises(InvalidArguments, match="rolled back by itself"):
        await store.transact(work)

    assert list_orders(path) == ["first"]


async def test_whatever_work_does_to_its_connection_ours_stay_as_they_are(store: SqliteStore) -> None:
    kept: list[sqlite3.Connection] = []

    def work(connection: sqlite3.Connection, put: Put) -> sqlite3.Cursor:
        kept.append(connection)
        connection.row_factory = lambda _cursor, _row: "nonsense"
        connection.text_factory = bytes
        put(make_signal("on"))
        return connection.execute("SELECT * FROM executions")

    cursor = await store.transact(work)

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        cursor.fetchone()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        kept[0].execute("DELETE FROM orders")
    assert names_of(await read_inbox(store)) == ["on"]
    assert await commit(store, make_turn(await read_row(store))) == set()


async def test_work_that_closes_its_connection_is_undone(store: SqliteStore, path: Path) -> None:
    def work(connection: sqlite3.Connection, _put: Put) -> None:
        connection.execute("INSERT INTO orders (name) VALUES ('never')")
        connection.close()

    with pytest.raises(InvalidArguments, match="it closed the connection"):
        await store.transact(work)

    assert list_orders(path) == ["first"]
    assert await commit(store, make_turn(await read_row(store))) == set()


async def test_asynchronous_work_is_refused(store: SqliteStore, path: Path) -> None:
    async def work(connection: sqlite3.Connection, _put: Put) -> None:
        connection.execute("INSERT INTO orders (name) VALUES ('never')")

    def work_later(connection: sqlite3.Connection, put: Put) -> Coroutine[Any, Any, None]:
        return work(connection, put)

    refused: tuple[UserFunction[None], ...] = (work, work_later)
    for one in refused:
        with pytest.raises(InvalidArguments, match="is asynchronous: an SQLite database has one writer"):
            await store.transact(one)

    assert list_orders(path) == ["first"]


async def test_a_connection_of_the_users_own_is_refused_with_the_way_that_there_is(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, pytest.raises(InvalidArguments, match=r"engine\.transaction\(fn\)"):
        await store.enlist(connection, [make_signal("never")])


# --- beside others, and in trouble ----------------------------------------------------------------------------------------


async def test_work_waits_for_the_transaction_before_it(store: SqliteStore) -> None:
    transaction = await store.begin()
    task = asyncio.ensure_future(store.transact(lambda _connection, put: put(make_signal("on"))))
    await asyncio.sleep(0)
    assert not task.done()

    await transaction.rollback()
    await task

    assert names_of(await read_inbox(store)) == ["on"]


async def test_what_work_does_with_what_it_put_is_known_at_once(store: SqliteStore) -> None:
    """The store counts the inbox in memory; what users put there counts."""
    assert await read_inbox(store) == []

    await store.transact(lambda _connection, put: put(make_signal("on")))

    assert names_of(await read_inbox(store)) == ["on"]


def trouble_guests(monkeypatch: pytest.MonkeyPatch, *, takes_place: bool, code: int = sqlite3.SQLITE_IOERR_FSYNC) -> None:
    """The next commit of a user's transaction fails, as that of a disk might."""
    connect = Connections.connect_user

    def connect_troubled(connections: Connections) -> Any:
        monkeypatch.undo()
        return TroubledConnection(connect(connections), takes_place=takes_place, code=code)

    monkeypatch.setattr(Connections, "connect_user", connect_troubled)


@pytest.mark.parametrize("takes_place", [True, False])
async def test_after_a_commit_of_unknown_outcome_the_store_goes_on(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, *, takes_place: bool
) -> None:
    def work(connection: sqlite3.Connection, put: Put) -> None:
        connection.execute("INSERT INTO orders (name) VALUES ('second')")
        put(make_signal("on"))

    trouble_guests(monkeypatch, takes_place=takes_place)
    with pytest.raises(OutcomeUnknown):
        await store.transact(work)

    assert names_of(await read_inbox(store)) == (["on"] if takes_place else [])
    assert list_orders(path) == (["first", "second"] if takes_place else ["first"])
    assert await commit(store, make_turn(await read_row(store))) == set()


async def test_a_full_disk_undoes_the_work(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trouble_guests(monkeypatch, takes_place=False, code=sqlite3.SQLITE_FULL)

    with pytest.raises(StoreUnavailable, match="Make room on the disk"):
        await store.transact(execute("INSERT INTO orders (name) VALUES ('never')"))

    assert list_orders(path) == ["first"]
    assert await store.transact(lambda _connection, _put: "next") == "next"
