"""N2: a node's heartbeat is its lease. It goes on while the engine is busy, and ends with the engine."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, Retry, activity, activity_info, workflow
from holdfast.core.instants import SECOND
from holdfast.engine.nodes.heartbeat import Lease, NodeAnnouncement
from holdfast.engine.nodes.roster import NodeDetails
from holdfast.errors import InvalidConfiguration, StoreUnavailable
from holdfast.store.memory.database import MemoryDatabase
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.memory.store import MemoryStore
from holdfast.store.rows import NodeRow
from holdfast.testing import VirtualClock
from tests.engine import hooks
from tests.engine.nodes.heartbeat_store import LineStore
from tests.engine.support.held_activities import Door
from tests.eventually import PATIENCE, eventually
from tests.postgres.server import PostgresServer
from tests.rules.world import Nodes

QUICK: dict[str, Any] = {"heartbeat": 0.05, "lease": 0.4}
"""A twentieth of the usual times."""


EARLIER: set[threading.Thread] = set()
"""Those that were alive before a test began: of an engine that another test failed to close."""


def find_threads() -> list[str]:
    """The threads of heartbeats that are alive."""
    return [thread.name for thread in set(threading.enumerate()) - EARLIER if thread.name == "holdfast-heartbeat"]


@pytest.fixture(autouse=True)
async def no_thread_is_left() -> AsyncIterator[None]:
    EARLIER.clear()
    EARLIER.update(threading.enumerate())
    yield
    assert find_threads() == []


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    await nodes.close()


# --- a lease ---


class Beating:
    """A lease on a store in memory, renewed whenever a test says so."""

    def __init__(self) -> None:
        self.now = 1_000 * SECOND
        self.store = MemoryStore()
        self.lease = Lease("a", 6 * SECOND, NodeAnnouncement(self.make_row), lambda: 0)

    def make_row(self, beat: int) -> NodeRow:
        return NodeRow("a", self.now, 0, details=msgspec.json.encode(NodeDetails(token="own", beat=beat)))

    async def renew(self, *, after: float) -> bool:
        """Whether it is steady, when it is renewed after so many seconds."""
        self.now += round(after * SECOND)
        return (await self.lease.renew(self.store)).is_steady


@pytest.fixture
async def beating() -> AsyncIterator[Beating]:
    beating = Beating()
    await beating.store.open()
    yield beating
    await beating.store.close()


async def test_lease_is_steady_once_it_was_renewed_for_a_whole_period(beating: Beating) -> None:
    assert [await beating.renew(after=2) for _ in range(5)] == [False, False, False, True, True]


async def test_lease_that_was_not_renewed_once_is_not_steady_for_another_period(beating: Beating) -> None:
    for _ in range(4):
        await beating.renew(after=2)

    beating.lease.miss(StoreUnavailable("Expected to beat, but no."))

    assert [await beating.renew(after=2) for _ in range(4)] == [False, False, False, True]


async def test_lease_that_ran_out_in_silence_is_not_steady_for_another_period(
    beating: Beating, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        await beating.renew(after=2)

    assert [await beating.renew(after=after) for after in (6, 2, 2, 2)] == [False, False, False, True]
    assert caplog.messages == [
        "node a sent no heartbeat for 6.0 s and lost its lease; it goes on, and results of what others took over are refused"
    ]


async def test_T6_lease_is_not_steady_for_a_period_after_the_stores_clock_was_set_back(beating: Beating) -> None:
    for _ in range(4):
        await beating.renew(after=2)

    assert [await beating.renew(after=after) for after in (-3600, 2, 2, 2)] == [False, False, False, True]


async def test_outage_is_told_once_and_so_is_its_end(beating: Beating, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    await beating.renew(after=0)

    for _ in range(10):
        beating.lease.miss(StoreUnavailable("Expected to beat, but no."))
    await beating.renew(after=2)
    await beating.renew(after=2)

    assert caplog.messages == [
        "node a cannot renew its lease, and keeps trying: Expected to beat, but no.",
        "node a renews its lease again",
    ]


@pytest.mark.parametrize("options", [{"heartbeat": 4}, {"lease": 3}, {"heartbeat": 2.0, "lease": 3.9}])
def test_lease_must_last_for_two_heartbeats(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match=r"^Expected lease=… to be at least twice heartbeat=…, but they are "):
        Engine("memory://", **options)


# --- from the loop ---


async def test_heartbeats_in_virtual_time_need_no_thread(nodes: Nodes) -> None:
    await nodes.open("a")
    row = nodes.database.tables.nodes["a"]

    assert find_threads() == []
    await nodes.clock.advance(seconds=60)
    assert nodes.database.tables.nodes["a"].seen_at >= row.seen_at + 58 * SECOND


async def test_engine_that_cannot_send_its_first_heartbeat_does_not_open(nodes: Nodes) -> None:
    nodes.faults["a"] = lambda point, _node: FaultAction.FAIL if point == Point.BEAT else FaultAction.NONE

    with pytest.raises(StoreUnavailable):
        await nodes.open("a")
    nodes.engines.clear()


async def test_clock_that_a_user_gave_drives_the_heartbeat_though_there_is_a_line() -> None:
    store = LineStore(MemoryDatabase(), "a")
    async with Engine(store, clock=VirtualClock()):
        assert store.lines == []


# --- from a thread ---


async def test_heartbeats_come_from_a_thread_where_the_store_has_a_line() -> None:
    store = LineStore(MemoryDatabase(), "a")
    async with Engine(store, node="a", **QUICK):
        await eventually(lambda: store.beats > 3)

        assert store.threads == {"holdfast-heartbeat"}
        assert find_threads() == ["holdfast-heartbeat"]
    assert [line.is_closed for line in store.lines] == [True]
    assert store.database.tables.nodes["a"].has_left


async def test_first_heartbeat_comes_before_anything_else() -> None:
    store = LineStore(MemoryDatabase(), "a")
    store.fails = lambda: True
    engine = Engine(store, node="a", **QUICK)

    with pytest.raises(StoreUnavailable, match="it is away"):
        await engine.open()

    assert engine.recovery_report is None
    assert [line.is_closed for line in store.lines] == [True]


async def test_heartbeats_that_fail_are_tried_again_for_ever_over_new_lines(caplog: pytest.LogCaptureFixture) -> None:
    store = LineStore(MemoryDatabase(), "a")
    async with Engine(store, node="a", **QUICK):
        asked = store.asked
        store.fails = lambda: True
        await eventually(lambda: store.asked > asked + 5)
        store.fails = lambda: False
        beats = store.beats
        await eventually(lambda: store.beats > beats + 2)

    told = [message for message in caplog.messages if "keeps trying" in message]
    assert len(told) == 1, "an outage is told once"
    assert len(store.lines) > 5
    assert all(line.is_closed for line in store.lines)


async def test_heartbeat_that_is_not_answered_is_given_up_and_sent_again() -> None:
    store = LineStore(MemoryDatabase(), "a")
    async with Engine(store, node="a", **QUICK):
        store.stands_still = lambda: True
        lines = len(store.lines)
        await eventually(lambda: len(store.lines) > lines)
        store.stands_still = lambda: False
        beats = store.beats
        await eventually(lambda: store.beats > beats + 2)


async def test_engine_ends_while_a_heartbeat_is_not_answered() -> None:
    store = LineStore(MemoryDatabase(), "a")
    engine = Engine(store, node="a", heartbeat=0.05, lease=1_000)  # it would be given up after half of the lease
    await engine.open()
    asked = store.asked
    store.stands_still = lambda: True
    await eventually(lambda: store.asked > asked)

    await asyncio.wait_for(engine.shutdown(), 60)

    assert find_threads() == [], "it was not left behind"


async def test_heartbeat_that_is_under_way_does_not_renew_a_lease_that_is_given_up() -> None:
    store = LineStore(MemoryDatabase(), "a")
    engine = Engine(store, node="a", heartbeat=0.05, lease=1_000)
    await engine.open()
    asked = store.asked
    store.stands_still = lambda: True
    await eventually(lambda: store.asked > asked)
    beats = store.beats

    giving_up = asyncio.create_task(asyncio.to_thread(hooks.give_up_lease, engine, PATIENCE))
    await asyncio.sleep(
        0.05
    )  # long enough for the lease to be given up before the heartbeat is answered, were that possible
    store.stands_still = lambda: False
    await eventually(lambda: store.beats > beats)
    await giving_up

    assert store.database.tables.nodes["a"].seen_at == 0
    await engine.shutdown()


async def test_busy_loop_keeps_its_lease_and_hears_only_the_newest_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    store = LineStore(MemoryDatabase(), "a")
    heard: list[int] = []

    engine = Engine(store, node="a", **QUICK)
    hooks.watch_heartbeats(engine, monkeypatch, lambda: heard.append(store.beats))
    async with engine:
        await eventually(lambda: store.beats > 3)
        await asyncio.sleep(0)
        before, beats, began = len(heard), store.beats, time.time_ns() // 1000
        keep_busy(lambda: store.beats >= beats + 8)
        row = store.database.tables.nodes["a"]
        await eventually(lambda: len(heard) > before)

        assert heard[before] >= beats + 8, "what was heard meanwhile is old"
        assert row.seen_at > began, "it was renewed meanwhile"


def keep_busy(until_so: Callable[[], bool]) -> None:
    """Hold up the loop and compute, as code does that forgot to await."""
    give_up = time.monotonic() + PATIENCE
    while not until_so():
        sum(range(1_000))
        assert time.monotonic() < give_up


# --- on a database ---


ATTEMPTS: list[tuple[str, int]] = []
DOOR = Door()


@activity(retry=Retry(max_attempts=1))
async def slow() -> int:
    info = activity_info()
    ATTEMPTS.append((info.workflow_id, info.attempt))
    await DOOR.wait()
    return info.attempt


@workflow
async def order(ctx: Context) -> int:
    return await ctx.run(slow)


@pytest.fixture(autouse=True)
def _forget() -> None:
    ATTEMPTS.clear()
    DOOR.shut()


async def test_N2_node_whose_loop_is_busy_for_longer_than_its_lease_keeps_its_work(postgres_url: str) -> None:
    quick: dict[str, Any] = {"heartbeat": 0.2, "lease": 3.0}  # more than a busy machine stands still
    async with Engine(postgres_url, workflows=[order], activities=[slow], node="busy", **quick) as busy:
        handle = await busy.start(order, workflow_id="order")
        await eventually(lambda: ATTEMPTS)
        watcher = Watcher(postgres_url, quick)
        await asyncio.to_thread(watcher.begin)

        keep_busy(lambda: watcher.seconds > 5.5)  # the lease, and a time in which the watcher would see that it ran out
        DOOR.open()

        assert await handle.result() == 1
        await asyncio.to_thread(watcher.end)
    assert ATTEMPTS == [("order", 1)]
    assert watcher.states == {"alive"}


class Watcher:
    """Another node, in a thread of its own, that would take over."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self._url = url
        self._options = options
        self._is_open = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()))
        self._began = 0.0
        self.states: set[str] = set()

    @property
    def seconds(self) -> float:
        """For how long it has watched."""
        return time.monotonic() - self._began

    def begin(self) -> None:
        self._thread.start()
        assert self._is_open.wait(PATIENCE)
        self._began = time.monotonic()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE)

    async def _watch(self) -> None:
        async with Engine(self._url, workflows=[order], activities=[slow], node="watcher", **self._options) as engine:
            self._is_open.set()
            while not self._is_over.is_set():
                (state,) = [node.state.value for node in await engine.nodes() if node.node == "busy"]
                self.states.add(state)
                await asyncio.sleep(0.01)


async def test_N1_heartbeat_reconnects_by_itself_when_the_database_is_back(
    own_postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with Engine(own_postgres.url(schema="hf_beats"), node="a", heartbeat=0.1, lease=0.5) as engine:
        own_postgres.stop("immediate")
        began = engine.clock.now()
        await eventually(lambda: any("cannot renew its lease" in message for message in caplog.messages))
        await eventually(lambda: is_late(engine.clock.now(), began))
        own_postgres.start()

        await eventually(lambda: is_alive(engine))


def is_late(now: int, since: int) -> bool:
    return now - since > SECOND


async def is_alive(engine: Engine) -> bool:
    (node,) = await engine.nodes()
    return node.state == "alive"


async def test_engine_without_its_database_leaves_no_thread(own_postgres: PostgresServer) -> None:
    url = own_postgres.url(schema="hf_none")
    own_postgres.stop()

    with pytest.raises(StoreUnavailable):
        await Engine(url).open()
