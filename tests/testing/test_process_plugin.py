"""The plugin for pytest: each case of a file is a test, and a failure is told without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.testing.process_files import create, expect_state, write_case


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "holdfast.testing.pytest_plugin", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_each_case_is_a_test(tmp_path: Path) -> None:
    write_case(tmp_path, create(orderId="o-1"), name="begins", file="good.process-test.json")
    write_case(tmp_path, create(orderId="o-1"), expect_state("IS_COMPLETED"), name="ends", file="bad.process-test.json")
    write_case(tmp_path, create("nothing"), name="not collected", file="other.json")

    found = run_pytest(tmp_path, "-v")

    assert "good.process-test.json::begins PASSED" in found.stdout
    assert "bad.process-test.json::ends FAILED" in found.stdout
    assert "failed: ends (" in found.stdout
    assert "Expected process 'order' to be completed, but it is active." in found.stdout
    assert "Traceback" not in found.stdout
    assert "1 failed, 1 passed" in found.stdout


def test_bad_file_is_an_error_of_collecting(tmp_path: Path) -> None:
    (tmp_path / "x.process-test.json").write_text("{}")

    found = run_pytest(tmp_path)

    assert "Expected " in found.stdout
    assert "x.process-test.json to hold test cases of processes, but it does not" in found.stdout
    assert found.returncode == 2
