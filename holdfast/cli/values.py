"""Values on the command line: read as JSON, written as FEEL or JSON; and what evaluations take from this machine."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict

import click

from holdfast.cli.tables import clean

NAMES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", Decimal: "a number", type(None): "null"}


class Sources(TypedDict):
    """What an evaluation takes from outside."""

    clock: Callable[[], datetime]
    random: Callable[[int], int]


def make_sources() -> Sources:
    """The clock of this machine, with its zone, and randomness that nobody can guess."""
    return {"clock": lambda: datetime.now().astimezone(), "random": secrets.randbits}


# --- in ---


def read_file(name: str, option: str) -> bytes:
    """What is in a file; `-` is standard input. Raises BadParameter."""
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise refuse(f"Expected a file at '{name}', but it cannot be read: {reason}. Check the path.", option) from error


def read_object(name: str, option: str) -> dict[str, Any]:
    """The values in a file that holds a JSON object. Raises BadParameter."""
    found = read_value(read_file(name, option), f"'{name}'", option)
    if not isinstance(found, dict):
        raise refuse(
            f"Expected '{name}' to hold a JSON object, with a value for each name, but it holds "
            f"{NAMES.get(type(found), 'a tagged value')}. Put it into an object.",
            option,
        )
    return found


def read_value(text: str | bytes, where: str, option: str) -> Any:
    """A value of FEEL that is written as JSON, with its numbers as they are written. Raises BadParameter."""
    from holdfast import feel

    try:
        data = json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=refuse_constant)
        return feel.from_json(data)
    except feel.FeelError as error:
        raise refuse(error.message, option) from error
    except RecursionError as error:
        raise refuse(f"Expected JSON in {where}, but it is nested too deeply. Make it flatter.", option) from error
    except UnicodeDecodeError as error:
        raise refuse(f"Expected JSON in {where}, but it is no text in UTF-8. Convert it.", option) from error
    except ValueError as error:
        raise refuse(f"Expected JSON in {where}, but {error}. Correct it.", option) from error


def refuse_constant(name: str) -> None:
    """Python's reader knows NaN and Infinity; JSON does not."""
    raise ValueError(f"{name} is no number of JSON")


def refuse(message: str, option: str) -> click.BadParameter:
    """An error about an option or argument: exit code 2."""
    return click.BadParameter(message, param_hint=option)


# --- out ---


def write_value(value: Any, *, as_json: bool) -> str:
    """A value as it stands in an expression, or as JSON that `holdfast.feel.from_json` takes. Raises FeelError."""
    from holdfast import feel
    from holdfast.feel.running import Run
    from holdfast.feel.writing import write_text

    if as_json:
        return write_json(feel.to_json(value))
    # In a list, strings have their quotes, and null is written too.
    return clean(write_text(Run(), [value])[1:-1])


def write_json(data: object) -> str:
    """JSON in one line. What no UTF-8 can hold, half a surrogate pair, is escaped."""
    try:
        return json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    except RecursionError as error:
        raise click.ClickException(
            "Expected a value that JSON can hold, but it is nested too deeply. Ask for a part."
        ) from error


def show_warnings(warnings: Iterable[object]) -> None:
    """Why something became null, on standard error."""
    for warning in warnings:
        click.echo(f"warning: {clean(str(warning))}", err=True)
