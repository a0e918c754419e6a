"""How values look in the terminal. Written for people; also readable in a pipe, where no line is broken to fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.core import codec
from holdfast.core.events import ProcessAdvanced
from holdfast.core.instants import to_datetime
from holdfast.engine.pending import FailureInfo, SignalInfo

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from holdfast.engine.views import ExecutionInfo, History, WaitingEnvelope

PIPE_WIDTH = 240
LONGEST_CELL = 100
HEAD = ("sequence", "turn", "at", "type", "arrived_at", "behaviours", "held")
"""What an event has in columns of its own, or what says no more than they do."""
SHOWN_APART = frozenset({"inbox", "pending", "waiting_kind", "waiting_token"})
"""What is known about an execution and has a table of its own, or is in `waiting_for`."""
FOLDED = ("waits for", "details", "reason", "envelope", "place")
"""Columns that may take several lines where a terminal is narrow; the others are cut."""
CUT_FIRST = ("execution id", "on node")
"""Those of the others that are cut first."""
LEFT_OUT_FIRST = (
    *("execution id", "on node", "queue", "events", "since", "updated"),
    *("version", "pid", "activities", "workflows", "host", "running"),
)
"""Columns that are left out, in this order, where a terminal is too narrow for all of them."""
LEAST_FOLDED = 16
"""How wide a column is at least that may take several lines."""
STYLES = {
    "running": "cyan",
    "suspended": "blue",
    "blocked": "bold red",
    "paused": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "terminated": "red",
    "continued": "green",
    "alive": "green",
    "late": "bold red",
    "left": "dim",
}


def make_console() -> Console:
    """A console on standard output that takes text as it is: what users stored is never markup."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, emoji=False, width=PIPE_WIDTH)


def make_table(*columns: str, title: str | None = None) -> Table:
    """An empty table with a heading and without ornament: easy to read, and to cut with other tools."""
    from rich.table import Table

    table = Table(box=None, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "#" else "left")
    return table


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their headings, one line each where there is room."""
    cells = [[clean(str(cell)) for cell in row] for row in rows]
    console = make_console()
    if console.is_terminal:
        columns, cells = leave_out(columns, cells, console.width)
    table = make_table(*columns)
    for column in table.columns:
        is_folded = column.header in FOLDED
        column.overflow = "fold" if is_folded else "ellipsis"
        column.no_wrap = not is_folded and column.header not in CUT_FIRST
    for row in cells:
        table.add_row(*row, style=find_style(row))
    print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """Print a table; in a pipe without the blanks behind its last column."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.out(line.rstrip(" "), highlight=False)


def leave_out(columns: Sequence[str], rows: list[list[str]], width: int) -> tuple[Sequence[str], list[list[str]]]:
    """The columns for which a terminal has room, with their cells; those that say least are left out first."""
    kept = list(range(len(columns)))
    for name in LEFT_OUT_FIRST:
        if sum(find_width(columns[place], [row[place] for row in rows]) + 2 for place in kept) - 2 <= width:
            break
        kept = [place for place in kept if columns[place] != name]
    return [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]


def find_width(column: str, cells: Sequence[str]) -> int:
    """How many characters a column needs."""
    widest = max(map(len, (column, *cells)))
    return min(widest, LEAST_FOLDED) if column in FOLDED else widest


def find_style(row: Sequence[object]) -> str | None:
    """The colour of a row that tells a status."""
    return next((STYLES[cell] for cell in row if isinstance(cell, str) and cell in STYLES), None)


def show_execution(info: ExecutionInfo, headers: Mapping[str, str] | None = None) -> None:
    """Print what is known about one execution, leaving out what is empty or as it always is."""
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(info):
        value = getattr(info, field.name)
        is_usual = field.name == "attempt" and value == 1
        if value not in (None, "", {}, ()) and field.name not in SHOWN_APART and not is_usual:
            fields[field.name] = value
    show_fields(fields | ({"headers": headers} if headers else {}))


def show_fields(fields: Mapping[str, Any]) -> None:
    """Print names and values, one below the other, all of them whole: what is long takes several lines."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(name.replace("_", " "), show_value(value))
    print_table(make_console(), table)


def show_document(title: str, value: Any) -> None:
    """Print a value as JSON in several lines, with nothing left out."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    console = make_console()
    console.print(f"\n{clean(title)}:")
    for line in text.splitlines():
        console.print(clean(line), soft_wrap=True)


