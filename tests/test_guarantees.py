"""The page of guarantees and the tests name the same rules, and its table of limits shows the engine's real defaults."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from holdfast.engine.config import Config

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
HEADINGS = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)


def find_tested() -> dict[str, str]:
    """The rules that tests are named after, each with one of its tests."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, rule in re.findall(r"def (test_([A-Z]\d+)_\w+)", path.read_text()):
            found.setdefault(rule, f"{path.relative_to(ROOT)}::{name}")
    return found


def test_every_rule_has_one_heading_that_is_its_id() -> None:
    assert all(re.fullmatch(r"[A-Z]\d+", heading) for heading in HEADINGS)
    assert len(set(HEADINGS)) == len(HEADINGS)


def test_every_rule_that_a_test_names_is_on_the_page() -> None:
    tested = find_tested()

    assert tested
    assert {rule: test for rule, test in tested.items() if rule not in HEADINGS} == {}


def test_every_rule_on_the_page_is_named_by_a_test() -> None:
    assert [rule for rule in HEADINGS if rule not in find_tested()] == []


def test_every_rule_begins_with_its_promise_in_one_sentence() -> None:
    for rule, body in re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        assert body.startswith("**"), rule


def test_links_lead_to_rules_that_are_there() -> None:
    links = re.findall(r"\[(\w+)\]\(#(\w+)\)", PAGE)

    assert links
    assert [label for label, anchor in links if anchor != label.lower() or label not in HEADINGS] == []


def test_table_of_limits_shows_every_option_of_the_engine_with_its_default() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", PAGE, re.MULTILINE))

    limits = [field for field in msgspec.structs.fields(Config) if field.name != "storage_retry"]  # a policy, no limit
    assert table == {field.name: str(field.default) for field in limits}
