"""What follows on this node, and on others, when definitions are deployed or change their states."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from holdfast.errors import StoreError
from holdfast.store.definitions import DefinitionKind

if TYPE_CHECKING:
    from holdfast.engine.processes.deployed_processes import DeployedProcesses
    from holdfast.engine.publishing.publisher import Publisher
    from holdfast.engine.schedules.runner import ScheduleRunner
    from holdfast.engine.turns.pauses import KnownPauses


class DefinitionNews:
    """Lets this node follow what is deployed. `wake_others` lets other nodes compile it before it is used there."""

    def __init__(
        self,
        processes: DeployedProcesses,
        pauses: KnownPauses,
        schedules: ScheduleRunner,
        publisher: Publisher,
        wake_others: Callable[[], None],
    ) -> None:
        self._processes = processes
        self._pauses = pauses
        self._schedules = schedules
        self._publisher = publisher
        self._wake_others = wake_others

    async def follow(self, new_messages: Collection[str], *, has_schedules: bool) -> None:
        """Something was deployed here, or has another state: use it from now on, and tell the other nodes."""
        before = self._processes.known.number
        try:
            await self._processes.refresh()
        except StoreError:
            return  # it is written; who uses it reads it
        if self._pauses.present.number is not None:  # a client has none, and takes no turns
            await self._pauses.try_refresh()
            await self._warm(before)
        self._wake_others()
        self._publisher.match_kept(new_messages)
        self._schedules.note_definitions()
        if has_schedules:
            self._schedules.note_changed()

    async def on_wake(self) -> None:
        """Another node has deployed something: read and compile it, so that the first start need not wait for that."""
        before = self._processes.known.number
        await self._pauses.try_refresh()
        self._schedules.note_definitions()
        await self._warm(before)

    async def _warm(self, before: int) -> None:
        """Compile what has changed since a settings number, which this node has known."""
        latest = self._processes.known.list_latest(DefinitionKind.BPMN)
        await self._processes.warm([row for row in latest if row.changed > before])
