"""Random graphs of gateways end in one of the ways that the specification allows."""

from __future__ import annotations

import pytest

from tests.bpmn.oracles.driving import count_completed, list_batches
from tests.bpmn.oracles.gateway_graphs import Ending, TooMany, find_endings, make_graph, write_graph
from tests.bpmn.support.playing import PlayedProcess, compile_xml


class _Play(PlayedProcess):
    checks_each_turn = False


@pytest.mark.parametrize("seeds", list_batches(300), ids=str)
def test_P8_graphs_of_gateways_end_as_the_specification_allows(seeds: range) -> None:
    for seed in seeds:
        _check(seed)


def _check(seed: int) -> None:
    graph = make_graph(seed)
    xml = write_graph(graph)
    play = _Play(compile_xml(xml))

    try:
        endings = find_endings(graph)
    except TooMany:
        _check_endless(seed, play)
        return

    root = play.program.state.root
    joins = {} if root is None else root.joins
    stuck = frozenset((flow, count) for flows in joins.values() for flow, count in flows.items())
    ending = Ending(frozenset(count_completed(play).items()), stuck)
    assert ending in endings, f"seed {seed}: {ending} is not among {endings}: {xml}"
    assert play.is_closed is not bool(stuck), f"seed {seed}"
    assert [kind for _, kind in play.incidents.values()] == ["deadlock"] * bool(stuck), f"seed {seed}"


def _check_endless(seed: int, play: PlayedProcess) -> None:
    """It may never end; but it rests after each turn, and can be cancelled."""
    for _ in range(3):
        if play.is_closed or not play.execution.timers:
            return
        assert play.program.state.kept, f"seed {seed}"
        play.fire()
    if not play.is_closed:
        play.cancel()
        assert play.is_closed, f"seed {seed}"
