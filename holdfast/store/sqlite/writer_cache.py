"""What the only writer of a database keeps in memory, so that it need not read what it has itself written."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from holdfast.core.instants import Instant

RowPosition: TypeAlias = tuple[int, int, int, str]
"""Where the row of an open execution is, and what it says: executions.id, last_turn, state_version, org."""

NEVER: Final = 2**63 - 1
MOST_POSITIONS: Final = 65_536


class CommitEvidence(NamedTuple):
    """How to find out whether a transaction was committed: what a query with these values answers if it was."""

    query: str
    values: tuple[object, ...]
    expected: bool


class StoredCounters(NamedTuple):
    """What the database says of its contents, in the order of `read_counters`."""

    last_execution: int
    last_turn: int
    inbox_rows: int
    offers: int
    earliest_due: Instant | None
    subscriptions: int
    pending: int
    publications: int


class RowPositions:
    """The row positions of the executions used last, a bounded number of them: the younger half, and the half before it."""

    def __init__(self, limit: int = MOST_POSITIONS) -> None:
        self._half = limit // 2
        self._young: dict[str, RowPosition] = {}
        self._old: dict[str, RowPosition] = {}

    def get(self, execution_id: str) -> RowPosition | None:
        position = self._young.get(execution_id)
        if position is None:
            position = self._old.get(execution_id)
            if position is not None:
                self.put(execution_id, position)
        return position

    def put(self, execution_id: str, position: RowPosition) -> None:
        self._young[execution_id] = position
        if len(self._young) > self._half:
            self._old, self._young = self._young, {}

    def drop(self, execution_id: str) -> None:
        self._young.pop(execution_id, None)
        self._old.pop(execution_id, None)

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


class Changes:
    """What one transaction has changed and not committed."""

    def __init__(self) -> None:
        self.touched: list[str] = []
        """Executions whose row position in the cache is ahead of the database."""
        self.inbox_rows = 0
        self.offers = 0
        self.subscriptions = 0
        self.pending = 0
        self.publications = 0
        self.evidence: CommitEvidence | None = None
        """One of the changes, by which the commit of all of them can be recognised; None if there are none."""


class WriterCache:
    """What is known of the committed database. Row positions and the bound on timers may be ahead of it, see `Changes`."""

    def __init__(self) -> None:
        self.positions = RowPositions()
        self.next_execution = 1
        """The id that the next execution gets in `executions`."""
        self.next_turn = 1
        """The id that the next turn gets in `events`."""
        self.inbox_rows = 0
        self.offers = 0
        """How many activities are offered, taken or not."""
        self.subscriptions = 0
        self.pending = 0
        """How many publications are kept."""
        self.publications = 0
        """How many are to be published, or have yet to reach subscribers."""
        self.no_timer_before: Instant = 0
        """A bound: no timer, committed or not, is due earlier. NEVER if there is none at all."""
        self.settings: int | None = None
        """The settings number (`holdfast.store.pauses`); None if it has to be read."""

    def learn(self, counters: StoredCounters) -> None:
        """Forget everything, and start from these counters of the database."""
        self.positions.clear()
        self.settings = None
        self.next_execution = counters.last_execution + 1
        self.next_turn = counters.last_turn + 1
        self.inbox_rows = counters.inbox_rows
        self.offers = counters.offers
        self.subscriptions = counters.subscriptions
        self.pending = counters.pending
        self.publications = counters.publications
        self.no_timer_before = NEVER if counters.earliest_due is None else counters.earliest_due

    def accept(self, changes: Changes) -> None:
        """Take over the changes of a transaction that was committed."""
        self.inbox_rows += changes.inbox_rows
        self.offers += changes.offers
        self.subscriptions += changes.subscriptions
        self.pending += changes.pending
        self.publications += changes.publications

    def forget(self, changes: Changes) -> None:
        """Drop what a rolled-back transaction put into the cache; timers that it removed exist again."""
        for execution_id in changes.touched:
            self.positions.drop(execution_id)
        if changes.evidence is not None:
            self.no_timer_before = 0
