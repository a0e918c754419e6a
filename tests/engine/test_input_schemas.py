"""Input that is checked without the code of the workflow, by what nodes announce."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pytest
from msgspec import Meta, Raw
from pydantic import BaseModel, Field

from holdfast import Context, Engine, workflow
from holdfast.core import codec
from holdfast.core.envelopes import Start
from holdfast.core.ids import make_execution_id
from holdfast.core.input_schemas import InputSchema, ParameterSchema
from holdfast.core.payloads import Payload
from holdfast.core.routes import find_start_route
from holdfast.engine.nodes.input_schemas import InputChecker, KeptCheckers, encode_arguments, find_checkers
from holdfast.errors import InvalidArguments, WorkflowFailed
from holdfast.store.rows import InboxRow
from tests.engine.support.cluster import Cluster
from tests.store.builders import commit_unrouted


@dataclass
class Item:
    name: str
    count: int = 1


class Customer(BaseModel):
    name: str
    age: int


class Guest(BaseModel):
    first_name: str = Field(alias="firstName")


@workflow
async def buy(ctx: Context, item: Item, price: float, note: str | None = None, tags: list[str] = []) -> str:  # noqa: B006
    return item.name


@workflow
async def greet(ctx: Context, customer: Customer) -> str:
    return customer.name


@workflow(name="buy", version="2")
async def buy_by_name(ctx: Context, name: str) -> str:
    return name


async def check(engine: Engine, name: str, *args: Any, version: str | None = None, **kwargs: Any) -> Any:
    checkers = await find_checkers(engine.store, name, version, engine.clock.now())
    found = encode_arguments(name, checkers, (args, kwargs), 10_000)
    return json.loads(bytes(found.data))


@pytest.fixture
async def engine(url: str) -> Any:
    async with Engine(url, workflows=[buy, greet]) as engine:
        yield engine


async def test_I4_arguments_are_placed_by_what_nodes_announce(engine: Engine) -> None:
    assert await check(engine, "buy", {"name": "x"}, 2) == [{"name": "x"}, 2, None, []]
    assert await check(engine, "buy", price=2.5, item=Item("y"), tags=["a"]) == [{"name": "y", "count": 1}, 2.5, None, ["a"]]
    assert await check(engine, "greet", {"name": "Ann", "age": 3}) == [{"name": "Ann", "age": 3}]


@workflow
async def call(
    ctx: Context, name: Annotated[str, Meta(pattern=r"^\w+$")], price: Decimal, guest: Guest | None = None
) -> str:
    return name


TAKEN: list[tuple[Any, ...]] = [("Müller", "12.5"), ("x", 12.5), ("x\n", 1), ("x", 1, {"first_name": "Ann"})]


@pytest.mark.parametrize("args", TAKEN)
async def test_I4_what_the_code_takes_is_taken_without_it(url: str, args: tuple[Any, ...]) -> None:
    async with Engine(url, workflows=[call]) as engine:
        assert await (await engine.start(call, *args)).result() == args[0]

        assert (await check(engine, "call", *args))[: len(args)] == list(args)
        with pytest.raises(InvalidArguments, match="does not match its pattern"):
            await check(engine, "call", "two words", 1)


async def test_I4_a_schema_of_a_node_from_before_refuses_nothing() -> None:
    old = ParameterSchema(name="name", hint="str", schema={"type": "string", "pattern": r"^\w+$"})

    encoded = InputChecker(InputSchema(what="it", parameters=[old])).encode(["Müller"], {}, 1000)

    assert json.loads(bytes(encoded.data)) == ["Müller"]


BAD: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("buy", ({"name": 5}, 1), {}),
    ("buy", ({}, 1), {}),
    ("buy", ({"name": "x"}, "dear"), {}),
    ("buy", ({"name": "x"}, 1), {"note": 7}),
    ("buy", ({"name": "x"}, 1), {"tags": [1]}),
    ("buy", ({"name": "x"},), {}),
    ("buy", ({"name": "x"}, 1, None, [], 5), {}),
    ("buy", ({"name": "x"}, 1), {"price": 2}),
    ("buy", ({"name": "x"}, 1), {"colour": "red"}),
    ("greet", ({"name": "Ann"},), {}),
    ("greet", ("Ann",), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), BAD)
async def test_I4_what_is_refused_with_the_code_is_refused_without_it(
    engine: Engine, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArguments) as with_code:
        await engine.start(name, *args, **kwargs)
    with pytest.raises(InvalidArguments) as without:
        await check(engine, name, *args, **kwargs)

    assert without.value.message.split(", but")[0] == with_code.value.message.split(", but")[0]


async def test_I4_during_an_upgrade_what_one_living_node_takes_is_accepted(cluster: Cluster) -> None:
    one = await cluster.open("one", buy)
    two = await cluster.open("two", buy_by_name)

    by_old = await check(one, "buy", {"name": "x"}, 1)
    by_new = await check(one, "buy", "x")
    with pytest.raises(InvalidArguments, match="parameter 'name'"):
        await check(one, "buy", 5, version="2")
    await two.shutdown()

    assert (by_old, by_new) == ([{"name": "x"}, 1, None, []], ["x"])
    with pytest.raises(InvalidArguments):
        await check(one, "buy", "x")


async def test_I4_without_an_announcement_the_first_turn_fails_with_the_same_message(engine: Engine) -> None:
    assert await check(engine, "unknown", 1, "two") == [1, "two"]
    with pytest.raises(InvalidArguments, match="no living node announces them"):
        await check(engine, "unknown", one=1)
    with pytest.raises(InvalidArguments) as refused:
        await engine.start("buy", {"name": 5}, 1.0)
    execution_id = make_execution_id(engine.clock.now(), 5)
    start = Start(
        execution_id=execution_id, workflow_id="w", workflow="buy", input=Payload(Raw(b'[{"name": 5}, 1.0, null, []]')),
        queue="default", code_version="", metadata={},
    )  # fmt: skip

    await commit_unrouted(engine.store, InboxRow("default", "", "w", codec.encode(start), route=find_start_route(start)))
    engine._runtime.pump.look()

    with pytest.raises(WorkflowFailed) as failed:
        await engine.handle("w").result()
    assert refused.value.message.split(" in ")[0] in str(failed.value)


async def test_added_workflows_are_announced(engine: Engine) -> None:
    engine.add_workflow(buy_by_name)
    for _ in range(1000):
        if "2" in engine._runtime._inputs.digests["buy"]:
            break
        await asyncio.sleep(0.01)

    digests = engine._runtime._inputs.digests
    assert set(await engine.store.read_input_schemas(digests["buy"].values())) == set(digests["buy"].values())


async def test_I4_a_schema_is_made_ready_once_and_for_all_threads(engine: Engine) -> None:
    found = [await find_checkers(engine.store, "greet", None, engine.clock.now()) for _ in range(2)]
    [first], [second] = found
    assert first is second, "not read and compiled again for each start"

    encoded = first.encode([{"name": "Ann", "age": 40}], {}, 1000)
    assert await asyncio.to_thread(first.encode, [{"name": "Ann", "age": 40}], {}, 1000) == encoded
    with pytest.raises(InvalidArguments, match="age"):
        await asyncio.to_thread(first.encode, [{"name": "Ann"}], {}, 1000)


def test_schemas_that_were_used_last_are_kept() -> None:
    kept, checkers = KeptCheckers(2), [InputChecker(InputSchema(what=name, parameters=[])) for name in "abc"]
    kept.keep("a", checkers[0])
    kept.keep("b", checkers[1])
    assert kept.find("a") is checkers[0]
    kept.keep("c", checkers[2])

    assert [kept.find(digest) for digest in "abc"] == [checkers[0], None, checkers[2]]
