"""Seeds: the scenario of each is run without faults, then with faults; all runs must have the same outcome."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from holdfast.engine.stores import POSTGRES_SCHEMES, hide_password
from holdfast.errors import InvalidConfiguration, SimulationFailed
from holdfast.simulation.environments import Environment, MemoryEnvironment, ServerEnvironment, SqliteEnvironment
from holdfast.simulation.generator import make_scenario
from holdfast.simulation.outcomes import find_difference
from holdfast.simulation.runs import RunOutcome

STORES: Final = ("memory", "sqlite")
"""The names of stores; the URL of a PostgreSQL server is accepted too."""
SHOWN_FAULTS: Final = 40
"""How many faults the message of a failure lists at most."""


class SimulationSummary(msgspec.Struct):
    """How many seeds, runs, turns and faults were simulated."""

    store: str
    first: int
    seeds: int = 0
    runs: int = 0
    turns: int = 0
    faults: int = 0
    digests: list[str] = []
    """One per run: the same whenever and wherever a seed is run, except on a server."""

    def add(self, ended: RunOutcome) -> None:
        """Count one more run, with its turns and faults, and keep its digest."""
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
) -> SimulationSummary:
    """Simulate `seeds` seeds from `first` on; `progress` is called with each that is done.

    On `memory` and on the PostgreSQL of a URL, that many nodes share one database; SQLite has one node at a time. Raises
    SimulationFailed, which names the seed, if a run did not end as the undisturbed one did, or broke a rule.
    """
    if store not in STORES and not is_server(store):
        raise InvalidConfiguration(
            f"Expected the store to be one of {', '.join(STORES)}, or 'postgresql://…', but it is {hide_password(store)!r}."
        )
    if nodes < 1:
        raise InvalidConfiguration(f"Expected at least one node, but nodes={nodes!r}.")
    summary = SimulationSummary(hide_password(store), first)
    for seed in range(first, first + seeds):
        run_seed(seed, nodes, store, summary)
        summary.seeds += 1
        if progress is not None:
            progress(seed)
    return summary


def run_seed(seed: int, nodes: int, store: str, summary: SimulationSummary) -> None:
    """Simulate one seed and count its runs in the summary. Raises SimulationFailed."""
    scenario = make_scenario(seed)
    if is_server(store):
        compare_runs(ServerEnvironment(scenario, nodes, store), seed, summary)
        return
    with make_folder() as folder:
        compare_runs(
            MemoryEnvironment(scenario, nodes) if store == "memory" else SqliteEnvironment(scenario, folder), seed, summary
        )


def is_server(store: str) -> bool:
    """Whether a store is given as the URL of a PostgreSQL server."""
    return store.partition("://")[0] in POSTGRES_SCHEMES


def compare_runs(environment: Environment, seed: int, summary: SimulationSummary) -> None:
    """Compare every run with faults with the run without. Raises SimulationFailed."""
    expected = environment.run_undisturbed()
    summary.add(expected)
    if expected.problems:
        raise _failure(environment, seed, "undisturbed", expected.problems, [])
    for run in environment.make_faulty_runs():
        ended = run.run()
        summary.add(ended)
        problems = list(ended.problems)
        difference = None if problems else find_difference(expected.summary, ended.summary)
        if difference is not None:
            problems.append(f"it ended differently: {difference}")
        if problems:
            raise _failure(environment, seed, run.name, problems, ended.faults)


@contextmanager
def make_folder() -> Iterator[Path]:
    """A temporary folder, in memory where possible: simulated crashes need no disk that is waited for."""
    memory = Path("/dev/shm")  # noqa: S108 - a fresh folder with a random name is made in it
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="holdfast-simulation-", dir=parent) as folder:
        yield Path(folder)


def _failure(environment: Environment, seed: int, run: str, problems: list[str], faults: list[str]) -> SimulationFailed:
    what = "\n".join(f"- {problem}" for problem in problems)
    trace = "\n".join(f"  {fault}" for fault in faults[-SHOWN_FAULTS:])
    return SimulationFailed(
        f"Expected seed {seed} on {environment.store} ({run}) to end as without faults and keep all rules, but:\n{what}\n"
        + (f"Faults before that, at most the last {SHOWN_FAULTS} of {len(faults)}:\n{trace}\n" if faults else "")
        + f"Run it alone: holdfast simulate --seeds 1 --first {seed} {environment.options}"
    )
