"""X1 and H1: completing or cancelling a human task is one commit with the turn that takes it, or nothing at all."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, HumanTaskCancelled, workflow
from holdfast.errors import AnswerTimedOut, TaskConflict, TaskEnded, TaskNotClaimed
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.testing import TestEngine
from tests.eventually import eventually
from tests.rules.world import Nodes, World, once


@workflow
async def asking(ctx: Context) -> str:
    try:
        answer = await ctx.human_task("ask", str)
    except HumanTaskCancelled as error:
        answer = f"cancelled by {error.details['by']}"
    await ctx.wait_for_signal("end")
    return answer


@workflow
async def dated(ctx: Context) -> str:
    return await ctx.human_task("ask", str, due=timedelta(hours=2))


@workflow
async def stubborn(ctx: Context) -> str:
    """Asks again when it is asked to cancel."""
    try:
        return await ctx.human_task("first", str)
    except asyncio.CancelledError:
        return await ctx.human_task("second", str)


@workflow
async def noting(ctx: Context, escalate_hours: float | None) -> list[str]:
    """Takes notes while its task is open, which is due in an hour."""
    task = ctx.human_task(
        "ask",
        str,
        due=timedelta(hours=1),
        escalate_after=None if escalate_hours is None else timedelta(hours=escalate_hours),
        escalate_to=() if escalate_hours is None else ["managers"],
    )
    notes = [await ctx.wait_for_signal("note", str) for _ in range(2)]
    return [*notes, await task]


WORKFLOWS: list[Any] = [asking, dated, stubborn, noting]


async def claim(engine: TestEngine, target: str) -> str:
    await engine.settle()
    task_id = (await engine.query_status(target)).active_task_id
    assert task_id is not None
    await engine.claim_task(task_id, by="ann")
    return task_id


async def kinds(engine: TestEngine, target: str = "w") -> list[str]:
    return (await engine.history(target)).kinds


async def steps(engine: TestEngine, task_id: str) -> list[str]:
    return [one.kind for one in await engine.task_events(task_id)]


async def check_agreement(engine: TestEngine, task_id: str) -> bool:
    """The history, the row and the task events tell the same; whether the task is completed."""
    is_completed = (await engine.task(task_id)).state == "completed"
    assert ("TaskCompleted" in await kinds(engine)) == is_completed
    assert ("completed" in await steps(engine, task_id)) == is_completed
    return is_completed


# --- one commit -----------------------------------------------------------------------------------------------------------

WRITES = [Point.READ, Point.WRITE_VERSIONS, Point.WRITE_INSERTS, Point.WRITE_ROWS, Point.COMMIT, Point.COMMITTED]


@pytest.mark.parametrize("point", WRITES)
async def test_X1_a_crash_between_writes_leaves_a_completion_whole_or_undone(point: Point) -> None:
    nodes = Nodes()
    first = await nodes.open("a", WORKFLOWS)
    await first.start(asking, workflow_id="w")
    task_id = await claim(first, "w")
    nodes.faults["a"] = once(point, FaultAction.CRASH)
    waits = asyncio.ensure_future(first.complete_task(task_id, "yes", by="ann", request_id="r"))
    if point is Point.READ:  # the caller reads the row
        with pytest.raises(BaseException):  # noqa: B017, PT011
            await waits
    else:
        await nodes.died("a")
    await nodes.kill("a")
    await asyncio.gather(waits, return_exceptions=True)

    second = await nodes.open("b", WORKFLOWS)
    assert await check_agreement(second, task_id) == (point is Point.COMMITTED)
    await nodes.take_over()

    done = await second.complete_task(task_id, "yes", by="ann", request_id="r")
    assert (done.state, done.result) == ("completed", "yes")
    assert await steps(second, task_id) == ["created", "claimed", "completed"]
    assert (await kinds(second)).count("TaskCompleted") == 1
    await second.handle("w").signal("end")
    assert await second.wait_for_result("w") == "yes"
    await nodes.close()


async def test_X1_what_the_person_is_told_is_in_the_history_when_the_workflow_is_cancelled(nodes: Nodes) -> None:
    first, second = await nodes.open("a", WORKFLOWS), await nodes.open("b", WORKFLOWS)
    for number in range(5):
        target = f"w{number}"
        await first.start(stubborn, workflow_id=target)
        task_id = await claim(first, target)

        done, _ = await asyncio.gather(
            second.complete_task(task_id, "yes", by="ann"), first.cancel(target), return_exceptions=True
        )

        await first.settle()
        is_refused = isinstance(done, BaseException)
        assert not is_refused or isinstance(done, TaskEnded), done
        assert ("TaskCompleted" in await kinds(second, target)) != is_refused
        assert (await second.task(task_id)).state == ("cancelled" if is_refused else "completed")


async def test_X1_of_two_completions_at_once_one_wins(nodes: Nodes) -> None:
    first, second = await nodes.open("a", WORKFLOWS), await nodes.open("b", WORKFLOWS)
    await first.start(asking, workflow_id="w")
    task_id = await claim(first, "w")

    calls = [engine.complete_task(task_id, f"{n}", by="ann") for n in range(4) for engine in (first, second)]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    won = [one for one in answers if not isinstance(one, BaseException)]
    assert len(won) == 1
    assert {type(one) for one in answers if one is not won[0]} == {TaskEnded}
    assert (await kinds(second)).count("TaskCompleted") == 1
    await second.handle("w").signal("end")
    assert await second.wait_for_result("w") == won[0].result


async def test_X1_completing_and_reassigning_at_once_agree(nodes: Nodes) -> None:
    first, second = await nodes.open("a", WORKFLOWS), await nodes.open("b", WORKFLOWS)
    for number in range(6):
        target = f"w{number}"
        await first.start(asking, workflow_id=target)
        task_id = await claim(first, target)

        answers = await asyncio.gather(
            (first if number % 2 else second).complete_task(task_id, "yes", by="ann"),
            second.assign_task(task_id, "bob", by="boss"),
            return_exceptions=True,
        )

        assert sum(isinstance(one, TaskConflict) for one in answers) == 1, answers
        is_completed = not isinstance(answers[0], BaseException)
        assert ("TaskCompleted" in await kinds(second, target)) == is_completed
        assert (await second.task(task_id)).state == ("completed" if is_completed else "open")


async def test_X1_a_task_of_a_dead_node_is_completed_by_another(nodes: Nodes) -> None:
    first = await nodes.open("a", WORKFLOWS)
    await first.start(asking, workflow_id="w")
    task_id = await claim(first, "w")
    await nodes.kill("a")

    second = await nodes.open("b", WORKFLOWS)
    done = await second.complete_task(task_id, "yes", by="ann")
    await nodes.take_over()
    await second.handle("w").signal("end")

    assert (done.state, await second.wait_for_result("w")) == ("completed", "yes")


async def test_X1_a_node_without_the_code_is_answered_by_one_that_has_it(nodes: Nodes) -> None:
    first, other = await nodes.open("a", WORKFLOWS), await nodes.open("b")
    await first.start(asking, workflow_id="w")
    task_id = await claim(first, "w")

    with pytest.raises(TaskNotClaimed, match="'ann' has claimed it"):
        await other.complete_task(task_id, "no", by="bob", request_id="wrong")
    done = await other.complete_task(task_id, "yes", by="ann", request_id="r")
    again = await other.complete_task(task_id, "yes", by="ann", request_id="r")

    assert (done.state, again) == ("completed", done)
    assert await steps(other, task_id) == ["created", "claimed", "completed"]


async def test_X1_a_step_that_comes_by_the_inbox_after_the_end_is_answered(nodes: Nodes) -> None:
    first, other = await nodes.open("a", WORKFLOWS), await nodes.open("b")
    await first.start(asking, workflow_id="w")
    task_id = await claim(first, "w")
    await first.pause("w")
    waits = asyncio.ensure_future(other.complete_task(task_id, "yes", by="ann"))
    await eventually(lambda: _has_arrived(other))

    await first.terminate("w")

    with pytest.raises(TaskEnded):
        await waits
    assert (await other.task(task_id)).state == "cancelled"


# --- where no turn is taken -----------------------------------------------------------------------------------------------


async def test_H1_a_completion_waits_while_its_workflow_is_paused(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(asking, workflow_id="w")
    task_id = await claim(engine, "w")
    await engine.pause("w")

    with pytest.raises(AnswerTimedOut, match="call again"):
        await engine.complete_task(task_id, "yes", by="ann", request_id="r", timeout=0.05)
    assert (await engine.task(task_id)).state == "claimed"
    await engine.resume("w")

    done = await engine.complete_task(task_id, "yes", by="ann", request_id="r")
    assert (done.state, done.result) == ("completed", "yes")
    assert await steps(engine, task_id) == ["created", "claimed", "completed"]


async def test_H1_a_late_answer_without_a_request_id_says_where_to_look(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(asking, workflow_id="w")
    task_id = await claim(engine, "w")
    await engine.pause("w")

    with pytest.raises(AnswerTimedOut, match="look at the task") as late:
        await engine.complete_task(task_id, "yes", by="ann", timeout=0.05)
    assert "the same request_id" not in str(late.value)
    await engine.resume("w")

    await eventually(lambda: _has_state(engine, task_id, "completed"))


async def _has_state(engine: TestEngine, task_id: str, state: str) -> bool:
    return (await engine.task(task_id)).state == state


async def test_H1_a_step_that_waited_is_judged_when_it_is_taken(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(asking, workflow_id="w")
    task_id = await claim(engine, "w")
    await engine.pause("w")
    waits = asyncio.ensure_future(engine.complete_task(task_id, "yes", by="ann"))
    await eventually(lambda: _has_arrived(engine))

    await engine.assign_task(task_id, "bob", by="boss")
    await engine.resume("w")

    with pytest.raises(TaskNotClaimed, match="nobody has claimed it"):
        await waits
    assert await steps(engine, task_id) == ["created", "claimed", "reassigned"]
    assert await kinds(engine) == ["WorkflowStarted", "TaskCreated"]


async def test_H1_a_completion_waits_until_somebody_has_the_code(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(asking, workflow_id="w")
    task_id = await claim(engine, "w")
    await engine.restart(workflows=[])

    with pytest.raises(AnswerTimedOut):
        await engine.complete_task(task_id, "yes", by="ann", request_id="r", timeout=0.05)
    await engine.restart(workflows=WORKFLOWS)

    assert (await engine.complete_task(task_id, "yes", by="ann", request_id="r")).result == "yes"


async def _has_arrived(engine: TestEngine) -> bool:
    execution_id = (await engine.query_status("w")).execution_id
    return bool(await engine.store.list_inbox("default", execution_id, ""))


# --- due dates ------------------------------------------------------------------------------------------------------------


async def test_H2_the_timer_of_a_task_follows_its_due_date(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(dated, workflow_id="w")
    task_id = await claim(engine, "w")
    before = await engine.task(task_id)
    assert before.due is not None

    later = await engine.set_task_due(task_id, before.due + timedelta(hours=2), by="boss", groups=["leads"])
    await engine.clock.advance(hours=3)
    await engine.settle()
    assert (await steps(engine, task_id))[-1] == "rescheduled"
    await engine.restart()
    await engine.clock.advance(hours=1)
    await engine.settle()
    assert (await steps(engine, task_id))[-1] == "overdue"
    again = await engine.set_task_due(task_id, before.due + timedelta(hours=5), by="boss")
    await engine.clock.advance(hours=3)
    await engine.settle()
    assert (await steps(engine, task_id))[-1] == "overdue"
    never = await engine.set_task_due(task_id, None, by="boss")
    await engine.complete_task(task_id, "yes", by="ann")

    assert await engine.wait_for_result("w") == "yes"
    assert later.due == before.due + timedelta(hours=2)
    assert (again.due, never.due) == (before.due + timedelta(hours=5), None)
    told = (await engine.task_events(task_id))[2]
    assert (told.by, told.groups, told.kind) == ("boss", ("leads",), "rescheduled")
    assert [one.task_id for one in await engine.tasks(due_before=before.due + timedelta(days=9))] == []


@pytest.mark.parametrize(
    ("due_hours", "escalate_hours", "follows"),
    [(None, None, []), (48, None, ["overdue"]), (None, 24, ["escalated"]), (48, 24, ["escalated", "overdue"])],
)
async def test_H2_a_due_date_that_was_changed_before_its_timer_was_taken_does_not_pass(
    world: World, due_hours: int | None, escalate_hours: float | None, follows: list[str]
) -> None:
    engine = await world.open(WORKFLOWS, auto_advance=False)
    await engine.start(noting, escalate_hours, workflow_id="w")
    task_id = await claim(engine, "w")
    due = None if due_hours is None else (await engine.task(task_id)).created_at + timedelta(hours=due_hours)

    await engine.pause("w")
    await engine.signal_workflow("w", "note", "before")
    change = asyncio.ensure_future(engine.set_task_due(task_id, due, by="boss"))
    await eventually(lambda: _has_waiting(engine, 2))
    await engine.signal_workflow("w", "note", "after")
    await engine.clock.advance(hours=2)
    await engine.resume("w")

    assert (await change).due == due
    await engine.settle()
    assert await steps(engine, task_id) == ["created", "claimed", "rescheduled"]
    assert (await engine.task(task_id)).candidate_groups == ()
    assert await engine.dead_letters() == []
    for _ in range(2):
        await engine.clock.advance(hours=23)
        await engine.settle()
    assert await steps(engine, task_id) == ["created", "claimed", "rescheduled", *follows]
    await engine.complete_task(task_id, "yes", by="ann")
    assert await engine.wait_for_result("w") == ["before", "after", "yes"]


async def _has_waiting(engine: TestEngine, count: int) -> bool:
    return len((await engine.query_status("w")).inbox) == count


async def test_H2_a_due_date_that_was_changed_while_no_node_had_the_code_does_not_pass(world: World) -> None:
    engine = await world.open(WORKFLOWS, auto_advance=False)
    await engine.start(dated, workflow_id="w")
    task_id = await claim(engine, "w")
    due = (await engine.task(task_id)).created_at + timedelta(hours=9)
    await engine.restart(workflows=[])

    with pytest.raises(AnswerTimedOut):
        await engine.set_task_due(task_id, due, by="boss", request_id="r", timeout=0.05)
    await engine.clock.advance(hours=3)
    await engine.restart(workflows=WORKFLOWS)

    assert (await engine.set_task_due(task_id, due, by="boss", request_id="r")).due == due
    assert await steps(engine, task_id) == ["created", "claimed", "rescheduled"]
    await engine.clock.advance(hours=6)
    await engine.settle()
    assert await steps(engine, task_id) == ["created", "claimed", "rescheduled", "overdue"]


async def test_H2_a_due_date_of_a_task_that_has_ended_cannot_be_changed(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(asking, workflow_id="w")
    task_id = await claim(engine, "w")
    cancelled = await engine.cancel_task(task_id, "no need", by="boss", request_id="c")

    with pytest.raises(TaskEnded, match="it is cancelled"):
        await engine.set_task_due(task_id, None, by="boss")

    assert await engine.cancel_task(task_id, "no need", by="boss", request_id="c") == cancelled
    ended = (await engine.task_events(task_id))[-1]
    assert (ended.by, ended.reason, ended.before, ended.after) == (
        "boss",
        "no need",
        {"state": "claimed"},
        {"state": "cancelled"},
    )
