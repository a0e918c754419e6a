"""G1 to G3: an org has no more open executions, subscriptions and kept items than it may; what is refused leaves nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import (
    Context,
    InvalidConfiguration,
    LimitReached,
    OrgLimits,
    PublicationFailed,
    SubscriptionFailed,
    Workflow,
    workflow,
)
from holdfast.core.request_keys import RequestKey
from holdfast.engine.requests import Answer, Opened, Request
from holdfast.engine.use_cases.open_limits import OpenLimits
from holdfast.store.rows import RequestRow
from tests.eventually import eventually
from tests.rules.world import Nodes, World


@workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def parent(ctx: Context, children: int) -> list[str]:
    return list(await asyncio.gather(*(ctx.run_child(waiting, workflow_id=f"child-{number}") for number in range(children))))


@workflow
async def runs(ctx: Context, left: int) -> str:
    await ctx.wait_for_signal("go")
    if left:
        ctx.continue_as(left - 1)
    return "done"


@workflow
async def subscriber(ctx: Context, name: str) -> str:
    try:
        return str(await ctx.wait_for_broadcast(name))
    except SubscriptionFailed as error:
        return f"{error.type}: {error.message}"


@workflow
async def payee(ctx: Context, key: str) -> Any:
    try:
        return await ctx.wait_for_message("paid", key)
    except SubscriptionFailed as error:
        return error.type


@workflow
async def payer(ctx: Context, key: str) -> str:
    try:
        await ctx.send_message("paid", key, ttl=60)
    except PublicationFailed as error:
        return error.type
    return "sent"


WORKFLOWS: list[Workflow[..., Any]] = [waiting, parent, runs, subscriber, payee, payer]
TWO_OPEN = OrgLimits(open_executions=2)


async def count_open(engine: Any, org: str = "default") -> int:
    return sum(info.closed_at is None for info in await engine.list(org=org, limit=1000))


# --- open executions ---


async def test_G1_a_start_of_an_open_id_that_closes_meanwhile_takes_its_place(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=TWO_OPEN)
    for name in "ab":
        await engine.start(waiting, workflow_id=name)
    delivery = engine._delivery
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def send(request: Request) -> Answer:
        if request.workflow_id == "a":
            reached.set()
            await goes_on.wait()
        return await delivery.send(request)

    async def recall(_org: str, _key: RequestKey) -> RequestRow | None:
        return None

    limits = OpenLimits(engine.store, engine.config, send, recall)

    async def start(workflow_id: str) -> Answer:
        prepared = delivery.make_start("default", waiting, [], {"workflow_id": workflow_id})
        return await limits.send(Request("default", prepared.start, workflow_id=workflow_id))

    again = asyncio.create_task(start("a"))
    await reached.wait()
    await engine.signal_workflow("a", "go", "on")
    await engine.handle("a").result()
    others = [asyncio.create_task(start(name)) for name in "cd"]
    await engine.settle()
    goes_on.set()

    opened = await again
    assert isinstance(opened, Opened)
    assert opened.created
    found = await asyncio.gather(*others, return_exceptions=True)

    assert [type(one) for one in found] == [LimitReached, LimitReached]
    assert await count_open(engine) == 2


async def test_G1_what_would_be_one_too_many_is_refused_and_leaves_nothing(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=TWO_OPEN)
    for name in "ab":
        await engine.start(waiting, workflow_id=name)

    with pytest.raises(LimitReached, match=r"fewer than 2 open executions.*OrgLimits") as caught:
        await engine.start(waiting, workflow_id="c", request_id="first")

    assert (caught.value.org, caught.value.what, caught.value.limit) == ("default", "open_executions", 2)
    with pytest.raises(LimitReached):
        await engine.signal_with_start_workflow("d", waiting, signal_name="go", signal_value="x")
    with pytest.raises(LimitReached):
        await engine.update_with_start("e", waiting, update_name="u")
    assert sorted(info.workflow_id for info in await engine.list()) == ["a", "b"]


async def test_G1_a_place_is_free_as_soon_as_an_execution_has_ended(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=TWO_OPEN)
    handles = [await engine.start(waiting, workflow_id=f"w{number}") for number in range(2)]

    for number in range(2, 12):
        with pytest.raises(LimitReached):
            await engine.start(waiting, workflow_id=f"w{number}")
        await handles[-1].signal("go", "x")
        await handles.pop().result()
        handles.append(await engine.start(waiting, workflow_id=f"w{number}"))

    assert await count_open(engine) == 2


async def test_G1_starts_that_find_an_open_execution_or_were_answered_pass(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=TWO_OPEN)
    first = await engine.start(waiting, workflow_id="a", request_id="r1")
    keyed = await engine.start(waiting, idempotency_key="k1")

    again = await engine.start(waiting, workflow_id="a", request_id="r1")
    found = await engine.start(waiting, workflow_id="a")
    same = await engine.start(waiting, idempotency_key="k1")
    signalled = await engine.signal_with_start_workflow("a", waiting, signal_name="go", signal_value="x")

    assert {again.execution_id, found.execution_id, signalled.workflow_execution_id} == {first.execution_id}
    assert same.execution_id == keyed.execution_id
    assert await first.result() == "x"
    assert await count_open(engine) == 1


async def test_G1_calls_at_the_same_time_get_exactly_as_many_places_as_there_are(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(open_executions=20))

    starts = [engine.start(waiting, workflow_id=f"w{number}") for number in range(50)]
    ends = await asyncio.gather(*starts, return_exceptions=True)

    assert sum(isinstance(end, LimitReached) for end in ends) == 30
    assert await count_open(engine) == 20


async def test_G1_calls_that_are_refused_at_the_same_time_share_a_count(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of them would look at as many rows as the limit says."""
    engine = await world.open(WORKFLOWS, org_limits=TWO_OPEN)
    for name in "ab":
        await engine.start(waiting, workflow_id=name)
    counts: list[str] = []
    count = engine.store.count_open

    async def count_open(org: str, limit: int) -> int:
        counts.append(org)
        await asyncio.sleep(0)  # a database is asked over a connection
        return await count(org, limit)

    monkeypatch.setattr(engine.store, "count_open", count_open)
    starts = [engine.start(waiting, workflow_id=f"w{number}") for number in range(50)]
    ends = await asyncio.gather(*starts, return_exceptions=True)

    assert sum(isinstance(end, LimitReached) for end in ends) == 50
    assert 1 <= len(counts) <= 5


