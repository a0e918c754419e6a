"""A turn that a batch has taken, before it is written."""

from __future__ import annotations

import msgspec

from holdfast.core.effects import Turn
from holdfast.engine.turns.pending_turns import PendingTurn
from holdfast.engine.turns.program_cache import LiveExecution
from holdfast.store.contract import TurnWrite


class TakenTurn(msgspec.Struct, eq=False, gc=False):
    """What came out of a turn: provisional until it is committed."""

    pending: PendingTurn
    live: LiveExecution
    turn: Turn
    write: TurnWrite | None
    """Everything that it writes; None if it changes nothing."""
