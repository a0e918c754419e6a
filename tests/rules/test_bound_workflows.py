"""A workflow with its arguments is taken by everything that starts one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, Context, Engine, SyncClient, TransactionWork, workflow
from holdfast.errors import InvalidArguments


@workflow
async def order(ctx: Context, number: int, queue: str = "none", name: str = "nobody") -> list[Any]:
    return [number, queue, name, ctx.info.queue, ctx.info.workflow_id]


@workflow
async def parent(ctx: Context) -> list[Any]:
    run = await ctx.run_child(order.bind(1, queue="mine", name="ann"), workflow_id="run", name="the first")
    started = await ctx.start_child(order.bind(2, name="bob"), workflow_id="started")
    return [run, started]


@workflow
async def goes_on(ctx: Context, how: str) -> None:
    if how == "positional":
        ctx.continue_as(order.bind(3, name="eve"))
    elif how == "named":
        ctx.continue_as(workflow=order.bind(3, name="eve"))
    ctx.continue_as(order.bind(3), 4)


async def test_bound_arguments_may_have_the_names_of_options() -> None:
    async with Engine("memory://", workflows=[order]) as engine:
        handle = await engine.start(order.bind(1, queue="mine", name="ann"), queue="default", workflow_id="o-1")
        await engine.signal_with_start_workflow("o-2", order.bind(2, queue="yours"), signal_name="go", queue="default")

        def work(connection: Any, work: TransactionWork) -> None:
            work.start(order.bind(3, name="bob"), workflow_id="o-3")
            work.signal_with_start("o-4", order.bind(4), signal_name="go")

        await engine.transaction(work)

        assert await handle.result() == [1, "mine", "ann", "default", "o-1"]
        assert await engine.handle("o-2").result() == [2, "yours", "nobody", "default", "o-2"]
        assert await engine.handle("o-3").result() == [3, "none", "bob", "default", "o-3"]
        assert await engine.handle("o-4").result() == [4, "none", "nobody", "default", "o-4"]


async def test_bound_workflows_go_through_a_client_and_the_socket(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'orders.db'}"
    async with Engine(url, workflows=[order]), Client(url) as client:
        handle = await client.start(order.bind(1, queue="mine"), workflow_id="o-1")
        assert await handle.result() == [1, "mine", "nobody", "default", "o-1"]
        await client.signal_with_start_workflow("o-2", order.bind(2, name="ann"), signal_name="go")
        assert await client.handle("o-2").result() == [2, "none", "ann", "default", "o-2"]
        with pytest.raises(InvalidArguments, match=r"Pass all of them to bind"):
            await client.start(order.bind(1), 2)  # type: ignore[call-overload]


async def test_bound_workflows_go_through_a_sync_client(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'orders.db'}"

    def use_client() -> list[Any]:
        with SyncClient(url) as client:
            return client.start(order.bind(1, queue="mine"), workflow_id="o-1").result()

    async with Engine(url, workflows=[order]):
        assert await asyncio.to_thread(use_client) == [1, "mine", "nobody", "default", "o-1"]


async def test_bound_children_and_continuations() -> None:
    async with Engine("memory://", workflows=[order, parent, goes_on]) as engine:
        assert await (await engine.start(parent)).result() == [
            [1, "mine", "ann", "default", "run"],
            [2, "none", "bob", "default", "started"],
        ]
        for how in ("positional", "named"):
            continued: Any = await engine.start(goes_on, how, workflow_id=how)
            assert await engine.handle(continued.workflow_id).result() == [3, "none", "eve", "default", how]
        with pytest.raises(Exception, match="too many"):
            await (await engine.start(goes_on, "both")).result()


def test_bind_refuses_what_the_workflow_does_not_take() -> None:
    wrong: list[tuple[Any, Any]] = [((), {}), ((1, "a", "b", "c"), {}), ((1,), {"number": 2}), ((1,), {"colour": "red"})]
    for args, kwargs in wrong:
        with pytest.raises(InvalidArguments):
            order.bind(*args, **kwargs)
    assert repr(order.bind(1, name="ann")) == "<workflow order(1, name='ann')>"


@pytest.mark.parametrize("extra", [{"args": (2,)}, {"kwargs": {"name": "ann"}}, {"kwargs": {"workflow_input": 2}}])
async def test_arguments_beside_bound_ones_are_refused(extra: dict[str, Any]) -> None:
    start: Any
    async with Engine("memory://", workflows=[order]) as engine:
        start = engine.start
        with pytest.raises(InvalidArguments):
            await start(order.bind(1), *extra.get("args", ()), **extra.get("kwargs", {}))
