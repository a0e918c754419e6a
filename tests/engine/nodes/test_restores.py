"""N5: when the database goes back to an earlier state under living nodes, everything goes on without a restart."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, Retry, activity, activity_info, workflow
from holdfast.core.instants import SECOND
from holdfast.engine.nodes.heartbeat import Lease, NodeAnnouncement
from holdfast.engine.nodes.roster import NodeDetails
from holdfast.engine.regress import Regress
from holdfast.errors import ExecutionNotFound
from holdfast.store.memory.store import MemoryStore
from holdfast.store.rows import NodeRow
from holdfast.testing import TestEngine
from tests.engine.support.held_activities import Door
from tests.eventually import eventually
from tests.rules.world import Nodes

DOOR = Door()
ATTEMPTS: list[tuple[str, int]] = []
KEYS: dict[str, str] = {}
DOORS = {"Ann": Door(), "Bob": Door()}


@activity(retry=Retry(max_attempts=1))
async def slow(where: str) -> int:
    ATTEMPTS.append((where, activity_info().attempt))
    await DOOR.wait(where)
    return activity_info().attempt


@activity
async def pay(whom: str) -> str:
    KEYS[whom] = activity_info().idempotency_key
    await DOORS[whom].wait(whom)
    return f"paid {whom}"


@workflow
async def order(ctx: Context) -> int:
    return await ctx.run(slow, ctx.info.workflow_id)


@workflow
async def payment(ctx: Context) -> str:
    return await ctx.run(pay, await ctx.wait_for_signal("whom", str))


@workflow
async def collecting(ctx: Context, count: int) -> list[str]:
    return [await ctx.wait_for_signal("word", str) for _ in range(count)]


@pytest.fixture(autouse=True)
def _forget() -> None:
    ATTEMPTS.clear()
    KEYS.clear()
    DOOR.begin_anew()


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    DOOR.open()
    await nodes.close()


async def open_node(nodes: Nodes, name: str, **options: Any) -> TestEngine:
    return await nodes.open(name, [order, payment, collecting], [slow, pay], patience=0.0, shutdown_grace=0.01, **options)


async def beat(nodes: Nodes, seconds: float = 8) -> None:
    """Let some heartbeats pass."""
    await nodes.clock.advance(seconds=seconds)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "at an earlier state" in record.getMessage()]


async def test_N5_activity_that_was_finished_runs_again_without_a_restart(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    a, _ = await open_node(nodes, "a"), await open_node(nodes, "b")
    handles = [await a.start(order, workflow_id=f"o{number}") for number in range(3)]
    await eventually(lambda: len(ATTEMPTS) == 3)
    saved = nodes.database.save()
    await beat(nodes)
    DOOR.open()
    assert [await handle.result() for handle in handles] == [1, 1, 1]

    nodes.database.restore(saved)
    with caplog.at_level(logging.WARNING):
        await beat(nodes)

    assert [await handle.result() for handle in handles] == [2, 2, 2]
    assert len(warnings(caplog)) == 2
    assert "node a finds the database at an earlier state than it was: the last heartbeats" in warnings(caplog)[0]


async def test_N5_activity_that_still_runs_is_left_alone_and_its_result_counts(nodes: Nodes) -> None:
    a, _ = await open_node(nodes, "a"), await open_node(nodes, "b")
    handle = await a.start(order, workflow_id="o")
    await eventually(lambda: ATTEMPTS)
    saved = nodes.database.save()
    await beat(nodes, 60)

    nodes.database.restore(saved)
    await beat(nodes, 30)
    DOOR.open()

    assert await handle.result() == 1
    assert ATTEMPTS == [("o", 1)]


async def test_N5_activity_of_an_execution_that_is_gone_is_stopped_and_its_caller_told(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    saved = nodes.database.save()
    await beat(nodes)
    handle = await a.start(order, workflow_id="o")
    waiting = asyncio.ensure_future(handle.result())
    await eventually(lambda: ATTEMPTS)

    nodes.database.restore(saved)
    await beat(nodes)

    await eventually(lambda: DOOR.turned_away == ["o"])
    with pytest.raises(ExecutionNotFound, match="Expected to wait for"):
        await waiting


async def test_N5_result_of_other_work_under_the_same_number_is_refused(nodes: Nodes) -> None:
    a, b = await open_node(nodes, "a"), await open_node(nodes, "b")
    handle = await a.start(payment, workflow_id="p")
    await beat(nodes)
    saved = nodes.database.save()
    await a.signal_workflow("p", "whom", "Ann")
    await eventually(lambda: "Ann" in KEYS)

    nodes.database.restore(saved)
    await beat(nodes, 0.1)
    await b.signal_workflow("p", "whom", "Bob")
    await eventually(lambda: "Bob" in KEYS)
    DOORS["Ann"].open()
    await beat(nodes, 0.5)
    DOORS["Bob"].open()
    await beat(nodes)

    assert await handle.result() == "paid Bob"
    assert KEYS["Ann"] != KEYS["Bob"]


async def test_N5_programs_in_memory_are_not_used_for_another_past(nodes: Nodes) -> None:
    a, b = await open_node(nodes, "a"), await open_node(nodes, "b")
    handle = await a.start(collecting, 3, workflow_id="c")
    await beat(nodes)
    saved = nodes.database.save()
    await beat(nodes)
    await a.signal_workflow("c", "word", "lost")

    nodes.database.restore(saved)
    await b.signal_workflow("c", "word", "one")
    await beat(nodes)
    await a.signal_workflow("c", "word", "two")
    await a.signal_workflow("c", "word", "three")

    assert await handle.result() == ["one", "two", "three"]


@pytest.mark.parametrize("ahead", [1, 2])
async def test_N5_program_of_another_past_is_not_used_before_a_heartbeat_shows_it_either(nodes: Nodes, ahead: int) -> None:
    a, b = await open_node(nodes, "a"), await open_node(nodes, "b")
    handle = await a.start(collecting, ahead + 1, workflow_id="c")
    saved = nodes.database.save()
    await a.signal_workflow("c", "word", "lost")

    nodes.database.restore(saved)
    await beat(nodes, 0.1)
    for number in range(ahead):
        await b.signal_workflow("c", "word", f"{number}")
    await a.signal_workflow("c", "word", "last")

    assert await handle.result() == [*map(str, range(ahead)), "last"]


async def test_N5_batch_that_finds_an_older_row_notices_it_at_once(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    a = await open_node(nodes, "a")
    handle = await a.start(collecting, 2, workflow_id="c")
    saved = nodes.database.save()
    await a.signal_workflow("c", "word", "lost")

    nodes.database.restore(saved)
    with caplog.at_level(logging.WARNING):
        await a.signal_workflow("c", "word", "one")
    await a.signal_workflow("c", "word", "two")

    assert await handle.result() == ["one", "two"]
    assert len(warnings(caplog)) == 1
    assert "an execution is at an earlier version than this node committed" in warnings(caplog)[0]


async def test_N5_nobody_is_called_dead_because_the_heartbeats_are_those_of_the_past(nodes: Nodes) -> None:
    a, _ = await open_node(nodes, "a"), await open_node(nodes, "b")
    handle = await a.start(order, workflow_id="o")
    await eventually(lambda: ATTEMPTS)
    saved = nodes.database.save()
    await beat(nodes, 300)

    nodes.database.restore(saved)
    await beat(nodes, 60)

    assert sorted(nodes.database.tables.nodes) == ["a", "b"]
    assert ATTEMPTS == [("o", 1)]
    DOOR.open()
    assert await handle.result() == 1


async def test_N5_node_that_joined_since_is_back_in_the_list(nodes: Nodes) -> None:
    await open_node(nodes, "a")
    saved = nodes.database.save()
    b = await open_node(nodes, "b")
    await beat(nodes)

    nodes.database.restore(saved)
    await beat(nodes, 30)

    assert sorted(nodes.database.tables.nodes) == ["a", "b"]
    DOOR.open()
    assert await (await b.start(order, workflow_id="o")).result() == 1


async def test_N5_row_of_an_earlier_process_of_its_name_does_not_stop_a_node(nodes: Nodes) -> None:
    await open_node(nodes, "a")
    await beat(nodes)
    saved = nodes.database.save()
    await nodes.kill("a")
    a = await open_node(nodes, "a")
    await beat(nodes)

    nodes.database.restore(saved)
    await beat(nodes, 30)

    assert a.is_open
    DOOR.open()
    assert await (await a.start(order, workflow_id="o")).result() == 1


async def test_N5_what_was_taken_over_is_taken_over_again(nodes: Nodes) -> None:
    await open_node(nodes, "a")
    b = await open_node(nodes, "b")
    handle = await b.start(order, workflow_id="o")
    await eventually(lambda: ATTEMPTS)
    saved = nodes.database.save()
    await nodes.kill("b")
    await beat(nodes, 20)
    assert ATTEMPTS == [("o", 1), ("o", 2)]
    DOOR.open()
    a = nodes.engines["a"]
    assert handle.execution_id is not None
    assert await a.handle(handle.execution_id).result() == 2

    nodes.database.restore(saved)
    await beat(nodes, 30)

    assert await a.handle(handle.execution_id).result() == 2
    assert ATTEMPTS == [("o", 1), ("o", 2), ("o", 2)]


async def test_N5_orphan_of_a_node_that_the_restored_list_does_not_have_is_found(nodes: Nodes) -> None:
    a, b = await open_node(nodes, "a"), await open_node(nodes, "b")
    handle = await b.start(order, workflow_id="o")
    await eventually(lambda: ATTEMPTS)
    saved = nodes.database.save()
    await nodes.kill("b")
    await beat(nodes, 20)
    DOOR.open()

    del saved.contents["nodes"]["b"]
    nodes.database.restore(saved)
    await beat(nodes, 30)

    assert handle.execution_id is not None
    assert await a.handle(handle.execution_id).result() == 2


async def test_N5_restore_that_no_heartbeat_shows_is_found_within_a_minute(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    a = await open_node(nodes, "a")
    handle = await a.start(order, workflow_id="o")
    await eventually(lambda: ATTEMPTS)
    saved = nodes.database.save()
    DOOR.open()
    assert await handle.result() == 1

    nodes.database.restore(saved)
    with caplog.at_level(logging.WARNING):
        await beat(nodes, 70)

    assert ATTEMPTS == [("o", 1), ("o", 2)]
    assert warnings(caplog) == []
    assert "activity 1 of execution" in caplog.text


async def test_N5_passes_go_on_after_the_clock_of_the_store_was_set_back(nodes: Nodes) -> None:
    a = await open_node(nodes, "a")
    await a.start(order, workflow_id="o")
    await eventually(lambda: ATTEMPTS)
    await beat(nodes)
    reconciler, now = a._runtime.reconciler, nodes.clock.now()

    assert not reconciler.is_due(now)
    assert reconciler.is_due(now - 3600 * SECOND)


async def test_N5_nothing_is_begun_anew_while_all_is_well(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    a, b = await open_node(nodes, "a", max_activities=2), await open_node(nodes, "b", max_activities=2)
    handles = [await (a if number % 2 else b).start(order, workflow_id=f"o{number}") for number in range(12)]
    with caplog.at_level(logging.WARNING):
        for _ in range(30):
            await beat(nodes, 10)
    DOOR.open()

    assert len([await handle.result() for handle in handles]) == 12
    assert caplog.text == ""
    assert a._runtime.reconciler.begun_anew == b._runtime.reconciler.begun_anew == 0


# --- what a heartbeat shows ---


class Leases:
    """A lease on a store in memory, renewed by one process after the other."""

    def __init__(self) -> None:
        self.now = 1_000 * SECOND
        self.store = MemoryStore()

    def make(self, token: str) -> Lease:
        def make_row(number: int) -> NodeRow:
            return NodeRow("a", self.now, 0, details=msgspec.json.encode(NodeDetails(token=token, beat=number)))

        return Lease("a", 6 * SECOND, NodeAnnouncement(make_row), lambda: 0)

    async def renew(self, lease: Lease, *, after: float = 2) -> Regress | None:
        self.now += round(after * SECOND)
        return (await lease.renew(self.store)).regress


@pytest.fixture
async def leases() -> AsyncIterator[Leases]:
    leases = Leases()
    await leases.store.open()
    yield leases
    await leases.store.close()


async def test_heartbeat_that_finds_an_earlier_one_shows_that_the_database_went_back(leases: Leases) -> None:
    lease = leases.make("own")
    found = [await leases.renew(lease) for _ in range(3)]
    saved = leases.store.database.save()
    found += [await leases.renew(lease) for _ in range(2)]
    leases.store.database.restore(saved)

    assert [*found, await leases.renew(lease), await leases.renew(lease)] == [None] * 5 + [Regress.OWN_ROW, None]


async def test_clock_of_the_store_that_goes_back_is_no_restore(leases: Leases) -> None:
    lease = leases.make("own")

    assert [await leases.renew(lease, after=seconds) for seconds in (2, 2, -3600, 2)] == [None] * 4


async def test_row_that_is_gone_is_a_restore_unless_the_node_was_silent(leases: Leases) -> None:
    lease = leases.make("own")
    found = []
    for seconds in (2, 2, 60):
        found.append(await leases.renew(lease, after=seconds))
        leases.store.database.tables.nodes.clear()
    found.append(await leases.renew(lease))

    assert found == [None, Regress.OWN_ROW, Regress.REMOVED, Regress.OWN_ROW]


async def test_living_process_of_the_same_name_is_no_restore_and_a_past_one_is(leases: Leases) -> None:
    past, own = leases.make("past"), leases.make("own")
    await leases.renew(past)
    saved = leases.store.database.save()
    await leases.renew(own)
    await leases.renew(past)

    assert await leases.renew(own) is None

    leases.store.database.restore(saved)

    assert await leases.renew(own) is Regress.OWN_ROW


# --- a file that is restored while the engine is stopped ---


async def test_N5_sqlite_file_that_was_restored_goes_on_when_it_is_opened(tmp_path: Path) -> None:
    url, kept = f"sqlite:///{tmp_path / 'app.db'}", tmp_path / "kept.db"
    async with Engine(url, workflows=[order, collecting], activities=[slow], node="a") as engine:
        handle = await engine.start(order, workflow_id="o")
        await engine.start(collecting, 2, workflow_id="c")
        await eventually(lambda: ATTEMPTS)
        with sqlite3.connect(tmp_path / "app.db") as source, sqlite3.connect(kept) as target:
            source.backup(target)
        DOOR.open()
        assert await handle.result() == 1
        await engine.signal_workflow("c", "word", "lost")
    for name in ("app.db", "app.db-wal", "app.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    kept.rename(tmp_path / "app.db")

    async with Engine(url, workflows=[order, collecting], activities=[slow], node="a") as engine:
        await engine.signal_workflow("c", "word", "one")
        await engine.signal_workflow("c", "word", "two")

        assert await engine.handle("o").result() == 2
        assert await engine.handle("c").result() == ["one", "two"]
