from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from holdfast.core.codec import import_history

Invoke = Callable[..., Result]

FITTING = """
from holdfast import Context, activity, workflow

@activity
async def double(number: int) -> int:
    return number * 2

@workflow
async def doubling(ctx: Context, number: int) -> int:
    return await ctx.run(double, number)
"""


@pytest.fixture
def exported(invoke: Invoke, database: Path, tmp_path: Path) -> Path:
    path = tmp_path / "done.json"
    path.write_text(invoke("history", database, "done", "--json").output)
    return path


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to run in, from which modules are imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_exported_history_is_json_that_can_be_read_back(exported: Path) -> None:
    items = json.loads(exported.read_text())

    turns = import_history(items)
    assert [item["sequence"] for item in items] == [1, 2, 3, 4]
    assert sum(len(turn.events) for turn in turns) == 4


def test_exported_history_has_one_line_per_event(exported: Path) -> None:
    assert len(exported.read_text().splitlines()) == 4 + 2


def test_history_without_json_is_a_table(invoke: Invoke, database: Path) -> None:
    output = invoke("history", database, "done").output

    assert "ActivityScheduled" in output
    assert 'name="double"' in output


def test_replay_against_the_same_code_is_ok(invoke: Invoke, exported: Path, in_folder: Path) -> None:
    (in_folder / "app_fitting.py").write_text(FITTING)

    result = invoke("replay", exported, "--module", "app_fitting")

    assert result.output == "ok: 4 events replayed, the code fits.\n"
    assert result.exit_code == 0


def test_replay_against_other_code_fails_and_shows_the_difference(invoke: Invoke, exported: Path, in_folder: Path) -> None:
    changed = FITTING.replace("double(number", "triple(number").replace("ctx.run(double", "ctx.run(triple")
    (in_folder / "app_changed.py").write_text(changed)

    result = invoke("replay", exported, "--module", "app_changed")

    assert result.exit_code == 1
    assert "double" in result.stderr
    assert "triple" in result.stderr


def test_replay_without_the_workflow_names_it(invoke: Invoke, exported: Path, in_folder: Path) -> None:
    (in_folder / "app_other.py").write_text(FITTING.replace("doubling", "another"))

    result = invoke("replay", exported, "--module", "app_other")

    assert result.exit_code == 1
    assert "doubling" in result.stderr


def test_module_that_cannot_be_imported_is_an_error(invoke: Invoke, exported: Path) -> None:
    result = invoke("replay", exported, "--module", "no.such.module")

    assert result.exit_code == 1
    assert "no.such.module" in result.stderr


def test_module_without_workflows_is_an_error(invoke: Invoke, exported: Path) -> None:
    result = invoke("replay", exported, "--module", "json")

    assert result.exit_code == 1
    assert "it has none" in result.stderr


@pytest.mark.parametrize("content", [b"not json", b'{"an": "object"}', b"[1, 2]", b'[{"type": "x"}]', b"\xff\xfe"])
def test_file_that_is_no_history_is_an_error(invoke: Invoke, in_folder: Path, content: bytes) -> None:
    (in_folder / "app_good.py").write_text(FITTING)
    path = in_folder / "history.json"
    path.write_bytes(content)

    result = invoke("replay", path, "--module", "app_good")

    assert result.exit_code == 1
    assert "Expected" in result.stderr
