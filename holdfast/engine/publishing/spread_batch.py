"""One transaction that puts inbox rows of what reaches its subscribers in batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from holdfast.core.ids import derive_entropy, make_execution_id
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.store.contract import UnroutedWrite
from holdfast.store.matching import make_triggered
from holdfast.store.publications import SPREAD_FROM, SpreadHead
from holdfast.store.rows import DeadLetterRow

if TYPE_CHECKING:
    from holdfast.engine.publishing.publish_batch import PublishBatchDeps
    from holdfast.store.contract import Transaction


class SpreadBatch:
    """Puts the next inbox rows of one publication. Made anew for each."""

    def __init__(self, deps: PublishBatchDeps, resting: Collection[int], given_up: Mapping[int, HoldfastError]) -> None:
        self._deps = deps
        self._resting = resting
        self._given_up = given_up
        self.head: SpreadHead | None = None
        """The publication, where it was asked for first."""
        self.has_dead_letters = False

    async def run(self, *, finds_head: bool) -> int:
        """How many subscribers were reached; 0: nothing is left to do. `finds_head`: it is known then which one failed."""
        transaction = await self._deps.store.begin()
        try:
            if finds_head:
                self.head = await transaction.find_spread(self._resting)
            count = await self._put(transaction)
            await (transaction.commit() if count else transaction.rollback())
        except OutcomeUnknown:
            return 1  # whether it was: the list of those who have not got it yet tells, so it is looked at again
        except BaseException:
            await transaction.rollback()
            raise
        return count

    async def _put(self, transaction: Transaction) -> int:
        reason = None if self.head is None else self._given_up.get(self.head.id)
        if self.head is None or reason is None:
            return await transaction.spread(SPREAD_FROM, self._deps.clock.now(), self._resting)
        await transaction.drop_publications([self.head.id])
        if self._deps.config.dead_letter_policy == "keep":
            await transaction.write([], UnroutedWrite(dead_letters=[self._bury(self.head, reason)]))
            self.has_dead_letters = True
        return 1

    def _bury(self, head: SpreadHead, reason: HoldfastError) -> DeadLetterRow:
        """What is left of a publication that cannot be put, under the execution that it is of, or one that never was."""
        now = self._deps.clock.now()
        receiver = head.origin or make_execution_id(now, derive_entropy(f"publication {head.id}"))
        return DeadLetterRow(head.org, receiver, "", make_triggered(0, head.body), reason.message, self._deps.node, now)
