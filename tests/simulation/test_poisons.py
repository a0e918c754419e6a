"""D2, N3: poison turns in the simulation. What breaks the quarantine is found within some seeds; without it none is."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.engine.quarantine import Quarantine, Verdict
from holdfast.engine.turns.batch_failures import FailedOnce
from holdfast.simulation.environments import MemoryEnvironment, SqliteEnvironment
from holdfast.simulation.generator import make_scenario
from holdfast.simulation.outcomes import find_difference
from holdfast.simulation.seeds import make_folder

SEEDS = range(20)


def find_problem(seed: int, store: str) -> str | None:
    """What is wrong with the run with poisons of a seed."""
    with make_folder() as folder:
        scenario = make_scenario(seed)
        environment = MemoryEnvironment(scenario, 3) if store == "memory" else SqliteEnvironment(scenario, folder)
        expected, ended = environment.run_undisturbed(), environment.make_poison_run().run()
        return "\n".join(ended.problems) or find_difference(expected.summary, ended.summary)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("seed", range(200, 202))
def test_D2_poison_turns_are_blocked_and_nobody_else_is(seed: int, store: str) -> None:
    assert find_problem(seed, store) is None


def never_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Quarantine, "judge", lambda *_args, **_options: Verdict.CLEAR)


def block_all_suspects(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Quarantine.judge

    def judge_harshly(self: Quarantine, *args: Any, **options: Any) -> Verdict:
        verdict = judge(self, *args, **options)
        return Verdict.BLOCK if verdict is Verdict.NOTE_FIRST else verdict

    monkeypatch.setattr(Quarantine, "judge", judge_harshly)


def forget_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FailedOnce, "is_repeated", lambda _self, _ids: False)


PLANTED: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None], str]] = {
    "nobody is suspect": ("sqlite", never_suspect, "processes with max_lost"),
    "whoever was in flight is blocked": ("memory", block_all_suspects, "is blocked though it is innocent"),
    "a store that refuses is taken for an outage each time": ("memory", forget_failures, "is not blocked after"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_broken_quarantine_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    store, plant, expected = PLANTED[fault]
    plant(monkeypatch)

    for seed in SEEDS:
        problem = find_problem(seed, store)
        if problem is not None and expected in problem:
            return
    pytest.fail(f"no seed of {SEEDS} found it")
