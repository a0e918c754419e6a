"""`holdfast pause`, `resume` and `pauses`: on one execution, a workflow, a queue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast import Engine
from holdfast.cli import main
from tests.cli.conftest import waiting

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Calls a command on a database that has one execution, which waits."""
    path = tmp_path / "app.db"

    async def fill() -> None:
        async with Engine(f"sqlite:///{path}", workflows=[waiting]) as engine:
            await engine.start(waiting, workflow_id="w")

    asyncio.run(fill())
    return lambda verb, *rest: CliRunner().invoke(main, [verb, str(path), *rest])


def test_an_execution_is_paused_shown_and_resumed(run: Run) -> None:
    paused = run("pause", "w", "--reason", "audit", "--by", "ann", "--json")
    shown = json.loads(run("show", "w", "--json").stdout)
    again = run("pause", "w")
    resumed = run("resume", "w")

    assert json.loads(paused.stdout) == {"org": "default", "id": "w", "verb": "pause", "done": True}
    assert "audit" in json.dumps(shown)
    assert again.exit_code == 1
    assert "but it is paused already. Run `holdfast show`" in again.output
    assert resumed.output == "Execution 'w' goes on.\n"
    assert run("resume", "w").exit_code == 1


def test_what_cannot_be_paused_is_told_by_its_status(run: Run) -> None:
    run("terminate", "w")
    run("pause", "--queue", "default")

    assert "but it is terminated." in run("pause", "w").output
    assert "but it is paused already. Run `holdfast pauses`" in run("pause", "--queue", "default").output


def test_workflows_and_queues_are_paused_and_listed(run: Run) -> None:
    assert run("pauses").output == "No workflow and no queue is paused.\n"
    assert (
        run("pause", "--workflow", "waiting", "--reason", "bug", "--by", "ann").output == "Workflow 'waiting' is paused.\n"
    )
    assert run("pause", "--queue", "night").exit_code == 0

    listed = json.loads(run("pauses", "--json").stdout)
    lines = run("pauses").output.splitlines()

    assert [(one["kind"], one["name"], one["by"]) for one in listed] == [
        ("queue", "night", ""),
        ("workflow", "waiting", "ann"),
    ]
    assert lines[1].startswith("workflow 'waiting' since ")
    assert lines[1].endswith("by ann: bug")
    assert run("resume", "--workflow", "waiting").exit_code == 0
    assert run("resume", "--queue", "night", "--json").exit_code == 0
    assert run("resume", "--queue", "night").exit_code == 1


def test_exactly_one_of_them_is_named(run: Run) -> None:
    for wrong in ((), ("w", "--queue", "q"), ("--workflow", "a", "--queue", "b")):
        assert run("pause", *wrong).exit_code == 2
        assert run("resume", *wrong).exit_code == 2
