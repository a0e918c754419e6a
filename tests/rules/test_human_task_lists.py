"""Lists of human tasks, and what `ctx.human_task` refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import BusinessReference, Context, InvalidArguments, WorkflowFailed, workflow
from holdfast.errors import InvalidRequest
from tests.rules.test_human_tasks import WORKFLOWS, approving, begin, escalating, find_task, twice
from tests.rules.world import World


async def test_tasks_are_listed_by_all_that_people_ask_for(world: World) -> None:
    engine = await world.open(WORKFLOWS)
    handles: list[Any] = [
        await engine.start(approving, 1, ["managers"], [], None),
        await engine.start(approving, 2, ["managers", "staff"], ["bob"], None),
        await engine.start(approving, 3, [], [], "ann"),
        await engine.start(escalating),
    ]
    ids = [await find_task(engine, one) for one in handles]  # made at one moment of virtual time: in any order
    await engine.start(twice)
    await engine.settle()
    await engine.claim_task(ids[2], by="ann")

    async def find(**conditions: Any) -> list[str]:
        return [one.task_id for one in await engine.tasks(**conditions)]

    assert await find(candidate_group="managers") == sorted(ids[:2])
    assert await find(candidate_group="managers", candidate_user="bob") == [ids[1]]
    assert await find(assignee="ann") == [ids[2]]
    assert await find(claimer="ann") == [ids[2]]
    assert await find(candidate_user="bob") == [ids[1]]
    assert await find(due_before=datetime.now(UTC) + timedelta(days=40_000)) == [ids[3]]
    assert await find(due_before=datetime(2000, 1, 1, tzinfo=UTC)) == []
    assert await find(state="claimed") == [ids[2]]
    assert await find(workflow=approving) == sorted(ids[:3])
    assert len(await find(queue="archive")) == 1
    assert await find(name="approve") == sorted(ids)
    assert await find(execution_id=handles[1].execution_id) == [ids[1]]
    assert await find(org="other") == []
    await engine.complete_task(ids[2], {"approved": True}, by="ann")
    assert await find(claimer="ann") == []
    assert await find(claimer="ann", state="all") == [ids[2]]
    assert await find(state=["completed", "cancelled"]) == [ids[2]]


@pytest.mark.parametrize("order", ["created", "due"])
async def test_pages_of_tasks_hold_each_once(world: World, order: str) -> None:
    engine = await world.open(WORKFLOWS)
    for _ in range(7):
        await engine.start(escalating)
    await engine.settle()

    seen, cursor = [], None
    while True:
        page = await engine.tasks(candidate_group="clerks", order=order, limit=3, cursor=cursor)
        seen += [one.task_id for one in page]
        cursor = page.cursor
        if cursor is None:
            break

    assert len(seen) == len(set(seen)) == 7


@pytest.mark.parametrize(
    "options",
    [
        {"state": "done"},
        {"limit": 0},
        {"cursor": "x"},
        {"order": "name"},
        {"order": "due", "state": "all"},
        {"colour": "red"},
        {"due_before": datetime(2030, 1, 1)},  # noqa: DTZ001 - that is what is wrong with it
    ],
)
async def test_H1_a_list_with_bad_conditions_is_refused(alone: World, options: dict[str, Any]) -> None:
    engine, _, _ = await begin(alone)

    with pytest.raises(InvalidRequest, match="Expected"):
        await engine.tasks(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": "managers"},
        {"candidates": [""]},
        {"priority": "high"},
        {"due": datetime(2030, 1, 1)},  # noqa: DTZ001 - that is what is wrong with it
        {"due": -1},
        {"escalate_to": ["managers"]},
        {"description": 7},
        {"colour": "red"},
        {"assignee": ""},
    ],
)
async def test_bad_options_of_a_task_fail_the_workflow_and_leave_no_task(alone: World, options: dict[str, Any]) -> None:
    @workflow
    async def careless(ctx: Context) -> None:
        await ctx.human_task("approve", **options)

    engine = await alone.open([careless])
    handle = await engine.start(careless)

    with pytest.raises(WorkflowFailed, match="Expected"):
        await handle.result()
    assert await engine.tasks(state="all") == []


@pytest.mark.parametrize("key", ["k" * 300, "two\nlines", "§ 1"])
async def test_tasks_are_found_by_every_key_that_a_business_reference_may_have(world: World, key: str) -> None:
    engine = await world.open(WORKFLOWS)
    handle = await engine.start(approving, 1, ["managers"], [], None, business_reference=BusinessReference(key))
    await engine.settle()

    assert [one.execution_id for one in await engine.tasks(business_key=key)] == [handle.execution_id]
    with pytest.raises(InvalidArguments, match="the key of a business reference"):
        await engine.tasks(business_key="\0")
