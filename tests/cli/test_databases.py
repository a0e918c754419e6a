"""Databases on the command line: every command takes a path or a URL, makes nothing, and tells no password."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from holdfast import Engine
from holdfast.engine.stores import hide_password, make_store
from holdfast.engine.transfer.transfers import transfer
from holdfast.errors import InvalidConfiguration
from tests.cli.conftest import fill, waiting
from tests.postgres.access import connect

Invoke = Callable[..., Result]

READING = [["check"], ["list"], ["show", "open"], ["history", "done"], ["export"], ["dead-letters", "list"], ["nodes"]]
WRITING = [["dead-letters", "requeue", "--all"], ["dead-letters", "discard", "--all"], ["purge", "--older-than", "1d"]]


def say(command: list[str], database: object) -> list[object]:
    """A command with its database where it belongs."""
    return [command[0], database, *command[1:]]


@pytest.fixture
def filled_postgres(postgres_url: str) -> str:
    """The same as `database`, on a server."""
    asyncio.run(fill(postgres_url))
    return postgres_url


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_commands_say_the_same_of_either_store(
    invoke: Invoke, database: Path, filled_postgres: str, command: list[str]
) -> None:
    ours = invoke(*say(command, f"sqlite:///{database}"))
    theirs = invoke(*say(command, filled_postgres))

    assert (ours.exit_code, theirs.exit_code) == (0, 0), theirs.output
    assert len(theirs.stdout.splitlines()) == len(ours.stdout.splitlines())
    assert theirs.stderr == ""


def test_reading_commands_work_while_engines_do(invoke: Invoke, filled_postgres: str) -> None:
    async def look() -> list[Result]:
        async with Engine(filled_postgres, node="worker"):
            return [await asyncio.to_thread(invoke, *say(command, filled_postgres)) for command in READING]

    results = asyncio.run(look())

    assert [result.exit_code for result in results] == [0] * len(READING)
    assert "worker" in results[-1].stdout


def test_requeued_dead_letters_are_tried_at_once_by_who_works_there(invoke: Invoke, filled_postgres: str) -> None:
    async def requeue() -> list[str]:
        async with Engine(filled_postgres, workflows=[waiting]) as engine:
            (before,) = await engine.dead_letters()
            result = await asyncio.to_thread(invoke, "dead-letters", filled_postgres, "requeue", "--all")
            assert result.stdout == "1 dead letter requeued.\n"
            while not (after := await engine.dead_letters()) or after[0].id == before.id:
                await asyncio.sleep(0.01)
            return [one.reason for one in after]

    assert asyncio.run(asyncio.wait_for(requeue(), 60))


def test_writing_commands_work_on_a_server(invoke: Invoke, filled_postgres: str) -> None:
    results = [invoke(*say(command, filled_postgres)) for command in WRITING]

    assert [result.exit_code for result in results] == [0, 0, 0], [result.output for result in results]


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=" ".join)
def test_a_schema_that_is_not_there_is_not_made(invoke: Invoke, postgres_url: str, command: list[str]) -> None:
    before = list_schemas(postgres_url)

    result = invoke(*say(command, postgres_url))

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: Expected a database of Holdfast in schema 'hf_")
    assert list_schemas(postgres_url) <= before


def list_schemas(url: str) -> set[str]:
    with connect(url) as connection:
        return {name for (name,) in connection.execute("SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'")}


def test_an_older_schema_is_not_upgraded_by_looking_at_it(invoke: Invoke, filled_postgres: str) -> None:
    with connect(filled_postgres) as connection:
        connection.execute("UPDATE schema_version SET version = 1")

    result = invoke("list", filled_postgres)

    assert result.exit_code == 1
    assert "an older Holdfast wrote it" in result.stderr
    with connect(filled_postgres) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchone() == (1,)


# --- what goes wrong is told in one line, without the password ----------------------------------------------------------

SECRET = "s3cr3t"
UNREACHABLE = f"postgresql://ann:{SECRET}@127.0.0.1:1/app?schema=holdfast"


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=" ".join)
def test_a_server_that_is_away_is_one_line_and_exit_code_1(invoke: Invoke, command: list[str]) -> None:
    result = invoke(*say(command, UNREACHABLE))

    assert result.exit_code == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Error: Expected to connect to postgresql://127.0.0.1:1/app, but ")
    assert SECRET not in result.stderr


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/app",
        f"postgres://ann:{SECRET}@127.0.0.1:1/app?password={SECRET}",
        f"postgresql://ann:{SECRET}/x@127.0.0.1:1/app",
        f"postgresql://ann:{SECRET}?x@127.0.0.1:1/app",
        f"postgresql://ann:{SECRET}@{SECRET}@127.0.0.1:1/app",
        f"postgresql://127.0.0.1:1/app?user=ann&password={SECRET}",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/app?wakeups=redis://:{SECRET}@r",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/app?wakeups=http://:{SECRET}@r",
        f"postgresql://ann:{SECRET}@127.0.0.1:1/app?pooler={SECRET[:0]}wrong",
        f"mysql://ann:{SECRET}@127.0.0.1:1/app",
    ],
)
def test_no_error_tells_a_password(invoke: Invoke, database: Path, tmp_path: Path, url: str) -> None:
    commands: list[list[object]] = [
        ["list", url],
        ["transfer", database, url],
        ["transfer", url, tmp_path / "x.db"],
        ["import", url, database],
    ]

    for command in commands:
        result = invoke(*command)
        assert result.exit_code in {1, 2}
        assert SECRET not in result.output
        assert "Expected" in result.stderr
    assert SECRET not in hide_password(url)


def test_no_success_tells_a_password(invoke: Invoke, database: Path, postgres_url: str) -> None:
    url = postgres_url.replace("holdfast@", f"holdfast:{SECRET}@")

    outputs = [invoke("transfer", database, url).output, invoke("list", database).output, invoke("check", url).output]

    assert "everything was transferred from" in outputs[0]
    assert "was moved to 'postgresql://holdfast@127.0.0.1" in outputs[1]
    assert SECRET not in "".join(outputs)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:pw@host:1/app", "postgresql://ann@host:1/app"),
        ("postgresql://host/app?sslmode=require&schema=x", "postgresql://host/app?schema=x"),
        ("postgresql:///app", "postgresql:///app"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("app.db", "app.db"),
    ],
)
def test_the_rest_of_a_url_is_shown(url: str, shown: str) -> None:
    assert hide_password(url) == shown


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://host/app.db", "sqlite:///", "postgresql://h/d?schema=pg_x"])
def test_urls_that_name_no_database_are_usage_errors(invoke: Invoke, url: str) -> None:
    result = invoke("list", url)

    assert result.exit_code == 2
    assert "Expected" in result.stderr


def test_without_the_driver_the_message_says_how_to_install_it() -> None:
    script = """
