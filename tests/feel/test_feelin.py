"""Thousands of random expressions mean the same here and in feelin, but for differences that are known and explained.

Node and npm are needed, and a registry the first time; where they are missing, the comparison is skipped, and says so.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from holdfast import feel
from holdfast.errors import FeelError
from holdfast.feel import comparing
from holdfast.feel.types import name_type
from tests.feel.feelin.differences import DIFFERENCES, NO_TEST, Difference
from tests.feel.feelin.peer import HERE, Missing, ask, install
from tests.feel.grammar import CONTEXT, fill, make_text
from tests.feel.tagged import read_tagged

SEED: Final = 20
EXPRESSIONS: Final = 8_000
KINDS: Final = (
    "number",
    "number",
    "string",
    "boolean",
    "boolean",
    "numbers",
    "strings",
    "context",
    "contexts",
    "any",
    "any",
)
UNARY_TESTS: Final = 1_500
TESTED: Final = {
    "«number»": (1, 2.5, -4),
    "< «number»": (1, 2.5, -4),
    ">= «number»": (1, 2.5, -4),
    "[«low»..«high»)": (1, 2.5, 100),
    "«number», > «number»": (1, 2.5, 100),
    "not(«number», [«low»..«high»])": (1, 2.5, 100),
    "? * 2 > «number»": (1, 2.5, 100, None),
    "«numbers»": (1, 2, 3),
    "«string»": ("a", "foobar", ""),
    "«string», «string»": ("a", "foobar", ""),
    "not(«string»)": ("a", "foobar", ""),
    "contains(?, «string»)": ("a", "foobar", "", None),
    "< «string»": ("a", "foobar", ""),
    "-": (1, "a", None),
}
"""Tests, and values of a kind that they are made for."""

Question = dict[str, Any]


@pytest.fixture(scope="module")
def feelin() -> Path:
    try:
        return install()
    except Missing as missing:
        pytest.skip(f"nothing was compared: {missing}")


def make_expressions() -> list[Question]:
    random = Random(SEED)
    return [{"text": make_text(random, random.choice(KINDS)), "context": CONTEXT} for _ in range(EXPRESSIONS)]


def make_unary_tests() -> list[Question]:
    random = Random(SEED)
    chosen = [random.choice(list(TESTED.items())) for _ in range(UNARY_TESTS)]
    return [
        {"text": fill(random, template, 1), "context": CONTEXT, "value": random.choice(values)}
        for template, values in chosen
    ]


def answer(question: Question) -> Any:
    """Ours: a value, or an error."""
    try:
        if "value" in question:
            return feel.unary_tests(question["text"], question["value"], question["context"])
        return feel.evaluate(question["text"], question["context"])
    except FeelError as error:
        return error


def is_same(ours: Any, theirs: Any) -> bool:
    """Whether a value of ours is what theirs was written as; numbers as near as floating ones can be."""
    if isinstance(theirs, dict):
        ((tag, content),) = theirs.items()
        if tag == "__range__":
            return name_type(ours) == "range"
        if tag == "__function__":
            return name_type(ours) == "function"
        if tag == "__number__":
            return isinstance(ours, Decimal) and math.isclose(float(ours), float(content), rel_tol=1e-9, abs_tol=1e-9)
        if tag == "__context__":
            return (
                isinstance(ours, dict) and ours.keys() == content.keys() and all(is_same(ours[k], content[k]) for k in ours)
            )
        try:
            value = read_tagged(theirs)
        except ValueError:
            return False  # months and days in one duration, which FEEL does not have
        return name_type(ours) == name_type(value) and comparing.equal(ours, value) is True
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    return type(ours) is type(theirs) and bool(ours == theirs)


def agrees(question: Question, theirs: dict[str, Any]) -> bool:
    ours = answer(question)
    if "error" in theirs or isinstance(ours, FeelError):
        return "error" in theirs and isinstance(ours, FeelError)
    return is_same(ours, theirs["value"])


def explain(question: Question) -> Difference | None:
    return next((one for one in DIFFERENCES if concerns(one, question)), None)


def concerns(one: Difference, question: Question) -> bool:
    is_null = "value" in question and question["value"] is None
    return re.search(one.pattern, question["text"]) is not None and (one.value is not None or is_null)


def test_everyday_expressions_mean_the_same(feelin: Path) -> None:
    questions = [{"text": line, "context": CONTEXT} for line in (HERE / "common.txt").read_text().splitlines()]

    answers = ask(feelin, questions)

    assert len(questions) > 250
    assert [q["text"] for q, theirs in zip(questions, answers, strict=True) if not agrees(q, theirs)] == []


@pytest.mark.parametrize("make", [make_expressions, make_unary_tests])
def test_random_texts_mean_the_same(feelin: Path, make: Any) -> None:
    questions = make()

    answers = ask(feelin, questions)

    surprises = [
        f"{question['text']}  ours: {answer(question)!r}  theirs: {theirs}"
        for question, theirs in zip(questions, answers, strict=True)
        if not agrees(question, theirs) and explain(question) is None
    ]
    assert surprises == []


def test_known_differences_are_still_there(feelin: Path) -> None:
    questions = [
        {"text": one.example, "context": CONTEXT} | ({} if one.value is NO_TEST else {"value": one.value})
        for one in DIFFERENCES
    ]

    answers = ask(feelin, questions)

    gone = [one for one, question, theirs in zip(DIFFERENCES, questions, answers, strict=True) if agrees(question, theirs)]
    assert gone == []
    assert [explain(question) for question in questions] == list(DIFFERENCES)


def test_machine_without_node_or_without_a_network_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9")

    with pytest.raises(Missing, match="npm"):
        install()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match="node and npm are not on this machine"):
        install()
