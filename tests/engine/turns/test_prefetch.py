"""Long histories are replayed before their executions are locked; what happened meanwhile is caught up with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Context, Retry, Status, activity, workflow
from holdfast.core import payloads
from holdfast.core.envelopes import Signal
from holdfast.engine.engine import Engine
from holdfast.engine.handles import WorkflowHandle
from holdfast.engine.requests import Request
from holdfast.engine.turns import prefetch
from holdfast.engine.turns.batch import Batch
from holdfast.engine.turns.claims import BatchOrder, Claimer, Claims
from holdfast.engine.use_cases.transactional_outbox import TransactionWork
from holdfast.errors import StoreUnavailable
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import HistoryRow
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.engine.support.held_activities import Door
from tests.eventually import eventually

WORDS = [str(number) for number in range(10)]
STARTS: list[str] = []


@workflow
async def collect(ctx: Context) -> list[str]:
    """Takes words until one is 'end'."""
    STARTS.append(ctx.info.workflow_id)
    words: list[str] = []
    while not words or words[-1] != "end":
        words.append(await ctx.wait_for_signal("word", str))
    return words


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    STARTS.clear()
    monkeypatch.setattr(prefetch, "SLICE", 3)


class SlowHistory:
    """Lets the first who reads a history outside of a batch wait until `go` is set."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self._error = error
        self._read: Callable[..., Any] = engine.store.load_history
        monkeypatch.setattr(engine.store, "load_history", self._read_slowly)

    async def _read_slowly(self, *which: Any) -> list[HistoryRow]:
        found: list[HistoryRow] = await self._read(*which)
        if not self.asked.is_set():
            self.asked.set()
            await self.go.wait()
            if self._error is not None:
                raise self._error
        return found


async def make_cold(engine: Engine, workflow_id: str) -> None:
    """Another takes its place in memory."""
    handle = await engine.start(collect, workflow_id=f"instead of {workflow_id}")
    await handle.signal("word", "x")


async def make_long(engine: Engine) -> WorkflowHandle[list[str]]:
    """An execution that took ten words and is not in memory, if that has room for one program only."""
    handle = await engine.start(collect, workflow_id="long")
    for word in WORDS:
        await handle.signal("word", word)
    await make_cold(engine, "long")
    return handle


# --- catching up ---


async def test_program_in_memory_catches_up_with_what_another_node_did(cluster: Cluster) -> None:
    first = await cluster.open("first", collect)
    second = await cluster.open("second", collect)
    handle = await first.start(collect, workflow_id="shared")
    for round_number in range(3):
        await first.handle("shared").signal("word", f"a{round_number}")
        await second.handle("shared").signal("word", f"b{round_number}")
    await first.handle("shared").signal("word", "end")

    assert await handle.result() == ["a0", "b0", "a1", "b1", "a2", "b2", "end"]
    assert STARTS == ["shared", "shared"], "once on each node"


async def test_open_activity_of_another_node_is_known_after_catching_up(cluster: Cluster) -> None:
    runs: list[int] = []

    @activity(retry=Retry(initial=0.01, maximum=0.01, jitter=0))
    async def fail_once(number: int) -> int:
        runs.append(number)
        if runs.count(number) == 1:
            raise ValueError("not yet")
        return number

    @workflow
    async def order(ctx: Context) -> list[int]:
        STARTS.append("order")
        results = []
        for number in range(4):
            await ctx.wait_for_signal("go")
            results.append(await ctx.run(fail_once, number))
        return results

    first = await cluster.open("first", order, fail_once)
    second = await cluster.open("second", order, fail_once)
    handle = await first.start(order, workflow_id="shared")
    for number in range(4):
        await (first if number % 2 else second).handle("shared").signal("go")
        await eventually(lambda: len(runs) == 2 * number + 2)  # noqa: B023 - asked before the next number
    assert await handle.result() == [0, 1, 2, 3]
    assert len(STARTS) == 2, "once on each node"


# --- ahead ---


