"""Every command while the application runs, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.apps import App, Invoke, ask, run_app, wait_until


@pytest.fixture(scope="module")
def sqlite_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with run_app(tmp_path_factory.mktemp("app") / "app.db") as app:
        yield app


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest) -> Iterator[App]:
    """An application that runs."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_app")
    else:
        with run_app(request.getfixturevalue("postgres_url")) as app:
            yield app


def test_U1_every_command_works_while_the_application_runs(invoke: Invoke, app: App) -> None:
    db = app.database
    started = ask(invoke, "start", db, "approval", '"bob"', "--id", "a-1", "--metadata", "customer=bob")
    again = ask(invoke, "start", db, "approval", '"bob"', "--id", "a-1")
    assert started == {
        "org": "default",
        "workflow": "approval",
        "workflow_id": "a-1",
        "execution_id": started["execution_id"],
        "created": True,
    }
    assert (again["created"], again["execution_id"]) == (False, started["execution_id"])

    wait_until(invoke, app, "a-1", lambda info: info["status"] == "suspended")
    listed = ask(invoke, "list", db, "--metadata", "customer=bob", "--status", "suspended", "--id-prefix", "a-")
    assert [one["workflow_id"] for one in listed["executions"]] == ["a-1"]
    assert listed["cursor"] is None
    assert ask(invoke, "count", db, "--id", "a-1") == {"by_status": {"suspended": 1}, "total": 1, "is_exact": True}
    assert [one["queue"] for one in ask(invoke, "backlog", db)["queues"]]
    assert [one["state"] for one in ask(invoke, "nodes", db)["nodes"]] == ["alive"]
    assert ask(invoke, "history", db, "a-1")[0]["type"] == "workflow_started"
    assert invoke("check", db).exit_code == 0
    assert len(invoke("export", db, "a-1").stdout.splitlines()) == 1

    # A value that does not fit becomes a dead letter, which is requeued, and becomes one again.
    sent = ask(invoke, "signal", db, "a-1", "approve", "42")
    assert sent["execution_id"] == started["execution_id"]
    letters = wait_for_letter(invoke, app, after=0)
    assert json.loads(invoke("dead-letters", db, "requeue", letters, "--json").stdout) == {"requeued": 1}
    letter = wait_for_letter(invoke, app, after=letters)
    assert json.loads(invoke("dead-letters", db, "discard", letter, "--json").stdout) == {"discarded": 1}

    ask(invoke, "signal", db, "a-1", "approve", '"yes"')
    wait_until(invoke, app, "a-1", lambda info: info["status"] == "completed")
    assert invoke("tail", db, "a-1").stdout.splitlines()[-1].endswith('WorkflowCompleted      result="bob: yes"')


def wait_for_letter(invoke: Invoke, app: App, after: int) -> int:
    from tests.eventually import eventually_blocking

    def look() -> list[int]:
        found = json.loads(invoke("dead-letters", app.database, "list", "--json").stdout)["dead_letters"]
        return [one["id"] for one in found if one["id"] > after]

    return eventually_blocking(look)[0]


def test_cancel_terminate_and_retry_tell_what_they_did(invoke: Invoke, app: App) -> None:
    db = app.database
    for name in ("c", "t"):
        ask(invoke, "start", db, "approval", "--id", name)

    assert ask(invoke, "cancel", db, "c", "--reason", "no longer needed")["done"] is True
    assert ask(invoke, "terminate", db, "t", "--reason", "now")["done"] is True

    wait_until(invoke, app, "c", lambda info: info["status"] == "cancelled")
    wait_until(invoke, app, "t", lambda info: info["status"] == "terminated")
    for command, reason in (("cancel", "it is closed"), ("terminate", "it is closed"), ("retry", "it is not blocked")):
        result = invoke(command, db, "t")
        assert result.exit_code == 1
        assert reason in result.stderr
        assert invoke(command, db, "nobody").exit_code == 1


def test_signal_with_start_starts_once(invoke: Invoke, app: App) -> None:
    command = ["signal-with-start", app.database, "hop-1", "hops", "2", "--signal", "hop"]

    first, second = ask(invoke, *command, "--request-id", "one"), ask(invoke, *command, "--request-id", "one")

    assert first["created"] is True
    assert first == second


