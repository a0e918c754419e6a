"""Random workflows under everything that can go wrong end as they do undisturbed, and keep the rules.

Rules: I1, I3, S1, S3, S5, S7, T3, X1 to X5, A1, C1, C3 to C5, R1, R2, N1. `make simulate` runs thousands of seeds.
"""

import pytest

from holdfast import simulation
from holdfast.errors import InvalidConfiguration

CHUNK = 10
MEMORY_CHUNKS = range(0, 100, CHUNK)
SQLITE_CHUNKS = range(0, 50, CHUNK)
LARGE = (312, 507, 741, 899)


@pytest.mark.parametrize("first", MEMORY_CHUNKS)
def test_three_nodes_on_one_database_end_as_one_undisturbed(first: int) -> None:
    summary = simulation.run(CHUNK, first=first, store="memory")

    assert summary.seeds == CHUNK
    assert summary.faults > CHUNK


@pytest.mark.parametrize("first", SQLITE_CHUNKS)
def test_a_crash_at_every_point_on_sqlite_changes_nothing(first: int) -> None:
    summary = simulation.run(CHUNK, first=first, store="sqlite")

    assert summary.seeds == CHUNK
    assert summary.faults > CHUNK


@pytest.mark.parametrize("seed", LARGE)
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_large_scenarios_end_as_they_do_undisturbed(seed: int, store: str) -> None:
    assert simulation.run(1, first=seed, store=store).seeds == 1


def test_progress_is_told_of_every_seed() -> None:
    done: list[int] = []

    simulation.run(3, first=5, progress=done.append)

    assert done == [5, 6, 7]


@pytest.mark.parametrize("options", [{"store": "postgres"}, {"nodes": 0}])
def test_what_cannot_be_simulated_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidConfiguration):
        simulation.run(1, **options)  # type: ignore[arg-type]