async def test_long_history_is_replayed_without_holding_its_execution(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await cluster.open("first", collect, max_live_programs=1, replay_ahead=5)
    second = await cluster.open("second", collect, replay_ahead=1_000)
    handle = await make_long(first)
    slow = SlowHistory(first, monkeypatch)
    signalling = asyncio.ensure_future(first.handle("long").signal("word", "by the first"))
    await slow.asked.wait()

    await asyncio.wait_for(second.handle("long").signal("word", "by the second"), 30)
    assert not signalling.done()
    slow.go.set()
    await signalling
    await handle.signal("word", "end")

    assert await handle.result() == [*WORDS, "by the second", "by the first", "end"]
    assert STARTS.count("long") == 3, "at first, on the other node, and ahead of the lock: never under it"


async def test_what_arrives_during_the_replay_waits_for_it_in_order(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    slow = SlowHistory(engine, monkeypatch)
    signals = [asyncio.ensure_future(handle.signal("word", word)) for word in ("one", "two")]
    await slow.asked.wait()
    signals += [asyncio.ensure_future(handle.signal("word", word)) for word in ("three", "end")]
    bystander = await engine.start(collect, workflow_id="bystander")
    await bystander.signal("word", "end")

    assert await bystander.result() == ["end"], "others go on meanwhile"
    assert not any(one.done() for one in signals)
    assert not engine.is_at_rest()
    slow.go.set()
    await asyncio.gather(*signals)
    assert await handle.result() == [*WORDS, "one", "two", "three", "end"]
    assert STARTS.count("long") == 2


async def test_due_timer_of_a_long_history_fires_after_the_replay(open_engine: OpenEngine) -> None:
    @workflow
    async def count(ctx: Context) -> int:
        for _ in range(50):
            await ctx.sleep(60)
        return 50

    engine = await open_engine(count, collect, replay_ahead=5, max_live_programs=1)
    handle = await engine.start(count)
    for number in range(50):
        await make_cold(engine, str(number))
        await engine.clock.advance(60)

    assert await handle.result() == 50
    assert (await handle.history()).kinds.count("TimerFired") == 50


async def test_replay_ahead_that_fails_is_done_under_the_lock(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    SlowHistory(engine, monkeypatch, StoreUnavailable("Expected an answer, but the line is cut.")).go.set()
    await handle.signal("word", "end")

    assert (await handle.result())[-1] == "end"


async def test_shutdown_during_the_replay_still_answers(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    slow = SlowHistory(engine, monkeypatch)
    signalling = asyncio.ensure_future(handle.signal("word", "last"))
    await slow.asked.wait()
    await engine.shutdown()

    assert (await signalling).signal_event_sequence is not None


async def test_crash_during_the_replay_loses_nothing_that_was_answered(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    slow = SlowHistory(engine, monkeypatch)
    signalling = asyncio.ensure_future(handle.signal("word", "lost"))
    await slow.asked.wait()
    await engine.restart()
    await asyncio.wait([signalling])
    again = engine.handle("long")
    await again.signal("word", "end")

    assert signalling.exception() is not None
    assert await again.result() == [*WORDS, "end"]


async def test_long_history_that_no_longer_fits_is_blocked(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect, replay_ahead=5)
    await make_long(engine)

    @workflow(name="collect")
    async def other(ctx: Context) -> None:
        await ctx.sleep(5)

    await engine.restart(workflows=[other])
    await engine.handle("long").signal("word", "end")
    await engine.settle()

    assert (await engine.handle("long").status()).status is Status.BLOCKED


async def test_each_cold_load_goes_ahead(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    reads = count_calls(engine.store, "load_history", monkeypatch)
    for number in range(4):
        await handle.signal("word", f"again {number}")
        await make_cold(engine, f"{number}")

    assert len(reads) == 4


async def test_program_that_is_far_behind_goes_ahead_too(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await cluster.open("first", collect, replay_ahead=5)
    second = await cluster.open("second", collect, replay_ahead=1_000)
    await first.start(collect, workflow_id="shared")
    for word in WORDS:
        await second.handle("shared").signal("word", word)
    reads = count_calls(first.store, "load_history", monkeypatch)
    await first.handle("shared").signal("word", "end")

    assert await first.handle("shared").result() == [*WORDS, "end"]
    assert len(reads) == 1


async def test_many_long_histories_are_not_all_read_at_once(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, max_live_programs=5, replay_ahead=5)
    handles = [await engine.start(collect, workflow_id=f"long {number}") for number in range(30)]
    for word in WORDS:
        await asyncio.gather(*(handle.signal("word", word) for handle in handles))
    read, under_way, most = engine.store.load_history, 0, 0

    async def read_slowly(*which: Any) -> list[HistoryRow]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await eventually(lambda: most >= prefetch.MOST_AT_ONCE, "as many as may be to be read")
        await asyncio.sleep(0.01)  # one more would come by now
        under_way -= 1
        return await read(*which)

    monkeypatch.setattr(engine.store, "load_history", read_slowly)
    await asyncio.gather(*(handle.signal("word", "end") for handle in handles))

    assert [await handle.result() for handle in handles] == [[*WORDS, "end"]] * 30
    assert most == prefetch.MOST_AT_ONCE


async def test_long_history_whose_id_another_takes_is_terminated_at_once(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    await make_long(engine)
    reads = count_calls(engine.store, "load_history", monkeypatch)
    batches = count_calls(Batch, "run", monkeypatch)
    await engine.start(collect, workflow_id="long", on_open="terminate_existing")

    assert sorted(one.status for one in await engine.list(workflow_id="long")) == [Status.SUSPENDED, Status.TERMINATED]
    assert not reads
    assert len(batches) < 5


@pytest.mark.parametrize("passes", [0, 1, 2, 3, 4])
async def test_shutdown_that_meets_a_replay_and_a_batch_answers_both(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, passes: int
) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    slow = SlowHistory(engine, monkeypatch)
    signals = [asyncio.ensure_future(handle.signal("word", "last"))]
    await slow.asked.wait()
    signals.append(asyncio.ensure_future(engine.handle("instead of long").signal("word", "y")))
    for _ in range(passes):
        await asyncio.sleep(0)
    await engine.shutdown()
    done, _ = await asyncio.wait(signals, timeout=30)

    assert len(done) == 2


async def test_result_is_not_taken_by_a_program_that_was_replayed_too_early(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door()

    @activity
    async def work() -> str:
        await door.wait()
        return "done"

    @workflow
    async def order(ctx: Context) -> str:
        await ctx.wait_for_signal("go")
        return await ctx.run(work)

    engine = await cluster.open("first", order, work)
    handle = await engine.start(order, workflow_id="order")
    execution_id = (await handle.status()).execution_id
    early = await hooks.replay_early(engine, execution_id)
    assert early is not None
    await handle.signal("go")
    await eventually(lambda: door.inside)
    claim = Claimer.claim
    met: list[Claimer] = []

    async def claim_then_drop(claimer: Claimer, claims: Claims, order: BatchOrder) -> None:
        await claim(claimer, claims, order)
        if not met and execution_id in claims.held:
            met.append(claimer)
            hooks.drop_program(engine, execution_id)  # others made it go, and a replay that began long ago comes to its end
            await hooks.keep_replayed(engine, early)

    monkeypatch.setattr(Claimer, "claim", claim_then_drop)
    door.open()

    assert await asyncio.wait_for(handle.result(), 30) == "done"
    assert met


async def test_program_that_could_not_be_kept_is_closed(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    made = hooks.note_replayed(engine, monkeypatch)
    find, calls = engine.store.find_execution, []

    async def find_once(*which: Any) -> Any:
        calls.append(which)
        if len(calls) == 2:
            raise StoreUnavailable("Expected an answer, but the line is cut.")
        return await find(*which)

    monkeypatch.setattr(engine.store, "find_execution", find_once)
    hooks.submit(engine, Request("default", Signal(name="word", value=payloads.encode("x", "x")), workflow_id="long"))
    await eventually(lambda: len(calls) >= 2)
    await engine.settle()

    assert len(made) == 1
    assert made[0].loop.dead
    assert (await handle.history()).kinds.count("SignalReceived") == len(WORDS) + 1


async def test_slow_replay_is_reported(open_engine: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    is_slow = False

    @workflow
    async def heavy(ctx: Context) -> None:
        while True:
            await ctx.wait_for_signal("word", str)
            if is_slow:
                linger()

    def linger() -> None:
        """Take longer than `slow_turn`, and on a busy machine until the watchdog has got round to it."""
        for _ in range(20):
            threading.Event().wait(0.05)
            if "a batch has been running" in caplog.text:
                break

    engine = await open_engine(heavy, collect, max_live_programs=1, replay_ahead=5, slow_turn=0.05)
    handle = await engine.start(heavy)
    for word in WORDS:
        await handle.signal("word", word)
    await make_cold(engine, "heavy")
    is_slow = True
    await handle.signal("word", "last")

    assert "a batch has been running" in caplog.text


# --- what waits under a workflow id ---


@pytest.mark.parametrize("why", ["cold", "blocked"])
async def test_signal_by_workflow_id_keeps_nobody_busy_while_it_waits(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    engine = await open_engine(collect, max_live_programs=1, replay_ahead=5)
    handle = await make_long(engine)
    if why == "blocked":

        @workflow(name="collect")
        async def other(ctx: Context) -> None:
            await ctx.sleep(5)

        await engine.restart(workflows=[other])
        handle = engine.handle("long")
        await handle.signal("word", "before")
        await engine.settle()
    slow = SlowHistory(engine, monkeypatch)
    batches = count_calls(Batch, "run", monkeypatch)
    await signal_in_transaction(engine, "one", "two")
    if why == "cold":
        await slow.asked.wait()
    await asyncio.sleep(0.3)
    assert len(batches) < 10

    if why == "blocked":
        await engine.restart(workflows=[collect])
        handle = engine.handle("long")
    slow.go.set()
    await handle.signal("word", "end")
    between = ["before"] if why == "blocked" else []
    assert await handle.result() == [*WORDS, *between, "one", "two", "end"]


async def signal_in_transaction(engine: Engine, *words: str) -> None:
    """Signals that go by the inbox, under the workflow id."""

    def put(_connection: Any, work: TransactionWork) -> None:
        for word in words:
            work.signal("long", "word", word)

    async def put_async(connection: Any, work: TransactionWork) -> None:
        put(connection, work)

    await engine.transaction(put_async if isinstance(engine.store, PostgresStore) else put)


def count_calls(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that grows with each call of an async method."""
    method, calls = getattr(owner, name), []

    async def call(*arguments: Any) -> Any:
        calls.append(arguments)
        return await method(*arguments)

    monkeypatch.setattr(owner, name, call)
    return calls
