"""H1 and H2: who may do what with a human task, each step an event, and tasks end with their wait."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, WorkflowCancelled, workflow
from holdfast.code.definitions import Workflow
from holdfast.errors import (
    HumanTaskCancelled,
    InvalidArguments,
    InvalidIdentifier,
    NotTaskCandidate,
    TaskClaimed,
    TaskConflict,
    TaskEnded,
    TaskFormMismatch,
    TaskNotClaimed,
    TaskNotFound,
    status_code,
)
from holdfast.testing import TestEngine
from tests.rules.world import Nodes, World


@dataclass
class Approval:
    approved: bool
    note: str = ""


@workflow
async def approving(ctx: Context, amount: int, candidates: list[str], users: list[str], assignee: str | None) -> str:
    form = await ctx.human_task(
        "approve",
        Approval,
        candidates=candidates,
        candidate_users=users,
        assignee=assignee,
        payload={"amount": amount},
        description="Approve the amount",
        priority=3,
    )
    return f"{type(form).__name__} {form.approved} {form.note}"


@workflow
async def impatient(ctx: Context) -> str:
    try:
        async with asyncio.timeout(3600):
            form = await ctx.human_task("approve", Approval, candidates=["managers"])
    except TimeoutError:
        return "too late"
    return f"approved: {form.approved}"


@workflow
async def racing(ctx: Context, *, cancels: bool) -> str:
    task = ctx.human_task("approve", Approval)
    winner = await ctx.wait_any(task, ctx.signal("abort", str))
    if winner.index == 0:
        return "approved"
    if cancels:
        task.cancel()
        return f"aborted {await ctx.wait_for_signal('end', str)}"
    return f"late: {(await task).approved}"


@workflow
async def closing(ctx: Context, how: str) -> None:
    task = ctx.human_task("approve", Approval)
    await ctx.wait_for_signal("go")
    if how == "failed":
        raise ValueError("as asked")
    if how == "continued":
        ctx.continue_as("cancelled")
    if how != "completed":
        await task


@workflow
async def catching(ctx: Context) -> Any:
    try:
        await ctx.human_task("approve", Approval)
    except HumanTaskCancelled as error:
        return error.details
    return None


@workflow
async def escalating(ctx: Context) -> bool:
    form = await ctx.human_task(
        "approve",
        Approval,
        candidates=["clerks"],
        follow_up=timedelta(hours=1),
        due=timedelta(hours=2),
        escalate_after=timedelta(hours=3),
        escalate_to=["managers"],
    )
    return form.approved


@workflow
async def for_everybody(ctx: Context) -> bool:
    hour = timedelta(hours=1)
    return (await ctx.human_task("approve", Approval, escalate_after=hour, escalate_to=["managers"])).approved


@workflow
async def twice(ctx: Context) -> list[bool]:
    first, second = ctx.human_task("first", Approval), ctx.human_task("second", Approval, queue="archive")
    return [(await first).approved, (await second).approved]


WORKFLOWS: list[Workflow[..., Any]] = [approving, impatient, racing, closing, catching, escalating, for_everybody, twice]


async def begin(
    world: World, candidates: list[str] | None = None, users: list[str] | None = None, assignee: str | None = None
) -> tuple[TestEngine, Any, str]:
    """An engine, the handle of an execution that waits for its task, and the id of that."""
    engine = await world.open(WORKFLOWS)
    handle = await engine.start(approving, 100, candidates or [], users or [], assignee)
    return engine, handle, await find_task(engine, handle)


async def find_task(engine: TestEngine, handle: Any) -> str:
    await engine.settle()
    found = (await handle.status()).active_task_id
    assert found is not None
    return str(found)


async def list_kinds(engine: TestEngine, task_id: str) -> list[str]:
    return [one.kind for one in await engine.task_events(task_id)]


# --- H1 -------------------------------------------------------------------------------------------------------------------


async def test_H1_a_claimed_task_is_completed_with_a_typed_form(world: World) -> None:
    engine, handle, task_id = await begin(world, ["managers"])
    before = await handle.status()

    await engine.claim_task(task_id, by="ann", groups=["managers"])
    done = await engine.complete_task(task_id, Approval(approved=True, note="fine"), by="ann")

    assert await handle.result() == "Approval True fine"
    assert (before.waiting_kind, before.waiting_token, before.pending.tasks[0].name) == ("task", task_id, "approve")
    assert (await handle.status()).active_task_id is None
    assert (done.state, done.claimer, done.result) == ("completed", "ann", {"approved": True, "note": "fine"})
    assert (done.payload, done.description, done.priority) == ({"amount": 100}, "Approve the amount", 3)
    assert done.form_schema["$defs"]["Approval"]["required"] == ["approved"]
    kinds = ["WorkflowStarted", "TaskCreated", "TaskCompleted", "WorkflowCompleted"]
    assert (await handle.history()).kinds == kinds


async def test_H1_every_step_is_an_event_with_who_and_when(world: World) -> None:
    engine, _, task_id = await begin(world, ["managers"], assignee="zoe")

    await engine.claim_task(task_id, by="ann", groups=["staff", "managers"])
    await engine.comment_task(task_id, "not mine", by="ann")
    await engine.release_task(task_id, by="ann")
    await engine.assign_task(task_id, "bob", by="boss")
    await engine.set_task_priority(task_id, 9, by="boss")
    await engine.claim_task(task_id, by="bob")
    await engine.complete_task(task_id, {"approved": False}, by="bob")

    events = await engine.task_events(task_id)
    kinds = ["created", "claimed", "commented", "released", "reassigned", "prioritized", "claimed", "completed"]
    assert [one.kind for one in events] == kinds
    assert [one.by for one in events] == [None, "ann", "ann", "ann", "boss", "boss", "bob", "bob"]
    assert [one.sequence for one in events] == list(range(1, 9))
    assert events[1].groups == ("managers", "staff")
    assert (events[2].comment, events[4].before["assignee"], events[4].after["assignee"]) == ("not mine", "zoe", "bob")
    assert all(earlier.at <= later.at for earlier, later in itertools.pairwise(events))


@pytest.mark.parametrize(
    ("by", "groups", "may"),
    [
        ("ann", [], True),
        ("bob", [], True),
        ("eve", ["managers"], True),
        ("eve", ["others"], False),
        ("eve", [], False),
    ],
)
async def test_H1_a_claim_needs_the_assignee_or_a_candidate(world: World, by: str, groups: list[str], may: bool) -> None:
    engine, _, task_id = await begin(world, ["managers"], ["bob"], "ann")

    if may:
        assert (await engine.claim_task(task_id, by=by, groups=groups)).claimer == by
    else:
        with pytest.raises(NotTaskCandidate) as refused:
            await engine.claim_task(task_id, by=by, groups=groups)
        assert status_code(refused.value) == 409
        assert await list_kinds(engine, task_id) == ["created"]


async def test_H1_anybody_may_claim_a_task_without_candidates(world: World) -> None:
    engine, _, task_id = await begin(world)

    assert (await engine.claim_task(task_id, by="anybody")).state == "claimed"


async def test_H1_an_escalation_locks_nobody_out_who_could_claim_before(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    task_id = await find_task(engine, await engine.start(for_everybody))
    await engine.clock.advance(hours=1)
    await engine.settle()

    assert await list_kinds(engine, task_id) == ["created", "escalated"]
    for by, groups in (("anybody", ()), ("boss", ("managers",))):
        assert (await engine.claim_task(task_id, by=by, groups=groups)).claimer == by
        await engine.release_task(task_id, by=by)
    await engine.assign_task(task_id, "bob", by="boss")
    with pytest.raises(NotTaskCandidate, match="its assignee 'bob' and members of managers"):
        await engine.claim_task(task_id, by="anybody")


async def test_H1_a_second_claim_is_refused_and_changes_nothing(world: World) -> None:
    engine, _, task_id = await begin(world)
    before = await engine.claim_task(task_id, by="ann")

    for by in ("bob", "ann"):
        with pytest.raises(TaskClaimed, match="'ann' has claimed it") as refused:
            await engine.claim_task(task_id, by=by)
        assert status_code(refused.value) == 409

    assert await engine.task(task_id) == before


async def test_H1_only_the_claimer_completes_or_releases(world: World) -> None:
    engine, handle, task_id = await begin(world, assignee="ann")

    with pytest.raises(TaskNotClaimed, match="nobody has claimed it"):
        await engine.complete_task(task_id, {"approved": True}, by="ann")
    before = await engine.claim_task(task_id, by="ann")
    with pytest.raises(TaskNotClaimed, match="'ann' has claimed it"):
        await engine.complete_task(task_id, {"approved": True}, by="bob")
    with pytest.raises(TaskNotClaimed):
        await engine.release_task(task_id, by="bob")

    assert await engine.task(task_id) == before
    assert (await handle.status()).waiting_kind == "task"


@pytest.mark.parametrize("form", [None, {}, {"approved": "perhaps"}, {"note": "x"}, [True], "yes"])
async def test_H1_a_form_that_does_not_fit_is_refused_and_changes_nothing(world: World, form: Any) -> None:
    engine, handle, task_id = await begin(world)
    before = await engine.claim_task(task_id, by="ann")

    with pytest.raises(TaskFormMismatch, match="Approval") as refused:
        await engine.complete_task(task_id, form, by="ann")

    assert status_code(refused.value) == 409
    assert await engine.task(task_id) == before
    assert (await handle.history()).kinds == ["WorkflowStarted", "TaskCreated"]


async def test_H1_nothing_can_be_done_about_a_task_that_has_ended(world: World) -> None:
    engine, _, task_id = await begin(world)
    await engine.claim_task(task_id, by="ann")
    await engine.complete_task(task_id, {"approved": True}, by="ann")
    before = await engine.task(task_id)

    for attempt in (
        engine.claim_task(task_id, by="bob"),
        engine.release_task(task_id, by="ann"),
        engine.assign_task(task_id, "bob", by="ann"),
        engine.complete_task(task_id, {"approved": False}, by="ann"),
        engine.cancel_task(task_id, by="ann"),
        engine.comment_task(task_id, "late", by="ann"),
        engine.set_task_priority(task_id, 1, by="ann"),
    ):
        with pytest.raises(TaskEnded, match="it is completed"):
            await attempt

    assert await engine.task(task_id) == before


async def test_H1_a_cancelled_task_raises_in_its_workflow(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    handle = await engine.start(catching)
    task_id = await find_task(engine, handle)

    cancelled = await engine.cancel_task(task_id, "not needed", by="boss")

    assert await handle.result() == {"by": "boss", "reason": "not needed"}
    assert cancelled.state == "cancelled"


async def test_H1_a_reassigned_task_has_no_claimer(world: World) -> None:
    engine, _, task_id = await begin(world, assignee="ann")
    await engine.claim_task(task_id, by="ann")

    moved = await engine.assign_task(task_id, "bob", by="boss")

    assert (moved.state, moved.assignee, moved.claimer) == ("open", "bob", None)
    with pytest.raises(NotTaskCandidate):
        await engine.claim_task(task_id, by="ann")
    assert await list_kinds(engine, task_id) == ["created", "claimed", "reassigned"]


async def test_H1_a_repeated_completion_with_its_request_id_is_one(world: World) -> None:
    engine, handle, task_id = await begin(world)
    await engine.claim_task(task_id, by="ann", request_id="c1")
    again = await engine.claim_task(task_id, by="ann", request_id="c1")

    first = await engine.complete_task(task_id, {"approved": True}, by="ann", request_id="r1")
    second = await engine.complete_task(task_id, {"approved": True}, by="ann", request_id="r1")

    assert (again.claimer, first, await handle.result()) == ("ann", second, "Approval True ")
    assert await list_kinds(engine, task_id) == ["created", "claimed", "completed"]
    with pytest.raises(TaskEnded):
        await engine.complete_task(task_id, {"approved": True}, by="ann", request_id="r2")


async def test_H1_of_many_claims_at_once_one_wins(nodes: Nodes) -> None:
    first, second = await nodes.open("a", WORKFLOWS), await nodes.open("b", WORKFLOWS)
    handle = await first.start(approving, 1, [], [], None)
    task_id = await find_task(first, handle)

    claims = [engine.claim_task(task_id, by=f"user{n}") for n in range(8) for engine in (first, second)]
    answers = await asyncio.gather(*claims, return_exceptions=True)

    won = [one for one in answers if not isinstance(one, BaseException)]
    assert len(won) == 1
    assert {type(one) for one in answers if one is not won[0]} == {TaskClaimed}
    assert await list_kinds(second, task_id) == ["created", "claimed"]
    assert (await second.task(task_id)).claimer == won[0].claimer


async def test_H1_completing_races_with_reassigning_and_one_of_them_wins(nodes: Nodes) -> None:
    first, second = await nodes.open("a", WORKFLOWS), await nodes.open("b", WORKFLOWS)
    for number in range(5):
        handle = await first.start(approving, number, [], [], None)
        task_id = await find_task(first, handle)
        await first.claim_task(task_id, by="ann")

        answers = await asyncio.gather(
            first.complete_task(task_id, {"approved": True}, by="ann"),
            second.assign_task(task_id, "bob", by="boss"),
            return_exceptions=True,
        )

        assert sum(isinstance(one, TaskConflict) for one in answers) == 1, answers
        is_completed = not isinstance(answers[0], BaseException)
        assert (await second.task(task_id)).state == ("completed" if is_completed else "open")


async def test_H1_a_task_is_completed_on_a_node_that_is_not_its_own(nodes: Nodes) -> None:
    first, second = await nodes.open("a", WORKFLOWS), await nodes.open("b", WORKFLOWS)
    handle = await first.start(approving, 1, [], [], None)
    task_id = await find_task(first, handle)

    await second.claim_task(task_id, by="ann")
    await second.complete_task(task_id, {"approved": True}, by="ann")

    assert await handle.result() == "Approval True "


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"by": ""}, InvalidIdentifier),
        ({"by": 7}, InvalidIdentifier),
        ({"by": "ann", "groups": "managers"}, InvalidArguments),
        ({"by": "ann", "org": "other"}, TaskNotFound),
    ],
)
async def test_H1_bad_input_is_refused(alone: World, options: dict[str, Any], error: type[Exception]) -> None:
    engine, _, task_id = await begin(alone)

    with pytest.raises(error):
        await engine.claim_task(task_id, **options)
    with pytest.raises(TaskNotFound):
        await engine.claim_task("nobody", by="ann")
    with pytest.raises(InvalidIdentifier, match=r"^Expected the id of a task, but got a TaskInfo\. Pass task\.task_id\.$"):
        await engine.claim_task(await engine.task(task_id), by="ann")  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments):
        await engine.comment_task(task_id, "", by="ann")

    assert await list_kinds(engine, task_id) == ["created"]


# --- H2 -------------------------------------------------------------------------------------------------------------------


async def test_H2_an_interrupted_wait_leaves_no_open_task(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    handle = await engine.start(impatient)
    task_id = await find_task(engine, handle)
    await engine.claim_task(task_id, by="ann", groups=["managers"])

    await engine.clock.advance(hours=1)

    assert await handle.result() == "too late"
    ended = await engine.task(task_id)
    assert (ended.state, ended.ended_at is not None) == ("cancelled", True)
    assert (await engine.task_events(task_id))[-1].reason == "its workflow waits for it no longer"
    with pytest.raises(TaskEnded):
        await engine.complete_task(task_id, {"approved": True}, by="ann")


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "terminated", "continued"])
async def test_H2_a_task_ends_with_its_execution_however_that_ends(world: World, how: str) -> None:
    engine = await world.open(WORKFLOWS)
    handle = await engine.start(closing, how, workflow_id="w")
    task_id = await find_task(engine, handle)
    if how == "cancelled":
        await handle.cancel()
    elif how == "terminated":
        await handle.terminate()
    else:
        await handle.signal("go")
    await engine.settle()

    ended = await engine.task(task_id)
    assert ended.state == "cancelled"
    assert (await engine.task_events(task_id))[-1].reason == "its workflow ended"
    assert [one.execution_id for one in await engine.tasks()] == ([] if how != "continued" else [await find_run(engine)])
    assert await engine.store.check() == []


async def find_run(engine: TestEngine) -> str:
    return (await engine.query_status("w")).execution_id


async def test_H2_a_task_ends_with_an_execution_that_is_terminated_without_its_code(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    handle = await engine.start(closing, "completed")
    task_id = await find_task(engine, handle)

    await engine.restart(workflows=[])
    await engine.terminate(handle.workflow_id)
    await engine.settle()

    assert (await engine.task(task_id)).state == "cancelled"


async def test_H2_dates_are_timers_and_escalating_adds_candidates(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    handle = await engine.start(escalating)
    task_id = await find_task(engine, handle)
    kinds = []
    with pytest.raises(NotTaskCandidate):
        await engine.claim_task(task_id, by="boss", groups=["managers"])

    for _ in range(3):
        await engine.clock.advance(hours=1)
        await engine.settle()
        kinds.append((await list_kinds(engine, task_id))[-1])
        await engine.restart()

    assert kinds == ["follow_up", "overdue", "escalated"]
    claimed = await engine.claim_task(task_id, by="boss", groups=["managers"])
    assert (claimed.candidate_groups, claimed.effective_roles) == (("clerks", "managers"), ("clerks",))
    await engine.complete_task(task_id, {"approved": True}, by="boss")
    assert await engine.wait_for_result(handle.workflow_id) is True


async def test_H2_a_task_that_lost_a_race_goes_on_until_it_is_cancelled(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    going = await engine.start(racing, cancels=False)
    cancelling = await engine.start(racing, cancels=True)
    first, second = await find_task(engine, going), await find_task(engine, cancelling)

    await going.signal("abort", "x")
    await cancelling.signal("abort", "x")
    await engine.settle()

    assert [(await engine.task(one)).state for one in (first, second)] == ["open", "cancelled"]
    await engine.claim_task(first, by="ann")
    await engine.complete_task(first, {"approved": True}, by="ann")
    assert await going.result() == "late: True"


async def test_H2_completing_and_timing_out_at_once_agree_with_what_the_person_is_told(nodes: Nodes) -> None:
    first, second = await nodes.open("a", WORKFLOWS), await nodes.open("b", WORKFLOWS)
    for _ in range(5):
        handle = await first.start(approving, 1, [], [], None)
        task_id = await find_task(first, handle)
        await first.claim_task(task_id, by="ann")

        done, _ = await asyncio.gather(
            second.complete_task(task_id, {"approved": True}, by="ann"),
            first.terminate(handle.workflow_id),
            return_exceptions=True,
        )

        await first.settle()
        task = await second.task(task_id)
        assert task.state == ("cancelled" if isinstance(done, BaseException) else "completed"), done
        assert isinstance(done, TaskEnded) or task.result == {"approved": True}


async def test_H2_open_tasks_survive_a_restart_and_replay(world: World) -> None:
    engine, handle, task_id = await begin(world, ["managers"])
    await engine.claim_task(task_id, by="ann", groups=["managers"])
    await engine.restart()

    await engine.complete_task(task_id, {"approved": True, "note": "after"}, by="ann")

    assert await engine.wait_for_result(handle.workflow_id) == "Approval True after"


async def test_H2_tasks_go_with_their_execution(world: World) -> None:
    engine, handle, task_id = await begin(world)
    await engine.claim_task(task_id, by="ann")
    await engine.complete_task(task_id, {"approved": True}, by="ann")
    await handle.result()
    await engine.settle()

    await engine.store.purge(engine.clock.now() + 1, 10)

    with pytest.raises(TaskNotFound):
        await engine.task(task_id)
    assert await engine.store.tasks.list_events("default", task_id) == []


async def test_a_task_of_a_cancelled_workflow_is_not_completed(world: World) -> None:
    engine, handle, task_id = await begin(world)
    await engine.claim_task(task_id, by="ann")
    await handle.cancel()

    with pytest.raises(WorkflowCancelled):
        await handle.result()
    with pytest.raises(TaskEnded):
        await engine.complete_task(task_id, {"approved": True}, by="ann")
