"""D2, N3: what the quarantine says about suspects, and what becomes of turns that cannot be committed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from holdfast import Context, Retry, Status, activity, activity_info, workflow
from holdfast.core import codec, payloads
from holdfast.core.envelopes import Signal
from holdfast.core.execution import Details
from holdfast.core.placing import SUSPECT
from holdfast.engine.living_nodes import LivingNodes
from holdfast.engine.quarantine import GROUP_SIZES, Quarantine, Verdict
from holdfast.engine.requests import Handled
from holdfast.engine.rows import from_row
from holdfast.errors import StoreError, StoreUnavailable
from holdfast.store.memory.faults import FaultAction, Point
from holdfast.store.rows import ExecutionRow
from tests.engine import hooks
from tests.engine.conftest import OpenEngine
from tests.engine.support.failing_writes import WritesFail
from tests.engine.support.held_activities import Door
from tests.eventually import PATIENCE, eventually
from tests.rules.world import Nodes
from tests.store.builders import make_row

# --- the rule ---


def noted(tries: int = 0, trying: str = "", *, suspect: bool = False) -> ExecutionRow:
    details = codec.encode(Details(tries=tries, trying=trying, suspect=suspect))
    return msgspec.structs.replace(make_row(), details=details)


@pytest.fixture
def living() -> LivingNodes:
    living = LivingNodes()
    living.update(["alive"], [], now=0)
    return living


@pytest.fixture
def quarantine(living: LivingNodes) -> Quarantine:
    return Quarantine(living, max_tries=5)


@pytest.mark.parametrize(
    ("row", "was_in_flight", "verdict"),
    [
        (noted(), False, Verdict.CLEAR),
        (noted(), True, Verdict.NOTE_FIRST),
        (None, False, Verdict.CLEAR),
        (None, True, Verdict.NOTE_FIRST),
        (noted(suspect=True), False, Verdict.NOTE_FIRST),
        (noted(1, "dead"), False, Verdict.NOTE_FIRST),
        (noted(1, "alive"), False, Verdict.TRIED_ELSEWHERE),
        (noted(5, "alive"), False, Verdict.TRIED_ELSEWHERE),
        (noted(5, "dead"), False, Verdict.BLOCK),
        (noted(6), True, Verdict.BLOCK),
        (msgspec.structs.replace(make_row(), details=b'{"tries":'), False, Verdict.CLEAR),
    ],
)
def test_N3_verdict_follows_from_the_row_and_from_what_was_in_flight(
    quarantine: Quarantine, row: ExecutionRow | None, was_in_flight: bool, verdict: Verdict
) -> None:
    assert quarantine.judge("e", row, (), was_in_flight=was_in_flight) is verdict


def test_N3_who_is_on_trial_takes_its_turn_and_who_waits_for_it_does_not(quarantine: Quarantine) -> None:
    quarantine.note("e", 1)

    assert quarantine.judge("e", noted(1, "self"), ["e"], was_in_flight=True) is Verdict.CLEAR
    assert quarantine.judge("e", noted(1, "self"), ["other"], was_in_flight=False) is Verdict.AWAITS_TRIAL
    quarantine.forget(["e"])
    assert quarantine.judge("e", noted(1, "self"), (), was_in_flight=False) is Verdict.NOTE_FIRST


def test_N3_who_is_apart_takes_no_turn_while_another_process_tries_it(quarantine: Quarantine) -> None:
    quarantine.keep_apart(["e"])

    assert quarantine.judge("e", noted(1, "alive"), ["e"], was_in_flight=False) is Verdict.TRIED_ELSEWHERE
    assert quarantine.judge("e", noted(suspect=True), ["e"], was_in_flight=False) is Verdict.CLEAR


def test_N3_suspects_are_tried_in_groups_that_become_smaller_with_each_try(quarantine: Quarantine) -> None:
    names = {tries: [f"{tries}-{number}" for number in range(300)] for tries in (1, 2, 3, 4)}
    for tries, members in names.items():
        for name in members:
            quarantine.note(name, tries)

    groups = quarantine.group([name for members in names.values() for name in members])

    assert [name for group in groups for name in group] == [name for members in names.values() for name in members]
    sizes = {tries: max(len(group) for group in groups if group[0] in members) for tries, members in names.items()}
    assert sizes == {1: GROUP_SIZES[0], 2: GROUP_SIZES[1], 3: 1, 4: 1}


def test_N3_only_one_group_of_suspects_is_noted_at_a_time(quarantine: Quarantine) -> None:
    assert quarantine.may_note(1, [])
    assert quarantine.may_note(1, [1] * (GROUP_SIZES[0] - 1))
    assert not quarantine.may_note(1, [1] * GROUP_SIZES[0]), "a group has its size"
    assert not quarantine.may_note(2, [1]), "those of another try wait"
    assert not quarantine.may_note(3, [3]), "who was noted twice is tried alone"

    quarantine.note("e", 1)

    assert not quarantine.may_note(1, []), "whoever is noted is tried first"


async def test_N3_suspect_activities_wait_until_no_turn_is_tried(quarantine: Quarantine) -> None:
    quarantine.note("e", 1)
    waiting = asyncio.ensure_future(quarantine.wait_until_no_trial())
    await asyncio.sleep(0)
    assert not waiting.done()

    quarantine.forget(["e"])

    await waiting


# --- a turn that cannot be committed ---


@activity
async def work(name: str) -> str:
    return name


@workflow
async def collect(ctx: Context) -> list[str]:
    words: list[str] = []
    while not words or words[-1] != "end":
        words.append(await ctx.wait_for_signal("word", str))
        words[-1] = await ctx.run(work, words[-1])
    return words


ERRORS: dict[str, Callable[[], Exception]] = {
    "store": lambda: StoreError("Expected to write, but the row is too big."),
    "other": lambda: OverflowError("string or blob too big"),
}


@pytest.mark.parametrize("make_error", ERRORS.values(), ids=ERRORS)
async def test_D2_turn_that_cannot_be_committed_does_not_stop_the_others_and_is_blocked_in_the_end(
    open_engine: OpenEngine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    make_error: Callable[[], Exception],
) -> None:
    caplog.set_level(logging.CRITICAL, "holdfast")
    engine = await open_engine(collect, work)
    names = [f"w{number}" for number in range(20)]
    for name in names:
        await engine.start(collect, workflow_id=name)
    await engine.settle()
    failing = WritesFail(engine, monkeypatch, make_error)
    failing.workflow_ids.add("w7")

    answers = await asyncio.gather(*(engine.signal_workflow(name, "word", "end") for name in names), return_exceptions=True)

    assert [name for name, answer in zip(names, answers, strict=True) if isinstance(answer, Exception)] == ["w7"]
    results = [await engine.handle(name).result() for name in names if name != "w7"]
    assert results == [["end"]] * 19
    assert max(failing.failed) > 1, "it failed together with others first"
    for _ in range(5):
        answer = asyncio.ensure_future(engine.signal_workflow("w7", "word", "end"))
        await engine.clock.advance(seconds=10)
        await asyncio.gather(answer, return_exceptions=True)
    info = await engine.query_status("w7")
    assert info.status is Status.BLOCKED
    assert info.last_error is not None
    assert "failed 5 times in a row" in str(info.last_error)
    assert "too big" in str(info.last_error)

    failing.workflow_ids.clear()
    assert await engine.retry_blocked("w7")
    assert await engine.handle("w7").result() == ["end"], "the last signal was accepted, and waited in its inbox"
    assert await engine.store.check() == []


async def test_D2_result_that_cannot_be_committed_waits_in_the_inbox_of_the_blocked_execution(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "holdfast")
    door = Door()

    @activity(name="slow")
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def waits(ctx: Context) -> str:
        return await ctx.run(slow)

    engine = await open_engine(waits, slow, max_lost=2)
    await engine.start(waits, workflow_id="w")
    await eventually(lambda: door.inside)
    failing = WritesFail(engine, monkeypatch, ERRORS["other"])
    failing.workflow_ids.add("w")
    door.open()

    async def is_blocked() -> bool:
        await engine.clock.advance(seconds=1)
        return (await engine.query_status("w")).status is Status.BLOCKED

    await eventually(is_blocked)

    [waiting] = (await engine.query_status("w")).inbox
    assert (waiting.envelope["type"], waiting.envelope["result"]) == ("activity_returned", {"data": "done"})
    failing.workflow_ids.clear()
    assert await engine.retry_blocked("w")
    assert await engine.handle("w").result() == "done"


async def test_D2_start_that_cannot_be_committed_is_refused_and_the_others_are_made(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "holdfast")
    engine = await open_engine(collect, work)
    failing = WritesFail(engine, monkeypatch, ERRORS["other"])
    failing.workflow_ids.add("w3")

    answers = await asyncio.gather(
        *(engine.start(collect, workflow_id=f"w{number}") for number in range(8)), return_exceptions=True
    )

    assert [number for number, answer in enumerate(answers) if isinstance(answer, Exception)] == [3]
    assert len(await engine.list()) == 7
    failing.workflow_ids.clear()
    assert (await engine.start(collect, workflow_id="w3")).created


# --- processes that end ---


@pytest.fixture
async def nodes() -> AsyncIterator[Nodes]:
    nodes = Nodes()
    yield nodes
    await nodes.close()


async def test_N3_what_was_running_on_a_node_that_died_is_tried_and_cleared(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(name="slow")
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def waits(ctx: Context) -> str:
        first = await ctx.run(slow)
        await ctx.wait_for_signal("go")
        return first

    engine = await open_engine(waits, slow)
    handles = [await engine.start(waits, workflow_id=f"w{number}") for number in range(5)]
    await eventually(lambda: door.inside == 5)
    await engine.restart()
    await eventually(lambda: door.inside == 5)
    assert from_row(await hooks.find_row(engine, "w0")).details.suspect

    door.open()
    await engine.settle()

    details = [from_row(await hooks.find_row(engine, f"w{number}")).details for number in range(5)]
    assert [(one.suspect, one.tries, one.trying) for one in details] == [(False, 0, "")] * 5
    for handle in handles:
        await engine.signal_workflow(handle.workflow_id, "go")
        assert await engine.handle(handle.workflow_id).result() == "done"
    assert await engine.store.check() == []


async def test_N3_activity_that_has_ended_is_not_blamed_for_the_trial_that_its_result_waits_for(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door()

    @activity(name="quick", retry=Retry(max_attempts=1))
    async def quick() -> str:
        await door.wait()
        return "done"

    @workflow
    async def waits(ctx: Context) -> str:
        return await ctx.run(quick)

    engine = await open_engine(waits, quick)
    await engine.start(waits, workflow_id="w")
    await eventually(lambda: door.inside)
    for number in range(SUSPECT + 4):
        if number >= SUSPECT:  # its result arrives, and the process ends before the turn that takes it is committed
            failing = WritesFail(engine, monkeypatch, lambda: StoreUnavailable("Expected to write, but it ends here."))
            failing.workflow_ids.add("w")
            door.open()
            await eventually(lambda failing=failing: failing.failed)  # type: ignore[misc]
            monkeypatch.undo()
            door.shut()
        await engine.restart()
        await eventually(lambda: door.inside)

    assert from_row(await hooks.find_row(engine, "w")).attempt_of(1).lost == SUSPECT
    door.open()
    assert await engine.handle("w").result() == "done"


async def test_N3_turn_that_only_notes_a_failed_attempt_is_no_try(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(retry=Retry(initial=1, factor=1))
    async def fails_often() -> int:
        await door.wait()
        attempt = activity_info().attempt
        if attempt < 9:
            raise ValueError("not yet")
        return attempt

    @workflow
    async def waits(ctx: Context) -> int:
        return await ctx.run(fails_often)

    engine = await open_engine(waits, fails_often, max_lost=3)
    await engine.start(waits, workflow_id="w")
    await eventually(lambda: door.inside)
    await engine.restart()
    await eventually(lambda: door.inside)
    door.open()
    for _ in range(8):
        await engine.settle()
        details = from_row(await hooks.find_row(engine, "w")).details
        assert (details.tries, details.trying) == (0, "")
        await engine.clock.advance(seconds=2)

    assert await engine.handle("w").result() == 9


async def test_N3_activity_is_not_noted_as_begun_while_a_turn_is_tried(open_engine: OpenEngine) -> None:
    door = Door()

    @activity(name="slow")
    async def slow() -> str:
        await door.wait()
        return "done"

    @workflow
    async def waits(ctx: Context) -> str:
        return await ctx.run(slow)

    engine = await open_engine(waits, slow)
    await engine.start(waits, workflow_id="w")
    await eventually(lambda: door.inside)
    row = await hooks.find_row(engine, "w")
    hooks.quarantine_of(engine).note("another", 1)
    answer = hooks.submit_began(engine, row, number=1, attempt=1)
    for _ in range(200):
        await asyncio.sleep(0)

    assert not answer.done()
    assert not from_row(await hooks.find_row(engine, "w")).attempt_of(1).begun
    hooks.quarantine_of(engine).forget(["another"])
    assert await asyncio.wait_for(answer, PATIENCE) == Handled(is_done=True)
    assert from_row(await hooks.find_row(engine, "w")).attempt_of(1).begun
    door.open()
    assert await engine.handle("w").result() == "done"


async def test_N3_trial_of_an_execution_that_another_transaction_holds_is_no_try(nodes: Nodes) -> None:
    engine = await nodes.open("one", [collect], [work], max_lost=2)
    handle = await engine.start(collect, workflow_id="w")
    await nodes.clock.settle()
    row = await hooks.find_row(engine, "w")
    nodes.database.tables.in_flight["ended", 0] = {row.execution_id: row.state_version}
    held: list[str] = []
    before = ""

    def hold_in_trials(point: str, _node: str) -> FaultAction:
        """Another node looks at the execution whenever this one tries it: a trial locks without a look around before."""
        nonlocal before
        (stored,) = nodes.database.tables.executions.values()
        if point in (Point.BEGIN, Point.CLAIM_FIND):
            before = point
        is_trial = point == Point.CLAIM_ROW and before == Point.BEGIN and b'"tries":' in stored.details
        if not is_trial or len(held) == 6:
            return FaultAction.NONE
        held.append(point)
        return FaultAction.SKIP

    nodes.faults["one"] = hold_in_trials
    await nodes.put_into_inbox(row.execution_id, Signal(name="word", value=payloads.encode("end", "a word")))

    assert await asyncio.wait_for(handle.result(), PATIENCE) == ["end"]
    assert len(held) == 6


async def test_N3_one_end_of_a_node_makes_nobody_wait_who_was_not_in_flight(nodes: Nodes) -> None:
    one = await nodes.open("one", [collect], [work])
    two = await nodes.open("two", [collect], [work])
    await nodes.clock.advance(seconds=10)
    await one.start(collect, workflow_id="before")
    await nodes.clock.settle()
    await nodes.kill("one")

    await two.signal_workflow("before", "word", "end")
    handle = await two.start(collect, workflow_id="after")
    await two.signal_workflow("after", "word", "end")

    assert await handle.result() == ["end"]
    assert await two.handle("before").result() == ["end"]
