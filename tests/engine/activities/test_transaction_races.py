"""ctx.transaction when attempts race, outcomes are unknown, or nobody wants the result: it commits once, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import ActivityFailed, Context, Retry, activity_info, transaction, workflow
from holdfast.code.definitions import Workflow
from holdfast.core import events
from holdfast.core.envelopes import Redispatch
from holdfast.engine.engine import Engine
from holdfast.engine.requests import Request
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.sqlite.connections import Connections
from tests.engine import hooks
from tests.engine.support.cluster import Cluster
from tests.engine.support.histories import find_events
from tests.engine.support.user_connections import schema_of
from tests.eventually import eventually
from tests.postgres.access import connect
from tests.postgres.proxy import Proxy, is_commit
from tests.postgres.server import PostgresServer
from tests.postgres.wire import Message
from tests.rules.world import Nodes, once
from tests.store.sqlite.test_unknown_outcomes import TroubledConnection

ONE_TRY = Retry(max_attempts=1)
CALM: dict[str, float] = {"heartbeat": 1_000.0, "lease": 3_000.0}
"""Nobody is taken for dead because the machine is busy, and no heartbeat tells what only the store should."""


class Table:
    """A table of the user's in the schema of a test."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = f"{schema_of(url)}.notes"

    def create(self) -> None:
        with connect(self._url) as connection:
            connection.execute(f"CREATE TABLE {self.name} (note text)")

    def read(self) -> list[str]:
        with connect(self._url) as connection:
            return [note for (note,) in connection.execute(f"SELECT note FROM {self.name} ORDER BY note")]


@pytest.fixture
async def cluster(postgres_url: str) -> AsyncIterator[Cluster]:
    cluster = Cluster(postgres_url)
    yield cluster
    await cluster.close()


@pytest.fixture
def table(postgres_url: str) -> Table:
    return Table(postgres_url)


class Steps:
    """Where attempts stand, by number: each waits inside of its transaction until it may end."""

    def __init__(self, table: Table, *, is_stubborn: bool = False) -> None:
        self.begun: list[tuple[str, int]] = []
        self.may_end: dict[int, asyncio.Event] = {number: asyncio.Event() for number in range(1, 10)}
        self.ended: list[tuple[str, int]] = []

        @transaction(retry=Retry(initial=0.001))
        async def note(connection: Any, name: str) -> str:
            attempt = activity_info().attempt
            await connection.execute(f"INSERT INTO {table.name} VALUES ($1)", f"{name} {attempt}")
            self.begun.append((name, attempt))
            try:
                while not self.may_end[attempt].is_set():
                    try:
                        await self.may_end[attempt].wait()
                    except asyncio.CancelledError:
                        if not is_stubborn:
                            raise
            finally:
                self.ended.append((name, attempt))
            return f"{name} {attempt}"

        self.note = note

        @workflow
        async def flow(ctx: Context, name: str) -> str:
            return await ctx.transaction(note, name)

        self.flow: Workflow[..., str] = flow

    async def begin_two(self, cluster: Cluster, table: Table, *names: str) -> tuple[Engine, Engine]:
        """Attempt 1 is under way on node a, which b believes to be gone; attempt 2 on b."""
        a = await cluster.open("a", self.flow, self.note, **CALM)
        table.create()
        for name in names:
            await a.start(self.flow, name, workflow_id=name)
        await eventually(lambda: len(self.begun) == len(names))
        b = await cluster.open("b", self.flow, self.note, **CALM)
        for name in names:
            execution_id = (await b.query_status(name)).execution_id
            hooks.submit(b, Request("default", Redispatch(node="a"), execution_id=execution_id))
        await eventually(lambda: len(self.begun) == 2 * len(names))
        return a, b


def all_ended(*engines: Engine) -> Callable[[], bool]:
    return lambda: all(hooks.count_activities(engine) == 0 for engine in engines)


