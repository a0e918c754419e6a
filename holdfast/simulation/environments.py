"""Environments: on which store a scenario runs, with how many nodes, and which faults are injected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from holdfast.engine.stores import hide_password
from holdfast.simulation import memory_backend, sqlite_backend
from holdfast.simulation.loop import SimulationLoop
from holdfast.simulation.memory_backend import MemoryBackend
from holdfast.simulation.node_faults import NODE_FAULTS, RESTORES, restore
from holdfast.simulation.plans import PoisonKind, Scenario
from holdfast.simulation.poison_watch import MAX_TURN_BYTES, PoisonWatch
from holdfast.simulation.poisons import draw_poisons
from holdfast.simulation.runs import RunOutcome, run_scenario
from holdfast.simulation.server_loop import AnyLoop, ServerLoop
from holdfast.simulation.sqlite_backend import SqliteBackend
from holdfast.simulation.world import BEGINNING, Backend, World, WorldSettings

if TYPE_CHECKING:
    from holdfast.simulation.server_backend import ServerBackend

D = TypeVar("D")

MOST_CALLBACKS: Final = 5_000_000
"""More callbacks than any run needs: a run that exceeds them spins."""
MOST_EXHAUSTIVE: Final = 90
"""Scenarios with at most so many fault points are run with a crash at each of them; longer ones at some."""
SAMPLED: Final = 3
"""At how many fault points of longer scenarios a crash is tried."""
CLOCK_ERRORS: Final = (0, 0, -1_500_000, 40_000, 1_500_000)
"""Microseconds by which the clocks of nodes that share a database are wrong."""
POISONS: Final = "poisons"
"""The name of the runs with poison turns."""
POISON_LIMITS: Final = (3, 5)
"""How often a process may end with a turn, or a turn be refused, before it is given up in runs with poison turns."""
POISON_SEEDS: Final = 4
"""Each seed of so many has a run with poison turns."""
SHARED_RESTARTS: Final = (100, 10_000)
"""Milliseconds until a dead node is replaced, where nodes share a database."""
SQLITE_RESTARTS: Final = (1, 200)
"""Milliseconds until a dead node is replaced, where one node owns the file."""


class FaultyRun(msgspec.Struct, frozen=True):
    """One run with faults. Runs of one name have the same random choices, so that only the faults differ."""

    name: str
    run: Callable[[], RunOutcome]


class Environment(Protocol):
    """On which store a scenario runs, and with which faults."""

    @property
    def store(self) -> str:
        """The name of the store, for messages."""
        ...

    @property
    def options(self) -> str:
        """The options of `holdfast simulate` that choose this environment."""
        ...

    def run_undisturbed(self) -> RunOutcome:
        """Run the scenario without faults: the outcome that all other runs must have."""
        ...

    def make_faulty_runs(self) -> Iterator[FaultyRun]:
        """The runs with faults. Run each before asking for the next, which may depend on it."""
        ...


def _choose_options(random: Random) -> dict[str, Any]:
    """Engine options: small caches and batches cause many replays and commits.

    `max_lost` is high, since activities are not to blame for simulated crashes.
    """
    return {
        "max_live_programs": random.choice([1, 3, 2_000]),
        "replay_ahead": random.choice([1, 8, 200]),
        "batch_size": random.choice([1, 4, 512]),
        "max_lost": 1_000_000,
    }


def _choose_poison_options(seed: int) -> dict[str, Any]:
    """Engine options for a run with poison turns: they are given up soon, and nobody else may be."""
    random = Random(f"holdfast poison options {seed}")
    limits = {"max_lost": random.choice(POISON_LIMITS), "max_turn_bytes": MAX_TURN_BYTES}
    return _choose_options(random) | limits


def _add_poisons(
    world: World, seed: int, name: str, options: dict[str, Any], *, is_shared: bool, only: Collection[PoisonKind] = ()
) -> PoisonWatch | None:
    """The poisons of a run, if it is one with poisons."""
    if name != POISONS:
        return None
    random = Random(f"holdfast poisons {seed}")
    return PoisonWatch(world, random, draw_poisons(random, is_shared=is_shared, only=only), options["max_lost"])


class MemoryEnvironment:
    """Several nodes that share a database in memory."""

    store = "memory"

    def __init__(self, scenario: Scenario, nodes: int, backend: type[MemoryBackend] = MemoryBackend) -> None:
        self.options = f"--store memory --nodes {nodes}"
        self._scenario = scenario
        self._nodes = nodes
        self._backend = backend
        self.poison_kinds: Collection[PoisonKind] = ()
        """The kinds of poisons that are drawn; any if none is named."""
        self._random = Random(f"holdfast trials {scenario.seed}")

    def run_undisturbed(self) -> RunOutcome:
        """Run the scenario on one node without faults."""
        return self._run("undisturbed", _always(memory_backend.no_fault), 1, {}, is_slow=False)

    def make_faulty_runs(self) -> Iterator[FaultyRun]:
        """Runs of several nodes: without faults, with node faults, with store faults, with restores, with single crashes.

        With few activity slots each, nodes offer activities to each other.
        """
        options = _choose_options(self._random) | {"max_activities": 1_000 if self._scenario.seed % 2 else 4}
        yield self._faulty_run("several nodes", _always(memory_backend.no_fault), options)
        yield self._faulty_run(self._random.choice(sorted(NODE_FAULTS)), _always(memory_backend.no_fault), options)
        for name in self._random.sample(sorted(memory_backend.PROFILES), 2):
            yield self._faulty_run(name, partial(memory_backend.random_faults, rates=memory_backend.PROFILES[name]), options)
        yield self._faulty_run(RESTORES, _always(memory_backend.no_fault), options)
        counting = memory_backend.CrashAtPoint(0)
        yield self._faulty_run("one crash", _always(counting), options)
        for number in sorted(self._random.sample(range(1, counting.count + 1), min(SAMPLED, counting.count))):
            yield self._faulty_run("one crash", _always(memory_backend.CrashAtPoint(number)), options)
        if self._scenario.seed % POISON_SEEDS == POISON_SEEDS - 1:
            yield self.make_poison_run()

    def make_poison_run(self) -> FaultyRun:
        """The run with poison turns among the programs."""
        options = _choose_poison_options(self._scenario.seed)
        return self._faulty_run(POISONS, _always(memory_backend.no_fault), options)

    def _faulty_run(
        self, name: str, decide: Callable[[Random], memory_backend.ChooseFault], options: dict[str, Any]
    ) -> FaultyRun:
        return FaultyRun(name, lambda: self._run(name, decide, self._nodes, options, is_slow=True))

    def _run(
        self,
        name: str,
        decide: Callable[[Random], memory_backend.ChooseFault],
        nodes: int,
        options: dict[str, Any],
        *,
        is_slow: bool,
    ) -> RunOutcome:
        # A program of another past is known by the times of its turns; with wrong clocks, several turns share a time.
        has_errors = is_slow and name != RESTORES
        settings = WorldSettings(options, SHARED_RESTARTS, CLOCK_ERRORS if has_errors else (0,))

        def make_backend(world: World) -> Backend:
            return self._backend(world, decide(world.random), is_slow=is_slow)

        world = _make_world(self._scenario.seed, name, settings, make_backend)
        fault = restore if name == RESTORES else NODE_FAULTS.get(name)
        poisons = _add_poisons(world, self._scenario.seed, name, options, is_shared=True, only=self.poison_kinds)
        return run_scenario(world, self._scenario, nodes, fault, poisons)


class SqliteEnvironment:
    """One node at a time that owns an SQLite file."""

    store = "sqlite"
    options = "--store sqlite"

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        backend: type[SqliteBackend] = SqliteBackend,
        *,
        most_exhaustive: int = MOST_EXHAUSTIVE,
    ) -> None:
        self._scenario = scenario
        self._folder = folder
        self._backend = backend
        self._most_swept = most_exhaustive
        self.poison_kinds: Collection[PoisonKind] = ()
        """The kinds of poisons that are drawn; any if none is named."""
        self._random = Random(f"holdfast trials {scenario.seed}")
        self._count = 0

    def run_undisturbed(self) -> RunOutcome:
        """Run the scenario without faults, on a file of its own; other runs are compared with this one."""
        return self._run("undisturbed", _always(sqlite_backend.no_fault), {})

    def make_faulty_runs(self) -> Iterator[FaultyRun]:
        """Runs with random crashes and failures, with shutdowns, a clock that is set, and single crashes at fault points."""
        options = _choose_options(self._random)
        yield self._faulty_run("mishaps", partial(sqlite_backend.random_faults, crashes=0.02, failures=0.03), options)
        yield self._faulty_run("shutdowns", _always(sqlite_backend.no_fault), options)
        yield self._faulty_run("clock", _always(sqlite_backend.no_fault), options)
        counting = sqlite_backend.CrashAtFaultPoint(0)
        yield self._faulty_run("one crash", _always(counting), {})
        numbers: Sequence[int] = range(1, counting.count + 1)
        if len(numbers) > self._most_swept:
            numbers = sorted(self._random.sample(numbers, SAMPLED))
        for number in numbers:
            yield self._faulty_run("one crash", _always(sqlite_backend.CrashAtFaultPoint(number)), {})
        if self._scenario.seed % POISON_SEEDS == POISON_SEEDS - 1:
            yield self.make_poison_run()

    def make_poison_run(self) -> FaultyRun:
        """The run with poison turns among the programs."""
        options = _choose_poison_options(self._scenario.seed)
        return self._faulty_run(POISONS, _always(sqlite_backend.no_fault), options)

    def _faulty_run(
        self, name: str, decide: Callable[[Random], sqlite_backend.ChooseFault], options: dict[str, Any]
    ) -> FaultyRun:
        return FaultyRun(name, lambda: self._run(name, decide, options))

    def _run(self, name: str, decide: Callable[[Random], sqlite_backend.ChooseFault], options: dict[str, Any]) -> RunOutcome:
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()

        def make_backend(world: World) -> Backend:
            return self._backend(world, folder, decide(world.random))

        world = _make_world(self._scenario.seed, name, WorldSettings(options, SQLITE_RESTARTS), make_backend)
        poisons = _add_poisons(world, self._scenario.seed, name, options, is_shared=False, only=self.poison_kinds)
        return run_scenario(world, self._scenario, 1, NODE_FAULTS.get(name), poisons)


class ServerEnvironment:
    """Several nodes that share a schema of a real PostgreSQL server; each run has its own, which is dropped afterwards.

    The seed decides the scenario, the faults and their rates; which of two answers comes first depends on the server.
    """

    store = "postgresql"

    def __init__(self, scenario: Scenario, nodes: int, url: str, backend: type[ServerBackend] | None = None) -> None:
        self._backend = backend
        self.options = f"--store '{hide_password(url)}' --nodes {nodes}"
        self._scenario = scenario
        self._nodes = nodes
        self._url = url
        self._random = Random(f"holdfast trials {scenario.seed}")

    def run_undisturbed(self) -> RunOutcome:
        """Run the scenario on one node without faults."""
        from holdfast.simulation import server_backend  # noqa: PLC0415 - the driver is needed with a server only

        return self._run("undisturbed", _always(server_backend.no_fault), 1, {})

    def make_faulty_runs(self) -> Iterator[FaultyRun]:
        """Runs of several nodes: with node faults, with random crashes and cut connections, and with single crashes."""
        from holdfast.simulation import server_backend  # noqa: PLC0415

        options = _choose_options(self._random)
        yield self._faulty_run(self._random.choice(sorted(NODE_FAULTS)), _always(server_backend.no_fault), options)
        yield self._faulty_run(
            "mishaps", partial(server_backend.random_faults, crashes=0.004, cuts=0.004, doubts=0.1), options
        )
        counting = server_backend.CrashAtStatement(0)
        yield self._faulty_run("one crash", _always(counting), options)
        for number in sorted(self._random.sample(range(1, counting.count + 1), min(SAMPLED, counting.count))):
            yield self._faulty_run("one crash", _always(server_backend.CrashAtStatement(number)), options)

    def _faulty_run(self, name: str, decide: Callable[[Random], Any], options: dict[str, Any]) -> FaultyRun:
        return FaultyRun(name, lambda: self._run(name, decide, self._nodes, options))

    def _run(self, name: str, decide: Callable[[Random], Any], nodes: int, options: dict[str, Any]) -> RunOutcome:
        from holdfast.simulation.server_backend import ServerBackend, make_address, remove_schema  # noqa: PLC0415

        address = make_address(self._url)
        remove_schema(address)

        def make_backend(world: World) -> Backend:
            return (self._backend or ServerBackend)(world, address, decide(world.random))

        loop = ServerLoop(BEGINNING, MOST_CALLBACKS)
        world = _make_world(self._scenario.seed, name, WorldSettings(options, SHARED_RESTARTS), make_backend, loop)
        try:
            return run_scenario(world, self._scenario, nodes, NODE_FAULTS.get(name))
        finally:
            remove_schema(address)


def _always(decide: D) -> Callable[[Random], D]:
    """Make a choice of faults that needs no random numbers."""
    return lambda _random: decide


def _make_world(
    seed: int, name: str, settings: WorldSettings, make_backend: Callable[[World], Backend], loop: AnyLoop | None = None
) -> World:
    loop = loop or SimulationLoop(BEGINNING, MOST_CALLBACKS)  # type: ignore[abstract]  # methods that nothing here calls are left out
    return World(loop, Random(f"holdfast world {seed} {name}"), settings, make_backend)
