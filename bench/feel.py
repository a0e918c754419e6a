"""FEEL beside feelin in Node on the same expressions, and what a condition, a line and a decision table cost.

Ours is called as the engine calls it: compiled once, then evaluated with a context of plain Python values. feelin offers
`evaluate(text, context)`, which parses each time, and `parseExpression`, whose tree nothing takes. So its evaluation is
measured with its parsing; `both_parse` is the ratio when ours parses each time too. The best of some rounds counts, with
warm code.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from bench.measuring import report
from holdfast import dmn, feel
from tests.dmn.models import data, decision, make_xml, table
from tests.feel.feelin.peer import Missing, ask, install

ROUNDS: Final = 5
SECONDS: Final = 0.1
CONDITION: Final = 'order.total > 100 and contains(customer.tags, "vip")'
CONTEXT: Final[Mapping[str, Any]] = {
    "order": {"total": 150, "lines": [{"price": price, "count": price % 3 + 1} for price in range(5, 25)], "country": "DE"},
    "customer": {"name": "Ann Lee", "tags": ["vip", "new"], "notes": "a vip since 2019", "age": 41},
    "Monthly Salary": 10000,
    "rates": [0.5, 2.25, 10, 3],
}
EXPRESSIONS: Final = (
    CONDITION,
    'order.total > 100 and contains(customer.notes, "vip")',
    'order.total > 100 and list contains(customer.tags, "vip")',
    "Monthly Salary * 12 + 500",
    'if customer.age >= 18 and order.country in ("DE", "FR", "IT") then "ok" else "ask"',
    "sum(for line in order.lines return line.price * line.count)",
    "order.lines[price > 10 and count = 2].price",
    "some rate in rates satisfies rate > 9",
    "customer.age between 18 and 67",
    "{net: order.total, tax: net * 0.19, gross: net + tax}.gross",
    'upper case(substring(customer.name, 1, 3)) + "-" + string(order.total)',
    'date("2024-02-29") + duration("P1Y") < date("2025-03-01")',
)
RULES: Final = 500
COUNTRIES: Final = ("DE", "FR", "IT", "ES", "PT", "NL", "BE", "AT", "PL", "SE")
INPUTS: Final = ("amount", "country", "grade", "years", "member")


def run() -> None:
    """Print the ratios, then the figures that have a limit."""
    compare()
    condition = feel.compile(CONDITION)
    report("feel: a typical condition", microseconds=measure(partial(condition.evaluate, CONTEXT)), limit=10)
    report("feel: parsing it", microseconds=measure(partial(feel.compile, CONDITION)), limit=200)
    slowest = max(measure(partial(feel.compile, text, names=CONTEXT)) for text in EXPRESSIONS)
    report("feel: parsing the slowest", microseconds=slowest, limit=200)
    for policy in ("UNIQUE", "COLLECT"):
        decide = dmn.load(write_table(policy)).evaluate
        milliseconds = {f"{name}_ms": measure(partial(decide, "Rate", one)) / 1e3 for name, one in make_inputs().items()}
        report(f"dmn: {RULES} rules, {policy}", **milliseconds, limit=1)


def compare() -> None:
    """Evaluate the same expressions with both engines, and print the ratios."""
    try:
        folder = install()
    except Missing as missing:
        report("feel: beside feelin", skipped=missing)
        return
    ratios = []
    for text in EXPRESSIONS:
        (theirs,) = ask(folder, [{"measure": True, "text": text, "context": CONTEXT}])
        ours = measure(partial(feel.compile(text, names=CONTEXT).evaluate, CONTEXT))
        parsed = measure(partial(parse_and_evaluate, text))
        ratios.append(theirs["evaluate"] / ours)
        report(
            "feel: beside feelin",
            us=ours,
            feelin_us=theirs["evaluate"],
            ratio=ratios[-1],
            both_parse=theirs["evaluate"] / parsed,
            text=text,
        )
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    report("feel: beside feelin", least_ratio=min(ratios), geometric_mean=mean, limit="at least 10")


def parse_and_evaluate(text: str) -> object:
    """Parse and evaluate an expression without any cache."""
    return feel.compile(text, names=CONTEXT).evaluate(CONTEXT)


def measure(work: Callable[[], object]) -> float:
    """Microseconds of one call: the best of some rounds."""
    best = math.inf
    for _ in range(ROUNDS):
        calls, begin = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begin) < SECONDS:
            for _ in range(10):
                work()
            calls += 10
        best = min(best, elapsed / calls * 1e6)
    return best


# --- a decision table ---


def write_table(policy: str) -> str:
    """A table of many rules and five inputs: ranges, lists of texts, comparisons, booleans, cells without a test."""
    random = Random(1)
    rules = [
        [
            f"[{(low := number // len(COUNTRIES) * 10)}..{low + 10})",
            f'"{COUNTRIES[number % len(COUNTRIES)]}"',
            random.choice(("-", 'not("F")', '"A", "B", "C", "D", "E"', "string length(?) = 1")),
            random.choice(("-", ">= 0", "[0..1000]")),
            random.choice(("-", "true, false")),
            str(number),
        ]
        for number in range(RULES)
    ]
    decided = decision("Rate", table(INPUTS, ["rate"], rules, policy=policy), inputs=INPUTS)
    return make_xml(*map(data, INPUTS), decided)


def make_inputs() -> dict[str, dict[str, Any]]:
    """Inputs of the decision table that match its first rule, its last and none."""
    rest = {"grade": "B", "years": 12, "member": True}
    return {
        "first": {"amount": 5, "country": COUNTRIES[0], **rest},
        "last": {"amount": RULES - 5, "country": COUNTRIES[-1], **rest},
        "none": {"amount": -1, "country": "XX", **rest},
    }
