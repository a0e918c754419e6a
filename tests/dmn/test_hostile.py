"""Models that were made to hang or to fill the memory: what is called again and again counts for what it costs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import pytest

from holdfast import dmn
from holdfast.errors import FeelLimitExceeded
from holdfast.feel.running import MOST_STEPS
from tests.dmn.models import data, decision, knowledge, make_xml, table, text

SECONDS: Final = 5
"""Of processor time. They take a fifth of a second where nothing else runs."""


def loop(body: str, items: str = "[1..300000]") -> str:
    made = body if body.startswith("<") else text(body)
    return f"<for iteratorVariable='i'><in>{text(items)}</in><return>{made}</return></for>"


def call_table(rules: list[list[str]], policy: str) -> str:
    called = knowledge("K", ["x"], table(["x"], ["o"], rules, policy=policy))
    return make_xml(called, decision("D", "count(for i in 1..900000 return K(i))", knowledge=["K"]))


ROWS: Final = f"<row>{text('1')}{text('2')}</row>" * 500
CHAIN: Final = [decision(f"A{number}", "1", decisions=[f"A{number - 1}"] if number else []) for number in range(100)]
MODELS: Final[Mapping[str, str]] = {
    "large table": call_table([[str(number), "1"] for number in range(2_000)], "UNIQUE"),
    "table that has to be asked": call_table([["> x - 1", "1"]] * 500, "COLLECT"),
    "table of which all rules match": call_table([["-", "1"]] * 500, "COLLECT"),
    "knowledge": make_xml(knowledge("K", ["x"], "x"), decision("D", "for i in 1..900000 return K(i)", knowledge=["K"])),
    "knowledge that calls itself": make_xml(
        knowledge("K", ["x"], "if x > 80 then 1 else K(x + 1) + K(x + 1)"), decision("D", "K(1)", knowledge=["K"])
    ),
    "service": make_xml(
        *CHAIN,
        '<decisionService id="id_S" name="S"><outputDecision href="#id_A99"/></decisionService>',
        decision("D", "count(for i in 1..900000 return S())", knowledge=["S"]),
    ),
    "loop": make_xml(decision("D", loop("i + 1"))),
    "loops in a loop": make_xml(decision("D", loop(loop("1", "[1..900]"), "[1..900]"))),
    "texts": make_xml(data("s"), decision("D", loop("s + string(i)", "[1..90000]"), inputs=["s"])),
    "long lists": make_xml(decision("D", loop("[" + ", ".join(["i"] * 5_000) + "]", "[1..90000]"))),
    "relations": make_xml(
        decision("D", loop(f"<relation><column name='a'/><column name='b'/>{ROWS}</relation>", "[1..90000]"))
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_work_without_end_meets_a_limit_soon(name: str) -> None:
    model = dmn.load(MODELS[name], strict=True)
    begin = time.process_time()

    with pytest.raises(FeelLimitExceeded):
        model.evaluate("D", {"s": "a" * 10_000}, max_steps=MOST_STEPS // 5)
    assert time.process_time() - begin < SECONDS


def test_large_table_over_long_texts_stays_within_the_limits() -> None:
    rules = [["-", f'x + "{number}"'] for number in range(500)]
    model = dmn.load(make_xml(data("x"), decision("D", table(["x"], ["o"], rules, policy="COLLECT"), inputs=["x"])))

    assert len(model.evaluate("D", {"x": "a" * 10_000}).value) == 500


def test_limit_of_bytes_can_be_chosen() -> None:
    model = dmn.load(make_xml(data("x"), decision("D", 'x + "b"', inputs=["x"])))

    with pytest.raises(FeelLimitExceeded, match="bytes of values"):
        model.evaluate("D", {"x": "a" * 10_000}, max_bytes=5_000)
