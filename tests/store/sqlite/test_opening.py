from __future__ import annotations

import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.errors import CorruptStore, InvalidConfiguration, NewerDatabase, NotOurDatabase, StoreUnavailable
from holdfast.store.contract import ExecutionFilter, Store, UnroutedWrite
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.opening import APPLICATION_ID, connect_writer, list_migrations, read_schema
from tests.store.builders import ORG, commit, make_row, make_start, make_turn, read_row
from tests.store.sqlite.processes import run


def list_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


async def open_and_close(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.close()


# --- a database of ours ---------------------------------------------------------------------------------------------------


async def test_it_keeps_the_contract(path: Path) -> None:
    store: Store = SqliteStore(path)

    assert store.exclusive


async def test_after_closing_nothing_is_left_but_the_database(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await commit(store, make_start(make_row(1)))
    assert len(list_files(path.parent)) > 1

    await store.close()

    assert list(list_files(path.parent)) == [path.name]


async def test_what_is_committed_is_there_when_opened_again(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await commit(store, make_start(make_row(1)))
    await store.close()

    await store.open()
    lost = await commit(store, make_turn(make_row(1)))

    assert lost == set()
    assert (await read_row(store)).state_version == 2
    assert [turn.first for turn in await store.load_history(make_row(1).execution_id)] == [1, 2]
    await store.close()


async def test_opening_and_closing_twice_is_the_same_as_once(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.open()
    await commit(store, make_start(make_row(1)))
    await store.close()
    await store.close()

    with pytest.raises(StoreUnavailable, match="it is not open"):
        await store.begin()


async def test_a_store_that_is_not_open_says_so(path: Path) -> None:
    store = SqliteStore(path)

    for call in (store.begin(), store.find_execution(ORG, "x"), store.find_next_due(()), store.count()):
        with pytest.raises(StoreUnavailable, match="Open the store first"):
            await call
    assert not path.exists()


async def test_an_open_transaction_is_rolled_back_by_closing(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    transaction = await store.begin()
    await transaction.write([make_start(make_row(1))], UnroutedWrite())

    await store.close()

    await store.open()
    assert await store.list_executions(ExecutionFilter(ORG)) == []
    await store.close()


async def test_an_empty_file_becomes_a_database_with_the_same_rights(path: Path) -> None:
    path.touch(mode=0o600)

    await open_and_close(path)

    assert path.stat().st_size > 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_what_a_crash_left_of_making_a_database_does_no_harm(path: Path) -> None:
    path.with_name("app.db.new").write_bytes(b"half a data")
    path.with_name("app.db.new-journal").write_bytes(b"half a jour")

    await open_and_close(path)

    assert list(list_files(path.parent)) == [path.name]


async def test_commits_are_synced_to_a_log(store: SqliteStore, path: Path) -> None:
    writer = store._connections.writer

    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert writer.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


# --- what is there is not ours --------------------------------------------------------------------------------------------


async def refuse(path: Path, kind: type[Exception], reason: str) -> None:
    """Opening fails, and everything in the folder stays as it is."""
    before = list_files(path.parent)

    with pytest.raises(kind, match=reason) as caught:
        await SqliteStore(path).open()

    assert str(caught.value).startswith("Expected ")
    assert list_files(path.parent) == before


@pytest.mark.parametrize("content", [b"x", b"SQLite format 2\0" + bytes(500), b"# notes\n" * 1000])
async def test_a_file_that_is_no_database_stays_untouched(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    await refuse(path, NotOurDatabase, "no SQLite database at all")


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_a_database_of_another_application_stays_untouched(path: Path, mode: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        other.execute("CREATE TABLE executions (id)")
        other.commit()

        await refuse(path, NotOurDatabase, "of another application")


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
async def test_a_log_without_its_database_is_refused_and_stays(path: Path, left: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await commit(store, make_start(make_row(1)))
    log_file = path.with_name(f"{path.name}-wal")
    log = log_file.read_bytes()
    await store.close()
    path.unlink()
    log_file.write_bytes(log)
    if left == "an empty file":
        path.touch()

    with pytest.raises(CorruptStore, match=re.escape("the log 'app.db-wal' of an earlier one is there")):
        await SqliteStore(path).open()

    assert log_file.read_bytes() == log
    log_file.unlink()
    await open_and_close(path)


async def test_a_folder_is_no_database(path: Path) -> None:
    path.mkdir()

    with pytest.raises(NotOurDatabase, match="it is a folder"):
        await SqliteStore(path).open()

    assert list(path.parent.iterdir()) == [path]


async def test_a_missing_folder_is_not_created(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"no such file or directory\. Create the folder first"):
        await SqliteStore(path / "deeper.db").open()

    assert list_files(path.parent) == {}


async def test_a_newer_database_is_refused(path: Path) -> None:
    await open_and_close(path)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 1000")

    await refuse(path, NewerDatabase, "it has schema 1000: a newer Holdfast wrote it")


async def test_a_truncated_database_is_refused(path: Path) -> None:
    await open_and_close(path)
    path.write_bytes(path.read_bytes()[:5000])

    with pytest.raises(CorruptStore, match="malformed"):
        await SqliteStore(path).open()


# --- no rights to write ---------------------------------------------------------------------------------------------------

REFUSED = """
if os.getuid() == 0:
    os.setuid(65534)
try:
    await SqliteStore(path).open()
except StoreUnavailable as error:
    say(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can get into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


async def test_a_folder_that_cannot_be_written_to_is_said_so(open_folder: Path) -> None:
    path = open_folder / "app.db"
    await open_and_close(path)
    path.chmod(0o666)
    open_folder.chmod(0o555)

    [message] = run(REFUSED, path)

    assert "permission denied. Give this user the right to write to the file and its folder" in message


async def test_a_file_that_cannot_be_written_to_is_said_so(open_folder: Path) -> None:
    path = open_folder / "app.db"
    await open_and_close(path)
    path.chmod(0o444)
    open_folder.chmod(0o777)
    content = path.read_bytes()

    [message] = run(REFUSED, path)

    assert "Give this user the right to write to the file" in message
    assert path.read_bytes() == content


# --- schema ---------------------------------------------------------------------------------------------------------------


def describe(database: sqlite3.Connection) -> list[tuple[object, ...]]:
    names = database.execute("SELECT type, name, tbl_name FROM sqlite_schema ORDER BY name").fetchall()
    columns = [
        (table, column)
        for kind, table, _ in names
        if kind == "table"
        for column in database.execute(f"PRAGMA table_xinfo('{table}')").fetchall()
    ]
    scripts = [
        (name, re.sub(r"\s", "", sql or ""))  # columns that were added later stand elsewhere on the page
        for name, sql in database.execute("SELECT name, sql FROM sqlite_schema ORDER BY name")
    ]
    numbers = [database.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")]
    return [*names, *columns, *scripts, *numbers]


def test_the_migrations_make_the_schema() -> None:
    with closing(sqlite3.connect(":memory:")) as whole, closing(sqlite3.connect(":memory:")) as grown:
        whole.executescript(read_schema())
        for _, script in list_migrations():
            grown.executescript(script)

        assert describe(whole) == describe(grown)


def test_migrations_are_numbered_without_gaps_and_say_their_number() -> None:
    numbers = [number for number, _ in list_migrations()]

    assert numbers == list(range(1, len(numbers) + 1))
    for number, script in list_migrations():
        assert f"PRAGMA user_version = {number};" in script


async def test_an_older_database_is_migrated(path: Path) -> None:
    with closing(sqlite3.connect(path)) as older:
        older.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    store = SqliteStore(path)
    await store.open()

    assert await commit(store, make_start(make_row(1))) == set()
    await store.close()


async def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    await open_and_close(path)
    number = len(list_migrations()) + 1
    script = f"PRAGMA user_version = {number}; CREATE TABLE more (x); CREATE TABLE more (x);"
    steps = [*list_migrations(), (number, script)]

    with pytest.raises(sqlite3.Error, match="already exists"):
        connect_writer(path, steps)

    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(list_migrations()),)
        assert database.execute("SELECT name FROM sqlite_schema WHERE name = 'more'").fetchall() == []


# --- URLs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///app.db", Path.cwd() / "app.db"),
        ("sqlite:///data/my app.db", Path.cwd() / "data" / "my app.db"),
        ("sqlite:////var/lib/app.db", Path("/var/lib/app.db")),
    ],
)
def test_a_url_names_a_file(url: str, path: Path) -> None:
    assert SqliteStore.from_url(url).path == Path(os.path.realpath(path))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "app.db",
        "postgresql://localhost/app",
        "sqlite:app.db",
        "sqlite://app.db",
        "sqlite://host/app.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///app.db?mode=ro",
        "sqlite:///folder/",
        "sqlite:///a\0b",
    ],
)
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"^Expected the URL of an SQLite database, but .* Write for instance"):
        SqliteStore.from_url(url)
