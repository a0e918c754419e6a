"""N2: on a shared store time is the store's, whatever a node's own clock shows."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast import Context, Engine, workflow
from holdfast.core.instants import SECOND, from_datetime
from holdfast.engine.clock import StoreClock, SystemClock
from holdfast.store.memory.store import MemoryStore
from tests.eventually import eventually
from tests.postgres.access import connect

MINUTE = 60 * SECOND


class Machine:
    """A machine's clocks: one that people set, one that only counts. In nanoseconds, as the system gives them."""

    def __init__(self, wall: int = 0, steady: int = 0) -> None:
        self.wall = wall
        self.steady = steady

    def make_clock(self) -> StoreClock:
        return StoreClock(wall=lambda: self.wall * 1000, steady=lambda: self.steady * 1000)

    def pass_time(self, micros: int) -> None:
        self.wall += micros
        self.steady += micros


# --- the clock alone ---


def test_clock_shows_the_machines_time_until_the_store_is_heard() -> None:
    clock = Machine(wall=5 * MINUTE, steady=100).make_clock()

    assert clock.now() == 5 * MINUTE


def test_clock_shows_the_stores_time_from_the_first_answer_on() -> None:
    machine = Machine(wall=5 * MINUTE, steady=100)
    clock = machine.make_clock()

    machine.pass_time(20)
    clock.synchronise(asked=100, answered=120, store_time=1_000)

    assert clock.now() == 1_010, "the answer is taken to be from the middle of the way"
    machine.pass_time(500)
    assert clock.now() == 1_510


def test_clock_does_not_follow_when_the_machines_time_is_set() -> None:
    machine = Machine(wall=0, steady=0)
    clock = machine.make_clock()
    clock.synchronise(asked=0, answered=0, store_time=1_000)

    machine.wall += 90 * MINUTE

    assert clock.now() == 1_000


def test_correction_that_the_way_may_explain_is_ignored() -> None:
    machine = Machine(steady=100)
    clock = machine.make_clock()
    clock.synchronise(asked=100, answered=100, store_time=1_000)

    clock.synchronise(asked=100, answered=120, store_time=1_018)  # by 8 more than the middle of the way
    assert clock.now() == 1_000

    clock.synchronise(asked=100, answered=120, store_time=1_021)  # by 11: more than half of the way
    assert clock.now() == 1_011


def test_T6_clock_follows_when_the_stores_clock_is_set_back() -> None:
    machine = Machine()
    clock = machine.make_clock()
    clock.synchronise(asked=0, answered=0, store_time=1_000)
    machine.pass_time(100)
    seen = [clock.now()]

    clock.synchronise(asked=100, answered=100, store_time=1_040)  # the store's clock was set back by 60
    for _ in range(4):
        seen.append(clock.now())
        machine.pass_time(30)

    assert seen == [1_100, 1_040, 1_070, 1_100, 1_130], "it does not stand still: what is to last a second lasts a second"


def test_engine_on_a_store_of_its_own_has_the_machines_time() -> None:
    assert isinstance(Engine("memory://").clock, SystemClock)
    assert isinstance(Engine(MemoryStore()).clock, StoreClock)


# --- nodes whose clocks are wrong ---


@workflow
async def napping(ctx: Context, seconds: float) -> float:
    before = ctx.now()
    await ctx.sleep(seconds)
    return (ctx.now() - before).total_seconds()


def off_by(minutes: float) -> Callable[[], int]:
    return lambda: time.time_ns() + round(minutes * MINUTE) * 1000


def read_server_time(url: str) -> int:
    with connect(url) as connection:
        (now,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
    assert now is not None
    return from_datetime(now)


async def has_started_about(engine: Engine, when: int) -> bool:
    (node,) = await engine.nodes()
    return abs(from_datetime(node.started_at) - when) < 10 * SECOND


class NotingClock(StoreClock):
    """Notes the longest way of a question to the store and its answer: the clock may be off by as much, and no more."""

    longest = 0

    def synchronise(self, asked: int, answered: int, store_time: int) -> None:
        self.longest = max(self.longest, answered - asked)
        super().synchronise(asked, answered, store_time)


async def test_N2_node_whose_clock_is_wrong_works_by_the_databases_time(postgres_url: str) -> None:
    clock = NotingClock(wall=off_by(-7))
    async with Engine(postgres_url, workflows=[napping], clock=clock) as engine:
        began = read_server_time(postgres_url)
        handle = await engine.start(napping, 0.2)
        assert 0.2 <= await handle.result() < 60
        ended = read_server_time(postgres_url)
        info = await handle.status()
        (node,) = await engine.nodes()
        await eventually(lambda: has_started_about(engine, began))

    assert info.closed_at is not None
    slack = clock.longest
    assert slack < MINUTE, "much less than the clock is wrong"
    assert began - slack <= from_datetime(info.created_at) <= from_datetime(info.closed_at) <= ended + slack
    assert node.state == "alive"


async def test_N2_timers_are_due_at_the_same_moment_for_nodes_whose_clocks_differ(postgres_url: str) -> None:
    slow = Engine(postgres_url, workflows=[napping], clock=StoreClock(wall=off_by(-10)), node="slow")
    fast = Engine(postgres_url, workflows=[napping], clock=StoreClock(wall=off_by(+10)), node="fast")
    async with slow, fast:
        handles = [await engine.start(napping, 0.3) for engine in (slow, fast) for _ in range(5)]
        naps = [await handle.result() for handle in handles]
        nodes = await slow.nodes()

    assert all(0.3 <= nap < 60 for nap in naps), naps
    assert [node.state for node in nodes] == ["alive", "alive"]
