"""Several nodes on one database: one of them ends what is stale, also what another has the code for."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, Engine, HumanTaskCancelled, workflow
from holdfast.core import events
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually

SHORT = timedelta(milliseconds=50)


@workflow
async def waiting(ctx: Context) -> None:
    for _ in range(100):
        await ctx.wait_for_signal("go")


@workflow
async def approving(ctx: Context) -> str:
    try:
        await ctx.human_task("approve")
    except HumanTaskCancelled:
        return "cancelled"
    return "approved"


async def list_open(engine: Engine) -> list[str]:
    return [one.workflow_id for one in await engine.list(limit=1_000) if one.closed_at is None]


async def test_one_node_ends_each_once_and_another_goes_on_after_it(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "holdfast")
    nodes = [await cluster.open(name, waiting, stale_after=0.3) for name in ("a", "b", "c")]
    for number in range(10):
        await nodes[number % 3].start(waiting, workflow_id=f"w{number}")

    await eventually(lambda: _has_none_open(nodes[1]), patience=60)
    told = {getattr(one, "node", None) for one in caplog.records if getattr(one, "event", "") == "stale_ended"}
    ended = next(iter(told - {None}))
    for number in range(10):
        history = await nodes[0].history(f"w{number}")
        assert [type(one.event) for one in history.events].count(events.WorkflowTerminated) == 1

    await cluster.kill(str(ended))
    (left, *_) = cluster.engines.values()
    await left.start(waiting, workflow_id="later")
    await eventually(lambda: _has_none_open(left), patience=60)


async def _has_none_open(engine: Engine) -> bool:
    return await list_open(engine) == []


async def test_node_without_the_code_ends_what_is_stale(cluster: Cluster) -> None:
    one = await cluster.open("one", waiting, approving)
    other = await cluster.open("other")
    await one.start(waiting, workflow_id="w")
    await one.start(approving, workflow_id="t")
    await asyncio.sleep(0.1)

    ended = await other.end_stale(SHORT, reason="cleaning")

    assert sorted((item.kind, item.workflow_id) for item in ended) == [("execution", "w"), ("task", "t")]
    assert (await one.query_status("w")).status == "terminated"
    assert await one.handle("t").result(timeout=60) == "cancelled"


@pytest.mark.parametrize("touch", ["signal", "pause_and_resume_workflow", "comment"])
async def test_what_another_node_touches_after_the_look_is_left_alone(cluster: Cluster, touch: str) -> None:
    one = await cluster.open("one", waiting, approving)
    other = await cluster.open("other")
    kind = approving if touch == "comment" else waiting
    await one.start(kind, workflow_id="w")
    await asyncio.sleep(0.1)
    name = "find_stale_tasks" if touch == "comment" else "find_stale_executions"
    find = getattr(other.store, name)

    async def look(query: Any) -> Any:
        page = await find(query)
        assert len(page.found) == 1
        await _touch(one, touch)
        return page

    setattr(other.store, name, look)
    assert await other.end_stale(SHORT) == []

    assert await list_open(one) == ["w"]


async def _touch(engine: Engine, touch: str) -> None:
    if touch == "signal":
        await engine.signal_workflow("w", "go")
    elif touch == "comment":
        (task,) = await engine.tasks()
        await engine.comment_task(task.task_id, "still here", by="ann")
    else:
        await engine.pause_workflow("waiting")
        await engine.resume_workflow("waiting")
