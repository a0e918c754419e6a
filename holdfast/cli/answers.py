"""What commands answer: text for people, or one JSON document with `--json`; and the exit codes."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar

import click
import msgspec

Function = TypeVar("Function", bound=Callable[..., Any])


class ExitCode(IntEnum):
    """How a command ended. Those that click gives are 1, for errors, and 2, for bad usage."""

    REFUSED = 1
    """Nothing was changed: there is no such execution, it is closed, the database cannot be reached, and the like."""
    NOT_COMPLETED = 3
    """The workflow that was waited for failed, timed out, was cancelled or was terminated."""
    STILL_OPEN = 4
    """The workflow that was waited for did not end within --timeout. It goes on."""
    BLOCKED = 5
    """The workflow that was waited for is blocked: somebody has to look at it."""
    INTERRUPTED = 130
    """Ctrl-C ended the command, and nothing else."""


def json_option(function: Function) -> Function:
    """Add the option --json to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")(function)


def print_json(value: object) -> None:
    """Print a value as one line of JSON."""
    click.echo(msgspec.json.encode(value))


def answer(value: object, text: str, *, as_json: bool) -> None:
    """Print what a command did: a value for programs, or a sentence for people."""
    from holdfast.cli.tables import clean

    if as_json:
        print_json(value)
    else:
        click.echo(clean(text))


def fail(message: str, code: ExitCode) -> click.ClickException:
    """An error that ends the command with an exit code of its own."""
    return _Failed(message, code)


class _Failed(click.ClickException):
    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click asks the instance for it
