"""Arguments by name: the same for children, activities and starts by name, and never taken for an option in silence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from holdfast import (
    Client,
    Context,
    EncodedPayload,
    Engine,
    InvalidArguments,
    PayloadCodec,
    WorkflowFailed,
    activity,
    workflow,
)
from holdfast.code.values import Values
from holdfast.core.behaviours import PRESENT, STRICT_ARGUMENTS
from holdfast.core.events import HistoryTurn, WorkflowStarted
from holdfast.core.payloads import Strictness
from holdfast.engine.payload_codecs import decode_payloads, encode_payloads
from tests.code.playing import Play, replay


@activity
async def price(item: str, *, count: int = 1) -> str:
    return f"{count} {item}"


@workflow
async def order(ctx: Context, item: str, count: int = 2, *, note: str = "none") -> list[Any]:
    return [item, count, note]


@workflow
async def remind(ctx: Context, delay: int = 3, org: str = "") -> list[Any]:
    return [delay, org, ctx.info.org]


@workflow
async def parent(ctx: Context, name: str, named: dict[str, Any]) -> Any:
    return await ctx.run_child(name, "tea", **named)


@workflow
async def shop(ctx: Context, named: dict[str, Any]) -> str:
    return str(await ctx.run("price", **named))


@workflow
async def goes_on(ctx: Context) -> list[Any]:
    ctx.continue_as("tea", workflow="order", note="soon")


EITHER = r"^Expected {}=… to be an argument of workflow 'remind' or an option of the call, but it may be either\."
BY_NAME = r"but 'note' is given by position, and can be given by name only. Write note=…\.$"
WORKFLOWS: list[Any] = [order, remind, parent, shop, goes_on]


@pytest.mark.parametrize("named", [{}, {"note": "soon"}, {"note": "soon", "count": 5}, {"count": 7}])
async def test_children_and_starts_by_name_take_the_same_arguments(named: dict[str, Any]) -> None:
    expected = ["tea", named.get("count", 2), named.get("note", "none")]

    async with Engine("memory://", workflows=WORKFLOWS) as engine:
        assert await (await engine.start("order", "tea", **named)).result() == expected
        assert await (await engine.start(parent, "order", named)).result() == expected


async def test_activities_and_next_runs_by_name_take_named_arguments() -> None:
    async with Engine("memory://", workflows=WORKFLOWS, activities=[price]) as engine:
        assert await (await engine.start(shop, {"item": "tea", "count": 3})).result() == "3 tea"
        continued = await engine.start(goes_on, workflow_id="g")
        assert await continued.result() == ["tea", 2, "soon"]


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"colour": "red"}, "'colour' is no parameter of it"),
        ({"item": "tea"}, "Expected one value for parameter 'item' of workflow 'order', but two were given"),
        ({"count": "x"}, "Expected parameter 'count' of workflow 'order' to be int"),
    ],
)
async def test_wrong_names_fail_the_child_with_the_reason(named: dict[str, Any], reason: str) -> None:
    async with Engine("memory://", workflows=WORKFLOWS) as engine:
        with pytest.raises(WorkflowFailed, match=reason):
            await (await engine.start(parent, "order", named)).result()


async def test_keyword_that_may_be_an_option_or_an_argument_is_refused() -> None:
    async with Engine("memory://", workflows=WORKFLOWS) as engine:
        for started in (remind, "remind"):
            with pytest.raises(InvalidArguments, match=EITHER.format("delay")):
                await engine.start(started, delay=5)
            with pytest.raises(InvalidArguments, match=EITHER.format("org")):
                await engine.start(started, 5, org="acme")

        assert await (await engine.start(remind, 5)).result() == [5, "", "default"]
        assert await (await engine.start(remind, 5, "x", delay=0, org="acme")).result() == [5, "x", "acme"]
        assert await (await engine.start(remind.bind(delay=5, org="x"), org="acme")).result() == [5, "x", "acme"]


async def test_client_refuses_what_the_engine_refuses(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    async with Engine(url, workflows=WORKFLOWS), Client(url) as client:
        for started in (remind, "remind"):
            with pytest.raises(InvalidArguments, match=EITHER.format("delay")):
                await client.start(started, delay=5)
            with pytest.raises(InvalidArguments, match=EITHER.format("org")):
                await client.start(started, org="acme")
        orders: list[Any] = [order, "order"]
        for named in orders:
            with pytest.raises(InvalidArguments, match="'item' is missing"):
                await client.start(named, note="soon")
            assert await (await client.start(named, "tea", note="soon")).result() == ["tea", 2, "soon"]
        with pytest.raises(InvalidArguments, match=BY_NAME):
            await client.start(orders[0], "tea", 1, "soon")
        # By name everything can be given by position, as the command line does it.
        assert await (await client.start("order", "tea", 1, "soon")).result() == [
            "tea",
            1,
            "soon",
        ]  # as the command line does


async def test_keyword_only_parameters_are_refused_by_position() -> None:
    wrong: Any = ("tea", 1, "soon")
    loose: Any = order
    async with Engine("memory://", workflows=WORKFLOWS) as engine:
        for started in (engine.start(loose, *wrong), engine.start(loose.bind(*wrong))):
            with pytest.raises(InvalidArguments, match=BY_NAME):
                await started


@pytest.mark.parametrize("is_old", [True, False])
def test_executions_from_before_may_pass_them_by_position(is_old: bool) -> None:
    @workflow(name="story")
    async def positional(ctx: Context) -> str:
        loose: Any = ctx
        return str(await loose.run(price, "tea", 4))

    @workflow(name="story")
    async def named(ctx: Context) -> str:
        return await ctx.run(price, "tea", count=4)

    (turn,) = Play(named).history
    started, *others = turn.events
    assert isinstance(started, WorkflowStarted)
    behaviours = tuple(one for one in PRESENT if not is_old or one != STRICT_ARGUMENTS)
    old = msgspec.structs.replace(started, behaviours=behaviours)

    refused = replay(positional, [HistoryTurn(turn.first, turn.at, (old, *others))])

    assert (refused is None) == is_old


class _PayloadOfBefore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A payload as nodes of the version before know it: they cannot bind named arguments."""

    data: msgspec.Raw
    encoding: str = "json"
    key: str = ""


class _Reversing:
    async def encode(self, payloads: Sequence[EncodedPayload], org: str) -> Sequence[EncodedPayload]:
        return [EncodedPayload(one.data[::-1], "reversed", "k") for one in payloads]

    async def decode(self, payloads: Sequence[EncodedPayload]) -> Sequence[EncodedPayload]:
        return [EncodedPayload(one.data[::-1]) for one in payloads]


@pytest.mark.parametrize("codec", [None, _Reversing()])
async def test_nodes_of_the_version_before_leave_calls_with_named_arguments_alone(codec: PayloadCodec | None) -> None:
    """Else they would fail them for good, beside newer nodes that could run them."""
    values = Values(10_000)
    values.strictness = Strictness.STRICT
    named, plain = values.encode_arguments(["tea"], {"note": "soon"}, "order"), values.encode_arguments(["tea"], {}, "order")
    if codec is not None:
        stored = await encode_payloads(codec, [plain, named, plain], "org")
        assert await decode_payloads(codec, stored) == [plain, named, plain]
        plain, named, _ = stored

    assert msgspec.json.decode(msgspec.json.encode(plain), type=_PayloadOfBefore).data == plain.data
    with pytest.raises(msgspec.ValidationError, match="Object contains unknown field `named`"):
        msgspec.json.decode(msgspec.json.encode(named), type=_PayloadOfBefore)
