"""`holdfast transfer`: everything that one database holds goes to another."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from holdfast import Engine
from holdfast.engine.transfer.transfers import TransferProgress, transfer
from holdfast.store.sqlite.store import SqliteStore
from tests.cli.conftest import double, doubling, failing, waiting
from tests.store.builders import commit, make_row, make_start, make_timer

Invoke = Callable[..., Result]
Spawn = Callable[..., subprocess.CompletedProcess[str]]


def test_everything_is_transferred_and_shown(invoke: Invoke, database: Path, postgres_url: str) -> None:
    result = invoke("transfer", database, postgres_url)

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["what", "rows", "checksum", "on", "both", "sides"]
    counts = {line.rsplit(None, 2)[0]: line.split()[-2] for line in lines[1:-1]}
    assert counts["executions"] == "4"
    assert counts["dead letters"] == "1"
    assert lines[-1].startswith(f"ok: everything was transferred from {database} to postgresql://holdfast@127.0.0.1")
    assert result.stderr.splitlines()[0] == "copied 4 of 4 executions"
    assert "verified 4 of 4 executions" in result.stderr
    assert invoke("list", postgres_url).stdout.count("\n") == 4
    assert invoke("check", postgres_url).stdout == (
        "ok: 2 open executions (2 suspended), 2 timers, 0 waiting envelopes, 1 dead letter\n"
    )


def test_it_goes_the_other_way_too(invoke: Invoke, database: Path, postgres_url: str, tmp_path: Path) -> None:
    listed = invoke("list", database).stdout

    assert invoke("transfer", database, postgres_url).exit_code == 0
    assert invoke("transfer", postgres_url, tmp_path / "back.db").exit_code == 0

    assert invoke("list", tmp_path / "back.db").stdout == listed
    assert invoke("check", tmp_path / "back.db").exit_code == 0


def test_transferring_twice_says_so_and_is_no_error(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    invoke("transfer", database, tmp_path / "new.db")

    result = invoke("transfer", database, tmp_path / "new.db")

    assert result.exit_code == 0
    assert result.stdout == f"ok: everything was transferred from {database} to {tmp_path / 'new.db'} before.\n"


async def test_waits_end_where_they_were_transferred_to(invoke: Invoke, database: Path, postgres_url: str) -> None:
    result = await asyncio.to_thread(invoke, "transfer", database, postgres_url)
    assert result.exit_code == 0, result.output

    async with Engine(postgres_url, workflows=[doubling, waiting, failing], activities=[double]) as engine:
        await engine.signal_workflow("open", "word", "hello")
        assert await engine.handle("open").result() == "hello"


def test_a_database_that_an_engine_owns_is_not_transferred(spawn: Spawn, database: Path, tmp_path: Path) -> None:
    async def try_it() -> subprocess.CompletedProcess[str]:
        store = SqliteStore(database)
        await store.open()
        try:
            return await asyncio.to_thread(spawn, "transfer", database, tmp_path / "new.db")
        finally:
            await store.close()

    done = asyncio.run(try_it())

    assert done.returncode == 1
    assert done.stderr.startswith("Error: Expected to own the database")
    assert not (tmp_path / "new.db").exists()


def test_a_target_with_something_in_it_is_refused(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    (tmp_path / "new.db").write_bytes(database.read_bytes())

    result = invoke("transfer", database, tmp_path / "new.db")

    assert result.exit_code == 1
    assert "to be empty, but it holds 4 executions" in result.stderr


def test_a_source_that_is_not_there_is_a_usage_error(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("transfer", tmp_path / "none.db", tmp_path / "new.db")

    assert result.exit_code == 2
    assert "there is none" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_transfer_is_given_up(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    class Interrupted(BaseException):
        pass

    def stop(_progress: TransferProgress) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        asyncio.run(transfer(f"sqlite:///{database}", f"sqlite:///{tmp_path / 'new.db'}", on_progress=stop))
    looked = invoke("list", database)

    result = invoke("transfer", database, tmp_path / "new.db", "--abandon")

    assert "a transfer is under way" in looked.stderr
    assert result.stdout == f"ok: the transfer was given up. {database} can be used again.\n"
    assert invoke("list", database).stderr == ""
    assert invoke("list", tmp_path / "new.db").stdout == "There are none.\n"


def test_the_former_name_is_refused_with_the_present_one(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    result = invoke("migrate", database, tmp_path / "new.db")

    assert result.exit_code == 2
    assert "Use `holdfast transfer`." in result.stderr
    assert not (tmp_path / "new.db").exists()


# --- kill -9 --------------------------------------------------------------------------------------------------------------

MANY = 12_000


async def fill_with_many(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    for first in range(0, MANY, 1_000):
        starts = [
            make_start(make_row(number), timers=[make_timer(1, number, of=number)]) for number in range(first, first + 1_000)
        ]
        assert await commit(store, *starts) == set()
    await store.close()


def test_a_command_that_is_killed_goes_on_when_it_is_run_again(
    invoke: Invoke, spawn: Spawn, tmp_path: Path, postgres_url: str
) -> None:
    source = tmp_path / "many.db"
    asyncio.run(fill_with_many(source))
    command = [sys.executable, "-m", "holdfast.cli", "transfer", str(source), postgres_url]
    chance = random.Random(7)
    killed = 0
    for _ in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.3, 1.2))  # no wait for anything: it shall end wherever it is
        os.kill(process.pid, signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL

    done = spawn("transfer", source, postgres_url)

    assert killed > 0
    assert done.returncode == 0, done.stderr
    assert invoke("check", postgres_url).stdout.startswith(
        f"ok: {MANY:,} open executions ({MANY:,} running), {MANY:,} timers"
    )
