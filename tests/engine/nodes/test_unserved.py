"""The log tells of work that no living node takes, once, by one node for all."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from holdfast import Client, Context, Engine, activity, workflow
from holdfast.core.instants import SECOND
from holdfast.engine.nodes import unserved
from holdfast.log_events import LogEvent
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually


@activity
async def paint() -> str:
    return "painted"


@activity(name="paint", queue="gpu")
async def paint_on_gpu() -> str:
    return "painted"


@workflow
async def wall(ctx: Context) -> str:
    return await ctx.run(paint)


@workflow
async def wall_on_gpu(ctx: Context) -> str:
    return await ctx.run(paint_on_gpu)


@workflow
async def signed(ctx: Context) -> str:
    return await ctx.wait_for_signal("name", str)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nodes look after a tenth of a second instead of a minute."""
    monkeypatch.setattr(unserved.UnservedWatch.__init__, "__defaults__", (SECOND // 10,))


def find(caplog: pytest.LogCaptureFixture, event: LogEvent) -> list[dict[str, Any]]:
    return [vars(one) for one in caplog.records if getattr(one, "event", None) == event]


async def watch_for_a_while(engine: Engine) -> None:
    """Wait until all have sent several more heartbeats, with which they look."""
    seen = {one.node: one.seen_at for one in await engine.nodes()}
    for _ in range(4):

        async def have_beaten(seen: dict[str, Any] = seen) -> bool:
            return all(one.seen_at > seen[one.node] for one in await engine.nodes() if one.node in seen)

        await eventually(have_beaten)
        seen = {one.node: one.seen_at for one in await engine.nodes()}


@pytest.mark.usefixtures("soon")
async def test_O7_activity_that_no_node_offers_is_logged_once_by_one_node(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    one = await cluster.open("one", wall)
    await cluster.open("two", wall)
    await one.start(wall, workflow_id="w", org="acme")

    await eventually(lambda: find(caplog, LogEvent.ACTIVITY_NOT_OFFERED))
    await one.start(wall, workflow_id="v", org="acme")
    await watch_for_a_while(one)

    [record] = find(caplog, LogEvent.ACTIVITY_NOT_OFFERED)
    assert (record["levelno"], record["name"]) == (logging.WARNING, "holdfast.activities")
    assert (record["org"], record["activity"], record["queue"]) == ("acme", "paint", "default")
    assert record["node"] in ("one", "two")

    await cluster.open("three", paint)
    assert await one.handle("w", org="acme").result() == "painted"
    await watch_for_a_while(one)
    assert len(find(caplog, LogEvent.ACTIVITY_NOT_OFFERED)) == 1


@pytest.mark.usefixtures("soon")
async def test_O7_workflow_that_no_node_has_is_logged_once(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    first = await cluster.open("first", signed)
    await first.start(signed, workflow_id="w")
    one = await cluster.open("one", wall)
    await cluster.open("two", wall)
    await cluster.shut_down("first")
    assert not find(caplog, LogEvent.WORKFLOW_NOT_OFFERED), "nothing has arrived for it"

    await one.signal_workflow("w", "name", "Ann")

    await eventually(lambda: find(caplog, LogEvent.WORKFLOW_NOT_OFFERED))
    await watch_for_a_while(one)
    [record] = find(caplog, LogEvent.WORKFLOW_NOT_OFFERED)
    assert (record["levelno"], record["name"], record["workflow"]) == (logging.WARNING, "holdfast.engine", "signed")


@pytest.mark.usefixtures("soon")
async def test_O7_start_by_a_client_of_a_workflow_that_no_node_has_is_logged(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Engine(postgres_url, workflows=[wall], heartbeat=0.2, lease=30), Client(postgres_url) as client:
        await client.start("nobody_has_it", workflow_id="w")
        await eventually(lambda: find(caplog, LogEvent.WORKFLOW_NOT_OFFERED))


@pytest.mark.usefixtures("soon")
async def test_O7_what_nodes_take_is_not_logged(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    one = await cluster.open("one", wall, signed)
    await cluster.open("two", paint)
    await asyncio.gather(*[one.start(wall) for _ in range(5)])
    await watch_for_a_while(one)

    assert not find(caplog, LogEvent.ACTIVITY_NOT_OFFERED)
    assert not find(caplog, LogEvent.WORKFLOW_NOT_OFFERED)


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_O7_owner_of_a_database_that_does_not_serve_a_queue_says_so_at_once(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await open_engine(wall_on_gpu, paint, queues=["default"])
    await engine.start(wall_on_gpu, workflow_id="w")
    await engine.settle()

    [record] = find(caplog, LogEvent.ACTIVITY_NOT_OFFERED)
    assert (record["activity"], record["queue"]) == ("paint", "gpu")
    await engine.start(wall_on_gpu, workflow_id="v")
    await engine.clock.advance(hours=1)
    assert len(find(caplog, LogEvent.ACTIVITY_NOT_OFFERED)) == 1

    await engine.start(wall_on_gpu, workflow_id="u")
    await engine.settle()
    assert len(find(caplog, LogEvent.ACTIVITY_NOT_OFFERED)) == 2, "new work came an hour later"


@pytest.mark.usefixtures("soon")
async def test_O7_work_that_comes_after_the_time_for_which_nobody_tells_again_is_logged_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unserved, "TOLD_FOR", SECOND // 2)
    one = await cluster.open("one", wall)
    await one.start(wall, workflow_id="w")
    await eventually(lambda: find(caplog, LogEvent.ACTIVITY_NOT_OFFERED))
    await watch_for_a_while(one)

    async def is_told_again() -> bool:
        await one.start(wall)
        return len(find(caplog, LogEvent.ACTIVITY_NOT_OFFERED)) > 1

    await eventually(is_told_again)
