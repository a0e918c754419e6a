"""Which of the executions that a claim holds take no turns, so that their inboxes are not read; the same in every store."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.lifecycle import Status
from holdfast.store.contract import Claim, Withheld
from holdfast.store.rows import ExecutionRow, Route


def find_withheld(claim: Claim, rows: Mapping[str, ExecutionRow]) -> dict[str, Withheld]:
    """Those among the rows of held executions, read after the lock, that take no turns by a claim."""
    found: dict[str, Withheld] = {}
    for execution_id, row in rows.items():
        if row.route and claim.routes is not None and row.route not in claim.routes:
            found[execution_id] = Withheld.OFF_ROUTE
        elif row.status == Status.BLOCKED:
            found[execution_id] = Withheld.BLOCKED
        elif row.status == Status.PAUSED or (claim.is_paused is not None and claim.is_paused(row)):
            found[execution_id] = Withheld.PAUSED
        elif claim.has_code is not None and not claim.has_code(row):
            found[execution_id] = Withheld.NO_CODE
    for one in claim.wanted if found else ():
        if one.execution_id in found and (one.whole_inbox or one.known_version == rows[one.execution_id].state_version):
            del found[one.execution_id]
    return found


def find_examined(
    claim: Claim, withheld: Mapping[str, Withheld], rows: Mapping[str, ExecutionRow]
) -> dict[str, Route | None]:
    """Those of the withheld whose inbox a claim looks through for what concerns them nonetheless.

    With each its route if it is off the claim's routes: rows that go by another are read. None: only orders are.
    """
    if claim.limit <= 0:
        return {}
    return {
        execution_id: rows[execution_id].route if why is Withheld.OFF_ROUTE else None
        for execution_id, why in withheld.items()
        if execution_id not in claim.skip
    }
