"""Executions that end their process: found, and given up after some tries.

Once a process ended without a goodbye shortly after it had seen another end so, the next one takes care for a while: it
takes one turn at a time, and notes in the execution's row that it is about to. If the process ends, the note is still there.
An execution with a note is treated like that by everybody until it has taken a turn: the others are in no danger of being
taken for it, and need no care.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from holdfast.core import codec
from holdfast.core.failures import PROCESS_LOST, Failure
from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.core.signals import describe
from holdfast.engine.nodes.roster import read_details
from holdfast.errors import CorruptStore

if TYPE_CHECKING:
    from holdfast.core.execution import Details, Execution
    from holdfast.engine.batches.requests import Request
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.store.contract import ExecutionRow, NodeRow

log = logging.getLogger("holdfast.engine")

SHORTLY: Final[Micros] = 60 * SECOND
LONGEST: Final[Micros] = 60 * SECOND
_MAY_HAVE_NOTE: Final = b'"tries":'


class Ends:
    """Nodes that ended without a goodbye a short while ago. Each node tells the others which it knows of."""

    def __init__(self) -> None:
        self._known: dict[str, Instant] = {}

    def note(self, rows: Iterable[NodeRow], now: Instant) -> bool:
        """These ended so. Whether one of them had seen that of another: what ended the first may have ended it too."""
        is_chain = False
        for row in rows:
            before = _recent(read_details(row).ended, now)
            is_chain = is_chain or bool(before)
            for name, at in before.items():
                self._known.setdefault(name, at)
            self._known.setdefault(f"{row.node} {row.started_at}", now)
        self._known = _recent(self._known, now)
        return is_chain

    def tell(self, now: Instant) -> Mapping[str, Instant]:
        """For the next heartbeat."""
        return _recent(self._known, now)


def _recent(ends: Mapping[str, Instant], now: Instant) -> dict[str, Instant]:
    return {name: at for name, at in ends.items() if now - at < SHORTLY}


class Note(Enum):
    """What an execution's row says about care, to one node."""

    NONE = auto()
    """It may take its turn."""
    NEEDED = auto()
    """It has to be noted first that it will."""
    LATER = auto()
    """That, but another is noted here and has not taken its turn: whoever ends the process must be the only one noted."""
    OF_ANOTHER = auto()
    """Another node is about to let it take its turn."""


class Care:
    """Whether turns are taken one at a time, and which executions may take theirs.

    Meanwhile no activity begins that may have ended processes: it must be known who it was.
    """

    def __init__(self, clock: Clock) -> None:
        self.is_taken = False
        self.is_busy: Callable[[], bool] = bool
        """Whether activities run here, whose results will need turns."""
        self.is_alive: Callable[[str], bool] = lambda _: False
        """Whether another node is alive."""
        self._clock = clock
        self._alarm: Alarm | None = None
        self._noted: set[str] = set()
        """Executions whose rows hold a note of this very process."""
        self._driving: set[Request] = set()
        """What lets these take their turns."""
        self._waiting: list[asyncio.Future[None]] = []

    def begin(self) -> None:
        """Processes ended in a row: take care from now on."""
        if not self.is_taken:
            log.warning(
                "processes ended in a row without a goodbye: turns are taken one at a time for at most %d s, to find out "
                "whether an execution ends them",
                LONGEST // SECOND,
            )
        self.is_taken = True
        self.stop()
        self._alarm = self._clock.call_at(self._clock.now() + LONGEST, self._end)

    def stop(self) -> None:
        """No more alarms."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def rest(self) -> None:
        """There is nothing left to do for the time being."""
        self._noted.clear()
        self._driving.clear()
        if self.is_taken and not self.is_busy():
            self._end()
        self._tell()

    def _end(self) -> None:
        self.is_taken = False
        self.stop()
        log.warning("turns are taken together again")
        self._tell()

    # --- executions ---

    def read_note(self, row: ExecutionRow) -> Note:
        """Whether an execution may take its turn."""
        if row.execution_id in self._noted:
            return Note.NONE
        details = _read_details(row)
        if details is not None and details.tries and self.is_alive(details.trying):
            return Note.OF_ANOTHER
        if not self.is_taken and (details is None or not details.tries):
            return Note.NONE
        return Note.LATER if self.has_noted else Note.NEEDED

    @property
    def has_noted(self) -> bool:
        """Whether an execution is noted that has not taken its turn."""
        return bool(self._noted)

    def is_noted(self, execution_id: str) -> bool:
        """Whether that is this execution."""
        return execution_id in self._noted

    def note(self, execution_ids: Iterable[str], driving: Iterable[Request] = ()) -> None:
        """What is noted, is noted durably. These requests let them take their turns."""
        self._noted.update(execution_ids)
        if self._noted:
            self._driving.update(driving)

    def forget(self, execution_ids: Iterable[str]) -> None:
        """They have taken their turns."""
        if self._noted:
            self._noted.difference_update(execution_ids)
            self._tell()
        if not self._noted:
            self._driving.clear()

    def put_first(self, queue: list[Request]) -> None:
        """Sort to the front what lets noted executions take their turns: all others wait for that."""
        if self._driving:
            queue.sort(key=lambda request: request not in self._driving)

    def give_up(self, request: Request) -> None:
        """A request was refused. If nothing is left that lets noted executions take their turns, nobody waits for them."""
        if request in self._driving:
            self._driving.discard(request)
            if not self._driving:
                self._noted.clear()
                self._tell()

    # --- activities ---

    @property
    def is_calm(self) -> bool:
        """Whether no turn is under way that may end the process."""
        return not self.is_taken and not self._noted

    async def wait_until_calm(self) -> None:
        """Wait for that."""
        while not self.is_calm:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def _tell(self) -> None:
        if self._waiting and self.is_calm:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)


def _read_details(row: ExecutionRow) -> Details | None:
    """The details of a row that may hold a note; None if there is none for certain."""
    if _MAY_HAVE_NOTE not in row.details:
        return None
    try:
        return codec.decode_details(row.details)
    except CorruptStore:
        return None  # whoever loads it reports that


def read_tries(row: ExecutionRow) -> int:
    """How often a turn of an execution was begun with care and not ended."""
    details = _read_details(row)
    return 0 if details is None else details.tries


def blame(execution: Execution, tries: int) -> Failure:
    """Why an execution is blocked that ended its process too often."""
    return Failure(
        type=PROCESS_LOST,
        message=f"Expected {describe(execution)} to take its turn, but {tries} times in a row the process that tried ended. "
        "Mend the code of the workflow, then call retry_blocked; what it was to take is in the dead letters.",
    )
