"""Results of activities are checked where they are made: one that does not fit its hint fails the attempt for good."""

from __future__ import annotations

import pytest

from holdfast import Context, Engine, activity, workflow
from holdfast.errors import ActivityFailed, WorkflowFailed
from tests.engine.conftest import OpenEngine

CALLS: list[str] = []


@activity
async def in_the_loop() -> int:
    CALLS.append("loop")
    return "a"  # type: ignore[return-value]


@activity
def in_a_thread(*, factor: int) -> int:
    CALLS.append("thread")
    return f"{factor}"  # type: ignore[return-value]


@activity
def multiply(number: int, *, factor: int = 2) -> int:
    return number * factor


@workflow
async def asking(ctx: Context, kind: str) -> str:
    try:
        await (ctx.run(in_the_loop) if kind == "loop" else ctx.run(in_a_thread, factor=3))
    except ActivityFailed as error:
        return f"{error.type}: {error}"
    return "fits"


@workflow
async def unfit(ctx: Context) -> int:
    return "a"  # type: ignore[return-value]


@workflow
async def multiplying(ctx: Context, number: int) -> int:
    return await ctx.run(multiply, await ctx.run(multiply, number), factor=5)


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_V3_result_that_does_not_fit_fails_the_activity_without_a_retry(open_engine: OpenEngine, kind: str) -> None:
    CALLS.clear()
    engine: Engine = await open_engine(asking, in_the_loop, in_a_thread)

    said = await (await engine.start(asking, kind)).result()

    assert said.startswith("InvalidResult: ")
    assert "to fit its return hint, int, but it does not: expected `int`, got `str`" in said
    assert [kind] == CALLS


async def test_V3_result_of_a_workflow_that_does_not_fit_fails_it_for_every_caller(open_engine: OpenEngine) -> None:
    engine: Engine = await open_engine(unfit)
    handle = await engine.start(unfit)

    with pytest.raises(
        WorkflowFailed, match="Expected the result of workflow 'unfit' to fit its return hint, int"
    ) as failed:
        await handle.result()

    assert failed.value.type == "InvalidResult"


async def test_V4_keyword_only_parameters_of_activities_arrive(open_engine: OpenEngine) -> None:
    engine: Engine = await open_engine(multiplying, multiply)

    assert await (await engine.start(multiplying, 3)).result() == 30
