"""A seed is enough to repeat a run, bit for bit, in another process."""

import os
import subprocess
import sys

import pytest

from holdfast import simulation

PROGRAM = """
from holdfast import simulation
for store, seed in (("memory", 3), ("memory", 114), ("sqlite", 1)):
    print(store, seed, simulation.run(1, first=seed, store=store).digests)
"""


def _run_with_hash_seed(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_a_seed_is_repeated_bit_for_bit_whatever_the_hash_seed() -> None:
    first, second = _run_with_hash_seed("1"), _run_with_hash_seed("2")

    assert first == second
    assert first.count("\n") == 3


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_seed_does_not_depend_on_what_ran_before(store: str) -> None:
    alone = simulation.run(1, first=7, store=store).digests

    assert simulation.run(2, first=6, store=store).digests[-len(alone) :] == alone


def test_seeds_differ() -> None:
    digests = simulation.run(2, first=1).digests

    assert len(set(digests)) > 2
