"""What became of a commit of which the answer never came.

The server knows by the transaction's number. But a crash forgets what was not on disk yet, and gives its numbers to those
who come after: whatever counts as committed by its number must also be there. What leaves nothing behind by which it could
be known stays unknown if the server was started anew meanwhile.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from asyncpg.exceptions import InvalidParameterValueError

from holdfast.core.instants import SECOND, Micros
from holdfast.errors import OutcomeUnknown, StoreError
from holdfast.store.contract import TurnWrite
from holdfast.store.rows import ExecutionRow, RequestRow

MARK_LASTS: Final[Micros] = 24 * 3600 * SECOND
"""Longer than anybody asks for the outcome of a commit."""

Ask: TypeAlias = Callable[..., Awaitable[Any]]
"""Fetches the value of a statement by its name."""


class CommitEvidence(msgspec.Struct, frozen=True):
    """How a transaction is known again."""

    transaction_id: str | None
    """PostgreSQL's id of the transaction; None if it wrote nothing."""
    server_start: str | None = None
    """When the server began that gave the number; only for what leaves nothing behind."""
    turn: TurnWrite | None = None
    """One of the turns that it wrote."""
    request: RequestRow | None = None
    """The answer to a request that the transaction stored."""


def choose_turn(chosen: TurnWrite | None, turns: Sequence[TurnWrite], lost: Collection[str]) -> TurnWrite | None:
    """The turn that tells best whether all of them were written, among these and the one chosen so far.

    That is one with events: a history never changes. Without, a turn looks as it does if another node takes it again.
    """
    if chosen is not None and chosen.history is not None:
        return chosen
    written = [turn for turn in turns if turn.row.execution_id not in lost]
    best = next((turn for turn in written if turn.history is not None), None)
    return best or chosen or (written[0] if written else None)


def make_commit_row(row: ExecutionRow) -> RequestRow:
    """Something that one commit leaves behind, and no other."""
    return RequestRow(row.org, "commit", secrets.token_hex(16), row.execution_id, None, row.updated_at + MARK_LASTS)


async def find_outcome(evidence: CommitEvidence, ask: Ask) -> bool | None:
    """Whether a transaction took place; None as long as the server is at it. Raises OutcomeUnknown if nobody can tell."""
    try:
        status = await ask("read_transaction_status", evidence.transaction_id, evidence.server_start)
    except StoreError as error:
        if isinstance(error.__cause__, InvalidParameterValueError):
            return False  # a number that was not given yet: it is forgotten, as after a crash
        raise
    if status == "in progress":
        return None
    if status == "forgotten":
        raise OutcomeUnknown(
            "Expected to find out whether a commit took place, but the server was started anew and it left no evidence. "
            "Look whether it happened, then try again."
        )
    return status == "committed" and await _is_there(evidence, ask)


async def _is_there(evidence: CommitEvidence, ask: Ask) -> bool:
    if evidence.turn is not None and evidence.turn.history is not None:
        history = evidence.turn.history
        return bool(await ask("find_turn", history.execution_id, history.first, history.at, history.body))
    if evidence.request is not None:
        request = evidence.request
        return await ask("read_request", request.org, request.kind, request.key, -1) is not None
    return True