# --- attempts ---


async def test_A1_older_attempt_that_commits_first_counts_though_a_newer_has_begun(cluster: Cluster, table: Table) -> None:
    steps = Steps(table)
    a, b = await steps.begin_two(cluster, table, "x")

    steps.may_end[1].set()
    result = await b.handle("x").result()
    steps.may_end[2].set()
    await eventually(all_ended(a, b))

    assert result == "x 1"
    assert table.read() == ["x 1"]
    (completed,) = await find_events(b, "x", events.ActivityCompleted)
    assert completed.attempt == 1


async def test_A1_older_attempt_that_comes_late_is_undone(cluster: Cluster, table: Table) -> None:
    steps = Steps(table, is_stubborn=True)
    a, b = await steps.begin_two(cluster, table, "x")

    steps.may_end[2].set()
    result = await b.handle("x").result()
    steps.may_end[1].set()
    await eventually(all_ended(a, b))

    assert result == "x 2"
    assert table.read() == ["x 2"]


async def test_A1_of_two_attempts_at_once_exactly_one_commits(cluster: Cluster, table: Table) -> None:
    steps = Steps(table)
    names = [f"flow {number}" for number in range(4)]  # all of them have a connection at once
    a, b = await steps.begin_two(cluster, table, *names)

    for event in steps.may_end.values():
        event.set()
    results = [await a.handle(name).result() for name in names]
    await eventually(all_ended(a, b))

    assert table.read() == sorted(results)
    assert [result.rpartition(" ")[0] for result in results] == names


# --- nobody wants it ---


@workflow
async def change_ones_mind(ctx: Context, name: str) -> str:
    pending = ctx.run("note", name)
    await ctx.wait_for_signal("stop")
    pending.cancel()
    return str(await ctx.wait_for_signal("end"))


async def test_what_the_workflow_cancelled_on_another_node_does_not_commit(cluster: Cluster, table: Table) -> None:
    steps = Steps(table, is_stubborn=True)
    # No turn of its own tells the node that runs it: what the store says must do.
    worker = await cluster.open("worker", steps.note, **CALM)
    table.create()
    decider = await cluster.open("decider", change_ones_mind, **CALM)
    await decider.start(change_ones_mind, "x", workflow_id="x")
    await eventually(lambda: steps.begun)

    await decider.signal_workflow("x", "stop")
    await eventually(lambda: find_events(decider, "x", events.ActivityCancelRequested))
    steps.may_end[1].set()
    await eventually(all_ended(worker))

    assert steps.ended == [("x", 1)]
    assert table.read() == []


async def test_what_the_workflow_cancelled_here_does_not_commit(cluster: Cluster, table: Table) -> None:
    steps = Steps(table, is_stubborn=True)
    engine = await cluster.open("a", change_ones_mind, steps.note, **CALM)
    table.create()
    await engine.start(change_ones_mind, "x", workflow_id="x")
    await eventually(lambda: steps.begun)

    await engine.signal_workflow("x", "stop")
    steps.may_end[1].set()
    await eventually(all_ended(engine))

    assert table.read() == []


async def test_C4_what_a_closed_execution_waited_for_does_not_commit(cluster: Cluster, table: Table) -> None:
    steps = Steps(table, is_stubborn=True)
    a, b = await steps.begin_two(cluster, table, "x")

    assert await b.terminate("x")
    for event in steps.may_end.values():
        event.set()
    await eventually(all_ended(a, b))

    assert table.read() == []


async def test_A3_attempt_that_times_out_is_undone_and_the_next_commits(cluster: Cluster, table: Table) -> None:
    steps = Steps(table)
    for attempt in range(2, 10):  # on a slow machine the second may be late as well
        steps.may_end[attempt].set()

    @workflow
    async def hurry(ctx: Context, name: str) -> str:
        return await ctx.transaction(steps.note.with_options(start_to_close=1.5), name)

    engine = await cluster.open("a", hurry, steps.note, **CALM)
    table.create()

    result = await (await engine.start(hurry, "x")).result()
    assert result != "x 1"
    assert table.read() == [result]


