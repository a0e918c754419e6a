"""In which order a batch takes its turns, where it may not have time for all: short ones first, and no kind is left out.

A node learns how long turns of each workflow take, if that is long. Turns are of one *kind* if those of their workflows take
about as long, and if all of them answer requests of this node (somebody waits), or all of them only take inbox rows and due
timers (there may be thousands). Kinds that take less time come first, and inboxes before requests: so whoever is quick waits
for little more than the batch that is under way, whatever lies in front of it in the queue.

A kind that got no turn at all in a batch, because others took all the time, was *overtaken*: those of it that were put off
get a rank. In the next batch that has one of them, whichever worker's that is, its kind comes first, the lowest rank of all
before the others. So each kind gets its turns, and within a kind the order of arrival holds. A rank is never given twice,
and whoever took a turn, or was put off although its kind got one, has none: nobody waits for ever.

All this is the node's and not each worker's, or a request could go from one worker to the next and be overtaken by each as
if for the first time.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from holdfast.engine.turns.commit_outcome import CommitOutcome
    from holdfast.engine.turns.pending_turns import PendingTurn

SHORT_TURN: Final = 0.01
"""Seconds up to which turns take no time worth counting: a batch of hundreds of them is soon over."""
LENGTH_FACTOR: Final = 4
"""Turns of workflows that differ by less than this factor take about as long."""

TurnKind: TypeAlias = tuple[int, bool]
"""How long turns take, as a power of the factor (0: no time worth counting); and whether they answer requests."""


class TurnOrder:
    """What a node knows about the length of turns, and who was overtaken, over all of its batches."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """How long a turn of a workflow takes, by name; only of those whose turns take long."""
        self.overtaken: dict[str, int] = {}
        """The ranks of executions that were put off and whose kind got no turn."""
        self._next_rank = 0

    @property
    def matters(self) -> bool:
        """Whether turns may have to be arranged: else they are taken as they come."""
        return bool(self.overtaken or self.seconds)

    def note_length(self, workflow: str, seconds: float) -> None:
        """A turn of a workflow took so long. What is known follows what is new, by half each time."""
        known = self.seconds.get(workflow)
        expected = seconds if known is None else (known + seconds) / 2
        if expected > SHORT_TURN:
            self.seconds[workflow] = expected
        elif known is not None:
            del self.seconds[workflow]

    def kind_of(self, workflow: str, *, has_requests: bool) -> TurnKind:
        """The kind of a turn, as far as is known now."""
        seconds = self.seconds.get(workflow)
        return (0 if seconds is None else 1 + int(math.log(seconds / SHORT_TURN, LENGTH_FACTOR)), has_requests)

    def arrange(self, turns: list[PendingTurn], find_workflow: Callable[[PendingTurn], str]) -> None:
        """Sort the turns of a batch."""
        overtaken = self.overtaken
        kinds = {one.execution_id: self.kind_of(find_workflow(one), has_requests=one.has_requests) for one in turns}
        first: dict[TurnKind, int] = {}
        for execution_id, kind in kinds.items():
            first[kind] = min(first.get(kind, sys.maxsize), overtaken.get(execution_id, sys.maxsize))

        def rank(one: PendingTurn) -> tuple[int, TurnKind, int]:
            kind = kinds[one.execution_id]
            return first[kind], kind, overtaken.get(one.execution_id, sys.maxsize)

        turns.sort(key=rank)

    def follow(self, outcome: CommitOutcome) -> None:
        """A batch is committed: rank those that it let wait for other kinds; the others of it have no rank any longer."""
        if self.overtaken:
            keep = {*outcome.overtaken, *outcome.lost}
            for execution_id in outcome.planned:
                if execution_id not in keep:
                    self.overtaken.pop(execution_id, None)
        for execution_id in outcome.overtaken:
            if execution_id not in self.overtaken:
                self.overtaken[execution_id] = self._next_rank
                self._next_rank += 1

    def forget_ranks(self) -> None:
        """Nothing waits here any longer, and other nodes may have taken some of what was overtaken."""
        self.overtaken.clear()


def find_overtaken(put_off: Iterable[tuple[str, TurnKind]], served: Collection[TurnKind]) -> list[str]:
    """Those of the executions that were put off whose kind got no turn in the batch."""
    return [execution_id for execution_id, kind in put_off if kind not in served]
