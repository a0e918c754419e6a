"""`holdfast tasks` and `holdfast task`: lists, and every step that people take."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast import Client, Context, Engine, workflow
from holdfast.cli import main
from holdfast.store.sqlite.ownership import read_owner
from tests.eventually import eventually

Run = Callable[..., Result]


@workflow
async def asking(ctx: Context, number: int) -> dict[str, int]:
    return await ctx.human_task("approve", dict[str, int], candidates=["managers"], due=timedelta(days=number))


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A database that an engine owns, with two executions that wait for people."""
    path, is_over, is_open = tmp_path / "app.db", threading.Event(), threading.Event()

    async def own() -> None:
        async with Engine(f"sqlite:///{path}", workflows=[asking]) as engine:
            for number in (1, 2):
                await engine.start(asking, number, workflow_id=f"w{number}")
            while len(await engine.tasks()) < 2:
                await asyncio.sleep(0.01)
            is_open.set()
            while not is_over.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(own()))
    thread.start()
    assert is_open.wait(60)
    yield path
    is_over.set()
    thread.join()


@pytest.fixture
def run(path: Path) -> Run:
    def invoke(verb: str, *rest: str) -> Result:
        words = ["tasks", str(path), *rest] if verb == "tasks" else ["task", str(path), verb, *rest]
        return CliRunner().invoke(main, words)

    return invoke


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_tasks_are_listed_by_page_and_condition(run: Run) -> None:
    page = read(run("tasks", "--group", "managers", "--limit", "1", "--json"))
    rest = read(run("tasks", "--group", "managers", "--cursor", page["cursor"], "--json"))

    assert sorted(one["workflow_id"] for one in [*page["tasks"], *rest["tasks"]]) == ["w1", "w2"]
    assert read(run("tasks", "--assignee", "nobody", "--json"))["tasks"] == []
    assert run("tasks", "--assignee", "nobody").output == "There are none.\n"
    assert "approve" in run("tasks", "--order", "due").output
    assert run("tasks", "--state", "unknown").exit_code == 2


def test_every_step_is_taken_and_told(run: Run) -> None:
    first, second = (one["task_id"] for one in read(run("tasks", "--json"))["tasks"])

    assigned = read(run("assign", first, "ann", "--by", "boss", "--json"))
    claimed = run("claim", first, "--by", "ann", "--request-id", "c")
    again = run("claim", first, "--by", "ann", "--request-id", "c")
    refused = run("claim", first, "--by", "bob", "--group", "managers")
    run("comment", first, "hard", "--by", "ann")
    released = read(run("release", first, "--by", "ann", "--json"))
    moved = read(run("due", first, "--at", "2030-01-01", "--by", "boss", "--json"))
    run("claim", first, "--by", "ann")
    wrong = run("complete", first, '{"amount": "x"}', "--by", "ann")
    done = read(run("complete", first, '{"amount": 7}', "--by", "ann", "--request-id", "r", "--json"))
    once = read(run("complete", first, '{"amount": 7}', "--by", "ann", "--request-id", "r", "--json"))
    ended = run("cancel", second, "--reason", "not needed", "--by", "boss")

    assert (assigned["assignee"], released["state"], moved["due"][:10]) == ("ann", "open", "2030-01-01")
    assert claimed.output == again.output == f"Task {first} ('approve') was claimed by 'ann'.\n"
    assert (refused.exit_code, wrong.exit_code) == (1, 1)
    assert "'ann' has claimed it" in refused.output
    assert (done["state"], done["result"], once) == ("completed", {"amount": 7}, done)
    assert ended.exit_code == 0
    shown = read(run("show", first, "--json"))
    kinds = ["created", "assigned", "claimed", "commented", "released", "rescheduled", "claimed"]
    assert [one["kind"] for one in shown["events"]] == [*kinds, "completed"]
    assert "not needed" in run("show", second).output


