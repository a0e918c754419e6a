"""I7: metadata is told to an execution's own code and activities; headers are handed on to all that it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, Message, activity, activity_info, event, workflow
from holdfast.errors import InvalidArguments
from holdfast.testing import TestEngine, replay
from tests.rules.world import Nodes, World

TRACE = {"traceparent": "00-ab-cd-01"}


@activity
async def told() -> list[dict[str, str]]:
    info = activity_info()
    return [dict(info.metadata), dict(info.headers)]


@activity(queue="far")
async def told_far() -> list[dict[str, str]]:
    info = activity_info()
    return [dict(info.metadata), dict(info.headers)]


@workflow
async def tells(ctx: Context, depth: int = 0, child_headers: dict[str, str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "own": [dict(ctx.info.metadata), dict(ctx.info.headers), ctx.info.queue, ctx.info.attempt],
        "activity": await ctx.run(told),
    }
    if depth:
        found["child"] = await ctx.run_child(tells.bind(depth=depth - 1), headers=child_headers, metadata={"of": "child"})
    return found


@workflow
async def continues(ctx: Context, left: int) -> list[Any]:
    if left:
        ctx.continue_as(left=left - 1)
    return [dict(ctx.info.metadata), dict(ctx.info.headers)]


@workflow
async def sends(ctx: Context) -> None:
    await ctx.signal_external_workflow("receiver", "news", 1)


@workflow
async def receives(ctx: Context, count: int) -> list[Any]:
    found = [dict(ctx.last_signal_headers("news"))]
    for _ in range(count):
        await ctx.wait_for_signal("news")
        found.append(dict(ctx.last_signal_headers("news")))
    return found


@workflow
async def hands_over(ctx: Context) -> list[Any]:
    if ctx.info.continued_from is None:
        await ctx.sleep(60)
        ctx.continue_as()
    await ctx.wait_for_signal("news")
    return [dict(ctx.last_signal_headers("news"))]


@workflow
async def far(ctx: Context) -> Any:
    return await ctx.run(told_far)


@workflow
async def by_name(ctx: Context, how: str) -> dict[str, Any]:
    if how == "continue":
        ctx.continue_as(workflow="tells", depth=1)
    found: dict[str, Any] = await ctx.run_child("tells", depth=1)
    return found


@event(name="HeadedParcel")
@dataclass
class Parcel:
    number: int


@workflow
async def takes_published(ctx: Context) -> list[Any]:
    found: list[Any] = [[ctx.last_message_headers("m"), ctx.last_event_headers(Parcel), ctx.last_broadcast_headers("b")]]

    @ctx.on_update
    def tell() -> dict[str, str]:
        found.append(dict(ctx.last_update_headers("tell")))
        return dict(ctx.last_update_headers("tell"))

    for _ in range(2):
        await ctx.wait_for_message("m", "k")
        found.append(ctx.last_message_headers("m"))
        await ctx.wait_any(ctx.event(Parcel), ctx.timer(3600))
        found.append(ctx.last_event_headers(Parcel))
        await ctx.wait_for_broadcast("b")
        found.append(ctx.last_broadcast_headers("b"))
    return found


@workflow
async def publishes(ctx: Context) -> None:
    await ctx.send_message("m", "k")
    await ctx.send_event(Parcel(1))
    await ctx.broadcast_signal("b")


@workflow(starts_on=Message("order-with-headers"))
async def started_by_message(ctx: Context, value: Any) -> dict[str, str]:
    return dict(ctx.info.headers)


async def open_one(world: World, *workflows: Any, **options: Any) -> TestEngine:
    return await world.open(workflows, [told, told_far], auto_advance=False, patience=0, **options)


async def test_I7_code_and_activities_know_metadata_and_headers(world: World) -> None:
    engine = await open_one(world, tells, queues=["default", "q"])
    handle = await engine.start(tells, metadata={"m": "1"}, headers=TRACE, queue="q")

    assert await handle.result() == {"own": [{"m": "1"}, TRACE, "q", 1], "activity": [{"m": "1"}, TRACE]}
    replay(await handle.history(), [tells])


async def test_I7_children_get_the_headers_and_not_the_metadata(world: World) -> None:
    engine = await open_one(world, tells)
    handle = await engine.start(tells, 2, metadata={"m": "1"}, headers=TRACE)

    child = (await handle.result())["child"]
    assert child["own"] == [{"of": "child"}, TRACE, "default", 1]
    assert child["child"]["activity"] == [{"of": "child"}, TRACE]


@pytest.mark.parametrize("headers", [{}, {"x": "y"}])
async def test_I7_a_child_may_get_other_headers(world: World, headers: dict[str, str]) -> None:
    engine = await open_one(world, tells)
    keywords: dict[str, Any] = {"child_headers": headers}
    handle = await engine.start(tells, 1, headers=TRACE, **keywords)

    assert (await handle.result())["child"]["own"][1] == headers


async def test_I7_continued_runs_keep_both(world: World) -> None:
    engine = await open_one(world, continues)
    handle = await engine.start(continues, 2, metadata={"m": "1"}, headers=TRACE)

    assert await handle.result() == [{"m": "1"}, TRACE]


async def test_I7_each_signal_has_its_own_headers(world: World) -> None:
    engine = await open_one(world, receives, sends)
    handle = await engine.start(receives, 4, workflow_id="receiver")
    await handle.signal("news", 1, headers={"n": "1"})
    await engine.signal_workflow("receiver", "news", 2)
    await engine.start(sends, headers=TRACE)
    await engine.restart()
    await engine.signal_with_start_workflow("receiver", receives, 9, signal_name="news", headers={"n": "4"})

    assert await handle.result() == [{}, {"n": "1"}, {}, TRACE, {"n": "4"}]
    replay(await handle.history(), [receives])


async def test_I7_a_signal_that_is_carried_over_keeps_its_headers(world: World) -> None:
    engine = await open_one(world, hands_over)
    handle = await engine.start(hands_over, workflow_id="w")
    await handle.signal("news", 1, headers=TRACE)
    await engine.clock.advance(minutes=1)

    assert await handle.result() == [TRACE]


async def test_I7_signal_with_start_gives_its_headers_to_both(world: World) -> None:
    engine = await open_one(world, receives)
    await engine.signal_with_start_workflow("w", receives, 1, signal_name="news", headers=TRACE)

    assert await engine.handle("w").result() == [{}, TRACE]
    assert (await engine.history("w")).to_json()[0]["headers"] == TRACE


async def test_I7_headers_reach_activities_on_other_nodes(nodes: Nodes) -> None:
    first = await nodes.open("a", [far], [told_far], queues=["default"])
    await nodes.open("b", [], [told_far], queues=["far"])
    handle = await first.start(far, metadata={"m": "1"}, headers=TRACE)

    assert await handle.result() == [{"m": "1"}, TRACE]


async def test_I7_headers_are_in_history_once(world: World) -> None:
    engine = await open_one(world, tells)
    handle = await engine.start(tells, headers=TRACE)
    await handle.result()

    events = (await handle.history()).to_json()
    assert [event["type"] for event in events if "headers" in event] == ["workflow_started"]
    assert "traceparent" not in str([event for event in events if event["type"] == "activity_scheduled"])


@pytest.mark.parametrize("how", ["child", "continue"])
async def test_I7_arguments_by_name_do_not_need_the_function(world: World, how: str) -> None:
    engine = await open_one(world, by_name, tells)

    found = await (await engine.start(by_name, how)).result()

    assert found["child"]["own"][0] == {"of": "child"}


@pytest.mark.parametrize("headers", [{"a": 1}, {1: "a"}, "text", {"a": "x" * 3_000_000}, {"a": "\ud800"}, {"a": None}])
async def test_I7_what_is_no_text_by_name_is_refused(alone: World, headers: Any) -> None:
    engine = await open_one(alone, receives)
    with pytest.raises(InvalidArguments, match="headers"):
        await engine.start(receives, 1, headers=headers)
    handle = await engine.start(receives, 1, workflow_id="w")
    with pytest.raises(InvalidArguments, match="headers"):
        await handle.signal("news", headers=headers)
    with pytest.raises(InvalidArguments, match="headers"):
        await engine.signal_with_start_workflow("v", receives, 1, signal_name="news", headers=headers)
    assert [info.workflow_id for info in await engine.list()] == ["w"]


async def test_I7_messages_events_broadcasts_and_updates_have_headers_of_their_own(world: World) -> None:
    engine = await open_one(world, takes_published, publishes, started_by_message)
    handle = await engine.start(takes_published, workflow_id="w")
    await engine.settle()

    await engine.send_message("m", "k", headers={"n": "1"})
    await engine.send_event(Parcel(1), headers={"n": "2"})
    await engine.settle()
    await engine.broadcast_signal("b", headers={"n": "3"})
    await engine.settle()
    assert await engine.update("w", "tell", headers={"n": "4"}) == {"n": "4"}
    await engine.restart()
    assert await engine.update("w", "tell") == {}
    await engine.start(publishes, headers=TRACE)

    expected = [[{}, {}, {}], {"n": "1"}, {"n": "2"}, {"n": "3"}, {"n": "4"}, {}, TRACE, TRACE, TRACE]
    assert await handle.result() == expected
    replay(await handle.history(), [takes_published])
    await engine.send_message("order-with-headers", "o", headers={"n": "5"})
    assert await engine.handle("o").result() == {"n": "5"}
