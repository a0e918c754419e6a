"""`holdfast dmn`: decisions from the command line, how they came about, and what is wrong with a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main
from tests.dmn.models import data, decision, make_xml, table

Invoke = Callable[..., Result]


def write(path: Path, *parts: str) -> Path:
    path.write_text(make_xml(*parts))
    return path


@pytest.fixture
def loan(tmp_path: Path) -> Path:
    """A decision that needs another, which is a table."""
    rules = [["< 1000", "-", '"low"'], [">= 1000", "true", '"low"'], [">= 1000", "false", '"high"', "ask first"]]
    risk = decision("Risk", table(["Amount", "Is WriterCache"], ["Risk"], rules), inputs=["Amount", "Is WriterCache"])
    approval = decision("Approval", 'if Risk = "low" then "yes" else "no, " + Name', inputs=["Name"], decisions=["Risk"])
    return write(
        tmp_path / "loan.dmn",
        data("Amount", "number"),
        data("Is WriterCache", "boolean"),
        data("Name", "string"),
        risk,
        approval,
    )


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two decisions of which neither needs the other."""
    return write(tmp_path / "pair.dmn", data("A", "number"), *(decision(name, "A + 1", inputs=["A"]) for name in "XY"))


# --- evaluate ---


def test_decision_that_no_other_needs_is_evaluated(invoke: Invoke, loan: Path) -> None:
    result = invoke(
        "dmn", "evaluate", loan, "--input", "Amount=5000", "--input", "Is WriterCache=false", "--input", "Name=Ann"
    )

    assert (result.exit_code, result.stdout, result.stderr) == (0, '"no, Ann"\n', "")


def test_inputs_come_from_files_and_the_last_counts(invoke: Invoke, loan: Path, tmp_path: Path) -> None:
    path = tmp_path / "ann.json"
    path.write_text('{"Amount": 5000, "Is WriterCache": false, "Name": "Ann"}')

    from_file = invoke("dmn", "evaluate", loan, "--input", path)
    changed = invoke("dmn", "evaluate", loan, "--input", path, "--input", "Amount=10")
    piped = CliRunner().invoke(main, ["dmn", "evaluate", str(loan), "--input", "-"], input=path.read_text())

    assert [one.stdout for one in (from_file, changed, piped)] == ['"no, Ann"\n', '"yes"\n', '"no, Ann"\n']


def test_file_whose_name_has_an_equals_sign_is_a_file(invoke: Invoke, loan: Path, tmp_path: Path) -> None:
    path = tmp_path / "a=b.json"
    path.write_text('{"Amount": 1, "Is WriterCache": true, "Name": "Ann"}')

    assert invoke("dmn", "evaluate", loan, "--input", path).stdout == '"yes"\n'


def test_value_that_is_no_json_is_a_string(invoke: Invoke, tmp_path: Path) -> None:
    path = write(tmp_path / "kinds.dmn", data("A"), decision("D", "A", inputs=["A"]))

    shown = [invoke("dmn", "evaluate", path, "--input", f"A={text}").stdout for text in ("Ann", '"1"', "1", "01", "", "[1]")]

    assert shown == ['"Ann"\n', '"1"\n', "1\n", '"01"\n', '""\n', "[1]\n"]


def test_decision_is_chosen_by_name_or_id(invoke: Invoke, loan: Path) -> None:
    for name in ("Risk", "id_Risk"):
        result = invoke("dmn", "evaluate", loan, "--decision", name, "--input", "Amount=1", "--input", "Is WriterCache=true")

        assert result.stdout == '"low"\n'


def test_trace_tells_the_inputs_and_the_rules_that_matched(invoke: Invoke, loan: Path) -> None:
    inputs = ("--input", "Amount=5000", "--input", "Is WriterCache=false", "--input", "Name=Ann")

    result = invoke("dmn", "evaluate", loan, *inputs, "--trace")

    assert result.stdout.splitlines() == [
        "table Risk (U): Amount = 5000, Is WriterCache = false",
        '  rule 3: Risk = "high"  # ask first',
        'Risk = "high"',
        'Approval = "no, Ann"',
        "",
        '"no, Ann"',
    ]


def test_trace_and_value_as_json(invoke: Invoke, loan: Path) -> None:
    inputs = ("--input", "Amount=1", "--input", "Is WriterCache=true", "--input", "Name=Ann")

    value = invoke("dmn", "evaluate", loan, *inputs, "--json").stdout
    whole = json.loads(invoke("dmn", "evaluate", loan, *inputs, "--json", "--trace").stdout)

    assert json.loads(value) == "yes"
    assert whole["value"] == "yes"
    assert [one["name"] for one in whole["trace"]] == ["Risk", "Approval"]
    assert [rule["number"] for rule in whole["trace"][0]["tables"][0]["rules"]] == [1]


def test_missing_and_misspelt_inputs_are_warned_of(invoke: Invoke, loan: Path) -> None:
    result = invoke("dmn", "evaluate", loan, "--decision", "Risk", "--input", "amount=1", "--input", "Is WriterCache=true")

    assert result.exit_code == 0
    assert result.stdout == "null\n"
    assert "'amount' is none of the inputs" in result.stderr
    assert "'Amount', 'Is WriterCache'" in result.stderr
    assert "input 'Amount' is null, because it was not given" in result.stderr


