"""Applications that run in processes of their own while commands look at their databases."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import Result

from tests.eventually import eventually_blocking

ROOT = Path(__file__).resolve().parents[2]
Invoke = Callable[..., Result]


class App:
    """A running application, and its database."""

    def __init__(self, database: str, *arguments: str) -> None:
        self.database = database
        url = database if "://" in database else f"sqlite:///{database}"
        command = [sys.executable, "-m", "tests.cli.app_process", url, *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def end(self, how: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def run_app(database: object, *arguments: str) -> Iterator[App]:
    app = App(str(database), *arguments)
    try:
        yield app
    finally:
        app.end()


def ask(invoke: Invoke, *args: object) -> Any:
    """What a command answers with --json."""
    result = invoke(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def wait_until(invoke: Invoke, app: App, target: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The execution as `show` tells it, once the condition holds."""
    found: dict[str, Any] = {}

    def look() -> bool:
        found.clear()
        found.update(ask(invoke, "show", app.database, target))
        return condition(found)

    eventually_blocking(look)
    return found
