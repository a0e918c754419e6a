"""N5: databases that go back under living nodes, in simulated worlds; and that nodes which do not notice it are found."""

from __future__ import annotations

import pytest

from holdfast.engine.activities.reconciling import Reconciler
from holdfast.simulation.environments import MemoryEnvironment
from holdfast.simulation.generator import make_scenario
from holdfast.simulation.node_faults import RESTORES
from holdfast.simulation.outcomes import find_difference
from holdfast.simulation.runs import RunOutcome

SEEDS = range(20, 40)


def run_restores(seed: int) -> tuple[RunOutcome, str | None]:
    """The run of a seed with restores, and where it differs from the undisturbed one."""
    environment = MemoryEnvironment(make_scenario(seed), 3)
    expected = environment.run_undisturbed()
    ended = next(run for run in environment.make_faulty_runs() if run.name == RESTORES).run()
    return ended, find_difference(expected.summary, ended.summary)


def test_N5_everything_ends_as_undisturbed_though_the_database_goes_back() -> None:
    faults = 0
    for seed in SEEDS:
        ended, difference = run_restores(seed)
        assert ended.problems == [], seed
        assert difference is None, seed
        faults += len(ended.faults)

    assert faults > len(SEEDS)


def test_nodes_that_do_not_compare_what_they_run_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reconciler, "is_due", lambda _self, _now: False)

    found = [seed for seed in SEEDS if any("the run did not end" in one for one in run_restores(seed)[0].problems)]

    assert found


def test_run_with_restores_is_the_same_each_time() -> None:
    first, _ = run_restores(SEEDS[0])
    second, _ = run_restores(SEEDS[0])

    assert first.digest == second.digest