@pytest.mark.parametrize("name", [None, "Z"])
def test_decision_has_to_be_one_that_the_model_has(invoke: Invoke, pair: Path, name: str | None) -> None:
    result = invoke("dmn", "evaluate", pair, *(["--decision", name] if name else []))

    assert result.exit_code == 2
    assert "'--decision'" in result.stderr
    assert "It has 'X', 'Y'." in result.stderr


def test_model_without_decisions_has_nothing_to_evaluate(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("dmn", "evaluate", write(tmp_path / "empty.dmn", data("A")))

    assert result.exit_code == 2
    assert "it has none" in result.stderr


@pytest.mark.parametrize(
    ("argument", "told"),
    [("nowhere.json", "Expected a file at 'nowhere.json'"), ("=1", "there is no name before the '='")],
)
def test_bad_input_is_a_usage_error(invoke: Invoke, loan: Path, argument: str, told: str) -> None:
    result = invoke("dmn", "evaluate", loan, "--input", argument)

    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize("content", ["[1]", "no json"])
def test_inputs_that_are_no_json_object_are_a_usage_error(invoke: Invoke, loan: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "inputs.json"
    path.write_text(content)

    result = invoke("dmn", "evaluate", loan, "--input", path)

    assert result.exit_code == 2
    assert "Expected" in result.stderr
    assert "inputs.json" in result.stderr


# --- check ---


def test_sound_model_is_ok_with_its_counts(invoke: Invoke, loan: Path) -> None:
    result = invoke("dmn", "check", loan)

    assert (result.exit_code, result.stdout) == (0, "ok: 2 decisions, 0 decision services, 0 warnings\n")


def test_gaps_and_overlaps_are_warnings(invoke: Invoke, tmp_path: Path) -> None:
    gaps = table(["A"], ["o"], [["< 10", "1"], ["[5..20]", "2"]])
    path = write(tmp_path / "gaps.dmn", data("A", "number"), decision("D", gaps, inputs=["A"]))

    result = invoke("dmn", "check", path)

    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert all(line.startswith("warning: ") for line in lines[:-1])
    assert any("rules 1 and 2" in line for line in lines)
    assert any("no rule matches" in line for line in lines)
    assert lines[-1] == f"ok: 1 decision, 0 decision services, {len(lines) - 1} warnings"


def test_each_problem_is_a_line_and_the_exit_code_is_1(invoke: Invoke, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.dmn", decision("One", "1 +"), decision("Two", "(2"))

    result = invoke("dmn", "check", path)

    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 2
    assert "'One'" in result.stdout
    assert "'Two'" in result.stdout
    assert f"2 problems in {path}" in result.stderr


@pytest.mark.parametrize("command", ["evaluate", "check"])
@pytest.mark.parametrize("content", [b"", b"no xml", b"<html/>", b"\xff\xfe\x00", b"<definitions"])
def test_file_that_is_no_model_is_refused(invoke: Invoke, tmp_path: Path, command: str, content: bytes) -> None:
    path = tmp_path / "model.dmn"
    path.write_bytes(content)

    result = invoke("dmn", command, path)

    assert result.exit_code == 1
    assert "Expected" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["evaluate", "check"])
def test_missing_model_is_a_usage_error(invoke: Invoke, tmp_path: Path, command: str) -> None:
    result = invoke("dmn", command, tmp_path / "nowhere.dmn")

    assert result.exit_code == 2
    assert "nowhere.dmn" in result.stderr


def test_group_without_a_command_shows_its_help(invoke: Invoke) -> None:
    output = invoke("dmn").output

    assert "evaluate" in output
    assert "check" in output


# --- models that import others ---


@pytest.fixture
def importing(tmp_path: Path) -> list[str | Path]:
    """A model, and the one that it imports, as arguments."""
    rates = write(tmp_path / "rates.dmn", decision("Rate", "2"))
    rates.write_text(rates.read_text().replace("urn:test", "urn:rates"))
    main = write(
        tmp_path / "main.dmn", '<import name="R" namespace="urn:rates"/>', decision("D", "R.Rate + 1", decisions=["Rate"])
    )
    main.write_text(main.read_text().replace("#id_Rate", "urn:rates#id_Rate"))
    return [main, "--import", rates]


def test_imported_model_is_given_beside_the_other(invoke: Invoke, importing: list[str | Path]) -> None:
    assert invoke("dmn", "evaluate", *importing).stdout == "3\n"
    assert invoke("dmn", "check", *importing).stdout == "ok: 1 decision, 0 decision services, 0 warnings\n"


def test_imported_model_that_is_not_given_is_told(invoke: Invoke, importing: list[str | Path]) -> None:
    result = invoke("dmn", "check", importing[0])

    assert result.exit_code == 1
    assert "'urn:rates'" in result.stdout


def test_broken_decision_beside_others_is_null_with_a_warning(invoke: Invoke, tmp_path: Path) -> None:
    path = write(tmp_path / "bad.dmn", decision("One", "1 +"), decision("Two", "2"))

    sound, broken = (invoke("dmn", "evaluate", path, "--decision", name) for name in ("Two", "One"))

    assert (sound.exit_code, sound.stdout, sound.stderr) == (0, "2\n", "")
    assert (broken.exit_code, broken.stdout) == (0, "null\n")
    assert "its logic cannot be used" in broken.stderr