# --- unknown outcomes ---


class CommitOfWork:
    """The next commit of a user's function, and no other's."""

    def __init__(self) -> None:
        self._is_next = False

    def __call__(self, message: Message) -> bool:
        if message.sql is not None and "RELEASE SAVEPOINT holdfast_work" in message.sql:
            self._is_next = True
        return self._is_next and is_commit(message)


@pytest.mark.parametrize("reaches_the_server", [True, False])
async def test_X5_cut_during_the_commit_it_is_done_once(postgres_url: str, table: Table, reaches_the_server: bool) -> None:
    calls: list[int] = []

    @transaction(retry=ONE_TRY)
    async def note(connection: Any, name: str) -> str:
        calls.append(activity_info().attempt)
        await connection.execute(f"INSERT INTO {table.name} VALUES ($1)", name)
        return name

    @workflow
    async def flow(ctx: Context, name: str) -> str:
        return await ctx.transaction(note, name)

    with Proxy(postgres_url) as proxy:
        async with Engine(proxy.url, workflows=[flow], activities=[note]) as engine:
            table.create()
            cut = proxy.cut_after if reaches_the_server else proxy.cut_before
            trap = cut(CommitOfWork())

            result = await (await engine.start(flow, "x")).result()

    assert trap.has_sprung
    assert result == "x"
    assert table.read() == ["x"]
    assert calls == ([1] if reaches_the_server else [1, 1])


async def test_N1_database_that_goes_away_meanwhile_is_waited_for(own_postgres: PostgresServer) -> None:
    table = Table(own_postgres.url(schema="hf_users"))
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    @transaction(retry=ONE_TRY)
    async def note(connection: Any, name: str) -> str:
        await connection.execute(f"INSERT INTO {table.name} VALUES ($1)", name)
        has_begun.set()
        await may_end.wait()
        return name

    @workflow
    async def flow(ctx: Context, name: str) -> str:
        return await ctx.transaction(note, name)

    async with Engine(own_postgres.url(schema="hf_users"), workflows=[flow], activities=[note]) as engine:
        table.create()
        handle = await engine.start(flow, "x")
        await has_begun.wait()

        own_postgres.stop("immediate")
        may_end.set()
        own_postgres.start()

        assert await handle.result() == "x"
        assert table.read() == ["x"]


@pytest.mark.parametrize("action", [FaultAction.APPLIED_UNKNOWN, FaultAction.LOST_UNKNOWN])
async def test_X5_unknown_outcome_is_found_out_by_trying_again(action: FaultAction) -> None:
    calls: list[int] = []

    @transaction(retry=ONE_TRY)
    def note(connection: Any, name: str) -> int:
        calls.append(activity_info().attempt)
        connection.values[name] = connection.values.get(name, 0) + 1
        return int(connection.values[name])

    @workflow
    async def flow(ctx: Context, name: str) -> int:
        return await ctx.transaction(note, name)

    nodes = Nodes()
    engine = await nodes.open("a", [flow], [note])
    nodes.faults["a"] = once(Point.UPDATE, action)
    handle = await engine.start(flow, "x")
    await nodes.clock.advance(seconds=30)

    assert await handle.result() == 1
    assert nodes.database.tables.values == {"x": 1}
    assert calls == ([1, 1] if action is FaultAction.LOST_UNKNOWN else [1])
    await nodes.close()


