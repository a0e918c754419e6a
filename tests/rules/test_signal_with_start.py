"""I3: signal_with_start finds or creates, and delivers, as one step."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from holdfast import Context, Engine, workflow
from holdfast.core import codec
from holdfast.core.events import SignalReceived
from holdfast.errors import EncodingError, InvalidIdentifier, SignalLimitReached, status_code
from holdfast.store.memory.faults import FaultAction, Point
from tests.rules.world import Nodes, World, once


@workflow
async def collector(ctx: Context, wanted: int) -> list[str]:
    return [await ctx.wait_for_signal("message", str) for _ in range(wanted)]


@workflow
async def hasty(ctx: Context) -> int:
    return ctx.pending_signal_count("message")


async def send(engine: Engine, workflow_id: str, value: str, wanted: int = 1_000_000) -> Any:
    return await engine.signal_with_start_workflow(workflow_id, collector, wanted, signal_name="message", signal_value=value)


async def received(engine: Engine, target: str) -> list[str]:
    """The values of the signals in an execution's history, in order."""
    history = await engine.history(target)
    found = [one.event for one in history.events if isinstance(one.event, SignalReceived)]
    return [bytes(event.value.data).decode().strip('"') for event in found]


async def test_I3_it_creates_an_execution_with_the_signal_in_hand(world: World) -> None:
    engine = await world.open([collector])

    answer = await send(engine, "c", "hello", wanted=1)

    assert answer.workflow_created
    assert answer.signal_event_sequence == 2
    assert await engine.handle("c").result() == ["hello"]
    assert (await engine.history("c")).kinds == ["WorkflowStarted", "SignalReceived", "WorkflowCompleted"]


async def test_I3_it_signals_the_open_execution(world: World) -> None:
    engine = await world.open([collector])
    first = await send(engine, "c", "one", wanted=2)

    second = await send(engine, "c", "two", wanted=2)

    assert (first.workflow_created, second.workflow_created) == (True, False)
    assert second.workflow_execution_id == first.workflow_execution_id
    assert second.signal_event_sequence == 3
    assert await engine.handle("c").result() == ["one", "two"]


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled", "terminated"])
async def test_I3_it_ignores_closed_executions_and_creates_a_new_one(world: World, end: str) -> None:
    engine = await world.open([collector, failing])
    handle = await engine.start(failing if end == "failed" else collector, 1, workflow_id="c")
    if end == "completed":
        await handle.signal("message", "old")
    elif end == "cancelled":
        await handle.cancel()
    elif end == "terminated":
        await handle.terminate()
    await engine.settle()
    assert (await handle.status()).status == end

    answer = await send(engine, "c", "new", wanted=1)

    assert answer.workflow_created
    assert answer.workflow_execution_id != handle.execution_id
    assert await engine.handle(answer.workflow_execution_id).result() == ["new"]


@workflow
async def failing(ctx: Context, wanted: int) -> list[str]:
    raise ValueError(f"wanted {wanted}")


async def test_I3_create_start_event_signal_and_first_turn_are_one_transaction(nodes: Nodes) -> None:
    engine = await nodes.open("one", [collector])

    answer = await send(engine, "c", "hello", wanted=1)

    (commit,) = nodes.commits
    (turn,) = commit.turns
    assert turn.row.execution_id == answer.workflow_execution_id
    assert turn.expected_version is None
    assert turn.history is not None
    kinds = [type(event).__name__ for event in codec.decode_events(turn.history.body, turn.history.schema)]
    assert kinds == ["WorkflowStarted", "SignalReceived", "WorkflowCompleted"]


async def test_I3_it_is_one_round_trip_to_the_store(nodes: Nodes) -> None:
    engine = await nodes.open("one", [collector])
    await engine.settle()
    before = Counter(nodes.gate.passed)

    await send(engine, "c", "hello")

    after = Counter(nodes.gate.passed) - before
    assert (after[Point.BEGIN], after[Point.COMMIT], after[Point.CLAIM_LOCK]) == (1, 1, 1)
    assert after[Point.DELIVER_LOCK] == after[Point.READ] == 0


@pytest.mark.parametrize("point", [Point.WRITE_VERSIONS, Point.WRITE_INSERTS, Point.WRITE_ROWS, Point.COMMIT])
async def test_I3_a_crash_before_the_commit_leaves_nothing_at_all(nodes: Nodes, point: Point) -> None:
    engine = await nodes.open("one", [collector], exclusive=True)
    nodes.faults["one"] = once(point, FaultAction.CRASH)

    call = asyncio.ensure_future(send(engine, "c", "hello"))
    await nodes.died("one")
    call.cancel()
    await nodes.kill("one")

    second = await nodes.open("two", [collector], exclusive=True)
    assert await second.list() == []
    assert (await second.store.count()).inbox == 0


async def test_I3_a_thousand_concurrent_calls_to_fifty_ids_lose_nothing(world: World) -> None:
    engine = await world.open([collector])

    answers = await asyncio.gather(*(send(engine, f"c-{n % 50}", str(n)) for n in range(1000)))

    assert sum(answer.workflow_created for answer in answers) == 50
    assert len({answer.workflow_execution_id for answer in answers}) == 50
    values = [await received(engine, f"c-{n}") for n in range(50)]
    assert sorted(int(value) for of_one in values for value in of_one) == list(range(1000))


