"""`holdfast deploy`, `undeploy`, `enable`, `disable`, `definitions` and `run`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast import Engine
from holdfast.cli import main
from tests.engine.support.diagrams import make_diagram, make_file, make_process, make_waiting

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a diagram, and one that cannot be deployed."""
    (tmp_path / "order.bpmn").write_text(make_diagram())
    (tmp_path / "bad.bpmn").write_text("<a/>")
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Calls a command on an empty database."""
    path = folder / "app.db"

    async def fill() -> None:
        async with Engine(f"sqlite:///{path}"):
            pass

    asyncio.run(fill())
    return lambda command, *rest: CliRunner().invoke(main, [command, str(path), *map(str, rest)])


def test_files_are_deployed_and_listed(run: Run, folder: Path) -> None:
    assert run("definitions").output == "Nothing of org 'default' is deployed.\n"

    first = run("deploy", folder / "order.bpmn")
    again = json.loads(run("deploy", folder / "order.bpmn", "--json").stdout)
    listed = json.loads(run("definitions", "--json").stdout)

    assert first.output == "bpmn order version 1\n"
    assert [(one["id"], one["version"], one["is_new"]) for one in again["definitions"]] == [("order", 1, False)]
    assert [(one["id"], one["state"]) for one in listed["definitions"]] == [("order", "active")]
    assert "order" in run("definitions").output


def test_each_definition_of_several_files_is_a_line(run: Run, folder: Path) -> None:
    (folder / "more.bpmn").write_text(make_file(make_process("one"), make_process("two")))

    done = run("deploy", folder / "order.bpmn", folder / "more.bpmn")

    assert done.exit_code == 0
    assert sorted(done.stdout.splitlines()) == ["bpmn one version 1", "bpmn order version 1", "bpmn two version 1"]


@pytest.mark.parametrize("name", ["nowhere.bpmn", "", "x" * 300])
def test_file_that_cannot_be_read_is_bad_usage(run: Run, folder: Path, name: str) -> None:
    deployed = run("deploy", folder / "order.bpmn", folder / name)
    started = CliRunner().invoke(main, ["run", str(folder / name)])

    assert (deployed.exit_code, started.exit_code) == (2, 2)
    assert "Expected a file at" in deployed.stderr
    assert "Expected a file at" in started.stderr
    assert run("definitions").output == "Nothing of org 'default' is deployed.\n"


def test_every_problem_is_a_line_and_nothing_is_deployed(run: Run, folder: Path) -> None:
    (folder / "worse.bpmn").write_text("no xml")

    refused = run("deploy", folder / "order.bpmn", folder / "bad.bpmn", folder / "worse.bpmn")
    as_json = run("deploy", folder / "bad.bpmn", "--json")

    lines = refused.stdout.splitlines()
    assert refused.exit_code == 1
    assert [line.partition(":")[0] for line in lines] == ["bad.bpmn", "worse.bpmn"]
    assert "Nothing was deployed" in refused.stderr
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["problems"][0]["file"] == "bad.bpmn"
    assert run("definitions").output == "Nothing of org 'default' is deployed.\n"


def test_states_change(run: Run, folder: Path) -> None:
    run("deploy", folder / "order.bpmn")

    texts = [run(command, "order").output for command in ("disable", "enable", "undeploy", "undeploy")]
    unknown = run("undeploy", "other")

    assert texts == [
        "Process 'order' is disabled.\n",
        "Process 'order' is enabled.\n",
        "Process 'order' is undeployed.\n",
        "Process 'order' was undeployed before; nothing has changed.\n",
    ]
    assert unknown.exit_code == 1
    assert "Expected org 'default' to have bpmn 'other'" in unknown.output


def test_a_process_runs_in_memory_and_shows_its_path(folder: Path) -> None:
    shown = CliRunner().invoke(main, ["run", str(folder / "order.bpmn"), "--var", "total=120", "--var", "name=ann"])
    as_json = CliRunner().invoke(main, ["run", str(folder / "order.bpmn"), "--var", "total=120", "--json"])

    assert shown.exit_code == 0, shown.output
    assert [line.strip() for line in shown.output.splitlines() if "entered" in line] == [
        f"entered {element}" for element in ("order", "begin", "work", "end")
    ]
    assert shown.output.endswith('completed: {"total":120,"name":"ann","said":"one"}\n')
    assert json.loads(as_json.stdout) == {"total": 120, "said": "one"}


@pytest.mark.parametrize("given", ["total", "=120", "no/such.json"])
def test_variable_that_is_neither_a_pair_nor_a_file_is_refused(folder: Path, given: str) -> None:
    refused = CliRunner().invoke(main, ["run", str(folder / "order.bpmn"), "--var", given])

    assert refused.exit_code == 2
    assert f"but '{given}' is neither" in " ".join(refused.stderr.split())


def test_variables_may_come_from_a_file_with_numbers_as_numbers(folder: Path) -> None:
    (folder / "given.json").write_text('{"total": 7, "rate": 0.5}')

    ran = CliRunner().invoke(
        main,
        ["run", str(folder / "order.bpmn"), "--var", str(folder / "given.json"), "--var", "-", "--json"],
        input='{"names": ["ann"]}',
    )
    refused = CliRunner().invoke(main, ["run", str(folder / "order.bpmn"), "--var", "-"], input="[1]")

    assert json.loads(ran.stdout) == {"total": 7, "rate": 0.5, "names": ["ann"], "said": "one"}
    assert refused.exit_code == 2
    assert "to hold a JSON object" in refused.stderr


def test_a_process_that_waits_ends_the_command_with_a_code_of_its_own(folder: Path) -> None:
    (folder / "wait.bpmn").write_text(make_waiting())

    waits = CliRunner().invoke(main, ["run", str(folder / "wait.bpmn"), "--var", 'key="7"', "--timeout", "300ms"])
    incident = CliRunner().invoke(main, ["run", str(folder / "wait.bpmn")])

    assert waits.exit_code == 4
    assert incident.exit_code == 4
    assert "incident" in incident.output


def test_one_of_several_processes_is_named(folder: Path) -> None:
    (folder / "two.bpmn").write_text(make_file(make_process("one"), make_process("two", says="second")))

    unnamed = CliRunner().invoke(main, ["run", str(folder / "two.bpmn")])
    named = CliRunner().invoke(main, ["run", str(folder / "two.bpmn"), "--process", "two", "--json"])

    assert unnamed.exit_code == 2
    assert "several" in unnamed.output
    assert json.loads(named.stdout) == {"said": "second"}
