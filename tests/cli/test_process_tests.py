"""`holdfast test-process`: a line for each case, the coverage, and an exit code that CI understands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from tests.testing.process_files import CHARGE, PAY, SHIP, create, expect_state, write_case

Invoke = Callable[..., Result]


def test_passing_case_is_a_line_and_success(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"), CHARGE, PAY, SHIP, expect_state("IS_COMPLETED"), name="ships")

    result = invoke("test-process", path)

    assert (result.exit_code, result.stdout, result.stderr) == (0, f"passed: ships ({path})\n", "")


def test_failing_case_is_told_with_its_instruction(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"), expect_state("IS_COMPLETED"), name="too\x1b[31m early")

    result = invoke("test-process", path)

    assert result.exit_code == 1
    assert result.stdout == (
        f"failed: too\\x1b[31m early ({path}, instruction 2): Expected process 'order' to be completed, but it is active. "
        "Active is: charge.\n"
    )
    assert result.stderr == "Error: 1 of 1 cases failed.\n"


def test_several_files_run_and_all_failures_count(invoke: Invoke, tmp_path: Path) -> None:
    good = write_case(tmp_path, create(orderId="o-1"), name="good", file="good.json")
    bad = write_case(tmp_path, expect_state("IS_ACTIVE"), name="bad", file="bad.json")

    result = invoke("test-process", good, bad, good)

    assert result.exit_code == 1
    assert [line.split(" (")[0] for line in result.stdout.splitlines()] == ["passed: good", "failed: bad", "passed: good"]
    assert result.stderr == "Error: 1 of 3 cases failed.\n"


def test_coverage_lists_what_was_missed(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"), CHARGE, PAY, SHIP)

    result = invoke("test-process", path, "--coverage", "--resource", tmp_path / "order.bpmn")

    assert result.exit_code == 0
    assert "order (order.bpmn): 43%, 5 of 13 elements, 4 of 8 flows\n" in result.stdout
    assert "  not entered: late (Late)\n" in result.stdout
    assert "  not taken: to_remind (late → remind)\n" in result.stdout
    assert result.stdout.endswith("in all: 43%\n")


def test_too_little_coverage_fails(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"))
    given = ("test-process", path, "--resource", tmp_path / "order.bpmn", "--min-coverage")

    assert invoke(*given, "10").exit_code == 0
    result = invoke(*given, "90")
    assert result.exit_code == 1
    assert result.stderr == "Error: Expected the cases to cover at least 90 %, but they cover 14.3 %. Add cases.\n"


def test_reports_are_written(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"))
    page, data = tmp_path / "coverage.html", tmp_path / "coverage.json"

    assert invoke("test-process", path, "--coverage-report", page).exit_code == 0
    assert invoke("test-process", path, "--coverage-report", data).exit_code == 0

    assert page.read_text().startswith("<!doctype html>")
    found = json.loads(data.read_text())["processes"]
    assert [one["id"] for one in found] == ["called", "calling", "order"]
    assert found[2]["elements"]["charge"] == 1
    missing = invoke("test-process", path, "--coverage-report", tmp_path / "missing" / "coverage.html")
    assert (missing.exit_code, "Expected to write" in missing.stderr) == (1, True)


def test_json_has_cases_and_coverage(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"), expect_state("IS_COMPLETED"))

    result = invoke("test-process", path, "--json")

    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["cases"][0]["passed"], found["cases"][0]["instruction"]) == (False, 2)
    assert found["coverage"]["ratio"] > 0


def test_file_that_cannot_be_read_is_bad_usage(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="o-1"))

    case = invoke("test-process", path, tmp_path / "nowhere.json")
    resource = invoke("test-process", path, "--resource", tmp_path / "nowhere.bpmn")

    assert (case.exit_code, case.stdout, resource.exit_code, resource.stdout) == (2, "", 2, "")
    assert "nowhere.json' but it cannot be read" in " ".join(case.stderr.replace(",", "").split())
    assert "nowhere.bpmn' but it cannot be read" in " ".join(resource.stderr.replace(",", "").split())


def test_number_that_is_too_large_is_one_sentence(invoke: Invoke, tmp_path: Path) -> None:
    path = write_case(tmp_path, create(orderId="big"))
    path.write_text(path.read_text().replace('"big"', "1e400"))

    result = invoke("test-process", path)

    assert result.exit_code == 1
    assert "instruction 1 of case 'case' is not right at variables[...]: Number out of range." in result.stderr
    assert "Traceback" not in result.output


def test_bad_file_is_one_sentence(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text('{"testCases": [{"name": "x", "instructions": [{"type": "FLY"}]}]}')

    result = invoke("test-process", path)

    assert result.exit_code == 1
    assert "instruction 1 of case 'x' is 'FLY', which is not known." in result.stderr
    assert invoke("test-process").exit_code == 2
    path.write_text('{"testCases": []}')
    (tmp_path / "order.bpmn").write_text("<x/>")
    assert invoke("test-process", path).stderr == "Error: Expected test cases, but the files hold none.\n"