async def test_I3_a_thousand_concurrent_calls_to_fifty_ids_on_two_nodes_lose_nothing(nodes: Nodes) -> None:
    engines = [await nodes.open("one", [collector]), await nodes.open("two", [collector])]

    answers = await asyncio.gather(*(send(engines[n % 2], f"c-{n % 50 // 2}", str(n)) for n in range(1000)))
    await nodes.clock.advance(seconds=1)  # what the other node held at the last look is looked for once more

    assert sum(answer.workflow_created for answer in answers) == 25
    values = [await received(engines[0], f"c-{n}") for n in range(25)]
    assert sorted(int(value) for of_one in values for value in of_one) == list(range(1000))


async def test_I3_each_answer_tells_the_place_of_its_own_signal(world: World) -> None:
    engine = await world.open([collector])

    answers = await asyncio.gather(*(send(engine, "c", str(n)) for n in range(100)))

    history = {one.sequence: one.event for one in (await engine.history("c")).events}
    for number, answer in enumerate(answers):
        event = history[answer.signal_event_sequence]
        assert isinstance(event, SignalReceived)
        assert bytes(event.value.data) == f'"{number}"'.encode()


async def test_I3_a_call_answered_before_another_is_made_comes_before_it(world: World) -> None:
    engine = await world.open([collector])

    async def send_in_turn(sender: str) -> None:
        for number in range(20):
            await send(engine, "c", f"{sender}-{number}")

    await asyncio.gather(*(send_in_turn(sender) for sender in "abcde"))

    values = await received(engine, "c")
    assert len(values) == 100
    for sender in "abcde":
        assert [value for value in values if value.startswith(sender)] == [f"{sender}-{n}" for n in range(20)]


async def test_I3_a_call_answered_on_one_node_comes_before_one_made_on_another(nodes: Nodes) -> None:
    engines = [await nodes.open("one", [collector]), await nodes.open("two", [collector])]

    async def send_in_turn(sender: str) -> None:
        for number in range(20):
            await send(engines[number % 2], "c", f"{sender}-{number}")

    await asyncio.gather(*(send_in_turn(sender) for sender in "abcde"))
    await nodes.clock.settle()

    values = await received(engines[0], "c")
    assert len(values) == 100
    for sender in "abcde":
        assert [value for value in values if value.startswith(sender)] == [f"{sender}-{n}" for n in range(20)]


async def test_I3_a_call_beside_a_termination_never_fails(world: World) -> None:
    engine = await world.open([collector])
    first = await send(engine, "c", "old")

    terminated, answer = await asyncio.gather(engine.terminate("c"), send(engine, "c", "new"))

    assert terminated
    assert answer.workflow_execution_id != first.workflow_execution_id
    assert answer.workflow_created
    assert await received(engine, answer.workflow_execution_id) == ["new"]


async def test_I3_calls_beside_a_completion_are_taken_by_the_old_run_or_the_next(world: World) -> None:
    engine = await world.open([collector])
    await send(engine, "c", "0", wanted=2)

    answers = await asyncio.gather(*(send(engine, "c", str(n), wanted=2) for n in range(1, 10)))

    executions = dict.fromkeys(answer.workflow_execution_id for answer in answers)
    values = [value for execution in executions for value in await received(engine, execution)]
    assert sorted(values) == [str(n) for n in range(10)]


async def test_I3_a_workflow_that_ends_at_once_sees_the_signal(world: World) -> None:
    engine = await world.open([hasty])

    answer = await engine.signal_with_start_workflow("h", hasty, signal_name="message")

    assert await engine.handle(answer.workflow_execution_id).result() == 1


async def test_I3_a_repeated_request_id_signals_once(world: World) -> None:
    engine = await world.open([collector])

    answers = [
        await engine.signal_with_start_workflow(
            "c", collector, 9, signal_name="message", signal_value="once", request_id="r-1"
        )
        for _ in range(3)
    ]

    assert [answer.workflow_created for answer in answers] == [True, True, True], "each gets the first answer"
    assert {answer.workflow_execution_id for answer in answers} == {answers[0].workflow_execution_id}
    assert {answer.signal_event_sequence for answer in answers} == {2}
    assert await received(engine, "c") == ["once"]


async def test_I3_a_call_that_cannot_be_right_stores_nothing(world: World) -> None:
    engine = await world.open([collector])

    with pytest.raises(InvalidIdentifier):
        await send(engine, "", "hello")
    with pytest.raises(InvalidIdentifier):
        await engine.signal_with_start_workflow("c", collector, 1, signal_name="")
    with pytest.raises(EncodingError) as refused:
        await engine.signal_with_start_workflow("c", collector, 1, signal_name="message", signal_value=object())

    assert status_code(refused.value) == 422
    assert await engine.list() == []


async def test_I3_a_run_that_has_all_its_signals_refuses_and_no_other_is_created(world: World) -> None:
    engine = await world.open([collector], max_signals=2)
    await send(engine, "c", "one")
    await send(engine, "c", "two")

    with pytest.raises(SignalLimitReached) as refused:
        await send(engine, "c", "three")

    assert status_code(refused.value) == 409
    assert len(await engine.list()) == 1
    assert await received(engine, "c") == ["one", "two"]
