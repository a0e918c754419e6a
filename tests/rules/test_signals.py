"""S1 to S4 and S6: signals are events, queued by name, buffered, seen alike on replay, refused where nobody can take them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from holdfast import Context, Engine, Status, activity, workflow
from holdfast.core.events import SignalReceived
from holdfast.errors import (
    ExecutionClosed,
    ExecutionNotFound,
    InvalidIdentifier,
    PayloadTooLarge,
    SignalLimitReached,
    status_code,
)
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.world import Nodes, World


class Item(msgspec.Struct, frozen=True):
    """A signal's value."""

    name: str
    count: int = 1


@workflow
async def collector(ctx: Context, name: str, wanted: int) -> list[int]:
    return [await ctx.wait_for_signal(name, int) for _ in range(wanted)]


@workflow
async def two_queues(ctx: Context) -> list[str]:
    taken = []
    for name in ("b", "a", "b", "a"):
        taken.append(f"{name}{await ctx.wait_for_signal(name, int)}")
    return taken


@workflow
async def forever(ctx: Context) -> None:
    await ctx.wait_for_signal("never")


@activity
async def note(what: Any) -> Any:
    return what


GATES: dict[str, asyncio.Event] = {}


@activity
async def pass_gate(name: str) -> None:
    await GATES.setdefault(name, asyncio.Event()).wait()


@pytest.fixture(autouse=True)
def gates() -> dict[str, asyncio.Event]:
    GATES.clear()
    return GATES


async def kinds(engine: Engine, target: str) -> list[str]:
    return (await engine.history(target)).kinds


# --- S1 -------------------------------------------------------------------------------------------------------------------


async def test_S1_each_call_is_one_event(world: World) -> None:
    engine = await world.open([forever])
    handle = await engine.start(forever)

    answers = [await handle.signal("x", number) for number in range(5)]

    assert (await handle.history()).kinds == ["WorkflowStarted"] + ["SignalReceived"] * 5
    assert [answer.signal_event_sequence for answer in answers] == [2, 3, 4, 5, 6]
    assert {answer.workflow_execution_id for answer in answers} == {handle.execution_id}


async def test_S1_equal_signals_are_not_taken_for_one(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 3)

    for _ in range(3):
        await handle.signal("x", 7)

    assert await handle.result() == [7, 7, 7]


async def test_S1_one_name_many_times_is_a_queue_in_the_order_of_the_calls(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 200)

    await asyncio.gather(*(handle.signal("x", number) for number in range(200)))

    assert await handle.result() == list(range(200))


async def test_S1_names_do_not_mix(world: World) -> None:
    engine = await world.open([two_queues])
    handle = await engine.start(two_queues)

    for name, value in (("a", 1), ("a", 2), ("c", 9), ("b", 3), ("b", 4)):
        await handle.signal(name, value)

    assert await handle.result() == ["b3", "a1", "b4", "a2"]


async def test_S1_several_waits_for_one_name_are_served_in_their_order(world: World) -> None:
    engine = await world.open([crowd])
    handle = await engine.start(crowd)

    for value in range(3):
        await handle.signal("x", value)

    assert await handle.result() == [0, 1, 2]


@workflow
async def crowd(ctx: Context) -> list[int]:
    return list(await asyncio.gather(*(ctx.wait_for_signal("x", int) for _ in range(3))))


async def test_S1_the_order_survives_a_crash(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 6)
    for value in range(3):
        await handle.signal("x", value)
    await engine.restart()

    for value in range(3, 6):
        await handle.signal("x", value)

    assert await handle.result() == [0, 1, 2, 3, 4, 5]


async def test_S1_a_repeated_request_id_is_delivered_once_and_answered_alike(world: World) -> None:
    engine = await world.open([forever])
    handle = await engine.start(forever)

    first = await handle.signal("x", 1, request_id="r-1")
    await handle.signal("x", 2, request_id="r-2")
    again = await handle.signal("x", 1, request_id="r-1")

    assert again == first
    assert (await handle.history()).kinds.count("SignalReceived") == 2


async def test_S1_concurrent_calls_with_one_request_id_are_one_signal(world: World) -> None:
    engine = await world.open([forever])
    handle = await engine.start(forever)

    answers = await asyncio.gather(*(handle.signal("x", 1, request_id="r-1") for _ in range(20)))

    assert {answer.signal_event_sequence for answer in answers} == {2}
    assert (await handle.history()).kinds.count("SignalReceived") == 1


