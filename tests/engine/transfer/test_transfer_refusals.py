"""What is moved, or is on its way, is nobody's to work on; what cannot be moved is refused; a transfer can be given up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import Engine
from holdfast.engine.stores import make_store
from holdfast.engine.transfer.marks import MOVED_TO, MOVING_TO
from holdfast.engine.transfer.transfers import TransferProgress, abandon, transfer
from holdfast.errors import Conflict, CorruptStore, HoldfastError, InvalidConfiguration, StoreMoved, StoreOwned
from holdfast.store.rows import NodeRow
from holdfast.store.transfer import MarkChange, PersistentStore
from tests.engine.transfer.databases import copy_all, fill_at, interrupt, name_database, opened, read_at, read_marks
from tests.postgres.access import connect, with_schema
from tests.store.everything import open_movable

# --- nobody works on both -------------------------------------------------------------------------------------------------


async def test_no_engine_opens_either_side_while_a_transfer_is_under_way(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    await interrupt(source, target)

    with pytest.raises(StoreMoved, match="a transfer is under way from this one to '"):
        await Engine(source).open()
    with pytest.raises(StoreMoved, match=r"a transfer is under way from '.*' to this one"):
        await Engine(target).open()

    await transfer(source, target)
    async with Engine(target):
        pass


async def test_no_engine_opens_what_was_moved(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    await transfer(source, target)

    with pytest.raises(StoreMoved, match=r"was moved to '.*' at .*\. Open that one\.$"):
        await Engine(source).open()

    async with Engine(target):
        pass


async def test_a_database_at_work_is_not_moved(urls: tuple[str, str]) -> None:
    source, target = urls
    async with Engine(source, node="worker"):
        with pytest.raises(HoldfastError) as refused:
            await transfer(source, target)

    assert isinstance(refused.value, StoreOwned) or "node 'worker'" in refused.value.message
    await transfer(source, target)


async def test_nothing_is_moved_to_where_somebody_works(urls: tuple[str, str]) -> None:
    source, target = urls
    async with opened(source):
        pass
    async with Engine(target, node="worker"):
        with pytest.raises(HoldfastError) as refused:
            await transfer(source, target)

    assert isinstance(refused.value, StoreOwned) or "node 'worker'" in refused.value.message
    assert await read_marks(source) == set()


async def test_a_node_that_has_been_silent_for_long_does_not_stop_a_transfer(tmp_path: Path, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await store.beat(NodeRow("killed", 0, 0), (), ())
    with pytest.raises(Conflict, match=r"node 'killed' was seen \d+ s ago"):
        await transfer(postgres_url, f"sqlite:///{tmp_path / 'target.db'}")
    with connect(postgres_url) as connection:
        connection.execute("UPDATE nodes SET seen_at = seen_at - 60 * 1000000, details = '{\"lease\": 60}'")
        with pytest.raises(Conflict, match="counts as dead after 120 s"):
            await transfer(postgres_url, f"sqlite:///{tmp_path / 'target.db'}")
        connection.execute("UPDATE nodes SET seen_at = seen_at - 60 * 1000000")

    await transfer(postgres_url, f"sqlite:///{tmp_path / 'target.db'}")


async def test_of_two_who_transfer_at_once_one_gives_way(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    await fill_at(source)
    before = await read_at(source)

    with connect(postgres_url) as connection:

        def meddle(_step: TransferProgress) -> None:
            """What another process would do that goes on with the transfer."""
            connection.execute("UPDATE marks SET value = value || ' '")

        with pytest.raises(Conflict, match="another process does too"):
            await transfer(source, postgres_url, on_progress=meddle, page=3)

    await transfer(source, postgres_url, page=3)
    assert await read_at(postgres_url) == before


# --- what cannot be -------------------------------------------------------------------------------------------------------


async def test_a_target_that_is_not_empty_is_refused(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    await fill_at(target)
    before = await read_at(target)

    with pytest.raises(Conflict, match=r"to be empty, but it holds 8 executions, \d+ histories"):
        await transfer(source, target)

    assert await read_at(target) == before
    assert (await read_marks(source), await read_marks(target)) == (set(), set())


async def test_a_source_that_is_not_there_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match="there is none"):
        await transfer(f"sqlite:///{tmp_path / 'none.db'}", f"sqlite:///{tmp_path / 'target.db'}")

    assert list(tmp_path.iterdir()) == []


async def test_a_database_cannot_be_moved_to_itself(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    same = f"sqlite:///{tmp_path}/../{tmp_path.name}/source.db"
    for url in (source, postgres_url):
        async with opened(url):
            pass

    pairs = [(source, same), (postgres_url, postgres_url), (postgres_url, postgres_url + "&lanes=2")]
    pairs.append((postgres_url, postgres_url.replace("127.0.0.1", "localhost")))
    for one, other in pairs:
        with pytest.raises(Conflict, match="are one and the same"):
            await transfer(one, other)

    assert (await read_marks(source), await read_marks(postgres_url)) == (set(), set())


async def test_a_store_in_memory_is_not_moved(files: tuple[str, str]) -> None:
    async with opened(files[0]):
        pass

    with pytest.raises(InvalidConfiguration, match="outlives"):
        await transfer(files[0], "memory://")


async def test_transfers_do_not_get_into_each_others_way(files: tuple[str, str]) -> None:
    source, target = files
    third, fourth = target.replace("target", "third"), target.replace("target", "fourth")
    await fill_at(source)
    async with opened(third):
        pass
    await interrupt(source, target)

    with pytest.raises(Conflict, match=r"a transfer from it to '.*target\.db' is under way"):
        await transfer(source, fourth)
    with pytest.raises(Conflict, match=r"a transfer from '.*source\.db' to it is under way"):
        await transfer(third, target)
    with pytest.raises(Conflict, match="moved elsewhere"):
        await transfer(third, source)

    await transfer(source, target)


# --- tampering ------------------------------------------------------------------------------------------------------------

TAMPERING = {
    "executions": "UPDATE executions SET queue = 'other' WHERE queue = 'default' AND sequence = 1",
    "histories": "UPDATE events SET at = at + 1 WHERE first = 2",
    "timers": "UPDATE timers SET due = due + 1 WHERE number = 1",
    "inbox": "DELETE FROM inbox",
    "dead letters": "UPDATE dead_letters SET reason = 'another'",
    "requests": "UPDATE requests SET sequence = coalesce(sequence, 0) + 1",
    "activities": "UPDATE activities SET node = 'b'",
    "subscriptions": "UPDATE subscriptions SET since = since + 1",
    "kept publications": "UPDATE pending SET expires_at = expires_at + 1",
    "publications": "DELETE FROM publications WHERE subscribers IS NOT NULL",
    "start subscriptions": "UPDATE starts SET route = 'other'",
}


@pytest.mark.parametrize("kind", TAMPERING)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_a_row_that_somebody_changed_is_found(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, store: str
) -> None:
    source, target = f"sqlite:///{tmp_path / 'source.db'}", name_database(request, tmp_path, store, "target")
    await fill_at(source)
    before = await read_at(source)
    await copy_all(source, target)

    if store == "sqlite":
        with closing(sqlite3.connect(tmp_path / "target.db")) as tampering, tampering:
            tampering.execute(TAMPERING[kind])
    else:
        with connect(target) as connection:
            connection.execute(TAMPERING[kind].encode())

    with pytest.raises(CorruptStore, match=f"Expected the {kind} in '.*' to be those of '.*checksum"):
        await transfer(source, target)
    with pytest.raises(StoreMoved):
        await Engine(target).open()
    assert await abandon(source, target)
    await transfer(source, target)
    assert await read_at(target) == before


async def test_executions_in_another_order_are_found(files: tuple[str, str]) -> None:
    source, target = files
    await fill_at(source)
    await copy_all(source, target)
    swap = "UPDATE executions SET id = CASE id WHEN 2 THEN -3 WHEN 3 THEN -2 END WHERE id IN (2, 3)"
    with closing(sqlite3.connect(target.removeprefix("sqlite:///"))) as tampering, tampering:
        for statement in (swap, "UPDATE executions SET id = -id WHERE id < 0"):
            tampering.execute(statement)
        tampering.execute("UPDATE events SET execution = CASE execution WHEN 2 THEN 3 ELSE 2 END WHERE execution IN (2, 3)")

    with pytest.raises(CorruptStore, match="Expected the executions in"):
        await transfer(source, target)


# --- giving up ------------------------------------------------------------------------------------------------------------


async def test_a_transfer_can_be_given_up_and_both_sides_are_free(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    before = await read_at(source)
    await interrupt(source, target, 8)

    assert await abandon(source, target)

    assert await read_at(source) == before
    assert (await read_marks(source), await read_marks(target)) == (set(), set())
    for url in urls:
        async with Engine(url):
            pass


async def test_a_transfer_is_given_up_when_the_target_is_gone(tmp_path: Path, postgres_server: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    target = tmp_path / "target.db"
    await fill_at(source)

    await interrupt(source, f"sqlite:///{target}")
    target.unlink()
    assert await abandon(source, f"sqlite:///{target}")
    assert not target.exists()

    async with opened(source) as store:  # as if it were on its way to a server that is away
        mark = '{"move": "x", "other": "postgresql://holdfast@127.0.0.1:1/none", "at": "now"}'
        assert await open_movable(store).change_marks([MarkChange(MOVING_TO, None, mark)])
    assert not await abandon(source, "postgresql://holdfast@127.0.0.1:1/none")
    assert await read_marks(source) == set()


async def test_what_is_complete_or_another_transfer_is_not_given_up(files: tuple[str, str]) -> None:
    source, target = files
    third = target.replace("target", "third")
    await fill_at(source)
    async with opened(third):
        pass
    with pytest.raises(Conflict, match="but there is none"):
        await abandon(source, third)
    await interrupt(source, target)
    with pytest.raises(Conflict, match=r"that of a transfer from '.*source\.db'"):
        await abandon(third, target)
    await transfer(source, target)

    with pytest.raises(StoreMoved, match="Expected a transfer that is not complete"):
        await abandon(source, target)

    assert await read_marks(source) == {MOVED_TO}


async def test_a_target_that_was_left_behind_is_cleared_when_it_is_back(files: tuple[str, str]) -> None:
    source, target = files
    await fill_at(source)
    await interrupt(source, target, 4)
    async with opened(source) as store:  # given up while the target could not be reached
        movable = open_movable(store)
        assert await movable.change_marks([MarkChange(MOVING_TO, (await movable.read_marks())[MOVING_TO], None)])

    with pytest.raises(Conflict, match="--abandon"):
        await transfer(source, target)
    assert await abandon(source, target)

    await transfer(source, target)


def test_stores_that_last_say_so(tmp_path: Path) -> None:
    lasting = [make_store("sqlite:///x.db"), make_store(with_schema("postgresql://holdfast@127.0.0.1/x", "s"))]

    assert all(isinstance(store, PersistentStore) for store in lasting)
    assert not isinstance(make_store("memory://"), PersistentStore)
