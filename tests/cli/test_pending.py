"""`holdfast show` and `history` on what waits and what failed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from holdfast import Engine
from tests.eventually import eventually

Invoke = Callable[..., Result]

APP = """
import asyncio

from holdfast import ApplicationFailure, Context, Retry, activity, workflow


@activity(retry=Retry(initial=3600, maximum=3600))
async def charge(amount: int) -> None:
    decline(amount)


def decline(amount: int) -> None:
    raise ApplicationFailure("the card is declined", type="Declined", details={"amount": amount})


@activity(retry=Retry(max_attempts=1))
async def refuse() -> None:
    decline(1)


@workflow
async def pay(ctx: Context) -> None:
    await ctx.run(charge, 7)


@workflow
async def order(ctx: Context) -> None:
    await ctx.run_child(approval)


@workflow
async def approval(ctx: Context) -> None:
    await ctx.wait_for_signal("approve", timeout=3600)


@workflow
async def stuck(ctx: Context) -> None:
    await asyncio.Event().wait()


@workflow
async def guarded(ctx: Context) -> None:
    event = asyncio.Event()

    async def wake() -> None:
        await ctx.wait_for_signal("go")
        event.set()

    waking = asyncio.create_task(wake())
    await event.wait()
    await waking


@workflow
async def refused(ctx: Context) -> None:
    await ctx.run(refuse)
"""
NAMES = ("pay", "order", "stuck", "guarded", "refused")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database of executions that wait or failed, beside the module `pending_app` with their code."""
    folder = tmp_path_factory.mktemp("pending")
    (folder / "pending_app.py").write_text(APP)
    sys.path.insert(0, str(folder))
    import pending_app  # type: ignore[import-not-found]

    async def fill() -> None:
        workflows = [getattr(pending_app, name) for name in (*NAMES, "approval")]
        activities = [pending_app.charge, pending_app.refuse]
        async with Engine(f"sqlite:///{folder / 'app.db'}", workflows=workflows, activities=activities) as engine:
            for name in NAMES:
                await engine.start(name, workflow_id=name)

            async def is_settled() -> bool:
                infos = await engine.list()
                return len(infos) == len(NAMES) + 1 and all(one.status != "running" for one in infos)

            await eventually(is_settled)

    asyncio.run(fill())
    yield folder / "app.db"
    sys.path.remove(str(folder))


def test_show_tells_a_retrying_activity_with_the_trace_of_its_last_failure(invoke: Invoke, app: Path) -> None:
    output = invoke("show", app, "pay").output

    assert "waits for its next try" in output
    assert "last failure of activity 1 (charge), 1 so far: Declined: the card is declined" in output
    assert 'details: {"amount":7}' in output
    assert f"{app.parent / 'pending_app.py'}:13 in decline" in output
    assert "last error" in output


def test_show_tells_a_child_and_what_the_child_waits_for(invoke: Invoke, app: Path) -> None:
    output = invoke("show", app, "order").output
    child = next(line for line in output.splitlines() if "approval" in line and "suspended" in line).split()[-1]

    shown = invoke("show", app, child).output

    assert "waiting for" in output
    assert "waits for children:" in output
    assert "waits for signals:" in shown
    assert "approve" in shown
    assert "waits for timers:" in shown
    assert "waiting until" in shown


def test_show_says_that_nothing_can_come_and_where(invoke: Invoke, app: Path) -> None:
    place = f"{app.parent / 'pending_app.py'}:38"

    assert f"what can never come, at {place}" in invoke("show", app, "stuck").output
    assert f"what can never come, at {place}" in invoke("list", app).output


def test_show_with_the_module_tells_the_lines_at_which_the_code_waits(invoke: Invoke, app: Path) -> None:
    without, with_module = (
        invoke("show", app, "guarded").output,
        invoke("show", app, "guarded", "--module", "pending_app").output,
    )

    assert "--module" in without
    assert "Event.wait" not in without
    assert "Event.wait" in with_module
    assert f"{app.parent / 'pending_app.py'}:50" in with_module
    assert f"{app.parent / 'pending_app.py'}:46" in with_module


def test_V4_show_and_history_print_the_trace_below_what_failed(invoke: Invoke, app: Path) -> None:
    for command in ("show", "history"):
        lines = invoke(command, app, "refused").output.splitlines()

        failed = next(number for number, line in enumerate(lines) if " ActivityFailed  " in line)
        assert "failure=Declined: the card is declined" in lines[failed]
        assert f"{app.parent / 'pending_app.py'}:13 in decline" in "\n".join(lines[failed:])
        assert "WorkflowFailed" in "\n".join(lines[failed:])


def test_V4_show_as_json_has_everything_with_the_traces(invoke: Invoke, app: Path) -> None:
    pay, refused = (json.loads(invoke("show", app, name, "--json").stdout) for name in ("pay", "refused"))

    [retrying] = pay["pending"]["activities"]
    assert retrying["state"] == "waits for its next try"
    assert retrying["last_failure"]["trace"].splitlines()[-1].endswith(":13 in decline")
    assert pay["last_error"] == retrying["last_failure"]
    assert (pay["waiting_kind"], pay["waiting_token"]) == ("retry", "1:2")
    assert refused["last_error"]["trace"]
    traces = [event["failure"]["trace"] for event in refused["history"] if "failure" in event]
    assert len(traces) == 2
    assert ":13 in decline" in traces[0]


def test_V4_history_as_json_has_the_traces_unless_told_otherwise(invoke: Invoke, app: Path) -> None:
    whole = json.loads(invoke("history", app, "refused", "--json").stdout)
    bare = json.loads(invoke("history", app, "refused", "--json", "--without-traces").stdout)

    assert all(event["failure"]["trace"] for event in whole if "failure" in event)
    assert all("trace" not in event["failure"] for event in bare if "failure" in event)
    assert [event["type"] for event in whole] == [event["type"] for event in bare]


def test_an_exported_history_with_traces_can_be_replayed(invoke: Invoke, app: Path, tmp_path: Path) -> None:
    path = tmp_path / "refused.json"
    path.write_text(invoke("history", app, "refused", "--json").stdout)

    assert invoke("replay", path, "--module", "pending_app").exit_code == 0