@pytest.mark.parametrize(
    ("workflow", "code", "status"), [("failing", 3, "failed"), ("approval", 4, "open"), ("echo", 0, "completed")]
)
def test_exit_code_of_a_wait_tells_how_it_ended(
    invoke: Invoke, sqlite_app: App, workflow: str, code: int, status: str
) -> None:
    result = invoke("start", sqlite_app.database, workflow, "--wait", "--timeout", "1s" if code == 4 else "1m", "--json")

    told = json.loads(result.stdout)
    assert (result.exit_code, told["status"]) == (code, status)
    if code == 3:
        assert told["error"] == {"type": "ValueError", "message": "out of stock", "details": None}
        assert "failed: ValueError: out of stock" in result.stderr
    elif code == 0:
        assert told["result"] == [None, None]


def test_values_come_as_json_as_text_from_files_and_from_standard_input(
    invoke: Invoke, sqlite_app: App, tmp_path: Path
) -> None:
    db = sqlite_app.database
    (tmp_path / "value.json").write_text('{"a": [1, 2.5, "é"]}')

    assert invoke("start", db, "echo", f"@{tmp_path / 'value.json'}", "-5", "--wait").stdout == '[{"a":[1,2.5,"é"]},-5]\n'
    assert invoke("start", db, "echo", "hello", "5", "--text", "--wait").stdout == '["hello","5"]\n'
    assert invoke("start", db, "echo", "-", "--wait", stdin="[true]").stdout == "[[true],null]\n"


BAD = [
    ["start", "echo", "hello"],
    ["start", "echo", "NaN"],
    ["start", "echo", "@/nowhere/at/all"],
    ["start", "echo", "-", "-"],
    ["start", "echo", "[" * 100_000],
    ["start", "echo", "--metadata", "customer"],
    ["start", "echo", "--metadata", "a=1", "--metadata", "a=2"],
    ["start", "echo", "--delay", "soon"],
    ["start", "echo", "--execution-timeout", "5"],
    ["start", "echo", "--timeout", "5s"],
    ["start", "echo", "--wiat"],
    ["start", "echo", "--on-open", "perhaps"],
    ["signal", "nobody", "approve", "yes"],
    ["list", "--created-after", "yesterday"],
    ["list", "--metadata", "=x"],
    ["count", "--status", "asleep"],
]
REFUSED = [
    ["start", "nope"],
    ["start", "echo", "1", "2", "3"],
    ["start", "approval", "42"],
    ["start", "echo", "--id", ""],
    ["signal", "nobody", "approve"],
    ["show", "nobody"],
    ["history", "nobody"],
    ["tail", "nobody"],
    ["list", "--cursor", "x"],
    ["list", "--cursor", "h1.a", "--before", "b"],
    ["dead-letters", "discard", "4711"],
]


@pytest.mark.parametrize(("command", "code"), [*((one, 2) for one in BAD), *((one, 1) for one in REFUSED)])
def test_bad_input_is_refused_and_nothing_changes(invoke: Invoke, sqlite_app: App, command: list[str], code: int) -> None:
    before = ask(invoke, "count", sqlite_app.database)

    result = invoke(command[0], sqlite_app.database, *command[1:], stdin="1")

    assert result.exit_code == code, result.output
    assert "Expected" in result.stderr or "Invalid value" in result.stderr
    assert "Traceback" not in result.output
    assert ask(invoke, "count", sqlite_app.database) == before


def test_V2_show_asks_the_owner_what_only_it_knows(invoke: Invoke, sqlite_app: App) -> None:
    db = sqlite_app.database
    for name in ("paying", "rendering", "order"):
        ask(invoke, "start", db, name, "--id", name, "--header", "trace=abc", "--execution-timeout", "2d")
    wait_until(invoke, sqlite_app, "paying", lambda info: info["waiting_kind"] == "retry")

    paying, rendering, order = (invoke("show", db, name).output for name in ("paying", "rendering", "order"))

    assert "charge ann" in paying
    assert "ValueError: no card for 7 (caused by KeyError: 'card')" in paying
    assert "times out at" in paying
    assert 'headers         {"trace":"abc"}' in paying
    assert "attempt   " not in paying.split("waits for activities")[0]
    assert "no node offers it" in rendering
    assert "ask the boss" in order
    assert "--module" not in paying + rendering + order  # the owner has the code
    delayed = ask(invoke, "start", db, "echo", "--delay", "2h", "--id", "later")
    assert delayed["created"]
    assert "start at 2" in invoke("list", db, "--id", "later").output
    assert "waits for" not in invoke("show", db, "later").output


