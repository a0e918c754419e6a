"""docs/command-line.md has every command with an example, and every option of it; and its commands are spelt right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from holdfast.cli import COMMANDS, main
from holdfast.cli.answers import ExitCode

PAGE = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text()
EXAMPLES = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def list_commands() -> Iterator[tuple[str, click.Command]]:
    for command in COMMANDS:
        if isinstance(command, click.Group):
            yield from ((f"{command.name} {name}", one) for name, one in command.commands.items())
        else:
            yield str(command.name), command


def find_options(command: click.Command) -> list[str]:
    return [option for one in command.params if isinstance(one, click.Option) for option in one.opts]


@pytest.mark.parametrize(("name", "command"), list(list_commands()), ids=[name for name, _ in list_commands()])
def test_each_command_is_on_the_page_with_all_its_options(name: str, command: click.Command) -> None:
    first = name.split(maxsplit=1)[0]
    section = re.search(rf"^### [^\n]*`holdfast {first}`.*?(?=^##)", f"{PAGE}\n##", re.DOTALL | re.MULTILINE)
    assert section is not None
    common = PAGE.split("## Starting and signalling")[0]
    inherited = PAGE.split("### `holdfast start`")[1].split("###")[0] if name == "signal-with-start" else ""
    inherited += PAGE.split("### `holdfast list`")[1].split("###")[0] if name == "count" else ""

    missing = [one for one in find_options(command) if not re.search(rf"{one}\b", section[0] + common + inherited)]

    assert not missing
    pattern = rf"^holdfast {first}( \S+)? {name.rsplit(maxsplit=1)[-1]}\b" if " " in name else rf"^holdfast {first}\b"
    assert any(re.match(pattern, example) for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_options_in_the_examples_exist(example: str) -> None:
    words = shlex.split(example.split(" > ", maxsplit=1)[0])[1:]
    command: click.Command = main.commands[words[0]]
    options = set(find_options(command))
    if isinstance(command, click.Group):
        for one in command.commands.values():
            options.update(find_options(one))

    assert {word for word in words if word.startswith("--")} <= options


def test_exit_codes_are_on_the_page() -> None:
    table = PAGE.split("| exit code |")[1].split("## ")[0]

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == {0, 2, *ExitCode}
