"""D2: a damaged row of what is kept, of a task or of a wait harms nothing else; lists show it, and the check finds it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Context, CorruptStore, Message, Workflow, event, workflow
from holdfast.testing import TestEngine
from tests.rules.damage import damage
from tests.rules.world import World


@event
@dataclass
class Paid:
    order: int
    note: str = ""


@dataclass
class Approval:
    approved: bool


@workflow
async def by_field(ctx: Context) -> str:
    return (await ctx.wait_for_event(Paid, where={"order": 5})).note


@workflow
async def by_name(ctx: Context) -> str:
    return (await ctx.wait_for_event(Paid)).note


@workflow
async def payee(ctx: Context) -> Any:
    return await ctx.wait_for_message("paid", "k")


@workflow(starts_on=Message("begin"))
async def begun(ctx: Context, value: Any) -> Any:
    return [value, await ctx.wait_for_signal("end")]


@workflow
async def approving(ctx: Context, group: str) -> bool:
    return (await ctx.human_task("approve", Approval, candidates=[group])).approved


@workflow
async def updated(ctx: Context) -> None:
    ctx.on_update("add", lambda value: value)
    await ctx.wait_for_signal("end")


WORKFLOWS: list[Workflow[..., Any]] = [by_field, by_name, payee, begun, approving, updated]


async def check(engine: TestEngine) -> list[str]:
    return await engine.store.check()


@pytest.mark.parametrize("waiting", [by_field, by_name])
@pytest.mark.parametrize("count", [1, 20])
@pytest.mark.parametrize("column", ["body", "fields"])
async def test_D2_a_damaged_kept_event_hides_none_behind_it(stored: World, waiting: Any, count: int, column: str) -> None:
    engine = await stored.open(WORKFLOWS, events=[Paid])
    for _ in range(count):
        await engine.send_event(Paid(5, "damaged"))
    bad = [one.id for one in await engine.pending_events(Paid)]
    await engine.send_event(Paid(5, "good"))
    quoted = ", ".join(f"'{one}'" for one in bad)
    damage(stored, engine, f"pending WHERE item IN ({quoted})", column)

    handle = await engine.start(waiting)

    assert await handle.result() == "good"
    listed = await engine.pending_events(Paid)
    assert [one.id for one in listed if one.damage] == bad
    assert [one.value for one in listed] == [None if column == "body" else Paid(5, "damaged")] * count
    assert len(await check(engine)) == count
    for one in bad:
        assert await engine.remove_pending_event(Paid, one)
    assert await check(engine) == []


async def test_D2_a_damaged_kept_message_keeps_nobody_from_waiting(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.send_message("paid", "k", "damaged", ttl=3600)
    damage(world, engine, "pending", "body")
    handle = await engine.start(payee)
    await engine.send_message("paid", "k", "good", ttl=3600)

    assert await handle.result() == "good"
    assert len(await check(engine)) == 1
    await engine.shutdown()


@pytest.mark.parametrize("count", [1, 20])
async def test_D2_a_damaged_start_lets_executions_close_and_the_next_one_start(stored: World, count: int) -> None:
    engine = await stored.open(WORKFLOWS)
    await engine.send_message("begin", "k", "first")
    first = engine.handle("k")
    await first.status()
    for _ in range(count):
        assert (await engine.send_message("begin", "k", "damaged", ttl=3600)).kept
    damage(stored, engine, "pending", "start")
    assert (await engine.send_message("begin", "k", "good", ttl=3600)).kept
    opened = await first.status()

    await engine.signal_workflow("k", "end", 1)
    assert await engine.handle(opened.execution_id).result() == ["first", 1]
    await engine.settle()
    await engine.signal_workflow("k", "end", 2)

    assert await engine.handle("k").result() == ["good", 2]
    assert len(await check(engine)) == count
    await engine.shutdown()


async def test_D2_a_damaged_task_is_listed_as_such_and_its_execution_can_be_ended(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(approving, "managers", workflow_id="bad")
    await engine.settle()
    damage(world, engine, "tasks", "body")
    damage(world, engine, "task_events", "body")
    good = await engine.start(approving, "managers", workflow_id="good")
    await engine.settle()

    listed = {one.workflow_id: one for one in await engine.tasks(candidate_group="managers")}

    assert [listed[one].damage is None for one in ("bad", "good")] == [False, True]
    task_id = listed["bad"].task_id
    assert [one.damage is None for one in await engine.task_events(task_id)] == [False]
    assert len(await check(engine)) == 2
    claimed = await engine.claim_task(task_id, by="ann", groups=["managers"])
    assert claimed.claimer == "ann"
    with pytest.raises(CorruptStore):
        await engine.complete_task(task_id, {"approved": True}, by="ann")
    await engine.terminate("bad")
    assert (await engine.task(task_id)).state == "cancelled"
    other = listed["good"].task_id
    await engine.claim_task(other, by="ann", groups=["managers"])
    await engine.complete_task(other, {"approved": True}, by="ann")
    assert await good.result()
    await engine.shutdown()


@pytest.mark.parametrize("column", ["users", "groups", "roles"])
async def test_D2_nobody_claims_a_task_whose_candidates_are_damaged(stored: World, column: str) -> None:
    engine = await stored.open(WORKFLOWS)
    await engine.start(approving, "managers", workflow_id="bad")
    await engine.settle()
    damage(stored, engine, "tasks", column)
    damage(stored, engine, "task_events", "groups")
    await engine.start(approving, "managers", workflow_id="good")
    await engine.settle()

    listed = {one.workflow_id: one for one in await engine.tasks()}

    assert [listed[one].damage is None for one in ("bad", "good")] == [False, True]
    task_id = listed["bad"].task_id
    assert [one.damage is None for one in await engine.task_events(task_id)] == [False]
    with pytest.raises(CorruptStore, match="terminate still works"):
        await engine.claim_task(task_id, by="ann")
    await engine.terminate("bad")
    assert (await engine.task(task_id)).state == "cancelled"
    assert any(task_id in problem for problem in await check(engine))
    await engine.terminate("good")
    await engine.shutdown()


async def test_D2_a_damaged_wait_keeps_no_event_from_others(stored: World) -> None:
    engine = await stored.open(WORKFLOWS, events=[Paid])
    await engine.start(by_field, workflow_id="bad")
    await engine.settle()
    damage(stored, engine, "subscriptions", "conditions")
    damage(stored, engine, "subscriptions", "fields")
    good = await engine.start(by_field)
    await engine.settle()

    assert (await engine.send_event_to("bad", Paid(5, "to the damaged"))).delivered == 0
    assert (await engine.send_event(Paid(5, "for all"))).delivered == 1

    assert await good.result() == "for all"
    assert len(await check(engine)) == 1
    await engine.terminate("bad")
    assert await check(engine) == []


async def test_D2_a_damaged_answer_is_told_as_such(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    await engine.start(updated, workflow_id="u")
    assert await engine.update("u", "add", 3, request_id="r") == 3
    damage(world, engine, "requests", "answer", '{"type":"replied","execution_id":7}')

    with pytest.raises(CorruptStore, match="Expected to decode a reply"):
        await asyncio.wait_for(engine.update("u", "add", 3, request_id="r"), 30)

    assert len(await check(engine)) == 1
    assert await engine.update("u", "add", 4) == 4
    await engine.shutdown()


DAMAGES = {
    "a task's state": ("tasks", "state", "asleep", 0),
    "a task's end": ("tasks", "state", "completed", 1),
    "a task's keys": ("task_keys WHERE kind = 'group'", "value", "others", 1),
    "a task's body": ("tasks", "body", "[]", 1),
    "what a task tells": ("task_events", "body", "?", 1),
    "who did it": ("task_events", "groups", "{}", 1),
    "what a wait selects by": ("subscriptions WHERE kind = 'event'", "conditions", "[1]", 1),
    "what finds a wait": ("subscriptions WHERE kind = 'event'", "lookup", "elsewhere", 1),
    "what a message starts": ("pending WHERE kind = 'message'", "start", "[]", 1),
    "the fields of an event": ("pending WHERE kind = 'event'", "fields", "[]", 1),
    "an event": ("pending WHERE kind = 'event'", "body", "{}", 1),
    "an answer": ("requests", "answer", "{garbage", 1),
    "a schedule": ("schedules", "details", "{garbage", 1),
    "a schedule's state": ("schedules", "state", "asleep", 0),
}
"""The rows, their column, what it holds, and how many problems the check finds; 0: a newer Holdfast may have written it."""


@pytest.mark.parametrize("what", DAMAGES)
async def test_D2_the_check_reads_the_content_of_every_table(stored: World, what: str) -> None:
    engine = await stored.open(WORKFLOWS, events=[Paid], auto_advance=False)
    await engine.start(approving, "managers")
    await engine.start(by_field)
    await engine.send_event(Paid(6))
    await engine.send_message("begin", "k", "first")
    await engine.send_message("begin", "k", "kept", ttl=3600)
    await engine.start(updated, workflow_id="u")
    await engine.update("u", "add", 3, request_id="r")
    await engine.create_schedule("daily", "R/P1D", begun, 1)
    await engine.settle()
    assert await check(engine) == []

    row, column, found, problems = DAMAGES[what]
    damage(stored, engine, row, column, found)

    assert len(await check(engine)) == problems
    assert len(await engine.store.list_newer()) == (0 if problems else 1)
    await engine.shutdown()
