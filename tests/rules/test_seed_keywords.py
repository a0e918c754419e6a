"""Starts and signals under the keywords that other engines of this kind have for them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, workflow
from holdfast.errors import InvalidArguments, InvalidIdentifier
from tests.rules.world import World


@workflow
async def chat(ctx: Context, opening: dict[str, str]) -> list[Any]:
    first = await ctx.wait_for_signal("message", str)
    return [opening, first, await ctx.wait_for_signal("message", str)]


async def test_I3_a_workflow_takes_its_only_argument_as_workflow_input(world: World) -> None:
    engine = await world.open([chat])
    response = await engine.signal_with_start_workflow(
        "conv-1", "chat", workflow_input={"user": "ann"}, signal_name="message", signal_value="hi"
    )
    await engine.signal_workflow(
        workflow_execution_id=response.workflow_execution_id, signal_name="message", signal_value="bye"
    )

    assert await engine.handle("conv-1").result() == [{"user": "ann"}, "hi", "bye"]


async def test_an_argument_that_is_given_twice_is_refused(world: World) -> None:
    engine = await world.open([chat])
    with pytest.raises(InvalidArguments, match="workflow_input"):
        await engine.start(chat, {"user": "ann"}, workflow_input={"user": "ann"})  # type: ignore[call-arg]
    with pytest.raises(InvalidArguments, match="workflow_execution_id"):
        await engine.signal_workflow("a", "message", workflow_execution_id="b")
    with pytest.raises(InvalidIdentifier):
        await engine.signal_workflow(signal_name="message")
