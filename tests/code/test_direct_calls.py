"""An activity that workflow code calls instead of asking the context for it is refused, by the guard and by the scan."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, activity, transaction, workflow
from holdfast.code.definitions import Workflow
from holdfast.errors import InvalidDefinition
from tests.code import direct_calls_helpers as helpers
from tests.code.direct_calls_helpers import charge, charge_now, pay_out, payments
from tests.code.playing import Play, replay


async def call_async(ctx: Context) -> None:
    await helpers.call(charge)


async def call_sync(ctx: Context) -> None:
    helpers.call(charge_now)


async def call_transaction(ctx: Context) -> None:
    helpers.call(pay_out, None)


async def call_method(ctx: Context) -> None:
    helpers.call(payments.charge)


async def call_in_a_task(ctx: Context) -> None:
    task = asyncio.create_task(helpers.call_later(charge))
    await ctx.sleep(1)
    del task


async def call_and_swallow(ctx: Context) -> None:
    try:
        await helpers.call(charge)
    except Exception:
        pass
    await ctx.sleep(1)


async def call_and_gather(ctx: Context) -> None:
    await asyncio.gather(helpers.call_later(charge), return_exceptions=True)
    await ctx.sleep(1)


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        (call_async, "to ask for activity 'charge', but it called it directly. Write `await ctx.run(charge, …)`."),
        (call_sync, "to ask for activity 'charge_now', but it called it directly. Write `await ctx.run(charge_now, …)`."),
        (call_transaction, "to ask for transaction 'pay_out', but it called it directly. Write `await ctx.transaction("),
        (call_method, "to ask for activity 'charge', but it called it directly."),
        (call_in_a_task, "to ask for activity 'charge', but it called it directly."),
        (call_and_swallow, "to ask for activity 'charge', but it called it directly."),
        (call_and_gather, "to ask for activity 'charge', but it called it directly."),
    ],
)
def test_R7_activity_that_is_called_by_a_helper_is_refused(flow: Any, expected: str) -> None:
    play = Play(workflow(flow))

    assert play.blocked is not None
    assert play.blocked.type == "ForbiddenInWorkflow"
    assert expected in play.blocked.message


@workflow
async def part(ctx: Context, number: int) -> int:
    await ctx.sleep(number)
    return number


def test_workflow_that_is_called_without_the_context_is_refused() -> None:
    @workflow
    async def whole(ctx: Context) -> Any:
        return await helpers.call(part, 1)

    blocked = Play(whole).blocked
    assert blocked is not None
    assert "Write `await ctx.run_child(part, …)`" in blocked.message


def test_workflow_is_a_part_of_another_with_its_context() -> None:
    @workflow
    async def whole(ctx: Context) -> int:
        answer: int = await part(ctx, 1)
        return answer

    play = Play(whole)
    play.fire()

    assert play.result == 1


@pytest.mark.parametrize(
    ("flow", "line"),
    [
        (helpers.forgot_run, "it calls activity 'charge' directly"),
        (helpers.forgot_run_of_a_module, "it calls activity 'charge' directly"),
        (helpers.forgot_transaction, "it calls transaction 'pay_out' directly"),
        (helpers.forgot_run_of_a_method, "it calls activity 'charge' directly"),
        (helpers.forgot_run_of_a_class, "it calls activity 'charge' directly"),
        (helpers.forgot_run_in_gather, "it calls activity 'charge' directly"),
    ],
)
def test_R7_activity_that_is_called_is_found_at_registration(flow: Any, line: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        workflow(flow).prepare()

    assert line in refused.value.message
    assert "direct_calls_helpers.py:" in refused.value.message


@pytest.mark.parametrize("flow", [helpers.asks_for_it, helpers.uses_options, helpers.local_function_of_the_name])
def test_code_that_asks_for_activities_is_not_reported(flow: Any) -> None:
    found: Workflow[..., Any] = workflow(flow)

    found.prepare()


async def test_activities_stay_callable_outside_of_workflows_and_in_activities() -> None:
    @activity
    async def outer(amount: int) -> int:
        return int(charge_now(amount) + await charge(amount))

    @transaction
    def in_sql(connection: Any, amount: int) -> int:
        return int(charge_now(amount))

    assert await charge(1) == 1
    assert await outer(2) == 4
    assert in_sql(None, 3) == 3
    assert await payments.charge(4) == 4


def test_side_effect_may_call_anything() -> None:
    @workflow
    async def order(ctx: Context) -> int:
        return int(ctx.side_effect(lambda: helpers.call(charge_now)))

    play = Play(order)

    assert play.result == 1
    assert replay(order, play.history) is None
