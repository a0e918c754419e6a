"""What a start takes beside the workflow: its options, and the workflow's own arguments, by position or by name."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Engine, workflow
from holdfast.errors import InvalidArguments


@workflow
async def describe(ctx: Context, who: str, times: int = 1, queue: str = "none") -> list[Any]:
    return [who, times, queue]


async def test_arguments_of_a_workflow_are_given_by_name() -> None:
    async with Engine("memory://", workflows=[describe]) as engine:
        keywords: dict[str, Any] = {"times": 3, "workflow_id": "w"}
        handle = await engine.start(describe, "ann", **keywords)

        assert handle.workflow_id == "w"
        assert await handle.result() == ["ann", 3, "none"]


async def test_an_option_comes_before_an_argument_of_the_same_name() -> None:
    async with Engine("memory://", workflows=[describe]) as engine:
        handle = await engine.start(describe, "ann", queue="slow")

        assert (await handle.status()).queue == "slow"
        assert await handle.result() == ["ann", 1, "none"]


async def test_what_is_neither_option_nor_argument_is_refused_and_nothing_is_stored() -> None:
    async with Engine("memory://", workflows=[describe]) as engine:
        keywords: dict[str, Any] = {"worklfow_id": "w"}
        with pytest.raises(InvalidArguments, match="'worklfow_id' is no parameter"):
            await engine.start(describe, "ann", **keywords)

        assert await engine.list() == []
