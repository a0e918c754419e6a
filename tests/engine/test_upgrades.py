"""Nodes of two versions of Holdfast on one database: what a newer one wrote is left alone, and nothing else waits for it.

The newer node is simulated by what it leaves in the database. A node that can read it comes when it is written again in
the present format.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest

from holdfast import Context, Status, activity, workflow
from holdfast.core import behaviours, codec, events
from holdfast.core.envelopes import Signal
from holdfast.core.payloads import encode
from holdfast.engine.engine import Engine
from holdfast.errors import NewerFormat
from holdfast.store.contract import UnroutedWrite
from holdfast.store.memory.store import MemoryStore
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.rows import ActivityRow, InboxRow
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually

NEWER = b'{"type":"from_the_future"}'
SIGNAL = codec.encode(Signal(name="word", value=encode("newer", "a word")))
Change: TypeAlias = Callable[[bytes, int], tuple[bytes, int]]
"""What becomes of the body and the schema of an execution's first turn."""


@activity
async def work(name: str) -> str:
    return name


@workflow
async def words(ctx: Context, count: int) -> list[str]:
    return [await ctx.wait_for_signal("word", str) for _ in range(count)]


@workflow
async def bystander(ctx: Context, name: str) -> str:
    return await ctx.run(work, name)


async def leave(engine: Engine, body: bytes, execution_id: str = "", workflow_id: str = "") -> None:
    """Put something into the inbox, as a newer node would, and let the engine look."""
    transaction = await engine.store.begin()
    await transaction.write([], UnroutedWrite(outgoing=[InboxRow("default", execution_id, workflow_id, body)]))
    await transaction.commit()
    hooks.look_for_work(engine)


async def rewrite_inbox(engine: Engine, old: bytes, new: bytes) -> None:
    """Write what waits in inboxes again, in a format that can be read."""
    store = engine.store
    if isinstance(store, MemoryStore):
        inbox = store.database.tables.inbox
        for row_id, row in list(inbox.items()):
            if row.body == old:
                inbox[row_id] = msgspec.structs.replace(row, body=new)
        return
    assert isinstance(store, PostgresStore)
    async with store._connections.use("test") as connection:
        sql = f"UPDATE {_table(store, 'inbox')} SET body = $1 WHERE body = $2"
        await connection.execute(sql, new, old)


async def rewrite_first_turn(engine: Engine, execution_id: str, change: Change) -> None:
    """Write the first turn of an execution's history again, as another version of Holdfast would have."""
    store = engine.store
    (first, *_) = await store.load_history(execution_id)
    body, schema = change(first.body, first.schema)
    if isinstance(store, MemoryStore):
        history = store.database.tables.histories[execution_id]
        history[0] = msgspec.structs.replace(first, body=body, schema=schema)
        return
    assert isinstance(store, PostgresStore)
    async with store._connections.use("test") as connection:
        await connection.execute(
            f"UPDATE {_table(store, 'events')} SET body = $1, schema = $2 WHERE first = 1 AND execution = "
            f"(SELECT id FROM {_table(store, 'executions')} WHERE execution_id = $3)",
            body,
            schema,
            execution_id,
        )


def _table(store: PostgresStore, name: str) -> str:
    return f'"{store._address.schema}".{name}'


async def assert_works(engine: Engine) -> None:
    """Other executions start, run and end at once."""
    async with asyncio.timeout(10):
        assert await (await engine.start(bystander, "fine")).result() == "fine"


async def is_left_alone(engine: Engine, execution_id: str) -> bool:
    return execution_id in hooks.skipped_by(engine)


# --- envelopes ---


