"""I1, I2, I4: who is who. Starts with one id, start policies, checked input."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, OnClosed, OnOpen, Status, WorkflowHandle, WorkflowTerminated, workflow
from holdfast.errors import (
    InvalidArguments,
    InvalidConfiguration,
    InvalidIdentifier,
    PayloadTooLarge,
    UnknownWorkflow,
    WorkflowAlreadyClosed,
    WorkflowAlreadyOpen,
    status_code,
)
from holdfast.testing import TestEngine
from tests.rules.world import Nodes, World


class Order(msgspec.Struct, frozen=True):
    """What an order workflow is given."""

    number: int
    lines: list[str]


@workflow
async def waiter(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def outcome(ctx: Context, how: str) -> str:
    if how == "fail":
        raise ValueError("as asked")
    if how == "wait":
        await ctx.wait_for_signal("never")
    return how


@workflow
async def order(ctx: Context, order: Order, tries: int = 3) -> int:
    await ctx.wait_for_signal("go")
    return order.number * tries


async def count_executions(engine: Engine, **query: Any) -> int:
    return len(await engine.list(**query))


async def assert_nothing_stored(engine: Engine) -> None:
    counts = await engine.store.count()
    assert (counts.executions, counts.timers, counts.inbox, counts.dead_letters) == ({}, 0, 0, 0)
    assert await engine.list() == []


# --- I1 -------------------------------------------------------------------------------------------------------------------


async def test_I1_fifty_concurrent_starts_create_one_execution(world: World) -> None:
    engine = await world.open([waiter])

    handles = await asyncio.gather(*(engine.start(waiter, workflow_id="order-1") for _ in range(50)))

    assert len({handle.execution_id for handle in handles}) == 1
    assert [handle.created for handle in handles].count(True) == 1
    assert await count_executions(engine) == 1


async def test_I1_fifty_concurrent_starts_on_two_nodes_create_one_execution(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [waiter]), await nodes.open("two", [waiter])

    handles = await asyncio.gather(
        *(node.start(waiter, workflow_id="order-1") for _ in range(25) for node in (one, two)),
    )

    assert len({handle.execution_id for handle in handles}) == 1
    assert [handle.created for handle in handles].count(True) == 1
    assert await count_executions(two) == 1


async def test_I1_concurrent_starts_of_many_ids_on_two_nodes_create_one_each(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [waiter]), await nodes.open("two", [waiter])

    handles = await asyncio.gather(
        *(node.start(waiter, workflow_id=f"order-{number}") for number in range(20) for node in (one, two) for _ in "ab"),
    )

    assert len({handle.execution_id for handle in handles}) == 20
    assert [handle.created for handle in handles].count(True) == 20


async def test_I1_a_start_finds_the_open_execution_and_says_that_it_did_not_create_it(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1")

    second = await engine.start(waiter, workflow_id="order-1")

    assert (first.created, second.created) == (True, False)
    assert second.execution_id == first.execution_id
    assert (await first.history()).kinds == ["WorkflowStarted"]


async def test_I1_the_open_execution_is_found_after_a_crash(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1")
    await engine.restart()

    second = await engine.start(waiter, workflow_id="order-1")

    assert (second.execution_id, second.created) == (first.execution_id, False)


async def test_I1_closed_executions_do_not_hold_their_id(world: World) -> None:
    engine = await world.open([outcome])
    runs = [await engine.start(outcome, "return", workflow_id="order-1") for _ in range(3)]

    results = [await run.result() for run in runs]

    assert results == ["return"] * 3
    assert [run.created for run in runs] == [True] * 3
    assert len({run.execution_id for run in runs}) == 3


async def test_I1_starts_without_an_id_are_all_different(world: World) -> None:
    engine = await world.open([waiter])

    handles = await asyncio.gather(*(engine.start(waiter) for _ in range(50)))

    assert len({handle.execution_id for handle in handles}) == 50
    assert all(handle.created for handle in handles)


@pytest.mark.parametrize("bad", ["", "x" * 256, "a\nb", " a", "a\x00", 7])
async def test_I1_an_id_that_cannot_be_one_is_refused_and_nothing_is_stored(world: World, bad: Any) -> None:
    engine = await world.open([waiter])

    with pytest.raises(InvalidIdentifier) as refused:
        await engine.start(waiter, workflow_id=bad)

    assert status_code(refused.value) == 422
    await assert_nothing_stored(engine)


# --- I2: the id is open ---------------------------------------------------------------------------------------------------


async def test_I2_use_existing_is_the_default_and_answers_with_the_open_execution(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1")

    by_name = await engine.start(waiter, workflow_id="order-1", on_open="use_existing")
    by_default = await engine.start(waiter, workflow_id="order-1")

    assert by_name.execution_id == by_default.execution_id == first.execution_id
    assert await count_executions(engine) == 1


async def test_I2_fail_refuses_while_the_id_is_open_and_stores_nothing(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1")

    with pytest.raises(WorkflowAlreadyOpen, match="order-1") as refused:
        await engine.start(waiter, workflow_id="order-1", on_open=OnOpen.FAIL)

    assert status_code(refused.value) == 409
    assert [info.execution_id for info in await engine.list()] == [first.execution_id]
    assert (await first.status()).state_version == 1


async def test_I2_fail_starts_when_the_id_is_free_or_closed(world: World) -> None:
    engine = await world.open([outcome])
    first = await engine.start(outcome, "return", workflow_id="order-1", on_open="fail")
    await first.result()

    second = await engine.start(outcome, "return", workflow_id="order-1", on_open="fail")

    assert first.created
    assert second.created
    assert first.execution_id != second.execution_id


async def test_I2_one_of_many_concurrent_failing_starts_succeeds(world: World) -> None:
    engine = await world.open([waiter])

    answers = await asyncio.gather(
        *(engine.start(waiter, workflow_id="order-1", on_open="fail") for _ in range(20)), return_exceptions=True
    )

    assert sum(isinstance(answer, WorkflowAlreadyOpen) for answer in answers) == 19
    assert await count_executions(engine) == 1


async def test_I2_terminate_existing_ends_the_open_one_and_starts_another_in_one_step(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1")

    second = await engine.start(waiter, workflow_id="order-1", on_open=OnOpen.TERMINATE_EXISTING)

    assert second.created
    assert (await first.status()).status is Status.TERMINATED
    assert (await second.status()).status is Status.SUSPENDED
    assert [info.execution_id for info in await engine.list(status="suspended")] == [second.execution_id]
    with pytest.raises(WorkflowTerminated, match="another was started in its place"):
        await first.result()


async def test_I2_concurrent_starts_that_terminate_the_existing_leave_one_open(world: World) -> None:
    engine = await world.open([waiter])

    handles = await asyncio.gather(
        *(engine.start(waiter, workflow_id="order-1", on_open="terminate_existing") for _ in range(20))
    )

    assert all(handle.created for handle in handles)
    assert await count_executions(engine, status="terminated") == 19
    assert await count_executions(engine, status="suspended") == 1


async def test_I2_concurrent_starts_that_terminate_the_existing_on_two_nodes_leave_one_open(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [waiter]), await nodes.open("two", [waiter])

    handles = await asyncio.gather(
        *(node.start(waiter, workflow_id="order-1", on_open="terminate_existing") for _ in range(10) for node in (one, two))
    )

    assert all(handle.created for handle in handles)
    assert await count_executions(one, status="terminated") == 19
    assert await count_executions(one, status="suspended") == 1


@pytest.mark.parametrize("option", ["on_open", "on_closed"])
async def test_I2_a_policy_that_does_not_exist_is_refused(world: World, option: str) -> None:
    engine = await world.open([waiter])
    policy: dict[str, Any] = {option: "perhaps"}

    with pytest.raises(InvalidConfiguration, match=option) as refused:
        await engine.start(waiter, workflow_id="order-1", **policy)

    assert status_code(refused.value) == 422
    await assert_nothing_stored(engine)


# --- I2: the id is closed -------------------------------------------------------------------------------------------------


async def close_as(engine: TestEngine, how: str) -> str:
    """An execution of 'order-1' that closed that way."""
    handle = await engine.start(outcome, how if how in ("return", "fail") else "wait", workflow_id="order-1")
    if how == "cancel":
        await handle.cancel()
    elif how == "terminate":
        await handle.terminate()
    await engine.settle()
    assert handle.execution_id is not None
    assert (await handle.status()).status.is_closed
    return handle.execution_id


@pytest.mark.parametrize("how", ["return", "fail", "cancel", "terminate"])
async def test_I2_allow_is_the_default_and_starts_after_any_end(world: World, how: str) -> None:
    engine = await world.open([outcome])
    first = await close_as(engine, how)

    by_default = await engine.start(outcome, "return", workflow_id="order-1")
    await by_default.result()
    by_name = await engine.start(outcome, "return", workflow_id="order-1", on_closed="allow")

    assert by_default.created
    assert by_name.created
    assert len({first, by_default.execution_id, by_name.execution_id}) == 3


@pytest.mark.parametrize("how", ["fail", "cancel", "terminate"])
async def test_I2_allow_if_failed_starts_after_an_end_without_a_result(world: World, how: str) -> None:
    engine = await world.open([outcome])
    first = await close_as(engine, how)

    second = await engine.start(outcome, "return", workflow_id="order-1", on_closed=OnClosed.ALLOW_IF_FAILED)

    assert second.created
    assert second.execution_id != first


async def test_I2_allow_if_failed_refuses_after_a_result_and_stores_nothing(world: World) -> None:
    engine = await world.open([outcome])
    first = await close_as(engine, "return")

    with pytest.raises(WorkflowAlreadyClosed, match="allow_if_failed") as refused:
        await engine.start(outcome, "return", workflow_id="order-1", on_closed="allow_if_failed")

    assert status_code(refused.value) == 409
    assert [info.execution_id for info in await engine.list()] == [first]


async def test_I2_allow_if_failed_looks_at_the_newest_of_several(world: World) -> None:
    engine = await world.open([outcome])
    await close_as(engine, "return")
    await close_as(engine, "fail")
    third = await engine.start(outcome, "return", workflow_id="order-1", on_closed="allow_if_failed")
    await third.result()

    with pytest.raises(WorkflowAlreadyClosed):
        await engine.start(outcome, "return", workflow_id="order-1", on_closed="allow_if_failed")

    assert await count_executions(engine) == 3


@pytest.mark.parametrize("how", ["return", "fail", "cancel", "terminate"])
async def test_I2_reject_refuses_after_any_end_and_stores_nothing(world: World, how: str) -> None:
    engine = await world.open([outcome])
    first = await close_as(engine, how)

    with pytest.raises(WorkflowAlreadyClosed, match="reject") as refused:
        await engine.start(outcome, "return", workflow_id="order-1", on_closed=OnClosed.REJECT)

    assert status_code(refused.value) == 409
    assert [info.execution_id for info in await engine.list()] == [first]


@pytest.mark.parametrize("policy", list(OnClosed))
async def test_I2_every_policy_for_closed_ids_starts_one_that_never_was(world: World, policy: OnClosed) -> None:
    engine = await world.open([waiter])

    first = await engine.start(waiter, workflow_id="order-1", on_closed=policy)
    second = await engine.start(waiter, workflow_id="order-1", on_closed=policy)

    assert first.created
    assert (second.execution_id, second.created) == (first.execution_id, False)


# --- I4 -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), "order"),
        (({"number": 1},), "lines"),
        (({"number": "one", "lines": []},), "number"),
        (({"number": 1, "lines": "abc"},), "lines"),
        (("text",), "order"),
        ((None,), "order"),
        ((Order(1, []), "many"), "tries"),
        ((Order(1, []), 2, 3), "order"),
    ],
)
async def test_I4_input_that_does_not_fit_the_hints_is_refused_and_nothing_is_stored(
    world: World, args: tuple[Any, ...], named: str
) -> None:
    engine = await world.open([order])

    with pytest.raises(InvalidArguments, match=named) as refused:
        await engine.start(order, *args, workflow_id="order-1")
    with pytest.raises(InvalidArguments, match=named):
        await engine.start("order", *args, workflow_id="order-1")
    with pytest.raises(InvalidArguments, match=named):
        await engine.signal_with_start_workflow("order-1", order, *args, signal_name="go")

    assert status_code(refused.value) == 422
    await assert_nothing_stored(engine)


async def test_I4_input_that_fits_is_accepted_as_a_value_or_as_plain_json(world: World) -> None:
    engine = await world.open([order])

    by_value = await engine.start(order, Order(2, ["a"]))
    by_json: WorkflowHandle[int] = await engine.start("order", {"number": 5, "lines": []}, 2)
    for handle in (by_value, by_json):
        await handle.signal("go")

    assert [await by_value.result(), await by_json.result()] == [6, 10]


async def test_I4_an_unknown_workflow_is_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open([waiter])

    with pytest.raises(UnknownWorkflow, match="waiter") as refused:
        await engine.start(order, Order(1, []))

    assert status_code(refused.value) == 404
    await assert_nothing_stored(engine)


async def test_I4_input_that_is_too_large_is_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open([order], payload_limit=1000)

    with pytest.raises(PayloadTooLarge) as refused:
        await engine.start(order, Order(1, ["x" * 1000]))

    assert status_code(refused.value) == 413
    await assert_nothing_stored(engine)
