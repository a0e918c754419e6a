from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from holdfast.cli.nodes import COLUMNS as NODE_COLUMNS
from holdfast.cli.searches import COLUMNS as SEARCH_COLUMNS
from holdfast.cli.tables import leave_out
from holdfast.core import codec, payloads
from holdfast.core.envelopes import Signal
from holdfast.store.rows import InboxRow
from holdfast.store.sqlite import SqliteStore

Invoke = Callable[..., Result]


def ids(result: Result) -> list[str]:
    """The workflow ids that were listed, in order."""
    assert result.exit_code == 0, result.output
    return [line.split()[0] for line in result.stdout.splitlines()[1:] if line.strip()]


def test_list_shows_the_newest_first(invoke: Invoke, database: Path) -> None:
    assert ids(invoke("list", database)) == ["broken", "open", "done"]


def test_list_can_be_narrowed_to_statuses(invoke: Invoke, database: Path) -> None:
    assert ids(invoke("list", database, "--status", "completed")) == ["done"]
    assert ids(invoke("list", database, "--status", "completed", "--status", "failed")) == ["broken", "done"]


def test_list_can_be_narrowed_to_a_workflow(invoke: Invoke, database: Path) -> None:
    assert ids(invoke("list", database, "--workflow", "waiting")) == ["open"]


def test_list_shows_one_org_at_a_time(invoke: Invoke, database: Path) -> None:
    assert ids(invoke("list", database, "--org", "acme")) == ["elsewhere"]


def test_list_in_pages_shows_everything_once(invoke: Invoke, database: Path) -> None:
    first = invoke("list", database, "--limit", 2)
    cursor = first.stderr.split()[-1]
    second = invoke("list", database, "--limit", 2, "--cursor", cursor)
    before = invoke("list", database, "--limit", 2, "--before", cursor.removeprefix("h1."))

    assert ids(first) + ids(second) == ["broken", "open", "done"]
    assert second.stderr == ""
    assert ids(before) == ids(second)
    assert ids(invoke("list", database, "--limit", 1, "--all"))[::2] == ["broken", "open", "done"]


def test_list_of_nothing_says_so(invoke: Invoke, database: Path) -> None:
    assert invoke("list", database, "--org", "nobody").output == "There are none.\n"


def test_each_execution_is_one_line_in_a_pipe(invoke: Invoke, database: Path) -> None:
    lines = invoke("list", database).stdout.splitlines()

    (line,) = (line for line in lines if line.startswith("open"))
    assert "waiting" in line
    assert "suspended" in line


def test_no_line_in_a_pipe_ends_with_blanks(invoke: Invoke, database: Path) -> None:
    for command in (["list", database], ["show", database, "done"], ["show", database, "open"], ["nodes", database]):
        lines = invoke(*command).stdout.splitlines()
        assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize(
    "options", [["--status", "asleep"], ["--limit", "0"], ["--limit", "many"], ["--colour"]], ids=" ".join
)
def test_bad_options_are_usage_errors(invoke: Invoke, database: Path, options: list[str]) -> None:
    assert invoke("list", database, *options).exit_code == 2


def test_show_gives_status_and_history_by_workflow_id(invoke: Invoke, database: Path) -> None:
    output = invoke("show", database, "done").output

    assert "completed" in output
    kinds = ["WorkflowStarted", "ActivityScheduled", "ActivityCompleted", "WorkflowCompleted"]
    assert [line.split()[3] for line in output.splitlines() if line.strip()[:2] in {"1 ", "2 ", "3 ", "4 "}] == kinds


def test_show_finds_an_execution_by_its_own_id(invoke: Invoke, database: Path) -> None:
    line = next(line for line in invoke("list", database).stdout.splitlines() if line.startswith("done"))

    assert "workflow id" in invoke("show", database, line.split()[-1]).output


def test_show_cannot_be_used_to_steer_the_terminal(invoke: Invoke, database: Path) -> None:
    output = invoke("show", database, "broken").output

    assert "\x1b" not in output
    assert "[red]colour" in output


def test_unknown_id_is_an_error_with_a_remedy(invoke: Invoke, database: Path) -> None:
    result = invoke("show", database, "nobody")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Expected to find execution 'nobody'" in result.stderr
    assert "holdfast list" in result.stderr


def test_show_tells_what_waits_in_the_inbox_of_an_execution(invoke: Invoke, database: Path) -> None:
    async def put_in() -> None:
        store = SqliteStore(database)
        await store.open()
        row = await store.find_latest("default", "open")
        assert row is not None
        signal = codec.encode(Signal(name="late", value=payloads.encode(7, "a value")))
        await store.deliver([InboxRow("default", row.execution_id, "", signal)])
        await store.close()

    assert "waiting in its inbox" not in invoke("show", database, "open").output
    asyncio.run(put_in())

    shown = invoke("show", database, "open").output

    assert "waiting in its inbox" in shown
    assert '"name":"late"' in shown


@pytest.mark.parametrize("columns", [SEARCH_COLUMNS, NODE_COLUMNS])
def test_narrow_terminal_keeps_the_columns_that_tell_the_trouble(columns: tuple[str, ...]) -> None:
    rows = [["x" * (36 if name.endswith("id") or name == "node" else 12) for name in columns]]

    kept, cells = leave_out(columns, rows, 80)

    assert {"status", "state"} & set(kept)
    assert {"waits for", "seen"} & set(kept)
    assert [len(row) for row in cells] == [len(kept)]
    assert leave_out(columns, rows, 400) == (list(columns), rows)
