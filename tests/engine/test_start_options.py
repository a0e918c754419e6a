"""What a start takes beside the workflow: its options, and the workflow's own arguments, by position or by name."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Engine, workflow
from holdfast.errors import InvalidArguments, WorkflowFailed


@workflow
async def describe(ctx: Context, who: str, times: int = 1, queue: str = "none") -> list[Any]:
    return [who, times, queue]


async def test_arguments_of_a_workflow_are_given_by_name() -> None:
    async with Engine("memory://", workflows=[describe]) as engine:
        keywords: dict[str, Any] = {"times": 3, "workflow_id": "w"}
        handle = await engine.start(describe, "ann", **keywords)

        assert handle.workflow_id == "w"
        assert await handle.result() == ["ann", 3, "none"]


async def test_what_may_be_an_option_or_an_argument_is_refused_and_the_remedy_works() -> None:
    async with Engine("memory://", workflows=[describe]) as engine:
        with pytest.raises(InvalidArguments, match=r"bind\("):
            await engine.start(describe, "ann", queue="slow")

        with pytest.raises(InvalidArguments, match=r"Give the argument by position"):
            await engine.start("describe", "ann", queue="slow")

        handle = await engine.start(describe.bind("ann"), queue="slow")
        assert (await handle.status()).queue == "slow"
        assert await handle.result() == ["ann", 1, "none"]


async def test_what_is_neither_option_nor_argument_is_refused_and_nothing_is_stored() -> None:
    async with Engine("memory://", workflows=[describe]) as engine:
        keywords: dict[str, Any] = {"worklfow_id": "w"}
        with pytest.raises(
            InvalidArguments, match=r"'worklfow_id' is no parameter of it\. Did you mean the option 'workflow_id'"
        ):
            await engine.start(describe, "ann", **keywords)

        assert await engine.list() == []


async def test_a_keyword_that_is_nothing_leads_to_the_options_of_the_call() -> None:
    @workflow
    async def parent(ctx: Context) -> None:
        keywords: dict[str, Any] = {"parent_closes": "abandon"}
        await ctx.run_child(describe, "ann", **keywords)

    async with Engine("memory://", workflows=[describe, parent]) as engine:
        odd: dict[str, Any] = {"zzz": 1}
        with pytest.raises(
            InvalidArguments, match=r"'zzz' is no parameter of it\. The options of this call are: .*, queue, "
        ):
            await engine.start(describe, "ann", **odd)
        with pytest.raises(InvalidArguments, match="The options of this call are: ") as caught:
            await engine.signal_with_start_workflow("w", describe, "ann", signal_name="s", **odd)
        assert "on_open" not in str(caught.value)
        with pytest.raises(InvalidArguments, match=r"no parameter of it\.$"):
            describe.bind("ann", **odd)
        with pytest.raises(WorkflowFailed, match="Did you mean the option 'parent_close'"):
            await (await engine.start(parent)).result()
