"""What every batch works with: made once, when the engine is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.core.effects import Limits
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.engine.quarantine import Quarantine
    from holdfast.engine.routes import Routes
    from holdfast.engine.turns.cpu_timer import CpuTimer
    from holdfast.engine.turns.lost_closings import LostClosings
    from holdfast.engine.turns.pauses import KnownPauses
    from holdfast.engine.turns.program_cache import MakeProgram, ProgramCache
    from holdfast.engine.turns.turn_order import TurnOrder
    from holdfast.store.contract import Store


@dataclass(frozen=True, slots=True)
class TurnServices:
    """The collaborators of the pump and of its batches."""

    store: Store
    cache: ProgramCache
    make_program: MakeProgram
    routes: Routes
    quarantine: Quarantine
    config: Config
    limits: Limits
    """The bounds that each turn enforces."""
    clock: Clock
    turn_order: TurnOrder
    lost_closings: LostClosings
    pauses: KnownPauses
    cpu_timer: CpuTimer
    """Armed while programs run: ends the process if one holds the GIL for too long."""
    node: str
    """The name of this node."""
    process: str
    """The token of this process: another one for each time that an engine is opened, whatever the node's name."""
    on_older_row: Callable[[], None]
    """Called if a locked row is at an earlier version than this node committed: the database went back."""