def test_each_step_is_told_in_one_sentence(run: Run) -> None:
    first, second = (one["task_id"] for one in read(run("tasks", "--json"))["tasks"])
    steps = [
        (("assign", first, "ann"), "was assigned to 'ann'"),
        (("assign", first), "was assigned to nobody"),
        (("claim", first, "--group", "managers"), "was claimed by 'ann'"),
        (("comment", first, "hard"), "has a new comment, by 'ann'"),
        (("release", first), "was released by 'ann'"),
        (("due", first, "--at", "2030-01-01"), "is due at 2030-01-01 00:00:00Z"),
        (("due", first, "--never"), "is due at no time"),
        (("cancel", second), "was cancelled by 'ann'"),
    ]

    told = [run(*words, "--by", "ann").output for words, _ in steps]

    assert told == [f"Task {words[1]} ('approve') {said}.\n" for words, said in steps]


def test_H2_a_length_of_time_in_a_due_date_counts_from_now_on(run: Run) -> None:
    [first, second] = read(run("tasks", "--json"))["tasks"]
    before = datetime.now(UTC)
    moved = read(run("due", second["task_id"], "--at", "2h", "--by", "boss", "--json"))
    after = datetime.now(UTC)

    assert before + timedelta(hours=2) <= datetime.fromisoformat(moved["due"]) <= after + timedelta(hours=2)
    assert [one["task_id"] for one in read(run("tasks", "--due-before", "3h", "--json"))["tasks"]] == [second["task_id"]]
    both = read(run("tasks", "--due-before", "2d", "--json"))["tasks"]
    assert [one["task_id"] for one in both] == [second["task_id"], first["task_id"]]
    assert "a length from now on, such as 2h" in run("due", first["task_id"], "--at", "soon", "--by", "boss").output


def test_a_task_is_shown_whole(run: Run) -> None:
    [first, _] = read(run("tasks", "--json"))["tasks"]
    for whom in ("ann", "zoe"):
        run("assign", first["task_id"], whom, "--by", "boss")
    words = "word " * 80
    run("comment", first["task_id"], words.strip(), "--by", "ann")

    shown = run("show", first["task_id"]).output
    lines = shown.splitlines()

    assert ["workflow id", "w1"] in [line.split("  ")[0:1] + line.split()[-1:] for line in lines]
    assert all(name.replace("_", " ") in shown for name in ("execution_id", "candidate_groups", "effective_roles"))
    schema = shown[shown.index("form schema:\n") + len("form schema:\n") : shown.index("\nwhat happened to it:")]
    assert json.loads(schema) == first["form_schema"]
    [reassigned] = [line for line in lines if " reassigned " in line]
    assert reassigned.endswith("assignee: ann -> zoe")
    assert shown.count("word") == 80


def test_a_step_waits_for_the_application_and_does_not_keep_it_out(tmp_path: Path) -> None:
    path = tmp_path / "app.db"

    def complete(*options: str) -> Result:
        return CliRunner().invoke(main, ["task", str(path), "complete", task_id, '{"amount": 7}', "--by", "ann", *options])

    async def leave_task() -> str:
        async with Engine(f"sqlite:///{path}", workflows=[asking]) as engine:
            await engine.start(asking, 1, workflow_id="w1")
            while not (found := await engine.tasks()):
                await asyncio.sleep(0.01)
            await engine.claim_task(found[0].task_id, by="ann", groups=["managers"])
            return found[0].task_id

    async def answer() -> tuple[Result, Any]:
        completes = asyncio.create_task(asyncio.to_thread(complete, "--timeout", "60", "--request-id", "r"))
        await eventually(lambda: has_left(path))
        async with Engine(f"sqlite:///{path}", workflows=[asking]) as engine:
            return await completes, await engine.handle("w1").result()

    task_id = asyncio.run(leave_task())
    late = complete("--timeout", "0.1", "--request-id", "r")
    done, result = asyncio.run(answer())

    assert late.exit_code == 1
    assert "call again with request_id='r'" in late.output
    assert done.output == f"Task {task_id} ('approve') was completed by 'ann'.\n"
    assert result == {"amount": 7}


async def has_left(path: Path) -> bool:
    """Whether both calls have put the step into the inbox, and nobody owns the file."""
    async with Client(f"sqlite:///{path}") as client:
        return len((await client.query_status("w1")).inbox) == 2 and read_owner(path) is None


def test_bad_usage_is_told(run: Run) -> None:
    assert run("claim", "x").exit_code == 2
    assert run("due", "x", "--by", "ann").exit_code == 2
    assert run("claim", "x", "--by", "ann").exit_code == 1
    assert run("complete", "x", "{", "--by", "ann").exit_code == 2
