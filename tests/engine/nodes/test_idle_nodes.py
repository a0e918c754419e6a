"""N2 on a real database: idle nodes ask with their heartbeats and not else; a wake-up that is lost costs one heartbeat."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import Context, Engine, activity, workflow
from holdfast.core import codec
from holdfast.core.envelopes import Signal
from holdfast.core.payloads import NULL
from holdfast.store.rows import InboxRow
from tests.engine import hooks
from tests.engine.support.idle_servers import expect_only_beats
from tests.postgres.access import connect
from tests.postgres.server import PostgresServer
from tests.store.postgres.logs import count_statements


@activity
async def pack() -> int:
    return 1


@workflow
async def waiting(ctx: Context) -> int:
    packed: int = await ctx.run(pack)
    await ctx.wait_for_signal("go")
    return packed


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"log_statement": "all"}) as server:
        yield server


HEARTBEAT = 0.2
LEASE_IN_BEATS = 15
"""Nobody is taken for dead, and searched for work, because the machine is busy for a second or two."""


def open_node(url: str, node: str, heartbeat: float = HEARTBEAT) -> Engine:
    options: dict[str, Any] = {"heartbeat": heartbeat, "lease": LEASE_IN_BEATS * heartbeat, "shutdown_grace": 0.1}
    return Engine(url, workflows=[waiting], activities=[pack], node=node, **options)


async def test_N2_idle_node_asks_with_its_heartbeat_alone(server: PostgresServer) -> None:
    async with open_node(server.url(schema="hf_one"), "a") as engine:
        for _ in range(5):
            await engine.start(waiting)

        await expect_only_beats(server, LEASE_IN_BEATS + 1, 12)


async def test_N2_two_idle_nodes_ask_with_their_heartbeats_alone(server: PostgresServer) -> None:
    url = server.url(schema="hf_two")
    async with open_node(url, "a") as a, open_node(url, "b") as b:
        for number in range(5):
            await a.start(waiting, workflow_id=f"a-{number}")
            await b.start(waiting, workflow_id=f"b-{number}")
        await b.signal_workflow("a-0", "go")
        assert await b.handle("a-0").result() == 1

        await expect_only_beats(server, 2 * LEASE_IN_BEATS + 2, 12)


def make_signal(execution_id: str | None) -> InboxRow:
    assert execution_id is not None
    return InboxRow("default", execution_id, "", codec.encode(Signal(name="go", value=NULL)))


async def test_N2_envelope_of_which_nobody_was_told_is_found_with_the_next_heartbeat(postgres_url: str) -> None:
    heartbeat = 3.0
    async with open_node(postgres_url, "a", heartbeat) as engine:
        handle = await engine.start(waiting, workflow_id="one")
        began = time.monotonic()

        assert await engine.store.deliver([make_signal(handle.execution_id)]) == [True]
        await asyncio.wait_for(handle.result(), 10 * heartbeat)

        assert time.monotonic() - began < 2 * heartbeat, "not with the one after the next"


async def test_N2_listener_that_was_cut_costs_no_heartbeat(postgres_url: str) -> None:
    async with open_node(postgres_url, "a", 20) as engine:
        handle = await engine.start(waiting, workflow_id="one")
        with connect(postgres_url) as watch:
            await engine.store.deliver([make_signal(handle.execution_id)])
            began = time.monotonic()

            watch.execute("SELECT pg_terminate_backend(%s)", [hooks.listener_of(engine)])
            await asyncio.wait_for(handle.result(), 15)

        assert time.monotonic() - began < 10


async def test_N2_nodes_that_cannot_wake_each_other_work_with_their_heartbeats(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_node(postgres_url, "a", 0.3) as a, open_node(postgres_url, "b", 0.3) as b:
        for engine in (a, b):
            hooks.mute_wakeups(engine, monkeypatch)
        await a.start(waiting, workflow_id="one")
        await b.start(waiting, workflow_id="two")

        await b.signal_workflow("one", "go")
        await a.signal_workflow("two", "go")

        assert await asyncio.wait_for(b.handle("one").result(), 60) == 1
        assert await asyncio.wait_for(a.handle("two").result(), 60) == 1


async def test_N2_a_hundred_executions_are_few_notifications(server: PostgresServer) -> None:
    url = server.url(schema="hf_notify")
    async with open_node(url, "a", 0.5) as a, open_node(url, "b", 0.5):
        start = len(server.log)
        handles = await asyncio.gather(*(a.start(waiting) for _ in range(100)))
        await asyncio.gather(*(handle.signal("go") for handle in handles))
        await asyncio.gather(*(handle.result() for handle in handles))

        assert count_statements(server, "SELECT pg_notify", start) < 100
