"""What follows on this node, and on others, when definitions are deployed or change their states."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import StoreError
from holdfast.log_events import LogEvent, tag
from holdfast.store.definitions import DefinitionKind

if TYPE_CHECKING:
    from holdfast.engine.processes.deployed_processes import DeployedProcesses
    from holdfast.engine.processes.known_definitions import KnownDefinitions
    from holdfast.engine.publishing.publisher import Publisher
    from holdfast.engine.schedules.runner import ScheduleRunner
    from holdfast.engine.turns.pauses import KnownPauses

log = logging.getLogger("holdfast.engine")


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
        self._start_messages = frozenset[str]()
        """Messages that start processes, as of the last news: what is kept of others may start one from now on."""

    @property
    def known(self) -> KnownDefinitions:
        """The definitions that this node knows."""
        return self._processes.known

    def warn_of_names(self, workflows: Collection[str]) -> None:
        """Log which code workflows of this node have names of processes that were deployed while no node had them."""
        for row in self.known.list_latest(DefinitionKind.BPMN):
            if row.definition_id in workflows:
                log.warning(
                    "this node has a code workflow '%s', and org '%s' a process of that id, which starts by name mean: "
                    "rename one of them, or undeploy the process",
                    row.definition_id,
                    row.org,
                    extra=tag(LogEvent.NAME_OF_PROCESS),
                )

    async def follow(self, new_messages: Collection[str], *, has_schedules: bool) -> None:
        """Something was deployed here, or has another state: use it from now on, and tell the other nodes."""
        before = self.known.number
        # It is written: who uses it reads it, if it cannot be read now. What follows here must follow in any case.
        with suppress(StoreError):
            await self._processes.refresh()
        if self._pauses.present.number is not None:  # a client has none, and takes no turns
            await self._pauses.try_refresh()
            await self._warm(before)
        self._wake_others()
        self._publisher.match_kept(new_messages)
        self._schedules.note_definitions()
        if has_schedules:
            self._schedules.note_changed()

    async def on_wake(self) -> None:
        """Another node has deployed something: read and compile it, so that the first start need not wait for that.

        Who deployed it may be gone before it looked for kept messages.
        """
        before, messages = self.known.number, self._start_messages
        await self._pauses.try_refresh()
        self._start_messages = self._processes.start_messages
        self._publisher.match_kept(self._start_messages - messages)
        self._schedules.note_definitions()
        await self._warm(before)

    async def _warm(self, before: int) -> None:
        """Compile what has changed since a settings number, which this node has known."""
        latest = self.known.list_latest(DefinitionKind.BPMN)
        await self._processes.warm([row for row in latest if row.changed > before])
