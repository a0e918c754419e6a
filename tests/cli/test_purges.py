"""`holdfast purge`: what ended long ago is removed, and nothing else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from holdfast import Engine
from tests.cli.conftest import double, doubling, waiting

Invoke = Callable[..., Result]


def make_older(database: Path, days: int) -> None:
    """Let everything have ended that much earlier."""
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE executions SET closed_at = closed_at - ?", (days * 86_400_000_000,))
    connection.close()


def list_ids(result: Result) -> list[str]:
    return sorted(line.split()[0] for line in result.stdout.splitlines()[1:] if line.strip())


def test_what_ended_long_ago_is_removed(invoke: Invoke, database: Path) -> None:
    make_older(database, days=31)

    result = invoke("purge", database, "--older-than", "30d")

    assert result.output == "2 executions removed.\n"
    assert list_ids(invoke("list", database)) == ["open"]
    assert invoke("check", database).exit_code == 0


def test_what_ended_since_is_kept(invoke: Invoke, database: Path) -> None:
    make_older(database, days=29)

    assert invoke("purge", database, "--older-than", "30d").output == "0 executions removed.\n"
    assert list_ids(invoke("list", database)) == ["broken", "done", "open"]


@pytest.mark.parametrize("length", ["0s", "1m", "1h", "1d", "1w"])
def test_length_has_a_unit(invoke: Invoke, database: Path, length: str) -> None:
    assert invoke("purge", database, "--older-than", length).exit_code == 0


@pytest.mark.parametrize("length", ["", "30", "d", "-1d", "1.5d", "30 d", "1y", "9" * 30 + "w"])
def test_bad_length_is_refused_and_nothing_is_removed(invoke: Invoke, database: Path, length: str) -> None:
    result = invoke("purge", database, "--older-than", length)

    assert result.exit_code == 2
    assert "Expected a number with a unit" in " ".join(result.output.split())
    assert list_ids(invoke("list", database)) == ["broken", "done", "open"]


def test_length_must_be_given(invoke: Invoke, database: Path) -> None:
    assert invoke("purge", database).exit_code == 2


async def test_database_with_nodes_at_work(invoke: Invoke, postgres_url: str) -> None:
    async with Engine(postgres_url, workflows=[doubling, waiting], activities=[double]) as engine:
        await engine.start(waiting, workflow_id="open")
        for number in range(5):
            await (await engine.start(doubling, number, workflow_id=f"done-{number}")).result()

        result = await asyncio.to_thread(invoke, "purge", postgres_url, "--older-than", "0s")

        assert result.output == "5 executions removed.\n"
        assert [info.workflow_id for info in await engine.list()] == ["open"]
