"""`holdfast schedules`: each command, as text and as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast import Engine
from holdfast.cli import main
from tests.cli.conftest import double, doubling, waiting

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Calls a command on a database that nobody owns."""
    path = tmp_path / "app.db"

    async def fill() -> None:
        async with Engine(f"sqlite:///{path}", workflows=[waiting, doubling], activities=[double]):
            pass

    asyncio.run(fill())
    return lambda *rest: CliRunner().invoke(main, ["schedules", str(path), *rest])


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_schedule_is_created_shown_changed_and_deleted(run: Run) -> None:
    made = read(
        run(
            *("create", "daily", "30 9 * * 1-5", "doubling", "21", "--time-zone", "Europe/Berlin", "--overlap", "queue"),
            *("--catch-up", "2h", "--jitter", "5m", "--count", "9", "--notes", "ours", "--json", "--request-id", "r"),
        )
    )
    shown = run("show", "daily")
    changed = read(run("update", "daily", "--spec", "0 10 * * *", "--arg", "22", "--metadata", "a=b", "--json"))
    listed = run("list")

    assert (made["spec"], made["overlap"], made["remaining"], made["input"]) == ("30 9 * * 1-5", "queue", 9, [21])
    assert (made["catch_up"], made["jitter"], len(made["next_fires"])) == ("PT7200S", "PT300S", 5)
    assert "next fires: " in shown.output
    assert "notes: ours" in shown.output
    assert (changed["spec"], changed["input"], changed["metadata"]) == ("0 10 * * *", [22], {"a": "b"})
    assert "daily" in listed.output
    assert [one["schedule_id"] for one in read(run("list", "--json"))["schedules"]] == ["daily"]
    assert run("delete", "daily").output == "Schedule 'daily' was deleted.\n"
    assert run("delete", "daily").exit_code == 1
    assert run("show", "daily").exit_code == 1
    assert run("list").output == "There are none.\n"


def test_a_schedule_is_paused_resumed_run_and_backfilled(run: Run) -> None:
    calendar = '{"times": ["06:00"], "weekdays": ["mon"]}'
    assert "is paused" in run("create", "tick", calendar, "waiting", "--paused", "--org", "acme").output
    assert run("pause", "tick", "--org", "acme").exit_code == 1
    assert run("resume", "tick", "--org", "acme").output == "Schedule 'tick' fires again.\n"
    assert run("resume", "tick", "--org", "acme").exit_code == 1
    assert run("pause", "tick", "--org", "acme").output == "Schedule 'tick' is paused.\n"
    ran = read(run("run", "tick", "--org", "acme", "--json"))
    filled = read(run("backfill", "tick", "2026-01-01", "2026-01-31", "--org", "acme", "--overlap", "queue", "--json"))
    info = read(run("show", "tick", "--org", "acme", "--json"))

    assert ran["kind"] == "manual"
    assert filled["started"] == 4
    assert (info["waiting"], info["recent_runs"][0]["workflow_id"]) == (4, ran["workflow_id"])
    assert "manual" in run("show", "tick", "--org", "acme").output


def test_what_is_wrong_is_said_and_nothing_is_stored(run: Run) -> None:
    never = run("create", "bad", "0 0 30 2 *", "waiting")
    argument = run("create", "bad", "@daily", "doubling", '"many"')
    calendar = run("create", "bad", "{times", "waiting")
    option = run("create", "bad", "@daily", "doubling", "21", "--zone", "Europe/Berlin")

    assert (never.exit_code, argument.exit_code, calendar.exit_code, option.exit_code) == (1, 1, 2, 2)
    assert "no such day" in never.output
    assert "number" in argument.output
    assert "'--zone', which is no option of the command either" in " ".join(option.output.split())
    assert run("list").output == "There are none.\n"


def test_executions_of_a_schedule_have_the_business_reference_that_is_given(run: Run) -> None:
    about = ("--business-reference", "2027-1", "--reference-part", "policy=P-9", "--json")
    made = read(run("create", "daily", "30 9 * * *", "doubling", "21", *about))
    changed = read(run("update", "daily", "--business-reference", "2027-2", "--json"))
    kept = read(run("update", "daily", "--notes", "ours", "--json"))
    refused = run("create", "other", "30 9 * * *", "doubling", "21", "--reference-part", "policy=P-9")

    assert made["business_reference"] == {"key": "2027-1", "parts": {"policy": "P-9"}}
    assert changed["business_reference"] == kept["business_reference"] == {"key": "2027-2"}
    assert refused.exit_code == 2
    assert "Expected --business-reference with --reference-part" in refused.output