async def test_S1_a_request_id_is_known_after_a_crash_and_after_the_end(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 1)
    first = await handle.signal("x", 1, request_id="r-1")
    await handle.result()
    await engine.restart()

    again = await handle.signal("x", 1, request_id="r-1")

    assert again == first


async def test_S1_one_request_id_to_two_executions_is_two_requests(world: World) -> None:
    engine = await world.open([collector])
    one, two = await engine.start(collector, "x", 1), await engine.start(collector, "x", 1)

    await one.signal("x", 1, request_id="r-1")
    await two.signal("x", 2, request_id="r-1")

    assert [await one.result(), await two.result()] == [[1], [2]]


async def test_S1_a_refused_signal_does_not_use_up_its_request_id(world: World) -> None:
    engine = await world.open([collector])
    with pytest.raises(ExecutionNotFound):
        await engine.signal_workflow("c", "x", 1, request_id="r-1")
    handle = await engine.start(collector, "x", 1, workflow_id="c")

    await engine.signal_workflow("c", "x", 1, request_id="r-1")

    assert await handle.result() == [1]


async def test_S1_a_request_id_is_delivered_once_though_the_signal_waits_in_the_inbox(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [collector]), await nodes.open("two", [collector])
    await one.start(collector, "x", 2, workflow_id="c")
    nodes.pause("one")
    holding = asyncio.ensure_future(one.signal_workflow("c", "y", 0))
    await nodes.paused("one")

    first = await two.signal_workflow("c", "x", 1, request_id="r-1")
    second = await two.signal_workflow("c", "x", 1, request_id="r-1")
    nodes.resume("one")
    await holding
    third = await two.signal_workflow("c", "x", 1, request_id="r-1")
    await nodes.clock.settle()

    assert first.signal_event_sequence is second.signal_event_sequence is None
    assert third.workflow_execution_id == first.workflow_execution_id
    history = await one.history("c")
    assert [one.event.name for one in history.events if isinstance(one.event, SignalReceived)] == ["y", "x"]


# --- S2 -------------------------------------------------------------------------------------------------------------------


@workflow
async def late_reader(ctx: Context) -> list[int]:
    await ctx.run(pass_gate, "reader")
    return [await ctx.wait_for_signal("x", int) for _ in range(3)]


async def test_S2_signals_sent_before_the_workflow_asks_are_buffered(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)
    for value in range(3):
        await handle.signal("x", value)
    before = await handle.status()

    GATES["reader"].set()

    assert before.status is Status.RUNNING
    assert await handle.result() == [0, 1, 2]


async def test_S2_buffered_signals_survive_a_crash(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)
    for value in range(3):
        await handle.signal("x", value)
    await engine.restart()

    GATES["reader"].set()

    assert await handle.result() == [0, 1, 2]


async def test_S2_waiting_for_a_signal_records_no_command(world: World) -> None:
    engine = await world.open([collector])
    handle = await engine.start(collector, "x", 2)

    await handle.signal("x", 1)
    waiting = await handle.history()
    await handle.signal("x", 2)
    await handle.result()

    assert waiting.kinds == ["WorkflowStarted", "SignalReceived"]
    assert (await handle.history()).kinds == ["WorkflowStarted", "SignalReceived", "SignalReceived", "WorkflowCompleted"]
    assert (await engine.store.count()).timers == 0


# --- S3 -------------------------------------------------------------------------------------------------------------------


@workflow
async def looker(ctx: Context) -> list[Any]:
    """Looks into its queues at three moments, and takes another path for each thing it may see."""
    seen: list[Any] = []
    for moment in ("first", "second", "third"):
        await ctx.run(pass_gate, moment)
        if ctx.has_signal("x"):
            count = ctx.pending_signal_count("x")
            for _ in range(count):
                await ctx.run(note, count)
            taken = ctx.drain_signals("x", int)
            seen.append([count, taken, ctx.has_signal("x"), ctx.pending_signal_count("x"), ctx.drain_signals("x", int)])
        else:
            seen.append(await ctx.run(note, "nothing"))
    await ctx.wait_for_signal("end")
    return seen


async def run_looker(engine: Any, *, crash: bool) -> tuple[list[Any], list[str]]:
    """Let it look while signals arrive between its turns; with a crash before each look, every look is replayed."""
    handle = await engine.start(looker)
    for moment, count in (("first", 0), ("second", 2), ("third", 1)):
        for value in range(count):
            await handle.signal("x", value)
        if crash:
            await engine.restart()
        GATES.setdefault(moment, asyncio.Event()).set()
        await engine.settle()
    if crash:
        await engine.restart()
    await handle.signal("x", 99)
    await handle.signal("end")
    return await handle.result(), (await handle.history()).kinds


