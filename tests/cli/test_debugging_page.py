"""The outputs on docs/debugging.md are those of the commands above them, line by line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.cli.apps import ROOT, App, Invoke, ask, run_app, wait_until

PAGE = (ROOT / "docs" / "debugging.md").read_text()
BLOCKS = re.findall(r"```console\n\$ holdfast (.*?)\n(.*?)```", PAGE, re.DOTALL)
CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z|[0-9a-f]{8}-[0-9a-f-]{27}|(/[\w.-]+)+/(?=\w+\.py)|\.py:\d+"
)


@pytest.fixture(scope="module")
def app(invoke: Invoke, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An application with an execution in each kind of trouble."""
    database = tmp_path_factory.mktemp("trouble") / "app.db"
    with run_app(database) as before:
        ask(invoke, "start", database, "steps", "--id", "order-4")
        wait_until(invoke, before, "order-4", lambda info: info["status"] == "suspended")
    ask(invoke, "start", database, "shipping", "--id", "order-5")
    with run_app(database, "changed") as app:
        for name, workflow in WAITING.items():
            ask(invoke, "start", database, workflow, "--id", name)
        ask(invoke, "signal", database, "order-4", "go")
        ask(invoke, "signal", database, "order-1", "approve", "42")
        wait_until(invoke, app, "order-4", lambda info: info["status"] == "blocked")
        wait_until(invoke, app, "order-2", lambda info: info["waiting_kind"] == "retry")
        wait_until(invoke, app, "order-6", lambda info: info["waiting_kind"] == "never")
        wait_until(invoke, app, "order-7", lambda info: info["status"] == "failed")
        yield app


WAITING = {"order-1": "approval", "order-2": "paying", "order-3": "rendering", "order-6": "stuck", "order-7": "failing"}


def normalise(text: str) -> list[str]:
    """The lines of an output without what differs each time."""
    plain = text.replace("app_process.py", "app.py")
    return [" ".join(CHANGING.sub("", line).split()) for line in plain.splitlines() if line.strip()]


def test_the_page_shows_each_kind_of_trouble() -> None:
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_output_on_the_page_is_what_the_command_prints(invoke: Invoke, app: App, command: str, shown: str) -> None:
    arguments = [app.database if one == "app.db" else one for one in shlex.split(command)]

    result = invoke(*arguments)

    printed = normalise(result.stdout + result.stderr)
    missing = [line for line in normalise(shown) if line != "..." and line not in printed]
    assert not missing, result.output
