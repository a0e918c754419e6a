"""What users type: values in JSON, pairs, lengths of time and moments. What is wrong is a usage error with its remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from errno import EISDIR
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.values import read_file, refuse, refuse_constant

_LENGTH: Final = re.compile(r"(\d+)(ms|s|m|h|d|w)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def read_input(text: str, what: str, *, as_text: bool = False) -> Any:
    """A value that is written as JSON, in a file (`@name`) or on standard input (`-`). Raises BadParameter.

    `as_text`: what is written is the value itself, a text.
    """
    where = what
    if text == "-" or (text.startswith("@") and len(text) > 1):
        name = text.removeprefix("@")
        content = read_file(name, what)
        where = "standard input" if text == "-" else f"'{name}'"
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise refuse(f"Expected text in {where}, but it is not in UTF-8. Convert it.", what) from error
    return text if as_text else _read_json(text, where, what)


def _read_json(text: str, where: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except RecursionError as error:
        raise refuse(f"Expected JSON in {where}, but it is nested too deeply. Make it flatter.", what) from error
    except ValueError as error:
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        if text.startswith("--"):
            raise refuse(
                f"Expected JSON in {where}, but found {shown!r}, which is no option of the command either. See its --help.",
                what,
            ) from error
        raise refuse(
            f"Expected JSON in {where}, but {shown!r} is none: {error}. Put texts into quotes, '\"like this\"', or say "
            "--text; a file is @name, standard input is -.",
            what,
        ) from error


def read_inputs(texts: Iterable[str], *, as_text: bool) -> list[Any]:
    """The arguments of a workflow, in their order. Raises BadParameter."""
    given = list(texts)
    if given.count("-") > 1:
        raise refuse("Expected at most one argument from standard input, but there are more. Use files: @name.", "ARGS")
    return [read_input(text, f"argument {place}", as_text=as_text) for place, text in enumerate(given, 1)]


def find_files(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[Path, ...]:
    """Files that are read later. Raises BadParameter for the first that cannot be opened."""
    paths = tuple(map(Path, values))
    for path in paths:
        try:
            if path.is_dir():
                raise IsADirectoryError(EISDIR, "Is a directory")
            if path.is_file() or not path.exists():  # a pipe can be opened but once
                path.open("rb").close()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise click.BadParameter(
                f"Expected a file at '{path}', but it cannot be read: {reason}. Check the path."
            ) from error
    return paths


def read_pairs(_ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Texts by name, each written as `name=value`. Raises BadParameter."""
    found: dict[str, str] = {}
    for value in values:
        name, separator, text = value.partition("=")
        if not separator or not name:
            raise click.BadParameter(f"Expected a pair such as customer=ann, but it is '{value}'. Correct it.")
        if name in found:
            raise click.BadParameter(f"Expected each name once, but '{name}' is given twice. Leave one of them out.")
        found[name] = text
    return found


def parse_length(value: str) -> timedelta | None:
    """A length of time such as '30d'; None if it is none."""
    found = _LENGTH.fullmatch(value)
    try:
        return None if found is None else int(found[1]) * _UNITS[found[2]]
    except OverflowError:
        return None


def read_length(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    """A length of time such as '30d'. Raises BadParameter."""
    if value is None:
        return None
    found = parse_length(value)
    if found is None:
        raise click.BadParameter(
            f"Expected a number with a unit (ms, s, m, h, d or w), for instance 30d, but it is '{value}'. Correct it."
        )
    return found


def read_moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """A moment: a date or time in ISO format, in UTC unless it says otherwise, or how long ago. Raises BadParameter."""
    return None if value is None else _find_moment(value, -1, "how long ago")


def read_moment_ahead(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """As `read_moment`, for what lies ahead: a length such as 2h counts from now on. Raises BadParameter."""
    return None if value is None else _find_moment(value, 1, "a length from now on")


def _find_moment(value: str, direction: int, length: str) -> datetime:
    found = parse_length(value)
    try:
        return _parse_moment(value) if found is None else datetime.now(UTC) + direction * found
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"Expected a time such as 2026-05-01 or 2026-05-01T12:30:00Z, or {length}, such as 2h, but it is '{value}'. "
            "Correct it."
        ) from error


def read_delay(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | datetime | None:
    """When something is to begin: after a length of time, or at a moment. Raises BadParameter."""
    if value is None:
        return None
    length = parse_length(value)
    try:
        return _parse_moment(value) if length is None else length
    except ValueError as error:
        raise click.BadParameter(
            f"Expected how long to wait, such as 90s or 2h, or a time such as 2026-05-01T12:30:00Z, but it is '{value}'. "
            "Correct it."
        ) from error


def _parse_moment(value: str) -> datetime:
    found = datetime.fromisoformat(value)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
