"""Which executions of schedules are open: told by execution ids, since anybody may use a workflow id again.

A schedule knows the execution id of each run that it started. That run may continue as others, under the workflow id, and
each of them leads to the next. Where the way is lost, since retention removed a run or there were too many of them, the
newest run counts as the schedule's if it continues another one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from holdfast.core import codec
from holdfast.core.schedules import OpenRun
from holdfast.engine.rows import find_following
from holdfast.errors import CorruptStore, NewerFormat

if TYPE_CHECKING:
    from holdfast.store.contract import Transaction
    from holdfast.store.rows import ExecutionRow

MOST_STEPS: Final = 100
"""How many runs of a chain are followed one by one."""


class FoundRun(msgspec.Struct, frozen=True, gc=False):
    """An execution of a schedule that is open."""

    run: OpenRun
    is_registered: bool
    """Whether it has a row; else its start waits in the inbox."""


async def follow_runs(
    transaction: Transaction, asked: Collection[tuple[str, OpenRun]]
) -> dict[tuple[str, OpenRun], FoundRun]:
    """Those of these (org, run) pairs that are open, with the newest run of each.

    Something must be open under their workflow ids, or wait to be taken.
    """
    found: dict[tuple[str, OpenRun], FoundRun] = {}
    followed = {key: key[1].execution_id for key in asked}
    for _ in range(MOST_STEPS):
        if not followed:
            break
        rows = await transaction.read_rows(set(followed.values()))
        left: dict[tuple[str, OpenRun], str] = {}
        for key, execution_id in followed.items():
            row = rows.get(execution_id)
            if row is None:
                await _find_latest(transaction, key, found)
            elif row.closed_at is None:
                found[key] = FoundRun(replace(key[1], execution_id=execution_id), is_registered=True)
            elif (following := find_following(row)) is not None:
                left[key] = following
        followed = left
    for key in followed:
        await _find_latest(transaction, key, found)
    return found


async def _find_latest(
    transaction: Transaction, key: tuple[str, OpenRun], found: dict[tuple[str, OpenRun], FoundRun]
) -> None:
    """Find what is open under the workflow id of a run, if that is the schedule's."""
    org, run = key
    latest = await transaction.read_latest(org, run.workflow_id)
    if latest is None or latest.closed_at is not None:  # so what waits in the inbox is its start
        found[key] = FoundRun(run, is_registered=False)
    elif latest.execution_id == run.execution_id or _continues(latest):
        found[key] = FoundRun(replace(run, execution_id=latest.execution_id), is_registered=True)


def _continues(row: ExecutionRow) -> bool:
    try:
        return codec.decode_details(row.details).continued_from is not None
    except (CorruptStore, NewerFormat):
        return False
