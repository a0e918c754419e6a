from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from click.testing import Result

import holdfast
from holdfast.cli import COMMANDS


def test_version_is_that_of_the_package(invoke: Callable[..., Result]) -> None:
    result = invoke("--version")

    assert result.output == f"holdfast, version {holdfast.__version__}\n"


def test_help_lists_every_command_with_a_whole_sentence(invoke: Callable[..., Result]) -> None:
    lines = invoke("--help").output.splitlines()

    commands = lines[lines.index("Commands:") + 1 :]
    assert len(commands) == len(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in commands)


def test_help_does_not_import_what_only_commands_need() -> None:
    heavy = "{'rich', 'sqlite3', 'holdfast.testing', 'holdfast.simulation', 'holdfast.cli.demo.story'}"
    script = f"import sys, holdfast.cli; sys.exit(bool({heavy} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_installed_command_is_the_group() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="holdfast")
    assert script.value == "holdfast.cli:main"


def test_unknown_command_is_a_usage_error(invoke: Callable[..., Result]) -> None:
    assert invoke("fly").exit_code == 2