def test_frozen_owner_does_not_keep_commands_from_reading(invoke: Invoke, tmp_path: Path) -> None:
    with run_app(tmp_path / "app.db") as app:
        ask(invoke, "start", app.database, "approval", "--id", "a")
        wait_until(invoke, app, "a", lambda info: info["status"] == "suspended")
        os.kill(app.process.pid, signal.SIGSTOP)
        try:
            listed, shown = invoke("list", app.database), invoke("show", app.database, "a")
            others = [
                invoke(group, app.database, *rest)
                for group, *rest in [("tasks",), ("schedules", "list"), ("pauses",), ("stale",), ("events", "list", "Paid")]
            ]
            refused = invoke("tasks", app.database, "--cursor", "none")
        finally:
            os.kill(app.process.pid, signal.SIGCONT)

    assert (listed.exit_code, shown.exit_code) == (0, 0)
    assert "signal approve" in listed.stdout
    assert "no living node" not in listed.stdout + shown.stdout
    assert "does not answer; this is what the file says" in shown.stderr
    assert [one.exit_code for one in others] == [0] * len(others), [one.output for one in others]
    assert all("does not answer; this is what the file says" in one.stderr for one in others)
    assert "does not answer" not in refused.stderr
    assert "Expected a cursor" in refused.stderr


def test_blocked_execution_is_shown_and_retried_after_a_fix(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    with run_app(database) as app:
        ask(invoke, "start", database, "steps", "--id", "s")
        wait_until(invoke, app, "s", lambda info: info["status"] == "suspended")
    with run_app(database, "changed") as app:
        ask(invoke, "signal", database, "s", "go")
        wait_until(invoke, app, "s", lambda info: info["status"] == "blocked")
        shown = invoke("show", database, "s").output
        listed = invoke("list", database).output
        told = json.loads(invoke("show", database, "s", "--json").stdout)
        waited = invoke("start", database, "steps", "--id", "s", "--wait")
        assert invoke("retry", database, "s", "--request-id", "r").exit_code == 0
    with run_app(database) as app:
        wait_until(invoke, app, "s", lambda info: info["status"] == "completed")
        assert invoke("retry", database, "s", "--request-id", "r").exit_code == 0, "the answer of the first call"

    assert "blocked since" in shown
    assert "a retry, after NonDeterminismError" in listed
    assert told["blocked_since"] >= told["created_at"]
    assert "waiting in its inbox" in shown
    assert waited.exit_code == 5, waited.output


def test_verbs_own_a_file_that_nobody_owns(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    run_once(database)

    started = ask(invoke, "start", database, "approval", "--id", "a")
    ask(invoke, "signal", database, "a", "approve", '"yes"')
    assert ask(invoke, "list", database)["executions"][0]["execution_id"] == started["execution_id"]
    assert not (tmp_path / "app.db.owner").exists()

    with run_app(database) as app:
        wait_until(invoke, app, "a", lambda info: info["status"] == "completed")


def run_once(database: Path) -> None:
    with run_app(database):
        pass  # it makes the file


def test_an_unknown_workflow_is_told_to_who_types_the_command(invoke: Invoke, sqlite_app: App) -> None:
    started = invoke("start", sqlite_app.database, "nobody")
    signalled = invoke("signal-with-start", sqlite_app.database, "x", "nobody", "--signal", "s")
    other_version = invoke("start", sqlite_app.database, "echo", "--version", "7")

    assert (started.exit_code, signalled.exit_code, other_version.exit_code) == (1, 1, 1)
    assert started.stderr == signalled.stderr
    assert (
        "Expected a workflow or process 'nobody' that can be started, but there is none of that name (code: appr"
        in started.stderr
    )
    assert "version '7' of workflow 'echo', but it has not (it has: one without a name)" in other_version.stderr
    assert "Engine(" not in started.stderr + other_version.stderr


def test_options_are_options_whatever_the_parameters_of_a_workflow_are_called(invoke: Invoke, app: App) -> None:
    """Commands cannot mean arguments by them, and give each call a request id."""
    options = ["--id", "n-1", "--delay", "0s", "--org", "acme", "--wait"]

    assert invoke("start", app.database, "options_as_names", "7", *options).stdout == '[7,"","none"]\n'
    assert invoke("start", app.database, "options_as_names", "--request-id", "r").exit_code == 0
    sent = ask(invoke, "signal-with-start", app.database, "n-2", "options_as_names", "--signal", "go")
    assert sent["created"]
    refused = invoke("start", app.database, "options_as_names", '"x"')
    assert "Expected parameter 'delay' of workflow 'options_as_names'" in refused.output
