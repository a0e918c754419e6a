"""ctx.transaction: a function's SQL commits together with its result, once, on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ActivityFailed, Context, Retry, activity, activity_info, transaction, workflow
from holdfast.core import events
from holdfast.errors import InvalidArguments, InvalidConfiguration, InvalidDefinition, WorkflowFailed
from tests.engine.support.histories import find_events
from tests.engine.support.user_tables import KINDS, Place, finish
from tests.eventually import eventually

AT_ONCE = Retry(initial=0.001)


@pytest.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    kind = request.param
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else f"sqlite:///{tmp_path / 'app.db'}"
    place = Place(kind, url)
    yield place
    await place.close()


def make_flow(note: Any) -> Any:
    @workflow
    async def flow(ctx: Context, name: str) -> Any:
        return await ctx.transaction(note, name)

    return flow


# --- the ordinary ---


async def test_its_sql_commits_with_its_result(place: Place) -> None:
    def write(connection: Any, name: str) -> Any:
        async def later(written: Any) -> int:
            await finish(written)
            return 7

        written = place.notes.write(connection, name, activity_info().idempotency_key)
        return 7 if written is None else later(written)

    note = place.transaction(write)
    flow = make_flow(note)
    engine = await place.open(flow, note)

    handle = await engine.start(flow, "a")
    result = await handle.result()

    assert result == 7
    (key,) = (await place.read()).values()
    assert key.startswith(f"{handle.execution_id}/1/")
    assert (await handle.history()).kinds == [
        "WorkflowStarted",
        "ActivityScheduled",
        "ActivityCompleted",
        "WorkflowCompleted",
    ]


async def test_many_at_once_each_commit_once(place: Place) -> None:
    note = place.transaction(lambda connection, name: place.notes.write(connection, name, str(activity_info().attempt)))

    @workflow
    async def flow(ctx: Context, count: int) -> int:
        pending = [ctx.transaction(note, f"note {number}") for number in range(count)]
        for one in pending:
            await one
        return count

    engine = await place.open(flow, note)
    first = place.transaction(lambda connection, name: place.notes.write(connection, name, "0"))
    await engine.transaction(place.function(lambda connection, _work: first(connection, "table")))

    assert await (await engine.start(flow, 40)).result() == 40

    assert await place.read() == {"table": "0"} | {f"note {number}": "1" for number in range(40)}


async def test_function_that_raises_is_undone_and_tried_again(place: Place) -> None:
    def write(connection: Any, name: str) -> Any:
        attempt = activity_info().attempt
        written = place.notes.write(connection, f"{name} {attempt}", "")

        async def later() -> int:
            await finish(written)
            return check()

        def check() -> int:
            if attempt < 3:
                raise ConnectionError("the till is stuck")
            return attempt

        return check() if written is None else later()

    note = place.transaction(write, retry=AT_ONCE)
    flow = make_flow(note)
    engine = await place.open(flow, note)

    handle = await engine.start(flow, "a")

    assert await handle.result() == 3
    assert await place.read() == {"a 3": ""}
    (completed,) = await find_events(engine, handle.workflow_id, events.ActivityCompleted)
    assert completed.attempt == 3


@pytest.mark.parametrize("how", ["raises", "unencodable"])
async def test_failed_for_good_nothing_is_committed(place: Place, how: str) -> None:
    def write(connection: Any, name: str) -> Any:
        written = place.notes.write(connection, name, "new")

        async def later() -> object:
            await finish(written)
            return end()

        def end() -> object:
            if how == "raises":
                raise ValueError("no")
            return object()

        return end() if written is None else later()

    note = place.transaction(write, retry=Retry(max_attempts=1))

    @workflow
    async def flow(ctx: Context, name: str) -> str:
        try:
            await ctx.transaction(note, name)
        except ActivityFailed as error:
            return error.type
        return "committed"

    engine = await place.open(flow, note)
    await engine.transaction(place.function(lambda connection, _work: place.notes.write(connection, "a", "old")))

    assert await (await engine.start(flow, "a")).result() == ("ValueError" if how == "raises" else "EncodingError")

    assert await place.read() == {"a": "old"}


async def test_replay_runs_nothing_again(place: Place) -> None:
    note = place.transaction(lambda connection, name: place.notes.write(connection, name, str(activity_info().attempt)))

    @workflow
    async def flow(ctx: Context, name: str) -> str:
        await ctx.transaction(note, name)
        return str(await ctx.wait_for_signal("go"))

    engine = await place.open(flow, note)
    await engine.start(flow, "a", workflow_id="flow")
    await eventually(lambda: find_events(engine, "flow", events.ActivityCompleted))
    await engine.transaction(place.function(lambda connection, _work: place.notes.write(connection, "a", "changed since")))
    await engine.shutdown()

    again = await place.open(flow, note)
    await again.signal_workflow("flow", "go", "on")

    assert await again.handle("flow").result() == "on"
    assert await place.read() == {"a": "changed since"}


async def test_options_are_those_of_activities(place: Place) -> None:
    note = place.transaction(lambda _connection, _name: activity_info().activity, name="take note")
    renamed = note.with_options(retry=Retry(max_attempts=2), start_to_close=5)
    flow = make_flow(renamed)
    engine = await place.open(flow, note)

    handle = await engine.start(flow, "a")

    assert await handle.result() == "take note"
    (scheduled,) = await find_events(engine, handle.workflow_id, events.ActivityScheduled)
    assert scheduled.options.retry.max_attempts == 2
    assert scheduled.options.start_to_close_us == 5_000_000


# --- what is refused ---


async def test_each_verb_takes_its_own_kind(place: Place) -> None:
    note = place.transaction(lambda _connection, _name: None)

    @activity
    async def plain(name: str) -> str:
        return name

    @workflow
    async def run_transaction(ctx: Context) -> Any:
        return await ctx.run(note, "a")

    @workflow
    async def transact_activity(ctx: Context) -> Any:
        wrong: Any = plain
        return await ctx.transaction(wrong, "a")

    @workflow
    async def transact_anything(ctx: Context) -> Any:
        wrong: Any = print
        return await ctx.transaction(wrong, "a")

    engine = await place.open(run_transaction, transact_activity, transact_anything, note, plain)

    for flow, remedy in (
        (run_transaction, "Call ctx.transaction"),
        (transact_activity, "Call ctx.run"),
        (transact_anything, "Decorate it"),
    ):
        with pytest.raises(WorkflowFailed, match=remedy) as caught:
            await (await engine.start(flow)).result()
        assert caught.value.type == "InvalidArguments"


async def test_function_that_the_store_cannot_run_fails_at_once(place: Place) -> None:
    @transaction
    def plain(connection: Any, name: str) -> None: ...

    @transaction
    async def waiting(connection: Any, name: str) -> None: ...

    wrong = waiting if place.kind == "sqlite" else plain
    flow = make_flow(wrong)
    engine = await place.open(flow, plain, waiting)

    if place.kind == "memory":
        assert await (await engine.start(flow, "a")).result() is None
        return
    with pytest.raises(WorkflowFailed, match=r"Expected (an async function|work that does not wait)"):
        await (await engine.start(flow, "a")).result()


def test_bad_definitions_are_refused() -> None:
    any_transaction: Any = transaction

    def without_connection() -> None: ...

    def generator(connection: Any) -> Any:
        yield 1

    for wrong in (without_connection, generator, lambda _connection: None, 5):
        with pytest.raises(InvalidDefinition, match=r"^Expected .+, but .+\. .+\.$"):
            any_transaction(wrong)
    for options in ({"max_concurrent": 0}, {"rate_per_second": -1}, {"retry": 3}):
        with pytest.raises(InvalidConfiguration):
            any_transaction(**options)


def test_signature_leaves_the_connection_out() -> None:
    @transaction
    async def book(connection: object, order: str, count: int = 1) -> int:
        return count

    assert book.signature.names == ("order", "count")
    with pytest.raises(InvalidArguments, match="order: str, count: int = 1"):
        book.signature.encode_arguments((), {}, 1000)
