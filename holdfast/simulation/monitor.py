"""The monitor: it sees every commit of a run, and checks what must hold at every moment.

It keeps its own copy of every history, with which answers and starting activities are compared when they occur, and the
store at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import msgspec

from holdfast.core import codec, events
from holdfast.core.events import AnyEvent
from holdfast.core.instants import Instant
from holdfast.core.lifecycle import CLOSED
from holdfast.core.payloads import Payload
from holdfast.engine.activities.attempt import ActivityInfo
from holdfast.store.rows import ExecutionRow, HistoryRow


class SavedMonitor(msgspec.Struct, frozen=True):
    """What a monitor had seen at the moment of a backup."""

    rows: dict[str, ExecutionRow]
    histories: dict[str, list[AnyEvent]]
    commits: dict[str, int]
    open_ids: dict[tuple[str, str], str]
    times: dict[str, Instant]
    spans: dict[str, tuple[int, int]]


class Monitor:
    """All that was committed in one world, and the violations that were found."""

    def __init__(self) -> None:
        self.rows: dict[str, ExecutionRow] = {}
        self.histories: dict[str, list[AnyEvent]] = {}
        self.commits: dict[str, int] = {}
        """How many turns of each execution were committed."""
        self.problems: list[str] = []
        self.may_take_over = True
        """Whether activities may be taken over: not where all nodes live and only the database was out of reach."""
        self.may_be_ahead: Callable[[], bool] = lambda: False
        """Whether nodes may not have noticed yet that the database went back."""
        self.spans: dict[str, tuple[int, int]] = {}
        """By execution: the place among all commits at which it was opened, and at which it was closed (0: it is open)."""
        self._works: dict[str, tuple[str, Payload]] = {}
        """By idempotency key: the activity that it stands for, with its arguments."""
        self._digest = hashlib.blake2b(digest_size=16)
        self._times: dict[str, Instant] = {}
        """The time of the last turn of each execution."""
        self._open: dict[tuple[str, str], str] = {}
        self._place = 0

    # --- restores ---

    def save(self) -> SavedMonitor:
        """What was committed so far, to go back to."""
        histories = {execution_id: list(history) for execution_id, history in self.histories.items()}
        return SavedMonitor(
            dict(self.rows), histories, dict(self.commits), dict(self._open), dict(self._times), dict(self.spans)
        )

    def restore(self, saved: SavedMonitor) -> None:
        """The database went back: what was committed since never was."""
        self.rows, self.commits, self._open = dict(saved.rows), dict(saved.commits), dict(saved.open_ids)
        self.histories = {execution_id: list(history) for execution_id, history in saved.histories.items()}
        self._times = dict(saved.times)
        self.spans = dict(saved.spans)

    # --- commits ---

    def note_commit(self, rows: Iterable[ExecutionRow], histories: Iterable[HistoryRow]) -> None:
        """Note one commit; executions that close are noted before those that open under the same workflow id."""
        for row in sorted(rows, key=lambda row: row.status not in CLOSED):
            self._digest.update(f"{row.execution_id} {row.status} {row.state_version} {row.updated_at}".encode())
            self._note_row(row)
        for history in histories:
            self._digest.update(history.body)
            self._note_history(history)

    @property
    def digest(self) -> str:
        """A hash of all commits in their order."""
        return self._digest.hexdigest()

    def _note_row(self, row: ExecutionRow) -> None:
        key, execution_id = (row.org, row.workflow_id), row.execution_id
        before = self.rows.get(execution_id)
        if before is not None and before.status in CLOSED:
            self._complain(f"{_name(row)} was {before.status} and was written again as {row.status} (C4)")
        expected = 1 if before is None else before.state_version + 1
        if row.state_version != expected:
            self._complain(f"{_name(row)} was committed with version {row.state_version} instead of {expected} (X3)")
        self.rows[execution_id] = row
        self._note_span(row)
        self.commits[execution_id] = self.commits.get(execution_id, 0) + 1
        if row.status in CLOSED:
            if self._open.get(key) == execution_id:
                del self._open[key]
            return
        other = self._open.setdefault(key, execution_id)
        if other != execution_id:
            self._complain(f"{_name(row)} was opened while execution {other} had the same workflow id (I1)")

    def _note_span(self, row: ExecutionRow) -> None:
        self._place += 1
        opened, _ = self.spans.get(row.execution_id, (self._place, 0))
        self.spans[row.execution_id] = (opened, self._place if row.status in CLOSED else 0)

    def _note_history(self, history: HistoryRow) -> None:
        known = self.histories.setdefault(history.execution_id, [])
        if history.first != len(known) + 1:
            self._complain(f"execution {history.execution_id}: event {history.first} was committed after event {len(known)}")
        if history.at < self._times.get(history.execution_id, 0):
            self._complain(f"execution {history.execution_id}: event {history.first} is earlier than the one before it (T6)")
        self._times[history.execution_id] = history.at
        known.extend(codec.decode_events(history.body, history.schema))

    # --- what nodes and clients saw ---

    def note_attempt(self, info: ActivityInfo, is_second: bool) -> None:
        """Check that a starting activity was scheduled durably (X4); `is_second`: an attempt before it was interrupted."""
        if is_second and not self.may_take_over:
            self._complain(f"activity {info.number} of execution {info.execution_id} was taken from a living node (N2)")
        history = self.histories.get(info.execution_id, [])
        scheduled = [one for one in history if type(one) is events.ActivityScheduled and one.number == info.number]
        for event in scheduled:
            if self._works.setdefault(info.idempotency_key, (event.name, event.input)) != (event.name, event.input):
                self._complain(
                    f"the key of activity {info.number} of execution {info.execution_id} was that of other work (N5)"
                )
        if not scheduled and not self.may_be_ahead():
            self._complain(f"activity {info.number} of execution {info.execution_id} began before its commit (X4)")

    def has_event(self, execution_id: str, sequence: int, kind: type[events.Event]) -> bool:
        """Whether the durable history has an event of that kind at that sequence."""
        history = self.histories.get(execution_id, [])
        return 0 < sequence <= len(history) and type(history[sequence - 1]) is kind

    def _complain(self, problem: str) -> None:
        self.problems.append(problem)


def _name(row: ExecutionRow) -> str:
    return f"execution {row.execution_id} of '{row.workflow_id}'"
