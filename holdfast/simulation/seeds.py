"""One seed: its scenario undisturbed, then with everything that can go wrong; all must end the same way."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

import msgspec

from holdfast.errors import InvalidConfiguration, SimulationFailed
from holdfast.simulation import memory_stage, sqlite_stage
from holdfast.simulation.generator import make_scenario
from holdfast.simulation.loop import SimulationLoop
from holdfast.simulation.memory_stage import MemoryStage
from holdfast.simulation.outcomes import find_difference
from holdfast.simulation.plans import Scenario
from holdfast.simulation.runs import Ended, live
from holdfast.simulation.sqlite_stage import SqliteStage
from holdfast.simulation.troubles import TROUBLES
from holdfast.simulation.world import BEGINNING, World

STORES: Final = ("memory", "sqlite")
MOST_CALLBACKS: Final = 5_000_000
MOST_SWEPT: Final = 120
"""Scenarios with at most so many points are tried with a crash at each; of others, at some."""
SAMPLED: Final = 3
SHOWN_FAULTS: Final = 40
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


class Summary(msgspec.Struct):
    """What was simulated."""

    store: str
    first: int
    seeds: int = 0
    runs: int = 0
    turns: int = 0
    faults: int = 0
    digests: list[str] = []
    """One per run: the same whenever and wherever the seed is run."""

    def add(self, ended: Ended) -> None:
        """One more run."""
        self.runs += 1
        self.turns += ended.turns
        self.faults += len(ended.faults)
        self.digests.append(ended.digest)


def run(
    seeds: int,
    *,
    first: int = 0,
    nodes: int = 3,
    store: str = "memory",
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Simulate `seeds` seeds from `first` on; `progress` is called with each that is done.

    On `memory`, that many nodes share one database; SQLite has one node at a time. Raises SimulationFailed, which names the
    seed, if a run did not end as the undisturbed one did, or broke a rule.
    """
    if store not in STORES:
        raise InvalidConfiguration(f"Expected the store to be one of {', '.join(STORES)}, but it is {store!r}.")
    if nodes < 1:
        raise InvalidConfiguration(f"Expected at least one node, but nodes={nodes!r}.")
    summary = Summary(store, first, digests=[])
    for seed in range(first, first + seeds):
        run_seed(seed, nodes, store, summary)
        summary.seeds += 1
        if progress is not None:
            progress(seed)
    return summary


def run_seed(seed: int, nodes: int, store: str, summary: Summary) -> None:
    """One seed. Raises SimulationFailed."""
    scenario = make_scenario(seed)
    with make_folder() as folder:
        judge(SharedMemory(scenario, nodes) if store == "memory" else OwnFile(scenario, folder), seed, summary)


def judge(theatre: Theatre, seed: int, summary: Summary) -> None:
    """Compare every disturbed run with the undisturbed one. Raises SimulationFailed."""
    expected = theatre.run_undisturbed()
    summary.add(expected)
    if expected.problems:
        raise _failure(theatre, seed, "undisturbed", expected.problems, [])
    for trial in theatre.make_trials():
        ended = trial.run()
        summary.add(ended)
        problems = list(ended.problems)
        difference = None if problems else find_difference(expected.summary, ended.summary)
        if difference is not None:
            problems.append(f"it ended differently: {difference}")
        if problems:
            raise _failure(theatre, seed, trial.name, problems, ended.faults)


@contextmanager
def make_folder() -> Iterator[Path]:
    """A folder for a while; in memory if there is a file system there: nobody pulls the plug, so no disk is waited for."""
    memory = Path("/dev/shm")  # noqa: S108 - a fresh folder with a random name is made in it
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="holdfast-simulation-", dir=parent) as folder:
        yield Path(folder)


def _failure(theatre: Theatre, seed: int, trial: str, problems: list[str], faults: list[str]) -> SimulationFailed:
    what = "\n".join(f"- {problem}" for problem in problems)
    trace = "\n".join(f"  {fault}" for fault in faults[-SHOWN_FAULTS:])
    return SimulationFailed(
        f"Expected seed {seed} on {theatre.store} ({trial}) to end as it does undisturbed and keep all rules, but:\n{what}\n"
        + (f"What went wrong before, at most the last {SHOWN_FAULTS} of {len(faults)}:\n{trace}\n" if faults else "")
        + f"Run it alone: holdfast simulate --seeds 1 --first {seed} {theatre.options}"
    )


def _choose_options(random: Random) -> dict[str, Any]:
    """Small caches and batches make for many replays and many commits."""
    return {"max_live_programs": random.choice([1, 3, 2_000]), "batch_size": random.choice([1, 4, 512])}


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
        return self._run("undisturbed", lambda _: memory_stage.never, 1, {}, is_slow=False)

    def make_trials(self) -> Iterator[Trial]:
        """Several nodes: undisturbed, with faults of two kinds, and with single crashes."""
        options = _choose_options(self._random)
        yield self._trial("several nodes", lambda _: memory_stage.never, options)
        trouble = self._random.choice(sorted(TROUBLES))
        yield Trial(trouble, lambda: self._run(trouble, lambda _: memory_stage.never, self._nodes, options, is_slow=True))
        for name in self._random.sample(sorted(memory_stage.PROFILES), 2):
            rates = memory_stage.PROFILES[name]
            yield self._trial(name, lambda random, rates=rates: memory_stage.at_random(random, rates), options)  # type: ignore[misc]
        counting = memory_stage.CrashAt(0)
        yield self._trial("one crash", lambda _: counting, options)
        for number in sorted(self._random.sample(range(1, counting.count + 1), min(SAMPLED, counting.count))):
            crash = memory_stage.CrashAt(number)
            yield self._trial("one crash", lambda _, crash=crash: crash, options)  # type: ignore[misc]

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
        return self._run("undisturbed", lambda _: sqlite_stage.never, {})

    def make_trials(self) -> Iterator[Trial]:
        """Crashes and failures at random; then one crash, at each point or at some."""
        options = _choose_options(self._random)
        yield self._trial("mishaps", lambda random: sqlite_stage.at_random(random, 0.02, 0.03), options)
        yield self._trial("shutdowns", lambda _: sqlite_stage.never, options)
        counting = sqlite_stage.CrashAt(0)
        yield self._trial("one crash", lambda _: counting, {})
        numbers = range(1, counting.count + 1)
        if len(numbers) > self._most_swept:
            numbers = sorted(self._random.sample(numbers, SAMPLED))  # type: ignore[assignment]
        for number in numbers:
            crash = sqlite_stage.CrashAt(number)
            yield self._trial("one crash", lambda _, crash=crash: crash, {})  # type: ignore[misc]

    def _trial(self, name: str, decide: Callable[[Random], sqlite_stage.Decide], options: dict[str, Any]) -> Trial:
        return Trial(name, lambda: self._run(name, decide, options))

    def _run(self, name: str, decide: Callable[[Random], sqlite_stage.Decide], options: dict[str, Any]) -> Ended:
        world = _make_world(self._scenario.seed, name, options, SQLITE_RESTARTS)
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        world.set_up(self._stage(world, folder, decide(world.random)))
        return live(world, self._scenario, 1, TROUBLES.get(name))


def _make_world(seed: int, name: str, options: dict[str, Any], restarts: tuple[int, int]) -> World:
    loop = SimulationLoop(BEGINNING, MOST_CALLBACKS)  # type: ignore[abstract]  # what nothing here calls is left out
    world = World(loop, Random(f"holdfast world {seed} {name}"), options)
    world.restart_millis = restarts
    return world