import sys
sys.modules["asyncpg"] = None
from holdfast.cli import main
main(["list", "postgresql://ann:s3cr3t@host/db"])
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "pip install 'holdfast[postgres]'" in done.stderr
    assert SECRET not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_url_of_another_kind_is_refused_by_the_engine_without_its_password() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        make_store(f"mysql://ann:{SECRET}@host/db")

    assert "mysql://ann@host/db" in refused.value.message


# --- what was moved can be looked at, not written to --------------------------------------------------------------------


def test_a_moved_database_can_be_looked_into_and_not_written_to(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    asyncio.run(transfer(f"sqlite:///{database}", f"sqlite:///{tmp_path / 'new.db'}"))

    looked = invoke("list", database)
    written = [invoke(*say(command, database)) for command in WRITING]

    assert looked.exit_code == 0
    assert len(looked.stdout.splitlines()) == 4
    assert looked.stderr.startswith("Note: all that is in this one was moved to 'sqlite:///")
    for result in written:
        assert result.exit_code == 1
        assert "was moved to" in result.stderr
    assert invoke("dead-letters", database, "list").stdout.count("\n") == 2


FITTING = """
from holdfast import Context, activity, workflow

@workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal("word", str, timeout=3600)
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_open_execution_of_a_database_is_replayed(
    request: pytest.FixtureRequest, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    source = request.getfixturevalue("database" if kind == "sqlite" else "filled_postgres")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"fits_{kind}.py").write_text(FITTING)
    (tmp_path / f"differs_{kind}.py").write_text(FITTING.replace("3600", "None"))
    (tmp_path / f"lacks_{kind}.py").write_text(FITTING.replace("waiting", "other"))

    fits, differs, lacks = (invoke("replay", source, "--module", f"{name}_{kind}") for name in ("fits", "differs", "lacks"))

    assert fits.stdout == "ok: 1 open execution with 4 events replayed, the code fits.\n", fits.output
    assert differs.exit_code == 1
    assert "timer" in differs.stderr.lower()
    assert "left out: executions of workflow 'waiting'" in lacks.stderr


@pytest.mark.parametrize(
    "name", ["folder", "x" * 5_000, "empty.db", "missing.db", "folder/missing.db", "empty.db/inside.db"]
)
@pytest.mark.parametrize("command", ["list", "check", "nodes", "backlog", "export"])
def test_a_path_that_is_no_database_is_refused_and_nothing_is_made(
    invoke: Invoke, tmp_path: Path, command: str, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.db").touch()

    result = invoke(command, tmp_path / name)

    assert result.exit_code == 2
    assert "Expected a database file at" in result.stderr
    assert isinstance(result.exception, SystemExit)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty.db", "folder"]
