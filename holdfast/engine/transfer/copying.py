"""Exports and imports of single executions: for archives, repairs, and to transfer a few of many."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.effects import TimerKind
from holdfast.core.envelopes import Redispatch
from holdfast.core.events import CLOSING, WorkflowStarted
from holdfast.core.human_tasks import has_timer
from holdfast.core.ids import check_identifier
from holdfast.core.lifecycle import Status
from holdfast.core.safe_texts import count_noun
from holdfast.core.turn import fold
from holdfast.engine.rows import from_row, to_turns
from holdfast.engine.transfer.definition_lines import (
    DefinitionCopy,
    DefinitionsWriter,
    is_definition,
    put_definition,
    read_definition,
)
from holdfast.engine.transfer.lines import read_line, write_line
from holdfast.errors import (
    CorruptStore,
    ExecutionNotFound,
    HoldfastError,
    InvalidArguments,
    InvalidConfiguration,
    NewerFormat,
    WorkflowAlreadyOpen,
)
from holdfast.store.nodes import WakeReason
from holdfast.store.rows import ExecutionRow, InboxRow
from holdfast.store.transfer import FROM_THE_START, CopyResult, ExecutionCopy, PersistentStore, RowKind

if TYPE_CHECKING:
    from holdfast.store.contract import Store
    from holdfast.store.transfer import Transferable

PAGE: Final = 100
"""How many executions are read at once."""


class UnreadableExecution(msgspec.Struct, frozen=True):
    """An execution that could not be exported, and why."""

    execution_id: str
    reason: str


class ImportReport(msgspec.Struct, frozen=True):
    """How many executions were imported, and how many were skipped because they exist in the store."""

    imported: int
    skipped: int


def require_transferable(store: Store) -> Transferable:
    """The store's interface for exports and imports. Raises InvalidConfiguration if it has none."""
    if not isinstance(store, PersistentStore):
        raise InvalidConfiguration(
            "Expected a store on a disk to export from or import into, but it is one in memory. Use SQLite or PostgreSQL."
        )
    return store.make_transferable()


def read_statuses(status: Status | str | Iterable[Status | str]) -> list[Status]:
    """Statuses from their names. Raises InvalidArguments if one is unknown."""
    wanted = [status] if isinstance(status, str) else list(status)
    try:
        return [Status(one) for one in wanted]
    except ValueError:
        raise InvalidArguments(f"Expected status to be among {', '.join(Status)}, but it is {status!r}.") from None


# --- exports --------------------------------------------------------------------------------------------------------------


async def export_executions(
    store: Store, targets: Sequence[str] = (), *, org: str, statuses: Collection[Status] = ()
) -> AsyncIterator[bytes | UnreadableExecution]:
    """Export an org's executions as lines of JSON, in the order in which they were created; each is a consistent copy.

    Before the first execution of a version of a deployed process comes a line of that version. With `targets` only those, by
    workflow id (its newest execution) or execution id. Raises ExecutionNotFound at once.
    """
    transferable, definitions = require_transferable(store), DefinitionsWriter(store)
    if targets:
        rows = [await _find(store, org, target) for target in dict.fromkeys(targets)]
        wanted = [row for row in rows if not statuses or row.status in statuses]
        for line in (*await definitions.list_lines(wanted), *await _write_lines(transferable, wanted)):
            yield line
        return
    cursor = FROM_THE_START
    while True:
        page = await transferable.read_page(RowKind.EXECUTIONS, cursor, PAGE)
        if page.cursor is None:
            return
        cursor = page.cursor
        rows = [row for row in page.rows if isinstance(row, ExecutionRow) and row.org == org]
        wanted = [row for row in rows if not statuses or row.status in statuses]
        for line in (*await definitions.list_lines(wanted), *await _write_lines(transferable, wanted)):
            yield line


async def _find(store: Store, org: str, target: str) -> ExecutionRow:
    row = await store.find_execution(org, target) or await store.find_latest(org, target)
    if row is None:
        raise ExecutionNotFound(
            f"Expected to export execution '{target}', but org '{org}' has none of that id. Run `holdfast list` to see what "
            "there is, and mind --org."
        )
    return row


