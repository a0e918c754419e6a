"""Replay of recorded histories against code."""

from __future__ import annotations

import json
from datetime import timedelta
from inspect import getsourcelines
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, workflow
from holdfast.code.definitions import Workflow
from holdfast.errors import CorruptStore, ForbiddenInWorkflow, NewerFormat, NonDeterminismError, UnknownWorkflow
from holdfast.testing import HistorySource, ReplayReport, TestEngine, assert_no_gaps, load_history, replay, save_history
from tests.testing import flows, golden
from tests.testing.golden import FOLDER, RECORDINGS, release, reserve


def line_of(function: Workflow[..., Any], text: str) -> str:
    """Where a line of a workflow stands, as messages show it."""
    lines, first = getsourcelines(function.function)
    return f"{Path(__file__)}:{next(first + offset for offset, line in enumerate(lines) if text in line)}"


# --- code that agrees ---


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_kept_history_replays(name: str) -> None:
    report = replay(FOLDER / f"{name}.json", golden.WORKFLOWS)

    assert report == ReplayReport(executions=1, events=len(json.loads((FOLDER / f"{name}.json").read_text())))
    assert report.is_ok


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_kept_history_has_no_gaps(name: str) -> None:
    assert_no_gaps(FOLDER / f"{name}.json")


async def test_the_golden_workflows_still_make_the_histories_that_are_kept(tmp_path: Path) -> None:
    made = {path.name: load_history(path).kinds for path in await golden.record(tmp_path)}

    assert made == {path.name: load_history(path).kinds for path in FOLDER.glob("*.json")}


def test_a_history_from_before_children_began_with_their_parents_turn_replays() -> None:
    assert replay(FOLDER / "older" / "family.json", golden.WORKFLOWS).is_ok


def test_R3_history_from_before_exceptions_had_the_class_of_the_original_replays() -> None:
    kinds = [load_history(folder / "dun.json").kinds for folder in (FOLDER, FOLDER / "older")]

    assert ["TimerStarted" in one for one in kinds] == [False, True]
    assert replay(FOLDER / "older" / "dun.json", golden.WORKFLOWS).is_ok


async def test_replay_takes_a_history_its_json_text_and_files(tmp_path: Path) -> None:
    history = load_history(FOLDER / "order.json")
    path = save_history(history, tmp_path / "copy.json")
    sources: list[HistorySource] = [history, history.to_json(), json.dumps(history.to_json()), path, str(path)]

    reports = [replay(source, golden.WORKFLOWS) for source in sources]

    assert reports == [ReplayReport(executions=1, events=len(history.events))] * 5


def test_replay_also_works_where_no_loop_runs() -> None:
    assert replay(FOLDER / "family.json", golden.WORKFLOWS).executions == 1


async def test_an_open_execution_replays(engine: TestEngine) -> None:
    handle = await engine.start(flows.await_signal, 1)
    await handle.signal("word", "hello")

    report = replay(await handle.history(), flows.WORKFLOWS)

    assert report.events == 3


async def test_a_terminated_execution_replays(engine: TestEngine) -> None:
    handle = await engine.start(flows.sleep_for, 1)
    await handle.terminate("enough")

    report = replay(await handle.history(), flows.WORKFLOWS)

    assert report.events == 3


async def test_replay_executes_nothing(engine: TestEngine) -> None:
    handle = await engine.start(flows.run_and_sleep)
    await handle.result()
    flows.notes.clear()

    replay(await handle.history(), flows.WORKFLOWS)

    assert flows.notes == []


def test_choices_by_chance_are_made_again_because_the_execution_id_is_kept() -> None:
    history = load_history(FOLDER / "order.json").to_json()
    history[0]["execution_id"] = "01b8dac5-b400-7000-8000-000000000000"

    with pytest.raises(NonDeterminismError):
        replay(history, golden.WORKFLOWS)


def test_arguments_and_due_times_may_change() -> None:
    @workflow(name="ship")
    async def mended(ctx: Context, item: str) -> str:
        await ctx.run(reserve, item.upper())
        await ctx.sleep(timedelta(days=7))
        return "shipped with care"

    assert replay(FOLDER / "ship.json", [mended]).is_ok


def test_a_patch_keeps_the_path_of_histories_from_before() -> None:
    assert replay(FOLDER / "ship.json", [golden.ship]) == replay(FOLDER / "ship.json", [golden.ship_before])


# --- code that does not ---


