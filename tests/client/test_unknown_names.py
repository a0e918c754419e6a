"""Names that no living node has may be misspelt: pauses, and schedules that are made or run, warn of them by every way."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from holdfast import Client, InvalidSchedule
from holdfast.log_events import LogEvent
from tests.client.conftest import Owner, Way, make_engine
from tests.client.workflows import collect


def run_cli(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def list_warnings(caplog: pytest.LogCaptureFixture, event: LogEvent) -> list[str]:
    return [one.getMessage() for one in caplog.records if getattr(one, "event", None) == event]


async def test_Z3_a_paused_workflow_that_nobody_knows_is_warned_of(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    assert await way.verbs.pause_workflow("collect")
    assert list_warnings(caplog, LogEvent.PAUSE_UNKNOWN) == []

    assert await way.verbs.pause_workflow("colect")
    assert not await way.verbs.pause_workflow("colect")

    [told] = list_warnings(caplog, LogEvent.PAUSE_UNKNOWN)
    assert told.startswith("workflow 'colect' is paused, but no living node has it")
    assert told.endswith("Did you mean 'collect'?")
    assert [one.name for one in await way.verbs.pauses()] == ["colect", "collect"]


async def test_Z3_a_paused_queue_that_nobody_knows_is_warned_of(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    await way.verbs.start("collect", 1, queue="night")
    assert await way.verbs.pause_queue("default")
    assert await way.verbs.pause_queue("night")
    assert list_warnings(caplog, LogEvent.PAUSE_UNKNOWN) == []

    assert await way.verbs.pause_queue("nihgt")

    [told] = list_warnings(caplog, LogEvent.PAUSE_UNKNOWN)
    assert told.startswith("queue 'nihgt' is paused, but no living node names it")
    assert told.endswith("Did you mean 'night'?")


async def test_Z3_the_workflow_of_an_open_execution_is_known(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with Client(postgres_url) as client:
        await client.start("of yesterday", 1)

        assert await client.pause_workflow("of yesterday")

    assert list_warnings(caplog, LogEvent.PAUSE_UNKNOWN) == []


async def test_T5_schedules_of_a_workflow_that_nobody_has_are_warned_of(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_engine(postgres_url), Client(postgres_url) as client:
        await client.create_schedule("good", "@daily", "collect", 0)
        await client.run_schedule("good")
        assert list_warnings(caplog, LogEvent.WORKFLOW_NOT_ANNOUNCED) == []

        await client.create_schedule("bad", "@daily", "colect", 0)
        await client.run_schedule("bad")

    made, run = list_warnings(caplog, LogEvent.WORKFLOW_NOT_ANNOUNCED)
    assert made == (
        "a schedule is to start workflow 'colect', but no living node has it: nothing starts until one does. "
        "Did you mean 'collect'?"
    )
    assert run.startswith("schedule 'bad' was run, but no living node has workflow 'colect': there is no execution")
    assert run.endswith("Did you mean 'collect'?")


async def test_T5_an_engine_that_runs_a_schedule_of_a_workflow_that_nobody_has_warns(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_engine(postgres_url) as engine, Client(postgres_url) as client:
        await client.create_schedule("bad", "@daily", "colect", 0)
        caplog.clear()

        await engine.run_schedule("bad")

    [told] = list_warnings(caplog, LogEvent.WORKFLOW_NOT_ANNOUNCED)
    assert told.startswith("schedule 'bad' was run")


def test_T5_the_command_line_says_whether_a_run_waits_for_a_node(file_url: str) -> None:
    async def make() -> None:
        async with make_engine(file_url) as engine:
            await engine.create_schedule("daily", "@daily", collect, 0)

    asyncio.run(make())
    path = file_url.removeprefix("sqlite:///")

    waits = run_cli("schedules", path, "run", "daily")
    owner = Owner(file_url)
    try:
        begins = run_cli("schedules", path, "run", "daily")
    finally:
        owner.end()

    assert waits.stdout.startswith("The start of 'daily-")
    assert "no node that has workflow 'collect' runs. There is no execution until one does." in waits.stdout
    assert begins.stdout.startswith("Started 'daily-")


def test_Z3_the_command_line_warns_of_a_paused_name_that_nobody_knows(file_url: str, owner: Owner) -> None:
    done = run_cli("pause", file_url.removeprefix("sqlite:///"), "--workflow", "colect")

    assert done.stdout == "Workflow 'colect' is paused.\n"
    assert "Did you mean 'collect'?" in done.stderr


async def test_T5_a_workflow_in_the_place_of_the_times_is_told(way: Way) -> None:
    with pytest.raises(InvalidSchedule, match=r"but it is workflow 'collect'\. Write the times before the workflow: "):
        await way.verbs.create_schedule("a", collect, "@daily")  # type: ignore[arg-type]
