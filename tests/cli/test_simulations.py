from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import Result

from holdfast import simulation
from holdfast.errors import SimulationFailed

Invoke = Callable[..., Result]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_seeds_that_end_well_are_ok(invoke: Invoke, store: str) -> None:
    result = invoke("simulate", "--seeds", 2, "--first", 7, "--store", store)

    assert result.exit_code == 0, result.output
    assert "ok: seeds 7 to 8" in result.stdout


def test_seeds_on_a_server_are_named_without_its_password(invoke: Invoke, postgres_server: str) -> None:
    url = postgres_server.replace("postgresql://holdfast@", "postgresql://holdfast:secret@")

    result = invoke("simulate", "--seeds", 1, "--first", 5, "--nodes", 2, "--store", url)

    assert result.exit_code == 0, result.output
    assert "ok: seeds 5 to 5 on postgresql://" in result.stdout
    assert "secret" not in result.output


def test_progress_is_told_in_a_pipe(invoke: Invoke) -> None:
    lines = invoke("simulate", "--seeds", 3).stdout.splitlines()

    assert lines[1:3] == ["1 of 3", "2 of 3"]


def test_failure_is_told_with_its_seed_and_the_exit_code_is_1(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(seeds: int, *, first: int, **_options: object) -> None:
        raise SimulationFailed(f"Expected seed {first + seeds - 1} to end as it does undisturbed, but it does not.")

    # No seed is known to fail: that is what the simulation is for.
    monkeypatch.setattr(simulation, "run", fail)

    result = invoke("simulate", "--seeds", 10, "--first", 5)

    assert result.exit_code == 1
    assert "Error: Expected seed 14" in result.stderr
    assert "ok" not in result.stdout


@pytest.mark.parametrize(
    "options",
    [["--seeds", "0"], ["--first", "-1"], ["--store", "paper"], ["--store", "sqlite", "--nodes", "3"]],
    ids=" ".join,
)
def test_bad_options_are_usage_errors(invoke: Invoke, options: list[str]) -> None:
    assert invoke("simulate", *options).exit_code == 2
