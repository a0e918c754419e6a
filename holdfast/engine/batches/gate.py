"""Which of a batch's executions take their turns in it: others are left, parked, put off, or noted first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.core.lifecycle import Status
from holdfast.engine.batches.care import Care, Note, read_tries
from holdfast.engine.batches.leaving import keep_requests, keep_rows, leave, register
from holdfast.engine.batches.tries import find_next, give_up, note_try, put_off

if TYPE_CHECKING:
    from holdfast.core.effects import Limits
    from holdfast.core.instants import Instant
    from holdfast.engine.batches.requests import Request
    from holdfast.engine.batches.routing import Router
    from holdfast.engine.batches.settling import Taken
    from holdfast.engine.batches.work import Work
    from holdfast.engine.routes import Routes
    from holdfast.store.contract import ExecutionRow


class Gate:
    """Lets executions through, before anything of theirs is loaded."""

    def __init__(self, routes: Routes, care: Care, node: str, now: Instant, limits: Limits, max_tries: int) -> None:
        self._routes = routes
        self._care = care
        self._node = node
        self._now = now
        self._limits = limits
        self._max_tries = max_tries
        self._noted: dict[str, list[Request]] = {}
        """Executions that do not take their turns yet, since it is noted first that they will; and what lets them."""
        self.written: list[Taken] = []
        """What is written about those who do not take their turns."""
        self.parked: list[str] = []

    def pick(self, cold: dict[str, Work], router: Router) -> None:
        """Leave those in `cold` that take their turns. To be terminated, none of its code is needed: that anybody may be."""
        for execution_id, work in list(cold.items()):
            row = router.rows.get(execution_id)
            if row is not None and not self._lets_through(work, row, router):
                del cold[execution_id]

    def _lets_through(self, work: Work, row: ExecutionRow, router: Router) -> bool:
        if not self._routes.may_take(row.route):
            if not work.put_terminate_first():
                leave(work, router, row.route)
                return False
            return True
        if row.status == Status.BLOCKED:
            if not work.put_terminate_first():
                self.park(work, router, row)
                return False
            return True
        note = Note.NONE if work.retaken or work.ends else self._care.read_note(row)
        if note is Note.NONE:
            return True
        if work.put_terminate_first():
            work.ends = True
            return True
        self._take_care(work, row, router, note)
        return False

    def _take_care(self, work: Work, row: ExecutionRow, router: Router, note: Note) -> None:
        """Before an execution takes a turn that may end the process, that is noted. Too often, and it is given up."""
        if note is Note.OF_ANOTHER:
            self.park(work, router, row)
        elif note is Note.LATER or self._noted:
            put_off(work, router)
        elif read_tries(row) < self._max_tries:
            self._noted[work.execution_id] = find_next(work, row.workflow_id)
            self.written.append(note_try(work, row, self._now, self._limits, self._node))
        else:
            self.parked.append(work.execution_id)
            version = self._routes.version_of(row.workflow) or ""
            self.written.append(give_up(work, router, row, self._now, self._limits, version))

    def may_begin(self, work: Work) -> bool:
        """Whether a new execution takes its first turn now. Else it is made, and waits for whoever does."""
        assert work.new is not None  # noqa: S101 - asked only for new ones
        if not self._routes.may_begin(work.new):  # who cannot take its turn must not note that it will
            self.written.append(register(work, self._now, self._limits))
            return False
        is_known = self._routes.version_of(work.new.workflow) is not None
        if not self._care.is_taken or work.retaken or not is_known:
            return True
        may_try = not self._noted and not self._care.has_noted
        if may_try:
            self._noted[work.execution_id] = find_next(work, work.new.workflow_id)
        self.written.append(register(work, self._now, self._limits, self._node if may_try else ""))
        return False

    def park(self, work: Work, router: Router, row: ExecutionRow | None) -> None:
        """Keep what arrived for an execution that cannot take it now: rows stay, requests become rows."""
        self.parked.append(work.execution_id)
        route = "" if row is None else row.route
        keep_rows(work, router, route)
        keep_requests(work, router, route)

    def settle(self, taken: Iterable[Taken], lost: set[str]) -> list[Request]:
        """The batch is committed, but for the turns in `lost`. What those who are noted need to take their turns next."""
        if self._care.has_noted:
            self._care.forget({one.work.execution_id for one in taken} - self._noted.keys() - lost)
        driving = [request for requests in self._noted.values() for request in requests]
        self._care.note(self._noted.keys() - lost, driving)
        return driving