LOOKS = ["nothing", [2, [0, 1], False, 0, []], [1, [0], False, 0, []]]


async def test_S3_a_workflow_sees_what_arrived_between_its_turns(world: World) -> None:
    engine = await world.open([looker], [pass_gate, note])

    seen, _ = await run_looker(engine, crash=False)

    assert seen == LOOKS


async def test_S3_replay_sees_exactly_what_was_seen_the_first_time(world: World) -> None:
    engine = await world.open([looker], [pass_gate, note])

    seen, history = await run_looker(engine, crash=True)

    assert seen == LOOKS
    assert history.count("ActivityScheduled") == 3 + 1 + 2 + 1


async def test_S3_a_signal_between_the_end_of_an_activity_and_the_look_is_seen_in_the_order_of_history(world: World) -> None:
    engine = await world.open([looker], [pass_gate, note])
    handle = await engine.start(looker)

    GATES.setdefault("first", asyncio.Event()).set()
    sent = await asyncio.gather(*(handle.signal("x", value) for value in range(3)))
    for moment in ("second", "third"):
        GATES.setdefault(moment, asyncio.Event()).set()
    await handle.signal("end")
    first = await handle.result()
    await engine.restart()
    history = await handle.history()

    done = next(one.sequence for one in history.events if one.kind == "ActivityCompleted")
    before = sum(answer.signal_event_sequence < done for answer in sent if answer.signal_event_sequence is not None)
    looks = [look[0] for look in first if isinstance(look, list)]
    assert sum(looks) == 3
    assert (looks[0] if isinstance(first[0], list) else 0) == before


# --- S4 -------------------------------------------------------------------------------------------------------------------


@workflow
async def ender(ctx: Context, how: str) -> None:
    if how == "failed":
        raise ValueError("as asked")
    if how != "completed":
        await ctx.wait_for_signal("never")


@pytest.mark.parametrize("by", ["workflow id", "execution id"])
@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "terminated"])
async def test_S4_a_signal_to_a_closed_execution_is_refused_and_nothing_is_stored(world: World, how: str, by: str) -> None:
    engine = await world.open([ender])
    handle = await engine.start(ender, how, workflow_id="e")
    if how in ("cancelled", "terminated"):
        await (handle.cancel() if how == "cancelled" else handle.terminate())
    await engine.settle()
    before = await handle.history()

    with pytest.raises(ExecutionClosed, match=how) as refused:
        await engine.signal_workflow("e" if by == "workflow id" else str(handle.execution_id), "x", 1)

    assert status_code(refused.value) == 409
    assert await handle.history() == before
    counts = await engine.store.count()
    assert (counts.inbox, counts.dead_letters) == (0, 0)


@pytest.mark.parametrize("target", ["nobody", "01890000-0000-7000-8000-000000000000"])
async def test_S4_a_signal_to_an_unknown_execution_is_refused_and_nothing_is_stored(world: World, target: str) -> None:
    engine = await world.open([forever])

    with pytest.raises(ExecutionNotFound, match=target) as refused:
        await engine.signal_workflow(target, "x", 1)

    assert status_code(refused.value) == 404
    counts = await engine.store.count()
    assert (counts.executions, counts.inbox, counts.dead_letters) == ({}, 0, 0)


async def test_S4_more_signals_than_one_run_may_have_are_refused_and_not_stored(world: World) -> None:
    engine = await world.open([forever], max_signals=5)
    handle = await engine.start(forever)
    for number in range(5):
        await handle.signal("x", number)
    before = await handle.status()

    with pytest.raises(SignalLimitReached, match="5") as refused:
        await handle.signal("x", 5)

    assert status_code(refused.value) == 409
    assert await handle.status() == before
    assert (await handle.history()).kinds.count("SignalReceived") == 5


async def test_S4_the_limit_counts_what_was_received_before_a_crash(world: World) -> None:
    engine = await world.open([forever], max_signals=5)
    handle = await engine.start(forever)
    for number in range(4):
        await handle.signal("x", number)
    await engine.restart()

    await handle.signal("x", 4)

    with pytest.raises(SignalLimitReached):
        await handle.signal("x", 5)


