"""I2, the last sentence: an idempotency key with a time-to-live returns the same execution while it lives."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Context, Engine, workflow
from holdfast.errors import InvalidArguments, InvalidDuration, InvalidIdentifier, WorkflowAlreadyOpen, status_code
from tests.rules.world import Nodes, World

HOUR = 3600.0
DAY = 24 * HOUR


@workflow
async def waiter(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def echo(ctx: Context, word: str) -> str:
    return word


async def count_executions(engine: Engine) -> int:
    return len(await engine.list())


async def test_I2_a_repeated_key_returns_the_same_execution(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, idempotency_key="key")

    second = await engine.start(waiter, idempotency_key="key")

    assert (first.created, second.created) == (True, False)
    assert second.execution_id == first.execution_id
    assert await count_executions(engine) == 1


async def test_I2_a_repeated_key_returns_the_same_execution_after_it_closed(world: World) -> None:
    engine = await world.open([echo])
    first = await engine.start(echo, "hello", workflow_id="order-1", idempotency_key="key")
    await first.result()

    second = await engine.start(echo, "hello", workflow_id="order-1", idempotency_key="key")

    assert (second.execution_id, second.created) == (first.execution_id, False)
    assert await second.result() == "hello"
    assert await count_executions(engine) == 1


async def test_I2_a_repeated_key_returns_the_same_execution_after_a_crash(world: World) -> None:
    engine = await world.open([echo])
    first = await engine.start(echo, "hello", idempotency_key="key")
    await first.result()
    await engine.restart()

    second = await engine.start(echo, "hello", idempotency_key="key")

    assert (second.execution_id, second.created) == (first.execution_id, False)


async def test_I2_a_key_is_forgotten_when_its_time_to_live_is_over(world: World) -> None:
    engine = await world.open([echo], auto_advance=False)
    first = await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)

    await engine.clock.advance(HOUR - 1)
    living = await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)
    await engine.clock.advance(1)
    over = await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)

    assert (living.execution_id, living.created) == (first.execution_id, False)
    assert over.created
    assert over.execution_id != first.execution_id


async def test_I2_a_key_that_was_forgotten_can_be_used_again_and_lives_anew(world: World) -> None:
    engine = await world.open([echo], auto_advance=False)
    await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)
    await engine.clock.advance(HOUR)
    second = await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)

    await engine.clock.advance(HOUR - 1)
    third = await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)

    assert (third.execution_id, third.created) == (second.execution_id, False)


async def test_I2_a_repeated_key_does_not_make_the_first_live_longer(world: World) -> None:
    engine = await world.open([echo], auto_advance=False)
    await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)
    await engine.clock.advance(HOUR - 1)
    await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)

    await engine.clock.advance(1)
    third = await engine.start(echo, "hello", idempotency_key="key", idempotency_ttl=HOUR)

    assert third.created


async def test_I2_a_key_without_a_time_to_live_lives_for_the_engines(world: World) -> None:
    engine = await world.open([echo], auto_advance=False, request_ttl=DAY)
    first = await engine.start(echo, "hello", idempotency_key="key")

    await engine.clock.advance(DAY - 1)
    living = await engine.start(echo, "hello", idempotency_key="key")
    await engine.clock.advance(1)
    over = await engine.start(echo, "hello", idempotency_key="key")

    assert living.execution_id == first.execution_id
    assert over.created


async def test_I2_other_keys_start_other_executions(world: World) -> None:
    engine = await world.open([waiter])

    handles = [await engine.start(waiter, idempotency_key=f"key-{number}") for number in range(3)]

    assert all(handle.created for handle in handles)
    assert len({handle.execution_id for handle in handles}) == 3


async def test_I2_fifty_concurrent_starts_with_one_key_create_one_execution(world: World) -> None:
    engine = await world.open([waiter])

    handles = await asyncio.gather(*(engine.start(waiter, idempotency_key="key") for _ in range(50)))

    assert len({handle.execution_id for handle in handles}) == 1
    assert [handle.created for handle in handles].count(True) == 1
    assert await count_executions(engine) == 1


async def test_I2_concurrent_starts_with_one_key_on_two_nodes_create_one_execution(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [waiter]), await nodes.open("two", [waiter])

    handles = await asyncio.gather(*(node.start(waiter, idempotency_key="key") for _ in range(10) for node in (one, two)))

    assert len({handle.execution_id for handle in handles}) == 1
    assert [handle.created for handle in handles].count(True) == 1
    assert await count_executions(one) == 1


async def test_I2_a_repeated_key_comes_before_the_start_policies(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1", on_open="fail", idempotency_key="key")

    again = await engine.start(waiter, workflow_id="order-1", on_open="fail", idempotency_key="key")
    replacing = await engine.start(waiter, workflow_id="order-1", on_open="terminate_existing", idempotency_key="key")

    assert again.execution_id == replacing.execution_id == first.execution_id
    assert not (await first.status()).status.is_closed


async def test_I2_a_key_that_found_an_open_execution_keeps_to_it(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1")
    found = await engine.start(waiter, workflow_id="order-1", idempotency_key="key")
    await first.terminate()

    again = await engine.start(waiter, workflow_id="order-1", idempotency_key="key")

    assert found.execution_id == again.execution_id == first.execution_id
    assert not again.created


async def test_I2_a_refused_start_does_not_use_up_its_key(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1")
    with pytest.raises(WorkflowAlreadyOpen):
        await engine.start(waiter, workflow_id="order-1", on_open="fail", idempotency_key="key")
    await first.terminate()

    second = await engine.start(waiter, workflow_id="order-1", on_open="fail", idempotency_key="key")

    assert second.created
    assert second.execution_id != first.execution_id


async def test_I2_the_handle_of_a_repeated_key_names_the_execution_that_was_started(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1", idempotency_key="key")

    second = await engine.start(waiter, idempotency_key="key")

    assert second.execution_id == first.execution_id
    assert second.workflow_id == "order-1"


async def test_I2_a_key_of_a_start_is_no_request_id_of_a_signal(world: World) -> None:
    engine = await world.open([waiter])
    first = await engine.start(waiter, workflow_id="order-1", idempotency_key="same")

    with_start = await engine.signal_with_start_workflow(
        "order-2", waiter, signal_name="go", signal_value="two", request_id="same"
    )
    await engine.signal_workflow("order-1", "go", "one", request_id="same")

    assert with_start.workflow_created
    assert await first.result() == "one"
    assert await engine.handle("order-2").result() == "two"


async def test_I2_a_time_to_live_without_a_key_is_refused(world: World) -> None:
    engine = await world.open([waiter])

    with pytest.raises(InvalidArguments) as refused:
        await engine.start(waiter, idempotency_ttl=HOUR)

    assert status_code(refused.value) == 422
    assert await count_executions(engine) == 0


async def test_I2_a_key_or_time_to_live_that_cannot_be_one_is_refused(world: World) -> None:
    engine = await world.open([waiter])

    with pytest.raises(InvalidIdentifier):
        await engine.start(waiter, idempotency_key="")
    with pytest.raises(InvalidDuration) as refused:
        await engine.start(waiter, idempotency_key="key", idempotency_ttl=-1)

    assert status_code(refused.value) == 422
    assert await count_executions(engine) == 0
