"""What every batch works with: made once, when the engine is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from holdfast.core.commands import StartChild
    from holdfast.core.effects import ChildBinding, Limits
    from holdfast.core.envelopes import Start
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


class ProcessCatalog(Protocol):
    """What turns ask about deployed processes. Only `make_ready` may take its time; the others answer from memory."""

    def is_ready(self, org: str, name: str, version: str) -> bool:
        """Whether programs of a version of a process can be made at once: it is compiled, or not known at all."""
        ...

    async def make_ready(self, org: str, name: str, version: str) -> None:
        """Read and compile a version of a process, outside of turns and transactions. Raises HoldfastErrors."""
        ...

    def bind_start(self, org: str, start: Start) -> Start:
        """The start of a process, pinned to the version that it gets: the newest, unless it asks for one."""
        ...

    def bind_child(self, org: str, command: StartChild) -> ChildBinding | None:
        """Which version of which process a child is bound to; None if its name is that of code."""
        ...


class _NothingDeployed:
    """Stands for the processes of an engine that has none."""

    def is_ready(self, _org: str, _name: str, _version: str) -> bool:
        """Nothing has to be compiled."""
        return True

    async def make_ready(self, _org: str, _name: str, _version: str) -> None:
        """Nothing has to be compiled."""

    def bind_start(self, _org: str, start: Start) -> Start:
        """There is nothing that it could be bound to."""
        return start

    def bind_child(self, _org: str, _command: StartChild) -> None:
        """All names are those of code."""


NOTHING_DEPLOYED: Final[ProcessCatalog] = _NothingDeployed()


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
    processes: ProcessCatalog = NOTHING_DEPLOYED
    """The deployed processes: their executions take turns only while these are compiled."""
