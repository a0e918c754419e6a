"""Who waits for a result hears of it on whichever node the execution ends; and nobody asks for nothing."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Engine, Workflow, workflow
from holdfast.engine.results import read_closing
from holdfast.errors import WorkflowFailed
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.support.counting_store import CountingStore
from tests.eventually import eventually
from tests.rules.world import Nodes, hear_nothing


@workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def failing(ctx: Context) -> None:
    await ctx.wait_for_signal("go")
    raise ValueError("no")


@workflow
async def going_on(ctx: Context, left: int) -> str:
    word = await ctx.wait_for_signal("go", str)
    if left:
        ctx.continue_as(left - 1)
    return word


WORKFLOWS: list[Workflow[..., Any]] = [waiting, failing, going_on]


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    await nodes.close()


async def open_two(nodes: Nodes, **options: Any) -> tuple[TestEngine, TestEngine]:
    """Two nodes that know of each other."""
    a, b = await nodes.open("a", WORKFLOWS, **options), await nodes.open("b", WORKFLOWS, **options)
    await nodes.clock.advance(seconds=3)
    return a, b


async def ask(engine: Engine, target: str) -> asyncio.Task[Any]:
    """Somebody waits for a result by now."""
    task = asyncio.create_task(engine.handle(target).result())
    await eventually(lambda: hooks.awaited_by(engine))
    return task


async def test_result_is_heard_of_where_it_is_awaited_without_any_time_passing(nodes: Nodes) -> None:
    a, b = await open_two(nodes)
    await a.start(waiting, workflow_id="w")
    answer = await ask(b, "w")
    began = nodes.clock.now()

    await a.signal_workflow("w", "go", "went")

    assert await asyncio.wait_for(answer, 10) == "went"
    assert nodes.clock.now() == began


async def test_failure_is_heard_of_as_well(nodes: Nodes) -> None:
    a, b = await open_two(nodes)
    await a.start(failing, workflow_id="w")
    answer = await ask(b, "w")

    await a.signal_workflow("w", "go")

    with pytest.raises(WorkflowFailed, match="ValueError: no"):
        await asyncio.wait_for(answer, 10)


async def test_run_that_goes_on_elsewhere_is_followed(nodes: Nodes) -> None:
    a, b = await open_two(nodes)
    await a.start(going_on, 2, workflow_id="w")
    answer = await ask(b, "w")

    for word in ("one", "two", "three"):
        await a.signal_workflow("w", "go", word)
        await a.settle()

    assert await asyncio.wait_for(answer, 10) == "three"


async def test_N2_wake_up_that_was_lost_costs_one_heartbeat(nodes: Nodes) -> None:
    a, b = await open_two(nodes)
    nodes.faults["b"] = hear_nothing
    await a.start(waiting, workflow_id="w")
    answer = await ask(b, "w")
    await a.signal_workflow("w", "go", "went")
    await nodes.clock.settle()
    assert not answer.done()

    await nodes.clock.advance(seconds=b.config.heartbeat)

    assert await asyncio.wait_for(answer, 10) == "went"


async def test_database_that_is_away_for_a_while_only_delays_the_answer(nodes: Nodes) -> None:
    a, b = await open_two(nodes)
    await a.start(waiting, workflow_id="w")
    answer = await ask(b, "w")
    await nodes.clock.settle()
    nodes.faults["b"] = lambda point, _node: FaultAction.FAIL if point == Point.READ else FaultAction.NONE
    await a.signal_workflow("w", "go", "went")
    await nodes.clock.advance(seconds=10)
    assert not answer.done()

    nodes.faults.clear()
    await nodes.clock.advance(seconds=3)

    assert await asyncio.wait_for(answer, 10) == "went"


async def open_counting(nodes: Nodes, name: str) -> tuple[TestEngine, CountingStore]:
    counting = CountingStore(MemoryStore(nodes.database, node=name))
    engine = TestEngine(
        counting,
        workflows=WORKFLOWS,
        node=name,
        clock=nodes.clock,
        auto_advance=False,
    )
    nodes.engines[name] = engine
    await engine.open()
    return engine, counting


async def test_ends_are_asked_for_with_one_query_for_all(nodes: Nodes) -> None:
    a = await nodes.open("a", WORKFLOWS)
    b, store = await open_counting(nodes, "b")
    for number in range(50):
        await a.start(waiting, workflow_id=f"w-{number}")
    answers = [asyncio.create_task(b.handle(f"w-{number}").result()) for number in range(50)]
    await eventually(lambda: len(hooks.awaited_by(b)) == 50)
    await nodes.clock.settle()
    store.calls.clear()

    await nodes.clock.advance(seconds=20)

    assert store.calls["find_settled"] == store.calls["beat"]
    assert store.calls["load_last_turn"] == 0
    for answer in answers:
        answer.cancel()


async def test_nobody_asks_for_ends_that_nobody_waits_for(nodes: Nodes) -> None:
    a = await nodes.open("a", WORKFLOWS)
    _, store = await open_counting(nodes, "b")
    await nodes.clock.advance(seconds=3)
    store.calls.clear()

    for number in range(20):
        await a.start(waiting, workflow_id=f"w-{number}")
        await a.signal_workflow(f"w-{number}", "go", "went")
    await nodes.clock.advance(seconds=20)

    assert store.calls["find_settled"] == 0


async def test_node_that_is_alone_wakes_nobody(nodes: Nodes) -> None:
    a, store = await open_counting(nodes, "a")
    await nodes.clock.advance(seconds=3)

    await a.start(waiting, workflow_id="w")
    await a.signal_workflow("w", "go", "went")
    await nodes.clock.settle()
    assert store.calls["wake"] == 0

    await nodes.open("b", WORKFLOWS)
    await nodes.clock.advance(seconds=3)
    await a.start(waiting, workflow_id="w")
    await a.signal_workflow("w", "go", "went")
    await nodes.clock.settle()
    assert store.calls["wake"] >= 1


async def test_results_are_heard_of_on_a_database(postgres_url: str) -> None:
    async with Engine(postgres_url, workflows=WORKFLOWS) as a, Engine(postgres_url, workflows=WORKFLOWS) as b:
        await eventually(lambda: hooks.peers_of(a) and hooks.peers_of(b))
        await a.start(waiting, workflow_id="w")
        answer = await ask(b, "w")
        await a.signal_workflow("w", "go", "went")

        assert await asyncio.wait_for(answer, 10) == "went"


async def test_end_that_is_remembered_does_not_keep_what_came_with_it(tmp_path: Path) -> None:
    @workflow
    async def short(ctx: Context) -> int:
        return len(await ctx.wait_for_signal("text", str))

    async with Engine(f"sqlite:///{tmp_path / 'ends.db'}", workflows=[short]) as engine:
        handle = await engine.start(short)
        await handle.signal("text", "x" * 1_000_000)
        assert await handle.result() == 1_000_000
        execution_id = (await handle.status()).execution_id
        tracemalloc.start()
        ends = [await read_closing(engine.store, execution_id) for _ in range(20)]
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert len(ends) == 20
    assert held < 2_000_000


class Gone(Exception):
    """One of the workflow's own."""


@workflow
async def raising(ctx: Context, is_own: bool) -> None:
    raise Gone("away") if is_own else FileNotFoundError("away")


@pytest.mark.parametrize(("is_own", "kind"), [(True, Gone), (False, FileNotFoundError)])
async def test_R3_result_raises_workflow_failed_with_the_original_as_its_cause(is_own: bool, kind: type[Exception]) -> None:
    async with Engine("memory://", workflows=[raising]) as engine:
        with pytest.raises(WorkflowFailed) as caught:
            await (await engine.start(raising, is_own)).result()

    assert caught.value.type == kind.__name__
    assert isinstance(caught.value.__cause__, kind)
    assert isinstance(caught.value, kind) is is_own
