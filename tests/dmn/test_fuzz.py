"""Models that were changed at random are refused with problems, or load and decide; nothing else ever happens."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from pathlib import Path

import pytest
from lxml import etree

from holdfast import dmn
from holdfast.errors import DmnError, FeelError

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples" / "decisions").glob("*.dmn"))
TEXTS = [
    "1",
    "-",
    "< 5",
    '"a"',
    "Annuity(1)",
    "Applicant.Age",
    "null",
    "",
    "(",
    "[1..2]",
    "a b c",
    "{a: 1}",
    "function(a) a",
]
NAMES = ["number", "string", "tRisk", "date", "nothing", "boolean", "FIRST", "COLLECT", "SUM", "#amount", "x", ""]
VALUES = [None, 5, -1, "good", True, [1, 2], {"Age": 30, "Monthly Income": 1}, 0.5, []]


def change(root: etree._Element, source: random.Random) -> None:
    elements = [element for element in root.iter() if isinstance(element.tag, str)]
    one, other = source.choice(elements), source.choice(elements)
    parent = one.getparent()
    kind = source.randrange(5)
    if kind == 0 and parent is not None:
        parent.remove(one)
    elif kind == 1 and parent is not None:
        other.append(copy.deepcopy(one))
    elif kind == 2:
        one.text = source.choice(TEXTS)
    elif kind == 3 and one.attrib:
        one.set(source.choice([str(key) for key in one.attrib]), source.choice(NAMES))
    else:
        one.set("typeRef", source.choice(NAMES))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.stem))
@pytest.mark.parametrize("seed", range(60))
def test_changed_model_is_refused_with_problems_or_decides(path: Path, seed: int) -> None:
    source = random.Random(seed)
    root = etree.fromstring(path.read_bytes())
    for _ in range(source.randrange(1, 4)):
        change(root, source)

    model = load(etree.tostring(root))

    if model is None:
        return
    for summary in (*model.decisions, *model.services):
        with contextlib.suppress(FeelError):
            inputs = {name: source.choice(VALUES) for name in summary.inputs}
            json.dumps(model.evaluate(summary.id, inputs).trace.to_json())


def load(xml: bytes) -> dmn.Model | None:
    try:
        return dmn.load(xml)
    except DmnError:
        return None
