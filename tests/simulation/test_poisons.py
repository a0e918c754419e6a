"""D2, N3: poison turns in the simulation. What breaks the quarantine is found within some seeds; without it none is."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.engine.quarantine import Quarantine, Verdict
from holdfast.engine.turns.batch_failures import FailedOnce
from holdfast.simulation.environments import MemoryEnvironment, SqliteEnvironment
from holdfast.simulation.generator import make_scenario
from holdfast.simulation.outcomes import find_difference
from holdfast.simulation.plans import PoisonKind
from holdfast.simulation.seeds import make_folder

SEEDS = range(20)


def find_problem(seed: int, store: str, *only: PoisonKind) -> str | None:
    """What is wrong with the run with poisons of a seed."""
    with make_folder() as folder:
        scenario = make_scenario(seed)
        environment = MemoryEnvironment(scenario, 3) if store == "memory" else SqliteEnvironment(scenario, folder)
        environment.poison_kinds = only
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


class PlantedFault(msgspec.Struct, frozen=True):
    """What is broken, on which store, and the complaint that shows it; `kind`: the poison that meets it."""

    store: str
    plant: Callable[[pytest.MonkeyPatch], None]
    expected: str
    kind: PoisonKind


PLANTED: dict[str, PlantedFault] = {
    "nobody is suspect": PlantedFault("sqlite", never_suspect, "processes with max_lost", PoisonKind.ENDS_PROCESS),
    "whoever was in flight is blocked": PlantedFault(
        "memory", block_all_suspects, "is blocked though it is innocent", PoisonKind.ENDS_PROCESS
    ),
    "a store that refuses is taken for an outage each time": PlantedFault(
        "memory", forget_failures, "is not blocked after", PoisonKind.CUT
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_broken_quarantine_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    planted = PLANTED[fault]
    planted.plant(monkeypatch)

    for seed in SEEDS:
        problem = find_problem(seed, planted.store, planted.kind)
        if problem is not None and planted.expected in problem:
            return
    pytest.fail(f"no seed of {SEEDS} found it")
