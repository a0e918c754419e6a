"""Request ids: a repeated call has no effect of its own, and gets the answer of the first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Engine, workflow
from holdfast.errors import ExecutionClosed, InvalidArguments, WorkflowAlreadyOpen
from holdfast.store.memory.transaction import MemoryTransaction
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster


@workflow
async def collect(ctx: Context) -> list[str]:
    words: list[str] = []
    while not words or words[-1] != "end":
        words.append(await ctx.wait_for_signal("word", str))
    return words


async def answer_of_start(engine: Engine, **options: Any) -> tuple[str | None, bool | None]:
    handle = await engine.start(collect, **options)
    return handle.execution_id, handle.created


async def test_I1_repeated_start_gets_the_first_answer(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect)

    first = await answer_of_start(engine, workflow_id="w", request_id="r")
    repeated = await answer_of_start(engine, workflow_id="w", request_id="r")
    other = await answer_of_start(engine, workflow_id="w", request_id="s")
    await engine.terminate("w")
    closed = await answer_of_start(engine, workflow_id="w", request_id="r")

    assert first[1] is True
    assert repeated == closed == first
    assert other == (first[0], False)


async def test_I1_repeated_start_without_a_workflow_id_is_one_start(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect)

    answers = await asyncio.gather(*(answer_of_start(engine, request_id="r") for _ in range(10)))

    assert len(set(answers)) == 1
    assert answers[0][1] is True
    assert len(await engine.list()) == 1


async def test_repeated_cancel_and_terminate_reach_no_later_execution(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect)
    for verb in (engine.cancel, engine.terminate):
        await engine.start(collect, workflow_id="w")
        assert await verb("w", request_id="first") is True
        assert await verb("w", request_id="late") is False
        await engine.start(collect, workflow_id="w")

        answers = [await verb("w", request_id="first"), await verb("w", request_id="late")]

        assert answers == [True, False]
        assert (await engine.query_status("w")).closed_at is None
        await engine.terminate("w")


async def test_ids_of_different_verbs_and_targets_do_not_meet(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect)
    for workflow_id in ("v", "w"):
        assert (await engine.start(collect, workflow_id=workflow_id, request_id="r")).created
        await engine.signal_workflow(workflow_id, "word", "a", request_id="r")
        assert await engine.cancel(workflow_id, request_id="r")


async def test_refused_request_stores_nothing_and_can_be_repeated(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect)
    await engine.start(collect, workflow_id="w")
    with pytest.raises(WorkflowAlreadyOpen):
        await engine.start(collect, workflow_id="w", on_open="fail", request_id="r")
    await engine.terminate("w")
    with pytest.raises(ExecutionClosed):
        await engine.signal_workflow("w", "word", "a", request_id="s")

    started = await engine.start(collect, workflow_id="w", on_open="fail", request_id="r")
    await engine.signal_workflow("w", "word", "end", request_id="s")

    assert started.created
    assert await started.result() == ["end"]


async def test_repeated_signal_with_start_gets_the_first_answer(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect)

    async def call() -> Any:
        return await engine.signal_with_start_workflow(
            "w", collect, signal_name="word", signal_value="a", request_id="r", idempotency_ttl=60.0
        )

    first = await call()
    repeated = await call()
    await engine.clock.advance(seconds=61)
    expired = await call()
    await engine.signal_workflow("w", "word", "end")

    assert first.workflow_created
    assert repeated == first
    assert not expired.workflow_created
    assert await engine.handle("w").result() == ["a", "a", "end"]


async def test_fifty_repeats_over_two_nodes_are_one_request(cluster: Cluster) -> None:
    nodes = [await cluster.open("one", collect), await cluster.open("two", collect)]

    async def call(number: int) -> tuple[Any, ...]:
        node = nodes[number % 2]
        started = await node.start(collect, workflow_id="w", on_open="terminate_existing", request_id="r")
        await node.signal_workflow("w", "word", "a", request_id="r")
        return started.execution_id, started.created

    answers = set(await asyncio.gather(*(call(number) for number in range(50))))
    await nodes[0].signal_workflow("w", "word", "end")

    assert len(answers) == 1
    assert await nodes[1].handle("w").result() == ["a", "end"]
    assert len(await nodes[0].list()) == 1


async def test_repeated_cancel_over_two_nodes_is_one_cancel(cluster: Cluster) -> None:
    nodes = [await cluster.open("one", collect), await cluster.open("two", collect)]
    await nodes[0].start(collect, workflow_id="w")

    answers = await asyncio.gather(*(nodes[number % 2].cancel("w", request_id="r") for number in range(20)))

    assert set(answers) == {True}


async def test_start_takes_a_request_id_or_an_idempotency_key(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect)

    with pytest.raises(InvalidArguments, match="it has both"):
        await engine.start(collect, request_id="r", idempotency_key="k")


async def test_S1_repeated_signal_by_which_the_execution_closes_meanwhile_gets_the_first_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[Any] = []
    read = MemoryTransaction.read_requests

    async def read_late(self: MemoryTransaction, keys: Any, now: Any) -> Any:
        """The first look of the repeated call comes before the commit by which the execution closes."""
        looks.append(keys)
        return {} if len(looks) == 2 else await read(self, keys, now)

    monkeypatch.setattr(MemoryTransaction, "read_requests", read_late)
    async with Engine("memory://", workflows=[collect]) as engine:
        await engine.start(collect, workflow_id="w")
        first = await engine.signal_workflow("w", "word", "end", request_id="r")
        await engine.handle("w").result()

        repeated = await engine.signal_workflow("w", "word", "end", request_id="r")

        assert repeated == first
        assert len(looks) == 3
