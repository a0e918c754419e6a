"""Every model of the suites at hand is drawn, as its file says and by a layout."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from lxml import etree

from holdfast.bpmn.drawing import draw
from holdfast.bpmn.reading import read
from tests.bpmn.support.suite_files import find_suite


@pytest.mark.parametrize("suite", ["betsy", "token-simulation"])
def test_models_of_a_suite_are_drawn_with_and_without_their_diagrams(suite: str) -> None:
    folder = find_suite(suite)
    if folder is None:
        pytest.skip("the suite is not at hand")

    for path in sorted(folder.rglob("*.bpmn")):
        check(path)


def check(path: Path) -> None:
    definitions = read(path.read_bytes(), path.name).definitions
    if definitions is None:
        return
    for one in (definitions, msgspec.structs.replace(definitions, diagrams=())):
        svg = draw(one)
        drawn = [group.get("data-element") for group in etree.fromstring(svg.encode()).iter() if group.get("data-element")]
        assert len(drawn) == len(set(drawn)), path
        assert drawn or not any(process.nodes for process in one.processes), path
