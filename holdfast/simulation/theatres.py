"""Where a scenario is run, and how it is disturbed there: nodes that share memory or a server, or one node on a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from holdfast.engine.stores import hide_password
from holdfast.simulation import memory_stage, sqlite_stage
from holdfast.simulation.loop import SimulationLoop
from holdfast.simulation.memory_stage import MemoryStage
from holdfast.simulation.plans import Scenario
from holdfast.simulation.runs import Ended, live
from holdfast.simulation.server_loop import AnyLoop, ServerLoop
from holdfast.simulation.sqlite_stage import SqliteStage
from holdfast.simulation.troubles import TROUBLES
from holdfast.simulation.world import BEGINNING, World

if TYPE_CHECKING:
    from holdfast.simulation.server_stage import ServerStage

D = TypeVar("D")

MOST_CALLBACKS: Final = 5_000_000
MOST_SWEPT: Final = 90
"""Scenarios with at most so many points are tried with a crash at each; of others, at some."""
SAMPLED: Final = 3
CLOCK_ERRORS: Final = (0, 0, -1_500_000, 40_000, 1_500_000)
"""Microseconds by which the clocks of nodes that share a database are wrong."""
MEMORY_RESTARTS: Final = (100, 10_000)
SQLITE_RESTARTS: Final = (1, 200)


class Trial(msgspec.Struct, frozen=True):
    """One disturbed run. Those of one name are alike but for what goes wrong: each crash meets the same world."""

    name: str
    run: Callable[[], Ended]


class Theatre(Protocol):
    """Where a scenario is run."""

    @property
    def store(self) -> str:
        """Its name."""
        ...

    @property
    def options(self) -> str:
        """The options of the command line that lead here."""
        ...

    def run_undisturbed(self) -> Ended:
        """How it should end."""
        ...

    def make_trials(self) -> Iterator[Trial]:
        """The disturbed runs. The next one may depend on the last."""
        ...


def _choose_options(random: Random) -> dict[str, Any]:
    """Small caches and batches make for many replays and many commits.

    For all the crashes here nobody is to blame.
    """
    return {
        "max_live_programs": random.choice([1, 3, 2_000]),
        "replay_ahead": random.choice([1, 8, 200]),
        "batch_size": random.choice([1, 4, 512]),
        "max_lost": 1_000_000,
    }


class SharedMemory:
    """Nodes that share a database in memory."""

    store = "memory"

    def __init__(self, scenario: Scenario, nodes: int, stage: type[MemoryStage] = MemoryStage) -> None:
        self.options = f"--store memory --nodes {nodes}"
        self._scenario = scenario
        self._nodes = nodes
        self._stage = stage
        self._random = Random(f"holdfast trials {scenario.seed}")

    def run_undisturbed(self) -> Ended:
        """One node, nothing goes wrong."""
        return self._run("undisturbed", _always(memory_stage.never), 1, {}, is_slow=False)

    def make_trials(self) -> Iterator[Trial]:
        """Several nodes: undisturbed, with trouble, with faults of two kinds, and with single crashes.

        With few places each, nodes offer activities to each other.
        """
        options = _choose_options(self._random) | {"max_activities": 1_000 if self._scenario.seed % 2 else 4}
        yield self._trial("several nodes", _always(memory_stage.never), options)
        yield self._trial(self._random.choice(sorted(TROUBLES)), _always(memory_stage.never), options)
        for name in self._random.sample(sorted(memory_stage.PROFILES), 2):
            yield self._trial(name, partial(memory_stage.at_random, rates=memory_stage.PROFILES[name]), options)
        counting = memory_stage.CrashAt(0)
        yield self._trial("one crash", _always(counting), options)
        for number in sorted(self._random.sample(range(1, counting.count + 1), min(SAMPLED, counting.count))):
            yield self._trial("one crash", _always(memory_stage.CrashAt(number)), options)

    def _trial(self, name: str, decide: Callable[[Random], memory_stage.Decide], options: dict[str, Any]) -> Trial:
        return Trial(name, lambda: self._run(name, decide, self._nodes, options, is_slow=True))

    def _run(
        self,
        name: str,
        decide: Callable[[Random], memory_stage.Decide],
        nodes: int,
        options: dict[str, Any],
        *,
        is_slow: bool,
    ) -> Ended:
        world = _make_world(self._scenario.seed, name, options, MEMORY_RESTARTS)
        world.clock_errors = CLOCK_ERRORS if is_slow else (0,)
        world.set_up(self._stage(world, decide(world.random), is_slow=is_slow))
        return live(world, self._scenario, nodes, TROUBLES.get(name))


class OwnFile:
    """One node at a time on an SQLite file."""

    store = "sqlite"
    options = "--store sqlite"

    def __init__(
        self, scenario: Scenario, folder: Path, stage: type[SqliteStage] = SqliteStage, *, most_swept: int = MOST_SWEPT
    ) -> None:
        self._scenario = scenario
        self._folder = folder
        self._stage = stage
        self._most_swept = most_swept
        self._random = Random(f"holdfast trials {scenario.seed}")
        self._count = 0

    def run_undisturbed(self) -> Ended:
        """Nothing goes wrong."""
        return self._run("undisturbed", _always(sqlite_stage.never), {})

    def make_trials(self) -> Iterator[Trial]:
        """Crashes and failures at random, shutdowns; then one crash, at each point or at some."""
        options = _choose_options(self._random)
        yield self._trial("mishaps", partial(sqlite_stage.at_random, crashes=0.02, failures=0.03), options)
        yield self._trial("shutdowns", _always(sqlite_stage.never), options)
        counting = sqlite_stage.CrashAt(0)
        yield self._trial("one crash", _always(counting), {})
        numbers: Sequence[int] = range(1, counting.count + 1)
        if len(numbers) > self._most_swept:
            numbers = sorted(self._random.sample(numbers, SAMPLED))
        for number in numbers:
            yield self._trial("one crash", _always(sqlite_stage.CrashAt(number)), {})

    def _trial(self, name: str, decide: Callable[[Random], sqlite_stage.Decide], options: dict[str, Any]) -> Trial:
        return Trial(name, lambda: self._run(name, decide, options))

    def _run(self, name: str, decide: Callable[[Random], sqlite_stage.Decide], options: dict[str, Any]) -> Ended:
        world = _make_world(self._scenario.seed, name, options, SQLITE_RESTARTS)
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        world.set_up(self._stage(world, folder, decide(world.random)))
        return live(world, self._scenario, 1, TROUBLES.get(name))


class SharedServer:
    """Nodes that share a schema on a real PostgreSQL; each run has one of its own, which is dropped afterwards.

    The scenario, what goes wrong and how often are the seed's; which of two answers is there first is the server's.
    """

    store = "postgresql"

    def __init__(self, scenario: Scenario, nodes: int, url: str, stage: type[ServerStage] | None = None) -> None:
        self._stage = stage
        self.options = f"--store '{hide_password(url)}' --nodes {nodes}"
        self._scenario = scenario
        self._nodes = nodes
        self._url = url
        self._random = Random(f"holdfast trials {scenario.seed}")

    def run_undisturbed(self) -> Ended:
        """One node, nothing goes wrong."""
        from holdfast.simulation import server_stage  # noqa: PLC0415 - whoever has no server needs no driver

        return self._run("undisturbed", _always(server_stage.never), 1, {})

    def make_trials(self) -> Iterator[Trial]:
        """Several nodes: with trouble, with mishaps at random, and with single crashes."""
        from holdfast.simulation import server_stage  # noqa: PLC0415

        options = _choose_options(self._random)
        yield self._trial(self._random.choice(sorted(TROUBLES)), _always(server_stage.never), options)
        yield self._trial("mishaps", partial(server_stage.at_random, crashes=0.004, cuts=0.004, doubts=0.1), options)
        counting = server_stage.CrashAt(0)
        yield self._trial("one crash", _always(counting), options)
        for number in sorted(self._random.sample(range(1, counting.count + 1), min(SAMPLED, counting.count))):
            yield self._trial("one crash", _always(server_stage.CrashAt(number)), options)

    def _trial(self, name: str, decide: Callable[[Random], Any], options: dict[str, Any]) -> Trial:
        return Trial(name, lambda: self._run(name, decide, self._nodes, options))

    def _run(self, name: str, decide: Callable[[Random], Any], nodes: int, options: dict[str, Any]) -> Ended:
        from holdfast.simulation.server_stage import ServerStage, make_address, remove_schema  # noqa: PLC0415

        address = make_address(self._url)
        remove_schema(address)
        loop = ServerLoop(BEGINNING, MOST_CALLBACKS)
        world = _make_world(self._scenario.seed, name, options, MEMORY_RESTARTS, loop)
        world.set_up((self._stage or ServerStage)(world, address, decide(world.random)))
        try:
            return live(world, self._scenario, nodes, TROUBLES.get(name))
        finally:
            remove_schema(address)


def _always(decide: D) -> Callable[[Random], D]:
    """What needs no chance."""
    return lambda _random: decide


def _make_world(
    seed: int, name: str, options: dict[str, Any], restarts: tuple[int, int], loop: AnyLoop | None = None
) -> World:
    loop = loop or SimulationLoop(BEGINNING, MOST_CALLBACKS)  # type: ignore[abstract]  # what nothing here calls is left out
    world = World(loop, Random(f"holdfast world {seed} {name}"), options)
    world.restart_millis = restarts
    return world