async def _write_lines(transferable: Transferable, rows: Sequence[ExecutionRow]) -> list[bytes | UnreadableExecution]:
    lines: list[bytes | UnreadableExecution] = []
    for copy in await transferable.read_copies([row.execution_id for row in rows]):
        try:
            lines.append(write_line(copy))
        except (CorruptStore, NewerFormat, ValueError, OverflowError) as error:
            lines.append(UnreadableExecution(copy.row.execution_id, str(error)))
    return lines


def require_sound(line: bytes | UnreadableExecution) -> bytes:
    """The exported line. Raises CorruptStore if the execution could not be exported."""
    if isinstance(line, UnreadableExecution):
        raise CorruptStore(
            f"Expected to export execution {line.execution_id}, but {line.reason.rstrip('.')}. Export the others without it."
        )
    return line


# --- imports ---------------------------------------------------------------------------------------------------------------


async def import_executions(store: Store, lines: Iterable[bytes | str], *, skip_existing: bool = False) -> ImportReport:
    """Import executions, each in a transaction of its own; open ones continue in this store.

    Raises InvalidArguments, with the number of the line and the field, if a line is invalid, and WorkflowAlreadyOpen if its
    workflow id is open in this store. The lines before it are imported by then; the line itself has changed nothing.
    """
    transferable = require_transferable(store)
    imported = skipped = 0
    has_publications = False
    for number, copy in check_lines(lines):
        if isinstance(copy, DefinitionCopy):
            await put_definition(store, copy)
            continue
        match await transferable.put_copy(adopt(copy)):
            case CopyResult.DONE:
                imported += 1
                has_publications = has_publications or bool(copy.publications)
            case CopyResult.EXISTS if skip_existing:
                skipped += 1
            case CopyResult.EXISTS:
                raise InvalidArguments(
                    f"Expected line {number} to hold an execution that is new here, but {copy.row.execution_id} exists. "
                    "Leave it out, or skip those that exist."
                )
            case CopyResult.IS_OPEN:
                raise WorkflowAlreadyOpen(
                    f"Expected to import execution {copy.row.execution_id} (line {number}), but another one is open under "
                    f"its workflow id '{copy.row.workflow_id}'. Let that one end first, or leave this one out."
                )
    if imported:
        await store.wake(WakeReason.WORK)
    if has_publications:
        await store.wake(WakeReason.RETRIED)
    return ImportReport(imported, skipped)


def check_lines(lines: Iterable[bytes | str]) -> Iterable[tuple[int, ExecutionCopy | DefinitionCopy]]:
    """Parse and check exported lines: pairs of line number and content, without empty lines. Raises InvalidArguments."""
    for number, text in enumerate(lines, 1):
        line = text.encode() if isinstance(text, str) else text
        if not line.strip():
            continue
        try:
            content = _read_line(line)
        except HoldfastError as error:
            raise _refused(number, error.message) from error
        except ValueError as error:
            raise _refused(number, str(error)) from error
        yield number, content


def _read_line(line: bytes) -> ExecutionCopy | DefinitionCopy:
    if is_definition(line):
        return read_definition(line)
    copy = read_line(line)
    check_copy(copy)
    return copy


def _refused(number: int, reason: str) -> InvalidArguments:
    return InvalidArguments(
        f"Expected line {number} to hold an execution as `holdfast export` writes it, but {reason.rstrip('.')}. "
        "Export it again, or leave it out."
    )


def check_copy(copy: ExecutionCopy) -> None:
    """Check that the parts of an exported execution agree with each other. Raises ValueError or a HoldfastError."""
    row = copy.row
    for value, what in ((row.org, "$.row.org"), (row.workflow_id, "$.row.workflow_id"), (row.workflow, "$.row.workflow")):
        check_identifier(value, what)
    if Status(row.status).is_closed != (row.closed_at is not None):
        raise ValueError(f"it is {row.status}, and its time of closing is {row.closed_at} - at `$.row.closed_at`")
    end = copy.history[-1].first + copy.history[-1].count - 1 if copy.history else 0
    if end != row.sequence:
        raise ValueError(f"its history ends with event {end}, its row with {row.sequence} - at `$.row.sequence`")
    if row.state_version < len(copy.history):
        raise ValueError(
            f"it has {count_noun(len(copy.history), 'turn')}, and version {row.state_version} - at `$.row.state_version`"
        )
    _check_history(copy)
    _check_inbox(copy)