def show_history(history: History, names: Mapping[str, str] | None = None) -> None:
    """Print a history, one event per line, and the stack trace below what failed.

    Of a process, what happened at its elements is below the event that tells of it; `names` are what its diagram calls them.
    """
    if not history.turns:
        make_console().print("its history is empty: it has not begun")
        return
    path = None
    rows: list[tuple[object, ...]] = []
    for recorded, plain in zip(history.events, codec.export_history(history.turns), strict=True):
        if isinstance(recorded.event, ProcessAdvanced):
            from holdfast.cli.process_paths import ProcessPath

            path = path or ProcessPath(names or {})
            rows += [(recorded.sequence, show_time(recorded.at), kind, told) for kind, told in path.follow(recorded.event)]
            continue
        rows.append((recorded.sequence, show_time(recorded.at), recorded.kind, describe_event(plain)))
        rows += [("", "", "", f"  {line}") for line in list_trace(plain.get("failure"))]
    show_rows(("#", "time", "event", "details"), rows)


def list_trace(failure: object) -> list[str]:
    """The lines of the stack trace of a recorded failure, and of those that led to it."""
    if not isinstance(failure, dict):
        return []
    lines = str(failure.get("trace", "")).splitlines()
    cause = failure.get("cause")
    if isinstance(cause, dict):
        lines += [f"caused by {show_recorded_failure(cause)}", *list_trace(cause)]
    return lines


def show_inbox(inbox: Sequence[WaitingEnvelope]) -> None:
    """Print what waits for an execution, the oldest first."""
    make_console().print("\nwaiting in its inbox:")
    show_rows(("#", "envelope", "failures"), [(one.id, shorten(show_json(one.envelope)), one.attempts) for one in inbox])


def describe_event(plain: dict[str, Any]) -> str:
    """The fields of an event as text, cut where they are long; the name that people gave it comes first."""
    fields = {"label": plain.get("label", ""), **plain}
    fields = {key: value for key, value in fields.items() if key not in HEAD and value not in ({}, "")}
    return shorten(" ".join(f"{key}={show_field(key, value)}" for key, value in fields.items()))


def show_field(key: str, value: Any) -> str:
    """One field of an event: a payload without its envelope, a due time as a time."""
    if isinstance(value, dict) and value.keys() == {"data"}:
        return show_json(value["data"])
    if isinstance(value, dict) and value.keys() >= {"data", "encoding"}:
        return clean(f"<encoded as {value['encoding']!r}>")
    if key == "failure" and isinstance(value, dict):
        return show_recorded_failure(value)
    if key in ("due", "start_at") and isinstance(value, int):
        return show_time(to_datetime(value))
    return show_json(value)


def show_recorded_failure(failure: dict[str, Any]) -> str:
    """A failure in a history: its type and message, and its details if it has any; its trace stands below it."""
    details = failure.get("details")
    told = f"{failure.get('type')}: {failure.get('message')}"
    return told if details is None else f"{told} details={show_field('details', details)}"


def show_value(value: Any) -> str:
    """The text of a value in a cell: a time in UTC, a string as it is, all else as JSON; all of it printable."""
    if isinstance(value, datetime):
        return show_time(value)
    if isinstance(value, FailureInfo):
        return clean(describe_failure(value))
    if isinstance(value, SignalInfo):
        return clean(value.name if value.sequence is None else f"{value.name} (event {value.sequence})")
    return clean(value) if isinstance(value, str) else clean(show_json(value))


def describe_failure(failure: FailureInfo) -> str:
    """A failure and what led to it, as text."""
    told = str(failure)
    cause = failure.cause
    while cause is not None:
        told, cause = f"{told} (caused by {cause})", cause.cause
    return told


def show_time(at: datetime, timespec: str = "milliseconds") -> str:
    """A point in time in UTC."""
    return at.isoformat(sep=" ", timespec=timespec).replace("+00:00", "Z")


def show_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def shorten(text: str) -> str:
    """At most one cell's worth of text."""
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 3]}..."


def clean(text: str) -> str:
    """Text that cannot steer the terminal: what is not printable is shown as its escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 timer`, `2 timers`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