async def test_S4_of_concurrent_signals_only_those_within_the_limit_are_accepted(world: World) -> None:
    engine = await world.open([forever], max_signals=5)
    handle = await engine.start(forever)

    answers = await asyncio.gather(*(handle.signal("x", number) for number in range(20)), return_exceptions=True)

    assert sum(isinstance(answer, SignalLimitReached) for answer in answers) == 15
    assert (await handle.history()).kinds.count("SignalReceived") == 5


async def test_S4_signals_beyond_the_limit_do_not_keep_a_run_from_its_first_turn(world: World) -> None:
    engine = await world.open([ender], max_signals=2)

    answers = await asyncio.gather(
        *(engine.signal_with_start_workflow("e", ender, "completed", signal_name="x") for _ in range(5))
    )

    runs = await engine.list()
    assert [answer.workflow_created for answer in answers] == [True, False, True, False, True]
    assert {run.status for run in runs} == {Status.COMPLETED}
    assert {run.execution_id for run in runs} == {answer.workflow_execution_id for answer in answers}


async def test_S4_the_default_limit_is_ten_thousand() -> None:
    assert Engine("memory://").config.max_signals == 10_000


async def test_S4_the_answer_tells_the_place_of_the_signal_in_the_history(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)

    answer = await handle.signal("x", 1)

    event = (await handle.history()).events[(answer.signal_event_sequence or 0) - 1]
    assert event.sequence == answer.signal_event_sequence
    assert event.kind == "SignalReceived"


async def test_S4_the_place_is_absent_where_the_signal_waits_in_the_inbox(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [collector]), await nodes.open("two", [collector])
    handle = await one.start(collector, "x", 2, workflow_id="c")
    nodes.pause("one")
    held = asyncio.ensure_future(one.signal_workflow("c", "x", 1))
    await nodes.paused("one")

    waiting = await two.signal_workflow("c", "x", 2)
    nodes.resume("one")
    taken = await held

    assert waiting.signal_event_sequence is None
    assert waiting.workflow_execution_id == handle.execution_id
    assert taken.signal_event_sequence == 2
    assert await handle.result() == [1, 2]


@workflow
async def picky(ctx: Context) -> Item:
    return await ctx.wait_for_signal("item", Item)


async def test_S4_a_value_that_does_not_fit_goes_to_the_dead_letters_and_the_workflow_goes_on_waiting(world: World) -> None:
    engine = await world.open([picky])
    handle = await engine.start(picky, workflow_id="p")

    await handle.signal("item", {"name": 7})
    letters = await engine.dead_letters()
    waiting = await handle.status()
    await handle.signal("item", Item("ball", 2))

    assert waiting.status is Status.SUSPENDED
    assert await handle.result() == Item("ball", 2)
    (letter,) = letters
    assert (letter.execution_id, letter.workflow_id) == (handle.execution_id, "p")
    assert "item" in letter.reason
    assert letter.envelope["name"] == "item"
    assert letter.envelope["value"] == {"data": {"name": 7}}


async def test_S4_a_buffered_value_that_does_not_fit_is_passed_over(world: World) -> None:
    engine = await world.open([late_reader], [pass_gate])
    handle = await engine.start(late_reader)
    for value in (0, "no", 1, None, 2):
        await handle.signal("x", value)

    GATES["reader"].set()

    assert await handle.result() == [0, 1, 2]
    assert len(await engine.dead_letters()) == 2


async def test_S4_a_value_that_does_not_fit_is_one_dead_letter_also_after_replay(world: World) -> None:
    engine = await world.open([picky])
    handle = await engine.start(picky)
    await handle.signal("item", "no")
    await engine.restart()

    await handle.signal("item", Item("ball"))

    assert await handle.result() == Item("ball")
    assert len(await engine.dead_letters()) == 1


async def test_S4_what_cannot_be_a_signal_is_refused_and_nothing_is_stored(world: World) -> None:
    engine = await world.open([forever], payload_limit=1000)
    handle = await engine.start(forever)

    with pytest.raises(InvalidIdentifier):
        await handle.signal("")
    with pytest.raises(PayloadTooLarge) as refused:
        await handle.signal("x", "y" * 1000)

    assert status_code(refused.value) == 413
    assert (await handle.history()).kinds == ["WorkflowStarted"]