def _check_history(copy: ExecutionCopy) -> None:
    row = copy.row
    try:
        execution = from_row(row)
    except (CorruptStore, NewerFormat) as error:
        raise ValueError(f"{error.message} - at `$.details`") from error
    turns = to_turns(copy.history)
    if not turns and row.closed_at is None and not copy.timers and not copy.activities:
        return  # created; its first turn is still to be taken
    started = turns[0].events[0] if turns else None
    if not isinstance(started, WorkflowStarted) or (started.workflow_id, started.workflow) != (
        row.workflow_id,
        row.workflow,
    ):
        raise ValueError(f"its history does not begin with the start of '{row.workflow_id}' - at `$.history[0]`")
    if (type(turns[-1].events[-1]) in CLOSING) != (row.closed_at is not None):
        raise ValueError(f"it is {row.status}, and its history ends otherwise - at `$.row.status`")
    if row.closed_at is not None:
        for name in ("timers", "inbox", "activities", "subscriptions", "kept", "incidents"):
            if copy.pending if name == "kept" else getattr(copy, name):
                raise ValueError(f"it is closed, and has something left - at `$.{name}`")
        if any(task.is_open for task in copy.tasks):
            raise ValueError("it is closed, and has an open human task - at `$.tasks`")
        return
    try:
        fold(execution, turns)
    except (KeyError, ValueError) as error:
        raise ValueError(f"its history ends what it has not begun: {error} - at `$.history`") from error
    armed = {timer.number for timer in copy.timers if timer.kind == TimerKind.TIMER and timer.number > 0}
    dated = {number for number, task in execution.tasks.items() if has_timer(task)}
    if armed != execution.timers.keys() | dated:  # due times may differ: see `core.timers.record_timer`
        raise ValueError("its timers are not those that its history leaves open - at `$.timers`")
    if {task.number for task in copy.tasks if task.is_open} != execution.tasks.keys():
        raise ValueError("its open human tasks are not those that its history leaves open - at `$.tasks`")
    if {incident.number for incident in copy.incidents} != execution.incidents.keys():
        raise ValueError("its open incidents are not those that its history leaves open - at `$.incidents`")
    for place, wait in enumerate(copy.subscriptions):  # those that are missing were taken along by what waits in the inbox
        opened = execution.subscriptions.get(wait.number)
        if opened is None or (opened.kind, opened.name, opened.key) != (wait.kind, wait.name, wait.key):
            raise ValueError(f"its history does not leave it waiting for that - at `$.subscriptions[{place}]`")


def _check_inbox(copy: ExecutionCopy) -> None:
    for place, one in enumerate(copy.inbox):
        if one.execution_id != copy.row.execution_id and (one.execution_id, one.workflow_id) != ("", copy.row.workflow_id):
            raise ValueError(f"it is for another execution - at `$.inbox[{place}]`")


def adopt(copy: ExecutionCopy) -> ExecutionCopy:
    """The execution as it continues in another store, where the nodes that ran its activities do not exist.

    Running activities get a new attempt, by the envelope that also a node puts when it leaves cleanly; offered ones are
    offered again.
    """
    row = copy.row
    activities = [replace(one, node=None) for one in copy.activities]
    if not row.nodes:
        return replace(copy, activities=activities)
    details = codec.decode_details(row.details)
    details.attempts = {number: replace(one, node=None) for number, one in details.attempts.items()}
    former = f"before import {row.execution_id}"  # no node has this name
    envelope = InboxRow(row.org, row.execution_id, "", codec.encode(Redispatch(node=former, has_left=True)), route=row.route)
    return replace(
        copy,
        row=replace(row, nodes=(former,), details=codec.encode(details)),
        inbox=[*copy.inbox, envelope],
        activities=activities,
    )
