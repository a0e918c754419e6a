"""Each family by itself, in which what must come out follows from the calls of its clients: under faults it does too.

Rules: B1, E1, G1, G3, H1, M2, T4, T5.
"""

import time

import pytest

from holdfast.simulation.environments import MemoryEnvironment
from holdfast.simulation.generator import make_family_scenario
from holdfast.simulation.seeds import SimulationSummary, compare_runs

SEED = 1
FAMILIES = ("acts", "begins", "limits", "modes", "overlaps", "pauses")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_ends_as_its_calls_say(family: str) -> None:
    summary = SimulationSummary("memory", SEED)

    compare_runs(MemoryEnvironment(make_family_scenario(SEED, family), 3), SEED, summary)

    assert summary.runs > 5


def test_G1_the_age_of_a_count_is_told_by_the_time_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)

    for seed in range(10):
        environment = MemoryEnvironment(make_family_scenario(seed, "limits"), 3)
        assert next(environment.make_faulty_runs()).run().problems == []