async def test_G1_starts_that_opened_nothing_take_no_place(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=TWO_OPEN)
    await engine.start(waiting, workflow_id="a")
    for _ in range(20):
        await engine.start(waiting, workflow_id="a")

    await engine.start(waiting, workflow_id="b")

    assert await count_open(engine) == 2


async def test_G1_orgs_are_counted_apart_and_have_limits_of_their_own(world: World) -> None:
    overrides = {"big": OrgLimits(open_executions=3), "free": OrgLimits()}
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(open_executions=1), org_limit_overrides=overrides)

    for org, most in (("default", 1), ("other", 1), ("big", 3)):
        for _ in range(most):
            await engine.start(waiting, org=org)
        with pytest.raises(LimitReached, match=f"org '{org}'"):
            await engine.start(waiting, org=org)
    for _ in range(5):
        await engine.start(waiting, org="free")

    assert await count_open(engine, "free") == 5


async def test_G1_children_and_further_runs_are_counted_and_never_refused(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=TWO_OPEN)
    chain = await engine.start(runs, 1, workflow_id="chain")
    await engine.start(parent, 3, workflow_id="parent")
    await eventually(lambda: is_open(engine, "child-2"))

    await chain.signal("go")
    await eventually(lambda: has_run(engine, chain.execution_id))

    assert await count_open(engine) == 5
    with pytest.raises(LimitReached):
        await engine.start(waiting)


async def is_open(engine: Any, workflow_id: str) -> bool:
    return any(info.workflow_id == workflow_id for info in await engine.list())


async def has_run(engine: Any, execution_id: str | None) -> bool:
    return any(info.workflow_id == "chain" and info.execution_id != execution_id for info in await engine.list())


