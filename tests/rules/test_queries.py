"""Queries: the code of an execution answers about itself, from what is committed, and nothing changes by that."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, activity, workflow
from holdfast.core import payloads
from holdfast.engine.quarantine import REPLAY_SLOTS
from holdfast.errors import (
    AnswerTimedOut,
    ExecutionNotBegun,
    ExecutionNotFound,
    InvalidArguments,
    InvalidIdentifier,
    QueryFailed,
    ReadOnlyHandler,
    UnknownQuery,
    UnknownUpdate,
)
from holdfast.store.questions import Question
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.eventually import eventually
from tests.rules.world import Nodes, World, hear_nothing


@dataclass
class Basket:
    items: list[str]
    prices: dict[str, int]


@activity
async def note(text: str) -> str:
    return text


@workflow
async def shops(ctx: Context, first: str) -> list[str]:
    """Collects what it is signalled, until that is 'pay'; tells about it meanwhile, and afterwards."""
    basket = Basket([first], {first: 1})

    ctx.on_query("basket", lambda: basket)

    @ctx.on_query
    def price(item: str, count: int = 1) -> int:
        return basket.prices[item] * count

    @ctx.on_query("spoil")
    def spoil() -> int:
        basket.items.append("spoilt")
        return len(basket.items)

    @ctx.on_query("orders")
    def orders() -> None:
        _ = ctx.run(note, "ordered")

    @ctx.on_query("orders in vain")
    def orders_in_vain() -> str:
        try:
            _ = ctx.run(note, "ordered")
        except ReadOnlyHandler:
            return "caught"
        return "ordered"

    @ctx.on_query("spawns")
    def spawns() -> None:
        _ = asyncio.create_task(asyncio.sleep(1))  # noqa: RUF006

    @ctx.on_query("sets")
    def sets() -> None:
        ctx.set_state(paid=True)

    @ctx.on_query("spins")
    def spins() -> None:
        while True:
            pass

    @ctx.on_query("reads the clock")
    def reads_the_clock() -> float:
        return time.time()

    def refuse_by_task(_number: int) -> None:
        _ = asyncio.create_task(asyncio.sleep(1))  # noqa: RUF006

    ctx.on_update("spawning validator", lambda number: number, validator=refuse_by_task)
    while (item := await ctx.wait_for_signal("add", str)) != "pay":
        basket.items.append(await ctx.run(note, item))
        basket.prices[item] = len(item)
    return basket.items


async def test_Q1_a_query_answers_from_what_is_committed(world: World) -> None:
    engine = await world.open([shops], [note])
    handle = await engine.start(shops, "apple", workflow_id="w")
    await handle.signal("add", "pear")
    await engine.settle()

    assert await engine.query("w", "basket") == {"items": ["apple", "pear"], "prices": {"apple": 1, "pear": 4}}
    assert await engine.query("w", "basket", hint=Basket) == Basket(["apple", "pear"], {"apple": 1, "pear": 4})
    assert await engine.query("w", "price", "pear") == 4
    assert await engine.query(str(handle.execution_id), "price", "pear", 3) == 12


async def test_Q1_closed_executions_and_restarted_engines_answer_too(world: World) -> None:
    engine = await world.open([shops], [note])
    handle = await engine.start(shops, "apple", workflow_id="w")
    for item in ("pear", "pay"):
        await handle.signal("add", item)
    assert await handle.result() == ["apple", "pear"]

    assert (await engine.query("w", "basket"))["items"] == ["apple", "pear"]

    await engine.restart()
    assert (await engine.query("w", "basket"))["items"] == ["apple", "pear"]


@pytest.mark.parametrize("query", ["orders", "spawns", "sets"])
async def test_Q2_a_handler_that_asks_for_something_is_refused_and_nothing_changes(world: World, query: str) -> None:
    engine = await world.open([shops], [note])
    handle = await engine.start(shops, "apple", workflow_id="w")
    before = await handle.history(), await handle.status()

    with pytest.raises(ReadOnlyHandler, match="only to look"):
        await engine.query("w", query)

    after = await handle.history(), await handle.status()
    assert after[0].to_json() == before[0].to_json()
    assert after[1] == before[1]
    assert await engine.query("w", "orders in vain") == "caught"


async def test_Q2_what_a_handler_changes_is_forgotten(world: World) -> None:
    engine = await world.open([shops], [note])
    handle = await engine.start(shops, "apple", workflow_id="w")

    assert [await engine.query("w", "spoil") for _ in range(3)] == [2, 2, 2]

    for item in ("pear", "pay"):
        await handle.signal("add", item)
    assert await handle.result() == ["apple", "pear"]


async def test_Q2_a_validator_that_creates_a_task_refuses_its_update(world: World) -> None:
    engine = await world.open([shops], [note])
    await engine.start(shops, "apple", workflow_id="w")

    with pytest.raises(Exception, match="create a task"):
        await engine.update("w", "spawning validator", 1)


async def test_Q3_each_mistake_is_a_typed_error(world: World) -> None:
    engine = await world.open([shops], [note], turn_limit=0.5)
    await engine.start(shops, "apple", workflow_id="w")

    with pytest.raises(UnknownQuery) as unknown:
        await engine.query("w", "baskte")
    assert {"basket", "price"} <= set(unknown.value.known)
    assert not isinstance(unknown.value, UnknownUpdate)
    with pytest.raises(InvalidArguments):
        await engine.query("w", "price", [1])
    with pytest.raises(InvalidArguments):
        await engine.query("w", "basket", "one too many")
    with pytest.raises(QueryFailed, match="KeyError") as failed:
        await engine.query("w", "price", "plum")
    assert failed.value.type == "KeyError"
    with pytest.raises(ExecutionNotFound):
        await engine.query("nobody", "basket")
    with pytest.raises(ExecutionNotFound):
        await engine.query("w", "basket", org="another")
    with pytest.raises(InvalidIdentifier):
        await engine.query("w", "")
    with pytest.raises(QueryFailed, match="clock"):
        await engine.query("w", "reads the clock")


async def test_Q3_a_handler_that_does_not_return_is_ended_by_the_turn_limit(world: World) -> None:
    engine = await world.open([shops], [note], turn_limit=0.3)
    await engine.start(shops, "apple", workflow_id="w")

    with pytest.raises(QueryFailed) as failed:
        await engine.query("w", "spins")

    assert failed.value.type == "TurnTooLong"
    assert (await engine.query("w", "basket"))["items"] == ["apple"]


async def test_Q3_a_history_that_does_not_fit_the_code_is_not_asked(world: World) -> None:
    @workflow(name="shops")
    async def changed(ctx: Context, _first: str) -> Any:
        ctx.on_query("basket", lambda: "changed")
        return await ctx.run(note, "first")

    engine = await world.open([shops], [note])
    handle = await engine.start(shops, "apple", workflow_id="w")
    await handle.signal("add", "pear")
    await engine.settle()
    engine.remove_workflow("shops")
    engine.add_workflow(changed)

    with pytest.raises(QueryFailed, match="does not fit"):
        await engine.query("w", "basket")


# --- processes that end while they replay ---


async def mark_replay(engine: TestEngine, process: str, slot: int = REPLAY_SLOTS) -> set[str]:
    """Leave the mark of a process that replays the execution 'w'; the processes that have left one."""
    row = await hooks.find_row(engine, "w")
    transaction = await engine.store.begin()
    found = await transaction.mark_in_flight(process, slot, {row.execution_id: row.state_version})
    await transaction.rollback()
    return {one.process for marks in found.values() for one in marks}


async def test_Q1_a_process_that_is_killed_after_a_query_has_left_no_mark(world: World) -> None:
    engine = await world.open([shops], [note])
    await engine.start(shops, "apple", workflow_id="w")
    await engine.restart()  # its program is in no memory

    await engine.query("w", "basket")
    await engine.query_status("w")

    assert await mark_replay(engine, "somebody else") == set()


async def test_D2_queries_are_refused_only_after_several_processes_ended_in_them(world: World) -> None:
    engine = await world.open([shops], [note], max_lost=3)
    handle = await engine.start(shops, "apple", workflow_id="w")
    for number in range(2):
        await mark_replay(engine, f"killed {number}")

    assert await engine.query("w", "price", "apple") == 1

    await mark_replay(engine, "killed 2")
    with pytest.raises(QueryFailed, match="3 processes ended while they replayed it"):
        await engine.query("w", "price", "apple")
    await handle.signal("add", "pear")
    await engine.settle()
    assert await engine.query("w", "price", "pear") == 4


async def test_Q4_what_living_nodes_replay_at_the_same_time_says_nothing(nodes: Nodes) -> None:
    a = await nodes.open("a", [shops], [note])
    b = await nodes.open("b", [shops], [note])
    handle = await a.start(shops, "apple", workflow_id="w")
    await nodes.clock.advance(seconds=2)  # a heartbeat, by which they know of each other
    await eventually(lambda: hooks.peers_of(a) and hooks.peers_of(b))

    for _ in range(3):
        for engine in (a, b):
            assert (await engine.query_status("w")).pending is not None
            assert await engine.query("w", "price", "apple") == 1
    for slot in range(REPLAY_SLOTS, REPLAY_SLOTS + 6):  # more than `max_lost` would be, if they said something
        await mark_replay(b, hooks.process_of(b), slot)

    assert await a.query("w", "price", "apple") == 1
    await a.signal_workflow("w", "add", "pear")
    await a.settle()
    assert (await a.query("w", "basket"))["items"] == ["apple", "pear"]
    versions = (await handle.status()).state_version
    assert versions == 3, "no turn was spent on noting a suspect"


# --- before the code has begun ---


async def test_Q3_a_query_of_a_delayed_start_says_that_the_code_has_not_begun(world: World) -> None:
    engine = await world.open([shops], [note], auto_advance=False)
    handle = await engine.start(shops, "apple", workflow_id="w", delay=3600)

    with pytest.raises(ExecutionNotBegun, match="delayed until"):
        await handle.query("basket")
    await handle.signal("add", "pear")
    with pytest.raises(ExecutionNotBegun, match="delayed until"):
        await handle.query("basket")

    await engine.clock.advance(seconds=3600)
    await handle.wait_for(lambda info: info.waiting_kind == "signal" and info.pending and not info.pending.activities)
    assert (await handle.query("basket"))["items"] == ["apple", "pear"]


@pytest.mark.parametrize("kind", ["execution", "workflow", "queue"])
async def test_Q3_a_query_before_a_paused_beginning_says_what_is_paused(world: World, kind: str) -> None:
    engine = await world.open([shops], [note])
    await engine.pause_queue("default")
    handle = await engine.start(shops, "apple", workflow_id="w")
    if kind == "execution":
        await handle.pause()
    elif kind == "workflow":
        await engine.pause_workflow("shops")
    if kind != "queue":
        await engine.resume_queue("default")

    with pytest.raises(ExecutionNotBegun, match=f"{'it' if kind == 'execution' else kind}.* is paused"):
        await handle.query("basket")

    await {"execution": engine.resume, "workflow": engine.resume_workflow, "queue": engine.resume_queue}[kind](
        {"execution": "w", "workflow": "shops", "queue": "default"}[kind]
    )
    assert (await handle.query("basket"))["items"] == ["apple"]


async def test_Q3_a_query_waits_for_a_beginning_that_is_near(nodes: Nodes) -> None:
    one = await nodes.open("a", [shops], [note])
    await one.pause_workflow("shops")
    handle = await one.start(shops, "apple", workflow_id="w")
    nodes.pause("a")
    await one.resume_workflow("shops")
    await nodes.paused("a")

    asks = asyncio.ensure_future(handle.query("basket"))
    await eventually(lambda: is_true(one._runtime.changes.is_active))
    nodes.resume("a")

    assert (await asks)["items"] == ["apple"]


async def test_Q3_a_query_whose_beginning_nobody_takes_says_so(nodes: Nodes) -> None:
    one = await nodes.open("a", [shops], [note], queues=["another"])
    handle = await one.start(shops, "apple", workflow_id="w")

    with pytest.raises(ExecutionNotBegun, match="no living node that serves queue 'default'"):
        await handle.query("basket", timeout=0.05)


async def test_Q4_a_query_before_the_beginning_is_answered_alike_whoever_asks(nodes: Nodes) -> None:
    one = await nodes.open("a", [shops], [note])
    other = await nodes.open("b")
    await one.start(shops, "apple", workflow_id="w", delay=3600)

    with pytest.raises(ExecutionNotBegun, match="delayed until"):
        await other.query("w", "basket")
    row = await other.store.find_latest("default", "w")
    assert row is not None
    reply = await other._runtime.questions.ask(row, Question("basket", payloads.encode([], "nothing")), None)
    assert reply.failure is not None, "as a node asks that does not look itself"
    assert reply.failure.type == "ExecutionNotBegun"


async def is_true(value: Any) -> bool:
    return bool(value)


# --- handlers that do not return ---


ASKED: list[int] = []
"""How often others had come to run on the loop, when a handler that does not return was asked."""
ROUNDS = [0]


@workflow
async def stuck(ctx: Context) -> None:
    @ctx.on_query
    def spins() -> None:
        ASKED.append(ROUNDS[0])
        while True:
            pass

    ctx.on_query("answers", lambda: 1)
    await ctx.wait_for_signal("go", int)
    await ctx.wait_for_signal("never")


async def test_D2_others_come_between_handlers_that_do_not_return(world: World) -> None:
    ASKED.clear()
    engine = await world.open([stuck], turn_limit=0.2)
    handles = [await engine.start(stuck) for _ in range(4)]

    async def go_round() -> None:
        while True:
            ROUNDS[0] += 1
            await asyncio.sleep(0.001)

    others = asyncio.create_task(go_round())
    answers = await asyncio.gather(*(handle.query("spins") for handle in handles), return_exceptions=True)
    others.cancel()

    assert all(isinstance(one, QueryFailed) and one.type == "TurnTooLong" for one in answers)
    assert len(ASKED) == 4
    assert all(later - sooner > 3 for sooner, later in itertools.pairwise(ASKED)), ASKED


async def test_D2_a_query_whose_replay_ends_in_a_rest_is_not_replayed_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await world.open([stuck], turn_limit=0.2)
    slow, other = [await engine.start(stuck) for _ in range(2)]
    made = hooks.note_replayed(engine, monkeypatch)

    answers = await asyncio.gather(slow.query("spins"), other.query("answers"), return_exceptions=True)

    assert isinstance(answers[0], QueryFailed)
    assert answers[1] == 1
    assert len(made) == 2


async def test_D2_a_handler_that_did_not_return_is_not_asked_again_before_something_changes(world: World) -> None:
    ASKED.clear()
    engine = await world.open([stuck], turn_limit=0.2)
    handle = await engine.start(stuck, workflow_id="w")

    answers = await asyncio.gather(*(handle.query("spins") for _ in range(6)), return_exceptions=True)
    assert all(isinstance(one, QueryFailed) and one.type == "TurnTooLong" for one in answers)
    assert len(ASKED) == 1
    with pytest.raises(QueryFailed, match="as they were"):
        await handle.query("spins")
    assert await handle.query("answers") == 1, "other questions are asked"

    await handle.signal("go", 1)
    with pytest.raises(QueryFailed, match="come to rest"):
        await handle.query("spins")
    engine.remove_workflow("stuck")
    engine.add_workflow(workflow(name="stuck")(stuck.function))
    with pytest.raises(QueryFailed, match="come to rest"):
        await handle.query("spins")
    assert len(ASKED) == 3


# --- nodes that lack the code ---


async def test_Q4_a_node_without_the_code_is_answered_by_one_that_has_it(nodes: Nodes) -> None:
    await nodes.open("a", [shops], [note])
    other = await nodes.open("b")
    handle = await nodes.engines["a"].start(shops, "apple", workflow_id="w")

    assert await other.query("w", "basket", hint=Basket) == Basket(["apple"], {"apple": 1})
    with pytest.raises(UnknownQuery) as unknown:
        await other.query("w", "baskte")
    assert "basket" in unknown.value.known
    with pytest.raises(QueryFailed) as failed:
        await other.query("w", "price", "plum")
    assert failed.value.type == "KeyError"
    with pytest.raises(ReadOnlyHandler):
        await other.query("w", "orders")
    await handle.signal("add", "pay")
    await handle.result()
    assert (await other.query("w", "basket"))["items"] == ["apple"]
    await eventually(lambda: has_no_question(other))


async def test_Q4_a_lost_wake_up_costs_a_heartbeat(nodes: Nodes) -> None:
    await nodes.open("a", [shops], [note])
    other = await nodes.open("b")
    await nodes.engines["a"].start(shops, "apple", workflow_id="w")
    nodes.faults["a"] = nodes.faults["b"] = hear_nothing

    waits = asyncio.ensure_future(other.query("w", "price", "apple"))
    await eventually(lambda: has_question(other))
    for _ in range(3):
        await nodes.clock.advance(seconds=10)

    assert await waits == 1


async def test_Q4_a_question_that_nobody_answers_is_given_up_and_removed(nodes: Nodes) -> None:
    await nodes.open("a", [shops], [note])
    other = await nodes.open("b")
    await nodes.engines["a"].start(shops, "apple", workflow_id="w")
    await nodes.engines["a"].shutdown()

    with pytest.raises(AnswerTimedOut, match="shops"):
        await other.query("w", "basket", timeout=0.05)

    await eventually(lambda: has_no_question(other))


@pytest.mark.parametrize("asked", ["a workflow that no node has", "a version that no node has"])
async def test_Q4_questions_that_nobody_can_answer_hold_up_no_others(nodes: Nodes, asked: str) -> None:
    name = "rests" if asked == "a workflow that no node has" else "shops"

    @workflow(name=name, version="old", versioning="pinned")
    async def rests(ctx: Context) -> None:
        await ctx.wait_for_signal("never")

    former = await nodes.open("former", [rests])
    unanswerable = await former.start(rests)
    await former.shutdown()
    await nodes.open("a", [shops], [note])
    other = await nodes.open("b")
    await nodes.engines["a"].start(shops, "apple", workflow_id="w")

    waits = [asyncio.ensure_future(other.query(str(unanswerable.execution_id), "x", timeout=20)) for _ in range(250)]
    await eventually(lambda: has_questions(other, name, 250))

    assert await other.query("w", "price", "apple", timeout=25) == 1
    assert not any(one.done() for one in waits)
    for one in waits:
        one.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def has_questions(engine: TestEngine, workflow: str, count: int) -> bool:
    return len(await engine.store.questions.list_open(engine.clock.now(), [workflow], limit=count)) == count


async def has_question(engine: TestEngine) -> bool:
    return bool(await engine.store.questions.list_open(engine.clock.now(), ["shops"]))


async def has_no_question(engine: TestEngine) -> bool:
    return not await has_question(engine)
