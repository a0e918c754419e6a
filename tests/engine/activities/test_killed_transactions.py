"""ctx.transaction under kill -9: whatever process dies wherever, each transfer is made once, and its result recorded."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.core import events
from tests.engine.activities.money_transfers import FLOWS, OPENING, STEPS, TABLES, make_engine, start_all
from tests.engine.support.histories import find_events
from tests.engine.support.user_connections import schema_of
from tests.postgres.access import connect

ROOT = Path(__file__).parents[3]


@contextmanager
def spawn(url: str, node: str) -> Iterator[subprocess.Popen[str]]:
    """A process of that node; dead at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.activities.money_transfers", url, node],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        read_lines(process, 1)  # it is open
        yield process
    finally:
        kill(process)


def read_lines(process: subprocess.Popen[str], count: int) -> None:
    """Wait until it has said so much."""
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline(), "it ended by itself"


def let_begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)


async def check_results(url: str) -> list[tuple[int, int, int]]:
    """Let the next engine finish everything; what each flow was told, step by step, and what its history says."""
    told: list[tuple[int, int, int]] = []
    async with make_engine(url, heartbeat=0.2, lease=1.0) as engine:
        await start_all(engine)
        for flow in range(FLOWS):
            attempts = await engine.handle(f"flow-{flow}").result()
            completed = await find_events(engine, f"flow-{flow}", events.ActivityCompleted)
            assert [one.attempt for one in completed] == attempts
            told += [(flow, step, attempt) for step, attempt in enumerate(attempts)]
        assert (await engine.dead_letters()) == []
        assert await engine.store.check() == []
    return told


def check_books(ledger: list[tuple[int, int, int]], accounts: dict[str, int], told: list[tuple[int, int, int]]) -> None:
    assert sorted(ledger) == told
    assert accounts == {"shop": OPENING - FLOWS * STEPS, "bank": FLOWS * STEPS}


@pytest.mark.parametrize("lines", [FLOWS // 2, 3 * FLOWS, 7 * FLOWS + 3])
async def test_A1_on_sqlite_a_killed_process_leaves_no_transfer_double_or_half(tmp_path: Path, lines: int) -> None:
    url = f"sqlite:///{tmp_path / 'app.db'}"

    def create(db: sqlite3.Connection, _work: object) -> None:
        for statement in TABLES:
            db.execute(statement.format(schema=""))

    async with make_engine(url) as engine:
        await engine.transaction(create)

    with spawn(url, "first") as process:
        let_begin(process)
        read_lines(process, lines)
    told = await check_results(url)

    with closing(sqlite3.connect(tmp_path / "app.db")) as db:
        ledger = db.execute("SELECT flow, step, attempt FROM ledger").fetchall()
        accounts = dict(db.execute("SELECT name, cents FROM accounts").fetchall())
    check_books(ledger, accounts, told)


@pytest.mark.parametrize("lines", [FLOWS // 2, 3 * FLOWS])
async def test_N1_on_postgres_another_node_takes_over_and_no_transfer_is_double_or_half(
    postgres_url: str, lines: int
) -> None:
    schema = schema_of(postgres_url)
    with connect(postgres_url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        for statement in TABLES:
            connection.execute(statement.format(schema=f"{schema}."))

    # Two nodes share the work. First one dies, then the other, each in the middle of something.
    with spawn(postgres_url, "a") as a, spawn(postgres_url, "b") as b:
        let_begin(a)
        read_lines(a, lines)
        kill(a)
        read_lines(b, FLOWS // 2)
    told = await check_results(postgres_url)

    with connect(postgres_url) as connection:
        ledger = connection.execute(f"SELECT flow, step, attempt FROM {schema}.ledger").fetchall()
        accounts = {row[0]: row[1] for row in connection.execute(f"SELECT name, cents FROM {schema}.accounts")}
    check_books(ledger, accounts, told)