async def test_newer_envelope_waits_with_all_behind_it_for_a_node_that_can_read_it(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    old = await cluster.open("old", words, bystander, work)
    handle = await old.start(words, 3, workflow_id="w")
    execution_id = handle.execution_id or ""
    await handle.signal("word", "before")
    with caplog.at_level(logging.WARNING, "holdfast.engine"):
        await leave(old, NEWER, execution_id)
        await eventually(lambda: is_left_alone(old, execution_id))
        accepted = await handle.signal("word", "behind")
        await assert_works(old)

    assert accepted.signal_event_sequence is None
    assert (await old.store.count()).inbox == 2
    assert await old.dead_letters() == []
    assert (await old.query_status("w")).status is Status.SUSPENDED
    said = [record.message for record in caplog.records if f"execution {execution_id} is left" in record.message]
    assert len(said) == 1
    assert "Upgrade this node" in said[0]

    await rewrite_inbox(old, NEWER, SIGNAL)
    await cluster.open("new", words)

    assert await handle.result() == ["before", "newer", "behind"]


async def test_newer_envelope_by_workflow_id_is_left_and_starts_behind_it_are_refused(cluster: Cluster) -> None:
    old = await cluster.open("old", words, bystander, work)
    await leave(old, NEWER, workflow_id="w")
    await eventually(lambda: _skips_id(old, "w"))

    with pytest.raises(NewerFormat, match="Expected to start workflow id 'w', but what waits under it"):
        await old.start(words, 1, workflow_id="w")
    await assert_works(old)
    assert (await old.store.count()).inbox == 1

    await rewrite_inbox(old, NEWER, b"damaged, so that the inbox is empty again")
    hooks.unskip(old)
    await eventually(old.dead_letters)
    await (await old.start(words, 0, workflow_id="w")).result()


async def _skips_id(engine: Engine, workflow_id: str) -> bool:
    return ("default", workflow_id) in hooks.skipped_ids_of(engine)


async def test_engine_that_owns_its_store_leaves_newer_envelopes_alone_too(open_engine: OpenEngine) -> None:
    engine = await open_engine(words, bystander, work)
    handle = await engine.start(words, 1, workflow_id="w")
    await leave(engine, NEWER, handle.execution_id or "")
    await eventually(lambda: is_left_alone(engine, handle.execution_id or ""))

    await handle.signal("word", "behind")

    await assert_works(engine)
    assert (await engine.store.count()).inbox == 2
    assert await engine.dead_letters() == []


# --- histories ---


def raise_schema(body: bytes, schema: int) -> tuple[bytes, int]:
    return body, schema + 1


def rename_event(body: bytes, schema: int) -> tuple[bytes, int]:
    return body.replace(b'"workflow_started"', b'"workflow_began"'), schema


def record_behaviour(body: bytes, schema: int) -> tuple[bytes, int]:
    (started, *others) = codec.decode_events(body, schema)
    assert isinstance(started, events.WorkflowStarted)
    return codec.encode([msgspec.structs.replace(started, behaviours=("from-the-future",)), *others]), schema


@pytest.mark.parametrize("change", [raise_schema, rename_event, record_behaviour], ids=lambda one: one.__name__)
async def test_execution_of_a_newer_history_is_neither_blocked_nor_failed(cluster: Cluster, change: Change) -> None:
    old = await cluster.open("old", words, bystander, work)
    handle = await old.start(words, 2, workflow_id="w")
    execution_id = handle.execution_id or ""
    (first,) = await old.store.load_history(execution_id)
    hooks.drop_program(old, execution_id)
    await rewrite_first_turn(old, execution_id, change)

    await handle.signal("word", "one")
    await eventually(lambda: is_left_alone(old, execution_id))
    await handle.signal("word", "two")
    await assert_works(old)

    assert (await old.query_status("w")).status is Status.SUSPENDED
    assert (await old.store.count()).inbox == 2
    if change is not record_behaviour:
        with pytest.raises(NewerFormat, match=r"a newer Holdfast wrote it .*Upgrade this node"):
            await old.history("w")

    await rewrite_first_turn(old, execution_id, lambda _body, _schema: (first.body, first.schema))
    await cluster.open("new", words)
    assert await handle.result() == ["one", "two"]


async def test_order_to_terminate_waits_for_a_node_that_can_read_the_history(cluster: Cluster) -> None:
    old = await cluster.open("old", words)
    handle = await old.start(words, 1, workflow_id="w")
    execution_id = handle.execution_id or ""
    hooks.drop_program(old, execution_id)
    await rewrite_first_turn(old, execution_id, raise_schema)

    assert await handle.terminate("enough")

    assert (await old.query_status("w")).status is Status.SUSPENDED
    await rewrite_first_turn(old, execution_id, lambda body, schema: (body, schema - 1))
    await cluster.open("new", words)
    await eventually(lambda: _has_status(old, Status.TERMINATED))


async def _has_status(engine: Engine, status: Status) -> bool:
    return (await engine.query_status("w")).status is status


async def test_execution_begun_by_a_newer_behaviour_goes_on_where_that_is_known(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = await cluster.open("new", words)
    with monkeypatch.context() as newer:
        newer.setattr(behaviours, "PRESENT", ("from-the-future",))
        handle = await new.start(words, 1, workflow_id="w")
    hooks.drop_program(new, handle.execution_id or "")
    await handle.signal("word", "one")
    await eventually(lambda: is_left_alone(new, handle.execution_id or ""))

    monkeypatch.setattr(behaviours, "PRESENT", ("from-the-future",))
    hooks.unskip(new)

    assert await handle.result() == ["one"]


# --- details ---


async def test_execution_with_newer_details_keeps_them(cluster: Cluster) -> None:
    old = await cluster.open("old", words, bystander, work)
    handle = await old.start(words, 1, workflow_id="w")
    row = await cluster.find_row("w")
    newer = msgspec.structs.replace(row, details=b'{"paused":true}', state_version=row.state_version + 1)
    assert await old.store.set_status("default", row.execution_id, row.state_version, newer)
    hooks.drop_program(old, row.execution_id)

    await handle.signal("word", "one")
    await eventually(lambda: is_left_alone(old, row.execution_id))
    await assert_works(old)

    assert (await cluster.find_row("w")).details == b'{"paused":true}'
    info = await old.query_status("w")
    assert info.last_error is not None
    assert "NewerFormat" in str(info.last_error)


async def test_execution_with_a_newer_status_is_shown_and_hides_no_other(cluster: Cluster) -> None:
    old = await cluster.open("old", words, bystander, work)
    await old.start(words, 1, workflow_id="w")
    await old.start(words, 1, workflow_id="other")
    row = await cluster.find_row("w")
    newer = msgspec.structs.replace(row, status="archived", state_version=row.state_version + 1)
    assert await old.store.set_status("default", row.execution_id, row.state_version, newer)

    shown = {info.workflow_id: info for info in await old.list()}

    assert shown["other"].status is Status.SUSPENDED
    assert shown["w"].status is Status.BLOCKED
    assert "but it is 'archived': a newer Holdfast wrote it" in str(shown["w"].last_error)
    again = msgspec.structs.replace(row, state_version=newer.state_version + 1)
    assert await old.store.set_status("default", row.execution_id, newer.state_version, again)


# --- offers ---


async def test_offer_in_a_newer_format_is_handed_back_and_its_route_left_to_others(cluster: Cluster) -> None:
    one = await cluster.open("one", bystander)
    handle = await one.start(bystander, "fine")
    two = await cluster.open("two", work, queues=["other"])
    (row,) = await two.store.take_offers("two", ["default\twork"], 1)
    newer = ActivityRow(row.org, row.execution_id, row.number, row.attempt, row.route, b"[99, {}]", row.node)
    hooks.begin_offer(two, newer)

    three = await cluster.open("three", work)

    assert await handle.result() == "fine"
    assert hooks.left_routes_of(two) == {"default\twork"}
    assert hooks.left_routes_of(three) == set[Any]()