async def test_S4_a_delivery_that_fails_is_told_to_the_caller(nodes: Nodes) -> None:
    one, two = await nodes.open("one", [collector]), await nodes.open("two", [collector])
    await one.start(collector, "x", 1, workflow_id="c")
    nodes.pause("one")
    held = asyncio.ensure_future(one.signal_workflow("c", "y", 1))
    await nodes.paused("one")
    nodes.faults["two"] = lambda point, _node: (
        FaultAction.FAIL if point == Point.DELIVER_COMMIT else FaultAction.NONE
    )

    with pytest.raises(Exception, match="connection broke") as refused:
        await two.signal_workflow("c", "x", 2)

    assert status_code(refused.value) == 503  # type: ignore[arg-type]
    nodes.resume("one")
    await held
    assert (await one.history("c")).kinds == ["WorkflowStarted", "SignalReceived"]


# --- S6 -------------------------------------------------------------------------------------------------------------------


@workflow
async def impatient(ctx: Context, seconds: float) -> str:
    try:
        return await ctx.wait_for_signal("x", str, timeout=timedelta(seconds=seconds))
    except TimeoutError:
        return "too late"


async def count_timers(engine: Engine) -> int:
    return (await engine.store.count()).timers


async def test_S6_a_signal_in_time_ends_the_wait_and_leaves_no_timer_behind(world: World) -> None:
    engine = await world.open([impatient], auto_advance=False)
    handle = await engine.start(impatient, 60)
    armed = await count_timers(engine)

    await handle.signal("x", "here")

    assert armed == 1
    assert await handle.result() == "here"
    assert await count_timers(engine) == 0
    assert (await handle.history()).kinds == [
        "WorkflowStarted",
        "TimerStarted",
        "SignalReceived",
        "TimerCancelled",
        "WorkflowCompleted",
    ]


async def test_S6_the_wait_ends_by_timeout_and_leaves_no_timer_behind(world: World) -> None:
    engine = await world.open([impatient], auto_advance=False)
    handle = await engine.start(impatient, 60)

    await engine.clock.advance(seconds=59)
    before = await handle.status()
    await engine.clock.advance(seconds=1)

    assert before.status is Status.SUSPENDED
    assert await handle.result() == "too late"
    assert await count_timers(engine) == 0


@pytest.mark.parametrize("crash", [False, True])
async def test_S6_time_that_passes_while_nobody_runs_counts(world: World, crash: bool) -> None:
    engine = await world.open([impatient], auto_advance=False)
    handle = await engine.start(impatient, 60)
    if crash:
        await engine.crash()
    await engine.clock.advance(seconds=61)

    if crash:
        await engine.restart()
    await engine.settle()

    assert await handle.result() == "too late"


@workflow
async def patient(ctx: Context) -> list[str]:
    taken = [await ctx.wait_for_signal("x", str, timeout=60)]
    for _ in range(2):
        try:
            taken.append(await ctx.wait_for_signal("x", str, timeout=60))
        except TimeoutError:
            taken.append("timeout")
    await ctx.wait_for_signal("end")
    return taken


@workflow
async def late_patient(ctx: Context) -> str:
    await ctx.run(pass_gate, "reader")
    return await ctx.wait_for_signal("x", str, timeout=60)


async def test_S6_a_buffered_signal_needs_no_timer(world: World) -> None:
    engine = await world.open([late_patient], [pass_gate])
    handle = await engine.start(late_patient)
    await handle.signal("x", "first")

    GATES["reader"].set()

    assert await handle.result() == "first"
    assert "TimerStarted" not in (await handle.history()).kinds


async def test_S6_a_wait_that_is_over_is_not_ended_by_the_timer_of_another(world: World) -> None:
    engine = await world.open([patient], auto_advance=False)
    handle = await engine.start(patient)
    await handle.signal("x", "first")
    await engine.clock.advance(seconds=59)
    await handle.signal("x", "second")

    await engine.clock.advance(seconds=59)
    still = await handle.status()
    await engine.clock.advance(seconds=1)
    await handle.signal("end")

    assert still.waiting_for == "signal x"
    assert await handle.result() == ["first", "second", "timeout"]
    assert await count_timers(engine) == 0


async def test_S6_a_timeout_of_nothing_looks_once(world: World) -> None:
    engine = await world.open([impatient], auto_advance=False)

    empty = await engine.start(impatient, 0)
    answer = await engine.signal_with_start_workflow("i", impatient, 0, signal_name="x", signal_value="here")

    assert await empty.result() == "too late"
    assert await engine.handle(answer.workflow_execution_id).result() == "here"
    assert "TimerStarted" not in (await empty.history()).kinds