async def test_G1_other_nodes_are_counted_a_second_later(nodes: Nodes) -> None:
    first = await nodes.open("first", WORKFLOWS, org_limits=TWO_OPEN)
    second = await nodes.open("second", WORKFLOWS, org_limits=TWO_OPEN)
    for name in "ab":
        await first.start(waiting, workflow_id=name)

    with pytest.raises(LimitReached):
        await second.start(waiting, workflow_id="c")


async def test_G1_limits_that_make_no_sense_are_refused(world: World) -> None:
    for wrong in (0, -1, True, 1.5, "7"):
        with pytest.raises(InvalidConfiguration, match="open_executions"):
            await world.open(WORKFLOWS, org_limits=OrgLimits(open_executions=wrong))  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match="OrgLimits"):
        await world.open(WORKFLOWS, org_limits=7)
    with pytest.raises(InvalidConfiguration, match="org_limit_overrides"):
        await world.open(WORKFLOWS, org_limit_overrides={"a": None})
    with pytest.raises(InvalidConfiguration, match="org_limit_overrides"):
        await world.open(WORKFLOWS, org_limit_overrides=[])


# --- subscriptions ---


async def test_G2_a_wait_too_many_fails_and_the_others_go_on(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(subscriptions=2))
    first = [await engine.start(subscriber, "go", workflow_id=f"s{number}") for number in range(2)]
    third = await engine.start(subscriber, "go")

    text = await third.result()

    assert text.startswith("LimitReached: ")
    assert "fewer than 2 subscriptions" in text
    sent = await engine.broadcast_signal("go", "now")
    assert (sent.delivered, [await handle.result() for handle in first]) == (2, ["now", "now"])


async def test_G2_a_wait_that_ended_makes_room(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(subscriptions=1))
    for number in range(3):
        handle = await engine.start(payee, f"k{number}")
        await engine.send_message("paid", f"k{number}", number, ttl=60)
        assert await handle.result() == number


async def test_G2_a_wait_that_finds_something_kept_needs_no_room(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(subscriptions=1))
    await engine.send_message("paid", "kept", 7, ttl=60)
    await engine.start(subscriber, "go")

    assert await (await engine.start(payee, "kept")).result() == 7
    assert await (await engine.start(payee, "other")).result() == "LimitReached"


async def test_G2_orgs_have_subscriptions_of_their_own(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limit_overrides={"small": OrgLimits(subscriptions=1)})
    for org in ("small", "large", "large"):
        await engine.start(subscriber, "go", org=org)

    assert (await (await engine.start(subscriber, "go", org="small")).result()).startswith("LimitReached")
    assert (await engine.broadcast_signal("go", org="large")).delivered == 2


# --- kept items ---


async def test_G3_what_would_be_kept_beyond_the_limit_is_refused(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(kept_items=2))
    await engine.send_message("paid", "a", ttl=60)
    await engine.send_message("other", "b", ttl=60)

    with pytest.raises(LimitReached, match=r"keeps 2 messages and events.*OrgLimits") as caught:
        await engine.send_message("paid", "c", ttl=60)

    assert (caught.value.what, caught.value.limit) == ("kept_items", 2)
    assert await (await engine.start(payer, "d")).result() == "LimitReached"
    assert (await engine.send_message("paid", "c", ttl=60, org="elsewhere")).kept
    waiter = await engine.start(payee, "e")
    assert (await engine.send_message("paid", "e", 1)).delivered
    assert await waiter.result() == 1


async def test_G3_what_was_taken_makes_room(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(kept_items=1))
    for number in range(3):
        await engine.send_message("paid", "k", number, ttl=60)
        assert await (await engine.start(payee, "k")).result() == number


async def test_G3_what_has_expired_is_not_counted(world: World) -> None:
    engine = await world.open(WORKFLOWS, org_limits=OrgLimits(kept_items=1))
    await engine.send_message("paid", "a", ttl=60)
    await engine.clock.advance(61)

    assert (await engine.send_message("paid", "b", ttl=60)).kept
