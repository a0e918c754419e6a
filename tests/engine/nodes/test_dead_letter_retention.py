"""D1: dead letters have a retention of their own; nothing else is removed with them, and without it they stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest

from holdfast import Context, Engine, workflow
from holdfast.core.instants import Instant
from holdfast.engine.nodes.retention import BATCH, LOCK_TIME
from holdfast.engine.stores import make_store
from holdfast.errors import InvalidConfiguration
from holdfast.store.contract import Store, UnroutedWrite
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.memory.store import MemoryStore
from holdfast.store.rows import InboxRow
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.counting_store import CountingStore
from tests.eventually import eventually
from tests.rules.world import Nodes, once

HOUR = timedelta(hours=1)
LOCK = "dead_letter_retention"


@workflow
async def quick(ctx: Context) -> str:
    return "done"


@workflow
async def counting(ctx: Context) -> int:
    return await ctx.wait_for_signal("number", int)


WORKFLOWS = [quick, counting]


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    await nodes.close()


async def begin(engine: Engine, org: str = "default") -> None:
    """An execution to which letters can be sent that do not fit."""
    await engine.start(counting, workflow_id="counting", org=org)


async def send(engine: Engine, *values: str, org: str = "default") -> None:
    """Signals whose values do not fit: each becomes a dead letter in the turn that takes it."""
    for value in values:
        await engine.signal_workflow("counting", "number", value, org=org)


async def leave_poison(engine: TestEngine, count: int = 1) -> None:
    """Envelopes that cannot be decoded: each becomes a dead letter that belongs to no turn."""
    rows = [InboxRow("default", "", "nobody", b"poison")] * count
    transaction = await engine.store.begin()
    await transaction.write([], UnroutedWrite(outgoing=rows))
    await transaction.commit()
    await engine.recover()
    await engine.settle()


async def find_letters(engine: Engine, org: str = "default") -> list[Any]:
    """The values of the signals among the dead letters; the text of what is none."""
    letters = [letter.envelope for letter in await engine.dead_letters(org=org, limit=10_000)]
    return [one["value"]["data"] if isinstance(one, dict) else "poison" for one in letters]


# --- when they go ---


async def test_D1_dead_letters_are_kept_for_their_window_and_not_longer(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR)
    await begin(engine)
    await send(engine, "early")
    await engine.clock.advance(minutes=30)
    await send(engine, "late")

    await engine.clock.advance(minutes=29)
    assert await find_letters(engine) == ["early", "late"]
    await engine.clock.advance(minutes=2)
    assert await find_letters(engine) == ["late"]
    await engine.clock.advance(minutes=30)
    assert await find_letters(engine) == []


async def test_D1_letters_that_belong_to_no_turn_are_removed_likewise(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR)
    await leave_poison(engine)

    await engine.clock.advance(minutes=59)
    assert await find_letters(engine) == ["poison"]
    await engine.clock.advance(minutes=2)
    assert await find_letters(engine) == []


async def test_D1_dead_letters_of_all_orgs_are_removed(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR)
    for org in ("ours", "theirs"):
        await begin(engine, org)
        await send(engine, "a", "b", org=org)

    await engine.clock.advance(minutes=61)

    assert [await find_letters(engine, org) for org in ("ours", "theirs")] == [[], []]


async def test_D1_dead_letters_stay_unless_their_removal_is_asked_for(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, retention=HOUR)
    await begin(engine)
    await send(engine, "kept")
    await (await engine.start(quick, workflow_id="done")).result()
    await engine.terminate("counting")

    await engine.clock.advance(hours=2)

    assert await engine.list() == []
    assert await find_letters(engine) == ["kept"]


async def test_D1_nothing_but_dead_letters_is_removed_with_them(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR)
    await begin(engine)
    await send(engine, "a")
    await (await engine.start(quick, workflow_id="done")).result()

    await engine.clock.advance(hours=2)

    assert await find_letters(engine) == []
    assert sorted(info.workflow_id for info in await engine.list()) == ["counting", "done"]
    await engine.signal_workflow("counting", "number", 7)
    assert await engine.handle("counting").result() == 7
    assert await engine.store.check() == []


async def test_D1_requeued_and_discarded_letters_do_not_hold_up_the_others(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR)
    await begin(engine)
    await send(engine, "requeued", "discarded", "left")
    requeued, discarded, _ = [letter.id for letter in await engine.dead_letters()]
    await engine.clock.advance(minutes=30)

    await engine.discard_dead_letters([discarded])
    await engine.requeue_dead_letters([requeued])  # it does not fit this time either
    await engine.settle()

    assert await find_letters(engine) == ["left", "requeued"]
    await engine.clock.advance(minutes=31)
    assert await find_letters(engine) == ["requeued"], "a new letter, with a time of its own"
    await engine.clock.advance(minutes=30)
    assert await find_letters(engine) == []


async def test_D1_all_letters_being_discarded_leaves_nothing_to_do(open_engine: OpenEngine, url: str) -> None:
    store = CountingStore(make_store(url))
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR, store=store)
    await begin(engine)
    await send(engine, "a", "b")
    await engine.discard_dead_letters([letter.id for letter in await engine.dead_letters()])

    await engine.clock.advance(hours=2)

    assert store.calls["purge_dead_letters"] == 0
    await send(engine, "c")
    await engine.clock.advance(minutes=61)
    assert await find_letters(engine) == []


async def test_D1_engine_that_opens_removes_the_letters_due_by_then(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR)
    await begin(engine)
    await send(engine, "a", "b")
    await engine.crash()
    await engine.clock.advance(hours=2)

    await engine.restart()
    await engine.settle()

    assert await find_letters(engine) == []


async def test_D1_letters_are_removed_in_small_batches(open_engine: OpenEngine, url: str) -> None:
    store = CountingStore(make_store(url))
    engine = await open_engine(*WORKFLOWS, dead_letter_retention=HOUR, store=store)
    count = 2 * BATCH + 7
    await leave_poison(engine, count)
    assert len(await find_letters(engine)) == count

    await engine.clock.advance(hours=1, minutes=2)

    assert await find_letters(engine) == []
    assert store.calls["purge_dead_letters"] == 3
    await engine.clock.advance(hours=3)
    assert store.calls["purge_dead_letters"] == 3, "nothing is polled"


async def test_D1_letter_that_is_written_while_it_is_asked_what_is_due_is_removed_too() -> None:
    has_read, may_answer = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        async def find_oldest_dead_letter(self) -> Instant | None:
            found = await super().find_oldest_dead_letter()
            has_read.set()
            await may_answer.wait()
            return found

    store = Slow(exclusive=True)
    async with TestEngine(store, workflows=WORKFLOWS, dead_letter_retention=HOUR, auto_advance=False) as engine:
        await has_read.wait()
        await begin(engine)
        await send(engine, "a")
        may_answer.set()
        await engine.clock.advance(minutes=61)

        assert await find_letters(engine) == []


# --- what it costs ---


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_N2_owner_of_a_store_without_letters_asks_nothing(open_engine: OpenEngine, url: str) -> None:
    store = CountingStore(make_store(url))
    engine = await open_engine(*WORKFLOWS, retention=HOUR, dead_letter_retention=HOUR, store=store)
    await begin(engine)
    await engine.settle()
    store.calls.clear()

    await engine.clock.advance(days=365)

    assert store.asked == {}


async def test_N2_node_without_letters_looks_once_in_a_window() -> None:
    store = CountingStore(MemoryStore(node="a"))
    options: Any = {"retention": HOUR, "dead_letter_retention": timedelta(hours=2)}
    async with TestEngine(
        cast("Store", store), workflows=WORKFLOWS, auto_advance=False, heartbeat=30, lease=90, **options
    ) as a:
        await a.settle()
        store.calls.clear()

        await a.clock.advance(hours=12, minutes=30)

        assert set(store.asked) == {"find_oldest_closed", "find_oldest_dead_letter"}
        assert store.calls["find_oldest_closed"] in (11, 12)
        assert store.calls["find_oldest_dead_letter"] in (5, 6)


# --- several nodes ---


async def open_nodes(nodes: Nodes, *names: str, **options: Any) -> list[TestEngine]:
    chosen = {"dead_letter_retention": HOUR} | options
    return [await nodes.open(name, WORKFLOWS, **chosen) for name in names]


async def hold_elsewhere(nodes: Nodes, lock: str, *, minutes: int) -> None:
    """Let time pass while another node holds a lock, and renews it as it works."""
    for _ in range(3 * minutes):
        nodes.database.tables.host_locks[lock] = ("another", nodes.clock.now() + LOCK_TIME)
        await nodes.clock.advance(seconds=20)


async def test_D1_one_node_at_a_time_removes_letters(nodes: Nodes) -> None:
    engines = await open_nodes(nodes, "a", "b", "c")
    await begin(engines[0])
    for number, engine in enumerate(engines * 5):
        await send(engine, f"{number}")
    await nodes.clock.advance(minutes=59)
    assert len(await find_letters(engines[0])) == 15

    await hold_elsewhere(nodes, LOCK, minutes=4)
    assert len(await find_letters(engines[0])) == 15, "another node is at it"
    await nodes.clock.advance(minutes=3)
    assert await find_letters(engines[0]) == []
    assert sorted(hooks.count_removed_letters(engine) for engine in engines) == [0, 0, 15]
    assert LOCK not in nodes.database.tables.host_locks


async def test_D1_letters_and_executions_are_removed_under_locks_of_their_own(nodes: Nodes) -> None:
    (a,) = await open_nodes(nodes, "a", retention=HOUR)
    await begin(a)
    await send(a, "letter")
    await (await a.start(quick)).result()
    await nodes.clock.advance(minutes=59)

    await hold_elsewhere(nodes, "retention", minutes=3)

    assert await find_letters(a) == []
    assert sorted(info.workflow for info in await a.list()) == ["counting", "quick"]


async def test_D1_another_node_goes_on_when_the_one_dies_that_removes_letters(nodes: Nodes) -> None:
    a, b = await open_nodes(nodes, "a", "b")
    await begin(a)
    await send(a, "1", "2")
    await send(b, "3")
    for name in ("a", "b"):
        nodes.faults[name] = lambda point, _node: FaultAction.FAIL if point == Point.PURGE_LOCK else FaultAction.NONE
    await nodes.clock.advance(hours=1, seconds=5)
    (holder, _) = nodes.database.tables.host_locks[LOCK]

    await nodes.kill(holder)
    nodes.faults.clear()
    await nodes.clock.advance(minutes=2)

    (other,) = nodes.engines.values()
    assert await find_letters(other) == []


async def test_D1_letters_of_a_dead_node_are_removed_by_another_in_time(nodes: Nodes) -> None:
    a, b = await open_nodes(nodes, "a", "b")
    await begin(a)
    await nodes.clock.advance(minutes=10)
    await send(a, "of the dead")
    await nodes.kill("a")

    await nodes.clock.advance(minutes=59)
    assert await find_letters(b) == ["of the dead"]
    await nodes.clock.advance(minutes=2)
    assert await find_letters(b) == []


async def test_D1_letters_of_a_dead_node_do_not_wait_for_those_that_came_later(nodes: Nodes) -> None:
    a, b = await open_nodes(nodes, "a", "b")
    await begin(a)
    await send(a, "of the dead")
    await nodes.kill("a")
    await nodes.clock.advance(minutes=45)
    await send(b, "later")

    await nodes.clock.advance(minutes=16)

    assert await find_letters(b) == ["later"]


async def test_D1_letters_of_a_node_without_the_option_are_removed_by_one_that_has_it(nodes: Nodes) -> None:
    (a,) = await open_nodes(nodes, "a", dead_letter_retention=None)
    (b,) = await open_nodes(nodes, "b")
    await nodes.clock.advance(minutes=90)
    await begin(a)
    await send(a, "letter")

    await nodes.clock.advance(minutes=59)
    assert await find_letters(b) == ["letter"]
    await nodes.clock.advance(minutes=2)
    assert await find_letters(b) == []


async def test_D3_what_closed_without_a_wake_up_is_removed_in_time(nodes: Nodes) -> None:
    (a,) = await open_nodes(nodes, "a")
    (b,) = await open_nodes(nodes, "b", retention=HOUR)
    nodes.faults["b"] = lambda point, _node: FaultAction.LOSE if point == Point.WAKE else FaultAction.NONE
    await (await a.start(quick)).result()

    await nodes.clock.advance(minutes=59)
    assert len(await b.list()) == 1
    await nodes.clock.advance(minutes=2)
    assert await b.list() == []


@pytest.mark.parametrize("point", [Point.READ, Point.HOST_LOCK, Point.PURGE_LOCK, Point.PURGE_COMMIT])
async def test_D1_removing_letters_goes_on_after_an_outage(
    nodes: Nodes, point: Point, caplog: pytest.LogCaptureFixture
) -> None:
    (a,) = await open_nodes(nodes, "a")
    await begin(a)
    await send(a, "letter")
    await nodes.clock.advance(minutes=59)
    nodes.faults["a"] = lambda at, _node: FaultAction.FAIL if at == point else FaultAction.NONE
    await nodes.clock.advance(minutes=2)
    nodes.faults.clear()
    assert await find_letters(a) == ["letter"]
    assert "node a could not remove dead letters past their retention, and tries again in 30 s" in caplog.text

    await nodes.clock.advance(minutes=1)

    assert await find_letters(a) == []


@pytest.mark.parametrize("action", [FaultAction.APPLIED_UNKNOWN, FaultAction.LOST_UNKNOWN])
async def test_D1_removing_letters_goes_on_when_its_outcome_is_unknown(nodes: Nodes, action: FaultAction) -> None:
    (a,) = await open_nodes(nodes, "a")
    await begin(a)
    await send(a, "first")
    nodes.faults["a"] = once(Point.PURGE_COMMIT, action)
    await nodes.clock.advance(minutes=62)
    assert await find_letters(a) == []

    await send(a, "second")
    await nodes.clock.advance(minutes=62)

    assert await find_letters(a) == []


# --- in real time ---


async def test_D1_letters_on_a_database_are_removed(postgres_url: str) -> None:
    async with Engine(postgres_url, workflows=WORKFLOWS, dead_letter_retention=0.2) as engine:
        await begin(engine)
        await send(engine, *map(str, range(20)))

        async def are_gone() -> bool:
            return await find_letters(engine) == []

        await eventually(are_gone)
        assert len(await engine.list()) == 1
        assert await engine.store.check() == []


# --- bad input ---


@pytest.mark.parametrize("value", [0, -1, "30d", float("nan"), timedelta(0), timedelta(days=-1), True, 1e12])
def test_bad_retention_of_dead_letters_is_refused(value: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=r"^Expected dead_letter_retention=… to be a timedelta or a positive "):
        Engine("memory://", dead_letter_retention=value)


@pytest.mark.parametrize("value", [3600, 3600.0, HOUR])
def test_retention_of_dead_letters_is_given_in_seconds_or_as_a_timedelta(value: Any) -> None:
    assert Engine("memory://", dead_letter_retention=value).config.dead_letter_retention == 3600.0
