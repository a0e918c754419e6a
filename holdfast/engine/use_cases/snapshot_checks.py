"""Whether snapshots say what the histories behind them do: a full fold is compared, for `holdfast check` and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.core.turn import fold
from holdfast.engine.rows import from_row, to_turns
from holdfast.engine.turns.null_programs import NoProgram
from holdfast.engine.turns.outside_task import call_outside_task
from holdfast.engine.turns.snapshots import find_difference, may_have_snapshot, read_snapshot
from holdfast.errors import CorruptStore, NewerFormat, UnknownWorkflow

if TYPE_CHECKING:
    from holdfast.core.execution import Execution
    from holdfast.core.program import Program
    from holdfast.engine.turns.program_cache import MakeProgram
    from holdfast.store.contract import Store
    from holdfast.store.rows import ExecutionRow


async def check_snapshot(store: Store, row: ExecutionRow, make_program: MakeProgram | None = None) -> str | None:
    """A sentence, if the snapshot of an execution differs from what its history amounts to.

    None also where there is no snapshot that would be used. Without its program, what is open is compared.
    """
    if row.closed_at is not None or not may_have_snapshot(row):
        return None
    try:
        execution = from_row(row)
        snapshot = read_snapshot(await store.load_snapshot(row.execution_id), execution)
        if snapshot is None:
            return None
        turns = to_turns([one for one in await store.load_history(row.execution_id) if one.first <= snapshot.sequence])
    except (CorruptStore, NewerFormat):
        return None  # told of where histories are checked
    fold(execution, turns)
    program = _make_program(execution, make_program)
    try:
        failure = call_outside_task(program.apply, turns)
        found = None if failure is not None else find_difference(snapshot, execution, program)
    finally:
        program.close()
    if found is None:
        return None
    return (
        f"Expected the snapshot of execution {row.execution_id} ('{row.workflow_id}') at event {snapshot.sequence} to be "
        f"what its history amounts to, but {found} differ."
    )


def _make_program(execution: Execution, make_program: MakeProgram | None) -> Program:
    if make_program is not None:
        try:
            return make_program(execution)
        except UnknownWorkflow:
            pass
    return NoProgram()
