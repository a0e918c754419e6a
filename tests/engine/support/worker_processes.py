"""Processes that work on a database until they are told to stop, killed or frozen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]


class Worker:
    """A process that works on a database until it is told to stop."""

    def __init__(self, url: str, folder: Path, grace: float, *jobs: str, heartbeat: float = 0.4) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.support.worker_main", url, str(folder), str(grace), str(heartbeat), *jobs],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read_until(self, *lines: str) -> None:
        """Wait until it has said all of this."""
        assert self.process.stdout is not None
        missing = set(lines)
        while missing:
            line = self.process.stdout.readline()
            assert line, f"it ended without saying {missing}: {self.process.communicate()}"
            missing.discard(line.strip())

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> tuple[int, str]:
        """Its exit code and the rest of what it said."""
        said, errors = self.process.communicate(timeout=60)
        assert "Traceback" not in errors, errors
        return self.process.returncode, said

    def wait_for_failure(self) -> tuple[int, str, str]:
        """Its exit code, the rest of what it said, and what it complained of."""
        said, errors = self.process.communicate(timeout=60)
        return self.process.returncode, said, errors


@contextmanager
def run_worker(url: str, folder: Path, grace: float, *jobs: str, heartbeat: float = 0.4) -> Iterator[Worker]:
    """A worker that starts these jobs, `workflow:id:seconds`, and is killed at the end."""
    worker = Worker(url, folder, grace, *jobs, heartbeat=heartbeat)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.process.communicate()
