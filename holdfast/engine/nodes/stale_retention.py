"""Retention of what is open: executions and human tasks that nobody has touched for a long time are told of, or ended.

One node at a time does so, under a lock. A pass walks through all open tasks and executions that are old enough, a page at a
time with pauses, so that work comes first. After a pass the lock is kept until the next one is due, so there is one pass in
that time however many nodes there are; if the node dies, another goes on when its lock expires. What was found is logged
once, at the end of a pass: that which the pass before did not find.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from holdfast.core.instants import SECOND, Instant, Micros
from holdfast.core.safe_texts import count_noun
from holdfast.engine.nodes.retention import LOCK_TIME, PAUSE
from holdfast.engine.stale_views import show_length
from holdfast.errors import HoldfastError, StoreError
from holdfast.log_events import LogEvent, tag

if TYPE_CHECKING:
    from holdfast.engine.clock import Alarm, Clock
    from holdfast.engine.stale_views import StaleItem
    from holdfast.store.contract import Store

log = logging.getLogger("holdfast.engine")
P = TypeVar("P")

LOCK: Final = "stale_retention"
LONGEST_REST: Final = 3600 * SECOND
"""How long after the beginning of a pass the next one begins at the latest."""
MOST_NAMED: Final = 5
"""How many of what was found a line of the log names."""
MOST_KNOWN: Final = 10_000
"""How many of what was found a node remembers, so that it is not logged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRetentionDeps(Generic[P]):
    """What a stale retention works with; P says how far a pass has come."""

    store: Store
    clock: Clock
    node: str
    window: Micros
    """For how long nobody has touched what is stale."""
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    begin: P
    """Where a pass begins."""
    step: Callable[[P], Awaitable[tuple[Sequence[StaleItem], P | None]]]
    """Takes a pass further: what it found or ended, and where it goes on; None if that was all."""
    ends: bool
    """Whether what is stale is ended, and not only told of."""


class StaleRetention(Generic[P]):
    """Tells of stale work, or ends it, for as long as the engine is open."""

    def __init__(self, deps: StaleRetentionDeps[P]) -> None:
        self._deps = deps
        self._rest = min(max(deps.window // 10, SECOND), LONGEST_REST)
        """How long after the beginning of a pass the next one begins."""
        self._place: P | None = None
        """How far the pass has come; None between two passes."""
        self._began: Instant = 0
        self._found: list[StaleItem] = []
        self._known: set[str] = set()
        self._alarm: Alarm | None = None
        self._wake_at: Instant = 0
        self._is_busy = False
        self._is_started = False

    def start(self) -> None:
        """Start looking; the first pass begins at once."""
        self._is_started = True
        self._look()

    def stop(self) -> None:
        """Stop looking. A page that is under way ends by itself."""
        self._is_started = False
        self._disarm()

    def on_heartbeat(self) -> None:
        """Look if the alarm should have rung, or rings much too late: the clock may have been set."""
        now = self._deps.clock.now()
        if self._wake_at < now - LOCK_TIME or self._wake_at > now + max(self._rest, LOCK_TIME):
            self._look()

    def note_went_back(self) -> None:
        """The database is at an earlier state: begin anew."""
        self._place = None
        self._look()

    def _arm(self, when: Instant) -> None:
        if self._is_started:
            self._wake_at = when
            self._alarm = self._deps.clock.call_at(when, self._look)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _look(self) -> None:
        if self._is_started and not self._is_busy:
            self._disarm()
            self._is_busy = True
            self._deps.spawn(self._go_on())

    async def _go_on(self) -> None:
        try:
            wake_at = await self._take_step()
        except StoreError as error:
            wake_at = self._deps.clock.now() + LOCK_TIME
            self._log_failure(error)
        except HoldfastError as error:  # the engine is shutting down, for instance
            wake_at = self._deps.clock.now() + LOCK_TIME
            if self._is_started:
                self._log_failure(error)
        self._is_busy = False
        self._arm(wake_at)

    async def _take_step(self) -> Instant:
        """Look at one page; when to look again."""
        deps, now = self._deps, self._deps.clock.now()
        if not await self._take_lock(now, LOCK_TIME):
            self._place = None
            return now + max(self._rest, SECOND)
        if self._place is None:
            self._place, self._began, self._found = deps.begin, now, []
        found, self._place = await deps.step(self._place)
        self._found += found[: max(0, MOST_KNOWN - len(self._found))]
        if self._place is not None:
            return now + PAUSE
        self._tell()
        wake_at = max(self._began + self._rest, now + PAUSE)
        await self._take_lock(now, wake_at - now)
        return wake_at

    async def _take_lock(self, now: Instant, length: Micros) -> bool:
        store = self._deps.store
        return store.exclusive or await store.take_lock(LOCK, self._deps.node, now, now + length)

    def _tell(self) -> None:
        """Log what the pass found that the one before did not find, or what it ended: one line."""
        new = [one for one in self._found if (one.task_id or one.execution_id) not in self._known]
        self._known = set() if self._deps.ends else {one.task_id or one.execution_id for one in self._found}
        if not new:
            return
        tasks = sum(one.kind == "task" for one in new)
        kinds = ((len(new) - tasks, "execution"), (tasks, "human task"))
        counts = " and ".join(count_noun(number, noun) for number, noun in kinds if number)
        named = ", ".join(map(str, new[:MOST_NAMED])) + (", …" if len(new) > MOST_NAMED else "")
        length = show_length(self._deps.window)
        if self._deps.ends:
            text = "node %s ended %s that nobody had touched for %s: %s"
        else:
            text = "node %s found %s that nobody has touched for %s: %s. Run `holdfast stale` for all of them"
        event = LogEvent.STALE_ENDED if self._deps.ends else LogEvent.STALE_FOUND
        log.warning(text, self._deps.node, counts, length, named, extra=tag(event, node=self._deps.node))

    def _log_failure(self, error: HoldfastError) -> None:
        log.warning(
            "node %s could not look for stale executions and tasks, and tries again in %d s: %s",
            self._deps.node,
            LOCK_TIME // SECOND,
            error,
            extra=tag(LogEvent.RETENTION_FAILED, node=self._deps.node),
        )
