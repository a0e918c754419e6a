"""One quarantine for every poison: executions whose turns end their process, cannot be committed, or never end.

Theory of operation
-------------------
A turn is poison if taking it does harm beyond its own execution: the process ends (a crash in C code, memory that runs out,
`os._exit`), the transaction of the whole batch fails, or the loop's thread never comes back. One such turn must not stop
the others of its batch, nor jump from node to node. The rule has three parts.

*Who is suspect.* Nobody, as long as nothing goes wrong. An execution becomes suspect
- if a process ended while it was about to take this execution's turn: each batch leaves a mark that outlives the process
  (`Transaction.mark_in_flight`), with the version at which the turn begins. Whoever claims the execution later and finds the
  mark of another process at the very same version knows that the turn was begun and never committed. On a shared store a
  turn that only a call asks for ends with its process; it is marked while a process has ended lately (`is_alert`), since
  whoever made the call may repeat it on another node. A replay that no turn follows, for a query or a look at what an
  execution waits for, is marked too, and the mark cleared after it; it is refused once `max_lost` processes have ended in
  one at the present version;
- if its activities ran on a node that ended without leaving: the turn that took a result may have ended it
  (`core.placing.decide_redispatch` sets `suspect`);
- if its batch failed, otherwise than by an outage of the store: the batch is split until the failing turn is alone
  (`turns.batch_runner` does that), and then the failure is noted in its row.
Everybody else goes on at full speed.

*What a suspect has to go through.* Before it takes a turn, its row notes that (`tries` + 1, and by which process), and that
is committed. Only then a batch of its own, a *trial*, takes the turn. If the process ends in it, the note is still there,
and the next process knows. First trials take many suspects together, since most are innocent; who was noted before is
tried with few others, then alone (`GROUP_SIZES`). Only one such group is noted at a time: whoever ends the process is among
them; all other suspects wait. While a living process tries it, other nodes leave it alone. A turn that
is committed clears everything. A turn that never ends is interrupted by the watchdog and blocked at once; what cannot be
interrupted ends the process, which makes it the first case.

*What counts as a try.* That a process ended; and that a turn failed alone, if its failure could be noted in its row, which
shows that the store takes writes. Where the store says that the turn took too long (a time limit), or that it cannot be
written, each failure counts. Connections also break by chance: three in a row, tried at once one after the other, count as
one. A lack of room (disk, memory) never counts, since the turn can be committed once there is room: it is tried again
without end, apart and slowly (`turns.resting`), and its row says why. Until then it is a suspect for other nodes too.

*How it ends.* After `max_lost` tries the execution is blocked with the reason. What waits in its inbox stays there, shown
with the execution; somebody fixes the code and calls retry_blocked, or terminates it.

A batch asks `judge` and `may_note`; the trials of the pump call `note` and `group`, and `forget` when they are over; the
activity runner awaits `wait_until_no_trial` before it begins an activity that may itself have ended processes, so that it is
known which of two suspects did it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from holdfast.core import codec
from holdfast.core.failures import NOT_COMMITTED, PROCESS_LOST, Failure
from holdfast.core.signals import describe_execution
from holdfast.errors import CorruptStore, NewerFormat

if TYPE_CHECKING:
    from holdfast.core.execution import Details, Execution
    from holdfast.core.instants import Instant
    from holdfast.engine.living_nodes import LivingNodes
    from holdfast.store.nodes import InFlightMark
    from holdfast.store.rows import ExecutionRow

GROUP_SIZES: Final = (256, 16)
"""How many suspects take their turns in one trial: at the first try, at the second. From the third on, each alone."""
REPLAY_SLOTS: Final = 1_000
"""From this slot on marks are those of replays; batches have lower ones."""
_NOTES: Final = (b'"tries":', b'"suspect":')


class Verdict(Enum):
    """What the quarantine says about an execution that is about to take a turn in a batch."""

    CLEAR = auto()
    """It takes its turn: it is not suspect, or this batch is its trial."""
    NOTE_FIRST = auto()
    """It is suspect: that it will take a turn has to be noted in its row first."""
    AWAITS_TRIAL = auto()
    """It is noted, and its trial is another batch of this node."""
    TRIED_ELSEWHERE = auto()
    """Another living process is about to let it take its turn."""
    BLOCK = auto()
    """It was tried too often, and is to be blocked."""


class Quarantine:
    """Judges suspects, and knows which of them this process is trying."""

    def __init__(self, living: LivingNodes, max_tries: int) -> None:
        self._living = living
        self._max_tries = max_tries
        self._noted: dict[str, int] = {}
        """Executions whose rows hold a note of this very process, with the number of the try."""
        self._apart: set[str] = set()
        """Executions whose batch failed, and who take their turns in trials alone until they are found innocent."""
        self._waiting: list[asyncio.Future[None]] = []

    # --- for batches ---

    def judge(self, execution_id: str, row: ExecutionRow | None, trial: Collection[str], *, was_in_flight: bool) -> Verdict:
        """What to do about an execution that has something to take. `trial`: whom the batch tries."""
        if execution_id in trial:
            return self._judge_tried(execution_id, row)
        if execution_id in self._noted or execution_id in self._apart:
            return Verdict.AWAITS_TRIAL
        details = None if row is None else _read_note(row)
        if details is None:
            return Verdict.NOTE_FIRST if was_in_flight else Verdict.CLEAR
        if details.tries and self._living.is_alive(details.trying):
            return Verdict.TRIED_ELSEWHERE
        if details.tries >= self._max_tries:
            return Verdict.BLOCK
        return Verdict.NOTE_FIRST

    def _judge_tried(self, execution_id: str, row: ExecutionRow | None) -> Verdict:
        """Who is on trial takes its turn, once that is noted: one that is only kept apart may be a suspect by now."""
        if row is None or execution_id in self._noted or (details := _read_note(row)) is None or not details.tries:
            return Verdict.CLEAR
        if not details.trying:
            return Verdict.CLEAR  # it failed alone: that it fails again is counted then
        if self._living.is_alive(details.trying):
            return Verdict.TRIED_ELSEWHERE
        return Verdict.BLOCK if details.tries >= self._max_tries else Verdict.NOTE_FIRST

    def count_lost(self, marks: Iterable[InFlightMark]) -> int:
        """How many processes had an execution in flight at its present version, and did not come to the end of it.

        Replays are marked without the lock of the execution: what a living process replays at this moment says nothing.
        """
        lost = {one.process for one in marks if one.slot < REPLAY_SLOTS or not self._living.is_known_alive(one.process)}
        return len(lost)

    @property
    def max_tries(self) -> int:
        """After how many tries an execution is blocked."""
        return self._max_tries

    def may_note(self, tries: int, noted: Sequence[int]) -> bool:
        """Whether a suspect may be noted for this try, beside those that the batch has noted, each for which try.

        Only one group is noted at a time: if the process ends, it must be one of those who did it.
        """
        return not self._noted and all(one == tries for one in noted) and len(noted) < find_group_size(tries)

    def is_alert(self, now: Instant) -> bool:
        """Whether every turn is to be marked as in flight, also on a shared store: a process ended lately."""
        return self._living.is_alert(now)

    @property
    def is_trying(self) -> bool:
        """Whether executions are noted here whose turns may end the process."""
        return bool(self._noted)

    def is_noted(self, execution_id: str) -> bool:
        """Whether the row of an execution says that this process is about to take its turn."""
        return execution_id in self._noted

    def is_apart(self, execution_id: str) -> bool:
        """Whether an execution takes its turns in trials alone, since a batch with it failed."""
        return execution_id in self._apart

    # --- for the pump ---

    @property
    def apart(self) -> Collection[str]:
        """The executions that take their turns in trials alone, since a batch with them failed."""
        return self._apart

    def keep_apart(self, execution_ids: Iterable[str]) -> None:
        """From now on these executions take their turns in trials alone: a batch with them failed."""
        self._apart.update(execution_ids)

    def rejoin(self, execution_ids: Iterable[str]) -> None:
        """From now on these executions take their turns together with all others again."""
        self._apart.difference_update(execution_ids)

    def note(self, execution_id: str, tries: int) -> None:
        """Remember that the row of an execution says, committed, that this process is about to take its turn."""
        self._noted[execution_id] = tries

    def group(self, execution_ids: Sequence[str]) -> list[list[str]]:
        """Divide noted executions into the groups in which they are tried."""
        groups: list[list[str]] = []
        by_tries: dict[int, list[str]] = {}
        for execution_id in execution_ids:
            by_tries.setdefault(self._noted.get(execution_id, 1), []).append(execution_id)
        for tries, members in sorted(by_tries.items()):
            size = find_group_size(tries)
            groups.extend(members[start : start + size] for start in range(0, len(members), size))
        return groups

    def forget(self, execution_ids: Iterable[str]) -> None:
        """The trials of these executions are over, one way or the other."""
        for execution_id in execution_ids:
            self._noted.pop(execution_id, None)
        if not self._noted and self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    # --- for the activity runner ---

    async def wait_until_no_trial(self) -> None:
        """Wait until no trial is to come or under way here: each of them may end the process."""
        while self._noted:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future


def find_group_size(tries: int) -> int:
    """How many suspects take their turns in one trial, when it is their first, second, third … try."""
    return GROUP_SIZES[tries - 1] if tries <= len(GROUP_SIZES) else 1


def _read_note(row: ExecutionRow) -> Details | None:
    """The details of a row that holds a note; None if there is none, which a look at the bytes tells."""
    if not any(mark in row.details for mark in _NOTES):
        return None
    try:
        details = codec.decode_details(row.details)
    except (CorruptStore, NewerFormat):
        return None  # whoever loads it reports that
    return details if details.tries or details.suspect else None


def clear_note(details: Details) -> None:
    """Take the note away from an execution that took its turn."""
    details.tries, details.trying, details.suspect = 0, "", False
    if details.last_error is not None and details.last_error.type == NOT_COMMITTED:
        details.last_error = None


def undo_note(execution: Execution, process: str) -> bool:
    """Take back that this process is about to try an execution, whose program did not run; whether it had noted that."""
    details = execution.details
    if details.trying != process:
        return False
    details.tries, details.trying, details.suspect = details.tries - 1, "", True
    return True


def make_block_reason(execution: Execution) -> Failure:
    """Why an execution is blocked that was tried too often: what its last try failed with, or that its process ended."""
    details, who = execution.details, describe_execution(execution)
    if details.last_error is not None:
        failure = details.last_error
        return Failure(
            type=failure.type,
            message=f"Expected {who} to take its turn, but that failed {details.tries} times in a row, "
            f"at last with: {failure.message} Fix the cause, then call retry_blocked; what it was to take is in its inbox.",
            trace=failure.trace,
        )
    return Failure(
        type=PROCESS_LOST,
        message=f"Expected {who} to take its turn, but {details.tries} times in a row the process that "
        "tried ended. Fix the code of the workflow, then call retry_blocked; what it was to take is in its inbox.",
    )
