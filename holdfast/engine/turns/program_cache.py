"""The programs that are alive in this process: an LRU, bounded by number and by the bytes that they hold.

Of code the bytes of its history tell that; programs that know it themselves say it (`Program.weight`).

A program is only kept when what advanced it is committed. Losing one costs a replay, never more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from holdfast.core.execution import Execution
from holdfast.core.instants import Instant
from holdfast.core.program import Program
from holdfast.core.snapshots import Snapshot
from holdfast.store.rows import ExecutionRow, HistoryRow

MakeProgram = Callable[[Execution], Program]
"""Makes the program of an execution. Raises UnknownWorkflow if this node does not have it."""


class LiveExecution(msgspec.Struct, eq=False, gc=False):
    """An execution with its program, at a committed version."""

    execution: Execution
    program: Program
    row: ExecutionRow | None
    """The row as it was committed last; None before the first commit."""
    history_bytes: int
    """How many bytes of history the program stands for: what a replay would have to read."""
    last_turn: tuple[int, Instant] = (0, 0)
    """The first event of the last history row that the program stands for, and its time: by them it is known whether a
    history has this beginning."""
    snapshot_from: int = 0
    """How many bytes of history the last snapshot stands for; 0 if there is none."""
    snapshot_size: int = 0
    """How many bytes that snapshot has."""
    weight: int = 0
    """How many bytes a cache counts for it, while it is in one."""

    def note_snapshot(self, snapshot: Snapshot, size: int) -> None:
        """Note that the program was restored from a snapshot, which has so many bytes."""
        self.history_bytes = self.snapshot_from = snapshot.history_bytes
        self.snapshot_size = size
        self.last_turn = snapshot.last_turn

    def note_history(self, history: Sequence[HistoryRow]) -> None:
        """Note that the program stands for more of its history."""
        if history:
            self.history_bytes += sum(len(one.body) for one in history)
            self.last_turn = (history[-1].first, history[-1].at)

    def note_write(self, row: ExecutionRow, history: HistoryRow | None) -> None:
        """Note what a turn has committed: the row, and its events if it had any."""
        self.row = row
        if history is not None:
            self.history_bytes += len(history.body)
            self.last_turn = (history.first, history.at)


class ProgramCache:
    """Live programs by execution id, and open executions by workflow id among them."""

    def __init__(self, most: int, most_bytes: int, is_outdated: Callable[[LiveExecution], bool]) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._live: OrderedDict[str, LiveExecution] = OrderedDict()
        self._by_key: dict[tuple[str, str], str] = {}
        self._is_outdated = is_outdated
        """Tells whether a program is of a definition that was replaced or removed."""
        self._may_be_outdated = False
        """Whether definitions were ever replaced or removed: else nobody is asked."""

    def __len__(self) -> int:
        return len(self._live)

    def get(self, execution_id: str) -> LiveExecution | None:
        """The live program of an execution, if it is here."""
        return self._live.get(execution_id)

    def find_open(self, key: tuple[str, str]) -> str | None:
        """The execution id of a live open execution, by org and workflow id."""
        return self._by_key.get(key)

    def take(self, execution_id: str) -> LiveExecution | None:
        """Remove a live program for the length of a turn: it is provisional until `put` back."""
        live = self._live.pop(execution_id, None)
        if live is not None:
            self._bytes -= live.weight
            key = (live.execution.org, live.execution.workflow_id)
            if self._by_key.get(key) == execution_id:  # another node may have closed it, and another run have the id by now
                del self._by_key[key]
        return live

    def put(self, live: LiveExecution) -> None:
        """Keep a program whose turn is committed; the least recently used ones make room."""
        execution = live.execution
        earlier = self.take(execution.execution_id)
        if earlier is not None and earlier is not live:
            earlier.program.close()
        if execution.closed_at is not None or (self._may_be_outdated and self._is_outdated(live)):
            live.program.close()
            return
        self._live[execution.execution_id] = live
        self._by_key[execution.org, execution.workflow_id] = execution.execution_id
        weight = live.program.weight
        live.weight = live.history_bytes if weight is None else weight
        self._bytes += live.weight
        while len(self._live) > self._most or (self._bytes > self._most_bytes and len(self._live) > 1):
            self.drop(next(iter(self._live)))

    def drop(self, execution_id: str) -> None:
        """Close the program of an execution, if it is here: its next turn costs a replay."""
        live = self.take(execution_id)
        if live is not None:
            live.program.close()

    def drop_outdated(self) -> None:
        """Close every program of a definition that was replaced or removed; one that takes a turn now, after it."""
        self._may_be_outdated = True
        for live in [one for one in self._live.values() if self._is_outdated(one)]:
            self.drop(live.execution.execution_id)

    def clear(self) -> None:
        """Close every program: the engine ends."""
        for execution_id in list(self._live):
            self.drop(execution_id)
