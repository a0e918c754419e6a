"""Schemas of forms with patterns that cannot be used: only those are left out, and nothing more is refused by it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.engine.use_cases.task_forms import leave_out_patterns

GOOD = {"type": "string", "pattern": "^a$"}
BAD = {"type": "string", "pattern": r"a\Z"}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (GOOD, GOOD),
        (BAD, TEXT),
        ({"properties": {"pattern": BAD, "code": GOOD}}, {"properties": {"pattern": TEXT, "code": GOOD}}),
        ({"$defs": {"Code": BAD}, "$ref": "#/$defs/Code"}, {"$defs": {"Code": TEXT}, "$ref": "#/$defs/Code"}),
        ({"anyOf": [BAD, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"items": BAD, "enum": [BAD], "default": BAD}, {"items": TEXT, "enum": [BAD], "default": BAD}),
        ({"oneOf": [BAD, GOOD], "not": BAD, "minLength": 1}, {"minLength": 1}),
        ({"oneOf": [GOOD], "additionalProperties": False}, {"oneOf": [GOOD], "additionalProperties": False}),
        ({"patternProperties": {r"a\Z": TEXT}, "additionalProperties": False, "type": "object"}, {"type": "object"}),
        ({"patternProperties": {"a": BAD}}, {"patternProperties": {"a": TEXT}}),
    ],
)
def test_only_patterns_that_cannot_be_used_are_left_out(schema: dict[str, Any], kept: dict[str, Any]) -> None:
    assert leave_out_patterns(schema) == kept
