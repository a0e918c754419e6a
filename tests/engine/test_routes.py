"""N3: nodes take only what they have the code for and whose queue they serve; all else is left to those who do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import ApplicationFailure, Context, Engine, Status, WorkflowCancelled, WorkflowTerminated, activity, workflow
from holdfast.core import payloads
from holdfast.core.effects import Limits
from holdfast.core.envelopes import Signal, Start
from holdfast.core.ids import make_execution_id
from holdfast.engine.transfer.copying import export_executions, import_executions, require_sound
from holdfast.engine.turns.arrivals import Arrival
from holdfast.engine.turns.handoff import register
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.errors import ExternalSignalFailed, HoldfastError, InvalidConfiguration, InvalidIdentifier
from holdfast.store.contract import UnroutedWrite
from holdfast.store.memory.store import MemoryStore
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.cluster import Cluster
from tests.eventually import eventually

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    RAN.clear()


@activity
async def note(what: str) -> str:
    RAN.append(what)
    return what


@workflow
async def collect(ctx: Context) -> list[str]:
    """Takes words until the last one."""
    RAN.append("collect began")
    words = []
    while (word := await ctx.wait_for_signal("word", str)) != "end":
        words.append(await ctx.run(note, word))
    return words


@workflow
async def nap(ctx: Context, seconds: float) -> str:
    await ctx.sleep(seconds)
    return "slept"


@workflow
async def runs_child(ctx: Context, child: str) -> Any:
    return await ctx.run_child(child, workflow_id="child")


@workflow
async def sends(ctx: Context, to: str) -> str:
    try:
        await ctx.signal_external_workflow(to, "word", "end")
    except ExternalSignalFailed as error:
        return str(error)
    return "sent"


@workflow
async def moves_on(ctx: Context) -> Any:
    await ctx.wait_for_signal("go")
    ctx.continue_as(workflow="collect")


@workflow
async def answers(ctx: Context) -> str:
    return await ctx.run(note, "answered")


async def is_at_rest(engine: Engine) -> bool:
    for _ in range(20):
        await asyncio.sleep(0)
    return hooks.is_idle(engine)


# --- workflows that only some nodes have ---


async def test_N3_node_passes_on_what_is_for_a_workflow_that_it_does_not_have(cluster: Cluster) -> None:
    has_it = await cluster.open("has-it", collect, note)
    has_not = await cluster.open("has-not", nap)
    handle = await has_it.start(collect, workflow_id="c")

    for word in ("one", "two", "end"):
        answer = await has_not.signal_workflow("c", "word", word)
        assert answer.workflow_execution_id == handle.execution_id

    assert await handle.result() == ["one", "two"]
    assert await has_not.handle("c").result() == ["one", "two"]
    assert RAN.count("collect began") == 1, "nobody else loaded it"
    assert hooks.count_programs(has_not) == 0


async def test_N3_child_runs_on_the_node_that_has_its_workflow(cluster: Cluster) -> None:
    one = await cluster.open("one", runs_child)
    await cluster.open("two", answers, note)

    assert await (await one.start(runs_child, "answers")).result() == "answered"


async def test_N3_child_waits_until_a_node_has_its_workflow(cluster: Cluster) -> None:
    one = await cluster.open("one", runs_child)
    handle = await one.start(runs_child, "answers")
    await eventually(lambda: is_at_rest(one))
    assert (await handle.status()).status is Status.SUSPENDED

    await cluster.open("two", answers, note)
    assert await handle.result() == "answered"


async def test_N3_child_that_waits_for_its_node_can_be_reached_by_its_workflow_id(cluster: Cluster) -> None:
    one = await cluster.open("one", runs_child)
    handle = await one.start(runs_child, "collect")

    answer = await one.signal_workflow("child", "word", "early")
    assert await one.cancel("child")
    await one.signal_workflow("child", "word", "end")
    assert (await one.query_status("child")).execution_id == answer.workflow_execution_id
    await cluster.open("two", collect, note)

    with pytest.raises(HoldfastError, match="cancelled"):
        await handle.result()
    assert "collect began" not in RAN, "it was cancelled before its first turn"


async def test_N3_next_run_goes_to_the_node_that_has_its_workflow(cluster: Cluster) -> None:
    one = await cluster.open("one", moves_on)
    await cluster.open("two", collect, note)
    handle = await one.start(moves_on, workflow_id="w")
    await handle.signal("go")
    await one.signal_workflow("w", "word", "after")
    await one.signal_workflow("w", "word", "end")

    assert await handle.result() == ["after"]


async def test_N3_signal_between_workflows_of_different_nodes_arrives(cluster: Cluster) -> None:
    one = await cluster.open("one", sends)
    two = await cluster.open("two", collect, note)
    receiver = await two.start(collect, workflow_id="c")

    assert await (await one.start(sends, "c")).result() == "sent"
    assert await receiver.result() == []
    assert "no such execution" in await (await one.start(sends, "nobody")).result()


async def test_N3_what_nobody_can_take_waits_and_keeps_nobody_busy(cluster: Cluster) -> None:
    owner = await cluster.open("owner", collect, note)
    await owner.start(collect, workflow_id="c")
    other = await cluster.open("other", sends, nap)
    await cluster.shut_down("owner")

    sender = await other.start(sends, "c")
    await other.signal_workflow("c", "word", "late")
    await eventually(lambda: is_at_rest(other))

    assert (await sender.status()).status is Status.SUSPENDED, "its signal has not been answered"
    assert (await other.store.count()).inbox == 2
    assert hooks.skipped_by(other) == set()
    assert await (await other.start(nap, 0.01)).result() == "slept"
    again = await cluster.open("owner-again", collect, note)
    assert await again.handle("c").result() == []
    assert await sender.result() == "sent"


async def test_N3_timers_concern_only_nodes_that_have_the_workflow(cluster: Cluster) -> None:
    one = await cluster.open("one", nap)
    two = await cluster.open("two", collect, note)
    handle = await one.start(nap, 3600)
    await eventually(lambda: is_at_rest(one))
    hooks.look_for_work(two)
    await eventually(lambda: is_at_rest(two))

    assert hooks.next_due_of(one) is not None
    assert hooks.next_due_of(two) is None
    await handle.cancel()


async def test_N3_any_node_can_terminate_what_it_does_not_have(cluster: Cluster) -> None:
    one = await cluster.open("one", collect, note)
    two = await cluster.open("two")
    await one.start(collect, workflow_id="c")
    await cluster.shut_down("one")

    assert await two.terminate("c", "not needed")
    assert (await two.query_status("c")).status is Status.TERMINATED
    assert not await two.cancel("c")


# --- queues ---


async def test_N3_start_in_a_queue_of_others_is_theirs(cluster: Cluster) -> None:
    front = await cluster.open("front", collect, answers)
    handle = await front.start(answers, workflow_id="w", queue="back")
    again = await front.start(answers, workflow_id="w", queue="back")

    assert handle.created
    assert not again.created
    assert again.execution_id == handle.execution_id
    await eventually(lambda: is_at_rest(front))
    assert (await handle.status()).history_length == 0
    await cluster.open("back", answers, note, queues=["back", "default"])
    assert await handle.result() == "answered"
    assert [kind for kind in (await front.history("w")).kinds if kind == "WorkflowStarted"] == ["WorkflowStarted"]


async def test_N3_fifty_starts_in_a_queue_of_others_make_one_execution(cluster: Cluster) -> None:
    nodes = [await cluster.open(f"front-{number}", answers) for number in range(2)]
    await cluster.open("back", answers, note, queues=["back", "default"])

    handles = await asyncio.gather(
        *(nodes[number % 2].start(answers, workflow_id="w", queue="back") for number in range(50))
    )

    assert len([handle for handle in handles if handle.created]) >= 1
    assert {await handle.result() for handle in handles} == {"answered"}
    created = {handle.execution_id for handle in handles if handle.created}
    assert {handle.execution_id for handle in handles} == created, "one execution for each time that somebody made one"


async def test_N3_signal_with_start_in_a_queue_of_others_delivers_each_signal_once(cluster: Cluster) -> None:
    front = await cluster.open("front", collect)
    first = await front.signal_with_start_workflow(
        "w", collect, signal_name="word", signal_value="a", queue="back", request_id="r-1"
    )
    repeated = await front.signal_with_start_workflow(
        "w", collect, signal_name="word", signal_value="a", queue="back", request_id="r-1"
    )
    second = await front.signal_with_start_workflow("w", collect, signal_name="word", signal_value="b", queue="back")
    await cluster.open("back", collect, note, queues=["back", "default"])
    await front.signal_workflow("w", "word", "end")

    assert (first.workflow_created, repeated.workflow_created, second.workflow_created) == (True, True, False)
    assert await front.handle("w").result() == ["a", "b"]


async def test_N3_cancel_before_the_first_turn_elsewhere_runs_no_code(cluster: Cluster) -> None:
    front = await cluster.open("front", collect)
    handle = await front.start(collect, workflow_id="w", queue="back")
    assert await front.cancel("w")
    await cluster.open("back", collect, note, queues=["back"])

    with pytest.raises(WorkflowCancelled):
        await handle.result()
    assert RAN == []


async def test_N3_termination_before_the_first_turn_elsewhere_leaves_a_whole_history(cluster: Cluster) -> None:
    front = await cluster.open("front", collect)
    handle = await front.start(collect, workflow_id="w", queue="back")
    assert await front.terminate("w")

    with pytest.raises(WorkflowTerminated):
        await handle.result()
    assert (await front.history("w")).kinds == ["WorkflowStarted", "WorkflowTerminated"]
    assert (await front.store.count()).inbox == 0


async def test_N3_first_turn_that_breaks_the_rules_elsewhere_fails_the_execution(cluster: Cluster) -> None:
    @workflow
    async def wrong(ctx: Context) -> None:
        await asyncio.get_running_loop().getaddrinfo("localhost", 1)

    front = await cluster.open("front", wrong)
    handle = await front.start(wrong, queue="back")
    await cluster.open("back", wrong, queues=["back"])

    with pytest.raises(HoldfastError, match="ForbiddenInWorkflow"):
        await handle.result()


async def test_N3_node_dies_between_the_start_and_the_first_turn(cluster: Cluster) -> None:
    front = await cluster.open("front", answers)
    await front.start(answers, workflow_id="w", queue="back")
    await cluster.kill("front")
    back = await cluster.open("back", answers, note, queues=["back", "default"])

    assert await back.handle("w").result() == "answered"


# --- which queues a node serves ---


@activity(queue="slow")
async def slow() -> None:
    """Has a queue of its own."""


@pytest.fixture
def shared() -> MemoryStore:
    return MemoryStore()


async def test_shared_node_serves_the_default_queue_those_of_its_activities_and_those_it_limits(
    shared: MemoryStore,
) -> None:
    engine = Engine(shared, activities=[slow, note], queue_limits={"narrow": 1})

    assert engine.routes.queues == {"default", "slow", "narrow"}
    assert not engine.routes.takes_all
    assert Engine(shared, activities=[slow], queues=["only"]).routes.queues == {"only"}


async def test_node_with_a_store_of_its_own_takes_everything_unless_queues_are_named() -> None:
    assert Engine("memory://", workflows=[nap]).routes.takes is None
    assert Engine("memory://", workflows=[nap], queues=["a"]).routes.takes == frozenset({"a\tnap", "a\tbpmn/1"})


@pytest.mark.parametrize(
    ("queues", "error"),
    [
        ("default", r"^Expected queues=… to be a list, but it is 'default'\."),
        ([], r"^Expected queues=… to name at least one queue, but it is empty\."),
        (7, r"^Expected queues=… to be a list, but it is 7\."),
        ([""], r"^Expected the queue in queues=… to be text of 1 to 255 printable characters, but it is empty\."),
        ([None], r"^Expected the queue in queues=… to be text"),
    ],
)
def test_queues_that_cannot_be_are_refused(queues: Any, error: str) -> None:
    with pytest.raises((InvalidConfiguration, InvalidIdentifier), match=error):
        Engine("memory://", queues=queues)


async def test_queue_that_this_process_does_not_serve_is_left_for_one_that_does(url: str) -> None:
    first = TestEngine(url, workflows=[answers], activities=[note], queues=["default"], patience=0.0)
    await first.open()
    left = await first.start(answers, workflow_id="left", queue="night")
    assert await (await first.start(answers)).result() == "answered"
    await first.settle()
    assert (await left.status()).history_length == 0
    hooks.change_options(first, queues=["default", "night"])
    await first.restart()

    assert await first.handle("left").result() == "answered"
    await first.shutdown()


@pytest.mark.parametrize("url", ["memory", "sqlite"], indirect=True)
async def test_unknown_child_is_refused_on_a_store_of_ones_own(open_engine: OpenEngine) -> None:
    @workflow
    async def hopeful(ctx: Context) -> str:
        try:
            await ctx.run_child("nobody has it")
        except HoldfastError as error:
            raise ApplicationFailure(str(error)) from None
        return ""

    engine = await open_engine(hopeful)
    with pytest.raises(HoldfastError, match="to be registered with the engine, but it is not"):
        await (await engine.start(hopeful)).result()


async def test_start_comes_before_the_signals_that_were_there_first(open_engine: OpenEngine) -> None:
    engine = await open_engine(collect, note)
    now = engine.clock.now()
    start = Start(
        workflow="collect",
        workflow_id="order",
        execution_id=make_execution_id(now, 0),
        input=payloads.encode([], "no input"),
    )
    signals = [Signal(name="word", value=payloads.encode(word, "a word")) for word in ("hello", "end")]
    # As when others left the signals for it before anybody made it.
    pending = PendingTurn("default", start.execution_id, start, [*map(Arrival, signals), Arrival(start)])
    transaction = await engine.store.begin()
    written = register(pending, now, Limits()).write
    assert written is not None
    assert not await transaction.write([written], UnroutedWrite())
    await transaction.commit()
    hooks.look_for_work(engine)

    assert await engine.handle("order").result() == ["hello"]
    assert (await engine.handle("order").history()).kinds[:2] == ["WorkflowStarted", "SignalReceived"]


async def test_execution_that_waits_for_its_first_turn_can_be_exported_and_imported(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path / 'source.db'}", f"sqlite:///{tmp_path / 'target.db'}"
    async with Engine(source, workflows=[collect], queues=["default"]) as engine:
        await engine.signal_with_start_workflow("w", collect, signal_name="word", signal_value="a", queue="night")
        lines = [line async for line in export_lines(engine)]
    async with Engine(target, workflows=[collect], activities=[note], queues=["default"]) as engine:
        assert (await import_executions(engine.store, lines)).imported == 1
    async with Engine(target, workflows=[collect], activities=[note]) as engine:
        await engine.signal_workflow("w", "word", "end")
        assert await engine.handle("w").result() == ["a"]
        assert await engine.store.check() == []


async def export_lines(engine: Engine) -> AsyncIterator[bytes]:
    async for line in export_executions(engine.store, org="default"):
        yield require_sound(line)
