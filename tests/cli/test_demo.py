from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from holdfast.cli.demo.outside import Phase, SideEffectLedger
from holdfast.cli.demo.proof import CHECKS

Invoke = Callable[..., Result]


class StoredExecution:
    """One telling of the story, and where it left its files."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {"TMPDIR": str(folder)}
        command = [sys.executable, "-m", "holdfast.cli", "demo", "--fast", "--keep"]
        self.process = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, env=environment)
        self.output = self.process.stdout
        found = re.search(r"^The database: (.+)$", self.output, re.MULTILINE)
        assert found is not None, self.output + self.process.stderr
        self.database = Path(found[1])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> StoredExecution:
    return StoredExecution(tmp_path_factory.mktemp("demo"))


def test_every_claim_holds_and_the_exit_code_says_so(told: StoredExecution) -> None:
    assert told.process.returncode == 0, told.output
    assert len(re.findall(r"^ *yes ", told.output, re.MULTILINE)) == len(CHECKS)
    assert "Every claim holds." in told.output


def test_output_in_a_pipe_is_plain_text(told: StoredExecution) -> None:
    assert told.process.stderr == ""
    assert "\x1b" not in told.output
    assert "\r" not in told.output
    assert max(map(len, told.output.splitlines())) <= 200


def test_story_says_whom_it_kills_and_who_goes_on(told: StoredExecution) -> None:
    pids = re.findall(r"process (\d+) is ready", told.output)

    assert len(set(pids)) == 2
    assert f"kill -9 {pids[0]}" in told.output
    assert {str(entry.pid) for entry in SideEffectLedger(told.database.parent).read()} == set(pids)


def test_recovery_resumes_what_was_cut_off(told: StoredExecution) -> None:
    assert "recovery: 2 resumed" in told.output
    assert "1 timer armed" in told.output


def test_ledger_shows_at_least_once_and_the_history_once(told: StoredExecution, invoke: Invoke) -> None:
    begun = [entry for entry in SideEffectLedger(told.database.parent).read() if entry.phase is Phase.BEGUN]

    history = invoke("history", told.database, "order-1001/pick-piano").output

    assert [entry.attempt for entry in begun if entry.subject == "piano"] == [1, 2]
    assert history.count("ActivityCompleted") == 1


def test_kept_database_is_sound_and_all_of_it_has_completed(told: StoredExecution, invoke: Invoke) -> None:
    assert invoke("check", told.database).output.startswith("ok: 0 open executions")
    assert len(invoke("list", told.database, "--status", "completed").stdout.splitlines()) == 1 + 9


def test_files_are_removed_unless_kept(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast.cli", "demo", "--fast"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}

    process = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, env=environment)

    assert process.returncode == 0, process.stdout
    assert list(tmp_path.iterdir()) == []


def test_worker_ends_when_its_storyteller_is_gone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast.cli.demo.worker", str(tmp_path), "0.1"]

    process = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)

    assert process.returncode == 0
    assert process.stdout.startswith(b'{"type":"ready"')


def test_interrupted_story_leaves_neither_processes_nor_files(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "holdfast.cli", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        ready = next(line for line in process.stdout if "is ready" in line)

        process.send_signal(signal.SIGINT)
        process.stdout.read()

    assert process.returncode == 1
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(ready.split()[1]), 0)
