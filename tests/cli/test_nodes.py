"""`holdfast nodes`: who works on a database, who is late, and who left."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from holdfast import Engine, __version__
from holdfast.engine.nodes.roster import NodeDetails
from holdfast.engine.stores import make_store
from holdfast.store.rows import NodeRow
from holdfast.testing import TestEngine
from tests.cli.conftest import double, doubling, waiting
from tests.postgres.access import connect

Invoke = Callable[..., Result]


def read_states(result: Result) -> dict[str, str]:
    """The state of each node that was listed."""
    assert result.exit_code == 0, result.output
    return {line.split()[0]: line.split()[1] for line in result.stdout.splitlines()[1:] if line.strip()}


def test_engine_that_ended_in_good_order_has_left(invoke: Invoke, tmp_path: Path) -> None:
    async def work() -> None:
        async with Engine(f"sqlite:///{tmp_path / 'app.db'}", node="first"):
            pass

    asyncio.run(work())

    assert read_states(invoke("nodes", tmp_path / "app.db")) == {"first": "left"}


def test_engine_that_was_killed_is_late(invoke: Invoke, tmp_path: Path) -> None:
    async def work() -> None:
        engine = TestEngine(f"sqlite:///{tmp_path / 'app.db'}", node="first")
        await engine.open()
        await engine.crash()

    asyncio.run(work())

    assert read_states(invoke("nodes", tmp_path / "app.db")) == {"first": "late"}


async def test_nodes_of_a_database_tell_what_they_do(invoke: Invoke, postgres_url: str) -> None:
    async with (
        Engine(postgres_url, workflows=[doubling, waiting], activities=[double], node="worker", queues=["default", "big"]),
        Engine(postgres_url, workflows=[waiting], node="other"),
    ):
        result = await asyncio.to_thread(invoke, "nodes", postgres_url)

    assert read_states(result) == {"other": "alive", "worker": "alive"}
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("worker")]
    for word in (platform.node(), str(os.getpid()), __version__, "big, default", "doubling, waiting", "double"):
        assert word in line


async def test_node_whose_lease_ran_out_is_late(invoke: Invoke, postgres_url: str) -> None:
    store = make_store(postgres_url)
    await store.open()
    await store.beat(NodeRow("a", 0, 0, details=msgspec.json.encode(NodeDetails(lease=120))), (), ())
    await store.close()
    with connect(postgres_url) as connection:
        connection.execute("UPDATE nodes SET seen_at = seen_at - 125 * 1000000")

    result = await asyncio.to_thread(invoke, "nodes", postgres_url)

    assert read_states(result) == {"a": "late"}
    assert " s ago" in result.stdout


def test_database_without_nodes_says_so(invoke: Invoke, database: Path) -> None:
    import sqlite3

    with sqlite3.connect(database) as connection:
        connection.execute("DELETE FROM nodes")
    connection.close()

    assert invoke("nodes", database).output == "There are none.\n"


def test_details_that_cannot_be_read_hide_nothing(invoke: Invoke, database: Path) -> None:
    import sqlite3

    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE nodes SET details = ?", (b"\xff{",))
    connection.close()

    assert list(read_states(invoke("nodes", database)).values()) == ["left"]


@pytest.mark.parametrize("path", ["nowhere.db", "http://here"])
def test_what_is_no_database_is_refused(invoke: Invoke, path: str) -> None:
    result = invoke("nodes", path)

    assert result.exit_code == 2
    assert "Expected a " in result.output