def test_another_command_is_shown_with_the_recorded_one_and_its_line() -> None:
    @workflow(name="ship")
    async def changed(ctx: Context, item: str) -> str:
        await ctx.run(release, item)
        return "shipped"

    with pytest.raises(NonDeterminismError) as caught:
        replay(FOLDER / "ship.json", [changed])

    message = caught.value.message
    assert "call ctx.run('reserve') again" in message
    assert "event 2 of its history" in message
    assert f"called ctx.run('release') at {line_of(changed, 'ctx.run(release')}" in message
    assert "ctx.patched()" in message


def test_a_command_too_many_is_shown_with_its_line() -> None:
    @workflow(name="ship")
    async def changed(ctx: Context, item: str) -> str:
        first = ctx.run(reserve, item)
        second = ctx.run(release, item)
        await second
        return await first

    with pytest.raises(NonDeterminismError) as caught:
        replay(FOLDER / "ship.json", [changed])

    assert "to be at rest after event 2" in caught.value.message
    assert f"called ctx.run('release') at {line_of(changed, 'ctx.run(release')}" in caught.value.message


def test_a_command_too_few_is_shown_with_the_line_that_waits() -> None:
    @workflow(name="ship")
    async def changed(ctx: Context, item: str) -> str:
        return str(await ctx.wait_for_signal("go"))

    with pytest.raises(NonDeterminismError) as caught:
        replay(FOLDER / "ship.json", [changed])

    assert "to call ctx.run('reserve') again" in caught.value.message
    assert f"did nothing there, it waits at {line_of(changed, 'wait_for_signal')}" in caught.value.message


def test_an_end_too_soon_is_shown_with_the_workflow_that_ended() -> None:
    @workflow(name="ship")
    async def changed(ctx: Context, item: str) -> str:
        return item

    with pytest.raises(NonDeterminismError) as caught:
        replay(FOLDER / "ship.json", [changed])

    assert "it returned at " in caught.value.message
    assert line_of(changed, "@workflow") in caught.value.message


def test_code_that_raises_where_it_did_not_is_a_disagreement() -> None:
    @workflow(name="ship")
    async def changed(ctx: Context, item: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(NonDeterminismError, match="but it raised ZeroDivisionError at ") as caught:
        replay(FOLDER / "ship.json", [changed])

    assert f"at {line_of(changed, 'raise ')} in " in caught.value.message


def test_what_the_guard_catches_on_replay_is_raised_as_such() -> None:
    def look() -> str:
        return Path(__file__).read_text()

    @workflow(name="ship")
    async def changed(ctx: Context, item: str) -> str:
        return look()

    with pytest.raises(ForbiddenInWorkflow, match="activity"):
        replay(FOLDER / "ship.json", [changed])


def test_a_history_of_another_workflow_is_refused() -> None:
    with pytest.raises(UnknownWorkflow, match="'ship'"):
        replay(FOLDER / "ship.json", [golden.order])


# --- files that are no histories ---


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "history as JSON"),
        ("[]", "begins with workflow_started"),
        ("[1]", "history as JSON"),
        ('[{"type": "workflow_started"}]', "sequence, turn, at"),
        ('[{"sequence": 2, "turn": 2, "at": "2030-01-01T00:00:00+00:00", "type": "timer_fired", "number": 1}]', "event 1"),
        (
            '[{"sequence": 1, "turn": 1, "at": "2030-01-01T00:00:00+00:00", "type": "timer_fired", "number": 1}]',
            "begins with",
        ),
        ('[{"sequence": 1, "turn": 1, "at": "2030-01-01T00:00:00+00:00", "type": 5}]', "decode"),
    ],
)
def test_what_is_no_history_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(text)

    with pytest.raises(CorruptStore, match=problem):
        replay(path, golden.WORKFLOWS)


def test_history_of_a_newer_holdfast_is_refused_as_such(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text('[{"sequence": 1, "turn": 1, "at": "2030-01-01T00:00:00+00:00", "type": "went_home"}]')

    with pytest.raises(NewerFormat, match="a newer Holdfast wrote it"):
        replay(path, golden.WORKFLOWS)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"no-such-file\.json"):
        replay("no-such-file.json", golden.WORKFLOWS)


def test_a_file_names_no_path_of_the_machine_it_was_recorded_on() -> None:
    for path in FOLDER.glob("*.json"):
        assert "trace" not in path.read_text()
