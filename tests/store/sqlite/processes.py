"""Real processes beside the test's own: to hold a database, and to be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PREAMBLE = """
import asyncio, logging, os, signal, sys, urllib.parse
from pathlib import Path
from holdfast.errors import *
from holdfast.store.contract import *
from holdfast.store.sqlite import SqliteStore
from tests.store.builders import *

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def say(text):
    print(text, flush=True)

async def listen():
    return await asyncio.to_thread(sys.stdin.readline)

async def main(path):
"""
ROOT = Path(__file__).parents[3]


class Process:
    """A Python process that runs the body of `async def main(path)`."""

    def __init__(self, body: str, path: Path, before: str = "", wrapper: Sequence[str] = ()) -> None:
        lines = [f"    {line}" for line in body.strip("\n").splitlines()]
        script = "\n".join([PREAMBLE, *lines, before, f"asyncio.run(main(Path({str(path)!r})))"])
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "-W", "error", "-c", script],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def hear(self) -> str:
        """The next line that it says; raises if it ended without."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise AssertionError(self.end()[1])
        return line.rstrip("\n")

    def tell(self, line: str = "") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self) -> list[str]:
        """SIGKILL, then what else it had said."""
        self._process.kill()
        return self.end()[0].splitlines()

    def end(self) -> tuple[str, str]:
        """Wait for its end; what else it said, and what it complained about."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        # Not communicate(), which does not know of what hear() has read ahead.
        said, complaint = process.stdout.read(), process.stderr.read()
        process.wait(timeout=60)
        process.stdout.close()
        process.stderr.close()
        return said, complaint

    @property
    def was_killed(self) -> bool:
        return self._process.returncode == -signal.SIGKILL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._process.returncode is None:
            self.kill()


def run(body: str, path: Path, **options: Any) -> list[str]:
    """Run to the end; the lines that it said. Raises if it complained, unless it was killed."""
    with Process(body, path, **options) as process:
        said, complaint = process.end()
        if complaint and not process.was_killed:
            raise AssertionError(complaint)
        return said.splitlines()
