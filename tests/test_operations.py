"""What the page on operations says about roles and backups is tried on a real server, and on a real file."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast import Context, Engine, activity, workflow
from holdfast.cli import main
from holdfast.engine.transfer.transfers import transfer
from holdfast.errors import StoreError
from tests.postgres.access import connect
from tests.postgres.server import PostgresServer

PAGE = (Path(__file__).parents[1] / "docs" / "operations.md").read_text()
SQL: dict[str, str] = dict(re.findall(r"```sql\n-- (\w+)\n(.*?)```", PAGE, re.DOTALL))


@activity
async def double(number: int) -> int:
    return number * 2


@workflow
async def work(ctx: Context, number: int) -> int:
    await ctx.sleep(0.01)
    return await ctx.run(double, number + await ctx.wait_for_signal("more", int))


@pytest.fixture
def app(own_postgres: PostgresServer) -> PostgresServer:
    """A server with a database in which nobody may do what the page does not grant."""
    with connect(own_postgres.url()) as connection:
        connection.execute("CREATE DATABASE app")
        connection.execute("REVOKE TEMPORARY ON DATABASE app FROM PUBLIC")
    return own_postgres


def grant(server: PostgresServer, role: str) -> str:
    """Do what the page says for a role; the URL by which it comes."""
    with connect(server.url(database="app")) as connection:
        connection.execute(SQL[role].encode())
    return server.url(database="app").replace("holdfast@", f"holdfast_{role}:change%20me@")


def make_engine(url: str, node: str = "a") -> Engine:
    return Engine(url, workflows=[work], activities=[double], node=node, retention=1.0)


async def try_everything(url: str, workflow_id: str) -> None:
    async with make_engine(url) as engine:
        handle = await engine.start(work, 1, workflow_id=workflow_id, idempotency_key=workflow_id)
        await engine.signal_workflow(workflow_id, "more", 2)
        assert await handle.result() == 6
        await engine.cancel(workflow_id)
        assert await engine.list()


def run(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


async def test_a_role_that_owns_the_schema_and_nothing_else_can_do_everything(app: PostgresServer, tmp_path: Path) -> None:
    owner = grant(app, "owner")
    source = f"sqlite:///{tmp_path / 'app.db'}"
    async with make_engine(source) as engine:
        await engine.start(work, 1, workflow_id="moved")

    await transfer(source, owner)

    async with make_engine(owner) as engine:
        await engine.signal_workflow("moved", "more", 4)
        assert await engine.handle("moved").result() == 10
    await try_everything(owner, "new")
    for command in (["check"], ["list"], ["nodes"], ["purge", "--older-than", "0s"]):
        assert (await asyncio.to_thread(run, command[0], owner, *command[1:])).exit_code == 0


async def test_a_node_works_with_the_rights_that_the_page_grants(app: PostgresServer) -> None:
    owner = grant(app, "owner")
    async with make_engine(owner):
        pass
    node = grant(app, "node")

    await try_everything(node, "as a node")

    with connect(app.url(database="app", schema="holdfast")) as connection:
        connection.execute("UPDATE schema_version SET version = 1")
    with pytest.raises(StoreError, match=r"Expected to bring up to date .* permission denied"):
        await make_engine(node).open()


async def test_a_reader_sees_everything_and_changes_nothing(app: PostgresServer) -> None:
    owner = grant(app, "owner")
    await try_everything(owner, "done")
    reader = grant(app, "reader")

    for command in (
        ["check"],
        ["list"],
        ["show", "done"],
        ["history", "done"],
        ["nodes"],
        ["export"],
        ["dead-letters", "list"],
    ):
        result = await asyncio.to_thread(run, command[0], reader, *command[1:])
        assert result.exit_code == 0, result.output
    refused = await asyncio.to_thread(run, "purge", reader, "--older-than", "0s")
    assert refused.exit_code == 1
    assert "permission denied" in refused.stderr
    with pytest.raises(StoreError, match="permission denied"):
        await make_engine(reader).open()


async def test_a_sqlite_backup_made_while_the_engine_runs_goes_on(tmp_path: Path) -> None:
    async with make_engine(f"sqlite:///{tmp_path / 'app.db'}") as engine:
        await engine.start(work, 1, workflow_id="w")
        with closing(sqlite3.connect(tmp_path / "app.db")) as from_, closing(sqlite3.connect(tmp_path / "copy.db")) as to:
            from_.backup(to)  # what `.backup` does

    async with make_engine(f"sqlite:///{tmp_path / 'copy.db'}") as engine:
        await engine.signal_workflow("w", "more", 1)
        assert await engine.handle("w").result() == 4
