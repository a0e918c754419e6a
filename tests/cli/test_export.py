"""`holdfast export` and `holdfast import`: executions as lines of JSON."""

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
from tests.cli.conftest import double, doubling, failing, waiting

Invoke = Callable[..., Result]


def read_lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def ids(lines: list[dict[str, Any]]) -> list[str]:
    return [line["row"]["workflow_id"] for line in lines]


@pytest.fixture
def exported(invoke: Invoke, database: Path, tmp_path: Path) -> Path:
    """Every execution of the default org."""
    path = tmp_path / "all.jsonl"
    path.write_text(invoke("export", database).stdout)
    return path


# --- out ------------------------------------------------------------------------------------------------------------------


def test_each_execution_is_a_line_and_the_oldest_comes_first(invoke: Invoke, database: Path) -> None:
    lines = read_lines(invoke("export", database))

    assert ids(lines) == ["done", "open", "broken"]
    assert [event["type"] for event in lines[0]["history"]] == [
        "workflow_started",
        "activity_scheduled",
        "activity_completed",
        "workflow_completed",
    ]
    assert [timer["number"] for timer in lines[1]["timers"]] == [1]
    assert lines[1]["details"]["waiting"]["kind"] == "signal"


def test_targets_statuses_and_orgs_choose(invoke: Invoke, database: Path) -> None:
    by_id = read_lines(invoke("export", database, "broken", "done"))
    execution_id = by_id[0]["row"]["execution_id"]

    assert ids(by_id) == ["done", "broken"]
    assert ids(read_lines(invoke("export", database, execution_id))) == ["done"]
    assert ids(read_lines(invoke("export", database, "--status", "failed", "--status", "suspended"))) == ["open", "broken"]
    assert ids(read_lines(invoke("export", database, "done", "open", "--status", "suspended"))) == ["open"]
    assert ids(read_lines(invoke("export", database, "--org", "acme"))) == ["elsewhere"]
    assert read_lines(invoke("export", database, "--org", "nobody")) == []


def test_a_target_that_is_not_there_is_an_error_and_nothing_is_printed(invoke: Invoke, database: Path) -> None:
    result = invoke("export", database, "done", "nobody")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Expected to export execution 'nobody'" in result.stderr


def test_what_cannot_be_read_is_left_out_and_told(invoke: Invoke, database: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE events SET body = x'00' WHERE execution = 1")

    result = invoke("export", database)

    assert result.exit_code == 1
    assert [json.loads(line)["row"]["workflow_id"] for line in result.stdout.splitlines()] == ["open", "broken"]
    assert "left out: execution " in result.stderr
    assert "1 execution cannot be read" in result.stderr


# --- in -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_what_is_imported_is_the_same_and_goes_on(
    request: pytest.FixtureRequest, invoke: Invoke, exported: Path, tmp_path: Path, kind: str
) -> None:
    target = f"sqlite:///{tmp_path / 'new.db'}" if kind == "sqlite" else request.getfixturevalue("postgres_url")

    result = await asyncio.to_thread(invoke, "import", target, exported)

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("ok: 3 executions imported into ")
    again = await asyncio.to_thread(invoke, "export", target)
    assert again.stdout == exported.read_text()
    async with Engine(target, workflows=[doubling, waiting, failing], activities=[double]) as engine:
        await engine.signal_workflow("open", "word", "hello")
        assert await engine.handle("open").result() == "hello"
        assert await engine.handle("done").result() == 42
        assert await engine.store.check() == []


def test_standard_input_is_taken_too(database: Path, exported: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["import", str(tmp_path / "new.db"), "-"], input=exported.read_bytes())

    assert result.stdout == f"ok: 3 executions imported into {tmp_path / 'new.db'}.\n", result.output


