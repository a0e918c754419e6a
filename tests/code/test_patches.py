"""R6: the life of a patch. With `patched`, with `deprecate_patch` and without both, and the histories that each fits."""

from __future__ import annotations

from typing import Any

from holdfast import Context, activity, workflow
from tests.code.playing import Play


@activity
async def charge() -> None:
    """Is only named."""


@activity
async def charge_by_card() -> None:
    """Is only named."""


@workflow(name="order")
async def before(ctx: Context) -> None:
    await ctx.run(charge)
    await ctx.wait_for_signal("go")


@workflow(name="order")
async def patched(ctx: Context) -> None:
    await ctx.run(charge_by_card if ctx.patched("card") else charge)
    await ctx.wait_for_signal("go")
    ctx.patched("card")


@workflow(name="order")
async def deprecated(ctx: Context) -> None:
    ctx.deprecate_patch("card")
    await ctx.run(charge_by_card)
    await ctx.wait_for_signal("go")


@workflow(name="order")
async def deprecated_elsewhere(ctx: Context) -> None:
    future = ctx.run(charge_by_card)
    ctx.deprecate_patch("card")
    await future
    await ctx.wait_for_signal("go")
    ctx.deprecate_patch("card")


@workflow(name="order")
async def after(ctx: Context) -> None:
    await ctx.run(charge_by_card)
    await ctx.wait_for_signal("go")


def play(flow: Any) -> Play:
    """An execution that has done its work and waits."""
    played = Play(flow)
    played.complete(1)
    return played


def test_R6_code_that_deprecates_a_patch_fits_histories_with_and_without_its_record() -> None:
    for flow in (deprecated, deprecated_elsewhere):
        assert play(patched).replay(flow) is None
        assert play(deprecated).replay(flow) is None
        assert play(after).replay(flow) is None


def test_R6_deprecating_records_nothing_so_that_the_call_can_go() -> None:
    played = play(deprecated)

    assert "PatchRecorded" not in played.kinds
    assert played.replay(after) is None


def test_R6_call_that_goes_too_early_is_found_by_replay() -> None:
    failure = play(patched).replay(after)

    assert failure is not None
    assert "to call ctx.patched('card') again, which is event 2 of its history" in failure.message


def test_R6_patch_that_is_deprecated_too_early_is_found_by_replay() -> None:
    failure = play(before).replay(deprecated)

    assert failure is not None
    assert "to call ctx.run('charge') again" in failure.message


def test_R6_other_differences_are_found_behind_a_deprecated_patch() -> None:
    @workflow(name="order")
    async def other(ctx: Context) -> None:
        ctx.deprecate_patch("card")
        await ctx.run(charge)

    failure = play(patched).replay(other)

    assert failure is not None
    assert "to call ctx.run('charge_by_card') again, which is event 3 of its history" in failure.message


def test_R6_execution_goes_on_with_the_code_that_deprecates_its_patch() -> None:
    played = play(patched)
    played.program.close()
    played.program = type(played.program)(deprecated, "default", played.execution.execution_id)
    assert played.program.apply(played.history) is None

    played.signal("go")

    assert played.kinds[-1] == "WorkflowCompleted"
    assert played.replay(deprecated) is None


def test_other_patch_is_still_compared() -> None:
    @workflow(name="order")
    async def other(ctx: Context) -> None:
        ctx.deprecate_patch("cash")
        await ctx.run(charge_by_card)

    assert play(patched).replay(other) is not None
