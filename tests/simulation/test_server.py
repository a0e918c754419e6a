"""The simulation on a real PostgreSQL: the same scenarios and checks, with crashes between any two statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast import simulation
from holdfast.errors import SimulationFailed, StoreUnavailable
from holdfast.simulation.environments import ServerEnvironment
from holdfast.simulation.generator import make_scenario
from holdfast.simulation.seeds import SimulationSummary, compare_runs
from holdfast.simulation.server_backend import ServerBackend, SimulatedStore, make_address
from holdfast.store.contract import Store, Transaction
from tests.postgres.access import connect

SEEDS = (3, 12)
"""Of different kinds: a long one, and one in which activities move from node to node."""
TELLING = (8, 13, 14, 18, 19, 3)
"""Short ones in which commits are lost: the server decides which of them tells of it, mostly the first."""


@pytest.mark.parametrize("seed", SEEDS)
def test_R2_seeds_end_as_undisturbed_whatever_goes_wrong_on_a_server(postgres_server: str, seed: int) -> None:
    with nothing_left_behind(postgres_server):
        summary = simulation.run(1, first=seed, nodes=2, store=postgres_server)

    assert summary.runs > 5
    assert summary.faults > 3, "something has to go wrong"


def test_store_that_takes_a_lost_commit_for_done_is_found(postgres_server: str) -> None:
    class Gullible(SimulatedStore):
        async def was_committed(self, transaction: Transaction) -> bool:
            return True

    class GullibleStage(ServerBackend):
        def make_store(self, node: str) -> Store:
            store = self._stores[node] = Gullible(self._address, self, node)
            return store

    def judge_all() -> None:
        for seed in TELLING:
            compare_runs(
                ServerEnvironment(make_scenario(seed), 2, postgres_server, GullibleStage),
                seed,
                SimulationSummary("server", seed),
            )

    with nothing_left_behind(postgres_server), pytest.raises(SimulationFailed, match=r"Run it alone: holdfast simulate"):
        judge_all()


def test_server_that_is_not_there_is_told_as_such() -> None:
    with pytest.raises(StoreUnavailable, match=r"Expected to connect to postgresql://127\.0\.0\.1:1/none"):
        simulation.run(1, store="postgresql://holdfast@127.0.0.1:1/none")


def test_each_run_has_a_schema_of_its_own() -> None:
    url = "postgresql://holdfast@host/database?schema=ours"

    assert make_address(url).schema.startswith("ours_simulation_")
    assert make_address(url).schema != make_address(url).schema


@contextmanager
def nothing_left_behind(url: str) -> Iterator[None]:
    """No schema."""
    before = list_schemas(url)
    yield
    assert list_schemas(url) <= before


def list_schemas(url: str) -> set[str]:
    with connect(url) as connection:
        return {name for (name,) in connection.execute("SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'")}
