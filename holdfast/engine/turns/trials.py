"""Batches of their own for suspects and for the parts of a failing batch: run before all other work, one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.engine.turns.claims import BatchOrder, ClaimTarget

if TYPE_CHECKING:
    from holdfast.engine.quarantine import Quarantine
    from holdfast.engine.requests import AnyRequest
    from holdfast.engine.turns.batch_effects import Noted


PARTS: Final = 8
"""Into how many trials a group is split that fails. A try that fails may take ten seconds, one that succeeds takes none."""


class Trial:
    """Some executions that take their turns in a batch of their own, with the requests for each of them."""

    __slots__ = ("_members",)

    def __init__(self, members: Iterable[tuple[ClaimTarget, Sequence[AnyRequest]]]) -> None:
        self._members: dict[str, tuple[ClaimTarget, list[AnyRequest]]] = {
            target.execution_id: (target, list(requests)) for target, requests in members
        }

    def __len__(self) -> int:
        return len(self._members)

    @property
    def execution_ids(self) -> list[str]:
        """The suspects whose turns this trial takes."""
        return list(self._members)

    @property
    def targets(self) -> list[ClaimTarget]:
        """The suspects, each with all that a claim of it names."""
        return [target for target, _ in self._members.values()]

    @property
    def requests(self) -> list[AnyRequest]:
        """This node's own requests for its members; each once, though two members may share one."""
        return list(dict.fromkeys(request for _, requests in self._members.values() for request in requests))

    def make_order(self) -> BatchOrder:
        """The order for the batch that runs this trial."""
        return BatchOrder(self.requests, self.targets)

    def add(self, execution_id: str, requests: Iterable[AnyRequest]) -> None:
        """Add requests that came meanwhile for one of the executions of this trial."""
        self._members[execution_id][1].extend(requests)

    def replace_requests(self, keep: Callable[[Sequence[AnyRequest]], Collection[AnyRequest]]) -> None:
        """Let only those requests be part of this trial that `keep` returns of all."""
        kept = set(keep(self.requests))
        for _, requests in self._members.values():
            requests[:] = [request for request in requests if request in kept]

    def split(self) -> list[Trial]:
        """Trials of a few of the suspects each, to find out which of them fails."""
        members = list(self._members.values())
        size = -(-len(members) // PARTS)
        return [Trial(members[start : start + size]) for start in range(0, len(members), size)]

    def keep(self, execution_ids: Iterable[str]) -> Trial | None:
        """A trial of these members alone; None if none of them is one."""
        members = [self._members[execution_id] for execution_id in execution_ids if execution_id in self._members]
        return Trial(members) if members else None


class Trials:
    """The trials that are to come, and the one that is under way."""

    def __init__(self, quarantine: Quarantine) -> None:
        self._quarantine = quarantine
        self._coming: deque[Trial] = deque()
        self._present: Trial | None = None

    @property
    def is_due(self) -> bool:
        """Whether a trial waits to begin: only one is under way at a time."""
        return bool(self._coming) and self._present is None

    @property
    def is_busy(self) -> bool:
        """Whether any trial is under way or waits to begin."""
        return bool(self._coming) or self._present is not None

    def begin(self) -> Trial:
        """Begin the next trial, which is under way until `end` is called."""
        self._present = self._coming.popleft()
        return self._present

    def end(self, *following: Trial | None) -> None:
        """End the trial that is under way; the `following` trials come next."""
        self._present = None
        self._coming.extendleft(trial for trial in reversed(following) if trial is not None)

    def note(self, noted: Sequence[Noted]) -> None:
        """Plan trials for suspects whose notes are committed, in groups."""
        members = {one.target.execution_id: (one.target, one.requests) for one in noted}
        for one in noted:
            self._quarantine.note(one.target.execution_id, one.tries)
        for group in self._quarantine.group(list(members)):
            self._coming.append(Trial(members[execution_id] for execution_id in group))

    def isolate(self, failed: Trial) -> None:
        """Plan trials for the parts of a batch or trial that failed. All that were planned before come first."""
        self._coming.extend(failed.split())

    def plan(self, trial: Trial) -> None:
        """Let a trial come after all that were planned before."""
        self._coming.append(trial)

    def plan_next(self, trial: Trial) -> None:
        """Let a trial come before all others."""
        self._coming.appendleft(trial)

    def replace_requests(self, keep: Callable[[Sequence[AnyRequest]], Collection[AnyRequest]]) -> None:
        """Let only those requests be part of the trials under way and to come that `keep` returns of each one's."""
        for trial in (*self._coming, *(() if self._present is None else (self._present,))):
            trial.replace_requests(keep)

    def add(self, execution_id: str, requests: Sequence[AnyRequest]) -> bool:
        """Let requests be part of the trial of their execution; False if none is to come."""
        for trial in self._coming:
            if execution_id in trial.execution_ids:
                trial.add(execution_id, requests)
                return True
        return False

    def abandon(self) -> list[AnyRequest]:
        """Forget all trials that are to come; the requests that were part of them."""
        requests = [request for trial in self._coming for request in trial.requests]
        self._coming.clear()
        return requests
