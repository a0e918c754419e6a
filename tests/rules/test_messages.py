"""M1 to M3: a message goes to whoever waits for its name and key, starts a workflow, is kept, or is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import (
    Context,
    DuplicateMessage,
    InvalidArguments,
    InvalidIdentifier,
    Message,
    MessageKeyTaken,
    MessageOutcome,
    MessageRefused,
    OutcomeUnknown,
    PublicationFailed,
    StoreUnavailable,
    TooManyKept,
    workflow,
)
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.world import Nodes, World, once

DELIVERED, STARTED, KEPT = MessageOutcome(delivered=True), MessageOutcome(started=True), MessageOutcome(kept=True)


@workflow
async def payee(ctx: Context, key: str, wanted: int = 1) -> list[Any]:
    return [await ctx.wait_for_message("paid", key) for _ in range(wanted)]


@workflow
async def patient(ctx: Context, key: str) -> Any:
    try:
        return await ctx.wait_for_message("paid", key, timeout=60)
    except TimeoutError:
        await ctx.wait_for_signal("go")
        return "too late"


@workflow
async def taken(ctx: Context, key: str) -> str:
    try:
        await ctx.wait_for_message("paid", key)
    except MessageKeyTaken:
        return "taken"
    return "got it"


@workflow
async def distracted(ctx: Context, key: str, wanted: int) -> list[int]:
    """Begins another wait whenever there is noise."""
    found: list[int] = []
    while len(found) < wanted:
        winner = await ctx.wait_any(ctx.message("paid", key, int), ctx.broadcast("noise"))
        if winner.value is not None:
            found.append(winner.value)
    return found


@workflow(starts_on=Message("order"))
async def order(ctx: Context, item: str) -> str:
    await ctx.wait_for_signal("done")
    return item


@workflow(starts_on=Message("pair"))
async def pair(ctx: Context, left: int, right: int) -> int:
    return left + right


@workflow
async def sender(ctx: Context, name: str, key: str, value: Any, ttl: float | None = None) -> Any:
    try:
        outcome = await ctx.send_message(name, key, value, ttl=ttl)
    except PublicationFailed as error:
        return error.type
    return [outcome.delivered, outcome.started, outcome.kept]


# --- M1 -------------------------------------------------------------------------------------------------------------------


async def test_M1_second_execution_that_waits_for_the_same_key_is_told(world: World) -> None:
    engine = await world.open([payee, taken])
    first = await engine.start(payee, "k")

    assert await (await engine.start(taken, "k")).result() == "taken"
    assert await engine.send_message("paid", "k", 1) == DELIVERED
    assert await first.result() == [1]


async def test_M1_messages_for_one_key_arrive_in_the_order_of_the_calls(world: World) -> None:
    engine = await world.open([payee])
    handle = await engine.start(payee, "k", 20)

    await asyncio.gather(*(engine.send_message("paid", "k", number, ttl=60) for number in range(20)))

    assert await handle.result() == list(range(20))


@pytest.mark.parametrize("ttl", [None, 60])
async def test_M1_a_message_for_a_wait_that_has_ended_goes_to_the_next_wait(world: World, ttl: int | None) -> None:
    engine = await world.open([distracted])
    handle = await engine.start(distracted, "k", 2)
    await handle.pause()

    await engine.broadcast_signal("noise")
    assert await engine.send_message("paid", "k", 0, ttl=ttl) == DELIVERED
    assert await engine.send_message("paid", "k", 1, ttl=60) == KEPT
    await handle.resume()

    assert await handle.result() == [0, 1]
    assert await engine.dead_letters() == []


async def test_M1_keys_and_orgs_do_not_mix(world: World) -> None:
    engine = await world.open([payee])
    handles = [await engine.start(payee, key, org=org) for key in ("a", "b") for org in ("blue", "red")]

    for number, (key, org) in enumerate([("a", "blue"), ("a", "red"), ("b", "blue"), ("b", "red")]):
        await engine.send_message("paid", key, number, org=org)

    assert [await one.result() for one in handles] == [[0], [1], [2], [3]]


# --- M2 -------------------------------------------------------------------------------------------------------------------


async def test_M2_nobody_waits_is_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open([payee])

    with pytest.raises(MessageRefused, match="nobody"):
        await engine.send_message("paid", "k", 1)

    handle = await engine.start(payee, "k")
    assert (await handle.status()).status == "suspended"


async def test_M2_message_is_kept_for_its_time_to_live(world: World) -> None:
    engine = await world.open([payee])

    assert await engine.send_message("paid", "k", 1, ttl=60) == KEPT
    assert await engine.send_message("paid", "gone", 1, ttl=60) == KEPT
    assert await (await engine.start(payee, "k")).result() == [1]

    await engine.clock.advance(seconds=61)
    late = await engine.start(payee, "gone")
    assert (await late.status()).status == "suspended"


async def test_M2_engine_has_a_default_time_to_live(world: World) -> None:
    engine = await world.open([payee], message_ttl=60)

    assert await engine.send_message("paid", "k", 1) == KEPT
    with pytest.raises(MessageRefused):
        await engine.send_message("paid", "k2", 1, ttl=0)


async def test_M2_workflow_sends_with_the_default_time_to_live(world: World) -> None:
    engine = await world.open([payee, sender], message_ttl=60)

    kept = await engine.start(sender, "paid", "k", 1)
    refused = await engine.start(sender, "paid", "k2", 1, 0)

    assert await kept.result() == [False, False, True]
    assert await refused.result() == "MessageRefused"
    assert await (await engine.start(payee, "k")).result() == [1]


async def test_M2_message_starts_a_workflow_under_its_key(world: World) -> None:
    engine = await world.open([order, pair])

    assert await engine.send_message("order", "o-1", "tea") == STARTED
    assert await engine.send_message("pair", "p-1", {"left": 1, "right": 2}) == STARTED

    assert await engine.handle("p-1").result() == 3
    await engine.signal_workflow("o-1", "done")
    assert await engine.handle("o-1").result() == "tea"


async def test_M2_one_execution_per_key_and_the_next_when_it_closes(world: World) -> None:
    engine = await world.open([order])
    await engine.send_message("order", "o", "tea")

    with pytest.raises(MessageRefused):
        await engine.send_message("order", "o", "milk")
    assert await engine.send_message("order", "o", "salt", ttl=60) == KEPT
    first = (await engine.query_status("o")).execution_id
    await engine.signal_workflow("o", "done")
    assert await engine.handle(first).result() == "tea"
    await engine.settle()

    assert (await engine.query_status("o")).execution_id != first
    await engine.signal_workflow("o", "done")
    assert await engine.handle("o").result() == "salt"


async def test_M2_value_that_is_no_input_is_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open([order, pair])

    with pytest.raises(InvalidArguments, match="item"):
        await engine.send_message("order", "o", 7, ttl=60)
    with pytest.raises(InvalidArguments):
        await engine.send_message("pair", "p", {"left": 1})

    assert await engine.list() == []


async def test_I4_input_of_a_start_is_checked_by_what_other_nodes_announce(nodes: Nodes) -> None:
    plain = await nodes.open("plain", [payee])
    await nodes.open("starter", [order])

    with pytest.raises(InvalidArguments, match="item"):
        await plain.send_message("order", "o", 7)
    assert await plain.send_message("order", "o", "tea") == STARTED
    await plain.signal_workflow("o", "done")
    assert await plain.handle("o").result() == "tea"


async def test_M2_message_for_a_wait_that_timed_out_goes_to_the_next_that_waits(world: World) -> None:
    engine = await world.open([patient, payee])
    first = await engine.start(patient, "k")
    await engine.clock.advance(seconds=61)

    assert await engine.send_message("paid", "k", 1, ttl=600) == KEPT
    assert await (await engine.start(payee, "k")).result() == [1]
    await first.signal("go")
    assert await first.result() == "too late"


async def test_M2_message_for_an_execution_that_closes_is_kept_for_others(nodes: Nodes) -> None:
    one = await nodes.open("one", [payee])
    two = await nodes.open("two", [payee])
    handle = await one.start(payee, "k")
    nodes.pause("one")
    ending = asyncio.create_task(handle.terminate("enough"))
    await nodes.paused("one")

    sent = asyncio.create_task(two.send_message("paid", "k", 1, ttl=600))
    await asyncio.sleep(0.05)
    nodes.resume("one")
    await sent

    if await ending:  # the message was not there when it ended
        assert await (await two.start(payee, "k")).result() == [1]
    else:  # the message came first, and ended it
        assert await handle.result() == [1]


async def test_M2_workflow_is_told_what_became_of_its_message(world: World) -> None:
    engine = await world.open([sender, payee, order])
    waiting = await engine.start(payee, "k")

    assert await (await engine.start(sender, "paid", "k", 1, 0)).result() == [True, False, False]
    assert await (await engine.start(sender, "order", "o", "tea", 0)).result() == [False, True, False]
    assert await (await engine.start(sender, "paid", "k2", 1, 60)).result() == [False, False, True]
    assert await (await engine.start(sender, "paid", "k3", 1, 0)).result() == "MessageRefused"
    assert await (await engine.start(sender, "order", "o2", 7, 0)).result() == "InvalidArguments"
    assert await waiting.result() == [1]


# --- M3 -------------------------------------------------------------------------------------------------------------------


async def test_M3_message_with_an_id_is_published_once_while_it_is_kept(world: World) -> None:
    engine = await world.open([payee])
    await engine.send_message("paid", "k", 1, ttl=60, message_id="m")

    with pytest.raises(DuplicateMessage, match="'m'"):
        await engine.send_message("paid", "k", 2, ttl=60, message_id="m")

    assert await (await engine.start(payee, "k")).result() == [1]
    assert await engine.send_message("paid", "k", 3, ttl=60, message_id="m") == KEPT


async def test_M3_request_id_gives_the_first_answer_again(world: World) -> None:
    engine = await world.open([payee])
    handle = await engine.start(payee, "k", 2)

    answers = [await engine.send_message("paid", "k", 1, request_id="r") for _ in range(3)]
    await engine.send_message("paid", "k", 2, ttl=60, request_id="s")

    assert answers == [DELIVERED] * 3
    assert await handle.result() == [1, 2]


async def test_E4_more_messages_than_may_be_kept_are_refused(world: World) -> None:
    engine = await world.open([payee], max_pending_events=2)
    for key in ("a", "b"):
        await engine.send_message("paid", key, 1, ttl=60)

    with pytest.raises(TooManyKept, match="max_pending_events"):
        await engine.send_message("paid", "c", 1, ttl=60)


async def test_M2_bad_names_and_keys_are_refused(world: World) -> None:
    engine = await world.open([payee])

    for name, key in (("", "k"), ("paid", ""), ("paid", "k" * 300), ("pa\nid", "k")):
        with pytest.raises(InvalidIdentifier):
            await engine.send_message(name, key)


async def test_M2_the_longest_names_keys_and_ids_are_kept_and_found(world: World) -> None:
    """An index of PostgreSQL has room for 2,704 bytes."""
    org = key = "\U0001f600" * 255
    name = message_id = "\U0001f600" * 63
    engine = await world.open([payee])

    assert await engine.send_message(name, key, 1, ttl=60, message_id=message_id, org=org) == KEPT
    with pytest.raises(DuplicateMessage):
        await engine.send_message(name, key, 2, ttl=60, message_id=message_id, org=org)
    for wrong in ({"name": name * 2}, {"message_id": message_id * 2}):
        with pytest.raises(InvalidIdentifier, match="255 bytes"):
            await engine.send_message(**{"name": name, "key": key, "ttl": 60, "org": org, **wrong})  # type: ignore[arg-type]


# --- outages --------------------------------------------------------------------------------------------------------------


async def test_X5_unknown_commit_of_a_message_is_resolved_before_its_answer(nodes: Nodes) -> None:
    engine = await nodes.open("one", [payee])
    handle = await engine.start(payee, "k", 2)
    await engine.settle()
    nodes.faults["one"] = once(Point.COMMIT, FaultAction.APPLIED_UNKNOWN)

    assert await engine.send_message("paid", "k", 1) == DELIVERED
    assert await engine.send_message("paid", "k", 2, ttl=60) is not None
    assert await handle.result() == [1, 2]


async def test_X2_message_that_was_certainly_not_stored_raises_and_can_be_repeated(nodes: Nodes) -> None:
    engine = await nodes.open("one", [payee])
    handle = await engine.start(payee, "k")
    await engine.settle()
    nodes.faults["one"] = once(Point.COMMIT, FaultAction.LOST_UNKNOWN)

    with pytest.raises(StoreUnavailable) as failed:
        await engine.send_message("paid", "k", 1)

    assert not isinstance(failed.value, OutcomeUnknown)
    await nodes.clock.advance(seconds=1)
    assert await engine.send_message("paid", "k", 2, ttl=60) is not None
    assert await handle.result() == [2]