def test_what_exists_is_refused_or_skipped(invoke: Invoke, database: Path, exported: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.db"
    lines = exported.read_text().splitlines()
    (tmp_path / "one.jsonl").write_text(lines[0] + "\n\n")
    invoke("import", new, tmp_path / "one.jsonl")

    refused = invoke("import", new, exported)
    skipped = invoke("import", new, exported, "--skip-existing")

    assert refused.exit_code == 1
    assert "Expected line 1 to hold an execution that is new here, but " in refused.stderr
    assert skipped.stdout == f"ok: 2 executions imported into {new}; 1 execution skipped, which exist.\n"
    assert len(read_lines(invoke("export", new))) == 3


def test_a_workflow_id_that_is_open_is_refused(invoke: Invoke, database: Path, exported: Path) -> None:
    changed = json.loads(exported.read_text().splitlines()[0])
    fresh = "01a1e1e8-07ea-7ea7-92c9-05726dbd08ff"
    changed["row"] |= {"execution_id": fresh, "workflow_id": "open"}
    changed["history"][0]["workflow_id"] = "open"
    exported.write_text(json.dumps(changed))

    result = invoke("import", database, exported)

    assert result.exit_code == 1
    assert "another one is open under its workflow id 'open'" in result.stderr


def drop(*path: str | int) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        for key in path[:-1]:
            value = value[key]
        del value[path[-1]]

    return change


def put(new: Any, *path: str | int) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] = new

    return change


BAD: dict[str, tuple[Callable[[Any], None], str]] = {
    "no row": (drop("row"), "row"),
    "no field": (drop("row", "queue"), "`queue` - at `$.row`"),
    "no history": (drop("history"), "`history`"),
    "no timers": (drop("timers"), "`timers`"),
    "another field": (put(1, "row", "colour"), "`colour` - at `$.row`"),
    "another thing": (put("diary", "holdfast"), "`$.holdfast`"),
    "a newer version": (put(3, "version"), "newer Holdfast - at `$.version`"),
    "no version": (drop("version"), "`version`"),
    "newer events": (put(99, "schema"), "schema 99"),
    "a wrong type": (put("many", "row", "sequence"), "`$.row.sequence`"),
    "a number too large": (put(2**63, "row", "state_version"), "`$.row.state_version`"),
    "an id of ours that is none": (put("x", "row", "execution_id"), "`$.row.execution_id`"),
    "a NUL": (put("a\0b", "row", "queue"), "`$.row.queue`"),
    "an id with a line break": (put("a\nb", "row", "workflow_id"), "$.row.workflow_id"),
    "no such status": (put("asleep", "row", "status"), "`$.row.status`"),
    "a status that does not fit": (put("completed", "row", "status"), "`$.row.closed_at`"),
    "a time without a zone": (put("2026-01-01T00:00:00", "row", "created_at"), "`$.row.created_at`"),
    "details that are none": (put([], "details"), "`$.details`"),
    "an event too few": (drop("history", -1), "`$.row.sequence`"),
    "an event missing": (drop("history", 0), "`$.history`"),
    "an event of no kind": (put("dreamt", "history", 0, "type"), "`$.history`"),
    "a turn that begins elsewhere": (put(2, "history", 0, "turn"), "`$.history`"),
    "the start of another": (put("other", "history", 0, "workflow_id"), "`$.history[0]`"),
    "a timer too few": (put([], "timers"), "`$.timers`"),
    "an envelope that is half there": (put([{"body": {}}], "inbox"), "`$.inbox[0]`"),
    "an envelope for another": (
        put([{"execution_id": "x", "workflow_id": "", "attempts": 0, "route": "", "body": {}}], "inbox"),
        "`$.inbox[0]`",
    ),
    "a body that is nothing": (
        put([{"execution_id": "", "workflow_id": "open", "attempts": 0, "route": "", "body": "no base64!"}], "inbox"),
        "base64",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_line_that_is_not_right_is_refused_by_number_and_field(
    invoke: Invoke, exported: Path, tmp_path: Path, what: str
) -> None:
    change, field = BAD[what]
    first, second, _ = exported.read_text().splitlines()
    line = json.loads(second)
    change(line)
    exported.write_text(f"{first}\n{json.dumps(line)}\n")

    result = invoke("import", tmp_path / "new.db", exported)

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Expected line 2 to hold an execution as `holdfast export` writes it, but ")
    assert field in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("content", ["no json", "[]", "{}", '{"holdfast": "execution"', "[" * 100_000, "\0"])
def test_a_file_of_something_else_is_refused(invoke: Invoke, tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.jsonl").write_text(content)

    result = invoke("import", tmp_path / "new.db", tmp_path / "bad.jsonl")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Expected line 1 ")
    assert not (tmp_path / "new.db").exists()


def test_bytes_that_are_no_text_are_refused(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b'{"holdfast": "\xff"}')

    assert invoke("import", tmp_path / "new.db", tmp_path / "bad.jsonl").exit_code == 1


def test_a_file_that_is_not_there_is_a_usage_error(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("import", tmp_path / "new.db", tmp_path / "none.jsonl").exit_code == 2
