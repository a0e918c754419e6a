"""One seed: its scenario undisturbed, then with everything that can go wrong; all must end the same way."""

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
from holdfast.simulation.generator import make_scenario
from holdfast.simulation.outcomes import find_difference
from holdfast.simulation.runs import Ended
from holdfast.simulation.theatres import OwnFile, SharedMemory, SharedServer, Theatre

STORES: Final = ("memory", "sqlite")
"""And any URL of a PostgreSQL."""
SHOWN_FAULTS: Final = 40


class Summary(msgspec.Struct):
    """What was simulated."""

    store: str
    first: int
    seeds: int = 0
    runs: int = 0
    turns: int = 0
    faults: int = 0
    digests: list[str] = []
    """One per run: the same whenever and wherever the seed is run; not on a server, which has its own mind."""

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

    On `memory` and on the PostgreSQL of a URL, that many nodes share one database; SQLite has one node at a time. Raises
    SimulationFailed, which names the seed, if a run did not end as the undisturbed one did, or broke a rule.
    """
    if store not in STORES and not is_server(store):
        raise InvalidConfiguration(
            f"Expected the store to be one of {', '.join(STORES)}, or 'postgresql://…', but it is {hide_password(store)!r}."
        )
    if nodes < 1:
        raise InvalidConfiguration(f"Expected at least one node, but nodes={nodes!r}.")
    summary = Summary(hide_password(store), first)
    for seed in range(first, first + seeds):
        run_seed(seed, nodes, store, summary)
        summary.seeds += 1
        if progress is not None:
            progress(seed)
    return summary


def run_seed(seed: int, nodes: int, store: str, summary: Summary) -> None:
    """One seed. Raises SimulationFailed."""
    scenario = make_scenario(seed)
    if is_server(store):
        judge(SharedServer(scenario, nodes, store), seed, summary)
        return
    with make_folder() as folder:
        judge(SharedMemory(scenario, nodes) if store == "memory" else OwnFile(scenario, folder), seed, summary)


def is_server(store: str) -> bool:
    """Whether it is the URL of a PostgreSQL."""
    return store.partition("://")[0] in POSTGRES_SCHEMES


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
