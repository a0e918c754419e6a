"""Starts and signals in a user's own transaction on PostgreSQL: they happen if and when it commits, and hold nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy

from holdfast import Context, activity, workflow
from holdfast.engine.engine import Engine
from holdfast.errors import (
    ExecutionNotFound,
    InvalidArguments,
    InvalidIdentifier,
    NotOurDatabase,
    StoreError,
    StoreUnavailable,
    UnknownWorkflow,
)
from tests.engine.support.cluster import Cluster
from tests.engine.support.user_connections import WAYS, User, Way, by_asyncpg, plain, schema_of
from tests.eventually import eventually
from tests.postgres.access import connect

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


@pytest.fixture
async def cluster(postgres_url: str) -> AsyncIterator[Cluster]:
    cluster = Cluster(postgres_url)
    yield cluster
    await cluster.close()


@pytest.fixture
async def engine(cluster: Cluster) -> Engine:
    return await cluster.open("a", ship, collect)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


@pytest.fixture
async def user(engine: Engine, postgres_url: str) -> AsyncIterator[User]:
    """A transaction by asyncpg, where the driver does not matter."""
    async with by_asyncpg(postgres_url) as user:
        yield user


async def count_inbox(engine: Engine) -> int:
    return (await engine.store.count()).inbox


# --- all drivers ---


async def test_committed_start_runs_together_with_what_the_user_wrote(engine: Engine, way: Way, postgres_url: str) -> None:
    table = f"{schema_of(postgres_url)}.orders"
    with connect(postgres_url) as other:
        other.execute(f"CREATE TABLE {table} (name text)")

    async with way(postgres_url) as user:
        await user.run(f"INSERT INTO {table} VALUES ('order-1')")
        handle = await engine.start(ship, "order-1", workflow_id="order-1", connection=user.connection)
        before = (handle.created, await count_inbox(engine))
        await user.commit()

    assert before == (None, 0)
    assert await handle.result() == "shipped order-1"
    assert handle.created is True
    assert (await handle.status()).execution_id == handle.execution_id
    with connect(postgres_url) as other:
        assert other.execute(f"SELECT name FROM {table}").fetchall() == [("order-1",)]


async def test_of_a_transaction_that_is_rolled_back_nothing_is_left(engine: Engine, way: Way, postgres_url: str) -> None:
    await engine.start(collect, workflow_id="open")

    async with way(postgres_url) as user:
        handle = await engine.start(ship, "order-1", workflow_id="order-1", connection=user.connection)
        await engine.signal_workflow("open", "word", "never", connection=user.connection)
        await engine.signal_with_start_workflow(
            "new", collect, signal_name="word", signal_value="never", connection=user.connection
        )
        await engine.cancel("open", connection=user.connection)
        await user.rollback()

    with pytest.raises(ExecutionNotFound):
        await handle.result()
    with pytest.raises(ExecutionNotFound):
        await engine.query_status("new")
    await engine.signal_workflow("open", "word", "end")
    assert await engine.handle("open").result() == []
    assert await count_inbox(engine) == 0


async def test_committed_signals_arrive_in_their_order(engine: Engine, way: Way, postgres_url: str) -> None:
    opened = await engine.start(collect, workflow_id="open")

    async with way(postgres_url) as user:
        by_workflow_id = await engine.signal_workflow("open", "word", "one", connection=user.connection)
        await opened.signal("word", "two", connection=user.connection)
        by_start = await engine.signal_with_start_workflow(
            "open", collect, signal_name="word", signal_value="three", connection=user.connection
        )
        await engine.signal_workflow("open", "word", "end", connection=user.connection)
        await user.commit()

    words = await opened.result()
    assert sorted(words) == ["one", "three", "two"]
    assert [word for word in words if word != "two"] == ["one", "three"], "what is addressed alike keeps its order"
    assert by_workflow_id.signal_event_sequence is None
    assert by_start.workflow_created is None


# --- what the receiver sees ---


async def test_I3_committed_signal_with_start_creates_with_the_signal_in_hand(engine: Engine, user: User) -> None:
    closed = await engine.start(collect, workflow_id="words")
    await closed.signal("word", "end")
    await closed.result()

    answer = await engine.signal_with_start_workflow(
        "words", collect, "first", signal_name="word", signal_value="end", connection=user.connection
    )
    await user.commit()
    await eventually(lambda: _inbox_is_empty(engine))

    assert await engine.handle(answer.workflow_execution_id).result() == ["first"]
    history = await engine.history(answer.workflow_execution_id)
    assert history.kinds == ["WorkflowStarted", "SignalReceived", "WorkflowCompleted"]
    assert len(history.turns) == 1


async def test_execution_that_is_started_in_a_transaction_can_be_signalled_in_it(engine: Engine, user: User) -> None:
    named = await engine.start(collect, workflow_id="named", connection=user.connection)
    unnamed = await engine.start(collect, connection=user.connection)
    for handle in (named, unnamed):
        await handle.signal("word", "early", connection=user.connection)
        await handle.signal("word", "end", connection=user.connection)
    await user.commit()

    assert await named.result() == ["early"]
    assert await unnamed.result() == ["early"]


async def test_committed_start_uses_the_execution_that_is_open(engine: Engine, user: User) -> None:
    existing = await engine.start(collect, workflow_id="words")

    handle = await engine.start(collect, "second", workflow_id="words", connection=user.connection)
    await user.commit()
    await handle.signal("word", "end")

    assert await handle.result() == []
    assert handle.created is False
    assert handle.execution_id == existing.execution_id


async def test_handle_of_a_committed_start_gives_no_older_result(engine: Engine, user: User) -> None:
    assert await (await engine.start(ship, "old", workflow_id="order")).result() == "shipped old"

    handle = await engine.start(ship, "new", workflow_id="order", connection=user.connection)
    await user.commit()

    assert await handle.result() == "shipped new"


async def test_committed_cancel_is_seen(engine: Engine, user: User) -> None:
    handle = await engine.start(collect, workflow_id="words")

    assert await engine.cancel("words", "enough", connection=user.connection) is True
    await user.commit()
    await eventually(lambda: _is_closed(engine, "words"))

    assert (await handle.status()).status == "cancelled"


async def _is_closed(engine: Engine, target: str) -> bool:
    return (await engine.query_status(target)).status.is_closed


async def test_workflow_id_that_looks_like_one_of_our_ids_is_found(engine: Engine, user: User) -> None:
    looks_like_ours = "01890a5d-ac96-774b-bcce-b302099a8057"
    handle = await engine.start(collect, workflow_id=looks_like_ours)

    await engine.signal_workflow(looks_like_ours, "word", "end", connection=user.connection)
    await user.commit()

    assert await handle.result() == []


# --- what is refused later ---


async def test_D1_what_nobody_can_take_goes_to_the_dead_letters_with_the_reason(engine: Engine, user: User) -> None:
    done = await engine.start(ship, "x", workflow_id="done")
    await done.result()
    await engine.start(collect, workflow_id="open")

    await engine.start(collect, workflow_id="open", on_open="fail", connection=user.connection)
    await engine.start(ship, "x", workflow_id="done", on_closed="reject", connection=user.connection)
    await engine.signal_workflow("done", "word", connection=user.connection)
    await engine.signal_workflow("nobody", "word", connection=user.connection)
    await engine.cancel("nobody", connection=user.connection)
    await user.commit()
    await eventually(lambda: _has_letters(engine, 5))

    reasons = [letter.reason for letter in await engine.dead_letters()]
    assert [reason.split(", but ")[0] for reason in sorted(reasons)] == sorted(
        [
            "Expected to cancel 'nobody'",
            f"Expected to signal execution 'done' ({done.execution_id})",
            "Expected to signal 'nobody'",
            "Expected to start workflow id 'done' with on_closed='reject'",
            "Expected to start workflow id 'open'",
        ]
    )
    assert await count_inbox(engine) == 0


async def _has_letters(engine: Engine, count: int) -> bool:
    return len(await engine.dead_letters()) == count


async def test_I2_idempotency_key_counts_across_transactions_and_calls(engine: Engine, postgres_url: str) -> None:
    async with by_asyncpg(postgres_url) as user:
        first = await engine.start(ship, "a", workflow_id="a", idempotency_key="key", connection=user.connection)
        await user.commit()
    assert await first.result() == "shipped a"

    async with by_asyncpg(postgres_url) as user:
        await engine.start(ship, "b", workflow_id="b", idempotency_key="key", connection=user.connection)
        await user.commit()
    called = await engine.start(ship, "c", workflow_id="c", idempotency_key="key")

    assert (called.created, called.execution_id) == (False, first.execution_id)
    with pytest.raises(ExecutionNotFound):
        await engine.query_status("b")
    assert await count_inbox(engine) == 0


async def test_S1_repeated_request_id_delivers_once(engine: Engine, postgres_url: str) -> None:
    handle = await engine.start(collect, workflow_id="words")

    for _ in range(2):
        async with by_asyncpg(postgres_url) as user:
            await engine.signal_workflow("words", "word", "once", request_id="r-1", connection=user.connection)
            await engine.signal_with_start_workflow(
                "words", collect, signal_name="word", signal_value="too", request_id="r-2", connection=user.connection
            )
            await user.commit()
    await eventually(lambda: _inbox_is_empty(engine))
    await handle.signal("word", "end")

    assert await handle.result() == ["once", "too"]


async def _inbox_is_empty(engine: Engine) -> bool:
    return await count_inbox(engine) == 0


# --- open transactions ---


async def test_open_transaction_holds_up_nobody(engine: Engine, user: User) -> None:
    waiting = await engine.start(collect, workflow_id="waiting")
    second = await engine.start(ship, "x", workflow_id="x", connection=user.connection)
    await engine.signal_workflow("waiting", "word", "late", connection=user.connection)
    await engine.signal_with_start_workflow(
        "fresh", collect, signal_name="word", signal_value="end", connection=user.connection
    )

    # What the same ids are asked for goes through, to the end, while the transaction is open.
    own = await engine.start(ship, "own", workflow_id="x")
    own_result = await own.result()
    await engine.signal_workflow("waiting", "word", "early")
    fresh = await engine.signal_with_start_workflow("fresh", collect, signal_name="word", signal_value="end")
    fresh_result = await engine.handle(fresh.workflow_execution_id).result()
    await user.commit()
    await engine.signal_workflow("waiting", "word", "end")

    assert (own.created, own_result) == (True, "shipped own")
    assert (fresh.workflow_created, fresh_result) == (True, [])
    assert await waiting.result() == ["early", "late"]
    assert await second.result() == "shipped x", "the one before had closed"


@pytest.mark.parametrize("starts", [False, True])
async def test_what_comes_by_a_workflow_id_goes_behind_what_waits_under_it(
    engine: Engine, user: User, postgres_url: str, starts: bool
) -> None:
    waiting = await engine.start(collect, workflow_id="waiting")
    async with by_asyncpg(postgres_url) as another:  # as a batch that looks whose envelopes wait under the id
        await another.connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('default' || chr(10) || 'waiting', 2))"
        )
        await engine.signal_workflow("waiting", "word", "first", connection=user.connection)
        await user.commit()
        if starts:
            await engine.signal_with_start_workflow("waiting", collect, signal_name="word", signal_value="end")
        else:
            await engine.signal_workflow("waiting", "word", "end")
        await another.commit()

    assert await waiting.result() == ["first"]


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
async def test_isolation_of_the_transaction_does_not_matter(engine: Engine, user: User, level: str) -> None:
    await user.run(f"SET TRANSACTION ISOLATION LEVEL {level}")
    await user.run("SELECT 1")  # from here on it sees nothing new

    handle = await engine.start(collect, workflow_id="words")
    await engine.signal_workflow("words", "word", "seen", connection=user.connection)
    await engine.start(ship, "x", workflow_id="x", connection=user.connection)
    await handle.signal("word", "before")
    await user.commit()
    await eventually(lambda: _inbox_is_empty(engine))
    await handle.signal("word", "end")

    assert await handle.result() == ["before", "seen"]
    assert await engine.handle("x").result() == "shipped x"


async def test_outside_of_a_transaction_it_is_committed_at_once(engine: Engine, postgres_url: str) -> None:
    connection = await asyncpg.connect(plain(postgres_url))
    with psycopg.connect(plain(postgres_url), autocommit=True) as other:
        first = await engine.start(ship, "a", connection=connection)
        second = await engine.start(ship, "b", connection=other)

        assert await first.result() == "shipped a"
        assert await second.result() == "shipped b"
    await connection.close()


async def test_X4_nodes_hear_of_it_when_it_commits(cluster: Cluster, postgres_url: str) -> None:
    has_run = asyncio.Event()

    @activity
    async def note() -> None:
        has_run.set()

    @workflow
    async def noted(ctx: Context) -> None:
        await ctx.run(note)

    # No heartbeat comes to the rescue within the time that a test has.
    engine = await cluster.open("a", noted, note, heartbeat=1_000.0, lease=3_000.0)
    async with by_asyncpg(postgres_url) as user:
        await engine.start(noted, connection=user.connection)
        await user.commit()

    await has_run.wait()


async def test_commit_after_the_engine_has_died_is_taken_by_the_next(cluster: Cluster, postgres_url: str) -> None:
    engine = await cluster.open("a", ship)
    async with by_asyncpg(postgres_url) as user:
        await engine.start(ship, "x", workflow_id="x", connection=user.connection)
        await cluster.kill("a")
        await user.commit()

    again = await cluster.open("b", ship)

    assert await again.handle("x").result() == "shipped x"


async def test_connection_that_breaks_before_the_commit_leaves_nothing(engine: Engine, postgres_url: str) -> None:
    connection = await asyncpg.connect(plain(postgres_url))
    await connection.execute("BEGIN")
    handle = await engine.start(ship, "x", workflow_id="x", connection=connection)
    connection.terminate()

    with pytest.raises(ExecutionNotFound):
        await handle.result()
    with pytest.raises(StoreUnavailable, match=FORMULA):
        await engine.start(ship, "x", connection=connection)


# --- what is refused at once ---


async def test_bad_request_is_refused_before_anything_is_written(engine: Engine, user: User) -> None:
    connection = user.connection
    bad: list[tuple[type[Exception], Any]] = [
        (UnknownWorkflow, lambda: engine.start("unknown", connection=connection)),
        (InvalidArguments, lambda: engine.start("ship", connection=connection)),
        (InvalidIdentifier, lambda: engine.start(ship, "x", workflow_id="", connection=connection)),
        (InvalidIdentifier, lambda: engine.signal_workflow("", "word", connection=connection)),
        (InvalidIdentifier, lambda: engine.signal_workflow("x", " ", connection=connection)),
        (InvalidIdentifier, lambda: engine.cancel("", connection=connection)),
        (
            InvalidArguments,
            lambda: engine.signal_with_start_workflow("x", "ship", signal_name="word", connection=connection),
        ),
    ]
    for error, call in bad:
        with pytest.raises(error, match=r"^Expected "):
            await call()

    await user.commit()
    assert await count_inbox(engine) == 0


async def test_things_that_are_no_connection_are_refused(engine: Engine, postgres_url: str) -> None:
    alchemy = sqlalchemy.create_engine(plain(postgres_url, "psycopg"))
    lite = sqlalchemy.create_engine("sqlite://")
    with connect(postgres_url) as other, other.cursor() as cursor, lite.connect() as elsewhere:
        for wrong in (postgres_url, cursor, alchemy, object(), elsewhere):
            with pytest.raises(InvalidArguments, match=FORMULA):
                await engine.start(ship, "x", connection=wrong)
    alchemy.dispose()
    lite.dispose()

    assert await count_inbox(engine) == 0


async def test_connection_to_another_database_is_refused_with_the_remedy(
    engine: Engine, postgres_url: str, way: Way
) -> None:
    with connect(postgres_url) as other:
        name = f"other_{schema_of(postgres_url)}"
        other.execute(f"CREATE DATABASE {name}")
    elsewhere = postgres_url.replace("/postgres?", f"/{name}?")

    async with way(elsewhere) as user:
        with pytest.raises(NotOurDatabase, match=FORMULA):
            await engine.start(ship, "x", connection=user.connection)
        await user.rollback()

    with connect(postgres_url) as other:
        other.execute(f"DROP DATABASE {name} (FORCE)")


async def test_transaction_that_cannot_write_is_refused_with_the_remedy(engine: Engine, postgres_url: str) -> None:
    async with by_asyncpg(postgres_url) as user:
        await user.run("SET TRANSACTION READ ONLY")
        with pytest.raises(StoreError, match="read-only"):
            await engine.start(ship, "x", connection=user.connection)
        with pytest.raises(StoreError, match="failed before"):
            await engine.start(ship, "x", connection=user.connection)

    with connect(postgres_url) as other:
        role = f"role_{schema_of(postgres_url)}"
        other.execute(f"CREATE ROLE {role}")
        other.execute(f"GRANT {role} TO CURRENT_USER")
    async with by_asyncpg(postgres_url) as user:
        await user.run(f"SET ROLE {role}")
        with pytest.raises(StoreError, match="GRANT USAGE ON SCHEMA"):
            await engine.start(ship, "x", connection=user.connection)

    with connect(postgres_url) as other:
        other.execute(f"GRANT USAGE ON SCHEMA {schema_of(postgres_url)} TO {role}")
        other.execute(f"GRANT INSERT ON {schema_of(postgres_url)}.inbox TO {role}")
    async with by_asyncpg(postgres_url) as user:
        await user.run(f"SET ROLE {role}")
        handle = await engine.start(ship, "x", connection=user.connection)
        await user.commit()
    assert await handle.result() == "shipped x"

    with connect(postgres_url) as other:
        other.execute(f"DROP OWNED BY {role}")
        other.execute(f"DROP ROLE {role}")
