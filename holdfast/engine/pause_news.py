"""What follows on this node, and on others, when something is paused or resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.engine.activities.offers import OfferTaker
    from holdfast.engine.activities.runner import ActivityRunner
    from holdfast.engine.changes import Changes
    from holdfast.engine.turns.pauses import KnownPauses
    from holdfast.engine.turns.pump import Pump


class PauseNews:
    """Lets what was resumed go on, and tells who watches. `wake_others` lets other nodes look at what they left alone."""

    def __init__(
        self,
        known: KnownPauses,
        pump: Pump,
        runner: ActivityRunner,
        offers: OfferTaker,
        changes: Changes,
        wake_others: Callable[[], None],
    ) -> None:
        self._known = known
        self._pump = pump
        self._runner = runner
        self._offers = offers
        self._changes = changes
        self._wake_others = wake_others

    def on_changed(self) -> None:
        """Other workflows or queues are paused than before: what waited for that may go on."""
        self._pump.unskip()
        self._runner.on_pauses_changed()
        self._offers.look()
        self._changes.on_pauses_changed()

    def on_execution_paused(self, execution_id: str, version: int) -> None:
        """An execution was paused here, which is its present version."""
        self._changes.note([(execution_id, version)])

    def on_execution_resumed(self, execution_id: str, version: int) -> None:
        """An execution is no longer paused: this node and the others look at it again."""
        self._changes.note([(execution_id, version)])
        self._pump.unskip([execution_id])
        self._wake_others()

    async def follow(self) -> None:
        """A workflow or a queue was paused or resumed here: follow that, and tell the other nodes."""
        await self._known.try_refresh()
        self._wake_others()
        self._changes.note_pauses()
