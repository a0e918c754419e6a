"""D2, N1, X2: turns that the store refuses with errors of an outage. Others go on, poison is found, outages block nobody."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from holdfast import Context, Retry, Status, workflow
from holdfast.engine.rows import from_row
from holdfast.engine.turns.resting import CUTS_OF_A_TRY
from holdfast.errors import HoldfastError, StoreFault, StoreUnavailable
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.failing_writes import WritesFail
from tests.eventually import PATIENCE, eventually
from tests.postgres.access import connect

NAMES = [f"w{number}" for number in range(20)]
POISON = "w7"
INNOCENTS = [name for name in NAMES if name != POISON]


def make_fault(fault: StoreFault) -> Callable[[], Exception]:
    return lambda: StoreUnavailable("Expected to write, but this is refused for now. Try again.", fault=fault)


@workflow
async def nap(ctx: Context) -> str:
    await ctx.sleep(10)
    return "rested"


@workflow
async def collect(ctx: Context) -> list[str]:
    words: list[str] = []
    while not words or words[-1] != "end":
        words.append(await ctx.wait_for_signal("word", str))
    return words


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "holdfast")


async def start_all(engine: TestEngine, kind: Any) -> None:
    for name in NAMES:
        await engine.start(kind, workflow_id=name)
    await engine.settle()


async def have_status(engine: TestEngine, names: list[str], status: Status) -> bool:
    """Whether all have a status; time goes on meanwhile, so that pauses end."""
    await engine.clock.advance(seconds=0.2)
    return all([(await engine.query_status(name)).status is status for name in names])


async def is_blocked(engine: TestEngine) -> bool:
    await engine.clock.advance(seconds=10)
    return (await engine.query_status(POISON)).status is Status.BLOCKED


# --- one turn that cannot be committed ---


@pytest.mark.parametrize("fault", StoreFault)
async def test_D2_turn_that_the_store_refuses_does_not_stop_the_others(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, fault: StoreFault
) -> None:
    engine = await open_engine(nap)
    await start_all(engine, nap)
    failing = WritesFail(engine, monkeypatch, make_fault(fault))
    failing.workflow_ids.add(POISON)

    await engine.clock.advance(seconds=10)
    await eventually(lambda: have_status(engine, INNOCENTS, Status.COMPLETED))

    assert max(failing.failed) > 1, "it failed together with others first"
    assert (await engine.query_status(POISON)).status is not Status.COMPLETED
    failed = len(failing.failed)
    other = await engine.start(nap, workflow_id="later")
    await engine.clock.advance(seconds=10)
    assert await other.result() == "rested"
    assert set(failing.failed[failed:]) <= {1}, "the poison is tried alone from now on"


@pytest.mark.parametrize("fault", [StoreFault.TIMED_OUT, StoreFault.OUT_OF_REACH])
async def test_D2_turn_that_times_out_or_breaks_connections_is_blocked_with_the_reason(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, fault: StoreFault
) -> None:
    engine = await open_engine(nap, max_lost=3)
    await start_all(engine, nap)
    failing = WritesFail(engine, monkeypatch, make_fault(fault))
    failing.workflow_ids.add(POISON)

    await engine.clock.advance(seconds=10)
    await eventually(lambda: is_blocked(engine))

    info = await engine.query_status(POISON)
    assert info.last_error is not None
    assert "failed 3 times in a row" in str(info.last_error)
    assert "refused for now" in str(info.last_error)
    alone = failing.failed.count(1)
    assert alone == (3 * CUTS_OF_A_TRY if fault is StoreFault.OUT_OF_REACH else 3)
    failing.workflow_ids.clear()
    assert await engine.retry_blocked(POISON)
    assert await engine.handle(POISON).result() == "rested"
    assert await engine.store.check() == []


async def test_D2_callers_who_share_a_batch_with_a_turn_that_times_out_are_answered(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect)
    await start_all(engine, collect)
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.TIMED_OUT))
    failing.workflow_ids.add(POISON)

    signals = (engine.signal_workflow(name, "word", "end") for name in NAMES)
    answers = await asyncio.gather(*signals, return_exceptions=True)

    refused = {name: answer for name, answer in zip(NAMES, answers, strict=True) if isinstance(answer, Exception)}
    assert list(refused) == [POISON]
    assert isinstance(refused[POISON], StoreUnavailable)
    assert [await engine.handle(name).result() for name in INNOCENTS] == [["end"]] * len(INNOCENTS)


async def test_D2_callers_are_failed_once_at_most_by_a_turn_that_breaks_its_connection(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(nap, collect)
    await engine.start(nap, workflow_id=POISON)
    await engine.start(collect, workflow_id="other")
    await engine.settle()
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.OUT_OF_REACH))
    failing.workflow_ids.add(POISON)
    await engine.clock.advance(seconds=10)

    async def rests() -> bool:
        await engine.clock.advance(seconds=0.05)
        return hooks.quarantine_of(engine).is_apart((await hooks.find_row(engine, POISON)).execution_id)

    await eventually(rests)
    for number in range(30):
        await engine.signal_workflow("other", "word", str(number))
        await engine.clock.advance(seconds=0.3)

    assert set(failing.failed) == {1}
    await engine.signal_workflow("other", "word", "end")
    assert len(await engine.handle("other").result()) == 31


@workflow
async def tell(ctx: Context) -> None:
    await ctx.signal_external_workflow(POISON, "word", "end")


async def test_D2_turn_for_which_there_is_no_room_is_found_though_its_history_is_replayed_ahead(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(nap, replay_ahead=1)
    await start_all(engine, nap)
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.SHORTAGE))
    failing.workflow_ids.add(POISON)
    await engine.clock.advance(seconds=10)

    await eventually(lambda: rests_apart(engine))
    await eventually(lambda: have_status(engine, INNOCENTS, Status.COMPLETED))


async def test_D2_signal_of_a_workflow_to_one_that_rests_keeps_nobody_busy(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, tell)
    await engine.start(collect, workflow_id=POISON)
    await engine.settle()
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.SHORTAGE))
    failing.workflow_ids.add(POISON)
    await engine.start(tell, workflow_id="first")
    await eventually(lambda: rests_apart(engine))

    await engine.start(tell, workflow_id="second")
    async with asyncio.timeout(PATIENCE):
        await engine.settle()

    failing.workflow_ids.clear()
    await engine.clock.advance(seconds=31)
    assert await engine.handle(POISON).result() == ["end"]


async def rests_apart(engine: TestEngine) -> bool:
    await engine.clock.advance(seconds=0.01)
    return hooks.quarantine_of(engine).is_apart((await hooks.find_row(engine, POISON)).execution_id)


async def test_D2_turn_for_which_there_is_no_room_waits_apart_until_there_is(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(nap, max_lost=2)
    await start_all(engine, nap)
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.SHORTAGE))
    failing.workflow_ids.add(POISON)
    await engine.clock.advance(seconds=10)
    await eventually(lambda: have_status(engine, INNOCENTS, Status.COMPLETED))

    for _ in range(20):
        await engine.clock.advance(seconds=30)
    info = await engine.query_status(POISON)
    tried = len(failing.failed)
    failing.workflow_ids.clear()
    await engine.clock.advance(seconds=31)

    assert info.status is not Status.BLOCKED
    assert info.last_error is not None
    assert "NotCommitted" in str(info.last_error)
    assert 15 <= tried <= 60, "it is tried again and again, but slowly"
    assert await engine.handle(POISON).result() == "rested"
    assert (await engine.query_status(POISON)).last_error is None
    assert await engine.store.check() == []


async def test_D2_requests_for_an_execution_that_rests_join_it_and_are_answered_when_it_goes_on(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, storage_retry=Retry(max_attempts=None, initial=0.05))
    await start_all(engine, collect)
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.SHORTAGE))
    failing.workflow_ids.add(POISON)
    first = asyncio.ensure_future(engine.signal_workflow(POISON, "word", "first"))

    async def rests() -> bool:
        await engine.clock.advance(seconds=0.1)
        return hooks.quarantine_of(engine).is_apart((await hooks.find_row(engine, POISON)).execution_id)

    await eventually(rests)
    second = asyncio.ensure_future(engine.signal_workflow(POISON, "word", "end"))
    for name in INNOCENTS:
        await engine.signal_workflow(name, "word", "end")
    assert not first.done()
    assert not second.done()
    assert set(failing.failed) == {1}

    failing.workflow_ids.clear()
    await engine.clock.advance(seconds=31)
    await asyncio.gather(first, second)
    assert await engine.handle(POISON).result() == ["first", "end"]


async def test_D2_execution_that_rests_can_be_terminated(open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await open_engine(nap)
    await engine.start(nap, workflow_id=POISON)
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.SHORTAGE))
    failing.workflow_ids.add(POISON)
    await engine.clock.advance(seconds=12)
    failing.workflow_ids.clear()

    assert await engine.terminate(POISON)

    assert (await engine.query_status(POISON)).status is Status.TERMINATED
    await engine.clock.advance(seconds=60)
    assert list(hooks.quarantine_of(engine).apart) == []


async def test_D2_shutdown_tells_callers_whose_execution_rests(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, storage_retry=Retry(max_attempts=None, initial=0.05))
    await engine.start(collect, workflow_id=POISON)
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.SHORTAGE))
    failing.workflow_ids.add(POISON)
    answer = asyncio.ensure_future(engine.signal_workflow(POISON, "word", "end"))

    async def has_failed() -> bool:
        await engine.clock.advance(seconds=0.1)
        return len(failing.failed) > 3

    await eventually(has_failed)
    await engine.shutdown()

    with pytest.raises(HoldfastError):
        await answer


# --- outages ---


@pytest.mark.parametrize("fault", [StoreFault.SHORTAGE, StoreFault.OUT_OF_REACH])
async def test_N1_outage_of_writes_blocks_nobody_and_all_go_on_when_it_is_over(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, fault: StoreFault
) -> None:
    engine = await open_engine(nap, max_lost=1)
    await start_all(engine, nap)
    failing = WritesFail(engine, monkeypatch, make_fault(fault))
    failing.is_outage = True

    await engine.clock.advance(seconds=10)
    for _ in range(50):
        await engine.clock.advance(seconds=3)
    statuses = {(await engine.query_status(name)).status for name in NAMES}
    failing.is_outage = False
    await engine.clock.advance(seconds=60)

    assert Status.BLOCKED not in statuses
    assert len(failing.failed) > 20
    assert [await engine.handle(name).result() for name in NAMES] == ["rested"] * len(NAMES)
    assert list(hooks.quarantine_of(engine).apart) == []
    assert await engine.store.check() == []


async def test_N1_connections_that_break_now_and_then_block_nobody(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_engine(collect, max_lost=1, storage_retry=Retry(max_attempts=None, initial=0.05))
    await start_all(engine, collect)
    failing = WritesFail(engine, monkeypatch, make_fault(StoreFault.OUT_OF_REACH))

    async def send(word: str) -> None:
        sent = asyncio.gather(*(engine.signal_workflow(name, "word", word) for name in NAMES))

        async def are_sent() -> bool:
            await engine.clock.advance(seconds=1)
            if len(failing.failed) > limit:
                failing.is_outage = False
            return sent.done()

        await eventually(are_sent)

    for number in range(10):
        limit = len(failing.failed) + 1 + number % 2
        failing.is_outage = True
        await send(str(number))
    limit = 0
    await send("end")

    assert len(failing.failed) >= 10
    assert [len(await engine.handle(name).result()) for name in NAMES] == [11] * len(NAMES)
    details = [from_row(await hooks.find_row(engine, name)).details for name in NAMES]
    assert {(one.tries, one.trying, one.suspect, one.last_error) for one in details} == {(0, "", False, None)}


# --- real databases ---

TRIGGER = """
    CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF position('POISONMARK'::bytea in new.body) > 0 THEN {harm}; END IF;
        RETURN new;
    END $$;
    CREATE TRIGGER poison BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION poison()
