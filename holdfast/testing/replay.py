"""Replays recorded histories against workflow code, and compares every command with the recorded one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.code.definitions import Workflow
from holdfast.core.behaviours import check_known
from holdfast.core.envelopes import Start
from holdfast.core.events import HistoryTurn, WorkflowStarted
from holdfast.core.execution import Execution
from holdfast.core.failures import Failure, describe_exception
from holdfast.core.ids import DEFAULT_ORG
from holdfast.core.lifecycle import Status
from holdfast.core.payloads import DEFAULT_LIMIT
from holdfast.core.program_limits import ProgramLimits
from holdfast.engine.catalog import Catalog
from holdfast.engine.encoded_store import put_codec_before
from holdfast.engine.payload_codecs import PayloadCodec
from holdfast.engine.rows import from_row, to_turns
from holdfast.engine.stores import make_store
from holdfast.engine.turns.outside_task import call_outside_task
from holdfast.engine.use_cases.snapshot_checks import check_snapshot
from holdfast.engine.views import History
from holdfast.errors import DeterminismError, ForbiddenInWorkflow, HoldfastError, NonDeterminismError, TurnTooLong
from holdfast.store.contract import ExecutionFilter
from holdfast.store.rows import ExecutionRow
from holdfast.testing.histories import HistorySource, load_history

if TYPE_CHECKING:
    from holdfast.store.contract import Store

SNAPSHOT_DIFFERS: Final = "SnapshotDiffers"
"""The failure of an execution whose snapshot is not what its history amounts to."""
OPEN: Final = tuple(status for status in Status if not status.is_closed)
PAGE: Final = 200


class Disagreement(msgspec.Struct, frozen=True):
    """An execution whose code does not do again what its history records."""

    workflow: str
    workflow_id: str
    execution_id: str
    failure: str
    """The name of the error's class."""
    message: str
    """The recorded command, the new one, and where in the code it comes from."""


class ReplayReport(msgspec.Struct, frozen=True):
    """What was replayed, and what did not agree."""

    executions: int = 0
    events: int = 0
    disagreements: tuple[Disagreement, ...] = ()
    unknown: tuple[str, ...] = ()
    """Workflows that have open executions, but of which no code was given: these were not replayed."""

    @property
    def is_ok(self) -> bool:
        """Whether everything that was replayed agrees."""
        return not self.disagreements

    def check(self) -> None:
        """Raise NonDeterminismError that lists every disagreement, if there are any."""
        if self.disagreements:
            listing = "\n".join(f"- {one.message}" for one in self.disagreements)
            raise NonDeterminismError(
                f"Expected {self.executions} executions to replay, but {len(self.disagreements)} did not:\n{listing}"
            )


def replay(
    history: HistorySource, workflows: Iterable[Workflow[..., Any]], *, payload_limit: int = DEFAULT_LIMIT
) -> ReplayReport:
    """Replay one history against the code. Raises NonDeterminismError if the code asks for anything else than it did.

    Nothing is executed and nothing is written. `history` is a History, what its `to_json()` gives, JSON text, or a file.
    """
    catalog, limits = Catalog(workflows), ProgramLimits(payload_limit)
    loaded = load_history(history)
    _check_behaviours(loaded.turns)
    # In a thread of its own: workflow code must not run inside a task, and the caller may be one.
    with ThreadPoolExecutor(1) as pool:
        failure = pool.submit(_replay_turns, catalog, _make_execution(loaded), loaded.turns, limits).result()
    if failure is not None:
        raise _ERRORS.get(failure.type, DeterminismError)(failure.message)
    return ReplayReport(executions=1, events=sum(len(turn.events) for turn in loaded.turns))


async def replay_store(
    store: str | Store,
    workflows: Iterable[Workflow[..., Any]],
    *,
    org: str = DEFAULT_ORG,
    payload_limit: int = DEFAULT_LIMIT,
    codec: PayloadCodec | None = None,
) -> ReplayReport:
    """Replay every open execution of an org in a store, and report all that do not agree. Nothing is written.

    `store` is a URL, or a store that is open; `codec` that of its engines, if they have one. Before a deployment:
    `(await replay_store(url, workflows)).check()`.
    """
    catalog, limits = Catalog(workflows), ProgramLimits(payload_limit)
    opened = put_codec_before(make_store(store), codec)
    if isinstance(store, str):
        await opened.open()
    try:
        return await _replay_all(opened, catalog, org, limits)
    finally:
        if isinstance(store, str):
            await opened.close()


async def _replay_all(store: Store, catalog: Catalog, org: str, limits: ProgramLimits) -> ReplayReport:
    executions = events = 0
    disagreements: list[Disagreement] = []
    unknown: set[str] = set()
    before: str | None = None
    while True:
        rows = await store.list_executions(ExecutionFilter(org, OPEN, before=before, limit=PAGE))
        for row in rows:
            if not _has_code(catalog, row):
                unknown.add(row.workflow)
                continue
            failure, count = await _replay_row(store, catalog, row, limits)
            if failure is None:
                difference = await check_snapshot(store, row, partial(catalog.make_program, limits=limits))
                failure = None if difference is None else Failure(type=SNAPSHOT_DIFFERS, message=difference)
            executions += 1
            events += count
            if failure is not None:
                disagreements.append(
                    Disagreement(row.workflow, row.workflow_id, row.execution_id, failure.type, failure.message)
                )
        if len(rows) < PAGE:
            return ReplayReport(executions, events, tuple(disagreements), tuple(sorted(unknown)))
        before = rows[-1].execution_id


def _has_code(catalog: Catalog, row: ExecutionRow) -> bool:
    """Whether the version that takes an execution's turns was given. Of one that cannot be read, any version will do."""
    try:
        return catalog.find_for(from_row(row)) is not None
    except HoldfastError:
        return catalog.find_newest(row.workflow, row.org) is not None


async def _replay_row(
    store: Store, catalog: Catalog, row: ExecutionRow, limits: ProgramLimits
) -> tuple[Failure | None, int]:
    history = await store.load_history(row.execution_id)
    count = sum(one.count for one in history)
    try:
        turns, execution = to_turns(history), from_row(row)
        _check_behaviours(turns)
    except HoldfastError as error:  # what cannot be decoded cannot be replayed either: the others go on
        return describe_exception(error), count
    return call_outside_task(_replay_turns, catalog, execution, turns, limits), count


def _replay_turns(
    catalog: Catalog, execution: Execution, turns: Sequence[HistoryTurn], limits: ProgramLimits
) -> Failure | None:
    """Replay turns; the failure if the code does not agree, else None. Must not run inside a task."""
    program = catalog.make_program(execution, limits)
    try:
        return program.apply(turns)
    finally:
        program.close()


def _check_behaviours(turns: Sequence[HistoryTurn]) -> None:
    """Raises NewerFormat if a history was begun with a behaviour that this code does not have."""
    started = turns[0].events[0] if turns else None
    if isinstance(started, WorkflowStarted):
        check_known(started.behaviours)


def _make_execution(history: History) -> Execution:
    started = history.turns[0].events[0]
    assert isinstance(started, WorkflowStarted)  # noqa: S101 - load_history has checked it
    start = Start(
        execution_id=history.execution_id,
        workflow_id=started.workflow_id,
        workflow=started.workflow,
        input=started.input,
        code_version=started.code_version,
    )
    return Execution.register(history.org, start, history.turns[0].at)


_ERRORS: Final[dict[str, Callable[[str], DeterminismError]]] = {
    one.__name__: one for one in (NonDeterminismError, ForbiddenInWorkflow, TurnTooLong)
}
