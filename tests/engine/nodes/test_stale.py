"""Open executions and human tasks that nobody touched for a long time are told of, and ended if that is asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, HumanTaskCancelled, Retry, activity, workflow
from holdfast.core import events
from holdfast.core.failures import Failure
from holdfast.engine.rows import from_row, to_row
from holdfast.errors import InvalidArguments, InvalidConfiguration, InvalidIdentifier, WorkflowTerminated
from holdfast.testing import TestEngine
from tests.engine import hooks
from tests.engine.conftest import OpenEngine

DAY = timedelta(days=1)
MONTH = timedelta(days=30)


@workflow
async def waiting(ctx: Context) -> str:
    return await ctx.wait_for_signal("go", str)


@workflow
async def counting(ctx: Context) -> None:
    for _ in range(100):
        await ctx.wait_for_signal("go")


@workflow
async def sleeping(ctx: Context) -> None:
    await ctx.sleep(timedelta(days=365))


@workflow
async def parent(ctx: Context) -> Any:
    return await ctx.run_child(waiting, workflow_id="child")


@activity(retry=Retry(max_attempts=3, initial=timedelta(days=200), factor=1.0))
async def fails() -> None:
    raise ValueError("no")


@workflow
async def retrying(ctx: Context) -> None:
    await ctx.run(fails)


@workflow
async def approving(ctx: Context) -> str:
    try:
        await ctx.human_task("approve", candidates=["managers"])
    except HumanTaskCancelled:
        return "cancelled"
    return "approved"


@workflow
async def approving_by(ctx: Context) -> None:
    await ctx.human_task("approve", due=timedelta(days=100))


WORKFLOWS = [waiting, counting, sleeping, parent, retrying, approving, approving_by]


async def find_stale(engine: TestEngine, older_than: timedelta = MONTH, **options: Any) -> list[str]:
    found = await engine.stale(older_than, **options)
    assert found.cursor is None
    kinds = [one.kind for one in found]
    assert kinds == sorted(kinds, reverse=True)  # tasks come first
    return sorted(f"{one.kind} {one.workflow_id}" for one in found)


async def get_statuses(engine: TestEngine) -> dict[str, str]:
    return {one.workflow_id: str(one.status) for one in await engine.list(limit=1_000)}


async def find_reason(engine: TestEngine, target: str) -> str:
    last = (await engine.history(target)).events[-1].event
    assert isinstance(last, events.WorkflowTerminated)
    return last.reason


# --- what is stale ---


async def test_what_nobody_touched_is_listed_and_nothing_else(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, fails)
    await engine.start(waiting, workflow_id="old")
    await engine.start(counting, workflow_id="signalled")
    await engine.start(sleeping, workflow_id="sleeping")
    await engine.start(parent, workflow_id="parent")
    await engine.start(retrying, workflow_id="retrying")
    await engine.start(waiting, workflow_id="limited", execution_timeout=timedelta(days=300))
    await engine.start(waiting, workflow_id="delayed", delay=timedelta(days=300))
    await engine.settle()
    await engine.clock.advance(days=20)
    await engine.signal_workflow("signalled", "go")
    await engine.start(waiting, workflow_id="young")
    await engine.clock.advance(days=20)

    assert await find_stale(engine) == ["execution child", "execution old"]
    assert await find_stale(engine, timedelta(days=19)) == [
        f"execution {name}" for name in ("child", "old", "signalled", "young")
    ]
    (first,) = [one for one in await engine.stale(MONTH) if one.workflow_id == "old"]
    assert (first.kind, first.workflow, first.state, first.task_id) == ("execution", "waiting", "suspended", None)
    assert first.touched_at == (await engine.query_status("old")).updated_at


async def test_paused_work_is_not_stale_and_neither_is_what_was_resumed_lately(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, queues=["default", "q"])
    for name in ("own", "never"):
        await engine.start(counting, workflow_id=name)
    await engine.start(waiting, workflow_id="of-workflow")
    await engine.start(approving, workflow_id="of-queue", queue="q")
    await engine.pause("own")
    await engine.pause_workflow("waiting")
    await engine.pause_queue("q")

    await engine.clock.advance(days=100)
    assert await find_stale(engine) == ["execution never"]
    await engine.resume("own")
    await engine.resume_workflow("waiting")
    await engine.resume_queue("q")
    assert await find_stale(engine) == ["execution never"]
    await engine.clock.advance(days=29)
    assert await find_stale(engine) == ["execution never"]
    await engine.clock.advance(days=2)

    expected = [*(f"execution {name}" for name in ("never", "of-workflow", "own")), "task of-queue"]
    assert await find_stale(engine) == expected
    await engine.pause_workflow("waiting")  # once more
    assert await find_stale(engine) == [one for one in expected if one != "execution of-workflow"]
    assert [one.name for one in await engine.pauses()] == ["waiting"]


async def test_task_that_somebody_touched_or_that_is_due_later_is_not_stale(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS)
    await engine.start(approving, workflow_id="touched")
    await engine.start(approving, workflow_id="left")
    await engine.start(approving_by, workflow_id="due")
    await engine.settle()
    await engine.clock.advance(days=40)
    (touched,) = [one for one in await engine.tasks() if one.workflow_id == "touched"]
    await engine.comment_task(touched.task_id, "on it", by="ann")

    assert await find_stale(engine) == ["task left"]
    await engine.clock.advance(days=70)  # the due date was at day 100
    assert await find_stale(engine) == ["task left", "task touched"]
    await engine.clock.advance(days=30)
    assert await find_stale(engine) == ["task due", "task left", "task touched"]


async def test_stale_work_is_listed_by_org_in_pages(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS)
    for number in range(5):
        await engine.start(approving, workflow_id=f"a{number}")
        await engine.start(waiting, workflow_id=f"a{number + 5}")
        await engine.start(waiting, workflow_id=f"b{number}", org="other")
    await engine.settle()
    await engine.clock.advance(days=40)

    found, cursor = [], None
    while True:
        page = await engine.stale(MONTH, limit=3, cursor=cursor)
        assert len(page) <= 3
        found += [f"{one.kind} {one.workflow_id}" for one in page]
        if (cursor := page.cursor) is None:
            break

    assert sorted(found) == [
        *(f"execution a{number}" for number in range(5, 10)),
        *(f"task a{number}" for number in range(5)),
    ]
    assert found[4].startswith("task")
    assert await find_stale(engine, org="other") == [f"execution b{number}" for number in range(5)]
    assert await find_stale(engine, org="nobody") == []


# --- ending it by hand ---


async def test_end_stale_cancels_tasks_and_terminates_executions(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS)
    await engine.start(waiting, workflow_id="old")
    await engine.start(waiting, workflow_id="old", org="other")
    await engine.start(approving, workflow_id="task")
    await engine.start(sleeping, workflow_id="sleeping")
    await engine.settle()
    await engine.clock.advance(days=40)

    ended = await engine.end_stale(MONTH, reason="spring cleaning", by="ann")

    assert [(one.kind, one.workflow_id) for one in ended] == [("task", "task"), ("execution", "old")]
    with pytest.raises(WorkflowTerminated, match="spring cleaning"):
        await engine.handle("old").result()
    assert await find_reason(engine, "old") == "spring cleaning"
    assert await engine.handle("task").result() == "cancelled"
    (_, cancelled) = await engine.task_events(ended[0].task_id or "")
    assert (cancelled.kind, cancelled.by, cancelled.reason) == ("cancelled", "ann", "spring cleaning")
    assert await find_stale(engine, org="other") == ["execution old"]
    assert await engine.end_stale(MONTH) == []
    assert await engine.store.check() == []


Touch = Callable[[TestEngine], Awaitable[Any]]


async def _claim(engine: TestEngine) -> None:
    (task,) = await engine.tasks()
    await engine.claim_task(task.task_id, by="ann", groups=["managers"])


@pytest.mark.parametrize(
    ("touch", "workflow_of"),
    [
        pytest.param(lambda engine: engine.signal_workflow("one", "go"), counting, id="signal"),
        pytest.param(lambda engine: engine.pause("one"), counting, id="pause"),
        pytest.param(lambda engine: engine.pause_workflow("counting"), counting, id="pause_workflow"),
        pytest.param(lambda engine: engine.pause_queue("default"), counting, id="pause_queue"),
        pytest.param(_claim, approving, id="claim"),
    ],
)
@pytest.mark.parametrize("is_resumed", [False, True])
async def test_what_is_touched_after_the_look_is_not_ended(
    open_engine: OpenEngine, touch: Touch, workflow_of: Any, is_resumed: bool
) -> None:
    engine = await open_engine(*WORKFLOWS)
    await engine.start(workflow_of, workflow_id="one")
    await engine.settle()
    await engine.clock.advance(days=40)
    looked = _let_others_act(engine, lambda: _touch(engine, touch, is_resumed))

    ended = await engine.end_stale(MONTH)

    assert looked
    assert ended == []
    assert (await engine.query_status("one")).closed_at is None
    if workflow_of is approving:
        assert [one.claimer for one in await engine.tasks()] == ["ann"]
    assert await engine.store.check() == []


async def _touch(engine: TestEngine, touch: Touch, is_resumed: bool) -> None:
    await touch(engine)
    if is_resumed:
        await engine.resume("one")
        await engine.resume_workflow("counting")
        await engine.resume_queue("default")


def _let_others_act(engine: TestEngine, act: Callable[[], Awaitable[None]]) -> list[str]:
    """Act once, right after something stale was found and before it is ended."""
    looked: list[str] = []
    store = engine.store
    finders = {"find_stale_tasks": store.find_stale_tasks, "find_stale_executions": store.find_stale_executions}
    for name, finder in finders.items():

        async def look(query: Any, find: Any = finder) -> Any:
            page = await find(query)
            if page.found and not looked:
                looked.append(page.found[0].workflow_id)
                await act()
            return page

        setattr(store, name, look)
    return looked


# --- retention ---


async def test_retention_ends_what_is_stale_and_says_so_once(
    open_engine: OpenEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "holdfast")
    engine = await open_engine(*WORKFLOWS, stale_after=MONTH)
    await engine.clock.advance(minutes=7)  # between two passes
    await engine.start(waiting, workflow_id="old")
    await engine.start(approving, workflow_id="task")
    await engine.start(parent, workflow_id="parent")
    await engine.start(sleeping, workflow_id="sleeping")
    await engine.start(counting, workflow_id="touched", org="other")
    await engine.settle()

    await engine.clock.advance(days=29)
    await engine.signal_workflow("touched", "go", org="other")
    assert set((await get_statuses(engine)).values()) == {"suspended"}
    await engine.clock.advance(days=2)

    statuses = await get_statuses(engine)
    assert statuses == {
        "old": "terminated",
        "task": "completed",
        "parent": "failed",
        "child": "terminated",
        "sleeping": "suspended",
    }
    assert (await engine.query_status("touched", org="other")).status == "suspended"
    (line,) = [one for one in caplog.records if getattr(one, "event", "") == "stale_ended"]
    assert "ended 2 executions and 1 human task" in line.getMessage()
    assert await find_reason(engine, "old") == "nobody has touched it for 30 days"
    await engine.clock.advance(days=31)
    assert (await engine.query_status("touched", org="other")).status == "terminated"


async def test_retention_only_reports_if_told_so(open_engine: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "holdfast")
    engine = await open_engine(*WORKFLOWS, stale_after=MONTH, stale_action="report")
    for number in range(7):
        await engine.start(waiting, workflow_id=f"old-{number}")

    await engine.clock.advance(days=33)
    lines = [one.getMessage() for one in caplog.records if getattr(one, "event", "") == "stale_found"]
    assert len(lines) == 1
    assert "found 7 executions that" in lines[0]
    assert lines[0].count("old-") == 5  # not all of many are named
    assert set((await get_statuses(engine)).values()) == {"suspended"}
    await engine.start(waiting, workflow_id="new")
    await engine.clock.advance(days=33)

    (_, later) = [one.getMessage() for one in caplog.records if getattr(one, "event", "") == "stale_found"]
    assert "found 1 execution that" in later


async def test_nothing_is_ended_unless_asked_for(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, retention=DAY)
    await engine.start(waiting, workflow_id="old")

    await engine.clock.advance(days=3_650)

    assert (await engine.query_status("old")).status == "suspended"


async def test_retention_goes_on_after_a_restart_in_the_middle(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS)
    for number in range(250):
        await engine.start(waiting, workflow_id=f"w{number}")
    await engine.clock.advance(days=40)
    await engine.end_stale(MONTH, limit=100)
    await engine.crash()

    await engine.restart()
    page = await engine.end_stale(MONTH, limit=10_000)

    assert len(page) == 150
    assert set((await get_statuses(engine)).values()) == {"terminated"}


async def test_long_pass_is_made_in_small_pages(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS, stale_after=MONTH)
    await asyncio.gather(*(engine.start(waiting, workflow_id=f"w{number}") for number in range(450)))
    sizes: list[int] = []
    find = engine.store.find_stale_executions

    async def look(query: Any) -> Any:
        page = await find(query)
        sizes.append(len(page.found))
        return page

    engine.store.find_stale_executions = look  # type: ignore[method-assign]
    await engine.clock.advance(days=31)

    assert [size for size in sizes if size] == [200, 200, 50]
    assert set((await get_statuses(engine)).values()) == {"terminated"}


# --- what is refused ---


@pytest.mark.parametrize("value", [0, -1, timedelta(0), -DAY, "30d", True, float("nan"), float("inf"), b"", []])
async def test_lengths_that_are_none_are_refused(open_engine: OpenEngine, value: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="stale_after"):
        TestEngine(workflows=[waiting], stale_after=value)
    with pytest.raises(InvalidConfiguration, match="stale_action"):
        TestEngine(workflows=[waiting], stale_after=MONTH, stale_action=value)
    engine = await open_engine(waiting)
    await engine.start(waiting, workflow_id="old")
    await engine.clock.advance(days=40)

    for verb in (engine.stale, engine.end_stale):
        with pytest.raises(InvalidArguments, match="older_than"):
            await verb(value)
        with pytest.raises(InvalidArguments, match="older_than"):
            await verb(None)  # type: ignore[arg-type]
        with pytest.raises(InvalidArguments, match="limit"):
            await verb(MONTH, limit=0)
        with pytest.raises(InvalidArguments, match="cursor"):
            await verb(MONTH, cursor="x")
        with pytest.raises(InvalidIdentifier):
            await verb(MONTH, org="")
    with pytest.raises(InvalidArguments, match="reason"):
        await engine.end_stale(MONTH, reason="x" * 5_000)
    assert (await engine.query_status("old")).status == "suspended"


async def test_blocked_work_is_not_stale_and_counts_as_touched_when_it_is_retried(open_engine: OpenEngine) -> None:
    engine = await open_engine(*WORKFLOWS)
    await engine.start(waiting, workflow_id="old")
    await engine.settle()
    row = await hooks.find_row(engine, "old")
    execution = from_row(row)
    execution.block(Failure(type="Bug", message="no"), "", engine.clock.now())
    execution.state_version += 1
    assert await engine.store.set_status(row.org, row.execution_id, row.state_version, to_row(execution))

    await engine.clock.advance(days=40)
    assert (await engine.query_status("old")).status == "blocked"
    assert await find_stale(engine) == []
    assert await engine.end_stale(MONTH) == []
    assert await engine.retry_blocked("old")
    assert await find_stale(engine) == []
    await engine.clock.advance(days=31)
    assert await find_stale(engine) == ["execution old"]
