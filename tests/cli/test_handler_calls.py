"""`holdfast query` and `holdfast update`: what they print, and what they refuse, while an application runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.apps import App, Invoke, ask, run_app, wait_until


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Iterator[App]:
    """An application with an open basket and a closed one."""
    with run_app(tmp_path_factory.mktemp("app") / "app.db") as app:
        for name in ("b", "closed"):
            ask(invoke, "start", app.database, "basket", "--id", name)
            wait_until(invoke, app, name, lambda info: info["status"] == "suspended")
        ask(invoke, "update", app.database, "closed", "add", '"tea"')
        ask(invoke, "signal", app.database, "closed", "pay")
        wait_until(invoke, app, "closed", lambda info: info["status"] == "completed")
        yield app


def test_Q1_query_prints_the_answer_and_changes_nothing(invoke: Invoke, app: App) -> None:
    before = ask(invoke, "show", app.database, "b")

    assert invoke("query", app.database, "closed", "items").stdout == '["tea"]\n'
    assert invoke("query", app.database, "b", "price", '"pear"', "-3").stdout == '"pear: -3"\n'
    assert invoke("query", app.database, "b", "price", "-", "3", stdin='"fig"').stdout == '"fig: 3"\n'
    told = ask(invoke, "query", app.database, "closed", "items", "--timeout", "60")
    assert told == {"org": "default", "target": "closed", "query": "items", "answer": ["tea"]}
    assert ask(invoke, "show", app.database, "b") == before


def test_U6_update_prints_the_result_and_counts_once_by_its_request_id(invoke: Invoke, app: App, tmp_path: Path) -> None:
    db = app.database
    (tmp_path / "value.json").write_text('"rice"')
    ask(invoke, "start", db, "basket", "--id", "u")
    wait_until(invoke, app, "u", lambda info: info["status"] == "suspended")

    first = ask(invoke, "update", db, "u", "add", '"pear"', "--request-id", "r", "--header", "trace=abc", "--timeout", "60")
    again = ask(invoke, "update", db, "u", "add", '"pear"', "--request-id", "r")

    assert first == again == {"org": "default", "target": "u", "update": "add", "result": ["pear"]}
    assert invoke("update", db, "u", "add", "5", "--text").stdout == '["pear","5"]\n'
    assert invoke("update", db, "u", "add", f"@{tmp_path / 'value.json'}").stdout == '["pear","5","rice"]\n'
    assert invoke("update", db, "u", "clear").stdout == "null\n"
    assert ask(invoke, "query", db, "u", "items")["answer"] == []


BAD = [
    (["query", "b"], "Missing argument 'NAME'"),
    (["query", "b", "price", "pear", "3"], "Invalid value"),
    (["query", "b", "items", "--timeout", "-1"], "--timeout"),
    (["query", "b", "items", "--timeout", "soon"], "--timeout"),
    (["update", "b", "add", "pear"], "Invalid value"),
    (["update", "b", "add", '"a"', '"b"'], "unexpected extra argument"),
    (["update", "b", "add", '"a"', "--header", "trace"], "Invalid value"),
]
REFUSED = [
    (["query", "nobody", "items"], "has no such execution"),
    (["query", "b", "itmes"], "'items', 'price'"),
    (["query", "b", "price", '"pear"'], "price"),
    (["query", "b", "price", '"pear"', '"three"'], "int"),
    (["query", "b", "items", "--org", "acme"], "org 'acme' has no such execution"),
    (["update", "nobody", "add", '"a"'], "or update with start"),
    (["update", "closed", "add", '"a"'], "it is completed. Start a new one, or update with start"),
    (["update", "b", "put", '"a"'], "'add', "),
    (["update", "b", "add", "7"], "str"),
    (["update", "b", "add", '""'], "its validator refused it: ValueError: nothing to add"),
    (["update", "b", "add", '"a"', "--request-id", ""], "the request id"),
    (["update", "b", "break"], "KeyError"),
]


@pytest.mark.parametrize(("command", "told", "code"), [*((*one, 2) for one in BAD), *((*one, 1) for one in REFUSED)])
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_U5_bad_calls_are_refused_with_what_is_allowed(
    invoke: Invoke, app: App, command: list[str], told: str, code: int, as_json: bool
) -> None:
    result = invoke(command[0], app.database, *command[1:], *(["--json"] if as_json else []))

    assert result.exit_code == code, result.output
    assert told in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert ask(invoke, "query", app.database, "b", "items")["answer"] == []


def test_a_file_that_nobody_owns_answers_neither(invoke: Invoke, database: Path) -> None:
    for command in (["query", "open", "items"], ["update", "open", "add"]):
        result = invoke(command[0], database, *command[1:], "--json")

        assert result.exit_code == 1, result.output
        assert "Expected" in result.stderr
        assert result.stdout == ""


def test_answer_that_does_not_come_in_time_is_told(invoke: Invoke, app: App) -> None:
    result = invoke("update", app.database, "b", "wait", "--timeout", "0.2", "--json")

    assert result.exit_code == 1, result.output
    assert "to be answered within 0.2 seconds" in result.stderr
    assert re.search(r"--request-id cli-[0-9a-f-]{36}\n", result.stderr)
    assert json.loads(invoke("query", app.database, "b", "items", "--json").stdout)["answer"] == []
