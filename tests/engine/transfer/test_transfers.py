"""Everything is transferred from one database to another: whole, once, and nobody works on both."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import Context, Engine, Retry, WorkflowFailed, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.engine.transfer.marks import MOVED_FROM, MOVED_TO, MOVING_FROM
from holdfast.engine.transfer.transfers import TransferProgress, transfer
from holdfast.errors import StoreMoved
from holdfast.store.contract import UnroutedWrite
from holdfast.store.pauses import PauseRow
from holdfast.store.transfer import MarkChange, RowKind
from tests.engine.transfer.databases import copy_all, fill_at, interrupt, opened, read_at, read_marks
from tests.eventually import eventually
from tests.store.builders import ORG, commit, make_letter
from tests.store.everything import open_movable

ROOT = Path(__file__).parents[3]


# --- the whole ------------------------------------------------------------------------------------------------------------


async def test_everything_is_moved_and_proved_by_checksums(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    before = await read_at(source)
    steps: list[TransferProgress] = []

    report = await transfer(source, target, on_progress=steps.append, page=3)

    assert await read_at(target) == before
    assert all(tally.rows > 0 and int(tally.checksum, 16) for tally in report.tallies.values())
    assert {(step.verb, step.kind) for step in steps} == {
        (verb, kind) for verb in ("copied", "verified") for kind in RowKind
    }
    assert await read_marks(source) == {MOVED_TO}
    assert await read_marks(target) == {MOVED_FROM}


async def test_an_empty_database_can_be_moved_too(files: tuple[str, str]) -> None:
    source, target = files
    async with opened(source):
        pass

    report = await transfer(source, target)

    assert {tally.rows for tally in report.tallies.values()} == {0}


async def test_transferring_again_what_was_transferred_does_nothing(files: tuple[str, str]) -> None:
    source, target = files
    await fill_at(source)
    await transfer(source, target)
    async with Engine(target):  # also when somebody has begun to work there
        pass

    report = await transfer(source, target)

    assert report.was_done_before
    with pytest.raises(StoreMoved, match=r"was moved to '.*target\.db'"):
        await transfer(source, target.replace("target", "third"))


async def test_what_is_moved_can_be_moved_on(files: tuple[str, str]) -> None:
    source, target = files
    third = target.replace("target", "third")
    await fill_at(source)
    before = await read_at(source)

    await transfer(source, target)
    await transfer(target, third)

    assert await read_at(third) == before
    assert await read_marks(target) == {MOVED_FROM, MOVED_TO}


async def test_a_reason_that_not_every_database_can_hold_does_not_stop_a_transfer(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    async with opened(source) as store:
        await commit(store, loose=UnroutedWrite(dead_letters=[replace(make_letter("x"), reason="a\0b")]))

    await transfer(source, postgres_url)

    async with opened(postgres_url) as store:
        assert [letter.reason for letter in await store.list_dead_letters(ORG)] == ["a\ufffdb"]


async def test_a_pause_that_not_every_database_can_hold_does_not_stop_a_transfer(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    async with opened(source) as store:
        await store.put_pause(PauseRow(ORG, "workflow", "w", 5, "a\0nn", "a\0b"))

    await transfer(source, postgres_url)

    async with opened(postgres_url) as store:
        [pause] = (await store.read_settings()).pauses
        assert (pause.by, pause.reason) == ("a\ufffdnn", "a\ufffdb")


async def test_a_transfer_needs_no_session(tmp_path: Path, postgres_url: str) -> None:
    source, pooled = f"sqlite:///{tmp_path / 'source.db'}", f"{postgres_url}&pooler=transaction"
    await fill_at(source)
    before = await read_at(source)

    await transfer(source, pooled, page=3)
    await transfer(pooled, f"sqlite:///{tmp_path / 'back.db'}", page=3)

    assert await read_at(f"sqlite:///{tmp_path / 'back.db'}") == before


# --- afterwards it goes on ------------------------------------------------------------------------------------------------

begun: list[str] = []
"""The activities that began, by what they were given."""
is_open = asyncio.Event()


@activity(retry=Retry(max_attempts=1))
async def pass_door(who: str) -> str:
    begun.append(who)
    while not is_open.is_set():
        await asyncio.sleep(0.001)
    return f"{who} passed"


@activity(retry=Retry(max_attempts=5, initial=timedelta(milliseconds=300)))
async def fail_at_first(who: str) -> str:
    begun.append(who)
    if not is_open.is_set():
        raise ValueError("not yet")
    return f"{who} succeeded"


@workflow
async def enter(ctx: Context, who: str) -> str:
    return await ctx.run(pass_door, who)


@workflow
async def retry(ctx: Context, who: str) -> str:
    return await ctx.run(fail_at_first, who)


@workflow
async def nap(ctx: Context) -> str:
    await ctx.sleep(0.3)
    return "slept"


@workflow
async def collect(ctx: Context, count: int) -> list[str]:
    return [await ctx.wait_for_signal("word", str) for _ in range(count)]


@workflow
async def adopt(ctx: Context) -> list[str]:
    return await ctx.run_child(collect, 2, workflow_id="child")


@workflow
async def break_down(ctx: Context) -> None:
    raise ValueError("broken")


def make_engine(url: str, node: str) -> Engine:
    workflows: list[Workflow[..., Any]] = [enter, retry, nap, collect, adopt, break_down]
    return Engine(url, workflows=workflows, activities=[pass_door, fail_at_first], node=node, shutdown_grace=0.01)


async def begin_stories(engine: Engine) -> None:
    """Something of everything that can be under way."""
    await engine.start(collect, 0, workflow_id="words")
    await engine.handle("words").result()
    await engine.start(collect, 3, workflow_id="words", idempotency_key="key")
    await engine.signal_workflow("words", "word", "first")
    await engine.start(enter, "ann", workflow_id="door")
    await engine.start(retry, "bob", workflow_id="retry")
    await engine.start(nap, workflow_id="nap")
    await engine.start(adopt, workflow_id="parent")
    await engine.signal_workflow("child", "word", "one")
    with pytest.raises(WorkflowFailed):
        await (await engine.start(break_down, workflow_id="broken")).result()
    await engine.signal_workflow("words", "word", {"not": "a word"})
    # One of them may have begun more than once.
    await eventually(lambda: set(begun) == {"ann", "bob"}, "the activities to have begun")
    await eventually(engine.dead_letters, "the dead letter")


async def test_open_executions_go_on_where_they_were_moved_to(urls: tuple[str, str]) -> None:
    begun.clear()
    is_open.clear()
    source, target = urls
    async with make_engine(source, "before") as engine:
        await begin_stories(engine)
        histories = {one.execution_id: await engine.history(one.execution_id) for one in await engine.list()}
        (letter,) = await engine.dead_letters()

    begun_before = list(begun)  # on a slow machine one attempt more than elsewhere may have failed by now
    await transfer(source, target)
    is_open.set()

    async with make_engine(target, "after") as engine:
        assert await engine.dead_letters() == [letter]
        assert await engine.handle("nap").result() == "slept"
        assert await engine.handle("door").result() == "ann passed"
        assert await engine.handle("retry").result() == "bob succeeded"
        again = await engine.start(collect, 1, workflow_id="another", idempotency_key="key")
        assert not again.created
        await engine.signal_workflow("words", "word", "second")
        assert await engine.requeue_dead_letters([letter.id]) == 1  # it is no better, and becomes one again
        await eventually(engine.dead_letters, "the dead letter to be back")
        await engine.signal_workflow("words", "word", "third")
        assert await engine.handle("words").result() == ["first", "second", "third"]
        await engine.signal_workflow("child", "word", "two")
        assert await engine.handle("parent").result() == ["one", "two"]
        with pytest.raises(WorkflowFailed, match="broken"):
            await engine.handle("broken").result()
        for execution_id, before in histories.items():
            now = await engine.history(execution_id)
            assert now.to_json()[: len(before.events)] == before.to_json()
        assert (await engine.start(collect, 0, workflow_id="new")).created
        assert await engine.store.check() == []
    assert begun_before.count("ann") == 1
    assert sorted(begun[len(begun_before) :]) == ["ann", "bob"], "each begins once more"


async def test_what_is_paused_stays_paused_where_it_was_moved_to(urls: tuple[str, str]) -> None:
    source, target = urls
    async with make_engine(source, "before") as engine:
        one = await engine.start(collect, 1, workflow_id="one")
        await one.pause("audit", "ann")
        await one.signal("word", "kept")
        await engine.pause_workflow("collect", "audit")
        await engine.start(collect, 1, workflow_id="two")
        await engine.signal_workflow("two", "word", "kept, too")

    await transfer(source, target)

    async with make_engine(target, "after") as engine:
        assert [pause.name for pause in await engine.pauses()] == ["collect"]
        status = await engine.query_status("one")
        assert (status.status, {pause.kind for pause in status.pauses}) == ("paused", {"execution", "workflow"})
        assert await engine.resume_workflow("collect")
        assert await engine.handle("two").result() == ["kept, too"]
        assert (await engine.query_status("one")).status == "paused"
        assert await engine.resume("one")
        assert await engine.handle("one").result() == ["kept"]


# --- interrupted ----------------------------------------------------------------------------------------------------------


async def test_a_transfer_that_ends_after_any_step_goes_on_there(tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    await fill_at(source)
    before = await read_at(source)
    steps: list[TransferProgress] = []
    await transfer(source, f"sqlite:///{tmp_path / 'whole.db'}", on_progress=steps.append, page=3)
    await free(source)

    for count in range(0, len(steps), 3):
        target = f"sqlite:///{tmp_path / f'target-{count}.db'}"
        await interrupt(source, target, count)
        seen: list[TransferProgress] = []
        await transfer(source, target, on_progress=seen.append, page=5)

        copied = sum(step.verb == "copied" for step in steps[: count + 1])
        assert len([step for step in seen if step.verb == "copied"]) <= len(steps) - copied
        assert await read_at(target) == before
        await free(source)


async def free(source: str) -> None:
    """Have a source forget that it was moved."""
    async with opened(source) as store:
        movable = open_movable(store)
        marks = await movable.read_marks()
        assert await movable.change_marks([MarkChange(MOVED_TO, marks[MOVED_TO], None)])


@pytest.mark.parametrize("seed", range(3))
async def test_a_transfer_that_is_killed_again_and_again_comes_to_its_end(urls: tuple[str, str], seed: int) -> None:
    source, target = urls
    chance = random.Random(seed)
    await fill_at(source)
    before = await read_at(source)

    for _ in range(3):
        if await asyncio.to_thread(kill_after, chance.randrange(22), source, target):
            break
    report = await asyncio.to_thread(run_process, source, target)

    assert await read_at(target) == before, f"seed {seed}"
    assert report.splitlines()[-1].startswith("moved"), report
    assert await read_marks(source) == {MOVED_TO}


def start_process(source: str, target: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.engine.transfer.transfer_process", source, target]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def kill_after(lines: int, source: str, target: str) -> bool:
    """Kill a process that transfers when it has said so many things; whether it had come to its end."""
    with start_process(source, target) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        return any(line.startswith("moved") for line in said)


def run_process(source: str, target: str) -> str:
    with start_process(source, target) as process:
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 0, said
    return said


async def test_a_transfer_that_ends_between_its_last_two_marks_is_finished_by_the_next(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    before = await read_at(source)
    marks: list[dict[str, str]] = []
    await copy_all(source, target)
    async with opened(target) as store:
        marks.append(await open_movable(store).read_marks())
    await transfer(source, target, page=3)
    async with opened(target) as store:
        movable = open_movable(store)
        done = (await movable.read_marks())[MOVED_FROM]
        back = [MarkChange(MOVED_FROM, done, None), MarkChange(MOVING_FROM, None, marks[0][MOVING_FROM])]
        assert await movable.change_marks(back)
    with pytest.raises(StoreMoved):
        await Engine(target).open()

    report = await transfer(source, target, page=3)

    assert not report.was_done_before
    assert await read_marks(target) == {MOVED_FROM}
    assert await read_at(target) == before
