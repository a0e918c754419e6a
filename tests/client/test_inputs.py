"""Starts by name: arguments are checked without the workflow's code, by what nodes announce."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Client, Context, Engine, WorkflowHandle, workflow
from holdfast.client.direct import DirectVerbs
from holdfast.errors import ExecutionNotFound, InvalidArguments
from tests.client.conftest import Way, make_engine

AT = "2030-01-02T00:00:00Z"
BAD: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("collect", ("two",), {}),
    ("collect", (), {}),
    ("collect", (1, 2), {}),
    ("collect", (1,), {"count": 2}),
    ("collect", (1,), {"colour": "red"}),
    ("collect", (), {"workflow_input": "two"}),
    ("order", ({"name": 5, "at": AT},), {}),
    ("order", (), {"item": {"name": "tea"}}),
]


@workflow(name="collect", version="2")
async def collect_texts(ctx: Context, names: list[str]) -> None:
    await ctx.wait_for_signal("value")


async def test_I4_a_client_refuses_what_the_code_would_refuse_and_stores_nothing(way: Way) -> None:
    async with make_engine("memory://") as engine:
        for name, args, kwargs in BAD:
            with pytest.raises(InvalidArguments) as with_code:
                await engine.start(name, *args, **kwargs)
            with pytest.raises(InvalidArguments) as started:
                await way.verbs.start(name, *args, workflow_id="w", **kwargs)
            with pytest.raises(InvalidArguments) as signalled:
                await way.verbs.signal_with_start_workflow("w", name, *args, signal_name="value", **kwargs)

            words = with_code.value.message.split(", but")[0]
            assert started.value.message.split(", but")[0] == signalled.value.message.split(", but")[0] == words

    with pytest.raises(ExecutionNotFound):
        await way.verbs.query_status("w")
    assert not await way.verbs.list()


async def test_I4_arguments_by_name_are_placed_by_the_announced_parameters(way: Way) -> None:
    handle: WorkflowHandle[Any] = await way.verbs.start(
        "order",
        count=3,
        item={"name": "tea", "at": AT},
        workflow_id="o",
    )
    await way.verbs.signal_workflow("o", "paid", "yes")
    await way.verbs.signal_with_start_workflow("c", "collect", count=1, signal_name="value", signal_value=7)
    await way.work("o", "c")

    await handle.result()
    assert await way.verbs.query_result("o") == {"name": "tea*3", "at": AT}
    assert await way.verbs.handle("c").result() == [7]


async def test_I4_what_nodes_announce_is_asked_once_in_a_while(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with make_engine(postgres_url), DirectVerbs(postgres_url) as verbs:
        asked, list_nodes = [], verbs.store.list_nodes

        async def count() -> Any:
            asked.append(1)
            return await list_nodes()

        monkeypatch.setattr(verbs.store, "list_nodes", count)
        for number in range(5):
            await verbs.start("collect", 1, workflow_id=f"w{number}")

        assert len(asked) == 1


async def test_I4_a_client_knows_at_once_what_a_newer_node_takes(postgres_url: str) -> None:
    async with make_engine(postgres_url), Client(postgres_url) as client:
        with pytest.raises(InvalidArguments):
            await client.start("collect", ["a"])
        async with Engine(postgres_url, workflows=[collect_texts]):
            handle: WorkflowHandle[Any] = await client.start("collect", ["a"], version="2")

            assert (await handle.status()).workflow == "collect"
            assert (await client.start("collect", ["a"])).created


async def test_I4_without_a_node_arguments_by_position_are_accepted(postgres_url: str) -> None:
    async with Client(postgres_url) as client:
        assert (await client.start("collect", "two")).created
        with pytest.raises(InvalidArguments, match="no living node announces them"):
            await client.start("collect", count=2)
        async with make_engine(postgres_url):
            assert (await client.start("collect", count=2)).created
