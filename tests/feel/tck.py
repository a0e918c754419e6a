"""The cases of the DMN TCK that are FEEL alone, from `<HOLDFAST_SUITES>/feel/tck.json`. `python -m tests.feel.tck` reports.

A case is an expression of a decision with the values of its inputs. What the decision declares as the type of its result
matters too: DMN 10.3.2.9.4 makes an item of a list of one, and the other way round, and null of what does not conform. The
file names that type and leaves its definition out, so those that matter are here.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from holdfast import feel
from holdfast.errors import FeelError
from holdfast.feel import comparing
from holdfast.feel.lexer import Lexer
from holdfast.feel.types import is_instance, name_type, parse_type
from holdfast.feel.values import NUMBERS, Value
from tests.feel.tagged import read_tagged

TYPES: Final[Mapping[str, str]] = {
    "ListOfNumbers": "list<number>",
    "booleanList": "list<boolean>",
    "tNameList": "list<string>",
    "tNestedList": "list<list<string>>",
    "tNumList": "list<number>",
    "tNumberList": "list<number>",
    "tStringList": "list<string>",
    "tNameAndAge": "context<name: string, age: number>",
    "exactContextType": "context<a: number, b: number>",
    "superContextType": "context<a: number>",
    "otherContextType": "context<c: number>",
    "t255": "number",
    "tFooBar": "string",
    "tAnyList": "list<Any>",
    "t_context_013": "context<a: string, b: string>",
}
"""Types that models define, as FEEL writes them. Of all others the cases ask nothing."""
SERVICES: Final[Mapping[str, str]] = {"decision_ds_001": "string", "decision_ds_002": "string"}
"""Decisions whose result is seen, or whose only input is given, through a decision service, by the type declared there."""
BUILT_IN: Final = ("boolean", "number", "string", "time", "dateTime", "dayTimeDuration")
FLOATED: Final = Decimal("1e-8")
"""An expected number with that many digits behind the point, or more, was rounded or computed in floating point."""
NOW: Final = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """One case. `type` is what the decision declares, as FEEL writes it."""

    folder: str
    name: str
    text: str
    inputs: dict[str, Value]
    expected: Value
    type: str | None


@dataclass(frozen=True)
class Failure:
    """A case that came to something else than expected."""

    case: Case
    found: str


def load_cases() -> list[Case]:
    """All cases, or none where HOLDFAST_SUITES is not set."""
    suites = os.environ.get("HOLDFAST_SUITES")
    if not suites:
        return []
    return list(map(read_case, json.loads((Path(suites) / "feel" / "tck.json").read_text())["cases"]))


def read_case(data: Mapping[str, Any]) -> Case:
    """One case. That an expression is erroneous means that it is null."""
    folder = data["file"].split("/")[1]
    declared = SERVICES.get(data["decision"], data["result_type"])
    return Case(
        folder,
        f"{folder} {data['case']} {data['decision']}",
        data["expr"],
        {name: read_tagged(value) for name, value in data["inputs"].items()},
        None if data["error"] else read_tagged(data["expected"]),
        declared if declared in BUILT_IN else TYPES.get(declared or ""),
    )


def run_cases(cases: Iterable[Case]) -> Iterator[Failure]:
    """Those that fail."""
    for case in cases:
        try:
            found = conform(evaluate(case), case.type)
        except FeelError as error:
            # An expression that is refused has no value: the TCK's word for that is null.
            if case.expected is not None:
                yield Failure(case, f"{type(error).__name__}: {error}")
        else:
            if not is_same(found, case.expected):
                yield Failure(case, repr(found))


def evaluate(case: Case) -> Value:
    """The value of the decision. Types of the model are known to whoever compiles, as a decision model does."""
    if any(name in case.text for name in TYPES):
        types = {name: parse_type(Lexer(text)) for name, text in TYPES.items()}
        return feel.compile(case.text, types=types).evaluate(case.inputs)
    return feel.evaluate(case.text, case.inputs, clock=lambda: NOW)


def conform(value: Value, declared: str | None) -> Value:
    """The value of a decision, of which a type is declared."""
    if declared is None or value is None:
        return value
    wanted = parse_type(Lexer(declared))
    alone = value[0] if isinstance(value, list) and len(value) == 1 else None
    return next((one for one in (value, [value], alone) if is_instance(one, wanted)), None)


def is_same(found: Value, expected: Value) -> bool:
    """Whether they are the same value of the same kind, all the way down."""
    if name_type(found) != name_type(expected):
        return False
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(is_same(found[name], expected[name]) for name in expected)
    if isinstance(expected, Decimal):
        return bool(round_like(found, expected) == round_like(expected, expected))
    return comparing.is_identical(found, expected)


def round_like(number: Decimal, expected: Decimal) -> Decimal:
    """A number to eight digits, where no more are expected: `exp(4)` is written as 54.59815003."""
    exponent = expected.as_tuple().exponent
    is_rounded = isinstance(exponent, int) and exponent <= FLOATED.adjusted()
    return NUMBERS.quantize(number, FLOATED) if is_rounded else number


def main() -> int:
    """Print passed and failed by folder, then each failure."""
    cases = load_cases()
    if not cases:
        sys.stderr.write("Expected HOLDFAST_SUITES to name the folder of the suites, but it is not set. Set it.\n")
        return 2
    failures = list(run_cases(cases))
    failed = Counter(failure.case.folder for failure in failures)
    for folder, count in sorted(Counter(case.folder for case in cases).items()):
        print(f"{folder:<60} {count - failed[folder]:>4} passed {failed[folder]:>4} failed")
    for failure in failures:
        case = failure.case
        print(f"\n{case.name}\n  {case.text!r}\n  expected {case.expected!r}\n  found    {failure.found}")
    passed = len(cases) - len(failures)
    print(f"\n{passed:,} of {len(cases):,} passed ({100 * passed / len(cases):.2f} %)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
