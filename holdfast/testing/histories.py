"""Histories as tests use them: read from wherever they are, written to files, shown as a table."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.core import codec, payloads
from holdfast.core.events import Event, WorkflowStarted
from holdfast.core.failures import Failure, drop_traces
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.instants import to_datetime
from holdfast.core.payloads import Payload
from holdfast.engine.views import History
from holdfast.errors import CorruptStore

HistorySource: TypeAlias = History | list[dict[str, Any]] | str | os.PathLike[str]
"""A history, what its `to_json()` gives, that as JSON text, or the path of a file that holds it."""

WIDEST_VALUE: Final = 60


def load_history(source: HistorySource) -> History:
    """The history, wherever it is. Raises CorruptStore if it is not a whole history."""
    if isinstance(source, History):
        return source
    if isinstance(source, os.PathLike):
        items = _parse(Path(source).read_bytes(), str(source))
    elif isinstance(source, str):
        is_text = source.lstrip().startswith("[")
        items = _parse(source.encode(), "the text") if is_text else _parse(Path(source).read_bytes(), source)
    else:
        items = list(source)
    head: dict[str, Any] = items[0] if items else {}
    turns = codec.import_history(items)
    started = turns[0].events[0] if turns else None
    if not isinstance(started, WorkflowStarted):
        raise CorruptStore("Expected a history that begins with workflow_started, but it does not. Export it again, whole.")
    # Where nobody gave a workflow id it is the execution id, so older files without one can be read as well.
    return History(turns, head.get("execution_id") or started.workflow_id, head.get("org", DEFAULT_ORG))


def save_history(history: HistorySource, path: str | os.PathLike[str]) -> Path:
    """Write a history to a file that `replay` reads: JSON, one event per line, without stack traces."""
    lines = []
    for item in load_history(history).to_json():
        drop_traces(item.get("failure"))  # replay does not need them
        lines.append(msgspec.json.encode(item).decode())
    target = Path(path)
    target.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return target


def format_history(history: HistorySource, mark: int | None = None) -> str:
    """A history as a table for people; `mark` points at the event with that sequence."""
    rows = [("", "#", "at", "event", "")]
    for recorded in load_history(history).events:
        written = msgspec.json.decode(codec.encode(recorded.event))  # what is as usual is left out
        fields = read_fields(recorded.event).items()
        shown = " ".join(f"{name}={_shorten(value)}" for name, value in fields if name in written)
        pointer = ">" if recorded.sequence == mark else ""
        rows.append((pointer, str(recorded.sequence), _show_time(recorded.at), recorded.kind, shown))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        f"{row[0]:<{widths[0]}} {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]:<{widths[3]}}  {row[4]}".rstrip()
        for row in rows
    )


def read_fields(event: Event) -> dict[str, Any]:
    """An event's fields as plain values: payloads decoded, due times as date-times. Its time is not among them."""
    return {field: _to_plain(field, getattr(event, field)) for field in list_fields(type(event))}


def list_fields(kind: type[Event]) -> list[str]:
    """The names of the fields of a kind of event, without its time, which belongs to its place in a history."""
    return [field for field in kind.__struct_fields__ if field != "arrived_at"]


def _to_plain(field: str, value: Any) -> Any:
    if isinstance(value, Payload):
        return payloads.show_value(value)
    if isinstance(value, Failure):
        details = None if value.details is None else _to_plain("details", value.details)
        return {"type": value.type, "message": value.message, "details": details, "non_retryable": value.non_retryable}
    if field == "due":
        return to_datetime(value)
    return msgspec.to_builtins(value)


def _parse(text: bytes, where: str) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(text, type=list[dict[str, Any]])
    except msgspec.MsgspecError as error:
        raise CorruptStore(
            f"Expected {where} to hold a history as JSON, but {error}. Write it with save_history(…), or History.to_json()."
        ) from error


def _shorten(value: Any) -> str:
    shown = str(value) if isinstance(value, datetime) else repr(value)
    return shown if len(shown) <= WIDEST_VALUE else shown[: WIDEST_VALUE - 1] + "…"


def _show_time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S") + (f".{at.microsecond:06d}" if at.microsecond else "")
