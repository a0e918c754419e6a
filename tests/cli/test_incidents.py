"""`holdfast incidents`, `resolve-incident`, `variables` and `show`: what went wrong in a process, and its path."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast import Engine, activity
from holdfast.cli import main
from tests.engine.support.diagrams import make_waiting
from tests.eventually import eventually, eventually_blocking

Run = Callable[..., Result]

PROCESS = """<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="definitions" targetNamespace="http://example.com">
  <bpmn:process id="order" isExecutable="true">
    <bpmn:startEvent id="begin" name="Order placed"/>
    <bpmn:sequenceFlow id="f1" sourceRef="begin" targetRef="charge"/>
    <bpmn:serviceTask id="charge" name="Charge card">
      <bpmn:extensionElements><zeebe:taskDefinition type="charge-card" retries="1"/></bpmn:extensionElements>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="f2" sourceRef="charge" targetRef="end"/>
    <bpmn:endEvent id="end"/>
  </bpmn:process>
</bpmn:definitions>
"""


@activity("charge-card")
async def charge(total: int) -> None:
    raise ValueError(f"{total} is too much")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Calls commands on a database with a process whose card could not be charged."""
    path = tmp_path / "app.db"

    async def fill() -> None:
        async with Engine(f"sqlite:///{path}", activities=[charge]) as engine:
            await engine.deploy({"order.bpmn": PROCESS.encode()})
            for name in ("o", "p"):
                await engine.start("order", {"total": 7}, workflow_id=name)

            async def have_failed() -> bool:
                return await engine.count_incidents() == 2

            await eventually(have_failed)

    asyncio.run(fill())
    return lambda command, *rest: CliRunner().invoke(main, [command, str(path), *rest])


@contextmanager
def run_engine(path: Path) -> Iterator[None]:
    """An engine that owns a file, in a thread of its own."""
    is_open, may_end = threading.Event(), threading.Event()

    async def own() -> None:
        async with Engine(f"sqlite:///{path}", activities=[charge]):
            is_open.set()
            await asyncio.to_thread(may_end.wait)

    thread = threading.Thread(target=asyncio.run, args=(own(),))
    thread.start()
    try:
        assert is_open.wait(30)
        yield
    finally:
        may_end.set()
        thread.join()


def test_P10_incidents_are_listed_with_their_elements(run: Run) -> None:
    listed = json.loads(run("incidents", "--of", "o", "--json").stdout)
    lines = run("incidents").output.splitlines()
    page = json.loads(run("incidents", "--limit", "1", "--json").stdout)
    rest = json.loads(run("incidents", "--limit", "1", "--cursor", page["cursor"], "--json").stdout)

    [found] = listed["incidents"]
    assert (found["workflow_id"], found["element"], found["element_name"]) == ("o", "charge", "Charge card")
    assert (found["kind"], listed["cursor"]) == ("job", None)
    assert "7 is too much" in lines[1]
    assert len(lines) == 3
    assert {one["workflow_id"] for one in page["incidents"] + rest["incidents"]} == {"o", "p"}
    assert run("incidents", "--kind", "expression").output == "There are none.\n"


def test_show_tells_what_a_process_waits_for_and_its_path_by_names(run: Run) -> None:
    shown = run("show", "o").output

    assert "waits for somebody to correct what went wrong:" in shown
    assert "element entered    Order placed (begin)" in shown
    assert "flow taken         f1" in shown
    assert "variable set       total = 7" in shown
    assert "incident           Charge card (charge), job: " in shown
    assert "Order placed (begin)" in run("history", "o").output


def test_what_needs_a_process_that_runs_is_refused_without_one(run: Run) -> None:
    for command in (["variables", "o"], ["variables", "o", "--set", "total=1"], ["resolve-incident", "o"]):
        refused = run(*command)
        assert refused.exit_code == 1
        assert "no process owns the database file" in refused.output


def test_bad_options_are_refused(run: Run) -> None:
    assert run("incidents", "--of", "nobody").exit_code == 1
    assert run("incidents", "--cursor", "x").exit_code == 1
    assert run("resolve-incident", "o", "0").exit_code == 2
    assert run("resolve-incident", "o", "--var", "total=seven").exit_code == 2
    assert run("variables", "o", "--local").exit_code == 2


def test_resolving_is_refused_where_the_process_has_ended(run: Run, tmp_path: Path) -> None:
    with run_engine(tmp_path / "app.db"):
        found = json.loads(run("incidents", "--of", "o", "--json").stdout)["incidents"]
        for one in found:
            assert run("terminate", one["workflow_id"]).exit_code == 0
        refused = run("resolve-incident", "o", "--var", "total=120")

    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert "but it is terminated" in refused.stderr


def test_process_without_an_incident_keeps_its_variables(run: Run, tmp_path: Path) -> None:
    with run_engine(tmp_path / "app.db"):
        (tmp_path / "wait.bpmn").write_text(make_waiting("waiting"))
        assert run("deploy", str(tmp_path / "wait.bpmn")).exit_code == 0
        assert run("start", "waiting", '{"key": "7"}', "--id", "w").exit_code == 0
        refused = run("resolve-incident", "w", "--var", "total=120", "--request-id", "r")
        kept = json.loads(run("variables", "w").stdout)

    assert refused.exit_code == 1
    assert "but it has none, and nothing was changed" in refused.stderr
    assert "total" not in kept


def test_call_that_is_repeated_with_its_request_id_gets_the_first_answer(run: Run, tmp_path: Path) -> None:
    with run_engine(tmp_path / "app.db"):
        (tmp_path / "wait.bpmn").write_text(make_waiting("waiting"))
        assert run("deploy", str(tmp_path / "wait.bpmn")).exit_code == 0
        assert run("start", "waiting", "--id", "w").exit_code == 0  # its key is no text
        given = ("resolve-incident", "w", "--var", 'key="7"', "--request-id", "r")
        eventually_blocking(lambda: bool(json.loads(run("incidents", "--of", "w", "--json").stdout)["incidents"]))
        first = run(*given)
        eventually_blocking(lambda: not json.loads(run("incidents", "--of", "w", "--json").stdout)["incidents"])
        again, other = run(*given), run("resolve-incident", "w", "--request-id", "s")

    assert [one.exit_code for one in (first, again, other)] == [0, 0, 1]
    assert first.stdout == again.stdout


def test_start_of_an_unknown_name_tells_what_is_deployed(run: Run, tmp_path: Path) -> None:
    with run_engine(tmp_path / "app.db"):
        unknown = run("start", "ordr")
        signalled = run("signal-with-start", "k", "ordr", "--signal", "go")
        assert run("undeploy", "order").exit_code == 0
        gone = run("start", "order")

    assert [one.exit_code for one in (unknown, signalled, gone)] == [1, 1, 1]
    for one in (unknown, signalled):
        assert "but there is none of that name (code: none; deployed processes of org 'default': order)." in one.stderr
    assert "undeployed" in gone.stderr


def test_start_of_a_removed_process_says_that_it_was_undeployed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "wait.bpmn").write_text(make_waiting("waiting"))
    with run_engine(tmp_path / "app.db"):
        assert run("deploy", str(tmp_path / "wait.bpmn")).exit_code == 0
        assert run("undeploy", "waiting").exit_code == 0
    with run_engine(tmp_path / "app.db"):
        gone = run("start", "waiting")

    assert gone.exit_code == 1
    assert "undeployed" in gone.stderr
