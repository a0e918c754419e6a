"""What stores that last offer beyond the contract: pages of everything, marks, and copies of executions."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.core.codec import decode_envelope
from holdfast.core.envelopes import SubscriptionRefused
from holdfast.core.request_keys import KEY_SCOPES, KeyScope, list_kinds
from holdfast.errors import CorruptStore, NotOurDatabase, OlderDatabase
from holdfast.store.contract import Claim, Store, UnroutedWrite
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.publications import PublicationRow, Published
from holdfast.store.rows import ExecutionRow
from holdfast.store.sqlite.opening import list_migrations
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.transfer import (
    FROM_THE_START,
    PAGE_BYTES,
    CopyResult,
    ExecutionCopy,
    MarkChange,
    PersistentStore,
    RowKind,
)
from tests.postgres.access import connect
from tests.store.builders import (
    ORG,
    commit,
    commit_unrouted,
    id_of,
    look,
    make_closing,
    make_history,
    make_letter,
    make_offer,
    make_request,
    make_row,
    make_signal,
    make_start,
    make_timer,
    make_turn,
    names_of,
    read_inbox,
)
from tests.store.conftest import BACKENDS, Backend, Place
from tests.store.everything import fill, open_movable, read_all, read_everything
from tests.store.topics import event, make_wait, message, publish, read_given, read_kept, read_triggered, read_waits, start

BEGIN = MarkChange("move", None, "begun")
LASTING = ("sqlite", "postgres")


@pytest.fixture(params=LASTING)
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Store]:
    """Each store that lasts, open and empty."""
    backend = BACKENDS[request.param](place)
    yield await backend.connect()
    await backend.close()


@pytest.fixture(params=LASTING)
async def other(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Store]:
    """Another one, of each kind."""
    folder = place.folder / "other"
    folder.mkdir()
    backend: Backend = BACKENDS[request.param](Place(folder, place.find_server))
    yield await backend.connect()
    await backend.close()


async def move_all(source: Store, target: Store, limit: int = 3) -> None:
    from_, to = open_movable(source), open_movable(target)
    value: str | None = None
    for kind in RowKind:
        rows = await read_all(from_, kind)
        for begin in range(0, len(rows), limit):
            before, value = value, f"{kind} {begin}"
            assert await to.put_page(kind, rows[begin : begin + limit], MarkChange("move", before, value))
    await to.settle()


# --- pages ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RowKind)
async def test_pages_of_any_size_hold_everything_once_and_in_one_order(store: Store, kind: RowKind) -> None:
    await fill(store)
    movable = open_movable(store)

    pages = [await read_all(movable, kind, limit) for limit in (1, 2, 3, 1000)]

    assert pages[0]
    assert all(page == pages[0] for page in pages)
    assert len(pages[0]) == (await movable.count_rows())[kind]


async def test_executions_come_in_the_order_of_their_arrival(store: Store) -> None:
    for number in (3, 1, 2):
        await commit(store, make_start(make_row(number)))

    rows = await read_all(open_movable(store), RowKind.EXECUTIONS)

    assert [getattr(row, "execution_id", "") for row in rows] == [id_of(3), id_of(1), id_of(2)]


async def test_a_page_ends_with_the_row_that_makes_it_large(store: Store) -> None:
    body = b'"' + b"x" * (PAGE_BYTES // 2) + b'"'
    await commit_unrouted(store, *(replace(make_signal("large"), body=body) for _ in range(5)))
    movable = open_movable(store)

    page = await movable.read_page(RowKind.INBOX, FROM_THE_START, 1000)

    assert len(page.rows) == 2
    assert len(await read_all(movable, RowKind.INBOX)) == 5


async def test_an_empty_store_has_no_page(store: Store) -> None:
    movable = open_movable(store)

    assert all([(await movable.read_page(kind, FROM_THE_START, 10)).cursor is None for kind in RowKind])
    assert set((await movable.count_rows()).values()) == {0}


# --- from each kind of store to each other ---------------------------------------------------------------------------------


async def test_what_is_put_elsewhere_is_the_same(store: Store, other: Store) -> None:
    await fill(store)

    await move_all(store, other)

    assert await read_everything(open_movable(other)) == await read_everything(open_movable(store))
    assert await other.check() == await store.check()
    for row in await read_all(open_movable(store), RowKind.EXECUTIONS):
        assert await other.load_history(getattr(row, "execution_id", "")) == await store.load_history(
            getattr(row, "execution_id", "")
        )
        assert await other.load_last_turn(getattr(row, "execution_id", "")) == await store.load_last_turn(
            getattr(row, "execution_id", "")
        )


async def test_what_is_put_can_be_worked_on_and_new_things_come_behind_it(store: Store, other: Store) -> None:
    await fill(store)
    await move_all(store, other)
    (newest,) = {row.execution_id for row in [await other.find_latest(ORG, "order-1")] if row is not None}
    letters = await other.list_dead_letters(ORG)

    await commit_unrouted(other, make_signal("new", 2), dead_letters=[make_letter("new")])
    row = (await look(other, Claim(limit=100, due_until=2**62))).rows[id_of(2)]
    lost = await commit(other, make_turn(row), make_start(make_row(99), offered=[make_offer(1, "offer-2", of=99)]))

    assert newest == id_of(6)
    assert lost == set()
    assert names_of(await read_inbox(other))[-1] == "new"
    assert names_of(await other.list_dead_letters(ORG)) == [*names_of(letters), "new"]
    assert [one.execution_id for one in await other.take_offers("b", ["offer-2"], 9)] == [id_of(6), id_of(99)]
    assert getattr((await read_all(open_movable(other), RowKind.EXECUTIONS))[-1], "execution_id", "") == id_of(99)


async def test_a_page_is_put_whole_or_not_at_all(store: Store) -> None:
    movable = open_movable(store)
    rows = [make_row(1), make_row(2, workflow_id="order-1")]

    with pytest.raises(Exception, match="Expected"):  # two are open under one workflow id
        await movable.put_page(RowKind.EXECUTIONS, rows, BEGIN)

    assert await movable.read_marks() == {}
    assert await read_all(movable, RowKind.EXECUTIONS) == []
    assert await commit(store, make_start(make_row(1))) == set()


async def test_a_page_is_not_put_if_the_mark_is_not_as_expected(store: Store) -> None:
    movable = open_movable(store)
    assert await movable.change_marks([BEGIN])

    assert not await movable.put_page(RowKind.EXECUTIONS, [make_row(1)], BEGIN)
    assert not await movable.put_page(RowKind.EXECUTIONS, [make_row(1)], MarkChange("move", "other", "x"))

    assert await movable.read_marks() == {"move": "begun"}
    assert await read_all(movable, RowKind.EXECUTIONS) == []


async def test_a_history_without_its_execution_is_refused(store: Store) -> None:
    with pytest.raises(CorruptStore, match=id_of(1)):
        await open_movable(store).put_page(RowKind.HISTORIES, [make_history(id_of(1))], BEGIN)


async def test_emptying_removes_everything_with_the_mark(store: Store) -> None:
    await fill(store)
    movable = open_movable(store)
    assert await movable.change_marks([BEGIN])

    assert not await movable.empty(MarkChange("move", "other", None))
    assert (await movable.count_rows())[RowKind.EXECUTIONS] > 0
    assert await movable.empty(MarkChange("move", "begun", None))

    assert set((await movable.count_rows()).values()) == {0}
    assert await movable.read_marks() == {}


# --- marks ----------------------------------------------------------------------------------------------------------------


async def test_marks_change_together_and_only_if_each_is_as_expected(store: Store) -> None:
    movable = open_movable(store)
    assert await movable.change_marks([BEGIN, MarkChange("absent", None, None)])

    refused = [
        [MarkChange("new", None, "x"), BEGIN],
        [MarkChange("new", None, "x"), MarkChange("move", "other", "x")],
        [MarkChange("new", None, "x"), MarkChange("move", "other", None)],
        [MarkChange("new", None, "x"), MarkChange("move", None, None)],
    ]
    assert [await movable.change_marks(changes) for changes in refused] == [False] * 4
    assert await movable.read_marks() == {"move": "begun"}

    assert await movable.change_marks([MarkChange("move", "begun", "done"), MarkChange("new", None, "x")])
    assert await movable.read_marks() == {"move": "done", "new": "x"}
    assert await movable.change_marks([MarkChange("move", "done", None)])
    assert await movable.read_marks() == {"new": "x"}


# --- copies ---------------------------------------------------------------------------------------------------------------


def strip_ids(copy: ExecutionCopy) -> ExecutionCopy:
    return replace(
        copy,
        inbox=[replace(row, id=0) for row in copy.inbox],
        pending=[replace(row, id=0) for row in copy.pending],
        publications=[replace(row, id=0) for row in copy.publications],
    )


async def test_an_execution_is_copied_with_all_that_belongs_to_it(store: Store, other: Store) -> None:
    await fill(store)
    from_, to = open_movable(store), open_movable(other)
    rows = await read_all(from_, RowKind.EXECUTIONS)
    asked = [getattr(row, "execution_id", "") for row in rows]

    copies = await from_.read_copies([*reversed(asked), id_of(1000)])
    put = [await to.put_copy(copy) for copy in copies]

    assert [copy.row for copy in copies] == rows
    assert put == [CopyResult.DONE] * len(rows)
    assert list(map(strip_ids, await to.read_copies(asked))) == list(map(strip_ids, copies))
    (signalled,) = (copy for copy in copies if copy.row.execution_id == id_of(2))
    assert names_of(signalled.inbox) == ["x", "y", "z", "by name"]
    assert len(signalled.history) == 4
    (waiting,) = (copy for copy in copies if copy.row.execution_id == id_of(3))
    assert [row.number for row in waiting.subscriptions] == [31, 30, 32]
    assert [row.item for row in waiting.pending] == ["e2"]
    assert list(map(read_triggered, waiting.inbox)) == [(32, "o3")]
    (origin,) = (copy for copy in copies if copy.row.execution_id == id_of(4))
    assert [row.number for row in origin.publications] == [40]
    assert (await other.check()) == (await store.check())


async def test_a_copy_joins_a_store_that_is_at_work(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    row = replace(make_row(2), sequence=2, state_version=2)
    copy = ExecutionCopy(
        row,
        [make_history(row.execution_id), make_history(row.execution_id, 2)],
        [make_timer(1, 5, of=2)],
        [make_signal("kept", 2)],
        [make_offer(7, "offer", of=2)],
        [make_request("key")],
    )
    await commit_unrouted(store, make_signal("first", 1))

    put = await open_movable(store).put_copy(copy)

    assert put is CopyResult.DONE
    claimed = await look(store, Claim(limit=10, due_until=2**62))
    assert names_of(claimed.inbox) == ["first", "kept"]
    assert [timer.number for timer in claimed.due] == [1]
    assert [one.number for one in await store.take_offers("a", ["offer"], 5)] == [7]
    lost = await commit(store, make_turn(row), make_turn(make_row(1)))
    assert lost == set()
    assert [turn.first for turn in await store.load_history(row.execution_id)] == [1, 2, 3]


async def test_a_copy_of_what_exists_changes_nothing(store: Store) -> None:
    await commit(store, make_start(make_row(1)))
    movable = open_movable(store)
    before = await read_everything(movable)

    again = await movable.put_copy(ExecutionCopy(make_row(1, workflow_id="other"), [make_history(id_of(1))]))
    second = await movable.put_copy(ExecutionCopy(make_row(2, workflow_id="order-1"), inbox=[make_signal("x", 2)]))

    assert (again, second) == (CopyResult.EXISTS, CopyResult.IS_OPEN)
    assert await read_everything(movable) == before


async def test_M1_a_message_key_that_is_taken_is_refused_to_an_imported_execution(store: Store) -> None:
    await start(store, make_wait(1, "message", "paid", key="k"))
    row = make_row(2)
    copy = ExecutionCopy(row, subscriptions=[make_wait(7, "message", "paid", key="k", of=2)])

    assert await open_movable(store).put_copy(copy) is CopyResult.DONE

    assert await read_waits(store, 2) == []
    (refused,) = await store.list_inbox(ORG, id_of(2), "")
    assert decode_envelope(refused.body) == SubscriptionRefused(number=7, holder=id_of(1))


async def test_an_imported_execution_gets_what_is_kept_there_for_its_waits(store: Store) -> None:
    await publish(store, message("m1"), event("e1", {"order": "7"}))
    waits = [make_wait(1, "message", "paid", key="k", of=2), make_wait(2, "event", "shipped", of=2, where={"order": "7"})]

    assert await open_movable(store).put_copy(ExecutionCopy(make_row(2), subscriptions=waits)) is CopyResult.DONE

    assert await read_given(store, 2) == [(1, "m1"), (2, "e1")]
    assert (await read_kept(store), await read_kept(store, "message", "paid")) == ([], [])


async def test_kept_publications_that_are_moved_are_found_by_their_fields(store: Store, other: Store) -> None:
    await publish(store, event("e1", {"order": "7", "by": '"ann"'}), event("e2", {"order": "8"}))
    await move_all(store, other)

    await start(other, make_wait(1, "event", "shipped", where={"order": "8"}))
    assert await publish(other, event("e3")) == [Published(kept=True)]

    assert await read_given(other) == [(1, "e2")]
    assert await read_kept(other) == ["e1", "e3"]


async def test_what_cannot_be_read_of_publications_is_moved_as_it_is(store: Store, other: Store) -> None:
    bodies = [b'{"kind":"message","name":"paid","key":"k","newer":1}', b"damaged"]
    await commit(store, loose=UnroutedWrite(publications=[PublicationRow(ORG, body) for body in bodies]))

    await move_all(store, other)

    assert [row.body for row in await read_all(open_movable(other), RowKind.PUBLICATIONS)] == bodies


async def test_answers_that_are_there_count_before_those_that_come(store: Store) -> None:
    await commit(store, make_start(make_row(1), requests=[make_request("key")]))
    movable = open_movable(store)

    request = replace(make_request("key"), execution_id=id_of(2))
    assert await movable.put_copy(ExecutionCopy(make_row(2), requests=[request])) is CopyResult.DONE

    (kept,) = await read_all(movable, RowKind.REQUESTS)
    assert getattr(kept, "execution_id", "") == id_of(1)


async def test_keys_of_runs_before_come_with_the_open_run(store: Store) -> None:
    """Of each kind whose calls name an execution, by either of its ids, and of those that start one."""
    first, second = make_row(1), make_row(2, workflow_id="order-1")
    keys = [f"{named}\nrequest" for named in ("order-1", id_of(2), "order-10", "order")]
    requests = [make_request(key, kind=kind) for kind in KEY_SCOPES for key in keys]
    await commit(store, make_start(first), loose=UnroutedWrite(requests=requests))
    await commit(store, make_closing(first))
    await commit(store, make_start(second))

    (copy,) = await open_movable(store).read_copies([id_of(2)])

    found = {(request.kind, request.key) for request in copy.requests}
    assert found == {
        *((kind, key) for kind in list_kinds(KeyScope.EXECUTION) for key in keys[:2]),
        *((kind, key) for kind in list_kinds(KeyScope.START) for key in keys),
    }
    assert {request.execution_id for request in copy.requests} == {id_of(2)}
    assert len(found) == len(copy.requests)


@pytest.mark.parametrize("name", LASTING)
def test_purges_hand_on_the_keys_of_every_kind_of_start(name: str) -> None:
    text = files("holdfast.store").joinpath(name, "queries_writes.sql").read_text("utf-8")
    listed = ", ".join(f"'{kind}'" for kind in list_kinds(KeyScope.START))

    assert f"kind IN ({listed})" in text


# --- opening what is there ------------------------------------------------------------------------------------------------


async def test_opening_what_is_not_there_makes_nothing(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "empty.db").touch()
    stores: list[PersistentStore] = [
        SqliteStore(tmp_path / "none.db"),
        SqliteStore(tmp_path / "empty.db"),
        PostgresStore.from_url(postgres_url),
    ]

    for store in stores:
        with pytest.raises(NotOurDatabase, match=r"^Expected a database .*, but "):
            await store.open_existing(upgrade=True)

    assert [(file.name, file.stat().st_size) for file in tmp_path.iterdir()] == [("empty.db", 0)]
    with connect(postgres_url) as connection:
        found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = current_setting('search_path')").fetchall()
        assert found == []


async def test_an_older_sqlite_database_is_upgraded_only_if_it_may_be(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(list_migrations()[0][1])
    before = path.read_bytes()

    with pytest.raises(OlderDatabase, match="an older Holdfast wrote it"):
        await SqliteStore(path).open_existing()
    assert path.read_bytes()[100:] == before[100:]

    store = SqliteStore(path)
    await store.open_existing(upgrade=True)
    assert await open_movable(store).read_marks() == {}
    await store.close()


async def test_an_older_postgres_schema_is_refused_if_it_may_not_be_upgraded(postgres_url: str) -> None:
    store = PostgresStore.from_url(postgres_url)
    await store.open()
    await store.close()
    with connect(postgres_url) as connection:
        connection.execute("UPDATE schema_version SET version = 1")

    with pytest.raises(OlderDatabase, match="an older Holdfast wrote it"):
        await store.open_existing()


async def test_rows_that_are_not_there_are_found_by_nobody(store: Store) -> None:
    await fill(store)

    assert await open_movable(store).read_copies([]) == []
    assert all(isinstance(row, ExecutionRow) for row in await read_all(open_movable(store), RowKind.EXECUTIONS))
