"""A history as code reads it."""

from __future__ import annotations

from holdfast import Context, activity, workflow
from holdfast.testing import TestEngine


@activity
async def double(number: int) -> int:
    return 2 * number


@workflow
async def doubling(ctx: Context, number: int) -> int:
    return await ctx.run(double, number)


async def test_a_history_is_a_sequence_of_its_events() -> None:
    async with TestEngine(workflows=[doubling], activities=[double]) as engine:
        handle = await engine.start(doubling, 4)
        await handle.result()

        history = await handle.history()

    assert list(history) == history.events
    assert len(history) == 4
    assert history[-1] == history.events[-1]
    assert history[1:3] == history.events[1:3]


async def test_the_type_of_a_recorded_event_is_the_word_of_its_json() -> None:
    async with TestEngine(workflows=[doubling], activities=[double]) as engine:
        handle = await engine.start(doubling, 4)
        await handle.result()

        history = await handle.history()

    assert [one.type for one in history] == [one["type"] for one in history.to_json()]
    assert [one.type for one in history][1:3] == ["activity_scheduled", "activity_completed"]