@pytest.mark.parametrize("takes_place", [True, False])
async def test_X5_unknown_outcome_on_a_disk_is_found_out_by_trying_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes_place: bool
) -> None:
    calls: list[int] = []

    @transaction(retry=ONE_TRY)
    def note(connection: Any, name: str) -> str:
        calls.append(activity_info().attempt)
        connection.execute("INSERT INTO notes VALUES (?)", (name,))
        return name

    @workflow
    async def flow(ctx: Context, name: str) -> str:
        return await ctx.transaction(note, name)

    async with Engine(f"sqlite:///{tmp_path / 'app.db'}", workflows=[flow], activities=[note]) as engine:
        await engine.transaction(lambda connection, _work: connection.execute("CREATE TABLE notes (note)") and None)
        connect_user, troubles = Connections.connect_user, [True]

        def connect(connections: Connections) -> Any:
            real = connect_user(connections)
            return TroubledConnection(real, takes_place=takes_place) if troubles and troubles.pop() else real

        monkeypatch.setattr(Connections, "connect_user", connect)
        result = await (await engine.start(flow, "x")).result()
        notes = await engine.transaction(lambda connection, _work: connection.execute("SELECT note FROM notes").fetchall())

    assert result == "x"
    assert notes == [("x",)]
    assert calls == ([1] if takes_place else [1, 1])


# --- what a function does with its connection ---


async def run_one(cluster: Cluster, table: Table, call: Callable[[Any], Any]) -> str:
    """What becomes of a transaction whose function does this with its connection."""

    @transaction(retry=ONE_TRY)
    async def note(connection: Any) -> str:
        await call(connection)
        return "done"

    @workflow
    async def flow(ctx: Context) -> str:
        try:
            return await ctx.transaction(note)
        except ActivityFailed as error:
            return f"{error.type}: {error}"

    engine = await cluster.open("a", flow, note)
    table.create()
    return await (await engine.start(flow)).result()


async def test_error_of_the_users_sql_reaches_the_workflow_as_it_is(cluster: Cluster, table: Table) -> None:
    async def divide(connection: Any) -> None:
        await connection.execute(f"INSERT INTO {table.name} VALUES ('never')")
        await connection.execute("SELECT 1 / 0")

    assert (await run_one(cluster, table, divide)).startswith("DivisionByZeroError: ")
    assert table.read() == []


async def test_savepoints_of_the_users_own_work(cluster: Cluster, table: Table) -> None:
    async def nest(connection: Any) -> None:
        async with connection.transaction():
            await connection.execute(f"INSERT INTO {table.name} VALUES ('kept')")
        try:
            async with connection.transaction():
                await connection.execute(f"INSERT INTO {table.name} VALUES ('undone')")
                raise LookupError
        except LookupError:
            pass

    assert await run_one(cluster, table, nest) == "done"
    assert table.read() == ["kept"]


@pytest.mark.parametrize("sql", ["COMMIT", "ROLLBACK", "COMMIT; BEGIN"])
async def test_transaction_that_the_function_ends_is_refused(cluster: Cluster, table: Table, sql: str) -> None:
    result = await run_one(cluster, table, lambda connection: connection.execute(sql))

    assert result.startswith("InvalidArguments: ")
    assert "to leave its transaction open, but it ended it" in result


async def test_failed_statement_that_the_function_swallows_is_refused(cluster: Cluster, table: Table) -> None:
    async def swallow(connection: Any) -> None:
        try:
            await connection.execute("SELECT 1 / 0")
        except Exception:
            return

    assert "one of its statements failed and it went on" in await run_one(cluster, table, swallow)


async def test_what_a_function_sets_is_gone_for_the_next(cluster: Cluster, table: Table) -> None:
    seen: list[str] = []

    @transaction(retry=ONE_TRY)
    async def note(connection: Any) -> None:
        seen.append(await connection.fetchval("SHOW statement_timeout"))
        await connection.execute("SET statement_timeout TO '77s'")

    @workflow
    async def flow(ctx: Context) -> None:
        await ctx.transaction(note)
        await ctx.transaction(note)

    engine = await cluster.open("a", flow, note)
    await (await engine.start(flow)).result()

    assert seen == [seen[0], seen[0]]
