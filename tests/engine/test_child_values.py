"""C6: the end of a child without a result is raised, or given as a value, as the call or else the engine says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ChildWorkflowFailed, Context, workflow
from holdfast.core import events
from holdfast.errors import ChildWorkflowCancelled, ChildWorkflowTerminated, InvalidConfiguration
from holdfast.testing import TestEngine, replay
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import MORTAL, Cluster
from tests.engine.support.histories import find_events
from tests.eventually import eventually


@workflow
async def part(ctx: Context, how: str) -> str:
    """Ends in the way that is asked for."""
    if how == "fails":
        raise ValueError("no")
    if how == "waits":
        await ctx.wait_for_signal("go")
    return how


@workflow
async def parent(ctx: Context, how: str, propagates: bool | None) -> list[Any]:
    """Says what it got from its child, and in which way."""
    child_id = f"{ctx.info.workflow_id}-part"
    try:
        found: Any = await ctx.run_child(part, how, workflow_id=child_id, propagate_child_failures=propagates)
    except ChildWorkflowFailed as error:
        return ["raised", type(error).__name__, error.type]
    return ["given", type(found).__name__, getattr(found, "type", found)]


@pytest.mark.parametrize(
    ("engine_says", "call_says", "found"),
    [
        (True, None, ["raised", "ChildWorkflowFailed", "ValueError"]),
        (True, False, ["given", "ChildWorkflowFailed", "ValueError"]),
        (False, None, ["given", "ChildWorkflowFailed", "ValueError"]),
        (False, True, ["raised", "ChildWorkflowFailed", "ValueError"]),
    ],
)
async def test_C6_call_decides_and_else_the_engine(
    open_engine: OpenEngine, engine_says: bool, call_says: bool | None, found: list[str]
) -> None:
    engine = await open_engine(part, parent, propagate_child_failures=engine_says)
    handle = await engine.start(parent, "fails", call_says)

    assert await handle.result() == found
    history = (await engine.history(handle.workflow_id)).to_json()
    assert replay(history, [part, parent]).events == len(history)


async def test_C6_changed_option_of_the_engine_does_not_change_what_was_begun(open_engine: OpenEngine) -> None:
    engine = await open_engine(part, parent, propagate_child_failures=False)
    await engine.start(parent, "waits", None, workflow_id="a")
    await eventually(lambda: find_events(engine, "a", events.ChildStarted))

    engine._options["propagate_child_failures"] = True
    await engine.restart()
    await engine.terminate("a-part", "no more")

    assert await engine.wait_for_result("a") == ["given", ChildWorkflowTerminated.__name__, "Terminated"]


async def test_C6_cancelled_child_and_a_result_are_values_too(open_engine: OpenEngine) -> None:
    engine = await open_engine(part, parent)
    await engine.start(parent, "waits", False, workflow_id="a")
    await engine.start(parent, "works", False, workflow_id="b")
    await eventually(lambda: find_events(engine, "a-part", events.WorkflowStarted))
    await engine.cancel("a-part")

    assert await engine.wait_for_result("a") == ["given", ChildWorkflowCancelled.__name__, "Cancelled"]
    assert await engine.wait_for_result("b") == ["given", "str", "works"]


async def test_C6_handle_of_a_started_child_gives_its_failure_as_a_value(open_engine: OpenEngine) -> None:
    @workflow
    async def starts(ctx: Context) -> list[Any]:
        handles = [ctx.start_child(part, how, propagate_child_failures=False) for how in ("fails", "works")]
        return [getattr(one, "type", one) for one in await asyncio.gather(*(handle.result() for handle in handles))]

    engine = await open_engine(part, starts)
    handle = await engine.start(starts)

    assert await handle.result() == ["ValueError", "works"]


async def test_C6_other_node_gives_what_the_first_recorded(cluster: Cluster) -> None:
    a = await cluster.open("a", part, parent, propagate_child_failures=False, **MORTAL)
    await a.start(parent, "waits", None, workflow_id="a")
    await eventually(lambda: find_events(a, "a-part", events.WorkflowStarted))
    b = await cluster.open("b", part, parent, **MORTAL)
    await cluster.kill("a")

    await b.terminate("a-part")

    assert await b.wait_for_result("a") == ["given", ChildWorkflowTerminated.__name__, "Terminated"]


def test_option_that_is_no_truth_value_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="propagate_child_failures=… to be True or False, but it is 'no'"):
        TestEngine(propagate_child_failures="no")  # type: ignore[arg-type]
