"""`holdfast feel`: an expression in, its value out, and a clear word about everything that is wrong."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main

Invoke = Callable[..., Result]


@pytest.fixture
def order(tmp_path: Path) -> Path:
    path = tmp_path / "order.json"
    path.write_text('{"total": 120.10, "tags": ["vip"], "Full Name": "Ann Lee", "due": {"@date": "2024-02-29"}}')
    return path


# --- values ---


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("1 + 2", "3"),
        ("0.1 + 0.2", "0.3"),
        ('"a" + "b"', '"ab"'),
        ("null", "null"),
        ('["x", null, {a: 1}]', '["x", null, {a: 1}]'),
        ('date("2024-02-29") + duration("P1Y")', "2025-02-28"),
        ("[1..3)", "[1..3)"),
        ("= 1 + 1", "2"),
        ('"a\\u001b[31mred\\n"', '"a\\x1b[31mred\\n"'),
    ],
)
def test_value_is_printed_as_feel_writes_it(invoke: Invoke, expression: str, shown: str) -> None:
    result = invoke("feel", expression)

    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{shown}\n", "")


def test_variables_come_from_a_file_with_exact_numbers_and_tagged_dates(invoke: Invoke, order: Path) -> None:
    text = 'if list contains(tags, "vip") then {who: Full Name, pays: total * 3, next: due + duration("P1Y")} else null'

    result = invoke("feel", text, "--context", order)

    assert result.stdout == '{who: "Ann Lee", pays: 360.30, next: 2025-02-28}\n'


def test_variables_come_from_standard_input() -> None:
    result = CliRunner().invoke(main, ["feel", "a + 1", "--context", "-"], input='{"a": 1}')

    assert result.stdout == "2\n"


def test_json_holds_what_comes_back_by_from_json(invoke: Invoke) -> None:
    result = invoke("feel", '[1.5, "ü", null, date("2024-02-29"), duration("P1M")]', "--json")

    assert json.loads(result.stdout) == [1.5, "ü", None, {"@date": "2024-02-29"}, {"@duration": "P1M"}]


def test_half_a_surrogate_pair_is_refused(invoke: Invoke) -> None:
    result = invoke("feel", r'"\ud83d"', "--json")

    assert result.exit_code == 1
    assert "U+D83D in it is half of a surrogate pair" in result.stderr


@pytest.mark.parametrize(("value", "shown"), [("3", "true"), ("7", "false"), ('"a"', "null")])
def test_unary_tests_of_a_value(invoke: Invoke, value: str, shown: str) -> None:
    assert invoke("feel", "[1..5]", "--unary", value).stdout == f"{shown}\n"


def test_unary_tests_see_the_context(invoke: Invoke, order: Path) -> None:
    assert invoke("feel", "> total", "--unary", "121", "--context", order).stdout == "true\n"


def test_warnings_go_to_standard_error(invoke: Invoke) -> None:
    result = invoke("feel", "unknown + 1")

    assert result.exit_code == 0
    assert result.stdout == "null\n"
    assert result.stderr.startswith("warning: ")
    assert "'unknown'" in result.stderr


def test_clock_is_that_of_the_machine_and_uuids_differ(invoke: Invoke) -> None:
    before = datetime.now().astimezone()

    now = datetime.fromisoformat(invoke("feel", "string(now())").stdout.strip().strip('"').partition("@")[0])
    uuids = {invoke("feel", "uuid()").stdout for _ in range(3)}

    assert abs((now.astimezone() - before).total_seconds()) < 60
    assert len(uuids) == 3
    assert all(re.fullmatch(r'"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"\n', one) for one in uuids)


# --- what is wrong ---


def test_syntax_error_shows_the_line_with_a_caret_and_the_exit_code_is_1(invoke: Invoke) -> None:
    result = invoke("feel", "1 +\n  (2 * ,3)")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "line 2, column 8" in result.stderr
    assert result.stderr.endswith("  (2 * ,3)\n       ^\n")


def test_expression_without_end_is_stopped(invoke: Invoke) -> None:
    result = invoke("feel", "for i in 1..1000000000 return i")

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Expected")


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_list_that_doubles_itself_is_not_written_out(invoke: Invoke, option: list[str]) -> None:
    result = invoke("feel", "for i in 1..60 return partial", *option)

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Expected")


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_deep_list_is_written_or_refused(invoke: Invoke, option: list[str]) -> None:
    result = invoke("feel", "(for i in 1..5000 return [partial[-1]])[-1]", *option)

    assert result.exit_code in (0, 1)
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_function_has_no_json(invoke: Invoke) -> None:
    result = invoke("feel", "function(a) a", "--json")

    assert result.exit_code == 1
    assert "function" in result.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "Expected JSON in"),
        ("{a: 1}", "Expected JSON in"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ("[1, 2]", "but it holds a list"),
        ("1", "but it holds a number"),
        ("null", "but it holds null"),
        ('{"@date": "2024-02-29"}', "but it holds a tagged value"),
        ('{"a": {"@date": "soon"}}', "@date"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_context_that_is_no_json_object_is_a_usage_error(invoke: Invoke, tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "context.json"
    path.write_text(content)

    result = invoke("feel", "1", "--context", path)

    assert result.exit_code == 2
    assert "'--context'" in result.stderr
    assert told in result.stderr


def test_context_that_is_no_text_is_a_usage_error(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    path.write_bytes(b'{"a": "\xff"}')

    result = invoke("feel", "1", "--context", path)

    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


def test_missing_file_and_folder_are_usage_errors(invoke: Invoke, tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        result = invoke("feel", "1", "--context", path)

        assert result.exit_code == 2
        assert f"Expected a file at '{path}'" in result.stderr


def test_unary_value_that_is_no_json_is_a_usage_error(invoke: Invoke) -> None:
    result = invoke("feel", "< 5", "--unary", "three")

    assert result.exit_code == 2
    assert "'--unary'" in result.stderr


def test_no_expression_is_a_usage_error(invoke: Invoke) -> None:
    assert invoke("feel").exit_code == 2


def test_installed_command_prints_no_traceback(spawn: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = spawn("feel", "1 +")

    assert done.returncode == 1
    assert done.stderr.startswith("Error: Expected an expression at line 1, column 4")
    assert "Traceback" not in done.stderr
