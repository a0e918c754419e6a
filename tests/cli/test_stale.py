"""`holdfast stale`: what nobody touched is listed, and ended if that is asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast import Context, Engine, workflow
from holdfast.cli import main

Run = Callable[..., Result]


@workflow
async def lingering(ctx: Context) -> None:
    await ctx.wait_for_signal("go")


@workflow
async def approving(ctx: Context) -> None:
    await ctx.human_task("approve")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Calls the command on a database with an execution that waits for a signal, and one that waits for a person."""
    path = tmp_path / "app.db"

    async def fill() -> None:
        async with Engine(f"sqlite:///{path}", workflows=[lingering, approving]) as engine:
            await engine.start(lingering, workflow_id="l")
            await engine.start(lingering, workflow_id="l", org="other")
            await engine.start(approving, workflow_id="a")
            await asyncio.sleep(0.01)

    asyncio.run(fill())
    return lambda *rest: CliRunner().invoke(main, ["stale", str(path), *rest])


def test_stale_work_is_listed(run: Run) -> None:
    assert run().output == "There are none.\n"

    listed = json.loads(run("--older-than", "1ms", "--json").stdout)
    lines = run("--older-than", "1ms").output.splitlines()

    assert [(one["kind"], one["workflow_id"], one["task"]) for one in listed["stale"]] == [
        ("task", "a", "approve"),
        ("execution", "l", None),
    ]
    assert listed["cursor"] is None
    assert len(lines) >= 3
    page = json.loads(run("--older-than", "1ms", "--limit", "1", "--json").stdout)
    rest = json.loads(run("--older-than", "1ms", "--cursor", page["cursor"], "--json").stdout)
    assert page["stale"] + rest["stale"] == listed["stale"]


def test_stale_work_is_ended(run: Run, tmp_path: Path) -> None:
    ended = run("--older-than", "1ms", "--terminate", "--reason", "cleaning", "--json")

    assert [one["workflow_id"] for one in json.loads(ended.stdout)["stale"]] == ["l"]
    shown = CliRunner().invoke(main, ["history", str(tmp_path / "app.db"), "l", "--json"])
    assert "cleaning" in shown.stdout
    assert len(json.loads(run("--older-than", "1ms", "--org", "other", "--json").stdout)["stale"]) == 1


@pytest.mark.parametrize("wrong", [("--older-than", "0s"), ("--older-than", "x"), ("--reason", "x"), ("--cursor", "x")])
def test_what_cannot_be_meant_is_refused(run: Run, wrong: tuple[str, ...]) -> None:
    result = run(*wrong, "--json")

    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert "Expected" in result.stderr
