"""How rows with columns that are more than text, numbers and bytes become values of a database, and back.

The nodes of an execution are a JSON list in a column of text, NULL where there are none. Nearly every execution names one
node or none, so that what is encoded and decoded is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import astuple, fields

from holdfast.core.effects import TimerKind
from holdfast.errors import CorruptStore
from holdfast.store.publication_columns import (
    from_pending_row,
    from_publication_row,
    from_start_row,
    from_subscription_row,
    to_pending_row,
    to_publication_row,
    to_subscription_row,
)
from holdfast.store.publications import PendingRow, PublicationRow, StartSubscriptionRow, SubscriptionRow
from holdfast.store.rows import ExecutionRow, TimerRow
from holdfast.store.schedules import ScheduleRow
from holdfast.store.tasks import TaskEventRow, TaskRow, from_event_row, from_task_row, to_event_row, to_task_row

T = TypeVar("T")

_NODES: Final = [field.name for field in fields(ExecutionRow)].index("nodes")
_KIND: Final = [field.name for field in fields(TimerRow)].index("kind")
_IS_WAITING: Final = [field.name for field in fields(ScheduleRow)].index("is_waiting")
_KINDS: Final = {kind.value: kind for kind in TimerKind}
_PLAIN_KINDS: Final = {kind: kind.value for kind in TimerKind}
_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])


@lru_cache(1024)
def encode_nodes(nodes: tuple[str, ...]) -> str | None:
    """The names of nodes as they are stored."""
    return msgspec.json.encode(nodes).decode() if nodes else None


@lru_cache(1024)
def decode_nodes(text: str | None) -> tuple[str, ...]:
    """The names of nodes from what is stored. Raises CorruptStore."""
    if text is None:
        return ()
    try:
        return _NAMES.decode(text)
    except msgspec.MsgspecError as error:
        raise CorruptStore(
            f"Expected the nodes of an execution to be a list of names, but found {text!r} ({error}). "
            "Run `holdfast check` to see what else is damaged."
        ) from error


def to_execution_row(values: Iterable[Any]) -> ExecutionRow:
    """An execution from its stored columns, in the order of the row's fields."""
    columns = list(values)
    columns[_NODES] = decode_nodes(columns[_NODES])
    return ExecutionRow(*columns)


def from_execution_row(row: ExecutionRow) -> list[Any]:
    """The columns of an execution as they are stored, in the order of the row's fields."""
    columns = list(astuple(row))
    columns[_NODES] = encode_nodes(row.nodes)
    return columns


def to_timer_row(values: Iterable[Any]) -> TimerRow:
    """A timer from its stored columns, in the order of the row's fields."""
    columns = list(values)
    columns[_KIND] = _KINDS[columns[_KIND]]
    return TimerRow(*columns)


def from_timer_row(row: TimerRow) -> tuple[Any, ...]:
    """The columns of a timer as they are stored, in the order of the row's fields; its kind as plain text."""
    return (row.org, row.execution_id, row.number, row.due, _PLAIN_KINDS[row.kind], row.attempt, row.route)


def to_schedule_row(values: Iterable[Any]) -> ScheduleRow:
    """A schedule from its stored columns, in the order of the row's fields."""
    columns = list(values)
    columns[_IS_WAITING] = bool(columns[_IS_WAITING])
    return ScheduleRow(*columns)


def row_from_columns(row_type: type[T], values: Iterable[Any]) -> T:
    """A row of any type from its stored columns, in the order of the row's fields."""
    make = _MAKERS.get(row_type)
    return row_type(*values) if make is None else make(values)


def list_columns(row: Any) -> Sequence[Any]:
    """The columns of a row of any type as they are stored, in the order of the row's fields.

    Behind those of subscriptions and publications stand their ids, then the columns by which they are found.
    """
    write = _WRITERS.get(type(row))
    return astuple(row) if write is None else write(row)


_MAKERS: Final[Mapping[type[Any], Callable[[Iterable[Any]], Any]]] = {
    ExecutionRow: to_execution_row,
    TimerRow: to_timer_row,
    ScheduleRow: to_schedule_row,
    TaskRow: to_task_row,
    TaskEventRow: to_event_row,
    SubscriptionRow: to_subscription_row,
    PendingRow: to_pending_row,
    PublicationRow: to_publication_row,
}
_WRITERS: Final[Mapping[type[Any], Callable[[Any], Sequence[Any]]]] = {
    ExecutionRow: from_execution_row,
    TimerRow: from_timer_row,
    TaskRow: from_task_row,
    TaskEventRow: from_event_row,
    SubscriptionRow: from_subscription_row,
    PendingRow: lambda row: (*from_pending_row(row), row.id or None),
    PublicationRow: lambda row: (*from_publication_row(row), row.id or None),
    StartSubscriptionRow: from_start_row,
}
