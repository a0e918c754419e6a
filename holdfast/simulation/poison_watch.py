"""The poisons of one run: they strike, are watched until each is blocked or rests, and are cured then.

What must hold (D2, N3): nobody but poisons is ever blocked; each poison ends at most `max_lost` processes beside the one by
which it becomes a suspect, and is blocked then, or rests if only room is lacking; it strikes no more while it is blocked;
others are answered in time (`poison_clients`). Once it is cured and retried, it ends with all that waited for it, which the
checks of every run look at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, Protocol

from holdfast.core import codec, events
from holdfast.core.instants import SECOND, Instant
from holdfast.core.lifecycle import Status
from holdfast.engine.turns.turn_limit import TurnInterrupted
from holdfast.simulation.clients import CAUSED_BY_FAULT, ClientLedger
from holdfast.simulation.outcomes import read
from holdfast.simulation.plans import PoisonKind, TakePoison
from holdfast.simulation.poison_clients import PoisonClient, Probe
from holdfast.simulation.poison_store import PoisonedStore
from holdfast.simulation.poisons import ENDING, REFUSED, Poison, PoisonFeed, count_uncounted_ends
from holdfast.simulation.world import MILLI, World, spawn
from holdfast.store.contract import Store, TurnWrite
from holdfast.store.memory.faults import SimulatedCrash
from holdfast.store.rows import ExecutionRow

MAX_TURN_BYTES: Final = 400_000
"""The most bytes of history that one turn may write in a run with poisons: programs write far less."""
TURN_LIMIT: Final = 2 * SECOND
"""How long a turn that never ends keeps its node busy, until it is interrupted."""
TRANSACTION_TIMEOUT: Final = 2 * SECOND
"""After how long the store gives a turn up that takes too long."""
POLL_MILLIS: Final = 250
SETTLE_SECONDS: Final = 300
"""Within how much virtual time every poison must be blocked, or rest."""
SETTLE_ALONE: Final = 8 * SECOND
"""For how long clients try in vain to feed a poison of which nothing is left in the store."""
LINGER_SECONDS: Final = 5
"""For how long poisons that are blocked are watched before they are cured."""


class Actor(Protocol):
    """Whoever has something to do in a run, which ends when all are done."""

    name: str
    present: Any
    """What is under way, for the report of a run that is stuck; None if nothing is."""
    task: asyncio.Task[None]
    """Ends when it has done all that there is to do in the run."""


class WatchedPoison:
    """How one poison stands: what it has done so far, and whether it still does harm."""

    def __init__(self, poison: Poison) -> None:
        self.poison = poison
        self.ends = 0
        """How many processes it has ended."""
        self.refusals: list[Instant] = []
        """When the store refused what it wrote."""
        self.is_cured = False


class PoisonWatch:
    """Lets the poisons of one run strike, and watches what becomes of them."""

    def __init__(self, world: World, random: Random, poisons: Sequence[Poison], max_lost: int) -> None:
        self.name = "the watch of poisons"
        self.present: str | None = None
        self.is_over = False
        """Whether all poisons are cured."""
        self.ends: list[Instant] = []
        """When processes were ended."""
        self.held_up: list[tuple[str, Instant, Instant]] = []
        """Which nodes were held up by poison turns, from when to when."""
        self._world = world
        self._random = random
        self._max_lost = max_lost
        self._all = {poison.workflow_id: WatchedPoison(poison) for poison in poisons}
        self._dead: set[str] = set()
        """Nodes whose processes were ended."""
        self._complaints: set[str] = set()
        world.wrap_store = self._wrap_store
        world.has_poisons = True
        self.task = spawn(world.loop, self._watch())

    def make_actors(self, ledger: ClientLedger) -> list[Actor]:
        """Whoever has to do with poisons: a client for each, one that probes how others fare, and the watch itself."""
        clients = [PoisonClient(self._world, self, one.poison, ledger) for one in self._all.values()]
        return [*clients, Probe(self._world, self, ledger), self]

    def is_harmful(self, poison: Poison) -> bool:
        """Whether a poison is neither blocked nor cured."""
        one = self._all[poison.workflow_id]
        row = self._find_row(one)
        return not one.is_cured and (row is None or row.status != Status.BLOCKED)

    # --- for nodes ---

    def _wrap_store(self, store: Store, node: str) -> Store:
        """A store in front of that of a node, which refuses what poisons write."""
        wrapped: Any = PoisonedStore(store, self, node)
        return wrapped  # type: ignore[no-any-return]  # it has the methods of the store, by delegation

    def strike(self, step: TakePoison) -> int:
        """Do the harm of a poison turn, in the code that takes it; how many bytes it is to write."""
        one = self._all[step.label.rpartition("/")[0]]
        node, kind = self._world.loop.present_node, one.poison.kind
        if one.is_cured or (step.is_early and not one.ends):
            return 0
        row = self._find_row(one)
        if row is not None and row.status == Status.BLOCKED:
            self.complain(f"{self._describe(one)} took a turn though it is blocked")
        if kind in ENDING:
            if node not in self._dead:
                self._end_process(one, node)
            raise SimulatedCrash(node, step.label)
        if kind is PoisonKind.NEVER_ENDS:
            self._world.note(f"{self._describe(one)} never ends on {node}")
            self._note_held_up(node, TURN_LIMIT)
            self._world.loop.freeze(node, self._world.loop.now + TURN_LIMIT)
            raise TurnInterrupted
        return MAX_TURN_BYTES if kind is PoisonKind.TOO_LARGE else 0

    def _end_process(self, one: WatchedPoison, node: str) -> None:
        one.ends += 1
        self.ends.append(self._world.loop.now)
        self._world.note(f"{self._describe(one)} ends the process of {node}, its {one.ends}.")
        self._dead.add(node)
        self._world.loop.kill(node)
        self._world.outside.copy().run(self._world.loop.call_soon, self._world.kill, node)  # files may not be touched here
        if one.ends > self._max_lost + count_uncounted_ends(one.poison, len(self._all) - 1):
            self.complain(f"{self._describe(one)} ended {one.ends} processes with max_lost={self._max_lost}")
            one.is_cured = True

    def _note_held_up(self, node: str, length: int) -> None:
        now = self._world.loop.now
        self.held_up.append((node, now, now + length))

    # --- for stores ---

    async def wait_if_dead(self, node: str) -> None:
        """Never return to a node whose process has ended."""
        if node in self._dead:
            await self._world.loop.create_future()

    def find_refused(self, turns: Sequence[TurnWrite]) -> PoisonKind | None:
        """Why the store does not take these turns; None if it does."""
        for turn in turns:
            one = self._all.get(turn.row.workflow_id)
            if one is None or one.is_cured or one.poison.kind not in REFUSED or turn.history is None:
                continue
            for event in codec.decode_events(turn.history.body, turn.history.schema):
                if _is_marker(event, f"{one.poison.workflow_id}/turn"):
                    self._world.note(f"what {self._describe(one)} writes is refused")
                    one.refusals.append(self._world.loop.now)
                    return one.poison.kind
        return None

    async def hold_up(self, node: str) -> None:
        """Let a node wait as long as the store tries a turn before it gives it up."""
        self._note_held_up(node, TRANSACTION_TIMEOUT)
        await self._world.loop.pause(TRANSACTION_TIMEOUT)

    def breaks_in_commit(self) -> bool:
        """Whether a connection that breaks does so in the commit, not before it."""
        return self._random.random() < 0.3

    # --- watching ---

    async def _watch(self) -> None:
        """Wait until all poisons are settled, watch them for a while, then cure them."""
        loop = self._world.loop
        give_up_at = loop.now + SETTLE_SECONDS * SECOND
        while unsettled := [one for one in self._all.values() if not self._is_settled(one)]:
            self.present = f"waiting for {', '.join(map(self._describe, unsettled))}"
            self._check_innocent()
            if loop.now > give_up_at:
                for one in unsettled:
                    self.complain(
                        f"{self._describe(one)} is not blocked after {SETTLE_SECONDS} s ({one.ends} processes ended)"
                    )
                break
            await loop.pause(POLL_MILLIS * MILLI)
        self.present = "watching what is blocked"
        await loop.pause(LINGER_SECONDS * SECOND)
        self._check_innocent()
        for one in self._all.values():
            self._check_settled(one)
            one.is_cured = True
        self.is_over, self.present = True, "curing"
        for one in self._all.values():
            await self._retry(one)
        self.present = None

    async def _retry(self, one: WatchedPoison) -> None:
        """Let a poison that is cured go on to its end; a turn that began before may still block it."""
        while (row := self._find_row(one)) is None or row.closed_at is None:
            if row is not None and row.status == Status.BLOCKED:
                with suppress(*CAUSED_BY_FAULT):
                    await self._world.call(lambda engine: engine.retry_blocked(one.poison.workflow_id))
            await self._world.loop.pause(POLL_MILLIS * MILLI)

    def _is_settled(self, one: WatchedPoison) -> bool:
        row = self._find_row(one)
        if row is None or one.is_cured:
            return one.is_cured
        if _leaves_nothing(one.poison):
            return bool(one.refusals) and self._world.loop.now - one.refusals[0] > SETTLE_ALONE
        if one.poison.kind is PoisonKind.SHORTAGE:
            return codec.decode_details(row.details).last_error is not None
        return row.status == Status.BLOCKED

    def _check_settled(self, one: WatchedPoison) -> None:
        """A poison is blocked and says why; one that only lacks room rests, and says why."""
        row = self._find_row(one)
        if row is None or one.is_cured or _leaves_nothing(one.poison):
            return
        is_blocked, kind = row.status == Status.BLOCKED, one.poison.kind
        # A node that opens retries what code without a version blocked, unless that ended processes (N3).
        if is_blocked if kind is PoisonKind.SHORTAGE else kind in ENDING and not is_blocked:
            self.complain(f"{self._describe(one)} is {row.status}")
        if is_blocked and codec.decode_details(row.details).last_error is None:
            self.complain(f"{self._describe(one)} does not say why")

    def _check_innocent(self) -> None:
        for row in self._world.backend.monitor.rows.values():
            if row.status == Status.BLOCKED and row.workflow_id not in self._all:
                self.complain(f"'{row.workflow_id}' is blocked though it is innocent: {row.details.decode()}")

    def _find_row(self, one: WatchedPoison) -> ExecutionRow | None:
        rows = self._world.backend.monitor.rows.values()
        return next((row for row in rows if row.workflow_id == one.poison.workflow_id), None)

    def _describe(self, one: WatchedPoison) -> str:
        return f"'{one.poison.workflow_id}' ({one.poison.kind}, fed by {one.poison.feed})"

    def complain(self, problem: str) -> None:
        """Note a violation among the problems of the run, once."""
        if problem not in self._complaints:
            self._complaints.add(problem)
            self._world.backend.monitor.problems.append(f"{problem} (D2, N3)")


def _is_marker(event: events.AnyEvent, label: str) -> bool:
    if type(event) is not events.SideEffectRecorded:
        return False
    value = read(event.value)
    return isinstance(value, dict) and value.get("marker") == label


def _leaves_nothing(poison: Poison) -> bool:
    """Whether all that feeds a poison is a client who is told of each failure: then nothing is left to be tried."""
    return poison.feed is PoisonFeed.SIGNAL and poison.kind in (PoisonKind.CUT, PoisonKind.SHORTAGE)
