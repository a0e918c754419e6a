"""`--json` of the commands that care for a database: one document on standard output, and the same exit codes as without."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from holdfast.cli import COMMANDS

Invoke = Callable[..., Result]
WITHOUT = {"demo", "simulate", "export", "dmn", "dead-letters", "events", "schedules", "task", "render"}
"""Commands about no database, one that prints lines of JSON in any case, groups, and one that draws."""


def read(result: Result) -> Any:
    [line] = result.stdout.splitlines()
    return json.loads(line)


def test_every_command_about_a_database_has_it() -> None:
    lacking = [one.name for one in COMMANDS if not any("--json" in param.opts for param in one.params)]

    assert set(lacking) <= WITHOUT


def test_check(invoke: Invoke, database: Path) -> None:
    result = invoke("check", database, "--json")

    assert result.exit_code == 0
    counts = {"executions": {"suspended": 2}, "timers": 2, "inbox": 0, "dead_letters": 1}
    assert read(result) == {"is_ok": True, "problems": [], "newer": [], "counts": counts}

    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM events WHERE first = 1")
    result = invoke("check", database, "--json")

    assert result.exit_code == 1
    assert not read(result)["is_ok"]
    assert len(read(result)["problems"]) > 0
    assert "Restore it from a backup" in result.stderr


def test_purge_export_and_import(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text(invoke("export", database).stdout)

    first = invoke("import", tmp_path / "new.db", tmp_path / "all.jsonl", "--json")
    again = invoke("import", tmp_path / "new.db", tmp_path / "all.jsonl", "--json", "--skip-existing")
    refused = invoke("import", tmp_path / "new.db", tmp_path / "all.jsonl", "--json")

    assert (read(first), read(again)) == ({"imported": 3, "skipped": 0}, {"imported": 0, "skipped": 3})
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert read(invoke("purge", database, "--older-than", "0s", "--json")) == {"removed": 2}


def test_transfer(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    first = invoke("transfer", database, tmp_path / "new.db", "--json")
    again = invoke("transfer", database, tmp_path / "new.db", "--json")

    assert first.exit_code == again.exit_code == 0
    assert read(first)["rows"]["executions"]["rows"] == 4
    assert read(again) == {"was_done_before": True, "rows": {}}


@pytest.mark.parametrize("is_file", [True, False])
def test_replay(invoke: Invoke, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_file: bool) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    head = "from holdfast import Context, workflow\n@workflow\nasync def waiting(ctx: Context) -> str:\n"
    (tmp_path / f"json_fits_{is_file}.py").write_text(
        f"{head}    return await ctx.wait_for_signal('word', str, timeout=3600)\n"
    )
    (tmp_path / f"json_differs_{is_file}.py").write_text(f"{head}    await ctx.sleep(5)\n    return ''\n")
    source = database
    if is_file:
        source = tmp_path / "open.json"
        source.write_text(invoke("history", database, "open", "--json").output)

    fits = invoke("replay", source, "--module", f"json_fits_{is_file}", "--json")
    differs = invoke("replay", source, "--module", f"json_differs_{is_file}", "--json")

    assert (fits.exit_code, differs.exit_code) == (0, 1)
    assert (read(fits)["is_ok"], read(fits)["executions"]) == (True, 1)
    assert not read(differs)["is_ok"]
    assert read(differs)["disagreements"][0]["failure"] == "NonDeterminismError"
    assert "Error: Expected" in differs.stderr
