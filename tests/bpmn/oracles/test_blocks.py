"""Random processes of nested blocks have the outcome that a recursion over the blocks computes."""

from __future__ import annotations

from random import Random

import pytest

from tests.bpmn.oracles.driving import drive, list_batches, list_completed
from tests.bpmn.oracles.random_processes import make_process
from tests.bpmn.oracles.scope_blocks import ANY
from tests.bpmn.support.playing import PlayedProcess, compile_xml


class _Play(PlayedProcess):
    checks_each_turn = False  # other oracles do


@pytest.mark.parametrize("seeds", list_batches(400), ids=str)
def test_P1_nested_blocks_have_the_outcome_of_their_recursion(seeds: range) -> None:
    for seed in seeds:
        _check(seed)


def _check(seed: int) -> None:
    random = Random(seed)
    xml, variables, expected = make_process(seed, random.randint(1, 14))
    play = _Play(compile_xml(xml), variables)

    drive(play, random)

    completed = list_completed(play)
    counts = {one: completed.count(one) for one in set(completed)}
    assert counts == dict(expected.completed), f"seed {seed}: {xml}"
    places = {one: place for place, one in enumerate(completed)}
    for first, second in expected.before:
        assert places[first] < places[second], f"seed {seed}: {first} after {second}: {xml}"
    fixed = {name: value for name, value in expected.variables.items() if value is not ANY}
    found = {name: value for name, value in play.result.items() if expected.variables.get(name) is not ANY}
    assert found == fixed, f"seed {seed}: {xml}"
