"""`holdfast tail`: a history as it grows, through following runs and through restarts of the application."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.apps import ROOT, Invoke, ask, run_app, wait_until
from tests.eventually import eventually_blocking


class Tailing:
    """A `holdfast tail` in a process of its own, and the lines that it has printed."""

    def __init__(self, *args: object) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "tail", *(str(arg) for arg in args)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def wait_for(self, text: str) -> None:
        eventually_blocking(lambda: any(text in line for line in self.lines), f"a line with {text!r}")

    def finish(self) -> tuple[int, str]:
        code = self.process.wait(60)
        self._reading.join()
        assert self.process.stderr is not None
        return code, self.process.stderr.read()


@contextmanager
def tail(*args: object) -> Iterator[Tailing]:
    tailing = Tailing(*args)
    try:
        yield tailing
    finally:
        if tailing.process.poll() is None:
            tailing.process.kill()
        tailing.process.wait()
        for pipe in (tailing.process.stdout, tailing.process.stderr):
            assert pipe is not None
            pipe.close()


def test_tail_follows_through_continue_as_and_a_restart_of_the_application(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    with run_app(database) as app:
        first = ask(invoke, "start", database, "hops", "2", "--id", "h")["execution_id"]
        with tail(database, "h", "--json") as tailing:
            tailing.wait_for("workflow_started")
            ask(invoke, "signal", database, "h", "hop")
            tailing.wait_for("continued_as")
            app.end(signal.SIGKILL)
            with run_app(database) as again:
                wait_until(invoke, again, "h", lambda info: info["execution_id"] != first)
                ask(invoke, "signal", database, "h", "hop")
                wait_until(invoke, again, "h", lambda info: info["history_length"] == 1)
                ask(invoke, "signal", database, "h", "hop")
                code, errors = tailing.finish()

    assert (code, errors) == (0, "")
    told = [json.loads(line) for line in tailing.lines]
    assert [set(one) for one in told] == [{"org", "execution_id", "event"}] * len(told)
    assert len({one["execution_id"] for one in told}) == 3
    kinds = [one["event"]["type"] for one in told]
    assert kinds == [
        *["workflow_started", "signal_received", "continued_as"] * 2,
        *["workflow_started", "signal_received", "workflow_completed"],
    ]


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send")
def test_ctrl_c_ends_a_tail_and_nothing_else(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    with run_app(database):
        ask(invoke, "start", database, "approval", "--id", "a")
        with tail(database, "a") as tailing:
            tailing.wait_for("TimerStarted")
            tailing.process.send_signal(signal.SIGINT)
            code, errors = tailing.finish()
        info: dict[str, Any] = ask(invoke, "show", database, "a")

    assert (code, errors) == (130, "")
    assert info["status"] == "suspended"


def test_tail_tells_that_an_execution_is_blocked(invoke: Invoke, tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    with run_app(database) as app:
        ask(invoke, "start", database, "steps", "--id", "s")
        wait_until(invoke, app, "s", lambda info: info["status"] == "suspended")
    with run_app(database, "changed") as app:
        ask(invoke, "signal", database, "s", "go")
        wait_until(invoke, app, "s", lambda info: info["status"] == "blocked")
        with tail(database, "s") as tailing:
            tailing.wait_for("WorkflowStarted")
            ask(invoke, "terminate", database, "s")
            code, errors = tailing.finish()

    assert code == 0
    assert "it is blocked" in errors
    assert "WorkflowTerminated" in tailing.lines[-1]
