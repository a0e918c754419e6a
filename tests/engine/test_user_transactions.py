"""engine.transaction: what a function writes and what it asks of the engine commit together, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, TransactionWork, workflow
from holdfast.engine.engine import Engine
from holdfast.errors import (
    EngineClosed,
    ExecutionNotFound,
    HoldfastError,
    InvalidArguments,
    InvalidIdentifier,
    UnknownWorkflow,
)
from tests.engine import hooks
from tests.engine.support.user_tables import KINDS, Place
from tests.eventually import eventually

FORMULA = r"^Expected .+, but (?s:.+)\. .+\.$"


@workflow
async def ship(ctx: Context, order: str) -> str:
    return f"shipped {order}"


@workflow
async def collect(ctx: Context, first: str = "") -> list[str]:
    found = [first] if first else []
    while (word := await ctx.wait_for_signal("word", str)) != "end":
        found.append(word)
    return found


@pytest.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    kind = request.param
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else f"sqlite:///{tmp_path / 'app.db'}"
    place = Place(kind, url)
    yield place
    await place.close()


@pytest.fixture
async def engine(place: Place) -> Engine:
    return await place.open(ship, collect)


async def is_empty(engine: Engine) -> bool:
    return (await engine.store.count()).inbox == 0


async def test_what_was_written_and_what_was_started_commit_together(engine: Engine, place: Place) -> None:
    handles: list[Any] = []

    def order(connection: Any, work: TransactionWork) -> Any:
        handles.append(work.start(ship, "order-1", workflow_id="order-1"))
        return place.notes.write(connection, "order-1", "new")

    await engine.transaction(place.function(order))

    assert await handles[0].result() == "shipped order-1"
    assert handles[0].created is True
    assert await place.read() == {"order-1": "new"}


async def test_what_the_function_returns_is_returned(engine: Engine, place: Place) -> None:
    assert await engine.transaction(place.function(lambda _connection, _work: 42)) == 42


async def test_whatever_the_function_raises_undoes_all(engine: Engine, place: Place) -> None:
    words = await engine.start(collect, workflow_id="words")
    await engine.transaction(place.function(lambda connection, _work: place.notes.write(connection, "order-1", "old")))

    def fail(connection: Any, work: TransactionWork) -> Any:
        work.start(ship, "order-1", workflow_id="order-1")
        work.signal("words", "word", "never")
        work.signal_with_start("new", collect, signal_name="word")
        work.cancel("words")
        written = place.notes.write(connection, "order-1", "new")

        async def raise_later() -> None:
            await written  # type: ignore[misc]
            raise LookupError("no")

        if written is not None:
            return raise_later()
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await engine.transaction(place.function(fail))

    for target in ("order-1", "new"):
        with pytest.raises(ExecutionNotFound):
            await engine.query_status(target)
    await words.signal("word", "end")
    assert await words.result() == []
    assert await place.read() == {"order-1": "old"}


async def test_signals_go_to_what_is_open_and_to_what_is_started_with_them(engine: Engine, place: Place) -> None:
    opened = await engine.start(collect, workflow_id="open")

    def send(_connection: Any, work: TransactionWork) -> None:
        work.signal("open", "word", "one")
        work.signal_with_start("open", collect, signal_name="word", signal_value="two")
        work.signal("open", "word", "end")
        work.signal_with_start("fresh", collect, "first", signal_name="word", signal_value="end")
        own = work.start(collect, workflow_id="own")
        work.signal(own.workflow_id, "word", "end")

    await engine.transaction(place.function(send))

    assert await opened.result() == ["one", "two"]
    assert await engine.handle("fresh").result() == ["first"]
    assert await engine.handle("own").result() == []


async def test_cancel_is_part_of_it(engine: Engine, place: Place) -> None:
    await engine.start(collect, workflow_id="words")

    await engine.transaction(place.function(lambda _connection, work: work.cancel("words", "enough")))

    async def is_closed() -> bool:
        return (await engine.query_status("words")).status.is_closed

    await eventually(is_closed)
    assert (await engine.query_status("words")).status == "cancelled"


async def test_D1_refusals_that_come_after_the_commit_are_dead_letters(engine: Engine, place: Place) -> None:
    await engine.start(collect, workflow_id="open")

    def send(_connection: Any, work: TransactionWork) -> None:
        work.start(collect, workflow_id="open", on_open="fail")
        work.signal("nobody", "word")

    await engine.transaction(place.function(send))
    await eventually(lambda: is_empty(engine))

    reasons = sorted(letter.reason for letter in await engine.dead_letters())
    assert [reason.split(", but")[0] for reason in reasons] == [
        "Expected to signal 'nobody'",
        "Expected to start workflow id 'open'",
    ]


async def test_dead_letter_of_a_start_can_be_tried_again(engine: Engine, place: Place) -> None:
    opened = await engine.start(collect, workflow_id="words")
    await engine.transaction(
        place.function(lambda _connection, work: work.start(collect, "second", workflow_id="words", on_open="fail"))
    )
    await eventually(lambda: is_empty(engine))
    await opened.signal("word", "end")
    await opened.result()
    (letter,) = await engine.dead_letters()

    await engine.requeue_dead_letters([letter.id])
    await eventually(lambda: is_empty(engine))
    await engine.signal_workflow("words", "word", "end")

    assert await engine.handle("words").result() == ["second"]


async def test_bad_requests_are_refused_at_once_and_undo_all(engine: Engine, place: Place) -> None:
    bad: list[tuple[type[HoldfastError], Any]] = [
        (UnknownWorkflow, lambda work: work.start("unknown")),
        (InvalidArguments, lambda work: work.start(ship)),
        (InvalidIdentifier, lambda work: work.signal("", "word")),
        (InvalidIdentifier, lambda work: work.signal_with_start("", collect, signal_name="word")),
        (InvalidArguments, lambda work: work.cancel("words", "x" * 5_000)),
    ]
    for error, call in bad:

        def send(_connection: Any, work: TransactionWork, call: Any = call) -> None:
            work.start(ship, "x", workflow_id="x")
            call(work)

        with pytest.raises(error, match=r"^Expected "):
            await engine.transaction(place.function(send))

    with pytest.raises(ExecutionNotFound):
        await engine.query_status("x")


async def test_work_is_over_when_the_function_is(engine: Engine, place: Place) -> None:
    kept: list[TransactionWork] = []
    await engine.transaction(place.function(lambda _connection, work: kept.append(work)))

    with pytest.raises(HoldfastError, match=FORMULA):
        kept[0].start(ship, "late", workflow_id="late")

    with pytest.raises(ExecutionNotFound):
        await engine.query_status("late")


async def test_function_of_the_wrong_kind_is_refused(engine: Engine, place: Place) -> None:
    def plain(_connection: Any, work: TransactionWork) -> None:
        work.start(ship, "x", workflow_id="x")

    async def waiting(_connection: Any, work: TransactionWork) -> None:
        work.start(ship, "x", workflow_id="x")

    wrong: list[Any] = ["no function", None]
    wrong += [waiting] if place.kind == "sqlite" else [plain] if place.kind == "postgres" else []
    for function in wrong:
        with pytest.raises(InvalidArguments, match=FORMULA):
            await engine.transaction(function)

    with pytest.raises(ExecutionNotFound):
        await engine.query_status("x")


async def test_engine_must_be_open(place: Place) -> None:
    engine = await place.open(ship)
    await engine.shutdown()

    with pytest.raises(EngineClosed):
        await engine.transaction(place.function(lambda _connection, _work: None))


async def test_transactions_at_once_all_take_place(engine: Engine, place: Place) -> None:
    await engine.transaction(place.function(lambda connection, _work: place.notes.write(connection, "first", "")))

    def make(name: str) -> Any:
        def order(connection: Any, work: TransactionWork) -> Any:
            work.start(ship, name, workflow_id=name)
            return place.notes.write(connection, name, "")

        return place.function(order)

    names = [f"order-{number}" for number in range(20)]
    await asyncio.gather(*(engine.transaction(make(name)) for name in names))

    assert [await engine.handle(name).result() for name in names] == [f"shipped {name}" for name in names]
    assert set(await place.read()) == {"first", *names}


async def test_committed_start_survives_the_end_of_the_engine(place: Place) -> None:
    engine = await place.open(ship)

    def order(connection: Any, work: TransactionWork) -> Any:
        work.start(ship, "x", workflow_id="x")
        hooks.take_no_more(engine)  # as if it had died at the commit
        return place.notes.write(connection, "x", "")

    await engine.transaction(place.function(order))
    await engine.shutdown()
    again = await place.open(ship)

    assert await again.handle("x").result() == "shipped x"
    assert await place.read() == {"x": ""}
