"""Rules Z: what is paused takes no turns, on no node; what arrives meanwhile waits, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, activity, workflow
from holdfast.core import payloads
from holdfast.core.envelopes import Signal
from holdfast.core.lifecycle import Status
from holdfast.errors import InvalidArguments, InvalidIdentifier, WorkflowFailed
from tests.eventually import eventually
from tests.rules.world import Nodes, World, hear_nothing

GATE: dict[str, asyncio.Event] = {}
BEGUN: list[str] = []


@activity
async def step(name: str) -> str:
    BEGUN.append(name)
    if name in GATE:
        await GATE[name].wait()
    return name


@activity(queue="slow")
async def slow_step(name: str) -> str:
    BEGUN.append(name)
    return name


@workflow
async def collector(ctx: Context, most: int) -> list[str]:
    got: list[str] = []
    while len(got) < most:
        got.append(await ctx.wait_for_signal("add", str))
    return got


@workflow
async def worker(ctx: Context, name: str) -> str:
    return await ctx.run(step, name)


@workflow
async def sleeper(ctx: Context) -> str:
    await ctx.sleep(10)
    return await ctx.wait_for_signal("add", str)


@workflow
async def receiver(ctx: Context) -> str:
    return await ctx.wait_for_message("news", "k", str)


@workflow
async def updated(ctx: Context) -> int:
    got: asyncio.Queue[int] = asyncio.Queue()

    @ctx.on_update
    def add(value: int) -> int:
        got.put_nowait(value)
        return value + 1

    return await got.get()


@workflow
async def asking(ctx: Context) -> str:
    return await ctx.human_task("ask", str, candidate_users=["ann"])


@workflow
async def slow_worker(ctx: Context, name: str) -> str:
    return await ctx.run(slow_step, name)


@pytest.fixture(autouse=True)
def fresh() -> None:
    GATE.clear()
    BEGUN.clear()


async def length(handle: Any) -> int:
    return len(await handle.history())


# --- one execution ---


async def test_Z1_a_paused_execution_takes_no_turns_and_signals_come_in_order_later(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, 4, workflow_id="c")
    await handle.signal("add", "a")

    assert await engine.pause("c", "audit", "ann")
    for value in "bc":
        await handle.signal("add", value)
    info = await handle.status()

    assert info.status is Status.PAUSED
    assert [(one.kind, one.by, one.reason) for one in info.pauses] == [("execution", "ann", "audit")]
    assert [one.envelope["type"] for one in info.inbox] == ["signal", "signal"]
    assert await length(handle) == 2
    assert await engine.resume("c")
    await handle.signal("add", "d")
    assert await handle.result() == ["a", "b", "c", "d"]
    assert (await handle.status()).pauses == ()


async def test_Z1_pausing_is_told_apart_from_what_cannot_be_paused(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, 1, workflow_id="c")

    assert not await engine.resume("c")
    assert await engine.pause("c")
    assert not await engine.pause("c")
    assert await engine.resume("c")
    assert (await handle.status()).status is Status.SUSPENDED, "as it stood before"
    await handle.signal("add", "a")
    await handle.result()
    assert not await engine.pause("c")


@workflow
async def busy(ctx: Context) -> int:
    """Takes a while for each signal, until that says stop."""
    count = 0
    while await ctx.wait_for_signal("work", bool):
        count += sum(1 for _ in range(200_000)) > 0
    return count


@workflow
async def busy_chain(ctx: Context, run: int) -> int:
    """As `busy`, but each signal gets a run of its own."""
    if await ctx.wait_for_signal("work", bool):
        sum(1 for _ in range(200_000))
        ctx.continue_as(run + 1)
    return run


@pytest.mark.parametrize("chosen", [busy, busy_chain])
async def test_Z1_an_execution_that_always_has_work_is_paused_between_two_turns(world: World, chosen: Any) -> None:
    engine = await world.open([busy, busy_chain])
    await engine.start(chosen, *([1] if chosen is busy_chain else []), workflow_id="b")
    answered, is_over = 0, False

    async def keep_busy() -> None:
        nonlocal answered
        while not is_over:
            await engine.signal_workflow("b", "work", signal_value=True)
            answered += 1

    senders = [asyncio.create_task(keep_busy()) for _ in range(4)]
    await eventually(lambda: answered > 8)

    for _ in range(3):
        before = answered
        assert await engine.pause("b")
        assert answered - before < 100, "it does not wait for a moment without work"
        assert await engine.resume("b")
    is_over = True
    await asyncio.gather(*senders)


async def test_Z1_repeated_calls_with_one_request_id_are_one(world: World) -> None:
    engine = await world.open([collector])
    await engine.start(collector, 1, workflow_id="c")

    answers = await asyncio.gather(*(engine.pause("c", request_id="r") for _ in range(3)))

    assert answers == [True] * 3
    assert await engine.resume("c", request_id="r")
    assert await engine.pause("c", request_id="r"), "as it was answered first"
    assert (await engine.query_status("c")).status is Status.SUSPENDED
    assert await engine.pause_workflow("collector", request_id="r")
    assert await engine.pause_workflow("collector", request_id="r")
    assert not await engine.pause_workflow("collector")
    assert await engine.resume_workflow("collector", request_id="r")
    assert await engine.resume_workflow("collector", request_id="r")
    assert not await engine.resume_workflow("collector")


async def test_Z1_the_result_of_a_running_activity_waits(world: World) -> None:
    GATE["w"] = asyncio.Event()
    engine = await world.open([worker], [step])
    handle = await engine.start(worker, "w", workflow_id="w")
    await eventually(lambda: BEGUN == ["w"])

    await engine.pause("w")
    GATE["w"].set()
    await eventually(lambda: _has_inbox(engine, "w"))

    assert (await handle.status()).status is Status.PAUSED
    await engine.resume("w")
    assert await handle.result() == "w"
    assert BEGUN == ["w"]


async def _has_inbox(engine: Any, target: str) -> bool:
    return bool((await engine.query_status(target)).inbox)


async def test_Z1_a_timer_that_comes_due_waits_and_a_cancel_too(world: World) -> None:
    engine = await world.open([sleeper], auto_advance=False)
    handle = await engine.start(sleeper, workflow_id="s")
    await engine.pause("s")

    await engine.clock.advance(seconds=60)
    assert await length(handle) == 2
    await engine.resume("s")
    await eventually(lambda: _has_fired(engine, "s"))

    await engine.pause("s")
    assert await engine.cancel("s")
    assert (await handle.status()).status is Status.PAUSED
    await engine.resume("s")
    await eventually(lambda: _is_closed(engine, "s"))
    assert (await handle.status()).status is Status.CANCELLED


@workflow
async def two_sleepers(ctx: Context) -> list[str]:
    """Tells in which order it was given two timers, of which the second is due first, and a signal."""
    order: list[str] = []

    async def note(name: str, wait: Awaitable[Any]) -> None:
        await wait
        order.append(name)

    waits: dict[str, Awaitable[Any]] = {
        "late": ctx.sleep(20),
        "early": ctx.sleep(10),
        "signal": ctx.wait_for_signal("add", str),
    }
    await asyncio.gather(*(note(name, wait) for name, wait in waits.items()))
    return order


async def test_Z1_timers_come_behind_what_has_arrived_in_the_order_of_their_due_times(world: World) -> None:
    engine = await world.open([two_sleepers], auto_advance=False)
    handle = await engine.start(two_sleepers, workflow_id="s")
    await engine.pause("s")

    await engine.clock.advance(seconds=60)
    await handle.signal("add", "after both")
    await engine.resume("s")

    assert await handle.result() == ["signal", "early", "late"]


async def _has_fired(engine: Any, target: str) -> bool:
    return "TimerFired" in (await engine.history(target)).kinds


async def _is_closed(engine: Any, target: str) -> bool:
    return (await engine.query_status(target)).closed_at is not None


async def test_Z2_a_paused_execution_is_terminated_at_once_and_times_out(world: World) -> None:
    engine = await world.open([sleeper], auto_advance=False)
    await engine.start(sleeper, workflow_id="a")
    timed = await engine.start(sleeper, workflow_id="b", execution_timeout=timedelta(seconds=30))
    under = await engine.start(sleeper, workflow_id="c", execution_timeout=timedelta(seconds=30))
    await engine.pause("a")
    await engine.pause("b")
    await engine.pause_workflow("sleeper")

    assert await engine.terminate("a")
    assert (await engine.query_status("a")).status is Status.TERMINATED
    await engine.clock.advance(seconds=40)
    for handle in (timed, under):
        with pytest.raises(WorkflowFailed):
            await handle.result()


@pytest.mark.parametrize("kind", ["workflow", "queue"])
async def test_Z2_what_waits_for_one_whose_workflow_or_queue_is_paused_is_not_given_to_it_by_its_termination(
    world: World, kind: str
) -> None:
    engine = await world.open([collector, receiver])
    signalled = await engine.start(collector, 1, workflow_id="signalled")
    told = await engine.start(receiver, workflow_id="told")
    for name in ["collector", "receiver"] if kind == "workflow" else ["default"]:
        await getattr(engine, f"pause_{kind}")(name)
    await signalled.signal("add", "a")
    assert (await engine.send_message("news", "k", "b", ttl=100)).delivered

    for handle in (signalled, told):
        assert await engine.terminate(handle.workflow_id)
        assert (await handle.status()).status is Status.TERMINATED


async def test_Z4_pauses_outlive_a_restart(world: World) -> None:
    engine = await world.open([collector])
    one = await engine.start(collector, 1, workflow_id="one")
    two = await engine.start(collector, 1, workflow_id="two")
    await engine.pause("one")
    await engine.pause_queue("default", "night", "bob")

    await engine.restart()
    await engine.handle("one").signal("add", "a")
    await engine.handle("two").signal("add", "a")
    late = await engine.start(collector, 1, workflow_id="late")

    assert [(await length(engine.handle(name))) for name in ("one", "two", "late")] == [1, 1, 0]
    assert [(one.kind, one.name, one.by, one.reason) for one in await engine.pauses()] == [
        ("queue", "default", "bob", "night")
    ]
    await engine.resume_queue("default")
    assert await engine.handle("two").result() == ["a"]
    assert await length(engine.handle("one")) == 1
    await engine.resume("one")
    assert await engine.handle("one").result() == ["a"]
    await eventually(lambda: _has_begun(engine, "late"))
    del one, two, late


async def _has_begun(engine: Any, target: str) -> bool:
    return len(await engine.history(target)) > 0


# --- workflows and queues ---


async def test_Z3_a_paused_workflow_takes_no_turns_and_its_starts_wait(world: World) -> None:
    engine = await world.open([collector, worker], [step])
    old = await engine.start(collector, 1, workflow_id="old")
    assert await engine.pause_workflow("collector", "bug", "ann")

    await old.signal("add", "a")
    await engine.signal_with_start_workflow("new", collector, 1, signal_name="add", signal_value="b")
    other = await engine.start(worker, "w")

    assert await other.result() == "w", "other workflows go on"
    assert await length(old) == 1
    assert (await engine.query_status("new")).history_length == 0
    assert [str(one.name) for one in (await old.status()).pauses] == ["collector"]
    assert await engine.resume_workflow("collector")
    assert await old.result() == ["a"]
    assert await engine.handle("new").result() == ["b"]


async def test_Z3_orgs_are_paused_apart(world: World) -> None:
    engine = await world.open([collector])
    await engine.pause_workflow("collector", org="ours")
    for org in ("ours", "theirs"):
        await engine.start(collector, 1, workflow_id="c", org=org)
        await engine.signal_workflow("c", "add", "a", org=org)

    assert await engine.handle("c", org="theirs").result() == ["a"]
    assert len(await engine.history("c", org="ours")) == 0
    assert await engine.pauses() == []
    await engine.resume_workflow("collector", org="ours")
    assert await engine.handle("c", org="ours").result() == ["a"]


async def test_Z3_activities_of_a_paused_queue_are_not_begun(world: World) -> None:
    engine = await world.open([slow_worker], [slow_step])
    await engine.pause_queue("slow")
    handle = await engine.start(slow_worker, "x")
    await eventually(lambda: _has_begun(engine, handle.workflow_id))
    await asyncio.sleep(0.05)

    assert BEGUN == []
    await engine.resume_queue("slow")
    assert await handle.result() == "x"


async def test_Z1_bad_input_is_refused(world: World) -> None:
    engine = await world.open([collector])
    await engine.start(collector, 1, workflow_id="c")

    with pytest.raises(InvalidIdentifier):
        await engine.pause_workflow("")
    with pytest.raises(InvalidArguments):
        await engine.pause("c", by="a\nb")
    with pytest.raises(InvalidArguments):
        await engine.pause_queue("q", "x" * 5000)
    assert (await engine.query_status("c")).status is Status.SUSPENDED
    assert await engine.pauses() == []


async def test_Z1_a_handle_pauses_and_resumes_its_execution(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, 1, workflow_id="c")

    assert await handle.pause("audit", "ann", request_id="r")
    assert not await handle.pause("audit", "ann")
    await handle.signal("add", "a")
    assert (await handle.status()).status == Status.PAUSED
    assert await handle.resume()
    assert not await handle.resume()

    assert await handle.result() == ["a"]


async def test_Z1_an_update_waits_for_the_end_of_the_pause_and_is_answered(world: World) -> None:
    engine = await world.open([updated])
    handle = await engine.start(updated, workflow_id="u")
    await handle.pause()

    updating = asyncio.create_task(engine.update("u", "add", 2))
    await eventually(lambda: _waits(engine, "u"))
    assert not updating.done()
    await handle.resume()

    assert await updating == 3
    assert await handle.result() == 2


async def test_Z1_a_completed_task_waits_for_the_end_of_the_pause_and_is_not_lost(world: World) -> None:
    engine = await world.open([asking])
    handle = await engine.start(asking, workflow_id="a")
    [task] = await engine.tasks()
    await engine.claim_task(task.task_id, by="ann")
    await handle.pause()

    completing = asyncio.create_task(engine.complete_task(task.task_id, "yes", by="ann"))
    await eventually(lambda: _waits(engine, "a"))
    assert (await handle.status()).status == Status.PAUSED
    await handle.resume()

    assert (await completing).state == "completed"
    assert await handle.result() == "yes"


async def _waits(engine: Any, target: str) -> bool:
    row = await engine.store.find_latest("default", target)
    return bool(await engine.store.list_inbox("default", row.execution_id, target))


# --- several nodes ---


async def test_Z4_after_pause_returned_no_node_takes_a_turn(nodes: Nodes) -> None:
    one = await nodes.open("one", [collector])
    two = await nodes.open("two", [collector])
    handle = await one.start(collector, 2, workflow_id="c")
    nodes.pause("one")
    signalling = asyncio.create_task(handle.signal("add", "a"))
    await nodes.paused("one")

    pausing = asyncio.create_task(two.pause_workflow("collector"))
    await eventually(lambda: _is_paused(two))
    nodes.resume("one")
    assert await pausing
    await signalling
    before = await length(handle)
    await two.signal_workflow("c", "add", "b")

    assert await length(handle) == before == 1
    assert await one.resume_workflow("collector")
    assert await handle.result() == ["a", "b"]


async def _is_paused(engine: Any) -> bool:
    return bool(await engine.pauses())


async def test_Z4_a_queue_that_is_resumed_while_a_batch_looks_at_it_goes_on(nodes: Nodes) -> None:
    engine = await nodes.open("one", [collector])
    handle = await engine.start(collector, 1, workflow_id="w")
    await engine.pause_queue("default")
    nodes.pause("one")
    assert handle.execution_id is not None
    await nodes.put_into_inbox(handle.execution_id, Signal(name="add", value=payloads.encode("a", "a word")))
    await nodes.paused("one")

    await engine.resume_queue("default")
    nodes.resume("one")

    assert await asyncio.wait_for(handle.result(), 10) == ["a"]


async def test_Z4_a_node_that_hears_no_wake_up_takes_no_turn_either(nodes: Nodes) -> None:
    one = await nodes.open("one", [collector])
    nodes.faults["one"] = hear_nothing
    two = await nodes.open("two", [collector])
    handle = await one.start(collector, 2, workflow_id="c")
    await two.pause_workflow("collector")

    await one.signal_workflow("c", "add", "a")
    await one.signal_workflow("c", "add", "b")

    assert await length(handle) == 1
    await two.resume_workflow("collector")
    assert await two.handle("c").result() == ["a", "b"]


async def test_Z4_a_paused_execution_is_taken_over_and_goes_on_after_resume(nodes: Nodes) -> None:
    GATE["w"] = asyncio.Event()
    one = await nodes.open("one", [worker], [step])
    await one.start(worker, "w", workflow_id="w")
    await eventually(lambda: BEGUN == ["w"])
    two = await nodes.open("two", [worker], [step])
    await two.pause("w")

    await nodes.kill("one")
    await nodes.take_over()
    assert (await two.query_status("w")).status is Status.PAUSED
    assert BEGUN == ["w"]

    GATE.clear()
    await two.resume("w")
    assert await two.handle("w").result() == "w"
    assert BEGUN == ["w", "w"]
