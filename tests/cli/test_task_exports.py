"""Human tasks go along with `holdfast export` and `holdfast import`, with the keys of the requests about them."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from holdfast import Context, Engine, workflow
from holdfast.cli import main
from holdfast.errors import TaskClaimed


@workflow
async def asking(ctx: Context) -> str:
    return await ctx.human_task("ask", str, due=timedelta(days=1))


@workflow
async def waiting(ctx: Context) -> None:
    await ctx.wait_for_signal("end")


WORKFLOWS = [asking, waiting]


async def fill(url: str) -> str:
    async with Engine(url, workflows=WORKFLOWS) as engine:
        await engine.start(waiting, workflow_id="plain")
        handle = await engine.start(asking, workflow_id="w")
        task_id = (await handle.status()).active_task_id
        assert task_id is not None
        await engine.claim_task(task_id, by="ann", request_id="c")
        await engine.comment_task(task_id, "soon", by="ann")
        return task_id


async def finish(url: str, task_id: str) -> tuple[str, list[str]]:
    async with Engine(url, workflows=WORKFLOWS) as engine:
        again = await engine.claim_task(task_id, by="ann", request_id="c")
        assert again.claimer == "ann"
        with pytest.raises(TaskClaimed):
            await engine.claim_task(task_id, by="ann", request_id="other")
        await engine.set_task_due(task_id, None, by="boss")
        await engine.complete_task(task_id, "yes", by="ann", request_id="r")
        await engine.complete_task(task_id, "yes", by="ann", request_id="r")
        kinds = [one.kind for one in await engine.task_events(task_id)]
        return await engine.wait_for_result("w"), kinds


def test_H1_an_imported_task_is_completed_by_an_engine(tmp_path: Path) -> None:
    task_id = asyncio.run(fill(f"sqlite:///{tmp_path / 'a.db'}"))
    exported = CliRunner().invoke(main, ["export", str(tmp_path / "a.db")])
    (tmp_path / "lines").write_text(exported.stdout)
    imported = CliRunner().invoke(main, ["import", str(tmp_path / "b.db"), str(tmp_path / "lines")])
    assert imported.exit_code == 0, imported.output

    result, kinds = asyncio.run(finish(f"sqlite:///{tmp_path / 'b.db'}", task_id))

    assert result == "yes"
    assert kinds == ["created", "claimed", "commented", "rescheduled", "completed"]


def test_a_line_without_tasks_is_one_that_the_version_before_can_read(tmp_path: Path) -> None:
    asyncio.run(fill(f"sqlite:///{tmp_path / 'a.db'}"))

    plain, asked = map(json.loads, CliRunner().invoke(main, ["export", str(tmp_path / "a.db")]).stdout.splitlines())

    known = {"holdfast", "version", "schema", "row", "details", "history", "timers", "inbox", "activities", "requests"}
    assert set(plain) == known
    assert set(asked) == known | {"tasks"}
