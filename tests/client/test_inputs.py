"""Starts by name: arguments are checked without the workflow's code, by what nodes announce."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from decimal import Decimal
from typing import Annotated, Any

import pytest
from msgspec import Meta

from holdfast import Client, Context, Engine, WorkflowHandle, workflow
from holdfast.client.direct import DirectVerbs
from holdfast.errors import ExecutionNotFound, InvalidArguments
from holdfast.log_events import LogEvent
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


@workflow
async def sell(ctx: Context, name: Annotated[str, Meta(pattern=r"^\w+$")], price: Decimal) -> str:
    return f"{name} {price}"


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


@pytest.mark.parametrize(("name", "price"), [("Müller", "12.5"), ("x", 12.5)])
async def test_U1_a_client_starts_what_an_engine_starts(postgres_url: str, name: str, price: Any) -> None:
    async with Engine(postgres_url, workflows=[sell]) as engine, Client(postgres_url) as client:
        by_engine: WorkflowHandle[Any] = await engine.start("sell", name, price)
        by_client: WorkflowHandle[Any] = await client.start("sell", name, price)

        assert await by_engine.result() == await by_client.result() == f"{name} 12.5"


async def test_I4_without_a_node_arguments_by_position_are_accepted(postgres_url: str) -> None:
    async with Client(postgres_url) as client:
        assert (await client.start("collect", "two")).created
        with pytest.raises(InvalidArguments, match="no living node announces them"):
            await client.start("collect", count=2)
        async with make_engine(postgres_url):
            assert (await client.start("collect", count=2)).created


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if getattr(one, "event", None) == LogEvent.WORKFLOW_NOT_ANNOUNCED]


async def test_a_name_that_no_living_node_has_is_warned_of_once(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with make_engine(postgres_url), Client(postgres_url) as client:
        await client.start("collect", 1)
        assert list_warnings(caplog) == []

        await client.start("colect", 1)
        await client.start("colect", 1)

    told = "workflow 'colect' was started, but no living node has it: the execution waits until one does."
    assert list_warnings(caplog) == [f"{told} Did you mean 'collect'?"]


def test_the_command_line_tells_of_a_name_that_no_living_node_has(postgres_url: str) -> None:
    async def make() -> None:
        async with make_engine(postgres_url):
            pass

    asyncio.run(make())
    command = [sys.executable, "-m", "holdfast.cli", "start", postgres_url, "colect", "1"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert "Started colect" in done.stdout
    assert "no living node has it" in done.stderr
