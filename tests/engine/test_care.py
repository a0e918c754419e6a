"""When care is taken, which executions may go then, and who waits meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from holdfast import Context, activity, workflow
from holdfast.core import codec
from holdfast.core.envelopes import ActivityStopped
from holdfast.core.execution import Details
from holdfast.core.instants import SECOND
from holdfast.engine.batches.care import LONGEST, SHORTLY, Care, Ends, Note
from holdfast.engine.batches.requests import Request
from holdfast.engine.nodes.roster import NodeDetails
from holdfast.store.contract import ExecutionRow, NodeRow
from holdfast.testing import TestEngine, VirtualClock
from tests.engine.conftest import OpenEngine
from tests.rules.world import Nodes

NOW = 1_000 * SECOND


def make_node(name: str, ended: dict[str, int] | None = None) -> NodeRow:
    return NodeRow(name, NOW, NOW, details=msgspec.json.encode(NodeDetails(ended=ended or {})))


def make_row(execution_id: str = "e", *, tries: int = 0, trying: str = "") -> ExecutionRow:
    details = codec.encode(Details(tries=tries, trying=trying))
    names = ("default", execution_id, "w", "order", "", "default", "running")
    return ExecutionRow(*names, 1, 3, None, None, 0, 0, None, details)


@pytest.fixture
async def care() -> Care:
    return Care(VirtualClock())


# --- nodes that ended ---


def test_nodes_that_end_at_once_are_no_chain() -> None:
    ends = Ends()

    assert not ends.note([make_node("one"), make_node("two"), make_node("three")], NOW)
    assert len(ends.tell(NOW)) == 3


def test_node_that_ends_after_it_saw_another_end_is_a_chain() -> None:
    ends = Ends()
    assert ends.note([make_node("two", ended={"one 1": NOW - SECOND})], NOW)
    assert ends.tell(NOW).keys() == {"one 1", f"two {NOW}"}, "what it knew is told on"


def test_ends_are_forgotten_after_a_while() -> None:
    ends = Ends()

    assert not ends.note([make_node("two", ended={"one 1": NOW - SHORTLY})], NOW)
    assert ends.tell(NOW + SHORTLY) == {}


def test_details_of_another_version_are_no_chain() -> None:
    assert not Ends().note([NodeRow("one", NOW, NOW, details=b"no json")], NOW)


# --- executions ---


async def test_without_care_everything_goes_but_what_has_a_note(care: Care) -> None:
    assert care.read_note(make_row()) is Note.NONE
    assert care.read_note(make_row(tries=1, trying="gone")) is Note.NEEDED


async def test_with_care_everything_is_noted_first_and_one_at_a_time(care: Care) -> None:
    care.begin()
    assert care.read_note(make_row("a")) is Note.NEEDED
    care.note(["a"])

    assert care.read_note(make_row("a", tries=1, trying="self")) is Note.NONE
    assert care.read_note(make_row("b")) is Note.LATER
    care.forget(["a"])
    assert care.read_note(make_row("b")) is Note.NEEDED


async def test_what_lets_a_noted_execution_go_comes_before_those_who_wait_for_it(care: Care) -> None:
    others = [Request("default", ActivityStopped(number=0, attempt=0), execution_id=name) for name in "bcd"]
    own = Request("default", ActivityStopped(number=0, attempt=0), execution_id="a")
    care.note(["a"], [own])

    queue = [*others[:2], own, others[2]]
    care.put_first(queue)

    assert queue == [own, *others]
    care.forget(["a"])
    care.put_first(others)
    assert queue == [own, *others]


async def test_nobody_waits_for_a_noted_execution_that_nothing_lets_go_any_more(care: Care) -> None:
    own = [Request("default", ActivityStopped(number=0, attempt=0), execution_id="a") for _ in range(2)]
    care.begin()
    care.note(["a"], own)

    care.give_up(own[0])
    assert care.read_note(make_row("b")) is Note.LATER
    care.give_up(own[1])

    assert care.read_note(make_row("b")) is Note.NEEDED


async def test_note_of_a_living_node_is_respected(care: Care) -> None:
    care.is_alive = {"other"}.__contains__

    assert care.read_note(make_row(tries=1, trying="other")) is Note.OF_ANOTHER
    assert care.read_note(make_row(tries=1, trying="gone")) is Note.NEEDED


async def test_row_that_cannot_be_read_is_left_to_whoever_loads_it(care: Care) -> None:
    row = msgspec.structs.replace(make_row(), details=b'{"tries":')

    assert care.read_note(row) is Note.NONE


async def test_care_ends_when_there_is_nothing_to_do_and_nothing_runs(care: Care) -> None:
    running = [True]
    care.is_busy = lambda: bool(running)
    care.begin()
    care.rest()
    assert care.is_taken

    running.clear()
    care.rest()
    assert not care.is_taken


async def test_care_ends_after_a_while_whatever_runs() -> None:
    clock = VirtualClock()
    care = Care(clock)
    care.is_busy = lambda: True
    care.begin()
    waiting = asyncio.ensure_future(care.wait_until_calm())
    await clock.advance(LONGEST / SECOND)

    assert not care.is_taken
    await waiting


async def test_suspects_wait_for_a_turn_that_is_noted(care: Care) -> None:
    care.note(["a"])
    waiting = asyncio.ensure_future(care.wait_until_calm())
    await asyncio.sleep(0)
    assert not waiting.done()

    care.forget(["a"])
    await waiting


# --- engines ---


@activity
async def work(name: str) -> str:
    return name


@workflow
async def child(ctx: Context, name: str) -> str:
    return await ctx.run(work, name)


@workflow
async def story(ctx: Context, name: str) -> list[str]:
    """A bit of everything."""
    told = list(await asyncio.gather(ctx.run(work, f"{name} a"), ctx.run(work, f"{name} b")))
    told.append(await ctx.run_child(child, f"{name} child"))
    await ctx.sleep(60)
    told.append(await ctx.wait_for_signal("word", str))
    if ctx.info.workflow_id == name:
        told += ctx.drain_signals("word", str)
    return told


async def test_everything_works_with_care_as_without(open_engine: OpenEngine) -> None:
    engine = await open_engine(story, child, work)
    engine._machinery.pump.care.is_busy = lambda: True  # so that it does not end before the story does
    engine._machinery.pump.care.begin()
    handles = [await engine.start(story, f"s{number}", workflow_id=f"s{number}") for number in range(3)]
    again = await engine.start(story, "s0", workflow_id="s0")
    await engine.settle()
    for number in range(3):
        await engine.signal_with_start_workflow(
            f"s{number}", story, f"s{number}", signal_name="word", signal_value="one", request_id=f"r{number}"
        )
        await engine.signal_workflow(f"s{number}", "word", "two")
    await engine.clock.advance(seconds=59)
    assert engine._machinery.pump.care.is_taken
    await engine.clock.advance(seconds=2)
    await engine.settle()

    assert (again.created, again.execution_id) == (False, handles[0].execution_id)
    for number, handle in enumerate(handles):
        name = f"s{number}"
        assert await handle.result() == [f"{name} a", f"{name} b", f"{name} child", "one", "two"]
        row = await engine._delivery.find_or_raise("default", name, "find")
        assert codec.decode_details(row.details).tries == 0
    assert await engine.store.check() == []


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    await nodes.close()


async def open_node(nodes: Nodes, name: str) -> TestEngine:
    return await nodes.open(name, [story, child], [work])


async def test_N3_node_that_sees_others_end_in_a_row_takes_care(nodes: Nodes) -> None:
    await open_node(nodes, "one")
    await nodes.clock.advance(seconds=10)
    await nodes.kill("one")
    await open_node(nodes, "two")
    await nodes.take_over()
    two = nodes.engines["two"]
    assert not two._machinery.pump.care.is_taken, "one end is no chain"
    await nodes.kill("two")
    three = await open_node(nodes, "three")
    await nodes.clock.advance(seconds=5)
    assert not three._machinery.pump.care.is_taken, "it does not know yet that the second is gone"

    took = []
    begin = three._machinery.pump.care.begin

    def note_chain() -> None:
        took.append(True)
        begin()

    three._machinery.membership._on_chain = note_chain
    await nodes.take_over()
    assert took


async def test_N3_nodes_that_end_together_make_nobody_take_care(nodes: Nodes) -> None:
    for name in ("one", "two", "three"):
        await open_node(nodes, name)
    await nodes.clock.advance(seconds=10)
    took = []
    nodes.engines["three"]._machinery.membership._on_chain = lambda: took.append(True)
    await nodes.kill("one")
    await nodes.kill("two")
    await nodes.take_over()

    assert took == []
    handle = await nodes.engines["three"].start(child, "x")
    assert await handle.result() == "x"
