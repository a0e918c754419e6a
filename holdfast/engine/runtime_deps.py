"""What an engine gives to its runtime: the values that it was made with, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.code.event_types import EventType
    from holdfast.engine.catalog import Catalog
    from holdfast.engine.clock import Clock
    from holdfast.engine.config import Config
    from holdfast.engine.processes.deployed_processes import DeployedProcesses
    from holdfast.engine.replies import ReplyWaiters
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeDeps:
    """What an engine was made with."""

    store: Store
    catalog: Catalog
    processes: DeployedProcesses
    """The deployed processes, which are in the catalog."""
    routes: Routes
    config: Config
    clock: Clock
    node: str
    queue_limits: Mapping[str, int]
    find_client: Callable[[], Any]
    """The verbs of the engine, for its activities."""
    replies: ReplyWaiters
    entropy: Callable[[int], int]
    events: Mapping[str, EventType]
    """The types of events that the engine knows, by name."""
