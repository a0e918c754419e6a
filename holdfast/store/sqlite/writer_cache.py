"""What the only writer of a database need not ask it, because it has written it."""

from __future__ import annotations

from typing import Final, TypeAlias

from holdfast.core.instants import Instant

Place: TypeAlias = tuple[int, int, int, str]
"""Where an open execution's row is and what it says: executions.id, last_turn, state_version, org."""

Witness: TypeAlias = tuple[str, tuple[object, ...], bool]
"""A query, its values, and what it answers if the transaction took place."""

NEVER: Final = 2**63 - 1
SOME_PLACES: Final = 65_536


class Places:
    """The places of the executions used last, a bounded number: the younger half, and the half before it."""

    def __init__(self, limit: int = SOME_PLACES) -> None:
        self._half = limit // 2
        self._young: dict[str, Place] = {}
        self._old: dict[str, Place] = {}

    def get(self, execution_id: str) -> Place | None:
        place = self._young.get(execution_id)
        if place is None:
            place = self._old.get(execution_id)
            if place is not None:
                self.put(execution_id, place)
        return place

    def put(self, execution_id: str, place: Place) -> None:
        self._young[execution_id] = place
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
        """Executions whose known place is ahead of the database."""
        self.inbox_rows = 0
        self.offers = 0
        self.witness: Witness | None = None
        """How to tell afterwards whether it took place: any one change, since all of them do or none."""


class WriterCache:
    """What is known of the database as it is committed. Places and the bound on timers may be ahead of it, see `Changes`."""

    def __init__(self) -> None:
        self.places = Places()
        self.next_execution = 1
        """The id that the next execution gets in `executions`."""
        self.next_turn = 1
        """The id that the next turn gets in `events`."""
        self.inbox_rows = 0
        self.offers = 0
        """How many activities are offered, taken or not."""
        self.no_timer_before: Instant = 0
        """A bound: no timer, committed or not, is due earlier. NEVER if there is none at all."""

    def learn(self, last_execution: int, last_turn: int, inbox_rows: int, offers: int, earliest_due: Instant | None) -> None:
        """Begin anew, with what the database says."""
        self.places.clear()
        self.next_execution = last_execution + 1
        self.next_turn = last_turn + 1
        self.inbox_rows = inbox_rows
        self.offers = offers
        self.no_timer_before = NEVER if earliest_due is None else earliest_due

    def accept(self, changes: Changes) -> None:
        """Take over the changes of a transaction that was committed."""
        self.inbox_rows += changes.inbox_rows
        self.offers += changes.offers

    def forget(self, changes: Changes) -> None:
        """They are rolled back; timers that they removed are there again."""
        for execution_id in changes.touched:
            self.places.drop(execution_id)
        if changes.witness is not None:
            self.no_timer_before = 0
