"""Everything the story left behind: what was sent, what the database holds, what the outside world saw."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from holdfast.cli.databases import Database, open_database, read_history
from holdfast.cli.demo.messages import DATABASE, Say
from holdfast.cli.demo.outside import Entry, SideEffectLedger
from holdfast.core.events import AnyEvent
from holdfast.core.ids import DEFAULT_ORG
from holdfast.engine.views import ExecutionInfo, History, to_info
from holdfast.store.contract import ExecutionFilter


class StoredExecution(msgspec.Struct, frozen=True):
    """One execution as the database holds it after the story, with its history."""

    info: ExecutionInfo
    history: History

    @property
    def events(self) -> list[AnyEvent]:
        """The events of the execution's history, in order."""
        return [recorded.event for recorded in self.history.events]


class Evidence(msgspec.Struct, frozen=True):
    """What the proof looks at: the messages sent, the executions stored, the side effects in the ledger."""

    sent: list[Say]
    """Messages in the order in which they were sent, each once."""
    executions: list[StoredExecution]
    """Oldest first."""
    ledger: list[Entry]
    problems: list[str]
    """What the database's own check found."""
    killed_at: datetime

    def find(self, workflow_id: str) -> StoredExecution | None:
        """The execution of a workflow id."""
        return next((told for told in self.executions if told.info.workflow_id == workflow_id), None)

    def walk(self) -> Iterator[tuple[ExecutionInfo, AnyEvent]]:
        """All events of all executions, each with its execution; the oldest execution first."""
        for told in self.executions:
            for event in told.events:
                yield told.info, event


async def gather_evidence(folder: Path, sent: list[Say], killed_at: datetime) -> Evidence:
    """Read the database as anybody can while no engine owns it, and the ledger."""
    async with open_database(Database.at(folder / DATABASE)) as store:
        rows = await store.list_executions(ExecutionFilter(DEFAULT_ORG, limit=1000))
        told = [StoredExecution(to_info(row), await read_history(store, row)) for row in rows]
        told.sort(key=lambda one: (one.info.created_at, one.info.workflow_id))
        return Evidence(sent, told, SideEffectLedger(folder).read(), await store.check(), killed_at)
