"""Updates: each is answered once, after its effect is durable, and a repeated one is the same one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, Status, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.errors import (
    AnswerTimedOut,
    ExecutionClosed,
    ExecutionNotFound,
    InvalidArguments,
    SignalLimitReached,
    UnknownUpdate,
    UpdateFailed,
    UpdateRejected,
    UpdateUnfinished,
    WorkflowCancelled,
    WorkflowFailed,
)
from holdfast.store.memory.faults import FaultAction, Point
from tests.eventually import eventually
from tests.rules.world import Nodes, World, hear_nothing, once

VALIDATED: list[int] = []
"""What the validator was asked about."""


@dataclass
class Order:
    id: int
    items: list[str]


@activity
async def double(number: int) -> int:
    return 2 * number


@workflow
async def broken(ctx: Context) -> None:
    """Does in its first step what no workflow may do."""
    ctx.on_update("add")(lambda number: number)
    await asyncio.get_running_loop().getaddrinfo("localhost", 1)


@workflow
async def counts(ctx: Context, total: int) -> list[int]:
    """Adds what updates bring, until it is told to stop."""
    seen: list[int] = [total]
    over = asyncio.Event()

    def check(number: int) -> None:
        VALIDATED.append(number)
        if number < 0:
            raise ValueError("a negative number")

    @ctx.on_update("add", validator=check)
    def add(number: int) -> int:
        seen.append(number)
        return sum(seen)

    @ctx.on_update
    async def add_double(number: int) -> int:
        seen.append(await ctx.run(double, number))
        return sum(seen)

    @ctx.on_update("wait")
    async def wait() -> str:
        await ctx.wait_for_signal("never")
        return "over"

    @ctx.on_update
    def fails() -> None:
        raise KeyError("no such thing")

    @ctx.on_update("pack")
    def pack(order: Order) -> Order:
        return Order(order.id, [*order.items, "ribbon"])

    @ctx.on_update
    def stop() -> str:
        over.set()
        return "bye"

    await over.wait()
    return seen


@workflow
async def runs_on(ctx: Context, run: int) -> int:
    """Continues with each signal; its updates say which run answered."""
    ctx.on_update("run", lambda: run)
    await ctx.wait_for_signal("go")
    ctx.continue_as(run + 1)


@workflow
async def continues_with_its_update(ctx: Context, run: int) -> None:
    """Continues when its update has been handled, which takes a signal."""
    over = asyncio.Event()

    @ctx.on_update("next")
    async def go_on() -> int:
        await ctx.wait_for_signal("go")
        over.set()
        return run

    await over.wait()
    ctx.continue_as(run + 1)


@workflow
async def at_once(ctx: Context) -> str:
    """Ends in its first turn, and has a handler nevertheless."""
    ctx.on_update("ask", lambda: "asked")
    return "done"


@workflow
async def no_handlers(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


ALL: list[Workflow[..., Any]] = [counts, runs_on, continues_with_its_update, at_once, no_handlers]


@pytest.fixture(autouse=True)
def nothing_validated() -> None:
    VALIDATED.clear()


async def kinds(engine: Any, target: str) -> list[str]:
    return list((await engine.history(target)).kinds)


async def test_U4_an_update_is_answered_with_what_its_handler_returns(world: World) -> None:
    engine = await world.open(ALL, [double])
    handle = await engine.start(counts, 1, workflow_id="w")

    assert await engine.update("w", "add", 2) == 3
    assert await engine.update(handle.execution_id or "", "add_double", 5) == 13
    assert await engine.update("w", "pack", Order(1, ["book"]), hint=Order) == Order(1, ["book", "ribbon"])
    assert await engine.update("w", "stop") == "bye"

    assert await handle.result() == [1, 2, 10]
    assert (await kinds(engine, "w"))[1:3] == ["UpdateAccepted", "UpdateCompleted"]


async def test_U4_what_was_answered_is_there_after_a_crash(world: World) -> None:
    engine = await world.open(ALL, [double])
    handle = await engine.start(counts, 1, workflow_id="w")
    await engine.update("w", "add", 2)
    await engine.update("w", "add_double", 5)

    await engine.restart()

    assert await engine.update("w", "add", 4) == 17
    assert VALIDATED == [2, 4]  # a replay asks no validator
    await engine.update("w", "stop")
    assert await handle.result() == [1, 2, 10, 4]


async def test_U5_what_is_refused_leaves_no_trace(world: World) -> None:
    engine = await world.open(ALL, [double])
    await engine.start(counts, 1, workflow_id="w")
    before = await kinds(engine, "w")

    with pytest.raises(UpdateRejected, match="ValueError: a negative number"):
        await engine.update("w", "add", -1, request_id="r")
    with pytest.raises(InvalidArguments, match="'number'"):
        await engine.update("w", "add", "seven")
    with pytest.raises(InvalidArguments):
        await engine.update("w", "stop", 7)
    with pytest.raises(UnknownUpdate, match="'add', 'add_double', 'fails', 'pack', 'stop', 'wait'") as unknown:
        await engine.update("w", "ad", 1)
    with pytest.raises(ExecutionNotFound):
        await engine.update("x", "add", 1)

    assert unknown.value.known == ("add", "add_double", "fails", "pack", "stop", "wait")
    assert await kinds(engine, "w") == before
    assert await engine.update("w", "add", 1, request_id="r") == 2  # a refused call can be made again


async def test_U5_a_handler_that_raises_fails_its_caller_and_not_the_workflow(world: World) -> None:
    engine = await world.open(ALL, [double])
    handle = await engine.start(counts, 1, workflow_id="w")

    for _ in range(2):
        with pytest.raises(UpdateFailed, match="KeyError: 'no such thing'") as failed:
            await engine.update("w", "fails", request_id="once")
        assert failed.value.type == "KeyError"

    assert (await kinds(engine, "w")).count("UpdateFailed") == 1
    await engine.update("w", "stop")
    assert await handle.result() == [1]


@workflow
async def exits(ctx: Context) -> int:
    """Has handlers that raise what no `except Exception` catches."""
    over = asyncio.Event()

    def leave(kind: str) -> None:
        raise {one.__name__: one for one in EXITS}[kind]("out")

    @ctx.on_update("refused", validator=leave)
    def refused(kind: str) -> None:
        over.set()

    @ctx.on_update("raises")
    async def raises(kind: str) -> None:
        await ctx.sleep(0)
        leave(kind)

    @ctx.on_update
    def stop() -> None:
        over.set()

    await over.wait()
    return 1


EXITS = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)


@pytest.mark.parametrize("kind", [one.__name__ for one in EXITS])
async def test_U5_handlers_that_raise_what_ends_a_program_end_only_their_call(world: World, kind: str) -> None:
    engine = await world.open([exits], [])
    handle = await engine.start(exits, workflow_id="w")

    with pytest.raises(UpdateRejected, match=f"{kind}: out"):
        await engine.update("w", "refused", kind, timeout=60)
    with pytest.raises(UpdateFailed, match=f"{kind}: out") as failed:
        await engine.update("w", "raises", kind, timeout=60)

    assert failed.value.type == kind
    await engine.restart()  # and a replay sees the same
    await engine.update("w", "stop", timeout=60)
    assert await handle.result() == 1


async def test_U6_calls_with_one_request_id_are_one_update(world: World) -> None:
    engine = await world.open(ALL, [double])
    handle = await engine.start(counts, 1, workflow_id="w")

    answers = await asyncio.gather(*(engine.update("w", "add_double", 2, request_id="r") for _ in range(5)))
    answers += [await engine.update("w", "add_double", 2, request_id="r")]
    await engine.update("w", "stop")
    await handle.result()
    answers += [await engine.update("w", "add_double", 2, request_id="r")]  # it is closed
    await engine.restart()
    answers += [await engine.update("w", "add_double", 2, request_id="r")]

    assert answers == [5] * 8
    assert await handle.result() == [1, 4]
    with pytest.raises(ExecutionClosed, match=r"Start a new one, or update with start, which starts one if none is open\."):
        await engine.update("w", "add", 2, request_id="another")
    with pytest.raises(ExecutionNotFound, match=r"Check the id, or update with start, which creates it\."):
        await engine.update("nobody", "add", 2)


async def test_U6_request_ids_count_for_the_id_that_was_named(world: World) -> None:
    """A call by workflow id means whoever is open under it; one by execution id means that execution. They never meet."""
    engine = await world.open(ALL, [double])
    handle = await engine.start(counts, 0, workflow_id="w")
    execution_id = str(handle.execution_id)

    answers = [await engine.update(target, "add", 1, request_id="r") for target in ("w", execution_id, "w", execution_id)]

    assert answers == [1, 2, 1, 2]


async def test_U6_a_caller_who_gave_up_finds_the_answer_later(world: World) -> None:
    engine = await world.open(ALL, [double])
    await engine.start(counts, 1, workflow_id="w")

    with pytest.raises(AnswerTimedOut, match="'wait'"):
        await engine.update("w", "wait", request_id="r", timeout=0.05)
    await engine.signal_workflow("w", "never")

    assert await engine.update("w", "wait", request_id="r") == "over"
    assert (await kinds(engine, "w")).count("UpdateAccepted") == 1


async def test_U6_a_call_repeated_in_the_turn_that_answers_it_is_the_same_update(world: World) -> None:
    engine = await world.open(ALL, [double])
    await engine.start(counts, 1, workflow_id="w")

    answers = await repeat_in_the_turn_that_answers(engine, "wait", "never")

    assert answers == ["over", "over"]
    assert (await kinds(engine, "w")).count("UpdateAccepted") == 1


async def test_U6_a_call_repeated_in_the_turn_that_continues_is_the_same_update(world: World) -> None:
    engine = await world.open(ALL)
    await engine.start(continues_with_its_update, 1, workflow_id="w")

    answers = await repeat_in_the_turn_that_answers(engine, "next", "go")

    assert answers == [1, 1]
    assert "UpdateAccepted" not in await kinds(engine, "w")  # of the second run


async def repeat_in_the_turn_that_answers(engine: Any, name: str, signal: str) -> list[Any]:
    """Call an update; while it is paused, send the signal that its handler waits for, and call once more."""
    first = asyncio.ensure_future(engine.update("w", name, request_id="r"))
    await eventually(lambda: _has_accepted(engine))
    await engine.pause("w")
    calls = [engine.signal_workflow("w", signal), engine.update("w", name, request_id="r")]
    _, again = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0.05)  # both wait for the turn
    await engine.resume("w")
    return [await first, await again]


@pytest.mark.parametrize("end", ["stop", "terminate"])
async def test_U7_a_workflow_that_ends_tells_the_callers_of_its_handlers(world: World, end: str) -> None:
    engine = await world.open(ALL, [double])
    await engine.start(counts, 1, workflow_id="w")
    waits = asyncio.ensure_future(engine.update("w", "wait", request_id="r"))
    await eventually(lambda: _has_accepted(engine))

    await (engine.update("w", "stop") if end == "stop" else engine.terminate("w"))

    with pytest.raises(UpdateUnfinished, match="'wait'"):
        await waits
    with pytest.raises(UpdateUnfinished):
        await engine.update("w", "wait", request_id="r")


async def _has_accepted(engine: Any, count: int = 1) -> bool:
    return (await kinds(engine, "w")).count("UpdateAccepted") >= count


async def test_S7_no_execution_ends_before_an_accepted_update_was_given(world: World) -> None:
    engine = await world.open(ALL, [double])
    handle = await engine.start(counts, 1, workflow_id="w")

    calls = (engine.update("w", "stop"), engine.update("w", "add", 2))
    answers: Any = await asyncio.gather(*calls, return_exceptions=True)

    first, second = answers
    assert first == "bye"
    assert second == 3 or isinstance(second, ExecutionClosed)
    assert await handle.result() == ([1, 2] if second == 3 else [1])


async def test_S7_continue_as_carries_updates_to_the_next_run(world: World) -> None:
    engine = await world.open(ALL)
    await engine.start(runs_on, 1, workflow_id="w")

    going = asyncio.ensure_future(engine.signal_workflow("w", "go"))
    answered = await engine.update("w", "run", request_id="r")
    await going

    assert answered in (1, 2)
    assert await engine.update("w", "run", request_id="r") == answered
    assert await engine.update("w", "run") == 2


async def test_I3_update_with_start_starts_one_execution_with_its_update(world: World) -> None:
    engine = await world.open(ALL, [double])

    calls = (
        engine.update_with_start("w", counts, 10, update_name="add", update_value=1, request_id=f"r{number % 5}")
        for number in range(10)
    )
    answers = await asyncio.gather(*calls)

    assert sorted(set(answers)) == [11, 12, 13, 14, 15]
    assert len(await engine.list(workflow_id="w")) == 1
    await engine.update("w", "stop")
    assert await engine.handle("w").result() == [10, 1, 1, 1, 1, 1]


async def test_I3_a_refused_update_with_start_starts_nothing(world: World) -> None:
    engine = await world.open(ALL, [double])

    with pytest.raises(UpdateRejected):
        await engine.update_with_start("w", counts, 10, update_name="add", update_value=-1)
    with pytest.raises(UnknownUpdate, match="it has none"):
        await engine.update_with_start("w", no_handlers, update_name="add")

    assert await engine.list(workflow_id="w") == []
    assert await engine.update_with_start("w", at_once, update_name="ask") == "asked"
    assert await engine.handle("w").result() == "done"


async def test_U4_an_update_waits_for_a_start_that_is_delayed(world: World) -> None:
    engine = await world.open(ALL, [double])
    await engine.start(counts, 1, workflow_id="w", delay=60)

    waits = asyncio.ensure_future(engine.update("w", "add", 2))
    refused = asyncio.ensure_future(engine.update("w", "add", -2))
    unknown = asyncio.ensure_future(engine.update("w", "ad", 2))
    await eventually(lambda: _has_accepted(engine))
    await engine.clock.advance(seconds=61)

    assert await waits == 3
    with pytest.raises(UpdateRejected):
        await refused
    with pytest.raises(UnknownUpdate, match="'ad'"):
        await unknown
    await engine.restart()
    await engine.update("w", "stop")
    assert VALIDATED == [2, -2]
    assert await engine.handle("w").result() == [1, 2]


async def test_U5_a_delayed_start_refuses_with_the_same_errors_as_any_other(world: World) -> None:
    engine = await world.open(ALL, [double])
    await engine.start(counts, 1, workflow_id="w", delay=60)
    calls: list[tuple[str, Any, type[Exception]]] = [
        ("ad", 2, UnknownUpdate),
        ("add", "two", InvalidArguments),
        ("add", -2, UpdateRejected),
    ]

    waits = [
        asyncio.ensure_future(engine.update("w", name, value, request_id=name + str(value))) for name, value, _ in calls
    ]
    await eventually(lambda: _has_accepted(engine, 3))
    await engine.clock.advance(seconds=61)

    for wait, (name, value, kind) in zip(waits, calls, strict=True):
        with pytest.raises(kind) as first:
            await wait
        with pytest.raises(kind) as again:
            await engine.update("w", name, value, request_id=name + str(value))
        assert type(first.value) is type(again.value) is kind
        assert str(first.value) == str(again.value)
        if isinstance(first.value, UnknownUpdate) and isinstance(again.value, UnknownUpdate):
            assert first.value.known == again.value.known == ("add", "add_double", "fails", "pack", "stop", "wait")


@workflow
async def wakes(ctx: Context) -> str:
    """Has a validator that wakes its code, at once or by a callback, and refuses nevertheless."""
    over = asyncio.Event()

    def wake(how: str) -> None:
        if how == "at once":
            over.set()
        else:
            asyncio.get_running_loop().call_soon(over.set)
        raise ValueError("no")

    ctx.on_update("wake", lambda _: None, validator=wake)
    await over.wait()
    return "woken"


@pytest.mark.parametrize("how", ["at once", "by a callback"])
async def test_U5_a_validator_that_wakes_the_code_blocks_the_execution(world: World, how: str) -> None:
    engine = await world.open([wakes])
    handle = await engine.start(wakes, workflow_id="w")

    waits = asyncio.ensure_future(engine.update("w", "wake", how))
    await eventually(lambda: _is_blocked(engine))

    error = (await handle.status()).last_error
    assert error is not None
    assert "Expected the validator of update 'wake' only to look" in error.message
    assert await kinds(engine, "w") == ["WorkflowStarted"]
    await handle.terminate()
    with pytest.raises(ExecutionClosed):
        await waits


async def _is_blocked(engine: Any) -> bool:
    return bool((await engine.query_status("w")).status is Status.BLOCKED)


async def test_U7_an_update_of_a_delayed_start_that_is_cancelled_is_answered(world: World) -> None:
    engine = await world.open(ALL, [double])
    handle = await engine.start(counts, 1, workflow_id="w", delay=60)

    waits = asyncio.ensure_future(engine.update("w", "add", 2, request_id="r", timeout=60))
    await eventually(lambda: _has_accepted(engine))
    await handle.cancel("not wanted")

    with pytest.raises(UpdateUnfinished):
        await waits
    with pytest.raises(WorkflowCancelled):
        await handle.result()
    with pytest.raises(UpdateUnfinished):
        await engine.update("w", "add", 2, request_id="r", timeout=60)


async def test_U7_an_update_of_a_delayed_start_whose_code_is_broken_is_answered(world: World) -> None:
    engine = await world.open([broken])
    handle = await engine.start(broken, workflow_id="w", delay=60)

    waits = asyncio.ensure_future(engine.update("w", "add", 2, request_id="r", timeout=600))
    await eventually(lambda: _has_accepted(engine))
    await engine.clock.advance(seconds=61)

    with pytest.raises(UpdateUnfinished):
        await asyncio.wait_for(waits, 20)
    with pytest.raises(WorkflowFailed):
        await handle.result()


async def test_U8_a_node_without_the_code_is_answered_by_one_that_has_it(nodes: Nodes) -> None:
    await nodes.open("a", ALL, [double])
    other = await nodes.open("b")
    await nodes.engines["a"].start(counts, 1, workflow_id="w")

    assert await other.update("w", "add", 2) == 3
    assert await other.update("w", "add_double", 5, request_id="r") == 13
    assert await other.update("w", "add_double", 5, request_id="r") == 13
    with pytest.raises(UpdateRejected, match="negative"):
        await other.update("w", "add", -1)
    with pytest.raises(UnknownUpdate) as unknown:
        await other.update("w", "ad", -1)
    assert "add" in unknown.value.known
    with pytest.raises(UpdateFailed) as failed:
        await other.update("w", "fails")
    assert failed.value.type == "KeyError"


async def test_U8_a_lost_wake_up_costs_a_heartbeat(nodes: Nodes) -> None:
    await nodes.open("a", ALL, [double])
    other = await nodes.open("b")
    await nodes.engines["a"].start(counts, 1, workflow_id="w")
    nodes.faults["b"] = hear_nothing

    waits = asyncio.ensure_future(other.update("w", "add", 2))
    await eventually(lambda: _has_accepted(nodes.engines["a"]))
    await nodes.clock.advance(seconds=10)

    assert await waits == 3


async def test_U8_an_update_goes_on_when_the_node_of_its_handler_dies(nodes: Nodes) -> None:
    await nodes.open("a", ALL, [double])
    await nodes.engines["a"].start(counts, 1, workflow_id="w")
    other = await nodes.open("b")
    waits = asyncio.ensure_future(other.update("w", "wait", request_id="r"))
    await eventually(lambda: _has_accepted(nodes.engines["a"]))

    await nodes.kill("a")
    third = await nodes.open("c", ALL, [double])
    await nodes.take_over()
    await third.signal_workflow("w", "never")

    assert await waits == "over"
    assert await third.update("w", "wait", request_id="r") == "over"


@pytest.mark.parametrize("point", [Point.WRITE_ROWS, Point.COMMIT, Point.COMMITTED])
async def test_U4_a_crash_between_writes_leaves_one_update_or_none(nodes: Nodes, point: Point) -> None:
    first = await nodes.open("a", ALL, [double])
    handle = await first.start(counts, 1, workflow_id="w")
    await first.settle()  # the look for publications with which it opened is over: the batch is to meet the fault
    nodes.faults["a"] = once(point, FaultAction.CRASH)
    waits = asyncio.ensure_future(first.update("w", "add", 2, request_id="r"))
    await nodes.died("a")
    await nodes.kill("a")
    with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever the end of an engine tells its callers
        await waits

    second = await nodes.open("b", ALL, [double])
    await nodes.take_over()

    assert await second.update("w", "add", 2, request_id="r") == 3
    await second.update("w", "stop")
    assert await second.handle("w").result() == [1, 2]
    assert handle.workflow_id == "w"


async def test_U4_a_run_takes_as_many_signals_and_updates_as_it_may(world: World) -> None:
    engine = await world.open(ALL, [double], max_signals=3)
    await engine.start(counts, 1, workflow_id="w")
    await engine.signal_workflow("w", "nobody waits for it")
    assert [await engine.update("w", "add", 1) for _ in range(2)] == [2, 3]

    with pytest.raises(SignalLimitReached, match="to update"):
        await engine.update("w", "add", 1)
    with pytest.raises(SignalLimitReached):
        await engine.signal_workflow("w", "nobody waits for it")

    await engine.restart()
    with pytest.raises(SignalLimitReached):
        await engine.update("w", "add", 1, request_id="r")
