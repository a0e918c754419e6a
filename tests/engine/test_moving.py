"""Everything moves from one database to another: whole, once, and nobody works on both."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast import Context, Engine, Retry, WorkflowFailed, activity, workflow
from holdfast.code.definitions import Workflow
from holdfast.engine.moving.marks import MOVED_FROM, MOVED_TO, MOVING_FROM, MOVING_TO
from holdfast.engine.moving.moves import Step, abandon, move
from holdfast.engine.stores import open_store
from holdfast.errors import Conflict, CorruptStore, HoldfastError, InvalidConfiguration, StoreMoved, StoreOwned
from holdfast.store.contract import LooseWrite, NodeRow, Store
from holdfast.store.moving import Kind, Lasting, MarkChange
from tests.engine.scenes import until
from tests.postgres.access import connect, with_schema
from tests.store.builders import ORG, commit, make_letter
from tests.store.everything import fill, open_movable, read_everything

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite to postgres", "postgres to sqlite", "sqlite to sqlite"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Where from and where to: neither is there yet."""
    from_, _, to = request.param.split()
    return name(request, tmp_path, from_, "source"), name(request, tmp_path, to, "target")


def name(request: pytest.FixtureRequest, folder: Path, kind: str, role: str) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder / role}.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Where from and where to, both SQLite: for what does not depend on the kind."""
    return f"sqlite:///{tmp_path / 'source.db'}", f"sqlite:///{tmp_path / 'target.db'}"


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """The store alone."""
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def fill_at(url: str) -> None:
    async with opened(url) as store:
        await fill(store)


async def read_at(url: str) -> object:
    async with opened(url) as store:
        return await read_everything(open_movable(store))


async def read_marks(url: str) -> set[str]:
    async with opened(url) as store:
        return set(await open_movable(store).read_marks())


def stop_at(number: int) -> Callable[[Step], None]:
    """Watch a move, and end it after so many steps as if the process had ended."""
    left = [number]

    def watch(_step: Step) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted

    return watch


class Interrupted(BaseException):
    """The move ends here."""


async def interrupt(source: str, target: str, steps: int = 0) -> None:
    """Begin a move, and end it after some steps."""
    with pytest.raises(Interrupted):
        await move(source, target, watch=stop_at(steps), page=3)


async def copy_all(source: str, target: str) -> None:
    """Begin a move, and end it when all is copied and nothing compared."""

    def watch(step: Step) -> None:
        if step.verb == "verified":
            raise Interrupted

    with pytest.raises(Interrupted):
        await move(source, target, watch=watch, page=3)


# --- the whole ------------------------------------------------------------------------------------------------------------


async def test_everything_is_moved_and_proved_by_checksums(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    before = await read_at(source)
    steps: list[Step] = []

    report = await move(source, target, watch=steps.append, page=3)

    assert await read_at(target) == before
    assert all(tally.rows > 0 and int(tally.checksum, 16) for tally in report.tallies.values())
    assert {(step.verb, step.kind) for step in steps} == {(verb, kind) for verb in ("copied", "verified") for kind in Kind}
    assert await read_marks(source) == {MOVED_TO}
    assert await read_marks(target) == {MOVED_FROM}


async def test_an_empty_database_can_be_moved_too(files: tuple[str, str]) -> None:
    source, target = files
    async with opened(source):
        pass

    report = await move(source, target)

    assert {tally.rows for tally in report.tallies.values()} == {0}


async def test_moving_again_what_was_moved_does_nothing(files: tuple[str, str]) -> None:
    source, target = files
    await fill_at(source)
    await move(source, target)
    async with Engine(target):  # also when somebody has begun to work there
        pass

    report = await move(source, target)

    assert report.was_done_before
    with pytest.raises(StoreMoved, match=r"was moved to '.*target\.db'"):
        await move(source, target.replace("target", "third"))


async def test_what_is_moved_can_be_moved_on(files: tuple[str, str]) -> None:
    source, target = files
    third = target.replace("target", "third")
    await fill_at(source)
    before = await read_at(source)

    await move(source, target)
    await move(target, third)

    assert await read_at(third) == before
    assert await read_marks(target) == {MOVED_FROM, MOVED_TO}


async def test_a_reason_that_not_every_database_can_hold_does_not_stop_a_move(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    async with opened(source) as store:
        await commit(store, loose=LooseWrite(dead_letters=[replace(make_letter("x"), reason="a\0b")]))

    await move(source, postgres_url)

    async with opened(postgres_url) as store:
        assert [letter.reason for letter in await store.list_dead_letters(ORG)] == ["a\ufffdb"]


async def test_a_move_needs_no_session(tmp_path: Path, postgres_url: str) -> None:
    source, pooled = f"sqlite:///{tmp_path / 'source.db'}", f"{postgres_url}&pooler=transaction"
    await fill_at(source)
    before = await read_at(source)

    await move(source, pooled, page=3)
    await move(pooled, f"sqlite:///{tmp_path / 'back.db'}", page=3)

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
    await until(lambda: set(begun) == {"ann", "bob"}, "the activities to have begun")  # one of them more than once, perhaps
    await until(engine.dead_letters, "the dead letter")


async def test_open_executions_go_on_where_they_were_moved_to(urls: tuple[str, str]) -> None:
    begun.clear()
    is_open.clear()
    source, target = urls
    async with make_engine(source, "before") as engine:
        await begin_stories(engine)
        histories = {one.execution_id: await engine.history(one.execution_id) for one in await engine.list()}
        (letter,) = await engine.dead_letters()

    await move(source, target)
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
        await until(engine.dead_letters, "the dead letter to be back")
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
    assert sorted(begun) == ["ann", "ann", "bob", "bob"]


# --- interrupted ----------------------------------------------------------------------------------------------------------


async def test_a_move_that_ends_after_any_step_goes_on_there(tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    await fill_at(source)
    before = await read_at(source)
    steps: list[Step] = []
    await move(source, f"sqlite:///{tmp_path / 'whole.db'}", watch=steps.append, page=3)
    await free(source)

    for count in range(0, len(steps), 3):
        target = f"sqlite:///{tmp_path / f'target-{count}.db'}"
        await interrupt(source, target, count)
        seen: list[Step] = []
        await move(source, target, watch=seen.append, page=5)

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
async def test_a_move_that_is_killed_again_and_again_comes_to_its_end(urls: tuple[str, str], seed: int) -> None:
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
    command = [sys.executable, "-m", "tests.engine.moving_process", source, target]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def kill_after(lines: int, source: str, target: str) -> bool:
    """Kill a process that moves when it has said so many things; whether it had come to its end."""
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


async def test_a_move_that_ends_between_its_last_two_marks_is_finished_by_the_next(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    before = await read_at(source)
    marks: list[dict[str, str]] = []
    await copy_all(source, target)
    async with opened(target) as store:
        marks.append(await open_movable(store).read_marks())
    await move(source, target, page=3)
    async with opened(target) as store:
        movable = open_movable(store)
        done = (await movable.read_marks())[MOVED_FROM]
        back = [MarkChange(MOVED_FROM, done, None), MarkChange(MOVING_FROM, None, marks[0][MOVING_FROM])]
        assert await movable.change_marks(back)
    with pytest.raises(StoreMoved):
        await Engine(target).open()

    report = await move(source, target, page=3)

    assert not report.was_done_before
    assert await read_marks(target) == {MOVED_FROM}
    assert await read_at(target) == before


# --- nobody works on both -------------------------------------------------------------------------------------------------


async def test_no_engine_opens_either_side_while_a_move_is_under_way(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    await interrupt(source, target)

    with pytest.raises(StoreMoved, match="a move is under way from this one to '"):
        await Engine(source).open()
    with pytest.raises(StoreMoved, match=r"a move is under way from '.*' to this one"):
        await Engine(target).open()

    await move(source, target)
    async with Engine(target):
        pass


async def test_no_engine_opens_what_was_moved(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    await move(source, target)

    with pytest.raises(StoreMoved, match=r"was moved to '.*' at .*\. Open that one\.$"):
        await Engine(source).open()

    async with Engine(target):
        pass


async def test_a_database_at_work_is_not_moved(urls: tuple[str, str]) -> None:
    source, target = urls
    async with Engine(source, node="worker"):
        with pytest.raises(HoldfastError) as refused:
            await move(source, target)

    assert isinstance(refused.value, StoreOwned) or "node 'worker'" in refused.value.message
    await move(source, target)


async def test_nothing_is_moved_to_where_somebody_works(urls: tuple[str, str]) -> None:
    source, target = urls
    async with opened(source):
        pass
    async with Engine(target, node="worker"):
        with pytest.raises(HoldfastError) as refused:
            await move(source, target)

    assert isinstance(refused.value, StoreOwned) or "node 'worker'" in refused.value.message
    assert await read_marks(source) == set()


async def test_a_node_that_has_been_silent_for_long_does_not_stop_a_move(tmp_path: Path, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await store.beat(NodeRow("killed", 0, 0), (), ())
    with pytest.raises(Conflict, match=r"node 'killed' was seen \d+ s ago"):
        await move(postgres_url, f"sqlite:///{tmp_path / 'target.db'}")
    with connect(postgres_url) as connection:
        connection.execute("UPDATE nodes SET seen_at = seen_at - 60 * 1000000, details = '{\"lease\": 60}'")
        with pytest.raises(Conflict, match="counts as gone after 120 s"):
            await move(postgres_url, f"sqlite:///{tmp_path / 'target.db'}")
        connection.execute("UPDATE nodes SET seen_at = seen_at - 60 * 1000000")

    await move(postgres_url, f"sqlite:///{tmp_path / 'target.db'}")


async def test_of_two_who_move_at_once_one_gives_way(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    await fill_at(source)
    before = await read_at(source)

    with connect(postgres_url) as connection:

        def meddle(_step: Step) -> None:
            """What another process would do that goes on with the move."""
            connection.execute("UPDATE marks SET value = value || ' '")

        with pytest.raises(Conflict, match="another process does too"):
            await move(source, postgres_url, watch=meddle, page=3)

    await move(source, postgres_url, page=3)
    assert await read_at(postgres_url) == before


# --- what cannot be -------------------------------------------------------------------------------------------------------


async def test_a_target_that_is_not_empty_is_refused(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    await fill_at(target)
    before = await read_at(target)

    with pytest.raises(Conflict, match=r"to be empty, but it holds 7 executions, \d+ histories"):
        await move(source, target)

    assert await read_at(target) == before
    assert (await read_marks(source), await read_marks(target)) == (set(), set())


async def test_a_source_that_is_not_there_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match="there is none"):
        await move(f"sqlite:///{tmp_path / 'none.db'}", f"sqlite:///{tmp_path / 'target.db'}")

    assert list(tmp_path.iterdir()) == []


async def test_a_database_cannot_be_moved_to_itself(tmp_path: Path, postgres_url: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    same = f"sqlite:///{tmp_path}/../{tmp_path.name}/source.db"
    for url in (source, postgres_url):
        async with opened(url):
            pass

    pairs = [(source, same), (postgres_url, postgres_url), (postgres_url, postgres_url + "&lanes=2")]
    pairs.append((postgres_url, postgres_url.replace("127.0.0.1", "localhost")))
    for one, other in pairs:
        with pytest.raises(Conflict, match="are one and the same"):
            await move(one, other)

    assert (await read_marks(source), await read_marks(postgres_url)) == (set(), set())


async def test_a_store_in_memory_is_not_moved(files: tuple[str, str]) -> None:
    async with opened(files[0]):
        pass

    with pytest.raises(InvalidConfiguration, match="outlives"):
        await move(files[0], "memory://")


async def test_moves_do_not_get_into_each_others_way(files: tuple[str, str]) -> None:
    source, target = files
    third, fourth = target.replace("target", "third"), target.replace("target", "fourth")
    await fill_at(source)
    async with opened(third):
        pass
    await interrupt(source, target)

    with pytest.raises(Conflict, match=r"a move from it to '.*target\.db' is under way"):
        await move(source, fourth)
    with pytest.raises(Conflict, match=r"a move from '.*source\.db' to it is under way"):
        await move(third, target)
    with pytest.raises(Conflict, match="moved elsewhere"):
        await move(third, source)

    await move(source, target)


# --- tampering ------------------------------------------------------------------------------------------------------------

TAMPERING = {
    "executions": "UPDATE executions SET queue = 'other' WHERE queue = 'default' AND sequence = 1",
    "histories": "UPDATE events SET at = at + 1 WHERE first = 2",
    "timers": "UPDATE timers SET due = due + 1 WHERE number = 1",
    "inbox": "DELETE FROM inbox",
    "dead letters": "UPDATE dead_letters SET reason = 'another'",
    "requests": "INSERT INTO requests SELECT org, kind, key || 'x', execution_id, sequence, expires_at FROM requests",
    "activities": "UPDATE activities SET node = 'b'",
}


@pytest.mark.parametrize("kind", TAMPERING)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_a_row_that_somebody_changed_is_found(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, store: str
) -> None:
    source, target = f"sqlite:///{tmp_path / 'source.db'}", name(request, tmp_path, store, "target")
    await fill_at(source)
    before = await read_at(source)
    await copy_all(source, target)

    if store == "sqlite":
        with closing(sqlite3.connect(tmp_path / "target.db")) as tampering, tampering:
            tampering.execute(TAMPERING[kind])
    else:
        with connect(target) as connection:
            connection.execute(TAMPERING[kind].encode())

    with pytest.raises(CorruptStore, match=f"Expected the {kind} in '.*' to be those of '.*checksum"):
        await move(source, target)
    with pytest.raises(StoreMoved):
        await Engine(target).open()
    assert await abandon(source, target)
    await move(source, target)
    assert await read_at(target) == before


async def test_executions_in_another_order_are_found(files: tuple[str, str]) -> None:
    source, target = files
    await fill_at(source)
    await copy_all(source, target)
    swap = "UPDATE executions SET id = CASE id WHEN 2 THEN -3 WHEN 3 THEN -2 END WHERE id IN (2, 3)"
    with closing(sqlite3.connect(target.removeprefix("sqlite:///"))) as tampering, tampering:
        for statement in (swap, "UPDATE executions SET id = -id WHERE id < 0"):
            tampering.execute(statement)
        tampering.execute("UPDATE events SET execution = CASE execution WHEN 2 THEN 3 ELSE 2 END WHERE execution IN (2, 3)")

    with pytest.raises(CorruptStore, match="Expected the executions in"):
        await move(source, target)


# --- giving up ------------------------------------------------------------------------------------------------------------


async def test_a_move_can_be_given_up_and_both_sides_are_free(urls: tuple[str, str]) -> None:
    source, target = urls
    await fill_at(source)
    before = await read_at(source)
    await interrupt(source, target, 8)

    assert await abandon(source, target)

    assert await read_at(source) == before
    assert (await read_marks(source), await read_marks(target)) == (set(), set())
    for url in urls:
        async with Engine(url):
            pass


async def test_a_move_is_given_up_when_the_target_is_gone(tmp_path: Path, postgres_server: str) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    target = tmp_path / "target.db"
    await fill_at(source)

    await interrupt(source, f"sqlite:///{target}")
    target.unlink()
    assert await abandon(source, f"sqlite:///{target}")
    assert not target.exists()

    async with opened(source) as store:  # as if it were on its way to a server that is away
        mark = '{"move": "x", "other": "postgresql://holdfast@127.0.0.1:1/none", "at": "now"}'
        assert await open_movable(store).change_marks([MarkChange(MOVING_TO, None, mark)])
    assert not await abandon(source, "postgresql://holdfast@127.0.0.1:1/none")
    assert await read_marks(source) == set()


async def test_what_is_complete_or_another_move_is_not_given_up(files: tuple[str, str]) -> None:
    source, target = files
    third = target.replace("target", "third")
    await fill_at(source)
    async with opened(third):
        pass
    with pytest.raises(Conflict, match="but there is none"):
        await abandon(source, third)
    await interrupt(source, target)
    with pytest.raises(Conflict, match=r"that of a move from '.*source\.db'"):
        await abandon(third, target)
    await move(source, target)

    with pytest.raises(StoreMoved, match="Expected a move that is not complete"):
        await abandon(source, target)

    assert await read_marks(source) == {MOVED_TO}


async def test_a_target_that_was_left_behind_is_cleared_when_it_is_back(files: tuple[str, str]) -> None:
    source, target = files
    await fill_at(source)
    await interrupt(source, target, 4)
    async with opened(source) as store:  # given up while the target could not be reached
        movable = open_movable(store)
        assert await movable.change_marks([MarkChange(MOVING_TO, (await movable.read_marks())[MOVING_TO], None)])

    with pytest.raises(Conflict, match="--abandon"):
        await move(source, target)
    assert await abandon(source, target)

    await move(source, target)


def test_stores_that_last_say_so(tmp_path: Path) -> None:
    lasting = [open_store("sqlite:///x.db"), open_store(with_schema("postgresql://holdfast@127.0.0.1/x", "s"))]

    assert all(isinstance(store, Lasting) for store in lasting)
    assert not isinstance(open_store("memory://"), Lasting)