"""
HARM = {
    "timeout": "RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'",
    "cut": "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1)",
    "memory": "RAISE EXCEPTION 'out of memory' USING ERRCODE = '53200'",
}


@workflow
async def mark(ctx: Context, text: str) -> str:
    await ctx.sleep(10)
    ctx.side_effect(lambda: text)
    await ctx.sleep(1)
    return "marked"


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@pytest.mark.parametrize("harm", HARM)
async def test_D2_turn_that_postgres_refuses_each_time_stops_nobody_else(
    open_engine: OpenEngine, url: str, harm: str
) -> None:
    engine = await open_engine(mark, max_lost=2)
    for name in NAMES:
        await engine.start(mark, "POISONMARK" if name == POISON else name, workflow_id=name)
    with connect(url) as connection:
        connection.execute(TRIGGER.format(harm=HARM[harm]))  # the starts are in the histories already

    await engine.clock.advance(seconds=10)
    await eventually(lambda: have_status(engine, INNOCENTS, Status.COMPLETED))

    if harm == "memory":
        info = await engine.query_status(POISON)
        assert "out of memory" in str(info.last_error)
    else:
        await eventually(lambda: is_blocked(engine))
        assert "failed 2 times in a row" in str((await engine.query_status(POISON)).last_error)
    with connect(url) as connection:
        connection.execute("DROP TRIGGER poison ON events")
    if harm != "memory":
        assert await engine.retry_blocked(POISON)
    await engine.clock.advance(seconds=40)
    assert await engine.handle(POISON).result() == "marked"
    assert await engine.store.check() == []


@workflow
async def fill(ctx: Context, size: int) -> str:
    await ctx.sleep(10)
    ctx.side_effect(lambda: "x" * size)
    await ctx.sleep(1)
    return "filled"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_D2_turn_for_which_the_file_has_no_room_stops_nobody_else(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []
    plain = sqlite3.connect

    def connect_and_note(*where: Any, **how: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = plain(*where, **how)
        opened.append(connection)
        return connection

    def limit_pages(most: int) -> None:
        for connection in opened:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                connection.execute(f"PRAGMA max_page_count = {most}")

    monkeypatch.setattr(sqlite3, "connect", connect_and_note)
    engine = await open_engine(fill, max_lost=1)
    for name in NAMES:
        await engine.start(fill, 1_900_000 if name == POISON else 10, workflow_id=name)
    limit_pages(300)

    await engine.clock.advance(seconds=10)
    await eventually(lambda: have_status(engine, INNOCENTS, Status.COMPLETED))
    await engine.clock.advance(seconds=120)
    info = await engine.query_status(POISON)
    limit_pages(100_000)
    await engine.clock.advance(seconds=31)
    await engine.clock.advance(seconds=1)

    assert info.status is not Status.BLOCKED
    assert "database or disk is full" in str(info.last_error)
    assert await engine.handle(POISON).result() == "filled"
